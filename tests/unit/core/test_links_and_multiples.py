"""Link events, multiple events (any of several) and parallel multiple events (all of them)."""

from __future__ import annotations

import pytest

from gobpm_ray.core.keys import message_key
from gobpm_ray.core.program import compile_process
from gobpm_ray.core.starts import start_arms
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import (
    BoundaryEvent,
    CatchEvent,
    ConditionalDefinition,
    EventBasedGateway,
    InclusiveGateway,
    LinkDefinition,
    MessageDefinition,
    ParallelGateway,
    Process,
    SignalDefinition,
    StartEvent,
    SubProcess,
    ThrowEvent,
)
from tests.unit.core.drawing import after, drawn, feel, handler
from tests.unit.core.driving import HOUR, NOW

A, B = MessageDefinition(name="A"), MessageDefinition(name="B")


def link(name: str) -> tuple[LinkDefinition, ...]:
    return (LinkDefinition(name=name),)


# --- links ---


def test_a_link_goes_on_at_the_catch_of_its_name_and_completes(bench):
    process = drawn(
        "s > out\nin > u > e", ThrowEvent("out", definitions=link("L")), CatchEvent("in", definitions=link("L"))
    )
    run = bench(process)
    run.start()
    assert run.waiting == [("u", "task")]
    run.fire("u")
    assert run.trace == ["s", "out", "in", "u", "e"]
    assert run.outcome == "completed"


def test_several_throws_lead_to_one_catch_and_names_are_of_one_scope(bench):
    process = drawn(
        """
        s > fork > out1
        fork > sub > out2
        in > e
        sub: si > outi
        sub: ini > ei
        """,
        ParallelGateway("fork"),
        SubProcess("sub"),
        ThrowEvent("out1", definitions=link("L")),
        ThrowEvent("out2", definitions=link("L")),
        ThrowEvent("outi", definitions=link("L")),
        CatchEvent("in", definitions=link("L")),
        CatchEvent("ini", definitions=link("L")),
    )
    run = bench(process)
    run.start()
    assert run.trace.count("in") == 2
    assert run.trace.count("ini") == 1
    assert run.outcome == "completed"


def test_a_links_catch_is_no_start_of_a_scope_without_start_events(bench):
    process = drawn(
        "t > out\nin > e", ThrowEvent("out", definitions=link("L")), CatchEvent("in", definitions=link("L"))
    )
    run = bench(process)
    run.start()
    assert run.trace == ["t", "out", "in", "e"]


def test_a_link_into_an_inclusive_join_is_waited_for(bench):
    process = drawn(
        "s > fork > u > out\nfork > t > j > e\nin > j",
        ParallelGateway("fork"),
        InclusiveGateway("j"),
        ThrowEvent("out", definitions=link("L")),
        CatchEvent("in", definitions=link("L")),
    )
    run = bench(process)
    run.start()
    assert "j" not in run.trace
    run.fire("u")
    assert run.trace.count("j") == 1
    assert run.outcome == "completed"


def test_a_link_that_leads_nowhere_is_refused():
    process = drawn("s > out", ThrowEvent("out", definitions=link("L")))
    with pytest.raises(InvalidModel, match="'out' throws a link that no catch event of its scope has"):
        compile_process(process)


# --- multiple: any of several ---


def test_any_of_several_definitions_completes_a_catch_and_closes_the_others(bench):
    run = bench(drawn("s > c > e", CatchEvent("c", definitions=(A, SignalDefinition(name="S"), after("PT1H")))))
    run.start()
    assert len({arm.group for arm in run.held.values()}) == 1
    run.fire("c")
    assert run.outcome == "completed"
    assert run.held == {}


def test_any_of_several_definitions_fires_a_non_interrupting_boundary_again_and_again(bench):
    process = drawn("s > u > e\nb > t1", BoundaryEvent("b", definitions=(A, B), attached_to="u", interrupting=False))
    run = bench(process)
    run.start()
    first, second = [wait for wait, arm in run.held.items() if arm.node == "b"]
    run.deliver(first)
    run.deliver(second)
    run.deliver(first)
    assert run.trace.count("b") == 3
    run.fire("u")
    assert run.outcome == "completed"


# --- parallel multiple: all ---


def both(id: str, **options: object) -> CatchEvent:
    return CatchEvent(id, definitions=(A, B), parallel_multiple=True)


def test_all_definitions_must_occur_and_what_each_brought_is_there(bench):
    run = bench(drawn("s > c > e", both("c")))
    run.start()
    assert {arm.group for arm in run.held.values()} == {""}
    run.fire("c", {"a": 1})
    assert run.waiting == [("c", "message")]
    assert run.variables == {}
    assert run.willing()
    run.fire("c", {"b": 2})
    assert run.variables == {"a": 1, "b": 2}
    assert run.trace == ["s", "c", "e"]
    assert run.outcome == "completed"


def test_a_timer_and_a_condition_can_be_among_them(bench):
    condition = ConditionalDefinition(condition=feel("x > 1"))
    process = drawn("s > c > e", CatchEvent("c", definitions=(after("PT1H"), condition), parallel_multiple=True))
    run = bench(process)
    run.start(x=2)
    assert run.waiting == [("c", "timer")]
    run.pass_time(HOUR)
    assert run.trace == ["s", "c", "e"]


def test_an_interrupting_parallel_multiple_boundary_leaves_the_activity_alone_until_the_last(bench):
    process = drawn(
        "s > u > e\nb > t1",
        BoundaryEvent("b", definitions=(A, B), attached_to="u", parallel_multiple=True),
    )
    run = bench(process)
    run.start()
    run.fire("b", {"a": 1})
    assert run.waiting == [("b", "message"), ("u", "task")]
    run.fire("b")
    assert run.trace == ["s", "b", "t1"]
    assert run.variables == {"a": 1}
    assert run.held == {}


def test_a_non_interrupting_parallel_multiple_boundary_begins_anew_after_each_time(bench):
    process = drawn(
        "s > u > e\nb > t1",
        BoundaryEvent("b", definitions=(A, B), attached_to="u", parallel_multiple=True, interrupting=False),
    )
    run = bench(process)
    run.start()
    for times in (1, 2):
        run.fire("b")
        run.fire("b")
        assert run.trace.count("b") == times
        assert run.waiting == [("b", "message"), ("b", "message"), ("u", "task")]
    run.fire("u")
    assert run.outcome == "completed"
    assert run.held == {}


def test_a_parallel_multiple_start_of_an_event_sub_process_waits_for_all(bench):
    sub, start = handler("h", "hs", A, B, interrupting=False)
    start = StartEvent("hs", definitions=(A, B), interrupting=False, parallel_multiple=True)
    run = bench(drawn("s > u > e\nh\nh: hs > th", sub, start))
    run.start()
    for times in (1, 2):
        run.fire("hs", {f"a{times}": 1})
        run.fire("hs")
        assert run.trace.count("th") == times
    assert run.variables == {"a1": 1, "a2": 1}


def test_as_an_arm_of_a_gateway_only_all_of_them_win(bench):
    process = drawn(
        "s > g > c > e\ng > c2 > e2",
        EventBasedGateway("g"),
        both("c"),
        CatchEvent("c2", definitions=(after("PT1H"),)),
    )
    run = bench(process)
    run.start()
    run.fire("c")
    assert run.waiting == [("c", "message"), ("c2", "timer")]
    run.pass_time(HOUR)
    assert run.trace == ["s", "g", "c2", "e2"]
    assert run.held == {}


# --- at the start of a process ---------------------------------------------------------------------------------------

FIRST = MessageDefinition(name="Order", key=feel("number"))
SECOND = MessageDefinition(name="Paid", key=feel("number"))


def started_by_both() -> Process:
    return drawn("s > e", StartEvent("s", definitions=(FIRST, SECOND), parallel_multiple=True))


def test_a_parallel_multiple_start_is_armed_for_each_of_its_messages_which_name_each_other():
    """M50: the key that begins the conversation begins it for the other message too."""
    arms = [arm for arm, _ in start_arms(compile_process(started_by_both()), NOW)]
    assert [(arm.node, arm.key, arm.together) for arm in arms] == [
        ("s#0", message_key("Order"), ("Paid",)),
        ("s#1", message_key("Paid"), ("Order",)),
    ]


def test_a_parallel_multiple_start_begins_with_its_first_message_and_waits_for_the_others(bench):
    run = bench(started_by_both())
    run.start("s#1", number=7, paid=True)
    assert (run.trace, run.tokens, run.variables) == ([], [("s", "waiting")], {})
    assert [arm.key for arm in run.held.values()] == [message_key("Order", 7)]
    assert run.willing()
    run.fire("s", {"number": 7, "goods": "tea"})
    assert (run.trace, run.outcome) == (["s", "e"], "completed")
    assert run.variables == {"number": 7, "paid": True, "goods": "tea"}


def test_a_parallel_multiple_start_of_three_needs_all_three(bench):
    third = MessageDefinition(name="Sent", key=feel("number"))
    run = bench(drawn("s > e", StartEvent("s", definitions=(FIRST, SECOND, third), parallel_multiple=True)))
    run.start("s#0", number=7)
    assert len(run.held) == 2
    run.deliver(min(run.held), {"a": 1})
    assert (run.trace, len(run.held)) == ([], 1)
    run.deliver(min(run.held), {"b": 2})
    assert (run.outcome, run.variables) == ("completed", {"number": 7, "a": 1, "b": 2})


def test_a_parallel_multiple_start_that_cannot_wait_is_an_incident_and_a_retry_keeps_what_came_first(bench):
    run = bench(started_by_both())
    run.start("s#0", goods="tea")
    assert "correlation key of message 'Paid'" in run.cause
    run.retry()
    assert "correlation key of message 'Paid'" in run.cause
    run.assign(number=8)
    run.retry()
    assert [arm.key for arm in run.held.values()] == [message_key("Paid", 8)]
    run.fire("s", {"paid": True})
    assert run.outcome == "completed"
    assert run.variables == {"number": 8, "goods": "tea", "paid": True}


def test_a_parallel_multiple_start_in_an_incident_can_be_resolved(bench):
    run = bench(started_by_both())
    run.start("s#0", goods="tea")
    run.resolve(paid=True)
    assert (run.outcome, run.variables) == ("completed", {"goods": "tea", "paid": True})
