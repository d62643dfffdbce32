"""Boundary events over everything that parks, in both modes."""

from __future__ import annotations

import pytest

from gobpm_ray.core.step import Trigger
from gobpm_ray.model.builder import ProcessBuilder, after, every
from gobpm_ray.model.elements import Expression
from tests.unit.core.driving import DAY, HOUR, MINUTE, NOW


def guarded(interrupting: bool = True, **event: object) -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start("s").user_task("u").end("normal")
    process.boundary("u", "b", interrupting=interrupting, **event).task("handler").end("exception")  # type: ignore[arg-type]
    return process


def test_an_interrupting_timer_withdraws_the_task_and_runs_the_exception_flow(bench):
    """W5."""
    run = bench(guarded(timer=after("PT24H")))
    run.start()
    assert run.waiting == [("b", "timer"), ("u", "task")]
    run.pass_time(25 * HOUR)
    assert run.trace == ["s", "b", "handler", "exception"]
    assert run.outcome == "completed"
    assert run.held == {}


def test_completing_in_time_withdraws_the_boundary_and_it_never_fires_later(bench):
    """W6."""
    run = bench(guarded(timer=after("PT24H")))
    run.start()
    timer = run.wait("b")
    run.pass_time(23 * HOUR)
    run.fire("u")
    assert run.trace == ["s", "u", "normal"]
    assert run.trigger(Trigger("late", "timer", timer)).overtaken


def test_the_activity_and_its_interrupting_boundaries_race_in_one_group(bench):
    process = guarded(timer=after("PT24H"))
    process.boundary("u", "m", message="M").end("e2")
    process.boundary("u", "n", message="N", interrupting=False).end("e3")
    run = bench(process)
    run.start()
    groups = {arm.node: (arm.group, arm.repeat) for arm in run.held.values()}
    assert groups == {"u": ("1:2", False), "b": ("1:2", False), "m": ("1:2", False), "n": ("", True)}


def test_an_activity_with_only_non_interrupting_boundaries_is_not_withdrawn_by_them(bench):
    run = bench(guarded(False, signal="S"))
    run.start()
    assert {arm.group for arm in run.held.values()} == {""}
    run.fire("b", {"x": 1})
    run.fire("b", {"x": 2})
    assert run.tokens == [("u", "waiting")]
    assert run.variables == {"x": 2}
    assert run.trace == ["s", "b", "handler", "exception", "b", "handler", "exception"]
    run.fire("u")
    assert run.outcome == "completed"
    assert run.held == {}


@pytest.mark.parametrize("event", [{"message": "M"}, {"signal": "S"}])
def test_a_message_or_signal_boundary_carries_its_payload_to_the_exception_flow(bench, event):
    """W8, W9, X2: the guarded task is interrupted, not completed."""
    run = bench(guarded(**event))
    run.start()
    run.fire("b", {"why": "storm"})
    assert run.trace == ["s", "b", "handler", "exception"]
    assert run.variables == {"why": "storm"}


def test_a_non_interrupting_duration_fires_once_and_the_task_survives(bench):
    """W7, T41: a duration never repeats."""
    run = bench(guarded(False, timer=after("PT1H")))
    run.start()
    run.pass_time(10 * DAY)
    assert run.trace.count("b") == 1
    assert run.waiting == [("u", "task")]
    run.fire("u")
    assert run.outcome == "completed"


def test_a_non_interrupting_cycle_fires_exactly_n_times_each_as_a_wait_of_its_own(bench):
    """T37, D13: the deadlines stay on their grid."""
    run = bench(guarded(False, timer=every("R3/PT10M")))
    run.start()
    waits, deadlines = [], []
    while any(arm.node == "b" for arm in run.held.values()):
        waits.append(run.wait("b"))
        deadlines.append(run.deadline("b"))
        run.pass_time((run.held[run.wait("b")].deadline or 0) - run.now)
    assert deadlines == [10 * MINUTE, 20 * MINUTE, 30 * MINUTE]
    assert waits == ["1:b:0:2", "1:b:0:2#2", "1:b:0:2#3"]
    assert run.trace.count("handler") == 3
    assert run.waiting == [("u", "task")]


def test_a_cycle_that_was_overdue_fires_once_and_keeps_its_grid(bench):
    """T39."""
    run = bench(guarded(False, timer=every("R/PT5M")))
    run.start()
    wait = run.wait("b")
    run.now = NOW + DAY + MINUTE
    run.deliver(wait)
    assert run.trace.count("b") == 1
    assert run.deadline("b") == DAY + 5 * MINUTE


def test_a_cycle_without_an_occurrence_arms_nothing(bench):
    """T37: R0."""
    run = bench(guarded(False, timer=every("R0/PT5M")))
    run.start()
    assert run.waiting == [("u", "task")]
    run.fire("u")
    assert run.outcome == "completed"


def test_an_interrupting_cycle_fires_once(bench):
    run = bench(guarded(True, timer=every("R3/PT10M")))
    run.start()
    run.pass_time(DAY)
    assert run.trace == ["s", "b", "handler", "exception"]


def test_a_fork_of_a_boundary_names_the_host_as_its_parent(bench):
    process = ProcessBuilder("p")
    process.start("s").user_task("u").end("normal")
    process.boundary("u", "b", message="M", interrupting=False).user_task("h").end("x")
    run = bench(process)
    run.start()
    run.fire("b")
    run.fire("b")
    assert [(track.node, track.parent) for track in run.state.tracks.values()] == [("u", ""), ("h", "1"), ("h", "1")]
    run.fire("u")
    assert run.outcome == "", "the handlers are tokens of their own"
    run.fire("h")
    run.fire("h")
    assert run.outcome == "completed"


def test_completion_and_interrupting_timer_in_one_inbox_have_one_winner(bench):
    """R, section 7: the first wins, the second ends as overtaken."""
    run = bench(guarded(timer=after("PT1H")))
    run.start()
    task, timer = run.wait("u"), run.wait("b")
    step = run.trigger(Trigger("a", "task", task), Trigger("b", "timer", timer))
    assert [trigger.id for trigger in step.overtaken] == ["b"]
    assert run.trace == ["s", "u", "normal"]
    other = bench(guarded(timer=after("PT1H")))
    other.start()
    step = other.trigger(Trigger("b", "timer", timer), Trigger("a", "task", task))
    assert [trigger.id for trigger in step.overtaken] == ["a"]
    assert other.trace == ["s", "b", "handler", "exception"]


def test_two_boundaries_of_one_activity_in_one_inbox_non_interrupting_first(bench):
    """S85."""
    process = guarded(timer=after("PT1H"))
    process.boundary("u", "n", message="N", interrupting=False).end("x")
    run = bench(process)
    run.start()
    message, timer = run.wait("n"), run.wait("b")
    step = run.trigger(Trigger("b", "timer", timer), Trigger("n", "message", message))
    assert [trigger.id for trigger in step.overtaken] == ["n"], "a repeat wait ends with its host"


def test_an_interrupting_boundary_discards_a_running_effect(bench):
    """W10, X1."""
    process = ProcessBuilder("p")
    process.start("s").service_task("work").end("normal")
    process.boundary("work", "b", timer=after("PT1H")).end("late")
    run = bench(process)
    run.start()
    key = next(iter(run.calls))
    assert run.tokens == [("work", "working")]
    step = run.trigger(Trigger("t", "timer", run.wait("b")))
    assert step.cancelled == [key]
    assert run.trace == ["s", "b", "late"]


def test_a_report_of_a_discarded_effect_changes_nothing(bench):
    process = ProcessBuilder("p")
    process.start("s").service_task("work").end("normal")
    process.boundary("work", "b", timer=after("PT1H")).user_task("after").end("late")
    run = bench(process)
    run.start()
    key = next(iter(run.calls))
    run.pass_time(HOUR)
    step = run.trigger(Trigger("r", "done", key, values={"x": 1}))
    assert run.variables == {}
    assert step.overtaken == [], "it never came through the store, so nobody there is told"
    assert run.events[-1] == "overtaken"
    assert run.tokens == [("after", "waiting")]


def test_an_activity_that_passes_at_once_never_arms_its_boundaries(bench):
    process = ProcessBuilder("p")
    process.start("s").script_task("t", "1").end("e")
    process.boundary("t", "b", message="M").end("x")
    run = bench(process)
    step = run.start()
    assert (step.arms, step.withdrawals) == ([], [])


def test_a_boundary_that_cannot_be_armed_is_an_incident_of_its_activity(bench):
    run = bench(guarded(timer=after("=wrong")))
    run.start()
    assert run.waiting == [("u", "incident")]
    run.assign(wrong="PT1H")
    run.retry()
    assert run.waiting == [("b", "timer"), ("u", "task")]


def test_a_boundary_payload_that_cannot_be_bound_is_an_incident_at_the_boundary(bench):
    run = bench(guarded(message="M", outputs={"y": Expression("1 / z", "python")}))
    run.start(z=0)
    run.fire("b", {"x": 1})
    assert run.waiting == [("b", "incident")]
    run.assign(z=1)
    run.retry()
    assert run.trace == ["s", "b", "handler", "exception"]
    assert run.variables == {"z": 1, "y": 1}


def test_boundaries_stay_armed_with_their_deadlines_over_failed_work_and_its_retry(bench):
    """Promise 6: a retry does not move a deadline, and does not bring a spent boundary back."""
    process = ProcessBuilder("p")
    process.start("s").service_task("work").end("normal")
    process.boundary("work", "b", timer=after("PT5H")).end("late")
    process.boundary("work", "n", timer=after("PT1H"), interrupting=False).end("note")
    run = bench(process)
    run.start()
    run.failed("work", "no connection")
    assert run.cause == "no connection"
    assert run.waiting == [("b", "timer"), ("n", "timer"), ("work", "incident")]
    run.pass_time(2 * HOUR)
    run.retry()
    assert run.waiting == [("b", "timer")]
    assert run.deadline("b") == 5 * HOUR
    run.failed("work", "again")
    run.pass_time(4 * HOUR)
    assert run.trace == ["s", "n", "note", "b", "late"]
    assert run.state.head.incidents == 0
    assert run.outcome == "completed"


def test_a_retry_whose_inputs_fail_keeps_the_boundaries_too(bench):
    process = ProcessBuilder("p")
    process.start("s").service_task("work", inputs={"a": Expression("1 / z", "python")}).end("normal")
    process.boundary("work", "b", timer=after("PT5H")).end("late")
    run = bench(process)
    run.start(z=1)
    run.failed("work", "no")
    run.assign(z=0)
    run.retry()
    assert run.waiting == [("b", "timer"), ("work", "incident")]
    run.assign(z=1)
    run.retry()
    run.done("work")
    assert run.outcome == "completed"
