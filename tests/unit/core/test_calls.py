"""Call activities: starting another process as an instance of its own, and what its end means for the caller."""

from __future__ import annotations

import pytest

from gobpm_ray.core.advance import advance
from gobpm_ray.core.calling import caller
from gobpm_ray.core.program import compile_process
from gobpm_ray.core.state import InstanceState
from gobpm_ray.core.step import Trigger
from gobpm_ray.model.builder import ProcessBuilder, after
from gobpm_ray.model.elements import (
    BoundaryEvent,
    CallActivity,
    ErrorDefinition,
    EscalationDefinition,
    Expression,
    Mapping,
    SubProcess,
    literal,
)
from tests.unit.core.drawing import drawn
from tests.unit.core.driving import HOUR, NOW, Bench


def calling(**options: object) -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start("s").call("c", **({"process": "child"} | options)).end("e")  # type: ignore[arg-type]
    return process


def ended(run: Bench, values: dict[str, object] | None = None, *, code: str = "", cause: str = "") -> None:
    """The called instance has ended."""
    wait = run.wait("c")
    trigger = run.delivered(wait, values)
    run.trigger(Trigger(trigger.id, "child", wait, values=trigger.values, code=code, cause=cause))


# --- calling -----------------------------------------------------------------------------------------------------


def test_a_call_starts_an_instance_of_its_own_and_waits_for_it(bench):
    run = bench(calling())
    run.start(x=1)
    [send] = run.sends
    assert (send.id, send.kind, send.to, send.process, send.version) == ("i1:1:c:2", "start", "i1:1:c:2", "child", 0)
    assert (send.values, send.wait) == ({"x": 1}, run.wait("c"))
    assert run.waiting == [("c", "child")]
    ended(run, {"y": 2})
    assert run.trace == ["s", "c", "e"]
    assert run.variables == {"x": 1, "y": 2}


def test_the_id_of_a_called_instance_has_no_slash_whatever_its_node_is_called(bench):
    process = ProcessBuilder("p")
    process.start("s").call("a/b", process="child").end("e")
    run = bench(process)
    run.start()
    assert [send.to for send in run.sends] == ["i1:1:a_b:2"]


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({}, {"x": 1, "y": 2}),
        ({"inherit": False}, {}),
        ({"inputs": {"z": "=x + y"}}, {"z": 3}),
        ({"inputs": {"z": "=x + y"}, "inherit": False}, {"z": 3}),
    ],
)
def test_what_a_called_instance_is_given(bench, options, given):
    run = bench(calling(**options))
    run.start(x=1, y=2)
    assert run.sends[0].values == given


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, {"a": 1, "b": 2}),
        ({"propagate": False}, {}),
        ({"outputs": {"sum": "=a + b"}}, {"sum": 3}),
        ({"outputs": {"sum": "=a + b"}, "propagate": False}, {"sum": 3}),
    ],
)
def test_what_its_end_leaves_in_the_caller(bench, options, left):
    run = bench(calling(**options))
    run.start()
    ended(run, {"a": 1, "b": 2})
    assert run.variables == left


@pytest.mark.parametrize(("binding", "version"), [("latest", 0), ("version", 3), ("deployment", 7)])
def test_a_call_names_the_version_that_its_binding_says(binding, version):
    call = CallActivity("c", called=literal("child"), binding=binding, version=3)
    program = compile_process(drawn("s > c > e", call), pins={"c": 7})
    step = advance(program, InstanceState("i1", "p", 1), [Trigger("d", "start")], NOW)
    assert [(send.process, send.version) for send in step.sends] == [("child", version)]


def test_what_is_called_and_its_business_key_may_be_expressions(bench):
    run = bench(calling(process="=kind", business_key="=order.number"))
    run.start(kind="other", order={"number": 5})
    assert (run.sends[0].process, run.sends[0].business_key) == ("other", "5")


@pytest.mark.parametrize("kind", [None, "", [1]])
def test_a_call_of_nothing_is_an_incident_and_starts_nothing(bench, kind):
    run = bench(calling(process="=kind"))
    run.start(kind=kind)
    assert "'c'" in run.cause
    assert run.sends == []
    run.assign(kind="child")
    run.retry()
    assert run.waiting == [("c", "child")]


# --- ends that are none ------------------------------------------------------------------------------------------


def test_a_called_instance_that_was_cancelled_is_an_incident_of_its_caller(bench):
    run = bench(calling())
    run.start()
    ended(run, cause="terminated")
    assert run.cause == "the called instance 'i1:1:c:2' was cancelled"
    run.retry()
    assert [send.to for send in run.sends] == ["i1:1:c:2", run.sends[1].to]
    assert run.sends[0].to != run.sends[1].to
    ended(run)
    assert run.outcome == "completed"


def test_a_call_that_could_not_be_made_is_an_incident_that_says_why(bench):
    """S83."""
    process = calling()
    process.boundary("c", "b", timer=after("PT1H")).end("late")
    run = bench(process)
    run.start()
    wait = run.wait("c")
    trigger = run.delivered(wait)
    run.trigger(Trigger(trigger.id, "failed", wait, cause="calls nest deeper than 100"))
    assert run.cause == "calls nest deeper than 100"
    assert run.deadline("b") == HOUR
    run.pass_time(2 * HOUR)
    assert run.trace == ["s", "b", "late"]


def test_a_failed_call_may_be_resolved_with_what_it_would_have_given(bench):
    run = bench(calling())
    run.start()
    ended(run, cause="terminated")
    run.resolve(y=1)
    assert (run.trace, run.variables) == (["s", "c", "e"], {"y": 1})


@pytest.mark.parametrize(("code", "caught"), [("E1", True), ("", True), ("E2", False)])
def test_an_error_that_leaves_the_called_instance_goes_on_at_the_call_activity(bench, code, caught):
    boundary = BoundaryEvent("b", attached_to="c", definitions=(ErrorDefinition(code=code),))
    process = drawn("s > c > e\nb > t > e2", CallActivity("c", called=literal("child")), boundary)
    run = bench(process)
    run.start()
    ended(run, {"why": "full"}, code="E1", cause="")
    if caught:
        assert run.trace == ["s", "b", "t", "e2"]
        assert run.variables == {"why": "full"}
        assert [send.kind for send in run.sends] == ["start"]
    else:
        assert "error 'E1'" in run.cause
        run.retry()
        assert run.waiting == [("c", "child")]


def test_an_escalation_leaves_the_call_and_its_end_still_counts(bench):
    boundary = BoundaryEvent("b", attached_to="c", definitions=(EscalationDefinition(code="L"),), interrupting=False)
    run = bench(drawn("s > c > e\nb > t > e2", CallActivity("c", called=literal("child")), boundary))
    run.start()
    wait = run.wait("c")
    for _ in range(2):
        run.trigger(Trigger(run.delivery_id(), "escalation", wait, values={"n": 1}, code="L"))
    assert run.trace == ["s", "b", "t", "e2", "b", "t", "e2"]
    assert run.waiting == [("c", "child")]
    ended(run)
    assert run.outcome == "completed"


def test_an_interrupting_escalation_cancels_the_call(bench):
    boundary = BoundaryEvent("b", attached_to="c", definitions=(EscalationDefinition(),))
    run = bench(drawn("s > c > e\nb > t > e2", CallActivity("c", called=literal("child")), boundary))
    run.start()
    run.trigger(Trigger(run.delivery_id(), "escalation", run.wait("c"), code="L"))
    assert run.trace == ["s", "b", "t", "e2"]
    assert [(send.kind, send.to) for send in run.sends[1:]] == [("cancel", "i1:1:c:2")]


# --- taking the token away ---------------------------------------------------------------------------------------


def test_an_interrupting_boundary_cancels_what_was_called(bench):
    process = calling()
    process.boundary("c", "b", message="Stop").end("stopped")
    run = bench(process)
    run.start()
    groups = {arm.group for arm in run.held.values()}
    assert len(groups) == 1
    run.fire("b")
    assert [(send.kind, send.to, send.id) for send in run.sends[1:]] == [("cancel", "i1:1:c:2", "i1:1:c:2:cancel")]
    assert run.outcome == "completed"


def test_a_cancelled_caller_cancels_every_call_also_inside_of_sub_processes(bench):
    """S83."""
    inner = CallActivity("c2", called=literal("child"))
    process = drawn(
        "s > c > e\ns > sub > e\nsub: si > c2 > ei",
        CallActivity("c", called=literal("child")),
        SubProcess("sub"),
        inner,
    )
    run = bench(process)
    run.start()
    run.cancel()
    assert sorted(send.to for send in run.sends if send.kind == "cancel") == sorted(
        send.to for send in run.sends if send.kind == "start"
    )
    assert run.outcome == "terminated"


def test_a_call_that_is_interrupted_in_the_step_that_makes_it_is_never_made(bench):
    process = ProcessBuilder("p")
    fork = process.start("s").parallel("f")
    fork.call("c", process="child").end("e")
    process.at("f").end("stop", terminate=True)
    run = bench(process)
    run.start()
    assert run.sends == []
    assert run.outcome == "completed"


def test_an_end_that_was_overtaken_by_a_boundary_is_noted_and_changes_nothing(bench):
    process = calling()
    process.boundary("c", "b", message="Stop").user_task("u").end("stopped")
    run = bench(process)
    run.start()
    late = run.wait("c")
    run.fire("b")
    step = run.trigger(Trigger("late", "child", late, values={"y": 2}))
    assert [trigger.id for trigger in step.overtaken] == ["late"]
    assert run.variables == {}


# --- iterating ---------------------------------------------------------------------------------------------------


def test_a_call_for_each_item_is_an_instance_for_each_item(bench):
    process = ProcessBuilder("p")
    process.start("s").call("c", process="child", inputs={"x": "=item"}).multi_instance(
        collection="items", item="item", output="out", output_item="result"
    ).end("e")
    run = bench(process)
    run.start(items=[1, 2, 3])
    assert [send.values for send in run.sends] == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert len({send.to for send in run.sends}) == 3
    waits = list(run.held)
    for wait, send in reversed(list(zip(waits, run.sends, strict=True))):
        run.deliver(wait, {"result": send.values["x"] * 10})
    assert run.variables == {"items": [1, 2, 3], "out": [10, 20, 30]}


def test_a_caller_that_only_waits_for_its_call_is_released(bench):
    """X14."""
    run = bench(calling())
    run.start()
    assert run.willing()


# --- the called side ---------------------------------------------------------------------------------------------


def called(process: ProcessBuilder) -> Bench:
    run = Bench(process)
    run.state.caller = caller("parent", "1:c:0:2")
    return run


def test_a_called_instance_answers_its_callers_wait_as_it_ends():
    process = ProcessBuilder("p")
    process.start("s").script_task("t", script=Expression("x + 1", "feel"), result="y").end("e")
    run = called(process)
    run.start(x=1)
    [send] = run.sends
    assert (send.id, send.kind, send.to, send.wait) == ("i1:end", "child", "parent", "1:c:0:2")
    assert (send.values, send.code, send.cause) == ({"x": 1, "y": 2}, "", "")


def test_a_called_instance_that_is_cancelled_says_so():
    process = ProcessBuilder("p")
    process.start("s").user_task("u").end("e")
    run = called(process)
    run.start()
    run.cancel()
    assert [(send.kind, send.cause) for send in run.sends] == [("child", "terminated")]


def test_nobody_is_told_of_the_end_of_what_nobody_called(bench):
    run = bench(calling())
    run.start()
    ended(run)
    assert [send.kind for send in run.sends] == ["start"]


def test_variables_of_a_call_in_a_sub_process_go_where_they_belong(bench):
    sub = SubProcess("sub", inputs=(Mapping("x", literal("inner")),))
    process = drawn("s > sub > e\nsub: si > c > ei", sub, CallActivity("c", called=literal("child")))
    run = bench(process)
    run.start(x="outer")
    assert run.sends[0].values == {"x": "inner"}
    ended(run, {"x": "changed", "y": 1})
    assert run.variables == {"x": "outer", "y": 1}
