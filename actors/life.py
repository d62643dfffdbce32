"""The life of one InstanceActor: serve whoever is ready, linger when nobody is, end by itself.

A plain class over the store and a host (which claims, runs and commits; `gobpm_ray.runtime.host`). It knows when an
actor has to end and how it is seen while it lives. It refuses to know Ray: what Ray must do for it is the port
`Stage`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from actors.registry import ActorRow, drop_actor, write_actor
from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.runtime.crashpoints import reached
from gobpm_ray.runtime.ports import Store
from gobpm_ray.settings import Settings

log = logging.getLogger(__name__)

SLICE_S = 0.5
"""A free actor looks for ready instances at least this often: a back-off that elapses rings no bell."""
SHOWN_AFTER_S = 1.0
"""A residency this old is made visible as a Ray task of its own; a wake takes milliseconds and is not worth one."""
MEMORY_LIMIT = 1 << 30
"""Bytes that an actor may have grown to; beyond, it is not handed over but replaced by a fresh one."""


class Host(Protocol):
    """What hosts instances, one at a time, each until it is released."""

    @property
    def clean(self) -> bool:
        """Nothing of a former instance lives on: no thread, no task."""

    @property
    def spent(self) -> bool:
        """It will claim nothing more: stopped, not clean, over its number of hand-overs, or never handed over."""

    @property
    def hosting(self) -> str:
        """Id of the instance that is here now, '' for none."""

    def serve_once(self, timeout_s: float) -> bool:
        """Claim and host ready instances until none is ready; False if none was for `timeout_s`."""

    def stop(self, grace_ms: int) -> None:
        """From another thread: claim no more, let the running step finish within the grace, then abandon it."""

    def close(self) -> None:
        """Its helper threads end."""


class Stage(Protocol):
    """What makes an actor visible."""

    def show(self, instance_id: str) -> None:
        """Let people see that this instance is hosted here, until `wait_released` returns."""


class Life:
    """Runs in a thread of its own; the methods are called from others."""

    def __init__(
        self,
        row: ActorRow,
        host: Host,
        store: Store,
        settings: Settings,
        stage: Stage,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        memory: Callable[[], int] | None = None,
        report: Callable[[bool], None] | None = None,
    ) -> None:
        """`report` is asked, twice a second, to tell what the host has counted; True: at once, for this is the end."""
        self._row = row
        self._host = host
        self._store = store
        self._settings = settings
        self._stage = stage
        self._monotonic = monotonic
        self._wall_ms = wall_ms
        self._memory = memory or resident_memory
        self._report = report or (lambda _at_once: None)
        self._rows = threading.Lock()
        self._stopping = threading.Event()
        self._ended = threading.Event()

    # ----------------------------------------------------------------------------------------------------------- living

    def run(self) -> str:
        """Live; the reason of the end, in a word or two. Afterwards nothing is hosted and the row is gone."""
        showing = threading.Thread(target=self._show_residents, name="showing", daemon=True)
        try:
            showing.start()
            return self._serve()
        finally:
            self._ended.set()
            self._host.close()
            self._report(True)
            reached("life.leaving")
            try:
                drop_actor(self._store, self._row.name)
            except EnvironmentFailure as failure:
                log.warning("%s: its row stays until the supervisor reconciles: %s", self._row.ray_name, failure)

    def _serve(self) -> str:
        settings = self._settings
        served_at = self._monotonic()
        away_since: float | None = None
        registered = False
        while not self._stopping.is_set():
            idle_s = self._monotonic() - served_at
            lingers_s = SLICE_S if self._row.spare else settings.linger_ms / 1_000 - idle_s
            try:
                if not registered:
                    self._register(since_ms=self._wall_ms(), pid=os.getpid())
                    registered = True
                    reached("life.registered")
                served = self._host.serve_once(max(0.0, min(SLICE_S, lingers_s)))
            except EnvironmentFailure as failure:
                away_since = away_since if away_since is not None else self._monotonic()
                if self._monotonic() - away_since >= settings.lease_ttl_ms / 1_000:
                    # Whatever it leased has expired and may run elsewhere by now.
                    return f"the store did not answer for a lease's life: {failure}"
                self._stopping.wait(SLICE_S)
                continue
            away_since = None
            if served:
                served_at = self._monotonic()
                if self._host.spent and not self._stopping.is_set():
                    return self._spent()
                if self._memory() > MEMORY_LIMIT:
                    return "grown"
            elif not self._row.spare and self._monotonic() - served_at >= settings.linger_ms / 1_000:
                return "lingered"
        return "stopped"

    def _spent(self) -> str:
        """Why no further instance may come here, once what runs on here has ended or had its grace."""
        if self._host.clean:
            return "released" if not self._settings.hand_over else "handed over often enough"
        # A synchronous callable that was interrupted cannot be stopped: it may end in peace, and the supervisor sees a
        # free actor that takes nothing for that long.
        deadline = self._monotonic() + self._settings.grace_ms / 1_000
        while not self._host.clean and self._monotonic() < deadline and not self._stopping.wait(SLICE_S):
            pass
        return "not clean"

    # ----------------------------------------------------------------------------------------------------- from outside

    def keep(self, spare: bool) -> None:
        """Stay although nothing is ready, or do not any more."""
        if self._row.spare != spare:
            self._register(spare=spare)

    def stop(self, grace_ms: int) -> None:
        """Host no further instance, let go of the present one within the grace, end."""
        self._stopping.set()
        self._host.stop(grace_ms)

    def wait_released(self, instance_id: str) -> None:
        """Until the instance is not hosted here any more."""
        while self._host.hosting == instance_id and not self._ended.wait(SLICE_S / 2):
            pass

    def _register(self, **changes: object) -> None:
        with self._rows:
            self._row = replace(self._row, **changes)  # type: ignore[arg-type]
            if not self._ended.is_set():
                write_actor(self._store, self._row)

    def _show_residents(self) -> None:
        """Watches beside the loop, for the loop is inside the host all the while an instance is resident."""
        seen, since, shown = "", self._monotonic(), ""
        while not self._ended.wait(SLICE_S):
            self._report(False)
            hosting = self._host.hosting
            if hosting != seen:
                seen, since, shown = hosting, self._monotonic(), ""
            elif hosting and hosting != shown and self._monotonic() - since >= SHOWN_AFTER_S:
                self._stage.show(hosting)
                shown = hosting


def resident_memory() -> int:
    """Bytes of this operating-system process in memory; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
