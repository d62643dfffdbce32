"""What an actor on any node must be told to find its engine: the store's URL, the settings, the signing key.

It travels as an argument of an actor's creation, which Ray shows nowhere; a runtime environment would be shown in the
dashboard. Its repr keeps password and key to itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from gobpm_ray.runtime.ports import Store
from gobpm_ray.settings import Settings

NAMESPACE = "gobpm"
"""Of every actor, whatever namespace the driver chose for itself."""


@dataclass(frozen=True, slots=True)
class EngineSpec:
    settings: Settings
    store_url: str = field(repr=False)
    signing_key: bytes = field(default=b"", repr=False)
    """Checks code that was stored by value; empty: none is accepted."""

    @property
    def store_digest(self) -> str:
        """Tells one store from another, and nothing about its password."""
        parts = urlsplit(self.store_url)
        place = f"{parts.scheme}://{parts.hostname or ''}:{parts.port or 6379}{parts.path}"
        return hashlib.sha256(place.encode()).hexdigest()[:12]

    @property
    def one_machine(self) -> bool:
        """The store is reached through a file: every actor has to live on the machine where that is."""
        return self.store_url.startswith("unix:")

    def actor_name(self, role: str) -> str:
        """`gobpm:<engine>:<role>`: how an actor is named in Ray."""
        return f"gobpm:{self.settings.engine_id}:{role}"

    def open_store(self) -> Store:
        """A client of the engine's store, whose server answered; StoreUnavailable and StoreRefused otherwise."""
        from gobpm_ray.store.connection import open_client
        from gobpm_ray.store.redis_store import RedisStore

        return RedisStore(open_client(self.store_url), self.settings)
