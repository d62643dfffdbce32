"""Small processes with the life that each leads: what every crash point is tried against.

A step is a client's call (repeated with the same ids when a crash took its answer), and the engine settles behind it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gobpm_ray.checkpoint import rows
from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.core.program import compile_process
from gobpm_ray.core.starts import start_arms
from gobpm_ray.core.step import HistoryEntry
from gobpm_ray.errors import InputError, LockLost
from gobpm_ray.model.builder import ProcessBuilder, Stored, every
from gobpm_ray.model.document import to_json
from gobpm_ray.runtime.commits import arm_row
from gobpm_ray.runtime.ports import ArmRow, StartRow, Store
from gobpm_ray.runtime.stored_data import encoded_data
from tests.crash.one_process import EngineProcess

BEGIN = 1_767_225_600_000
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

Step = Callable[[EngineProcess, str], None]
"""(process, a name unique to this step of the case)"""


@dataclass(frozen=True)
class Case:
    name: str
    processes: tuple[ProcessBuilder, ...]
    steps: tuple[Step, ...]
    topics: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    failing: Mapping[str, int] = field(default_factory=dict)
    unwell: Mapping[str, int] = field(default_factory=dict)
    jobs: tuple[str, ...] = ()
    """Nodes of the first process whose work is a worker's."""
    narrow: bool = False
    """Broadcasts are folded one listener at a time."""


# -------------------------------------------------------------------------------------------------------------- steps


def deployment(builder: ProcessBuilder, now: int) -> tuple[str, bytes, list[ArmRow]]:
    """The arguments of `Store.deploy` for a built process."""
    process = builder.build()
    starts = []
    for arm, armed in start_arms(compile_process(process), now):
        row = arm_row(arm)
        if arm.kind == "timer":
            data = rows.start_timer_row(armed.cycle, armed.anchor, armed.index)
            row = ArmRow(row.wait, row.kind, row.node, row.key, row.deadline, row=data)
        starts.append(row)
    return process.id, b"json\n" + to_json(process), starts


def deploy(store: Store, builder: ProcessBuilder) -> None:
    store.deploy(*deployment(builder, store.now()))


def start(process: str = "p", instance: str = "i", **variables: object) -> Step:
    def step(engine: EngineProcess, name: str) -> None:
        engine.store.start(process, 0, instance, f"start-{instance}", "", rows.payload(dict(variables)))

    return step


def bulk(process: str = "p", *instances: str, **variables: object) -> Step:
    """Started together by a client that computes where each waits first; asked again, it may be a new client."""

    def step(engine: EngineProcess, name: str) -> None:
        values = rows.payload(dict(variables))
        starts: list[StartRow] = [(process, 0, instance, f"start-{instance}", "", values) for instance in instances]
        engine.first_legs.start_many(starts)

    return step


def message(name_: str, key: object = None, ttl: int = DAY, **values: object) -> Step:
    def step(engine: EngineProcess, name: str) -> None:
        engine.store.publish(name, "message", message_key(name_, key), name_, rows.payload(dict(values)), ttl)

    return step


def signal(name_: str, **values: object) -> Step:
    def step(engine: EngineProcess, name: str) -> None:
        engine.store.publish(name, "signal", signal_key(name_), name_, rows.payload(dict(values)), 0)

    return step


def complete(node: str, **outputs: object) -> Step:
    def step(engine: EngineProcess, name: str) -> None:
        task = _task(engine, name, node)
        engine.store.complete_task(task, "", (), outputs, name, rows.payload(dict(outputs)))

    return step


def claim(node: str, user: str) -> Step:
    def step(engine: EngineProcess, name: str) -> None:
        engine.store.claim_task(_task(engine, name, node), user, ())

    return step


def _task(engine: EngineProcess, name: str, node: str) -> str:
    memo = engine.world.memo
    if name not in memo:
        memo[name] = next(t.id for t in engine.store.tasks() if rows.read_task_row(t.row).node == node)
    found: str = memo[name]
    return found


def advance(ms: int) -> Step:
    """As the engine's `advance`: from deadline to deadline, each at its own time."""

    def step(engine: EngineProcess, name: str) -> None:
        target = engine.world.memo.setdefault(name, engine.store.now() + ms)
        while (following := engine.settle().next_deadline) is not None and following <= target:
            engine.store.set_clock(following)
        engine.store.set_clock(target)

    return step


def jump(ms: int) -> Step:
    """The clock stands there at once; what fell due meanwhile is still to be found."""

    def step(engine: EngineProcess, name: str) -> None:
        engine.store.set_clock(engine.world.memo.setdefault(name, engine.store.now() + ms))

    return step


def act(kind: str, instance: str = "i", **values: object) -> Step:
    """An operator's action on the instance, or on its one open incident."""

    def step(engine: EngineProcess, name: str) -> None:
        memo = engine.world.memo
        if name not in memo:
            record = engine.store.instance(instance)
            assert record is not None
            incidents = [wait for wait, row in record.waits.items() if row[0] == "incident"]
            memo[name] = incidents[0] if kind in ("retry", "resolve") else ""
        engine.store.deliver(instance, kind, memo[name], name, rows.payload(dict(values)))

    return step


def hold(suspended: bool, instance: str = "i") -> Step:
    def step(engine: EngineProcess, name: str) -> None:
        again = engine.world.memo.setdefault(name, engine.boot) != engine.boot
        # Asked again after a lost answer, the hold may be long over, and the instance with it; and a cancel takes one
        # that is held, too. A refusal says so.
        with contextlib.suppress(*([InputError] if again or not suspended else [])):
            engine.store.suspend(instance, suspended)

    return step


def data(store: str, value: object) -> Step:
    """An operator writes a data store; None: drops it."""

    def step(engine: EngineProcess, name: str) -> None:
        if value is None:
            engine.store.drop_data(store)
        else:
            engine.store.write_data(store, encoded_data(value, store))

    return step


def poison(name_: str) -> Step:
    """A message that nobody can fold."""

    def step(engine: EngineProcess, name: str) -> None:
        message(name_)(engine, name)
        engine.world.poison.update(row.seq for row in engine.store.pending(0, 1_000) if row.id == name)

    return step


def replay(index: int) -> Step:
    """An operator sends the dead letter of an earlier step once more."""

    def step(engine: EngineProcess, name: str) -> None:
        again = engine.world.memo.setdefault(name, engine.boot) != engine.boot
        with contextlib.suppress(*([InputError] if again else [])):
            engine.store.replay(f"step-{index}", name, DAY)

    return step


def dying_hosts(engine: EngineProcess, name: str) -> None:
    """Three hosts in a row die at work on whatever is ready, without a word."""
    store = engine.store
    store.release_dead("dying")
    for _ in range(4):
        if (claim := store.claim("dying:1")) is not None:
            store.renew(claim.instance_id, claim.token)
            store.release_dead("dying")


def job(topic: str, fails: bool = False) -> Step:
    """A worker fetches the job and reports it; after a lost answer it reports again, and it fetches again when its lock
    has ended meanwhile."""

    def step(engine: EngineProcess, name: str) -> None:
        store, memo = engine.store, engine.world.memo
        while True:
            if name not in memo:
                (fetched,) = store.fetch_jobs([topic], "worker", 1_000, 1)
                memo[name] = [fetched.id, fetched.lock]
            task, lock = memo[name]
            try:
                if fails:
                    store.retry_job(
                        task, lock, name, MINUTE, "not today", rows.history_entry(HistoryEntry("failed", BEGIN))
                    )
                else:
                    store.report_job(task, "job", lock, name, rows.payload({"worked": True}))
                return
            except LockLost:
                del memo[name]

    return step


def together(*steps: Step) -> Step:
    """One after the other, with nothing settled between."""

    def step(engine: EngineProcess, name: str) -> None:
        for index, each in enumerate(steps):
            each(engine, f"{name}.{index}")

    return step


# ---------------------------------------------------------------------------------------------------------- processes


def _timer() -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").catch("sleep", timer="P1D").end("e")
    return p


def _guarded() -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").user_task("check", outputs={"verdict": "=answer"}).end("e")
    p.boundary("check", "late", timer="PT4H").task("escalate").end("late_end")
    return p


def _nudged() -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").user_task("check").end("e")
    p.boundary(
        "check", "nudge", message="Nudge", key="=ref", interrupting=False, outputs={"log": "=append(log, what)"}
    ).task("noted").end("n")
    return p


def _reply() -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").catch("reply", message="Reply", key="=ref").end("e")
    return p


def _alarm() -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").catch("alarm", signal="Alarm").end("e")
    return p


def _gateway() -> ProcessBuilder:
    p = ProcessBuilder("p")
    g = p.start("s").event_gateway("g")
    g.catch("go", message="Go", key="=ref").task("went").end("e1")
    g.catch("pause", timer="PT2H").task("paused").end("e2")
    return p


def _split() -> ProcessBuilder:
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("fork")
    fork.catch("two", timer="PT2H").to("join")
    fork.user_task("mine").to("join")
    fork.catch("msg", message="M", key="=ref").to("join")
    p.first.parallel("join").end("e")
    return p


def _nested(interrupted: bool) -> ProcessBuilder:
    p = ProcessBuilder("p")
    sub = p.start("s").sub_process("sub")
    with sub as inside:
        inside.start("is").user_task("inner").end("ie")
    sub.task("after").end("e")
    p.boundary("sub", "deadline", timer="PT3H", interrupting=interrupted).task("handled").end("he")
    return p


def _cycle() -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").user_task("long").end("e")
    p.boundary("long", "tick", timer=every("R3/PT10M"), interrupting=False).task("ticked").end("te")
    return p


def _work(idempotent: bool) -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").service_task("one", topic="one", idempotent=idempotent).service_task(
        "two", topic="two", idempotent=idempotent
    ).end("e")
    return p


def _crowd() -> ProcessBuilder:
    """Most are woken, end, and are gone; a busy one has work to do."""
    p = ProcessBuilder("p")
    p.start("s").catch("sleep", timer="P1D").exclusive("which")
    p.at("which").when("busy").service_task("one", topic="one", idempotent=True).end("worked")
    p.at("which").otherwise().end("e")
    return p


def _quick() -> ProcessBuilder:
    """Its first leg has work to do, so nobody but a host begins it."""
    p = ProcessBuilder("quick")
    p.start("qs").service_task("one", topic="one", idempotent=True).catch("rest", timer="PT1H").end("qe")
    return p


def _thrower() -> ProcessBuilder:
    p = ProcessBuilder("thrower")
    p.start("ts").throw("tell", message="Reply", key="=ref", inputs={"told": "=ref"}).throw(
        "shout", signal="Alarm", inputs={"loud": "=1"}
    ).end("te")
    return p


def _started() -> ProcessBuilder:
    p = ProcessBuilder("started")
    p.start("ordered", message="Order").user_task("fill").end("e")
    p.start("alarmed", signal="Alarm").task("run").end("e2")
    return p


def _scheduled() -> ProcessBuilder:
    p = ProcessBuilder("scheduled")
    p.start("tick", timer=every("R3/PT1H")).task("job").end("e")
    return p


def _wide() -> ProcessBuilder:
    """Its end node belongs to tracks that a trigger for one of them does not touch."""
    p = ProcessBuilder("p")
    sub = p.start("s").sub_process("sub")
    with sub as inside:
        fork = inside.start("is").parallel("fork")
        for n in range(6):
            fork.user_task(f"t{n}").end(f"e{n}")
    sub.task("after").end("e")
    p.boundary("sub", "stop", message="Stop", key="=ref").task("stopped").end("se")
    return p


def _counted() -> ProcessBuilder:
    """Each instance takes one of the stock and notes it, and notes once more when a person has agreed: a write that
    happened twice, or not at all, shows."""
    p = ProcessBuilder("p")
    taken = {Stored("Stock"): "=Stock - 1", Stored("Log"): "=append(Log, who)"}
    agreed = {Stored("Log"): '=append(Log, who + " agrees")', "seen": "=left"}
    p.start("s").script_task("take", outputs=taken).user_task(
        "agree", inputs={"left": Stored("Stock")}, outputs=agreed
    ).end("e")
    return p


CASES: tuple[Case, ...] = (
    Case("timer", (_timer(),), (start(), advance(DAY))),
    Case("boundary fires", (_guarded(),), (start(), advance(5 * HOUR))),
    Case("boundary loses", (_guarded(),), (start(), claim("check", "ann"), complete("check", answer=1), advance(DAY))),
    Case(
        "boundary repeats",
        (_nudged(),),
        (
            start(ref="A", log=[]),
            together(message("Nudge", "A", what=1), message("Nudge", "A", what=2)),
            message("Nudge", "A", what=3),
            complete("check"),
            message("Nudge", "A", what=4),
        ),
        settings={"claim_triggers": 1},
    ),
    Case("message", (_reply(),), (start(ref="A"), message("Reply", "B"), message("Reply", "A", text="hello"))),
    Case(
        "message before its catch",
        (_reply(),),
        (message("Reply", "A", text="early"), message("Reply", "A", text="second"), start(ref="A")),
    ),
    Case(
        "message expires",
        (_reply(),),
        (message("Reply", "A", ttl=HOUR), advance(2 * HOUR), start(ref="A"), message("Reply", "A", text="in time")),
    ),
    Case(
        "signal to three",
        (_alarm(),),
        (start(instance="i1"), start(instance="i2"), start(instance="i3"), signal("Alarm", level=3), signal("Alarm")),
        narrow=True,
    ),
    Case("gateway by message", (_gateway(),), (start(ref="A"), message("Go", "A"), message("Go", "A"), advance(DAY))),
    Case("gateway by timer", (_gateway(),), (start(ref="A"), advance(3 * HOUR), message("Go", "A"))),
    Case(
        "gateway race",
        (_gateway(),),
        (start(ref="A"), together(message("Go", "A"), jump(3 * HOUR))),
    ),
    Case(
        "split and join",
        (_split(),),
        (start(ref="A"), together(complete("mine"), message("M", "A")), advance(3 * HOUR)),
    ),
    Case("sub-process", (_nested(True),), (start(), complete("inner"), advance(DAY))),
    Case("sub-process interrupted", (_nested(True),), (start(), advance(4 * HOUR))),
    Case("sub-process reminded", (_nested(False),), (start(), advance(4 * HOUR), complete("inner"))),
    Case("cycle", (_cycle(),), (start(), advance(HOUR), complete("long"))),
    Case("idempotent work", (_work(True),), (start(),), topics=("one", "two")),
    Case("work", (_work(False),), (start(),), topics=("one", "two")),
    Case(
        "incidents",
        (_work(True),),
        (start(), act("retry"), act("resolve", two_done="by hand")),
        topics=("one", "two"),
        failing={"one": 1, "two": 99},
    ),
    Case(
        "throw and catch",
        (_thrower(), _reply(), _started()),
        (start("p", "catcher", ref="A"), start("thrower", "t", ref="A")),
    ),
    Case("starts by message and signal", (_started(),), (message("Order", n=1), signal("Alarm"), complete("fill"))),
    Case("start timer", (_scheduled(),), (advance(2 * HOUR + MINUTE),)),
    Case("cancel", (_split(),), (start(ref="A"), act("cancel"), message("M", "A"), advance(DAY))),
    Case(
        "cancel with a rival in the inbox",
        (_split(),),
        (start(ref="A"), hold(True), together(message("M", "A"), complete("mine"), act("cancel")), hold(False)),
    ),
    Case(
        "suspend and set",
        (_reply(),),
        (start(ref="A"), hold(True), message("Reply", "A"), act("set", more=1), hold(False)),
        settings={"reconcile_ms": 0},
    ),
    Case("hosts die", (_reply(),), (together(start(ref="A"), dying_hosts), message("Reply", "A"), hold(False))),
    Case(
        "poison and replay",
        (_reply(),),
        (poison("Bad"), message("Reply", "A", ttl=HOUR), advance(2 * HOUR), start(ref="A"), replay(2)),
    ),
    Case(
        "job",
        (_work(True),),
        (start(), job("one", fails=True), advance(2 * MINUTE), job("one")),
        topics=("two",),
        settings={"release_jobs": True},
        jobs=("one",),
    ),
    Case(
        "wide",
        (_wide(),),
        (start(ref="A"), complete("t3"), message("Stop", "A")),
        settings={"whole_parts": 1},
    ),
    Case(
        "claimed ahead",
        (_crowd(),),
        (together(*(start(instance=f"i{n}", busy=n == 2) for n in range(5))), jump(DAY)),
        topics=("one",),
        settings={"claim_ahead": 1},
    ),
    Case(
        "data stores",
        (_counted(),),
        (
            together(data("Stock", 10), data("Log", []), data("Old", "gone")),
            data("Old", None),
            start(who="ann"),
            start(instance="j", who="bob"),
            complete("agree"),
            complete("agree"),
        ),
    ),
    Case(
        "born parked",
        (_split(), _thrower()),
        (
            message("M", "A", text="early"),
            bulk("p", "i1", "i2", "i3", ref="A"),
            bulk("thrower", "t1", "t2", ref="A"),
            together(complete("mine"), message("M", "A")),
            advance(3 * HOUR),
        ),
    ),
    Case(
        "born parked or with work to do",
        (_crowd(), _quick()),
        (
            bulk("p", *(f"i{n}" for n in range(3))),
            bulk("quick", "q1", "q2", "q3", "q4", ref="A"),
            advance(DAY),
        ),
        topics=("one",),
    ),
    Case("wake fails", (_reply(),), (start(ref="A"), message("Reply", "A")), unwell={"p": 2}),
)
