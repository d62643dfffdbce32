"""A whole engine in one thread: holders, supervisor, actors' lives and hosts take turns until nothing moves.

What Ray does for the engine is done here by hand, so that a crash point can end everything at once, as a SIGKILL ends
an operating-system process: from then on the dead one's store answers nothing, and a successor boots from the store
alone.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from actors.registry import ActorRow
from actors.supervisor import End, ResidencySupervisor
from gobpm_ray.errors import InvalidPayload, UnknownProcess
from gobpm_ray.runtime.callables import Callables, EffectContext, Work
from gobpm_ray.runtime.crashpoints import AFTER, BEFORE, SCRIPTS, reached
from gobpm_ray.runtime.first_leg import FirstLegs
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.ports import Accepted, Answer, Commit, CommitResult, ParkedStart, Quiet, Store
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.runtime.sending import CarriedOut
from gobpm_ray.settings import Settings
from holders.loop import Holder
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder
from tests.crash import switch as switch
from tests.support.stage import NoRay, QuietLife, Stage

OTHERWISE_NAMED = {
    "set_clock": "clock",
    "manual_clock": "clock",
    "start_many": "start",
    "start_parked": "birth",
    "complete_task": "task_complete",
    "claim_task": "task_owner",
    "unclaim_task": "task_owner",
    "fetch_jobs": "job_fetch",
    "report_job": "job_report",
    "retry_job": "job_report",
    "extend_lock": "job_report",
    "unlock_job": "job_report",
    "wake_jobs": "job_wake",
    "write_data": "data_put",
    "drop_data": "data_drop",
}
SCRIPT_OF = {name: name for name in SCRIPTS} | OTHERWISE_NAMED
"""Which script a method of the store runs: the points of a store that has none of its own."""


class Crash(BaseException):
    """The process is gone at this instant: no handler of the engine catches it."""


class Wire:
    """The store as one os_process reaches it. `severed`: that process is dead, whatever its `finally` clauses try."""

    def __init__(self, store: Store, poison: set[int], *, points: bool) -> None:
        self._store = store
        self._poison = poison
        self._points = points
        self.severed = False

    def send_commit(self, commit: Commit) -> Answer[CommitResult]:
        return CarriedOut(self.commit, commit)

    def send_parked(self, starts: Sequence[ParkedStart]) -> Answer[list[Accepted | None]]:
        return CarriedOut(self.start_parked, starts)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not callable(method):
            return method
        script = SCRIPT_OF.get(name, "") if self._points else ""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.severed:
                raise Crash("this process is dead")
            if name == "route" and args[0] in self._poison:
                raise InvalidPayload("no script can fold this")
            if script:
                reached(BEFORE, script)
            answer = method(*args, **kwargs)
            if script:
                reached(AFTER, script)
            return answer

        self.__dict__[name] = call
        return call


class World:
    """What outlives every os_process: the store, both clocks, the outside world that effects change."""

    def __init__(
        self,
        store: Store,
        elapse: Callable[[int], None],
        live_ms: Callable[[], int],
        settings: Settings,
        *,
        points: bool,
    ) -> None:
        self.store = store
        self.elapse = elapse
        self.live_ms = live_ms
        self.settings = settings
        self.points = points
        self.effects: Counter[str] = Counter()
        """Calls by idempotency key, in order of their first."""
        self.failing: Counter[str] = Counter()
        """How many visits of a topic's task fail, the first ones: a crash may repeat the calls of a visit."""
        self.pause_s = 0.0
        """How long each effect takes."""
        self.unwell: Counter[str] = Counter()
        """Wakes that a process still fails."""
        self.poison: set[int] = set()
        """Accepted rows that cannot be folded."""
        self.memo: dict[str, Any] = {}
        """What the client remembers of its calls: it asks again with the same ids after a lost answer."""
        self.boots = itertools.count(1)
        self.patience = 400

    def work(self, topic: str) -> Work:
        def effect(inputs: dict[str, Any], context: EffectContext) -> dict[str, Any]:
            self.happened(context.idempotency_key)
            time.sleep(self.pause_s)
            visits = [key for key in self.effects if key.split(":")[2] == context.node]
            if visits.index(context.idempotency_key) < self.failing[topic]:
                raise RuntimeError(f"{topic} is out of order")
            return {f"{topic}_done": True}

        return effect

    def happened(self, key: str) -> None:
        """The world outside has changed; no crash undoes it."""
        self.effects[key] += 1


class Turn(threading.Event):
    """Lets a loop run once: not set when it is first asked, set from then on."""

    def is_set(self) -> bool:
        before = super().is_set()
        self.set()
        return before

    def wait(self, timeout: float | None = None) -> bool:
        return True


class Ray(NoRay):
    """`actors.supervisor.Actors`: actors are rows until their turn comes; a successor's Ray knows none of them."""

    cluster = "one-process"

    def __init__(self) -> None:
        super().__init__()
        self.made: list[ActorRow] = []

    def create(self, row: ActorRow) -> None:
        self.made.append(row)

    def adopt(self, row: ActorRow) -> bool:
        return False

    def over(self, row: ActorRow, reason: str) -> None:
        self._ended.append(End(row.name, True, reason))


class UnwellPrograms(Programs):
    """Fails the wakes that the world says are still to fail."""

    def __init__(self, world: World, store: Store) -> None:
        super().__init__(store)
        self._world = world

    def get(self, process_id: str, version: int) -> Any:
        if self._world.unwell[process_id] > 0:
            self._world.unwell[process_id] -= 1
            raise UnknownProcess(f"process {process_id} is not readable just now")
        return super().get(process_id, version)


class EngineProcess:
    """One os_process with everything in it, and the client beside it."""

    def __init__(self, world: World, topics: Mapping[str, Work]) -> None:
        self.world = world
        self.settings = settings = world.settings
        self.wire = Wire(world.store, world.poison, points=world.points)
        self.store = store = cast(Store, self.wire)
        self.ray = Ray()
        self.boot = f"{os.getpid()}-{next(world.boots)}"
        self.programs = UnwellPrograms(world, store)
        self.first_legs = FirstLegs(store, settings, self.programs)
        self.callables = Callables(lambda _topic: None, local=topics)
        self.holders: list[Holder] = [
            kind(store, settings, live_ms=world.live_ms) for kind in (MessageHolder, TimerHolder, TaskHolder)
        ]
        for holder in self.holders:
            holder.token = f"{holder.kind}:restarted"  # Ray restarts a holder under the name it had
        self.supervisor = ResidencySupervisor(
            store,
            settings,
            self.ray,
            monotonic=lambda: world.live_ms() / 1_000,
            wall_ms=world.live_ms,
        )

    def die(self) -> None:
        self.wire.severed = True

    def turn(self) -> None:
        for holder in self.holders:
            holder.run(Turn())
        self.supervisor.pass_once()
        while self.ray.made:
            row = self.ray.made.pop(0)
            host = Host(
                self.store,
                self.settings,
                self.programs,
                self.callables,
                row.name,
                inline_effects=True,
                sleep=lambda _s: None,
            )
            host._boot = self.boot
            life = QuietLife(
                row,
                host,
                self.store,
                self.settings,
                Stage(),
                monotonic=lambda: self.world.live_ms() / 1_000,
                wall_ms=self.world.live_ms,
                memory=lambda: 0,
            )
            self.ray.over(row, life.run())

    def settle(self) -> Quiet:
        """Turns until the store is quiet; liveness goes on meanwhile, so that a back-off elapses."""
        for _ in range(self.world.patience):
            self.turn()
            quiet = self.store.quiet()
            if quiet.quiet:
                return quiet
            self.world.elapse(self.settings.wake_backoff_ms)
        raise AssertionError("the engine does not come to rest")
