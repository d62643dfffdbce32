"""Errors and escalations: who throws, who catches, innermost first, and what becomes of those that nobody catches."""

from __future__ import annotations

import pytest

from gobpm_ray.core.state import TrackState
from gobpm_ray.core.step import Trigger
from gobpm_ray.model.elements import (
    BoundaryEvent,
    EndEvent,
    ErrorDefinition,
    EscalationDefinition,
    Expression,
    MessageDefinition,
    MultiInstance,
    ScriptTask,
    SubProcess,
    TerminateDefinition,
    ThrowEvent,
    WorkTask,
)
from tests.unit.core.drawing import after, drawn, feel, handler
from tests.unit.core.driving import HOUR


def caught_at(*codes: str, boundary_of: str = "w"):
    """A service task with an error boundary for each code."""
    lines = ["s > w > e", *(f"b{index} > t{index} > x{index}" for index, _ in enumerate(codes))]
    given = [
        BoundaryEvent(f"b{i}", definitions=(ErrorDefinition("error", c),), attached_to=boundary_of)
        for i, c in enumerate(codes)
    ]
    return drawn("\n".join(lines), *given, *(EndEvent(f"x{i}") for i, _ in enumerate(codes)))


# --- errors of work ---


def test_an_error_of_a_callable_leaves_by_the_boundary_that_names_its_code(bench):
    """BPMN 13.5.2; the catch-all stands first and still loses."""
    run = bench(caught_at("", "E1", "E2"))
    run.start()
    run.error("w", "E1", reason="broke")
    assert run.trace == ["s", "b1", "t1", "x1"]
    assert run.variables == {"reason": "broke"}
    assert run.outcome == "completed"
    assert run.last.cancelled == [], "the effect has reported: there is nothing to stop"


def test_a_code_that_no_boundary_names_goes_to_the_one_that_catches_all(bench):
    run = bench(caught_at("E1", ""))
    run.start()
    run.error("w", "other")
    assert run.trace == ["s", "b1", "t1", "x1"]


def test_an_error_of_a_job_is_caught_and_its_timers_are_withdrawn(bench):
    process = drawn(
        "s > w > e\nb > x\nlate > x2",
        BoundaryEvent("b", definitions=(ErrorDefinition("error", "E"),), attached_to="w"),
        BoundaryEvent("late", definitions=(after("PT1H"),), attached_to="w"),
        EndEvent("x"),
        EndEvent("x2"),
    )
    run = bench(process, jobs=lambda _: True)
    run.start()
    run.error("w", "E")
    assert run.trace == ["s", "b", "x"]
    assert run.held == {}


def test_an_error_boundary_arms_nothing_and_does_not_race(bench):
    """D13."""
    run = bench(caught_at("E"), jobs=lambda _: True)
    run.start()
    assert [(arm.node, arm.group) for arm in run.held.values()] == [("w", "")]


@pytest.mark.parametrize("job", [False, True])
def test_an_error_that_nobody_catches_is_an_incident_of_the_task_and_its_boundaries_stay_armed(bench, job):
    """X1; retry does the work again."""
    process = drawn(
        "s > w > e\nlate > x",
        BoundaryEvent("late", definitions=(after("PT1H"),), attached_to="w"),
        EndEvent("x"),
    )
    run = bench(process, jobs=lambda _: job)
    run.start()
    run.error("w", "E9", cause_text="no")
    assert "error 'E9'" in run.cause
    assert run.waiting == [("late", "timer"), ("w", "incident")]
    run.retry()
    if job:
        run.fire("w")
    else:
        run.done("w")
    assert run.trace == ["s", "w", "e"]
    assert run.outcome == "completed"


def test_an_error_reported_after_the_task_was_interrupted_is_overtaken(bench):
    process = drawn(
        "s > w > e\nb > x\nlate > u",
        BoundaryEvent("b", definitions=(ErrorDefinition("error", "E"),), attached_to="w"),
        BoundaryEvent("late", definitions=(after("PT1H"),), attached_to="w"),
        EndEvent("x"),
    )
    run = bench(process)
    run.start()
    key = next(iter(run.calls))
    run.pass_time(HOUR)
    run.trigger(Trigger("r", "error", key, code="E"))
    assert run.waiting == [("u", "task")]
    assert "overtaken" in run.events


# --- error ends ---


def nested_error(*boundaries: BoundaryEvent, inner: str = "si > x"):
    lines = f"s > sub > e\nsub: {inner}\n" + "\n".join(f"{b.id} > t_{b.id}" for b in boundaries)
    return drawn(lines, SubProcess("sub"), EndEvent("x", definitions=(ErrorDefinition("error", "E"),)), *boundaries)


def test_an_error_end_leaves_the_sub_process_by_its_boundary(bench):
    run = bench(nested_error(BoundaryEvent("b", definitions=(ErrorDefinition("error", "E"),), attached_to="sub")))
    run.start()
    assert run.trace == ["s", "si", "x", "b", "t_b"]
    assert run.outcome == "completed"
    assert set(run.parts) == {"h", "s0"}


def test_an_error_end_takes_the_other_tokens_of_the_scope_with_it(bench):
    process = nested_error(
        BoundaryEvent("b", definitions=(ErrorDefinition("error", ""),), attached_to="sub"),
        inner="si > tf > u > x\nsub: tf > w > e2",
    )
    run = bench(process)
    run.start()
    call = next(iter(run.calls))
    run.fire("u")
    assert run.last.cancelled == [call]
    assert run.trace[-3:] == ["x", "b", "t_b"]
    assert run.outcome == "completed"


def test_the_innermost_catcher_wins(bench):
    """The inner scope's event sub-process before the boundary over it, that before the outer scope's."""
    process = drawn(
        """
        s > outer > e
        outer: so > sub > eo
        sub: si > u > x
        sub: h
        h: hs > th > eh
        outer: inner > t1
        outerb > t2
        """,
        SubProcess("outer"),
        SubProcess("sub"),
        *handler("h", "hs", ErrorDefinition("error", "E")),
        EndEvent("x", definitions=(ErrorDefinition("error", "E"),)),
        BoundaryEvent("inner", definitions=(ErrorDefinition("error", "E"),), attached_to="sub"),
        BoundaryEvent("outerb", definitions=(ErrorDefinition("error", "E"),), attached_to="outer"),
    )
    run = bench(process)
    run.start()
    assert run.willing()
    run.fire("u")
    assert run.trace == ["s", "so", "si", "u", "x", "hs", "th", "eh", "h", "sub", "eo", "outer", "e"]
    assert run.outcome == "completed"


def test_an_error_that_the_handler_throws_is_not_caught_by_its_own_scope_again(bench):
    process = drawn(
        """
        s > sub > e
        sub: si > x
        sub: h
        h: hs > x2
        b > t1
        """,
        SubProcess("sub"),
        *handler("h", "hs", ErrorDefinition("error", "")),
        EndEvent("x", definitions=(ErrorDefinition("error", "E"),)),
        EndEvent("x2", definitions=(ErrorDefinition("error", "E"),)),
        BoundaryEvent("b", definitions=(ErrorDefinition("error", "E"),), attached_to="sub"),
    )
    run = bench(process)
    run.start()
    assert run.trace == ["s", "si", "x", "hs", "x2", "b", "t1"]


def test_an_uncaught_error_end_is_an_incident_that_an_operator_can_go_past(bench):
    """Design section 11: it completes nothing."""
    run = bench(nested_error())
    run.start()
    assert run.waiting == [("x", "incident")]
    assert run.trace == ["s", "si"]
    assert "error 'E' thrown by endEvent 'x' is caught by nobody" in run.cause
    run.retry()
    assert run.waiting == [("x", "incident")]
    run.resolve()
    assert run.trace == ["s", "si", "x", "sub", "e"]
    assert run.outcome == "completed"


def test_error_and_escalation_starts_do_not_run_by_themselves(bench):
    process = drawn(
        """
        s > u > e
        h1
        h1: s1 > t1
        h2
        h2: s2 > t2
        """,
        *handler("h1", "s1", ErrorDefinition("error", "")),
        *handler("h2", "s2", EscalationDefinition("escalation", "")),
    )
    run = bench(process)
    run.start()
    run.fire("u")
    assert run.trace == ["s", "u", "e"]
    assert run.outcome == "completed"


def test_an_error_in_one_round_of_an_iteration_leaves_the_whole_iteration(bench):
    process = drawn(
        "s > w > e\nb > t1",
        WorkTask("w", loop=MultiInstance(cardinality=feel("3"))),
        BoundaryEvent("b", definitions=(ErrorDefinition("error", "E"),), attached_to="w"),
    )
    run = bench(process)
    run.start()
    assert len(run.calls) == 3
    run.error("w", "E")
    assert run.trace == ["s", "b", "t1"]
    assert len(run.last.cancelled) == 2
    assert run.outcome == "completed"


def test_rounds_of_an_iterated_sub_process_do_not_listen_in_its_place(bench):
    """The scope of a round carries the activity's id; only its inside has the event sub-process."""
    process = drawn(
        """
        s > sub > e
        sub: si > w > ei
        sub: h
        h: hs > x
        b > t1
        """,
        SubProcess("sub", loop=MultiInstance(cardinality=feel("2"))),
        *handler("h", "hs", ErrorDefinition("error", "")),
        EndEvent("x", definitions=(ErrorDefinition("error", "F"),)),
        BoundaryEvent("b", definitions=(ErrorDefinition("error", "F"),), attached_to="sub"),
    )
    run = bench(process)
    run.start()
    run.error("w", "E")
    assert run.trace == ["s", "si", "si", "hs", "x", "b", "t1"]
    assert run.outcome == "completed"


# --- a called instance ---


def test_an_uncaught_error_of_a_called_instance_ends_it_and_tells_its_caller(bench):
    """BPMN 13.5.2: the call activity throws on."""
    run = bench(nested_error())
    run.state.caller = "parent\x1e1:call:0:2"
    run.start(a=1)
    [send] = run.sends
    assert (send.kind, send.to, send.wait, send.code) == ("child", "parent", "1:call:0:2", "E")
    assert run.outcome == "completed"


# --- escalation ---


def escalating(interrupting: bool, code: str = "N"):
    return drawn(
        """
        s > sub > e
        sub: si > note > u > ei
        b > u2 > e2
        """,
        SubProcess("sub"),
        ThrowEvent("note", definitions=(EscalationDefinition("escalation", "N"),)),
        BoundaryEvent(
            "b", definitions=(EscalationDefinition("escalation", code),), attached_to="sub", interrupting=interrupting
        ),
    )


def test_a_non_interrupting_escalation_boundary_lets_the_thrower_go_on(bench):
    run = bench(escalating(False))
    run.start()
    assert run.waiting == [("u", "task"), ("u2", "task")]
    assert run.trace == ["s", "si", "b", "note"]
    run.fire("u")
    run.fire("u2")
    assert run.outcome == "completed"


def test_an_interrupting_escalation_boundary_ends_the_thrower(bench):
    run = bench(escalating(True, ""))
    run.start()
    assert run.waiting == [("u2", "task")]
    assert run.trace == ["s", "si", "note", "b"]  # it has thrown, and nothing behind it comes


def test_an_escalation_that_nobody_catches_is_noted_and_the_flow_goes_on(bench):
    run = bench(escalating(True, "other"))
    run.start()
    assert run.waiting == [("u", "task")]
    assert [(entry.node, entry.detail) for entry in run.history if entry.event == "uncaught"] == [
        ("note", "escalation 'N'")
    ]


def test_an_escalation_start_runs_its_handler_beside_the_thrower_as_often_as_thrown(bench):
    process = drawn(
        """
        s > n1 > n2 > u > e
        h
        h: hs > uh > eh
        """,
        ThrowEvent("n1", definitions=(EscalationDefinition("escalation", "N"),)),
        ThrowEvent("n2", definitions=(EscalationDefinition("escalation", "N"),)),
        *handler("h", "hs", EscalationDefinition("escalation", ""), interrupting=False),
    )
    run = bench(process)
    run.start()
    assert run.waiting == [("u", "task"), ("uh", "task"), ("uh", "task")]
    run.fire("u")
    assert run.outcome == ""
    run.fire("uh")
    run.fire("uh")
    assert run.outcome == "completed"


def test_a_handler_that_escalates_does_not_call_itself(bench):
    process = drawn(
        """
        s > n1 > u > e
        h
        h: hs > n2 > eh
        """,
        ThrowEvent("n1", definitions=(EscalationDefinition("escalation", "N"),)),
        ThrowEvent("n2", definitions=(EscalationDefinition("escalation", "N"),)),
        *handler("h", "hs", EscalationDefinition("escalation", ""), interrupting=False),
    )
    run = bench(process)
    run.start()
    assert run.trace == ["s", "hs", "n1", "n2", "eh", "h"]
    assert run.waiting == [("u", "task")]


def test_an_escalation_end_is_caught_and_its_token_ends(bench):
    process = drawn(
        "s > sub > e\nsub: si > x\nb > t1 > e1",
        SubProcess("sub"),
        EndEvent("x", definitions=(EscalationDefinition("escalation", "N"),)),
        BoundaryEvent(
            "b", definitions=(EscalationDefinition("escalation", "N"),), attached_to="sub", interrupting=False
        ),
    )
    run = bench(process)
    run.start()
    assert sorted(run.trace) == sorted(["s", "si", "b", "x", "t1", "sub", "e1", "e"])
    assert run.outcome == "completed"


def test_a_job_that_escalates_stays_open_and_its_boundary_runs_beside_it(bench):
    process = drawn(
        "s > w > e\nb > t1",
        BoundaryEvent("b", definitions=(EscalationDefinition("escalation", "N"),), attached_to="w", interrupting=False),
    )
    run = bench(process, jobs=lambda _: True)
    run.start()
    run.escalate("w", "N", level=2)
    assert run.trace == ["s", "b", "t1"]
    assert run.waiting == [("w", "job")]
    assert run.variables == {"level": 2}
    run.fire("w")
    assert run.outcome == "completed"


def test_an_interrupting_escalation_of_a_running_call_stops_the_call(bench):
    process = drawn(
        "s > w > e\nb > t1",
        BoundaryEvent("b", definitions=(EscalationDefinition("escalation", "N"),), attached_to="w"),
    )
    run = bench(process)
    run.start()
    key = next(iter(run.calls))
    run.escalate("w", "N")
    assert run.last.cancelled == [key]
    assert run.outcome == "completed"


# --- several definitions, and what vanished elsewhere ---


def test_an_end_with_several_definitions_throws_all_of_them(bench):
    process = drawn(
        "s > sub > e\nsub: si > x\nb > t1\nb2 > t2",
        SubProcess("sub"),
        EndEvent(
            "x",
            definitions=(
                MessageDefinition(name="M"),
                EscalationDefinition("escalation", "N"),
                ErrorDefinition("error", "E"),
            ),
        ),
        BoundaryEvent(
            "b", definitions=(EscalationDefinition("escalation", "N"),), attached_to="sub", interrupting=False
        ),
        BoundaryEvent("b2", definitions=(ErrorDefinition("error", "E"),), attached_to="sub"),
    )
    run = bench(process)
    run.start()
    assert [send.name for send in run.sends] == ["M"]
    assert [node for node in run.trace if node.startswith("b")] == ["b", "b2"]
    assert run.outcome == "completed"


def test_an_error_thrown_after_an_escalation_and_a_release_is_caught(bench):
    """A76: nothing vanishes in between."""
    process = drawn(
        """
        s > sub > e
        sub: si > note > u > x
        sub: h
        h: hs > uh > eh
        b > t1
        """,
        SubProcess("sub"),
        ThrowEvent("note", definitions=(EscalationDefinition("escalation", "N"),)),
        EndEvent("x", definitions=(ErrorDefinition("error", "E"),)),
        *handler("h", "hs", EscalationDefinition("escalation", "N"), interrupting=False),
        BoundaryEvent("b", definitions=(ErrorDefinition("error", "E"),), attached_to="sub"),
    )
    run = bench(process)
    run.start()
    assert run.willing()
    run.fire("u")
    assert run.trace == ["s", "si", "hs", "note", "u", "x", "b", "t1"]
    assert run.held == {}
    assert run.outcome == "completed"


def test_a_terminate_end_in_a_handler_ends_only_the_handler(bench):
    process = drawn(
        """
        s > u > e
        h
        h: hs > tf > x
        h: tf > u2
        """,
        *handler("h", "hs", MessageDefinition(name="M"), interrupting=False),
        EndEvent("x", definitions=(TerminateDefinition(),)),
    )
    run = bench(process)
    run.start()
    run.fire("hs")
    assert ("u", "task") in run.waiting
    assert ("u2", "task") not in run.waiting
    run.fire("u")
    assert run.outcome == "completed"


def test_an_error_boundary_over_a_task_that_cannot_be_evaluated_does_not_hide_the_incident(bench):
    """A fault of the model is no BPMN error."""
    process = drawn(
        "s > c > e\nb > t1",
        ScriptTask("c", script=Expression("r = 1 / 0", "python")),
        BoundaryEvent("b", definitions=(ErrorDefinition("error", ""),), attached_to="c"),
    )
    run = bench(process)
    run.start()
    assert run.waiting == [("c", "incident")]
    assert run.state.tracks["1"].state is TrackState.FAILED
