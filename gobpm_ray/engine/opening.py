"""How a store is found and opened for the front door, embedded or external. It imports the store's client late: who
only simulates pays nothing for it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gobpm_ray.errors import InvalidSetting
from gobpm_ray.runtime.ports import Store
from gobpm_ray.settings import Settings

if TYPE_CHECKING:
    from gobpm_ray.store.embedded import EmbeddedStore

EMBEDDED = "embedded"
KEY_VARIABLE = "GOBPM_SIGNING_KEY"
URL_VARIABLE = "GOBPM_REDIS_URL"
_SHORTEST_KEY = 16


@dataclass(slots=True)
class Opened:
    """A store that answers, and what others need to reach the same one."""

    store: Store
    url: str
    signing_key: bytes | None
    embedded: EmbeddedStore | None = None
    started: bool = False
    """This call started the embedded store's process."""
    warnings: list[str] = field(default_factory=list)
    """One sentence for each setting with which an external store can lose what it accepted (E89)."""


def open_store(
    where: str | None, settings: Settings, home: Path | str | None = None, *, inspect: bool = False
) -> Opened:
    """The store of a URL; `embedded` or None: the one that GOBPM_REDIS_URL names, else the embedded one of the home,
    which runs then. StoreUnavailable, StoreRefused, InvalidSetting."""
    from gobpm_ray.store.connection import inspect_store, open_client
    from gobpm_ray.store.redis_store import RedisStore

    url = where if where and where != EMBEDDED else os.environ.get(URL_VARIABLE, "").strip()
    if where == EMBEDDED and home is not None:
        # Whoever names a home means the store in it.
        url = ""
    if url:
        client = open_client(url)
        try:
            return Opened(
                RedisStore(client, settings),
                url,
                key_of_environment(),
                warnings=inspect_store(client) if inspect else [],
            )
        except BaseException:
            client.close()
            raise
    from gobpm_ray.store.embedded import EmbeddedStore
    from gobpm_ray.store.signing_key import signing_key

    embedded = EmbeddedStore(home)
    started = not embedded.status().running
    url = embedded.ensure_running()
    key = key_of_environment() or signing_key(embedded.home)
    return Opened(RedisStore(open_client(url), settings), url, key, embedded, started)


def key_of_environment() -> bytes | None:
    """What GOBPM_SIGNING_KEY holds; InvalidSetting for a key that is too short to protect anything."""
    text = os.environ.get(KEY_VARIABLE, "").strip()
    if not text:
        return None
    if len(text) < _SHORTEST_KEY:
        raise InvalidSetting(f"{KEY_VARIABLE}: {len(text)} characters, expected at least {_SHORTEST_KEY} random ones")
    return text.encode()
