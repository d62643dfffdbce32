"""Service, send and script tasks, throws: work handed out, its report, its crash; what is sent inside the commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.core.step import Trigger
from gobpm_ray.model.builder import ProcessBuilder, after
from gobpm_ray.model.elements import Expression
from tests.unit.core.driving import HOUR, NOW


def work(**options: object) -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start("s").service_task("w", **options).end("e")  # type: ignore[arg-type]
    return process


def test_a_service_task_hands_out_one_call_with_everything_it_sees(bench):
    run = bench(work(topic="bill", idempotent=True))
    run.start(a=1, b=[2])
    [call] = run.calls.values()
    assert (call.effect_key, call.track, call.node, call.topic) == ("1:w:2", "1", "w", "bill")
    assert (call.inputs, call.idempotent, call.attempt) == ({"a": 1, "b": [2]}, True, 1)
    assert run.tokens == [("w", "working")]
    attempt = run.state.tracks["1"].attempt
    assert (attempt.number, attempt.started, attempt.epoch, attempt.seals) == (1, NOW, 1, 0)
    run.done("w", c=3)
    assert run.variables == {"a": 1, "b": [2], "c": 3}
    assert run.trace == ["s", "w", "e"]
    assert "woken" not in run.events, "a host's own report wakes nobody"


def test_a_task_without_a_topic_is_called_by_its_id_with_its_mapped_inputs(bench):
    run = bench(work(inputs={"x": "=a + 1"}, outputs={"y": "=r * 2"}))
    run.start(a=1)
    [call] = run.calls.values()
    assert (call.topic, call.inputs) == ("w", {"x": 2})
    run.done("w", r=5)
    assert run.variables == {"a": 1, "y": 10}


@pytest.mark.parametrize(("values", "expected"), [({"result": 7}, 7), ({"x": 1, "y": 2}, {"x": 1, "y": 2}), ({}, {})])
def test_a_result_variable_takes_the_result_or_the_whole_mapping(bench, values, expected):
    run = bench(work(result="out"))
    run.start()
    run.done("w", **values)
    assert run.variables == {"out": expected}


def test_failed_work_is_an_incident_that_retry_does_again_on_a_new_visit(bench):
    """D24, R24."""
    run = bench(work())
    run.start()
    key = next(iter(run.calls))
    run.failed("w", "boom\nTraceback ...")
    assert run.cause == "boom Traceback ..."
    assert run.tokens == [("w", "incident")]
    run.retry()
    [again] = run.calls
    assert again != key
    assert run.trigger(Trigger("old", "done", key)).history[0].event == "overtaken"
    run.done("w", ok=True)
    assert run.outcome == "completed"
    assert run.trace == ["s", "w", "e"]


def test_resolving_failed_work_goes_past_it_with_the_operators_values(bench):
    run = bench(work(outputs={"y": "=r * 2"}))
    run.start()
    run.failed("w", "boom")
    run.resolve(r=21)
    assert run.variables == {"y": 42}
    assert run.trace == ["s", "w", "e"]


def test_a_retry_for_an_incident_that_is_gone_is_overtaken(bench):
    run = bench(work())
    run.start()
    run.failed("w", "boom")
    [wait] = run.held
    run.retry()
    step = run.trigger(Trigger("again", "retry", wait))
    assert [trigger.id for trigger in step.overtaken] == ["again"]
    assert len(run.calls) == 1


def test_a_crash_hands_an_idempotent_call_out_again_under_the_same_key(bench):
    """N10, A71."""
    run = bench(work(idempotent=True))
    run.start()
    key = next(iter(run.calls))
    step = run.crash()
    [call] = step.calls
    assert (call.effect_key, call.attempt) == (key, 2)
    assert step.history[0].event == "sealed"
    run.done("w")
    assert run.outcome == "completed"


def test_three_crashes_in_one_visit_are_an_incident_whatever_the_task_promises(bench):
    """N10, A74."""
    run = bench(work(idempotent=True))
    run.start()
    run.crash()
    run.crash()
    assert run.tokens == [("w", "working")]
    run.crash()
    assert run.tokens == [("w", "incident")]
    assert "3 attempts" in run.cause


def test_a_crash_seals_a_call_that_is_not_idempotent_for_an_operator(bench):
    """A72: retry runs it, resolve goes past it."""
    run = bench(work())
    run.start()
    step = run.crash()
    assert step.calls == []
    assert "cut off by a crash and the task is not idempotent" in run.cause
    run.calls.clear()
    run.retry()
    assert len(run.calls) == 1
    run.crash()
    run.resolve(done=True)
    assert run.outcome == "completed"
    assert run.variables == {"done": True}


def test_recovery_leaves_alone_what_its_own_epoch_handed_out(bench):
    run = bench(work(idempotent=True))
    run.start()
    run.epoch -= 1
    step = run.crash()
    assert (step.calls, step.history, step.changed) == ([], [], set())


def test_recovery_does_not_touch_what_merely_waits(bench):
    process = ProcessBuilder("p")
    process.start("s").catch("c", timer=after("PT1H")).end("e")
    run = bench(process)
    run.start()
    assert run.crash().changed == set()
    run.pass_time(HOUR)
    assert run.outcome == "completed"


def test_recovery_of_a_partly_loaded_instance_asks_for_all_of_it(bench):
    from gobpm_ray.core.advance import recover
    from gobpm_ray.core.state import PartsMissing

    run = bench(work())
    run.start()
    with pytest.raises(PartsMissing):
        recover(run.program, run.hydrated({"h", "s0"}), NOW, 2)


def test_a_task_that_becomes_a_job_waits_for_its_worker(bench):
    """D12."""
    run = bench(work(topic="print", inputs={"page": "=n"}), jobs=lambda task: task.topic == "print")
    run.start(n=3)
    assert run.calls == {}
    arm = run.held[run.wait("w")]
    assert (arm.kind, arm.task.topic, arm.task.inputs) == ("job", "print", {"page": 3})
    run.fire("w", {"ok": True})
    assert run.variables == {"n": 3, "ok": True}


def test_a_failed_job_is_an_incident_and_its_retry_a_new_job_in_the_same_race(bench):
    """The failure's delivery withdraws the race group in the store: the boundaries are held again, deadlines kept."""
    process = work()
    process.boundary("w", "n", message="N", interrupting=False).end("e2")
    process.boundary("w", "b", timer=after("PT5H")).end("x")
    run = bench(process, jobs=lambda _: True)
    run.start()
    run.pass_time(HOUR)
    wait, note = run.wait("w"), run.wait("n")
    delivered = run.delivered(wait)
    assert [arm.node for arm in run.held.values()] == ["n"]
    run.trigger(replace(delivered, kind="failed", cause="paper jam"))
    assert run.waiting == [("b", "timer"), ("n", "message"), ("w", "incident")]
    assert run.deadline("b") == 5 * HOUR
    assert run.wait("n") == note
    run.retry()
    assert run.wait("w") != wait
    assert run.held[run.wait("w")].group == run.held[run.wait("b")].group != ""
    run.pass_time(4 * HOUR)
    assert run.trace == ["s", "b", "x"]
    assert run.outcome == "completed"


def test_a_send_task_with_a_message_throws_it_and_passes(bench):
    process = ProcessBuilder("p")
    process.start("s").send_task("t", message="Offer", key="=ref", inputs={"price": "=p"}).end("e")
    run = bench(process)
    run.start(ref="A", p=9)
    [send] = run.sends
    assert (send.id, send.kind, send.name, send.key, send.values) == (
        "i1:1:t:2",
        "message",
        "Offer",
        message_key("Offer", "A"),
        {"price": 9},
    )
    assert run.outcome == "completed"


def test_a_throw_without_a_mapping_carries_nothing_and_an_end_throws_too(bench):
    process = ProcessBuilder("p")
    process.start("s").throw("t", signal="S").throw("none").end("e", message="M")
    run = bench(process)
    run.start(secret=1)
    assert [(send.id, send.key, send.values) for send in run.sends] == [
        ("i1:1:t:2", signal_key("S"), {}),
        ("i1:1:e:4", message_key("M"), {}),
    ]
    assert run.trace == ["s", "t", "none", "e"]


def test_a_throw_with_an_empty_key_is_an_incident_and_sends_nothing(bench):
    process = ProcessBuilder("p")
    process.start("s").end("e", message="M", key="=ref")
    run = bench(process)
    run.start()
    assert "correlation key of message 'M'" in run.cause
    assert run.sends == []
    run.assign(ref=5)
    run.retry()
    assert run.outcome == "completed"
    assert [send.key for send in run.sends] == [message_key("M", 5)]


def test_resolving_at_an_end_event_ends_without_sending(bench):
    process = ProcessBuilder("p")
    process.start("s").end("e", message="M", key="=ref")
    run = bench(process)
    run.start()
    run.resolve(note=1)
    assert run.outcome == "completed"
    assert run.sends == []
    assert run.variables == {"note": 1}


def test_statements_assign_variables_and_an_expression_gives_a_result(bench):
    process = ProcessBuilder("p")
    process.start("s").script_task("py", "y = x + 1\nz = y * 2", language="python").script_task(
        "feel", "z + 1", result="r"
    ).script_task("dropped", "r + 1").end("e")
    run = bench(process)
    run.start(x=1)
    assert run.variables == {"x": 1, "y": 2, "z": 4, "r": 5}


def test_a_script_that_fails_is_an_incident_that_a_retry_runs_again(bench):
    process = ProcessBuilder("p")
    process.start("s").script_task("py", "y = 1 / x", language="python").end("e")
    run = bench(process)
    run.start(x=0)
    assert "script of 'py'" in run.cause
    run.assign(x=1)
    run.retry()
    assert run.variables == {"x": 1, "y": 1}


def test_a_conditions_inputs_end_with_the_activity(bench):
    process = ProcessBuilder("p")
    process.start("s").script_task("t", "local", result="seen", inputs={"local": "=1"}).exclusive("g").when(
        "local = 1"
    ).end("leaked")
    process.at("g").otherwise().end("gone")
    run = bench(process)
    run.start(local=2)
    assert run.variables == {"local": 2, "seen": 1}
    assert run.trace[-1] == "gone"


def test_resolving_a_way_out_that_is_missing_looks_again_with_the_operators_values(bench):
    process = ProcessBuilder("p")
    process.start("s").service_task("t").when(Expression("flag")).end("e")
    run = bench(process)
    run.start()
    run.done("t")
    run.resolve(flag=True)
    assert run.trace == ["s", "t", "e"]


def test_a_failure_reported_for_something_that_merely_waits_is_only_noted(bench):
    process = ProcessBuilder("p")
    process.start("s").user_task("u").end("e")
    run = bench(process)
    run.start()
    step = run.trigger(Trigger("f", "failed", run.wait("u"), cause="odd"))
    assert (step.overtaken, run.events[-1], run.tokens) == ([], "overtaken", [("u", "waiting")])


def test_a_resolve_for_an_incident_that_is_gone_is_overtaken(bench):
    run = bench(work())
    run.start()
    run.failed("w", "boom")
    [wait] = run.held
    run.resolve()
    assert run.trigger(Trigger("again", "resolve", wait)).overtaken


def test_a_report_for_a_token_that_is_gone_is_only_noted(bench):
    process = ProcessBuilder("p")
    process.start("s").parallel("g").service_task("w").end("e1")
    process.at("g").user_task("u").end("e2")
    run = bench(process)
    run.start()
    key = next(iter(run.calls))
    run.done("w")
    step = run.trigger(Trigger("again", "done", key))
    assert (step.overtaken, run.events[-1]) == ([], "overtaken")


def test_a_retry_addressed_to_a_wait_that_is_no_incident_is_overtaken(bench):
    process = work()
    process.boundary("w", "b", message="M").end("x")
    run = bench(process)
    run.start()
    run.failed("w", "boom")
    assert run.trigger(Trigger("odd", "retry", run.wait("b"))).overtaken
    assert run.waiting == [("b", "message"), ("w", "incident")]
