"""The engine on its real store and, unless others do the work, on a Ray cluster: opened, closed, and killed on purpose.

This module knows in which order store and cluster come and go, and what of it is this program's to end. How a driver
gets to Ray, and which actors make an engine, stands in `gobpm_ray.engine.cluster`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gobpm_ray.engine import cluster
from gobpm_ray.engine.engine import Clock, Engine
from gobpm_ray.engine.in_process import START_OF_TIME_MS
from gobpm_ray.engine.opening import EMBEDDED, Opened, open_store
from gobpm_ray.errors import EnvironmentFailure, InputError
from gobpm_ray.runtime.ports import Store
from gobpm_ray.settings import Settings

if TYPE_CHECKING:
    from gobpm_ray.runtime.callables import Work

E = TypeVar("E", bound=Engine)

log = logging.getLogger("gobpm_ray.engine")

LOCAL = "local"
_DIES_WITHIN_S = 10.0


@dataclass(slots=True)
class SharedRay:
    """A local Ray that several engines of one program use one after another: it costs seconds to start."""

    own: bool = False
    """One of them started it."""

    def close(self) -> None:
        if self.own:
            import ray

            ray.shutdown()
            self.own = False


class OnRay:
    """Holders, supervisor and InstanceActors of one engine, and its store, as the program that opened it sees them."""

    def __init__(
        self,
        where: str,
        ray: str | None,
        settings: Settings,
        home: Path | str | None,
        *,
        clock_begins: int | None = None,
        dashboard: bool = False,
        shared: SharedRay | None = None,
        passing: bool = False,
    ) -> None:
        """`clock_begins`: the store gets a manual clock. `passing`: nothing of this engine stays in the store when it
        is closed."""
        self._passing = passing
        self._where = where
        self._ray = ray
        self._settings = settings
        self._home = home
        self._dashboard = dashboard
        self._shared = shared
        self._handle: cluster.ClusterHandle | None = None
        self.opened = open_store(where, settings, home, inspect=True)
        self._started_store = self.opened.started
        """This program started the embedded store: it is this program's to end."""
        for warning in self.opened.warnings:
            log.warning("%s", warning)
        try:
            if clock_begins is not None:
                # Before the holders live: they would fire by the wrong clock. One that stands keeps its time.
                self.opened.store.manual_clock(clock_begins)
            self._join()
        except BaseException:
            self.opened.store.close()
            self._stop_store()
            raise

    def _join(self) -> None:
        if self._ray is None:
            return
        handle = cluster.ensure(
            self._settings,
            self.opened.url,
            address=self._ray,
            dashboard=self._dashboard,
            signing_key=self.opened.signing_key or b"",
        )
        if self._shared is not None:
            self._shared.own = self._shared.own or handle.own_cluster
            handle = dataclasses.replace(handle, own_cluster=self._shared.own, joined=False)
        self._handle = handle

    # --- what the engine asks of whoever works for it

    @property
    def ray_address(self) -> str:
        return self._handle.address if self._handle is not None else ""

    @property
    def dashboard_url(self) -> str:
        return self._handle.dashboard_url if self._handle is not None else ""

    def settle(self) -> None:
        """Nothing to do: the scripts that accepted it have rung."""

    def register(self, topic: str, work: Work | str) -> bool:
        """Not here: every node must find it."""
        return False

    def registered(self) -> frozenset[str]:
        return frozenset()

    def restart(self) -> Store:
        """SIGKILL for every process that is this program's: the cluster with all actors, the store that it started."""
        handle = self._handle
        if handle is None or not handle.own_cluster:
            raise InputError("restart: this program did not start the engine's Ray, and does not kill it")
        cluster.kill(handle)
        self._handle = None
        self.opened.store.close()
        if self._started_store:
            self._kill_store(self.opened)
        if self._shared is not None:
            self._shared.own = False
        self.opened = open_store(self._where, self._settings, self._home)
        self._join()
        return self.opened.store

    def close(self) -> None:
        """What a local engine started has ended, in an order that loses no lease; on another's cluster it lives on."""
        handle, self._handle = self._handle, None
        try:
            if handle is not None:
                if self._ray == LOCAL:
                    cluster.stop(handle)
                cluster.leave(handle)
            if self._passing:
                from gobpm_ray.store.erasure import erase_engine

                erase_engine(self.opened.url, self._settings.engine_id)
        finally:
            if self._ray in (LOCAL, None):
                # On another's cluster the actors live on, and so does the store under them.
                self._stop_store()

    # --- the store's process

    def _stop_store(self) -> None:
        if self._started_store and self.opened.embedded is not None:
            self.opened.embedded.stop()
            self._started_store = False

    @staticmethod
    def _kill_store(opened: Opened) -> None:
        embedded = opened.embedded
        pid = embedded.pid if embedded is not None else None
        if embedded is None or pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + _DIES_WITHIN_S
        while embedded.status().running:
            if time.monotonic() > until:
                raise EnvironmentFailure(f"store process {pid} outlived SIGKILL for {_DIES_WITHIN_S:g} s")
            time.sleep(0.01)


def open_on_ray(
    kind: type[E],
    where: str,
    ray: str | None,
    settings: Settings,
    clock: Clock,
    begin: int | None,
    home: Path | str | None = None,
    *,
    dashboard: bool = False,
    shared: SharedRay | None = None,
    passing: bool = False,
) -> E:
    """An engine of this class; see `Engine.open`."""
    begins = START_OF_TIME_MS if begin is None else begin
    workers = OnRay(
        where,
        ray,
        settings,
        home,
        clock_begins=begins if clock == "virtual" else None,
        dashboard=dashboard,
        shared=shared,
        passing=passing,
    )
    return kind(workers.opened.store, settings, workers, clock, workers.opened.signing_key)


def stop_on_cluster(address: str, settings: Settings) -> int:
    """The detached actors of this engine on somebody's cluster are gone; how many had to be killed."""
    opened = open_store(EMBEDDED, settings)
    opened.store.close()
    handle = cluster.ensure(settings, opened.url, address=address, signing_key=opened.signing_key or b"")
    try:
        return cluster.stop(handle)
    finally:
        cluster.leave(handle)
