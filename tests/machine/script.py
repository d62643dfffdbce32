"""What happens to a process from outside: a script of triggers, and the client that plays it on any store.

An action names what it is for by number among what is open (`task 2`: the third open task, modulo how many there are),
so a script fits every process, shrinks, and means the same on two engines as long as these agree. Every call that the
store leaves unanswered is made again with the same delivery id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

from gobpm_ray.checkpoint import rows
from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.core.step import HistoryEntry
from gobpm_ray.errors import InputError, LockLost, StoreUnavailable, TaskRefused
from gobpm_ray.runtime.ports import InstanceRecord, Store, TaskView

MINUTE = 60_000
DAY = 86_400_000
PROCESS = "p"
INSTANCES = ("i1", "i2")
"""Roots; each has its number as correlation key `k`."""

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Action:
    kind: str
    how: str = ""
    which: int = 0

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(filter(None, (self.how, str(self.which or ''))))})"


Moment = tuple[Action, ...]
"""Actions with nothing between them: two stand in one inbox."""


def _actions(kind: str, *hows: str, most: int = 0) -> st.SearchStrategy[Action]:
    return st.builds(Action, st.just(kind), st.sampled_from(hows), st.integers(0, most))


MEET = _actions("meet", "", most=7)
"""Whatever it is that a wait waits for, comes."""
TASK = _actions("task", "done", "done", "claim", "unclaim", "reassign", most=3)
JOB = _actions("job", "done", "done", "failed", "again", "error E", "error F", "escalation E", most=2)
MESSAGE = _actions("message", "M", "N", most=1)
SIGNAL = _actions("signal", "S")
TIME = _actions("time", "next", "PT10M", "PT40M")
SET = _actions("set", "x=0", "x=2", "x=2", "z=1", most=1)
REPAIR = _actions("repair", "retry", "resolve", most=1)
HOLD = _actions("hold", "suspend", "resume", most=1)
END = _actions("cancel", "", most=1)
START = _actions("start", "", most=1)
RARE = st.one_of(HOLD, START, END)
ACTIONS = st.one_of(*[MEET] * 10, *[TASK] * 2, *[JOB] * 2, *[MESSAGE] * 2, SIGNAL, *[TIME] * 2, SET, REPAIR, RARE)
MOMENTS: st.SearchStrategy[Moment] = st.one_of(*[st.tuples(ACTIONS)] * 3, st.tuples(ACTIONS, ACTIONS))
SCRIPTS = st.lists(MOMENTS, min_size=7, max_size=18).map(tuple)


class Client:
    """Plays actions; `settle` gives the engine its turns until nothing moves. `log` says what each came to."""

    def __init__(self, store: Store, settle: Callable[[], object]) -> None:
        self._store = store
        self._settle = settle
        self.log: list[str] = []
        self._count = 0

    def play(self, moment: Moment) -> None:
        for action in moment:
            self._count += 1
            try:
                told = self._do(action)
            except (InputError, TaskRefused, LockLost) as refusal:
                told = f"refused: {type(refusal).__name__}"
            self.log.append(f"{action!r}: {told}")
        self._settle()

    def _do(self, action: Action) -> str:
        match action.kind:
            case "start":
                return self._start(action.which)
            case "meet":
                return self._meet(action.which)
            case "task":
                return self._task(action)
            case "job":
                return self._job(action)
            case "message":
                return self._publish("message", message_key(action.how, action.which + 1), action.how)
            case "signal":
                return self._publish("signal", signal_key(action.how), action.how)
            case "time":
                return self._time(action.how)
            case "repair":
                return self._repair(action)
            case "hold":
                return self._hold(INSTANCES[action.which], action.how == "suspend")
            case "set":
                name, _, value = action.how.partition("=")
                return self._deliver(INSTANCES[action.which], "set", "", {name: int(value)})
            case "cancel":
                return self._deliver(INSTANCES[action.which], "cancel", "", {})
        raise AssertionError(f"no action is called {action.kind}")

    def cancel_all(self) -> None:
        """Whatever still lives among the roots is let go and ended."""
        for instance in INSTANCES:
            if self._store.status(instance) == "suspended":
                self._hold(instance, False)
            if self._store.status(instance) == "active":
                self._count += 1  # a delivery of its own
                self._deliver(instance, "cancel", "", {})
        self._settle()

    # --- one action each

    def _meet(self, which: int) -> str:
        waits = sorted(
            (int(row[-1]), instance_id, wait, row[:4])
            for _, instance_id in self._store.instances(ended=False)
            for wait, row in _record(self._store, instance_id).waits.items()
            if row[0] != "child"
        )
        if not waits:
            return "nobody waits"
        _, instance_id, wait, (kind, node, key, deadline) = waits[which % len(waits)]
        match kind:
            case "task" | "job":
                delivery, payload = self._name(), rows.payload({"v": self._count})
                task = f"{instance_id}/{wait}"
                if kind == "task":
                    self._surely(lambda: self._store.complete_task(task, "", (), ("v",), delivery, payload))
                else:
                    self._surely(lambda: self._store.report_job(task, "job", "", delivery, payload))
            case "message" | "signal":
                self._publish(kind, key, key.split("\x1f")[1])
            case "timer":
                self._move(int(deadline))
            case "conditional":
                self._deliver(instance_id, "set", "", {"x": 2})
            case "incident":
                self._deliver(instance_id, "resolve" if which % 2 else "retry", wait, {"z": 1} if which % 2 else {})
        return f"{kind} at {node} of {instance_id}"

    def _hold(self, instance: str, held: bool) -> str:
        self._surely(lambda: self._store.suspend(instance, held))
        return "held" if held else "let go"

    def _start(self, which: int) -> str:
        instance = INSTANCES[which]
        payload = rows.payload({"k": which + 1, "x": 0, "z": 0})
        # Asked again, it is a duplicate; by another action, it is refused.
        delivery = self._name()
        self._surely(lambda: self._store.start(PROCESS, 0, instance, delivery, "", payload))
        return instance

    def _publish(self, kind: str, key: str, name: str) -> str:
        delivery, payload = self._name(), rows.payload({"m": self._count})
        self._surely(lambda: self._store.publish(delivery, kind, key, name, payload, DAY))
        return "accepted"

    def _deliver(self, instance: str, kind: str, wait: str, values: dict[str, object]) -> str:
        delivery, payload = self._name(), rows.payload(values)
        self._surely(lambda: self._store.deliver(instance, kind, wait, delivery, payload))
        return instance

    def _task(self, action: Action) -> str:
        task = _one_of(self._store.tasks("task"), action.which)
        if task is None:
            return "none is open"
        store, owner = self._store, task.owner
        match action.how:
            case "claim":
                self._surely(lambda: store.claim_task(task.id, "ann", ()))
            case "unclaim":
                self._surely(lambda: store.unclaim_task(task.id))
            case "reassign":
                self._surely(lambda: store.reassign_task(task.id, "bob"))
            case _:
                delivery, values = self._name(), {f"t{self._count % 3}": self._count}
                payload = rows.payload(values)
                self._surely(lambda: store.complete_task(task.id, owner, (), values, delivery, payload))
        return _named(task)

    def _job(self, action: Action) -> str:
        task = _one_of(self._store.tasks("job"), action.which)
        if task is None:
            return "none is open"
        store, delivery = self._store, self._name()
        verb, _, code = action.how.partition(" ")
        if action.how == "again":
            now = self._surely(store.now)
            node = rows.read_task_row(task.row).node
            line = rows.history_entry(HistoryEntry("failed", now, node, "not today"))
            pause = 5 * MINUTE * (action.which % 2)
            self._surely(lambda: store.retry_job(task.id, "", delivery, pause, "not today", line))
        elif verb == "done":
            payload = rows.payload({"j": self._count})
            self._surely(lambda: store.report_job(task.id, "job", "", delivery, payload))
        else:
            payload = rows.payload({}, cause="no", code=code)
            self._surely(lambda: store.report_job(task.id, verb, "", delivery, payload))  # type: ignore[arg-type]
        return f"{_named(task)} failures {task.failures}"

    def _repair(self, action: Action) -> str:
        """The operator reads what is open; of two engines only the order in which incidents came may be told apart."""
        incidents = self._store.incidents()
        if not incidents:
            return "nothing is broken"
        _, instance, wait = incidents[action.which % len(incidents)]
        self._deliver(instance, action.how, wait, {"z": 1} if action.how == "resolve" else {})
        return f"{instance} {wait.split(':')[1]}"

    def _time(self, how: str) -> str:
        """From deadline to deadline, each at its own time."""
        store = self._store
        self._settle()
        following = store.quiet().next_deadline
        if how == "next":
            if following is None:
                return "nothing is due"
            self._move(following)
            return "the next deadline"
        target = store.now() + (10 if how == "PT10M" else 40) * MINUTE
        while following is not None and following <= target:
            self._move(following)
            self._settle()
            following = store.quiet().next_deadline
        self._move(target)
        return "passed"

    def _move(self, now_ms: int) -> None:
        # Never back: a deadline that a held instance let pass stands in the past.
        target = max(now_ms, self._store.now())
        self._surely(lambda: self._store.set_clock(target))

    # --- asking

    def _name(self) -> str:
        return f"step-{self._count}"

    def _surely(self, call: Callable[[], T]) -> T:
        while True:
            try:
                return call()
            except StoreUnavailable:
                continue


def _record(store: Store, instance_id: str) -> InstanceRecord:
    record = store.instance(instance_id)
    assert record is not None
    return record


def _one_of(tasks: list[TaskView], which: int) -> TaskView | None:
    return tasks[which % len(tasks)] if tasks else None


def _named(task: TaskView) -> str:
    return f"{rows.read_task_row(task.row).node} of {task.instance_id} ({task.owner or 'nobody'})"
