"""Two helper threads of a host: one keeps its lease alive, one sleeps on the instance's bell.

Both speak only to the queue of the hosting they watch for; neither touches an instance. They exist because the thread
that hosts may be inside a long step or waiting for an effect.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue

from gobpm_ray.errors import EnvironmentFailure, LeaseLost
from gobpm_ray.runtime.crashpoints import reached
from gobpm_ray.runtime.ports import Store
from gobpm_ray.settings import SECOND, Settings

log = logging.getLogger("gobpm_ray.runtime")

BELL_S = 1.0
"""One sleep on a bell. A listener that outlives its hosting may swallow one ring within it; the heartbeat finds out."""
PAUSE_S = 0.25


@dataclass(frozen=True, slots=True)
class Bell:
    """Something may be in the inbox."""


@dataclass(frozen=True, slots=True)
class Renewed:
    inbox: int
    ready: int


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease is gone, or nobody can say that it is not."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The host was told to stop."""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of an effect."""

    effect_key: str
    done: bool
    values: dict[str, object]
    cause: str = ""
    code: str = ""
    """Not done: the BPMN error that was thrown; '' for a failure. Done: the escalation that was thrown on the way."""
    stack: str = ""
    lost: bool = False
    """Not done, or perhaps done: whoever did it is gone."""
    secrets: tuple[str, ...] = ()
    """Names of values that are marked secret."""
    unavailable: bool = False
    """Not done, and not begun: what it needs is not there."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """An effect that was handed out cannot begin, for want of this."""

    effect_key: str
    what: str


Event = Bell | Renewed | Lost | Stop | Report | Lacking
Events = SimpleQueue[Event]


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """One hosting: a new value for each, so that a late event reaches the queue of the hosting it was meant for."""

    instance_id: str
    token: str
    events: Events


class _Watcher:
    """A daemon thread that is started by its first use and sleeps while it has nobody to watch for."""

    name = ""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._watched: Watched | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, watched: Watched) -> None:
        with self._changed:
            self._watched = watched
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def rest(self) -> None:
        self._watched = None

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._watched = None
            self._changed.notify_all()

    def _run(self) -> None:
        raise NotImplementedError

    def _pause(self, seconds: float) -> bool:
        """False: closed meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)
            return not self._closed


class Renewer(_Watcher):
    """Whatever lease is held at a tick is renewed, so no lease is older than one tick plus one renewal (N11)."""

    name = "gobpm-renewer"

    def watch(self, watched: Watched) -> None:
        if self._thread is not None:
            self._watched = watched  # every claim comes by here: no lock on the hot path
        else:
            super().watch(watched)

    def _run(self) -> None:
        while self._pause(self._settings.lease_renew_ms / SECOND):
            watched = self._watched
            if watched is not None:
                self._renew(watched)

    def _renew(self, watched: Watched) -> None:
        until = time.monotonic() + (self._settings.lease_ttl_ms - self._settings.lease_renew_ms) / SECOND
        while self._watched is watched:
            try:
                reached("lease.renewing")
                inbox, ready = self._store.renew(watched.instance_id, watched.token)
                reached("lease.renewed")
                watched.events.put(Renewed(inbox, ready))
                return
            except LeaseLost as error:
                watched.events.put(Lost(str(error)))
                return
            except EnvironmentFailure as error:
                if time.monotonic() >= until:
                    watched.events.put(Lost(f"instance {watched.instance_id}: its lease could not be renewed: {error}"))
                    return
            except Exception:
                log.exception("instance %s: renewing its lease failed", watched.instance_id)
            if not self._pause(PAUSE_S):
                return


class Listener(_Watcher):
    """Sleeps on the bell of the resident instance, and only while there is one."""

    name = "gobpm-listener"

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._watched is not None)
                if self._closed:
                    return
                watched = self._watched
            if watched is not None:
                self._listen(watched)

    def _listen(self, watched: Watched) -> None:
        try:
            if self._store.wait_instance_bell(watched.instance_id, BELL_S) and self._watched is watched:
                watched.events.put(Bell())
        except EnvironmentFailure as error:
            log.debug("instance %s: its bell cannot be heard: %s", watched.instance_id, error)
            self._pause(PAUSE_S)
        except Exception:
            log.exception("instance %s: listening for its bell failed", watched.instance_id)
            self._pause(PAUSE_S)
