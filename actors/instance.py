"""`InstanceActor`: the Ray actor that hosts one process instance at a time.

The Ray shell of a `Life` in a thread of its own, which begins with the actor and needs nobody's call: if its
supervisor dies, it lives on and the next one watches it. This module knows how an actor comes to life, answers, and
ends; it refuses to know what is hosted.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from actors.handles import SUPERSEDED, OwnActor, exit_this_actor, this_node
from actors.life import Life
from actors.loop import RETRY_S, speak_up
from actors.metrics import SignalMetrics
from actors.registry import ActorRow
from actors.spec import EngineSpec
from gobpm_ray.errors import EnvironmentFailure, GobpmError
from gobpm_ray.runtime.ports import Store
from gobpm_ray.runtime.reporting import Reporting
from gobpm_ray.settings import SECOND

if TYPE_CHECKING:
    from gobpm_ray.runtime.host import Host as RuntimeHost

log = logging.getLogger(__name__)

WATCHER_LEAVES_IN_S = 2.0
"""Whoever watched asks this actor to leave. Done by the actor itself it takes Ray a second more: it waits for its own
call."""
LEAVE_WITHIN_S = 15.0
"""After its life an actor that Ray cannot end, because a call or a foreign thread hangs, ends itself."""
WARM_PROGRAMS = 16


class InstanceActor:
    """`row` was written by the supervisor before this actor was made; its lease tokens start with the row's name."""

    def __init__(self, spec: EngineSpec, row: ActorRow) -> None:
        speak_up()
        self._spec = spec
        self._row = row
        self._own = OwnActor()
        self._life: Life | None = None
        self._wishes: dict[str, Any] = {}
        """What was asked before the life had begun."""
        self._changed = threading.Condition()
        self._end: tuple[bool, str] | None = None
        self._watchers = 0
        threading.Thread(target=self._live, name="life", daemon=True).start()

    def __repr__(self) -> str:
        return self._row.ray_name

    # ------------------------------------------------------------------------------------------------------------- life

    def _live(self) -> None:
        clean, reason = False, ""
        try:
            life = self._begin()
            reason = life.run() if life is not None else "no store"
            clean = True
        except Exception as failure:
            log.exception("%s failed", self)
            reason = f"{type(failure).__name__}: {' '.join(str(failure).split())[:300]}"
        log.info("%s ends: %s", self, reason)
        with self._changed:
            self._end = (clean, reason)
            self._changed.notify_all()
        time.sleep(WATCHER_LEAVES_IN_S)
        try:
            self._own.leave()
            time.sleep(LEAVE_WITHIN_S)
        except Exception:
            log.exception("%s cannot leave Ray", self)
        sys.stderr.flush()
        os._exit(0)

    def _begin(self) -> Life | None:
        """None when the store does not answer for a lease's life: then somebody else may serve."""
        deadline = time.monotonic() + self._spec.settings.lease_ttl_ms / 1_000
        while True:
            try:
                store = self._spec.open_store()
                break
            except EnvironmentFailure as failure:
                log.warning("%s: %s", self, failure)
                if time.monotonic() >= deadline:
                    return None
                time.sleep(RETRY_S)
        host = make_host(self._spec, store, self._row.name)
        metrics = SignalMetrics(self._spec.settings.engine_id, "InstanceActor")
        reporting = Reporting(store, host.counters, metrics.add)
        life = Life(
            replace(self._row, node=this_node()),
            host,
            store,
            self._spec.settings,
            self._own,
            report=lambda at_once: reporting.report(at_once=at_once),
        )
        with self._changed:
            self._life = life
            wishes, self._wishes = self._wishes, {}
        if "spare" in wishes:
            life.keep(wishes["spare"])
        if "grace_ms" in wishes:
            life.stop(wishes["grace_ms"])
        return life

    # ----------------------------------------------------------------------------------------------- called through Ray

    def watch(self) -> tuple[bool, str]:
        """Returns when this life has ended, with whether it ended well and why; an older watcher gives way to a newer
        one."""
        with self._changed:
            self._watchers += 1
            mine = self._watchers
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._end is not None or self._watchers != mine)
            return self._end or (True, SUPERSEDED)

    def hosting(self, instance_id: str) -> None:
        """Runs while the instance is here; its Ray task is named `hosting <instance>`."""
        if self._life is not None:
            self._life.wait_released(instance_id)

    def keep(self, spare: bool) -> None:
        if (life := self._wish("spare", spare)) is not None:
            life.keep(spare)

    def stop(self, grace_ms: int) -> None:
        if (life := self._wish("grace_ms", grace_ms)) is not None:
            life.stop(grace_ms)

    def leave(self) -> None:
        exit_this_actor()

    def ping(self) -> dict[str, Any]:
        return {"pid": os.getpid(), "name": self._row.name}

    def _wish(self, name: str, value: object) -> Life | None:
        """The life, if it has begun; remembers the wish for its beginning otherwise."""
        with self._changed:
            if self._life is None:
                self._wishes[name] = value
            return self._life


def make_host(spec: EngineSpec, store: Store, actor: str) -> RuntimeHost:
    """What claims, runs and commits in this actor, with the definitions and callables that the store holds."""
    from actors.ray_tasks import RayTasks
    from gobpm_ray.runtime.callables import Callables
    from gobpm_ray.runtime.host import Host
    from gobpm_ray.runtime.programs import Programs

    callables = Callables(lambda topic: store.get_value("code", topic), key=spec.signing_key or None)
    programs = Programs(store, spec.settings)
    warm_up(store, programs.get)
    elsewhere = RayTasks(spec.signing_key or None, spec.settings.resource_patience_ms / SECOND)
    return Host(store, spec.settings, programs, callables, actor, elsewhere=elsewhere)


def warm_up(store: Store, compile_program: Callable[[str, int], object]) -> None:
    """What the first instance would otherwise wait for under its lease: the newest programs are compiled."""
    for process_id, version in store.definitions()[:WARM_PROGRAMS]:
        # A definition that cannot run is its instances' incident, not this actor's.
        with contextlib.suppress(GobpmError):
            compile_program(process_id, version)
