"""What every part of the front door stands on: one store, open or closed, and names that are fit for keys."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gobpm_ray.checkpoint import rows
from gobpm_ray.errors import EngineClosed, InputError, InvalidPayload, NotInTime, StoreUnavailable
from gobpm_ray.runtime.ports import Accepted, Store
from gobpm_ray.settings import Settings

_INSTANCE_ID = re.compile(r"[^\s/:@{}\x00-\x1f\x7f]{1,200}")
"""What an instance id may be: it stands inside delivery ids, task ids and keys, between their separators."""

RETRY_PAUSES_S = (0.05, 0.2, 0.5, 1.0)
FIRST_PAUSE_S = 0.002
LONGEST_PAUSE_S = 0.1


class Base:
    """One store, until it is closed."""

    def __init__(self, store: Store, settings: Settings | None = None, *, signing_key: bytes | None = None) -> None:
        """`signing_key`: signs callables that are stored by value; None: they are refused."""
        self._store_or_none: Store | None = store
        self._signing_key = signing_key
        self.settings = settings or Settings()
        self._startable: set[str] = set()
        """Ids known to be a process's: they stay it."""

    @property
    def store(self) -> Store:
        """The engine's store, for reading what no method gives; EngineClosed after `close` (R28)."""
        if self._store_or_none is None:
            raise EngineClosed("the engine is closed: open it again")
        return self._store_or_none

    @property
    def closed(self) -> bool:
        return self._store_or_none is None

    def close(self) -> None:
        """Every later call raises EngineClosed; what was accepted stays in the store. Closing again is no error."""
        store, self._store_or_none = self._store_or_none, None
        if store is not None:
            store.close()

    def _settle(self) -> None:
        """Something was accepted. An engine that works in this process does the work now; others are told by bells."""

    def _surely(self, accept: Callable[[], Accepted], *, ours: bool) -> Accepted:
        """The store's answer. If it gives none, it may have accepted all the same: asked again under the same delivery
        id, nothing happens twice. `ours`: the id was made here, so that a duplicate is this very delivery.

        StoreUnavailable when the store stays away."""
        asked_again = False
        for pause in (*RETRY_PAUSES_S, None):
            try:
                accepted = accept()
            except StoreUnavailable:
                if pause is None:
                    raise
                time.sleep(pause)
                asked_again = True
            else:
                return replace(accepted, duplicate=False) if ours and asked_again else accepted
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _poll(self, done: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Return when `done` is true, asking ever more seldom; NotInTime names `what` was waited for."""
        until = time.monotonic() + timeout_s
        pause = FIRST_PAUSE_S
        while not done():
            left = until - time.monotonic()
            if left <= 0:
                raise NotInTime(f"{what}: not within {timeout_s:g} s")
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, LONGEST_PAUSE_S)


def new_id() -> str:
    return secrets.token_hex(8)


def checked_instance_id(instance_id: str) -> str:
    if not isinstance(instance_id, str) or _INSTANCE_ID.fullmatch(instance_id) is None:
        raise InputError(
            f"instance id {str(instance_id)[:80]!r}: "
            "expected 1 to 200 characters without spaces, '/', ':', '@' or braces"
        )
    return instance_id


def encoded(values: Mapping[str, Any] | None, what: str, cause: str = "", code: str = "") -> bytes:
    """A trigger's payload; InvalidPayload unless `values` is a table of names, UnstorableValue names the value."""
    if values is None:
        values = {}
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise InvalidPayload(f"{what}: expected a table of named values, found {str(values)[:60]!r}")
    return rows.payload(dict(values), cause=cause, code=code, where=what)


def checked_delivery(delivery_id: str) -> str:
    if not isinstance(delivery_id, str) or not 1 <= len(delivery_id) <= 400 or any(ord(c) < 32 for c in delivery_id):
        raise InputError(
            f"delivery id {str(delivery_id)[:80]!r}: expected 1 to 400 characters without control characters"
        )
    return delivery_id
