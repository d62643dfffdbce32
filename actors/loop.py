"""The thin Ray shell of a plain loop: it runs in a thread from the actor's creation on, so a restart by Ray needs
nobody's call.

This module knows threads and how an actor comes to life and ends. It refuses to know what the loop does.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from typing import Any, Protocol

from actors.handles import exit_this_actor, this_node
from actors.spec import EngineSpec
from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.runtime.ports import BellName, Store

log = logging.getLogger(__name__)

RETRY_S = 1.0
STOP_WITHIN_S = 5.0


class Loop(Protocol):
    bell: BellName
    """What wakes it from its sleep."""

    def run(self, stop: threading.Event) -> None:
        """Until `stop`; a failing pass is the loop's own to survive."""


class LoopActor:
    """A subclass names itself as people shall see it in Ray, and says what it runs."""

    def __init__(self, spec: EngineSpec) -> None:
        speak_up()
        self._spec = spec
        self._stop = threading.Event()
        self._trouble = ""
        self._store: Store | None = None
        self._loop: Loop | None = None
        self._thread = threading.Thread(target=self._live, name=type(self).__name__, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return type(self).__name__

    def build(self, store: Store) -> Loop:
        raise NotImplementedError

    def _live(self) -> None:
        try:
            self._store = self._await_store()
            if self._store is not None:
                self._loop = self.build(self._store)
                self._loop.run(self._stop)
        except Exception:
            log.exception("%s: its loop failed", self)
        if not self._stop.is_set():
            # Without its loop the actor is a corpse that answers: die, so that Ray makes a new one.
            log.error("%s: its loop ended unasked", self)
            sys.stderr.flush()
            os._exit(1)

    def _await_store(self) -> Store | None:
        # Not in the constructor: one that raises ends the actor for good, and the store may only be restarting.
        while not self._stop.is_set():
            try:
                store = self._spec.open_store()
            except EnvironmentFailure as failure:
                self._trouble = str(failure)
                log.warning("%s: %s", self, failure)
                self._stop.wait(RETRY_S)
            else:
                self._trouble = ""
                return store
        return None

    # ----------------------------------------------------------------------------------------------- called through Ray

    def ping(self) -> dict[str, Any]:
        """It lives: where, on which store, and what troubles it."""
        return {
            "pid": os.getpid(),
            "node": this_node(),
            "store": self._spec.store_digest,
            "trouble": self._trouble,
        }

    def stop(self) -> bool:
        """The loop has ended; False if it did not in time."""
        self._stop.set()
        if self._store is not None and self._loop is not None:
            with contextlib.suppress(EnvironmentFailure):
                self._store.ring(self._loop.bell)
        self._thread.join(STOP_WITHIN_S)
        return not self._thread.is_alive()

    def leave(self) -> None:
        if self._store is not None:
            self._store.close()
        exit_this_actor()


def speak_up() -> None:
    """Log lines of the engine reach the actor's file in Ray's log folder."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
