"""The memory store and each real store, driven by the same random calls, tell the same story after every one of them.

What the other contract tests state sentence by sentence, this one looks for between them. The business clock is
the same in both; tokens and liveness stamps differ and are not compared.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gobpm_ray.core.keys import learnt_text, message_key, signal_key
from gobpm_ray.errors import GobpmError
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import ArmRow, Claim, Commit, DueRow, ParkedStart, Population, Residency, SendRow, Store
from gobpm_ray.settings import Settings
from tests.support.stores import SERVERS, StoreBed, human, message, payload, signal, timer

T0 = 1_767_225_600_000
PROCESSES = ("order", "bill")
KEYS = ("A", "B")
USERS = ("", "ann", "bob")
LIMITS: dict[str, Any] = {
    "claim_triggers": 3,
    "history_limit": 3,
    "max_resident": 2,
    "lease_ttl_ms": 600_000,
    "max_call_depth": 2,
}

processes = st.sampled_from(PROCESSES)
keys = st.sampled_from((*KEYS, None))
sent_keys = st.sampled_from((*KEYS, None, {"p": "A", "q": "B"}, {"q": "B"}, {"p": "B", "q": "A"}))
learnt = st.sampled_from(("", "", "", learnt_text({"p": "A"}), learnt_text({"p": "A", "q": "B"})))
names = st.sampled_from(("X", "Y"))
groups = st.sampled_from(("", "g", "h"))
spans = st.integers(0, 40)
PARTS = st.sampled_from(("h", "s0", "t1", "t2", "t3", "t4"))


@st.composite
def arm_shapes(draw: st.DrawFn) -> ArmRow:
    """A wait without its id, which is never reused, and with its deadline counted from now."""
    kind = draw(st.sampled_from(("timer", "message", "message", "signal", "task", "job", "incident", "child")))
    group = draw(groups)
    match kind:
        case "timer":
            return timer("", draw(spans), group=group)
        case "message":
            # A repeat wait is in no race: it would win one without ending it.
            repeat = draw(st.booleans())
            where = {"group": "" if repeat else group, "repeat": repeat, "depth": draw(st.integers(0, 3))}
            return message("", draw(keys), draw(names), **where)
        case "signal":
            repeat = draw(st.booleans())
            return signal("", draw(names), group="" if repeat else group, repeat=repeat)
    row: dict[str, Any] = {
        "users": draw(st.sampled_from(([], ["ann"]))),
        "required": draw(st.sampled_from(([], ["ok"]))),
    }
    if kind == "child":
        return ArmRow("", kind, "Call_1", group=group, touch=("t1",))
    return replace(human("", group, assignee=draw(st.sampled_from(("", "", "bob"))), **row), kind=kind)


class Parity(RuleBasedStateMachine):
    """Two stores and one driver."""

    open_pair: Callable[[], tuple[Store, Store]]

    def __init__(self) -> None:
        super().__init__()
        self.pair = type(self).open_pair()
        self.number = 0
        self.waits: list[tuple[str, str]] = []
        self.deliveries: list[str] = []
        self.held: list[tuple[Claim, Claim]] = []

    def unique(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}{self.number}"

    def delivery(self, data: st.DataObject) -> str:
        """Mostly new, sometimes one that was used before."""
        if self.deliveries and data.draw(st.integers(0, 9)) == 0:
            return data.draw(st.sampled_from(self.deliveries))
        self.deliveries.append(self.unique("d"))
        return self.deliveries[-1]

    def both(self, call: Callable[[Store], Any], told: Callable[[Any], Any] = lambda answer: answer) -> Any:
        """The same call of both; the same answer, or the same refusal."""
        answers = []
        for store in self.pair:
            try:
                answers.append(told(call(store)))
            except GobpmError as refusal:
                answers.append(type(refusal))
        assert answers[0] == answers[1]
        return answers[0]

    # --- calls

    @initialize()
    def begin(self) -> None:
        self.both(lambda store: store.manual_clock(T0))
        for process in PROCESSES:
            self.both(lambda store, process=process: store.deploy(process, b"xml\n0", ()))  # type: ignore[misc]

    @rule(process=processes, starts=st.sets(st.sampled_from(("name", "key", "signal", "timer")), max_size=3))
    def deploy(self, process: str, starts: set[str]) -> None:
        arms = {
            "name": message("s-name", None, "X", node="ByName", touch=()),
            "key": message("s-key", "A", "X", node="ByKey", touch=()),
            "signal": signal("s-signal", "X", node="BySignal", touch=()),
            "timer": timer("s-timer", T0 + 30, node="ByTimer", key="R/PT30S", row=b'{"index": 0}', touch=()),
        }
        rows = [arms[name] for name in sorted(starts)]
        document = self.unique("xml\n").encode()
        self.both(lambda store: store.deploy(process, document, rows))

    @rule(process=st.sampled_from((*PROCESSES, "nothing")), data=st.data(), again=st.booleans())
    def start(self, process: str, data: st.DataObject, again: bool) -> None:
        delivery = self.delivery(data)
        instance = "i1" if again else self.unique("i")
        self.both(
            lambda store: store.start(process, 0, instance, delivery, "bk", payload(n=1)),
            lambda accepted: (accepted.duplicate, accepted.instance_id),
        )

    @rule(process=st.sampled_from((*PROCESSES, "nothing")), data=st.data(), again=st.booleans())
    def bear(self, process: str, data: st.DataObject, again: bool) -> None:
        """Of the newest version, or of one that once was it; in time, or not."""
        delivery, draw = self.delivery(data), data.draw
        instance = "i1" if again else self.unique("i")
        now = self.pair[0].now() - draw(st.sampled_from((0, 0, 0, 1_000, 1_001)))
        arms = [
            replace(shape, wait=self.unique("w"), deadline=shape.deadline and now + shape.deadline)
            for shape in draw(st.lists(arm_shapes(), max_size=3))
        ]
        outcome: Literal["", "completed", "terminated"] = draw(st.sampled_from(("", "", "", "completed", "terminated")))
        commit = Commit(
            instance,
            "bulk:1",
            0,
            self.unique("c"),
            outcome=outcome,
            parts={name: self.unique(name).encode() for name in draw(st.sets(PARTS))},
            consumed=[delivery],
            arms=() if outcome else arms,
            sends=[self.handed_on(data, arms) for _ in range(draw(st.integers(0, 2)))],
            history=[self.unique("history").encode()],
            facts=[self.unique("fact").encode()],
            learnt=draw(learnt),
        )
        newest = self.pair[0].definition(process)
        version = draw(st.sampled_from((1, newest.version if newest else 1)))
        given = (version, draw(st.booleans()), instance, delivery, "bk", payload(n=1), now)
        answer = self.both(
            lambda store: [
                accepted and (accepted.duplicate, accepted.instance_id)
                for accepted in store.start_parked([ParkedStart(process, *given, commit)])
            ]
        )
        if answer == [(False, instance)]:
            self.waits += [(instance, arm.wait) for arm in commit.arms]

    @rule(key=sent_keys, name=names, ttl=spans, data=st.data())
    def publish(self, key: str | dict[str, str] | None, name: str, ttl: int, data: st.DataObject) -> None:
        delivery = self.delivery(data)
        self.both(
            lambda store: store.publish(delivery, "message", message_key(name, key), name, payload(k=key), ttl),
            lambda accepted: accepted.duplicate,
        )

    @rule(name=names, data=st.data())
    def broadcast(self, name: str, data: st.DataObject) -> None:
        delivery = self.delivery(data)
        self.both(
            lambda store: store.publish(delivery, "signal", signal_key(name), name, payload(), 0),
            lambda accepted: accepted.duplicate,
        )

    @rule(limit=st.integers(1, 3), rows=st.integers(1, 4))
    def fold(self, limit: int, rows: int) -> None:
        for row in self.pair[0].pending(0, rows):
            calls = 0
            while True:
                # How a broadcast that fits its limit exactly says so may differ; what it did may not.
                done = [store.route(row.seq, limit) for store in self.pair]
                assert [(one.woken, one.started) for one in done][1:] == [(done[0].woken, done[0].started)]
                if all(one.result != "partial" for one in done):
                    assert {one.result for one in done} in ({done[0].result}, {"gone", "delivered"})
                    break
                calls += 1
                assert calls < 200

    @precondition(lambda self: self.waits)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        instance, wait = data.draw(st.sampled_from(self.waits))
        wait = data.draw(st.sampled_from((wait, wait, "")))
        delivery = self.delivery(data)
        kind = "task" if wait else data.draw(st.sampled_from(("set", "cancel")))
        self.both(
            lambda store: store.deliver(instance, kind, wait, delivery, payload(n=2)),
            lambda accepted: accepted.duplicate,
        )

    @precondition(lambda self: self.waits)
    @rule(data=st.data(), suspended=st.booleans())
    def suspend(self, data: st.DataObject, suspended: bool) -> None:
        instance, _ = data.draw(st.sampled_from(self.waits))
        self.both(lambda store: store.suspend(instance, suspended))

    @precondition(lambda self: self.waits)
    @rule(
        data=st.data(),
        user=st.sampled_from(USERS),
        what=st.sampled_from(("claim", "unclaim", "assign", "complete", "strict")),
    )
    def work(self, data: st.DataObject, user: str, what: str) -> None:
        task = "/".join(data.draw(st.sampled_from(self.waits)))
        match what:
            case "claim":
                self.both(lambda store: store.claim_task(task, user, ()))
            case "assign":
                self.both(lambda store: store.reassign_task(task, user))
            case "unclaim":
                self.both(lambda store: store.unclaim_task(task))
            case _:
                delivery = self.delivery(data)
                outputs = data.draw(st.sampled_from(((), ("ok",))))
                self.both(
                    lambda store: store.complete_task(
                        task, user, (), outputs, delivery, payload(), strict=what == "strict"
                    ),
                    lambda accepted: (accepted.duplicate, accepted.instance_id),
                )

    @rule(span=spans)
    def advance(self, span: int) -> None:
        now = self.pair[0].now() + span
        self.both(lambda store: store.set_clock(now))

    @rule()
    def fire(self) -> None:
        due = self.both(lambda store: sorted(store.due(100).rows, key=lambda row: (row.instance_id, row.wait)))
        timers = [row for row in due if not row.instance_id.startswith("@")]
        self.both(lambda store: store.fire(timers))
        for row in due:
            if row.instance_id.startswith("@"):
                self.fire_start(row)

    def fire_start(self, row: DueRow) -> None:
        next_wait = self.unique("s-timer#")
        self.both(lambda store: store.start_timer_row(row.instance_id, row.wait))
        self.both(lambda store: store.fire_start(row, next_wait, row.deadline + 30, b'{"index": 1}'))

    @rule(limit=st.integers(1, 5))
    def expire(self, limit: int) -> None:
        for store in self.pair:
            while store.expire(limit):
                pass

    @rule()
    def claim_all(self) -> None:
        """Everything that is ready is claimed; who comes first of the ready of one millisecond is not compared."""
        found: list[dict[str, Claim]] = []
        for store in self.pair:
            claims = iter(lambda store=store: store.claim(uuid.uuid4().hex), None)  # type: ignore[misc]
            found.append({claim.instance_id: claim for claim in claims})
        assert _without_tokens(found[0]) == _without_tokens(found[1])
        self.held += [(found[0][name], found[1][name]) for name in sorted(found[0])]

    @precondition(lambda self: self.held)
    @rule()
    def look(self) -> None:
        """What a leaseholder sees, whole and pending."""
        pair = dict(zip(self.pair, self.held[0], strict=True))
        instance = self.held[0][0].instance_id
        self.both(lambda store: store.load(instance, pair[store].token), lambda claim: replace(claim, token=""))
        self.both(lambda store: store.fetch(instance, pair[store].token))
        self.both(lambda store: store.renew(instance, pair[store].token))

    @precondition(lambda self: self.held)
    @rule()
    def abandon(self) -> None:
        pair = dict(zip(self.pair, self.held.pop(0), strict=True))
        self.both(lambda store: store.abandon(pair[store].instance_id, pair[store].token, 0))

    @precondition(lambda self: self.held)
    @rule()
    def unclaim(self) -> None:
        pair = dict(zip(self.pair, self.held.pop(0), strict=True))
        self.both(lambda store: store.unclaim(pair[store].instance_id, pair[store].token))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), residency=st.sampled_from(("release", "release", "keep", "either")))
    def commit(self, data: st.DataObject, residency: Residency) -> None:
        pair = dict(zip(self.pair, self.held.pop(0), strict=True))
        claim, draw = pair[self.pair[0]], data.draw
        instance = claim.instance_id
        taken = claim.triggers[: draw(st.integers(0, 4))]
        now = self.pair[0].now()
        arms = []
        for shape in draw(st.lists(arm_shapes(), max_size=3)):
            arms.append(replace(shape, wait=self.unique("w"), deadline=shape.deadline and now + shape.deadline))
            self.waits.append((instance, arms[-1].wait))
        outcome: Literal["", "completed", "terminated"] = draw(st.sampled_from(("", "", "", "completed", "terminated")))
        withdrawn = [wait for owner, wait in self.waits if owner == instance]
        send = SendRow(self.unique("s"), "message", message_key("X", "A"), "X", payload(), 20)
        commit = Commit(
            instance,
            claim.token,
            claim.version,
            self.unique("c"),
            residency,
            outcome,
            parts={name: self.unique(name).encode() for name in draw(st.sets(PARTS))},
            removed=draw(st.lists(st.sampled_from(("t1", "t2", "t3")), max_size=1)),
            consumed=[trigger.id for trigger in taken],
            returned=[trigger for trigger in taken if trigger.kind == "message"][: draw(st.integers(0, 1))],
            arms=() if outcome else arms,
            withdrawals=draw(st.lists(st.sampled_from(withdrawn), max_size=2)) if withdrawn and not outcome else (),
            sends=[send] * draw(st.integers(0, 1))
            + [self.handed_on(data, arms) for _ in range(draw(st.integers(0, 2)))],
            history=[self.unique("history").encode()],
            facts=[self.unique("fact").encode()],
            learnt=draw(learnt),
        )
        for _ in range(draw(st.integers(1, 2))):
            answer = self.both(
                lambda store: store.commit(replace(commit, token=pair[store].token)),
                lambda result: (result.kept, result.version, result.inbox, result.now, result.next),
            )
        if isinstance(answer, tuple) and answer[0]:
            version = claim.version + 1
            claims = [replace(held, version=version, triggers=()) for held in pair.values()]
            self.held.append((claims[0], claims[1]))

    def handed_on(self, data: st.DataObject, arms: list[ArmRow]) -> SendRow:
        """A call from one of the commit's own waits, or something for a wait of anybody's."""
        kinds: tuple[Literal["start", "child", "escalation", "cancel"], ...] = (
            "start",
            "start",
            "child",
            "escalation",
            "cancel",
        )
        kind = data.draw(st.sampled_from(kinds))
        name = self.unique("called")
        if kind == "start":
            wait = data.draw(st.sampled_from([arm.wait for arm in arms] or ["gone"]))
            process = data.draw(st.sampled_from((*PROCESSES, "nothing")))
            version = data.draw(st.integers(0, 2))
            return SendRow(name, kind, to=name, wait=wait, process=process, version=version, payload=payload(n=3))
        to, wait = data.draw(st.sampled_from(self.waits or [("nobody", "gone")]))
        return SendRow(name, kind, to=to, wait="" if kind == "cancel" else wait, payload=payload(n=4))

    # --- what both must tell

    @invariant()
    def instances_are_alike(self) -> None:
        listed = self.both(lambda store: store.instances())
        for _, name in listed:
            self.both(lambda store, name=name: store.instance(name))  # type: ignore[misc]
        self.both(lambda store: store.instances(ended=True))

    @invariant()
    def rows_are_alike(self) -> None:
        self.both(lambda store: [replace(row, accepted_live=0) for row in store.pending(0, 1_000)])
        self.both(lambda store: (store.tasks(), store.tasks("job")))
        self.both(
            lambda store: sorted(store.due(1_000).rows, key=lambda row: (row.deadline, row.instance_id, row.wait))
        )
        self.both(lambda store: [fact for _, fact in store.facts()])

    @invariant()
    def counts_are_alike(self) -> None:
        self.both(lambda store: store.quiet())
        self.both(lambda store: _comparable(store.population()))
        self.both(lambda store: sorted(name for name, _, _ in store.leases()))


def _comparable(population: Population) -> Population:
    return replace(population, oldest_ready_ms=0, pending={"": sum(population.pending.values())})


def _without_tokens(claims: dict[str, Claim]) -> dict[str, Claim]:
    return {name: replace(claim, token="") for name, claim in claims.items()}


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("examples", [30, pytest.param(1_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("server", SERVERS)
def test_the_memory_store_and_a_real_one_tell_the_same_story(
    server: str, examples: int, server_url: Callable[[str], str]
) -> None:
    """One contract, two implementations: whatever is called in whatever order."""
    bed = StoreBed(server_url(server))

    class Machine(Parity):
        @staticmethod
        def open_pair() -> tuple[Store, Store]:
            real = bed.store(**LIMITS)
            return MemoryStore(Settings(**LIMITS)), real

    try:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=40,
                report_multiple_bugs=False,
                # Not shrunk: each try asks two stores everything, and five minutes is what hypothesis would take.
                phases=(Phase.reuse, Phase.generate),
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        bed.close()
