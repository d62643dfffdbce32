"""Scenarios performed: every step kind does on an engine what design section 11 says it does."""

from __future__ import annotations

from typing import Any

import pytest

from gobpm_ray import Engine, ProcessBuilder, Settings
from gobpm_ray.engine.outcome import Outcome
from gobpm_ray.engine.rehearsal import Rehearsal
from gobpm_ray.engine.scenario import parse_scenario
from gobpm_ray.engine.sources import Source
from gobpm_ray.errors import UnknownProcess


def play(
    text: str, *sources: Source, process: str = "", beside: tuple[Source, ...] = (), **options: Any
) -> list[Outcome]:
    scenario = parse_scenario(text)
    settings = Settings(auto_complete=True, history_limit=100_000)
    with Engine.open(None, clock="virtual", now=scenario.now_ms, settings=settings) as engine:
        return Rehearsal(engine, scenario, **options).run(sources, process, beside)


def approval(process: str = "approval") -> ProcessBuilder:
    builder = ProcessBuilder(process)
    builder.start("start", name="Begin").user_task("approve", name="Approve").end("end")
    return builder


def shipping() -> ProcessBuilder:
    builder = ProcessBuilder("shipping")
    builder.start("start").service_task("pack", topic="pack").service_task("ship", topic="ship").end("end")
    return builder


def asking() -> ProcessBuilder:
    builder = ProcessBuilder("asking")
    builder.start("start").catch("answer", message="Answer", key="=ref").end("end")
    return builder


def kept(outcome: Outcome) -> tuple[str, list[str]]:
    return outcome.state, list(outcome.trace)


def test_without_steps_the_process_runs_to_where_it_waits() -> None:
    (outcome,) = play("variables: {a: 1}", approval())
    assert outcome.to_json() == {
        "file": "approval",
        "instance_id": outcome.instance_id,
        "process_id": "approval",
        "state": "waiting",
        "trace": ["start"],
        "trace_names": ["Begin"],
        "variables": {"a": 1},
        "waits": [{"node": "approve", "kind": "task", "deadline": None}],
        "incidents": [],
        "children": [],
        "error": None,
    }


def test_unregistered_work_is_completed_at_once_with_a_warning() -> None:
    """Design 9: only `simulate` and `run` do that."""
    warnings: list[str] = []
    (outcome,) = play("", shipping(), warn=warnings.append)
    assert kept(outcome) == ("completed", ["start", "pack", "ship", "end"])
    assert warnings == ["shipping: no callable is registered for pack, ship: completed at once, without outputs"]


def test_an_element_named_by_a_job_step_waits_as_a_job() -> None:
    """Design 11."""
    (before,) = play("steps: [{job: {job: ship}, optional: true}, {stop: {}}]", shipping())
    assert kept(before) == ("completed", ["start", "pack", "ship", "end"])
    (held,) = play("steps: [{stop: {}}]", shipping())
    assert held.state == "completed"
    (waits,) = play("steps: [{expect: {waits: [ship]}}, {job: {job: ship, outputs: {n: 1}}}]", shipping())
    assert (waits.error, waits.state, waits.variables) == (None, "completed", {"n": 1})


def test_advance_fires_what_falls_due_on_the_way() -> None:
    builder = ProcessBuilder("timers")
    builder.start("s").catch("one", timer="PT1H").catch("two", timer="PT1H").catch("three", timer="P1D").end("e")
    (outcome,) = play(
        "steps: [{advance: PT3H}, {expect: {completed: [one, two], waits: [three]}}, {stop: {}}]", builder
    )
    assert (outcome.error, list(outcome.trace)) == (None, ["s", "one", "two"])
    assert outcome.waits == [{"node": "three", "kind": "timer", "deadline": "2026-01-02T02:00:00Z"}]


def test_after_the_last_step_time_runs_unless_it_is_stop() -> None:
    builder = ProcessBuilder("timers")
    builder.start("s").catch("far", timer="P30D").end("e")
    assert play("", builder)[0].state == "completed"
    assert play("steps: [{stop: {}}]", builder)[0].state == "waiting"


def test_time_that_never_ends_is_bounded() -> None:
    builder = ProcessBuilder("ticking")
    builder.start("tick", timer="R/PT1H").end("e")
    (outcome,) = play("max_steps: 5", builder)
    assert outcome.error is not None
    assert "max_steps" in outcome.error
    assert outcome.state == "completed"
    assert len(outcome.children) == 4


def test_messages_wake_start_and_are_parked() -> None:
    """M48, M51; a message that nobody waits for is no error."""
    steps = "steps: [{message: {name: Answer, key: B}}, {message: {name: Answer, key: A, payload: {x: 1}}}]"
    (outcome,) = play("variables: {ref: A}\n" + steps, asking())
    assert (outcome.state, outcome.variables) == ("completed", {"ref": "A", "x": 1})
    (early,) = play("variables: {ref: B}\n" + steps, asking())
    assert early.state == "completed"


def test_a_message_with_an_id_counts_once() -> None:
    """M55."""
    builder = ProcessBuilder("twice")
    builder.start("s").catch("first", message="M").catch("second", message="M").end("e")
    (outcome,) = play("steps: [{message: {name: M, id: a}}, {message: {name: M, id: a}}]", builder)
    assert [wait["node"] for wait in outcome.waits] == ["second"]


def test_a_signal_to_nobody_changes_nothing() -> None:
    """M54."""
    builder = ProcessBuilder("listening")
    builder.start("s").user_task("u").catch("heard", signal="Go").end("e")
    steps = "steps: [{signal: {name: Go}}, {complete: {task: u}}, {expect: {waits: [heard]}}, {signal: {name: Go}}]"
    assert play(steps, builder)[0].state == "completed"


def test_a_process_that_waits_for_its_message_has_not_begun() -> None:
    """Design 11: `instance_id` null, waiting, the start event in `waits`."""
    builder = ProcessBuilder("receiver")
    builder.start("told", message="News").user_task("read").end()
    (outcome,) = play("", builder)
    assert (outcome.instance_id, outcome.process_id, outcome.state) == (None, "receiver", "waiting")
    assert outcome.waits == [{"node": "told", "kind": "message", "deadline": None}]
    (begun,) = play("steps: [{expect: {waits: [told]}}, {message: {name: News, payload: {a: 1}}}]", builder)
    assert begun.instance_id is not None
    assert (begun.error, begun.variables, [w["node"] for w in begun.waits]) == (None, {"a": 1}, ["read"])


def test_a_process_that_waits_for_its_time_begins_when_time_runs() -> None:
    """X12."""
    builder = ProcessBuilder("nightly")
    builder.start("night", timer="2026-01-02T00:00:00Z").end("e")
    (stopped,) = play("steps: [{stop: {}}]", builder)
    assert stopped.waits == [{"node": "night", "kind": "timer", "deadline": "2026-01-02T00:00:00Z"}]
    (outcome,) = play("", builder)
    assert kept(outcome) == ("completed", ["night", "e"])


def test_what_a_throw_starts_is_a_child() -> None:
    sender, receiver = ProcessBuilder("sender"), ProcessBuilder("receiver")
    sender.start("s").throw("tell", message="News").end("e")
    receiver.start("told", message="News").user_task("read").end()
    (outcome,) = play("", sender, beside=(receiver,))
    (child,) = outcome.children
    assert (outcome.state, child.process_id, child.state, list(child.trace)) == (
        *("completed", "receiver", "waiting"),
        ["told"],
    )


def test_tasks_are_claimed_given_back_and_completed() -> None:
    steps = """
    steps:
      - {claim: {task: approve, user: ada}}
      - {complete: {task: approve, user: bob}, optional: true}
      - {expect: {waits: [approve]}}
      - {unclaim: {task: approve}}
      - {claim: {task: approve, user: bob}}
      - {complete: {task: approve, user: bob, outputs: {ok: true}}}
    """
    (outcome,) = play(steps, approval())
    assert (outcome.error, outcome.state, outcome.variables) == (None, "completed", {"ok": True})


def test_strict_wants_a_claim_of_users_and_not_of_operators() -> None:
    """H58."""
    (refused,) = play("steps: [{complete: {task: approve, user: ada}}]", approval(), strict=True)
    assert refused.error is not None
    assert "claimed" in refused.error
    assert refused.state == "waiting"
    (operator,) = play("steps: [{complete: {task: approve}}]", approval(), strict=True)
    assert operator.state == "completed"


def test_all_takes_every_open_one() -> None:
    builder = ProcessBuilder("many")
    fork = builder.start("s").parallel("fork")
    fork.user_task("left").to("join")
    builder.at("fork").user_task("right").to("join")
    builder.at("fork").to("join")
    one = "steps: [{start: {process: approval}}, {complete: {task: approve}}]"
    every = "steps: [{start: {process: approval}}, {complete: {task: approve, all: true}}]"
    assert [play(s, approval())[0].children[0].state for s in (one, every)] == ["waiting", "completed"]
    beside = "steps: [{start: {process: approval}}, {complete: {task: approve}, all: true}]"
    assert play(beside, approval())[0].children[0].state == "completed"


@pytest.mark.parametrize(
    "step",
    [
        "complete: {task: nope}",
        "complete: {task: nope, all: true}",
        "claim: {task: nope, user: a}",
        "unclaim: {task: nope}",
        "job: {job: approve}",
        "error: {job: nope, code: E}",
        "fail: {job: nope, cause: c}",
        "escalate: {job: nope, code: E}",
        "retry: {node: approve}",
        "resolve: {node: approve}",
        "start: {process: nope}",
        "expect: {state: completed}",
        "expect: {waits: []}",
        "expect: {waits: [start]}",
        "expect: {variables: {a: 2}}",
        "expect: {variables: {b: 2}}",
        "expect: {completed: [approve]}",
        "expect: {completed: true}",
        "message: {name: M, key: ''}",
    ],
)
def test_a_step_without_a_taker_stops_the_run_unless_it_is_optional(step: str) -> None:
    """Design 11: `error` is set, state and trace stay what they are."""
    text = "variables: {a: 1}\nsteps:\n  - {%s}\n  - {complete: {task: approve}}"
    (stopped,) = play(text % step, approval())
    assert stopped.error is not None
    assert stopped.error.startswith(f"step 1: {step.partition(':')[0]}: ")
    assert kept(stopped) == ("waiting", ["start"])
    (went_on,) = play(text.replace("%s}", "%s, optional: true}") % step, approval())
    assert (went_on.error, went_on.state) == (None, "completed")


@pytest.mark.parametrize(
    ("step", "cause"),
    [
        ("fail: {job: ship, cause: no paper}", "no paper"),
        (
            "error: {job: ship, code: E7, message: lost}",
            "error 'E7' thrown by serviceTask 'ship' is caught by nobody: lost",
        ),
    ],
)
def test_a_job_that_fails_is_an_incident_for_an_operator(step: str, cause: str) -> None:
    (outcome,) = play(f"steps: [{{{step}}}]", shipping())
    assert (outcome.state, outcome.incidents) == ("incident", [{"node": "ship", "cause": cause}])
    assert "ship" not in outcome.trace
    assert {"node": "ship", "kind": "incident", "deadline": None} in outcome.waits
    (again,) = play(f"steps: [{{{step}}}, {{retry: {{node: ship}}}}, {{job: {{job: ship}}}}]", shipping())
    assert kept(again) == ("completed", ["start", "pack", "ship", "end"])
    (past,) = play(f"steps: [{{{step}}}, {{resolve: {{node: ship, outputs: {{n: 1}}}}}}]", shipping())
    assert (past.state, past.variables, past.incidents) == ("completed", {"n": 1}, [])


def test_an_escalation_that_nobody_catches_leaves_the_job_open() -> None:
    """BPMN 10.5.6: an escalation is no failure; uncaught it changes nothing."""
    (outcome,) = play("steps: [{escalate: {job: ship, code: X}}, {job: {job: ship}}]", shipping())
    assert kept(outcome) == ("completed", ["start", "pack", "ship", "end"])


def test_a_failure_with_retries_left_leaves_the_job_open() -> None:
    (outcome,) = play("steps: [{fail: {job: ship, cause: busy, retries: 1}}, {job: {job: ship}}]", shipping())
    assert (outcome.error, outcome.state) == (None, "completed")


def test_set_cancel_suspend_and_resume_are_about_the_instance() -> None:
    (outcome,) = play("variables: {a: 1}\nsteps: [{set: {a: 2, b: [1]}}, {cancel: {}}]", approval())
    assert (outcome.state, outcome.variables, outcome.waits) == ("terminated", {"a": 2, "b": [1]}, [])
    held = (
        "variables: {ref: A}\nsteps: [{suspend: {}}, {message: {name: Answer, key: A}}, {expect: {state: waiting}}%s]"
    )
    assert play(held % "", asking())[0].state == "waiting"
    assert play(held % ", {resume: {}}", asking())[0].state == "completed"


def test_restart_forgets_everything_that_is_not_encoded() -> None:
    steps = "variables: {ref: A}\nsteps: [{restart: {}}, {message: {name: Answer, key: A}}, {restart: {}}]"
    (outcome,) = play(steps, asking())
    assert kept(outcome) == ("completed", ["start", "answer", "end"])


def test_several_files_share_one_scenario() -> None:
    """Design 11: deployed and started in order, the steps run once, all results are printed."""
    first, second = play("steps: [{complete: {task: approve, all: true}}]", approval("a"), approval("b"))
    assert [(o.process_id, o.state) for o in (first, second)] == [("a", "completed"), ("b", "completed")]


def test_a_refused_source_does_not_keep_the_others_from_running() -> None:
    bad, good = play("", b"<nothing/>", shipping())
    assert (bad.state, bad.instance_id, bad.process_id) == ("rejected", None, None)
    assert bad.error is not None
    assert good.state == "completed"


def test_the_process_is_the_named_one_or_the_scenarios_or_the_first() -> None:
    from gobpm_ray.model.elements import Definitions

    both = Definitions((approval("a").build(), approval("b").build()))
    assert play("", both)[0].process_id == "a"
    assert play("process: b", both)[0].process_id == "b"
    assert play("process: b", both, process="a")[0].process_id == "a"
    with pytest.raises(UnknownProcess, match="nope"):
        play("", both, process="nope")


def test_variables_that_cannot_be_stored_refuse_the_start() -> None:
    (outcome,) = play("variables: {a: !!set {x, y}}", approval())
    assert outcome.state == "rejected"
    assert outcome.error is not None
    assert "'a'" in outcome.error


def test_on_a_real_clock_near_deadlines_are_waited_for_and_far_ones_told() -> None:
    """Design 11, `--clock real`: time is not jumped over."""
    builder = ProcessBuilder("timers")
    builder.start("s").catch("soon", timer="PT0.1S").catch("far", timer="P7D").end("e")
    with Engine.open(None, clock="real") as engine:
        (outcome,) = Rehearsal(engine, parse_scenario("steps: [{advance: PT0.01S}]")).run([builder])
    assert (outcome.state, list(outcome.trace)) == ("waiting", ["s", "soon"])
    assert [(wait["node"], wait["kind"]) for wait in outcome.waits] == [("far", "timer")]
