"""The tables of the in-memory store and the moves that every operation is made of: arm, withdraw, deliver, ready, ring.

It knows what changes together; it refuses to know when and for whom (that is `memory_leases`, `memory_routing`,
`memory_tasks`, `memory`). Everything here runs under the one lock, which is what makes a method atomic.
"""

from __future__ import annotations

import functools
import threading
import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

from gobpm_ray.core.keys import properties_of
from gobpm_ray.runtime.ports import (
    ArmRow,
    BellName,
    CommitResult,
    DataRow,
    DeadRow,
    Definition,
    PendingRow,
    TriggerRow,
)
from gobpm_ray.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="MemoryState")

INDEXED_BY_KEY = ("message", "signal")
LISTED = ("task", "job")
DEAD_LETTERS = 10_000


def locked(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """The method is one script: nobody sees it half done."""

    @functools.wraps(method)
    def under_lock(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return under_lock


@dataclass(slots=True)
class Wait:
    """One armed wait. `owner` is an instance, or `@<process id>` for a start event of the process's newest version."""

    owner: str
    arm: ArmRow
    seq: int

    @property
    def starts(self) -> bool:
        return self.owner.startswith("@")


@dataclass(slots=True)
class Lease:
    token: str
    expiry: int
    busy: bool = True
    """False only between a commit that merely waits and the next trigger: what quiet is judged by."""


@dataclass(slots=True)
class Delivered:
    """A trigger in an inbox with the parts it touches; they are kept here because its wait is gone by now."""

    row: TriggerRow
    touch: tuple[str, ...] = ()
    """() : unknown, load everything."""


@dataclass(slots=True)
class Instance:
    id: str
    seq: int
    process_id: str
    process_version: int
    business_key: str
    created: int
    status: str = "active"
    version: int = 0
    epoch: int = 0
    lease: Lease | None = None
    parts: dict[str, bytes] = field(default_factory=dict)
    waits: dict[str, Wait] = field(default_factory=dict)
    inbox: list[Delivered] = field(default_factory=list)
    history: list[bytes] = field(default_factory=list)
    last_commit: tuple[str, CommitResult] | None = None
    ended_live: int = 0
    deaths: int | None = None
    """Silent deaths that count; None: the last host did not die in doubt."""
    unwoken: bool = False
    """Suspended when it was ready, or its host died meanwhile: not only unread triggers call for a wake."""
    worked: bool = False
    """Real work has begun under the present lease."""
    held_at: int = 0
    held_seq: int = 0
    """The place of the incident that it is held for."""
    caller: str = ""
    level: int = 0
    """How many callers stand above it."""
    began: tuple[str, ...] = ()
    """Canonical keys of the message that started it: as long as it lives, the conversation is its own (M50)."""
    learnt: dict[str, str] = field(default_factory=dict)
    """Correlation properties, each set once."""

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "terminated")


@dataclass(slots=True)
class Pending:
    row: PendingRow
    progress: int = 0
    """A broadcast's last folded wait, by seq."""
    hits: int = 0


@dataclass(slots=True)
class Task:
    seq: int
    owner: str
    created: int
    wait: Wait
    failures: int = 0
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What a delivery id was answered with, for the dedup window."""

    until: int
    instance_id: str
    seq: int


class MemoryState:
    """All tables and their moves; use `MemoryStore`."""

    def __init__(self, settings: Settings, clock: Callable[[], int] | None = None) -> None:
        self.settings = settings
        self._live: Callable[[], int] = clock or (lambda: int(time.time() * 1000))
        self._lock = threading.RLock()
        self._bell_rung = threading.Condition(self._lock)
        self._bells: set[str] = set()
        self._manual: int | None = None
        self._seq = 0
        self._definitions: dict[str, list[Definition]] = {}
        self._starts: dict[str, dict[str, Wait]] = {}
        self._instances: dict[str, Instance] = {}
        self._ended: dict[str, int] = {}
        self._ready: list[tuple[int, str]] = []
        self._ready_at: dict[str, int] = {}
        self._leased: dict[str, Instance] = {}
        self._due: list[tuple[int, str, str]] = []
        self._subs: dict[tuple[str, str], dict[tuple[str, str], Wait]] = {}
        self._tasks: dict[str, Task] = {}
        self._pending: dict[int, Pending] = {}
        self._pending_order: list[int] = []
        self._parked: dict[str, list[PendingRow]] = {}
        """canonical key -> messages that nobody took and that are looked for by it, in order; one stands under each of
        its keys."""
        self._parked_rows: dict[int, PendingRow] = {}
        self._conversations: dict[tuple[str, str], str] = {}
        """(process, canonical key) -> the living instance that a message of this key began."""
        self._only: dict[int, set[str]] = {}
        """Message that was given back, by seq -> the processes that it is for (M52)."""
        self._parked_by_expiry: list[tuple[int, int]] = []
        self._dead: deque[DeadRow] = deque(maxlen=DEAD_LETTERS)
        self._dedup: dict[str, Tombstone] = {}
        self._facts: deque[tuple[tuple[int, int], bytes]] = deque(maxlen=max(1, settings.facts_limit))
        self._last_fact = (0, 0)
        self._orders: dict[str, tuple[str, int]] = {}
        self._values: dict[str, dict[str, bytes]] = {}
        self._data: dict[str, DataRow] = {}

    # --- clocks, counters, bells
    def _now(self) -> int:
        """The business clock."""
        return self._live() if self._manual is None else self._manual

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _ring(self, *bells: BellName) -> None:
        self._bells.update(bells)
        self._bell_rung.notify_all()

    def _ring_instance(self, instance_id: str) -> None:
        self._bells.add("@" + instance_id)
        self._bell_rung.notify_all()

    def _pop_bell(self, bell: str, timeout_s: float) -> bool:
        with self._lock:
            if not self._bell_rung.wait_for(lambda: bell in self._bells, max(0.0, timeout_s)):
                return False
            self._bells.discard(bell)
            return True

    # --- dedup
    def _seen(self, delivery_id: str) -> Tombstone | None:
        """The window is judged here, not by whether the sweeper has come by."""
        tombstone = self._dedup.get(delivery_id)
        return tombstone if tombstone is not None and tombstone.until > self._live() else None

    def _remember(self, delivery_id: str, instance_id: str, seq: int) -> None:
        self._dedup.pop(delivery_id, None)  # keep the dict in order of expiry
        self._dedup[delivery_id] = Tombstone(self._live() + self.settings.dedup_window_ms, instance_id, seq)

    # --- waits and their indexes
    def _waits_of(self, owner: str) -> dict[str, Wait]:
        if owner.startswith("@"):
            return self._starts.setdefault(owner[1:], {})
        return self._instances[owner].waits

    def _arm(self, owner: str, arm: ArmRow, seq: int = 0) -> None:
        """Hold a wait. One that is armed already keeps its stored row (promise 6)."""
        waits = self._waits_of(owner)
        if arm.wait in waits:
            return
        wait = waits[arm.wait] = Wait(owner, arm, seq or self._next_seq())
        if arm.kind == "timer":
            insort(self._due, (arm.deadline, owner, arm.wait))
            if self._due[0][1:] == (owner, arm.wait):
                self._ring("timer")
        elif arm.kind in INDEXED_BY_KEY:
            self._subs.setdefault((arm.kind, arm.key), {})[owner, arm.wait] = wait
        elif arm.kind in LISTED:
            self._list_task(wait)
            self._ring("task")

    def _list_task(self, wait: Wait) -> None:
        raise NotImplementedError

    def _hold_jobs(self, instance: Instance) -> None:
        raise NotImplementedError

    def _unlist_task(self, task_id: str) -> None:
        del self._tasks[task_id]

    def _withdraw(self, owner: str, wait_id: str) -> None:
        """The wait and all its index entries are gone; unknown ids are no error."""
        wait = self._waits_of(owner).pop(wait_id, None)
        if wait is None:
            return
        arm = wait.arm
        if arm.kind == "timer":
            entry = (arm.deadline, owner, wait_id)
            index = bisect_left(self._due, entry)
            if index < len(self._due) and self._due[index] == entry:
                del self._due[index]
        elif arm.kind in INDEXED_BY_KEY:
            subs = self._subs[arm.kind, arm.key]
            del subs[owner, wait_id]
            if not subs:
                del self._subs[arm.kind, arm.key]
        elif arm.kind in LISTED:
            self._unlist_task(f"{owner}/{wait_id}")

    # --- delivery and readiness
    def _deliver(self, instance: Instance, wait: Wait | None, trigger: TriggerRow, *, stay: bool = False) -> None:
        """The trigger is in the inbox, a `once` wait and its race group are gone (unless they are to `stay`), and
        somebody will come for it."""
        if wait is not None and not wait.arm.repeat and not stay:
            group = wait.arm.group
            rivals = [other for other, w in instance.waits.items() if w.arm.group == group] if group else ()
            for wait_id in (wait.arm.wait, *rivals):
                self._withdraw(instance.id, wait_id)
        delivered = Delivered(trigger, wait.arm.touch if wait is not None else ())
        ends_hold = instance.status == "suspended" and trigger.kind == "cancel"
        if ends_hold:
            # It goes before all that came before it, and nothing of that is run.
            instance.status, instance.unwoken = "active", False
            instance.held_at, instance.deaths = 0, None
        if ends_hold and instance.lease is None:
            instance.inbox.insert(0, delivered)
        else:
            instance.inbox.append(delivered)
        if instance.status != "active":
            return  # the trigger waits for `resume`
        if instance.lease is not None:
            instance.lease.busy = True
            self._ring_instance(instance.id)
        else:
            self._make_ready(instance, self._live())

    def _make_ready(self, instance: Instance, not_before: int) -> None:
        """Queued once, at its first place; a suspended or ended instance is not."""
        if instance.status == "suspended":
            instance.unwoken = True
        if instance.status != "active" or instance.id in self._ready_at:
            return
        self._ready_at[instance.id] = not_before
        insort(self._ready, (not_before, instance.id))
        self._ring("ready", "supervisor")

    def _unready(self, instance_id: str) -> None:
        not_before = self._ready_at.pop(instance_id, None)
        if not_before is not None:
            del self._ready[bisect_left(self._ready, (not_before, instance_id))]

    def _something_ready(self) -> bool:
        return bool(self._ready) and self._ready[0][0] <= self._live()

    def _new_instance(
        self, process_id: str, version: int, instance_id: str, business_key: str, trigger: TriggerRow
    ) -> Instance:
        instance = Instance(instance_id, trigger.seq, process_id, version, business_key, created=self._now())
        self._instances[instance_id] = instance
        self._deliver(instance, None, trigger)
        return instance

    # --- accepted rows
    def _put_pending(self, row: PendingRow) -> None:
        if row.seq not in self._pending:
            insort(self._pending_order, row.seq)
        self._pending[row.seq] = Pending(row)
        self._ring("message")

    def _drop_pending(self, seq: int) -> None:
        if self._pending.pop(seq, None) is not None:
            del self._pending_order[bisect_left(self._pending_order, seq)]

    def _bury(self, row: PendingRow, reason: str) -> None:
        self._dead.appendleft(
            DeadRow(row.id, row.kind, row.key, row.name, row.payload, reason, self._now(), row.accepted)
        )

    def _return_message(self, trigger: TriggerRow, process_id: str) -> None:
        """Back to routing at its place, for the processes that gave it back: the original seq, no dedup (it was
        accepted once already)."""
        if trigger.kind != "message":
            return
        if trigger.seq in self._only:
            self._unpark_row(trigger)
        self._only.setdefault(trigger.seq, set()).add(process_id)
        name = trigger.key.split("\x1f")[1] if "\x1f" in trigger.key else ""
        self._put_pending(
            PendingRow(
                trigger.seq,
                trigger.id,
                "message",
                trigger.key,
                name,
                trigger.payload,
                trigger.expires,
                self._now(),
                self._live(),
            )
        )

    def _unpark_row(self, trigger: TriggerRow) -> None:
        raise NotImplementedError

    def _may_have(self, process_id: str, seq: int) -> bool:
        only = self._only.get(seq)
        return only is None or process_id in only

    def _contradicts(self, instance: Instance, key: str) -> bool:
        """It has learnt another value of a property that the message names (M49)."""
        named = properties_of(key)
        return any(instance.learnt.get(name, value) != value for name, value in named.items())

    def _add_fact(self, fact: bytes) -> None:
        now = self._live()
        stamp, number = self._last_fact
        # Ids only rise, also when the machine's clock steps back.
        self._last_fact = (now, 0) if now > stamp else (stamp, number + 1)
        self._facts.append((self._last_fact, fact))
