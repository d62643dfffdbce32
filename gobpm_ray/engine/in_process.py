"""The engine without a store of its own: the same core, holders and host take turns in the caller's process (D17).

Nothing ever releases and nothing outlives the process; everything else is as on the real engine. On a virtual clock
each call returns when all that it caused has happened; on a real one a thread of this engine works beside the caller.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from gobpm_ray.engine.engine import Clock, Engine
from gobpm_ray.runtime.callables import Callables, Work, callable_row, load_row
from gobpm_ray.runtime.driver import Driver
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Store
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import SECOND, Settings
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder

if TYPE_CHECKING:
    from gobpm_ray.runtime.effects import Warn

log = logging.getLogger("gobpm_ray.engine")

E = TypeVar("E", bound=Engine)

START_OF_TIME_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: where a virtual clock stands unless it is told."""


class InProcess:
    """The one worker of such an engine. Whoever drives holds the lock; a driver is one thread at a time."""

    def __init__(self, store: MemoryStore, settings: Settings, clock: Clock, on_warning: Warn | None = None) -> None:
        self._store = store
        self._settings = settings
        self._on_warning = on_warning
        self._callables: dict[str, Work] = {}
        self._lock = threading.RLock()
        self._driver = self._new_driver()
        self._virtual = clock == "virtual"
        self._moved = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        if not self._virtual:
            self._thread = threading.Thread(target=self._pump, name="gobpm-in-process", daemon=True)
            self._thread.start()

    ray_address = ""
    dashboard_url = ""

    def settle(self) -> None:
        if not self._virtual:
            self._moved.set()
            return
        with self._lock:
            self._driver.drive()

    def register(self, topic: str, work: Work | str) -> bool:
        # By reference is by reference here too: an import that fails is told now and not at the first call.
        found = load_row(callable_row(work, None), None, topic) if isinstance(work, str) else work
        with self._lock:
            self._callables[topic] = found
        return True

    def registered(self) -> frozenset[str]:
        return frozenset(self._callables)

    def restart(self) -> Store:
        """Every cache is gone; the store's parts and rows are bytes already, and only they are read again."""
        with self._lock:
            self._driver.close()
            self._driver = self._new_driver()
        return self._store

    def close(self) -> None:
        self._closing.set()
        self._moved.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(self._settings.grace_ms / SECOND)
        with self._lock:
            self._driver.close()

    def _new_driver(self) -> Driver:
        # The table is shared, not copied: what is registered later counts too.
        callables = Callables(lambda _topic: None)
        callables.local = self._callables
        holders = [kind(self._store, self._settings) for kind in (TimerHolder, MessageHolder, TaskHolder)]
        return Driver(
            self._store,
            self._settings,
            Programs(self._store, self._settings),
            callables,
            holders,
            on_warning=self._on_warning,
        )

    def _pump(self) -> None:
        """Until it is closed: all that can happen happens, then sleep until something is accepted or falls due."""
        while not self._closing.is_set():
            self._moved.clear()
            pause = self._settings.holder_tick_ms / SECOND
            try:
                with self._lock:
                    quiet = self._driver.drive()
                if quiet.next_deadline is not None:
                    pause = min(pause, max(0.001, (quiet.next_deadline - quiet.now) / SECOND))
            except Exception:
                log.exception("in process: a turn failed")
            self._moved.wait(pause)


def open_in_process(
    kind: type[E],
    settings: Settings,
    clock: Clock,
    begin: int | None,
    live: Callable[[], int] | None = None,
    on_warning: Warn | None = None,
) -> E:
    """An engine of this class, over a new store in memory."""
    store = MemoryStore(settings, live)
    if clock == "virtual":
        store.manual_clock(START_OF_TIME_MS if begin is None else begin)
    return kind(store, settings, InProcess(store, settings, clock, on_warning), clock)
