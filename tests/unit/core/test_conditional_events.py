"""Conditional events: asked when armed and when data changes, fired on false -> true (W16, X14)."""

from __future__ import annotations

from dataclasses import replace

from gobpm_ray.core.step import Trigger
from gobpm_ray.model.elements import (
    BoundaryEvent,
    CatchEvent,
    ConditionalDefinition,
    EventBasedGateway,
    Expression,
    MessageDefinition,
    ParallelGateway,
    ScriptTask,
)
from tests.unit.core.drawing import drawn, feel, handler
from tests.unit.core.driving import Bench


def when(text: str, language: str = "feel") -> ConditionalDefinition:
    return ConditionalDefinition(condition=Expression(text, language))


def caught(text: str = "x > 5", language: str = "feel"):
    return drawn("s > c > u > e", CatchEvent("c", definitions=(when(text, language),)))


def guarded(interrupting: bool, text: str = "x > 5"):
    return drawn(
        "s > u > e\nb > t1",
        BoundaryEvent("b", definitions=(when(text),), attached_to="u", interrupting=interrupting),
    )


def test_a_catch_waits_and_fires_when_an_operators_set_makes_it_true(bench):
    """W16, X14: released meanwhile."""
    run = bench(caught())
    run.start(x=1)
    assert run.waiting == [("c", "conditional")]
    assert run.willing()
    run.assign(x=4)
    assert run.waiting == [("c", "conditional")]
    run.assign(x=6)
    assert run.trace == ["s", "c"]
    assert run.waiting == [("u", "task")]
    assert run.state.head.conditions == 0


def test_true_when_armed_fires_at_once(bench):
    run = bench(caught())
    step = run.start(x=9)
    assert run.trace == ["s", "c"]
    assert [arm.node for arm in step.arms] == ["u"]


def test_data_that_is_not_there_yet_is_false(bench):
    run = bench(caught())
    run.start()
    assert run.waiting == [("c", "conditional")]
    run.assign(x=6)
    assert run.trace == ["s", "c"]


def test_a_commit_of_another_branch_makes_it_true(bench):
    process = drawn(
        "s > fork > c > e\nfork > u > tq > e2",
        ParallelGateway("fork"),
        CatchEvent("c", definitions=(when("x = 1"),)),
    )
    run = bench(process)
    run.start()
    run.fire("u", {"x": 1})
    assert run.trace.index("c") > run.trace.index("u")
    assert run.outcome == "completed"


def test_a_change_in_the_middle_of_a_step_is_seen_even_if_it_is_undone_before_its_end(bench):
    process = drawn(
        "s > u > c1 > c2 > u2\nh\nh: hs > th",
        ScriptTask("c1", script=feel("1"), result_variable="x"),
        ScriptTask("c2", script=feel("0"), result_variable="x"),
        *handler("h", "hs", when("x = 1"), interrupting=False),
    )
    run = bench(process)
    run.start(x=0)
    run.fire("u")
    assert run.trace == ["s", "u", "c1", "hs", "c2", "th", "h"]


def test_a_non_interrupting_boundary_fires_on_each_rise_and_not_while_it_stays_true(bench):
    """W16."""
    run = bench(guarded(False))
    run.start(x=0)
    run.assign(x=6)
    run.assign(x=7)
    run.assign(y=1)
    assert run.trace.count("b") == 1
    run.assign(x=0)
    run.assign(x=8)
    assert run.trace.count("b") == 2
    run.fire("u")
    assert run.outcome == "completed"
    assert run.held == {}


def test_an_interrupting_boundary_ends_its_activity(bench):
    run = bench(guarded(True))
    run.start(x=0)
    assert run.waiting == [("b", "conditional"), ("u", "task")]
    run.assign(x=6)
    assert run.trace == ["s", "b", "t1"]
    assert run.held == {}
    assert run.outcome == "completed"


def test_a_boundary_that_is_true_when_the_activity_begins_interrupts_it_at_once(bench):
    run = bench(guarded(True))
    step = run.start(x=6)
    assert run.trace == ["s", "b", "t1"]
    assert step.arms == []


def test_the_activitys_own_completion_comes_first(bench):
    run = bench(guarded(True))
    run.start(x=0)
    run.fire("u", {"x": 6})
    assert run.trace == ["s", "u", "e"]


def test_a_completion_that_is_delivered_behind_the_change_is_overtaken(bench):
    run = bench(guarded(True))
    run.start(x=0)
    step = run.trigger(Trigger("set", "set", values={"x": 6}), run.delivered(run.wait("u")))
    assert [trigger.kind for trigger in step.overtaken] == ["task"]


def test_an_event_sub_process_starts_when_its_condition_becomes_true(bench):
    process = drawn(
        "s > u > e\nh\nh: hs > uh > eh",
        *handler("h", "hs", when("x > 5")),
    )
    run = bench(process)
    run.start(x=1)
    assert run.waiting == [("hs", "conditional"), ("u", "task")]
    run.assign(x=6)
    assert run.waiting == [("uh", "task")]
    run.fire("uh")
    assert run.outcome == "completed"


def test_an_interrupting_event_sub_process_that_is_true_at_once_lets_no_token_begin(bench):
    process = drawn("s > t > e\nh\nh: hs > th > eh", *handler("h", "hs", when("x > 5")))
    run = bench(process)
    run.start(x=6)
    assert run.trace == ["hs", "th", "eh", "h"]
    assert run.outcome == "completed"


def test_an_arm_of_an_event_based_gateway_can_be_a_condition(bench):
    process = drawn(
        "s > g > c > e\ng > m > e2",
        EventBasedGateway("g"),
        CatchEvent("c", definitions=(when("x > 5"),)),
        CatchEvent("m", definitions=(MessageDefinition(name="M"),)),
    )
    run = bench(process)
    run.start(x=0)
    assert run.waiting == [("c", "conditional"), ("m", "message")]
    run.assign(x=6)
    assert run.trace == ["s", "g", "c", "e"]
    assert run.held == {}


def test_a_condition_that_is_no_truth_is_an_incident_when_armed_and_a_retry_asks_again(bench):
    run = bench(caught("x"))
    run.start(x=3)
    assert run.waiting == [("c", "incident")]
    assert "expected true or false, got a int" in run.cause
    run.assign(x=True)
    run.retry()
    assert run.trace == ["s", "c"]


def test_a_condition_that_fails_later_stops_the_token_that_waits_for_it_alone(bench):
    run = bench(caught("x"))
    run.start(x=False)
    run.assign(x=3)
    assert run.waiting == [("c", "incident")]
    run.assign(x=False)
    run.retry()
    assert run.waiting == [("c", "conditional")]
    run.assign(x=True)
    assert run.trace == ["s", "c"]


def test_a_boundary_condition_that_fails_later_leaves_its_activity_alone_and_history_says_why(bench):
    run = bench(guarded(True, "x"))
    run.start(x=False)
    run.assign(x=3)
    assert run.waiting == [("b", "conditional"), ("u", "task")]
    [entry] = [entry for entry in run.history if entry.event == "unreadable"]
    assert entry.node == "b"
    assert "expected true or false" in entry.detail
    run.assign(x=True)
    assert run.trace == ["s", "b", "t1"]


def test_the_failure_of_a_job_keeps_its_conditional_boundary(bench):
    process = drawn("s > w > e\nb > t1", BoundaryEvent("b", definitions=(when("x > 5"),), attached_to="w"))
    run = bench(process, jobs=lambda _: True)
    run.start(x=0)
    failed = replace(run.delivered(run.wait("w")), kind="failed", cause="no")
    run.trigger(failed)
    assert run.waiting == [("b", "conditional"), ("w", "incident")]
    run.assign(x=6)
    assert run.trace == ["s", "b", "t1"]
    assert run.state.head.incidents == 0


def test_a_wake_that_changes_no_data_does_not_load_what_waits_for_conditions():
    process = drawn(
        "s > fork > c > e\nfork > u > u2 > e2",
        ParallelGateway("fork"),
        CatchEvent("c", definitions=(when("x = 1"),)),
    )
    run = Bench(process, "partial")
    run.start()
    run.fire("u")
    assert run.reloads == 0
    run.fire("u2", {"x": 1})
    assert run.reloads == 1
    assert run.outcome == "completed"


def test_a_condition_in_a_loop_without_a_wait_is_stopped_as_endless(bench):
    process = drawn("s > tm > c > tn > tm", CatchEvent("c", definitions=(when("true"),)))
    run = bench(process, max_steps=50)
    run.start()
    assert "endless loop" in run.cause
