"""The slow walk over all instances, for wakes that were dropped (C69): a page a pass, then rest until the next round.

Nothing that the engine does drops a wake; a hand that edits the store, an older release or a fault of ours may. It
knows the pace and where it stands; what is wrong with an instance is decided by the store's script.
"""

from __future__ import annotations

from collections.abc import Callable

from gobpm_ray.runtime.ports import Store
from gobpm_ray.settings import Settings

PAGE = 4_000
"""Keys that a step looks at: a millisecond or two of the store."""
KEPT_EVERY = 10
"""Pages between two notes of the place: a successor walks at most so many again."""
TABLE, NAME = "engine", "walk"


class Walk:
    def __init__(self, store: Store, settings: Settings, live_ms: Callable[[], int]) -> None:
        self._store = store
        self._settings = settings
        self._live_ms = live_ms
        self._cursor: str | None = None
        """None: not read yet; '': at rest."""
        self._rests_until = 0
        self._pages = 0

    def step(self) -> int:
        """The next page is walked, if the walk is not at rest; how many wakes were repaired."""
        if self._cursor is None:
            self._remember()
        if not self._cursor and self._live_ms() < self._rests_until:
            return 0
        self._cursor, repaired = self._store.reconcile(self._cursor or "", PAGE)
        self._pages += 1
        if not self._cursor:
            self._rests_until = self._live_ms() + self._settings.reconcile_ms
        if not self._cursor or self._pages % KEPT_EVERY == 0:
            note = f"{self._cursor} {self._rests_until}"
            self._store.put_value(TABLE, NAME, note.encode())
        return repaired

    def _remember(self) -> None:
        """Where a former holder stood, and until when it rested."""
        cursor, _, until = (self._store.get_value(TABLE, NAME) or b"").decode().partition(" ")
        self._cursor = cursor
        # A clock that was set back must not put the walk to rest for years.
        self._rests_until = min(int(until or 0), self._live_ms() + self._settings.reconcile_ms)
