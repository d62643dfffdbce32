"""Three ways to run a scenario: straight on; rebuilt from its stored parts at every wait; and with its host dying
before and after every commit.

All are the engine's own in-process driver over its own store in memory. What differs is how long a host lives, and how
much of an instance it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from gobpm_ray.engine.engine import Engine
from gobpm_ray.engine.in_process import InProcess
from gobpm_ray.engine.outcome import Outcome
from gobpm_ray.engine.rehearsal import Rehearsal
from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.driver import ACTOR, Driver
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Commit, CommitResult, Quiet
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import Settings
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder
from tests.conformance.cases import Case

STRAIGHT = Settings(auto_complete=True, history_limit=100_000, max_call_depth=5)
REBUILT = replace(STRAIGHT, whole_parts=0, hand_over=False, claim_triggers=1)
CRASHED = replace(STRAIGHT, whole_parts=0)


class Crash(BaseException):
    """The host is gone, in the middle of whatever it did; nothing in it can catch that."""


class Forgetful(Driver):
    """Every claim is hosted by a host of its own that knows nothing: no program, no decision, no instance."""

    def _serve(self) -> bool:
        self.host.close()
        self._programs = Programs(self._store)
        self.host = self._new_host()
        return self.host.serve_once()


class Mortal(InProcess):
    """When its host dies, its lease is released, as a supervisor does, and a new host goes on."""

    driver: Callable[..., Driver] = Driver

    def settle(self) -> None:
        while True:
            try:
                with self._lock:
                    self._drive()
                return
            except Crash:
                self._driver.close()
                self._store.release_dead(ACTOR)
                self._driver = self._new_driver()

    def _drive(self) -> Quiet:
        return self._driver.drive()

    def _new_driver(self) -> Driver:
        callables = Callables(lambda _topic: None)
        callables.local = self._callables
        holders = [kind(self._store, self._settings) for kind in (TimerHolder, MessageHolder, TaskHolder)]
        return self.driver(self._store, self._settings, Programs(self._store), callables, holders)


class Rebuilding(Mortal):
    driver = Forgetful

    def _drive(self) -> Quiet:
        self._driver.close()
        self._driver = self._new_driver()
        return self._driver.drive()


class DeadlyStore(MemoryStore):
    """Each commit that consumes a trigger kills its host twice: before anything is written, and, tried again, after."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._died: set[tuple[str, int]] = set()
        self.deaths: list[str] = []

    def commit(self, commit: Commit) -> CommitResult:
        # A commit of a report has no trigger in the inbox: its loss is an attempt cut off, which is its own case (N10).
        deadly = bool(commit.consumed)
        at = (commit.instance_id, commit.version)
        if deadly and at not in self._died:
            self._died.add(at)
            self._die("before")
        result = super().commit(commit)
        if deadly:
            self._die("after")
        return result

    def _die(self, when: str) -> NoReturn:
        self.deaths.append(when)
        raise Crash(f"{when} the commit")


def straight(case: Case) -> Outcome:
    with Engine.open(None, clock="virtual", now=case.scenario.now_ms, settings=STRAIGHT) as engine:
        return perform(engine, case)


def rebuilt(case: Case) -> Outcome:
    return _on(Rebuilding, MemoryStore(REBUILT), REBUILT, case)


def crashed(case: Case) -> Outcome:
    store = DeadlyStore(CRASHED)
    outcome = _on(Mortal, store, CRASHED, case)
    if outcome.instance_id:
        # The way is what it says: nothing was committed at the first attempt, and no host outlived its commit.
        assert store.deaths
        assert store.deaths.count("before") == store.deaths.count("after") == len(store._died)
    return outcome


WAYS: dict[str, Callable[[Case], Outcome]] = {"straight": straight, "rebuilt": rebuilt, "crashed": crashed}


def perform(engine: Engine, case: Case, **options: Any) -> Outcome:
    """The case's scenario on an engine that nobody else uses."""
    rehearsal = Rehearsal(engine, case.scenario, **options)
    [outcome] = rehearsal.run([case.main], beside=case.beside)
    return outcome


def _on(kind: type[Mortal], store: MemoryStore, settings: Settings, case: Case) -> Outcome:
    store.manual_clock(case.scenario.now_ms)
    with Engine(store, settings, kind(store, settings, "virtual"), "virtual") as engine:
        return perform(engine, case)
