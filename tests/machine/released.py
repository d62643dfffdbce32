"""The same script on an engine that releases at every wait and that has trouble: what it does must not be seen.

Theory of operation. Holders and hosts are the plain classes, and each acts in its turn, as in the straight run: first
what was accepted is folded, then hosts serve until nothing is ready. Every instance is rebuilt from the store for each
trigger. Trouble is a list of (how many crash points from here, what happens there): whoever is at work dies, or only
the answer of its call is lost; the lease of a dead host is given back by name or by its expiry.

A crash may not be told from a delay, and BPMN says nothing about the order of what happens at once: after some crashes
another order would be as right (an attempt that begins anew lets a message overtake it). There the trouble is put off
by a point (`_may_happen`), so that the straight run's order is the only one and the comparison can be exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from gobpm_ray.core.faults import SEALED
from gobpm_ray.core.state import TrackState
from gobpm_ray.engine.instance_views import state_of
from gobpm_ray.errors import EnvironmentFailure, StoreUnavailable
from gobpm_ray.runtime import crashpoints
from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.leasing import Event
from gobpm_ray.runtime.ports import Store
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import Settings
from holders.loop import Holder
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder
from tests.crash.one_process import Crash, Wire
from tests.machine.deploying import BEGIN, SETTINGS, Effects, Model
from tests.machine.straight import Nobody
from tests.support.stage import OneThread

HOLDERS: tuple[type[Holder], ...] = (MessageHolder, TimerHolder, TaskHolder)
IDLE = {
    f"{when}{script}"
    for when in (crashpoints.BEFORE, crashpoints.AFTER)
    for script in ("sweep", "expire", "job_wake", "reconcile")
}
"""Passed on every turn, with nothing to do: trouble would be spent on them."""
PATIENCE = 400
"""Turns after which nobody believes any more that it comes to rest."""


@dataclass(frozen=True, repr=False)
class Trouble:
    gap: int
    """Points passed since the last trouble, or the beginning."""
    what: str
    """die: reported dead by name; expire: dead, and found by its lease's end; lose: the answer of a call."""

    def __repr__(self) -> str:
        return f"{self.what}@{self.gap}"


@dataclass(frozen=True)
class Bed:
    """A store to play on, emptied, with its liveness in the test's hand."""

    store: Store
    elapse: Callable[[int], None]
    ready: Callable[[], list[str]]
    """Instances that are ready now."""
    points: bool
    """Whether the calls of the store must be told as crash points from outside."""


class Awake(OneThread):
    """The queue of a hosting that never sleeps: all its effects end within the call, and it releases at every wait."""

    def get(self, timeout: float | None = None) -> Event:
        if not self._events:
            raise AssertionError("a host fell asleep over an instance that only waits")
        return self._events.popleft()


class Released:
    def __init__(self, model: Model, bed: Bed, trouble: Sequence[Trouble] = (), settings: Settings = SETTINGS) -> None:
        self.settings = settings
        self._careful = model.careful
        self.effects = Effects()
        self.store = bed.store
        """Without trouble: what the test itself looks at."""
        self.sealed = 0
        """Attempts that an operator had to let go on."""
        self.told: list[str] = []
        """Trouble that happened: who, where, what."""
        self.failures: list[str] = []
        self._bed = bed
        self._trouble = list(trouble)
        self._passed = 0
        self._who = ""
        self._what = ""
        self._host: Host | None = None
        self._hosts = 0
        bed.store.manual_clock(BEGIN)
        model.deploy(bed.store)
        self.programs: Programs = model.programs(bed.store)
        self.wire = self._new_wire()
        """As clients reach the store."""
        self._holders = [self._new_holder(kind) for kind in range(len(HOLDERS))]

    def _new_wire(self) -> Store:
        return cast(Store, Wire(self._bed.store, set(), points=self._bed.points))

    # --- turns

    def settle(self) -> None:
        """As in the straight run: holders, then hosts, until nothing moves."""
        with self._being(""):
            self._turns()

    def _turns(self) -> None:
        tidied = False
        for _ in range(PATIENCE):
            moved = False
            for kind, holder in enumerate(HOLDERS):
                if holder is not TaskHolder or not tidied:  # it has nothing to do with what the others cause
                    moved = self._fold(kind) or moved
            tidied = True
            if not (self._serve() or moved):
                return
        raise AssertionError("the engine does not come to rest")

    def _fold(self, kind: int) -> bool:
        moved = False
        while True:
            try:
                with self._being("holder"):
                    return self._holders[kind].pass_once().moved or moved
            except (Crash, EnvironmentFailure):
                # What it had folded stays folded; its successor goes on with the rest before anybody else moves.
                moved = True
                self._holders[kind] = self._new_holder(kind)

    def _serve(self) -> bool:
        moved = False
        for _ in range(PATIENCE):
            host = self._host = self._host or self._new_host()
            try:
                with self._being("host"):
                    served = host.serve_once()
            except (Crash, EnvironmentFailure):
                self._bury(host)
                self._let_go_on()
                moved = True
                continue
            if host.last_failure is not None:
                self.failures.append(repr(host.last_failure))
            if host.spent:
                self._host = None
            elif not served:
                return moved
            moved = moved or served
        raise AssertionError("the hosts do not come to rest")

    def _bury(self, host: Host) -> None:
        """Whoever notices its death: the supervisor, by name, or nobody until its leases end."""
        self._host = None
        leases = self.store.leases()
        if self._what == "expire" and len(leases) == 1 and not self._bed.ready():
            self._bed.elapse(self.settings.lease_ttl_ms + 1)
            TaskHolder(self.store, self.settings).pass_once()
        else:
            self.store.release_dead(host.actor)
        assert not self.store.leases(), "a dead host's lease outlived it"

    def _let_go_on(self) -> None:
        """A sealed attempt is an operator's: he has looked, and tries again. Before anything else moves, or another
        order would be as right."""
        if not (self._careful and self._resumable()):
            return
        with self._being(""):
            self._new_host(hand_over=False).serve_once()
        for _, instance_id, wait in self.store.incidents():
            for track in self._tracks(instance_id):
                if track.incident is not None and track.incident.code == SEALED and wait in track.waits:
                    self.sealed += 1
                    self.store.deliver(instance_id, "retry", wait, f"sealed-{self.sealed}", b"{}")

    def _resumable(self) -> bool:
        """The instance that comes next was cut off in the middle of work that is not idempotent."""
        ready = self._bed.ready()
        return bool(ready) and any(track.state is TrackState.WORKING for track in self._tracks(ready[0]))

    def _tracks(self, instance_id: str) -> list[Any]:
        record = self.store.instance(instance_id)
        return [] if record is None or not record.parts else list(state_of(record).tracks.values())

    def _new_holder(self, kind: int) -> Any:
        with self._being(""):
            holder = HOLDERS[kind](self._new_wire(), self.settings)
            holder.begin()
        return holder

    def _new_host(self, **settings: Any) -> Host:
        self._hosts += 1
        host = Host(
            self._new_wire(),
            replace(self.settings, **settings),
            self.programs,
            Callables(lambda _topic: None, local=self.effects.topics()),
            f"host{self._hosts}",
            inline_effects=True,
            sleep=lambda _s: None,
            new_events=Awake,  # type: ignore[arg-type]
        )
        host._renewer = host._listener = Nobody()  # type: ignore[assignment]
        return host

    # --- trouble

    @contextmanager
    def _being(self, who: str) -> Iterator[None]:
        before, self._who = self._who, who
        try:
            yield
        finally:
            self._who = before

    @contextmanager
    def armed(self) -> Iterator[None]:
        crashpoints.arm(self._reached)
        try:
            yield
        finally:
            crashpoints.arm(None)

    def acting(self) -> Any:
        """While a client calls."""
        return self._being("client")

    def _reached(self, point: str) -> None:
        if not self._who or not self._trouble or point in IDLE:
            return
        self._passed += 1
        if self._passed < self._trouble[0].gap or not self._may_happen():
            return
        trouble = self._trouble.pop(0)
        self._passed, self._what = 0, trouble.what
        asked = point.startswith((crashpoints.BEFORE, crashpoints.AFTER))
        # A holder that lost the answer of one row would fold rows of other keys before it.
        lost = self._who == "client" or (trouble.what == "lose" and asked and self._who == "host")
        self.told.append(f"{self._who} {'loses an answer' if lost else 'dies'} at {point}")
        raise StoreUnavailable("the answer was lost") if lost else Crash(point)

    def _may_happen(self) -> bool:
        """The order of what follows is the straight run's, whatever happens here."""
        if self._who == "client":
            return True
        names = {instance for instance, _, _ in self.store.leases()}
        for name in names:
            record = self.store.instance(name)
            if record is None or not record.parts or record.status in ("completed", "terminated"):
                continue
            working = [track for track in state_of(record).tracks.values() if track.state is TrackState.WORKING]
            if not working:
                continue
            if record.inbox or len(names) > 1 or any(other < name for other in self._bed.ready()):
                return False  # what waits unread, or another instance, would come before the attempt's result
            if any(track.attempt is None or track.attempt.seals for track in working):
                return False  # cut off for the third time, idempotent work is an incident as well
            if [track.visit for track in working] != sorted(track.visit for track in working):
                return False  # a successor hands out again in the order of tokens, not of arrivals
        return True
