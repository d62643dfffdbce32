"""Catch events, receive tasks, event-based gateways and user tasks: how a token parks and how it is woken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.core.state import parse_wait_id, wait_id
from gobpm_ray.core.step import Trigger
from gobpm_ray.model.builder import ProcessBuilder, after, at_date, every
from gobpm_ray.model.elements import (
    CatchEvent,
    Expression,
    FlowNode,
    MessageDefinition,
    Process,
    ReceiveTask,
    SequenceFlow,
    UserTask,
)
from tests.unit.core.driving import DAY, HOUR, MINUTE, NOW, Bench


def test_a_timer_catch_holds_an_absolute_deadline_and_fires_once(bench):
    """W1, promise 6."""
    process = ProcessBuilder("p")
    process.start("s").catch("c", timer=after("PT2H")).end("e")
    run = bench(process)
    run.start()
    assert run.deadline("c") == 2 * HOUR
    wait = run.wait("c")
    assert parse_wait_id(wait) == ("1", "c", "0", "2")
    run.pass_time(3 * HOUR)
    assert run.outcome == "completed"
    assert run.trace == ["s", "c", "e"]
    assert [entry.detail for entry in run.history if entry.event == "woken"] == ["timer"]
    assert run.trigger(Trigger("late", "timer", wait)).overtaken


def test_sequential_timers_do_not_grow_the_lineage_and_never_reuse_a_wait_id(bench):
    """W3, D7: the bench refuses a wait id that was used before."""
    process = ProcessBuilder("p")
    process.start("s").exclusive("m").catch("c", timer=after("PT1H")).script_task("i", "i + 1", result="i").exclusive(
        "g"
    ).when("i < 50").to("m")
    process.at("g").otherwise().end("e")
    run = bench(process)
    run.start(i=0)
    sizes = set()
    while not run.outcome:
        sizes.add((len(run.state.tracks), len(run.state.tracks["1"].waits), run.state.tracks["1"].parent))
        run.pass_time(HOUR)
    assert sizes == {(1, 1, "")}
    assert run.trace.count("c") == 50


def test_parallel_durations_fire_at_their_own_times(bench):
    """W12, X4: not shifted by the first wake."""
    process = ProcessBuilder("p")
    process.start("s").parallel("g").catch("two", timer=after("PT2H")).parallel("j").end("e")
    process.at("g").catch("three", timer=after("PT3H")).to("j")
    run = bench(process)
    run.start()
    run.pass_time(2 * HOUR)
    assert run.now == NOW + 2 * HOUR
    assert run.deadline("three") == 3 * HOUR
    run.pass_time(HOUR - 1)
    assert run.outcome == ""
    run.pass_time(1)
    assert run.outcome == "completed"


def test_an_intermediate_cycle_fires_once_at_its_first_occurrence(bench):
    process = ProcessBuilder("p")
    process.start("s").catch("c", timer=every("R3/PT10M")).end("e")
    run = bench(process)
    run.start()
    assert run.deadline("c") == 10 * MINUTE
    run.pass_time(DAY)
    assert run.trace == ["s", "c", "e"]


def test_an_intermediate_timer_without_an_occurrence_is_an_incident(bench):
    process = ProcessBuilder("p")
    process.start("s").catch("c", timer=every("R0/PT10M")).end("e")
    run = bench(process)
    run.start()
    assert "'c' has no occurrence" in run.cause
    run.resolve()
    assert run.outcome == "completed"


def test_an_invalid_timer_is_an_incident_and_siblings_go_on(bench):
    process = ProcessBuilder("p")
    process.start("s").parallel("g").catch("c", timer=after("=wrong")).end("e")
    process.at("g").user_task("u").end("e2")
    run = bench(process)
    run.start(wrong="whenever")
    assert run.tokens == [("c", "incident"), ("u", "waiting")]
    assert "whenever" in run.cause
    run.assign(wrong="PT1H")
    run.retry()
    assert run.deadline("c") == HOUR
    assert run.state.head.incidents == 0


def test_a_message_catch_waits_under_the_key_of_its_scope_and_binds_the_payload(bench):
    """M48, D10."""
    process = ProcessBuilder("p")
    process.start("s").catch("c", message="Order", key="=ref").end("e")
    run = bench(process)
    run.start(ref=7)
    assert run.held[run.wait("c")].key == message_key("Order", "7")
    run.fire("c", {"amount": 3})
    assert run.variables == {"ref": 7, "amount": 3}


def test_a_message_without_a_key_is_correlated_by_name_alone(bench):
    process = ProcessBuilder("p")
    process.start("s").catch("c", message="Order").end("e")
    run = bench(process)
    run.start()
    assert run.held[run.wait("c")].key == message_key("Order") != message_key("Order", "x")


@pytest.mark.parametrize("ref", [None, "", [1, 2], "a\nb"])
def test_a_key_that_is_empty_or_no_scalar_is_an_incident(bench, ref):
    process = ProcessBuilder("p")
    process.start("s").catch("c", message="Order", key="=ref").end("e")
    run = bench(process)
    run.start(ref=ref)
    assert "correlation key of message 'Order'" in run.cause
    run.assign(ref="A-1")
    run.retry()
    assert run.held[run.wait("c")].key == message_key("Order", "A-1")


def test_output_mappings_see_the_payload_over_the_scope_and_nothing_else_is_bound(bench):
    process = ProcessBuilder("p")
    process.start("s").catch("c", message="M", outputs={"total": "=amount + base", "twice": "=total * 2"}).end("e")
    run = bench(process)
    run.start(base=10)
    run.fire("c", {"amount": 5, "noise": 1})
    assert run.variables == {"base": 10, "total": 15, "twice": 30}


def test_a_payload_that_cannot_be_bound_is_kept_for_the_retry(bench):
    """The trigger is consumed: losing its values would lose the message."""
    process = ProcessBuilder("p")
    process.start("s").catch("c", message="M", outputs={"half": Expression("amount / divisor", "python")}).end("e")
    run = bench(process)
    run.start(divisor=0)
    run.fire("c", {"amount": 8})
    assert "output mapping 'half'" in run.cause
    assert run.waiting == [("c", "incident")]
    run.assign(divisor=2)
    run.retry()
    assert run.outcome == "completed"
    assert run.variables == {"divisor": 2, "half": 4}
    assert run.trace == ["s", "c", "e"]


def test_resolving_a_failed_output_mapping_assigns_the_operators_values(bench):
    process = ProcessBuilder("p")
    process.start("s").user_task("u", outputs={"half": Expression("amount / 0", "python")}).end("e")
    run = bench(process)
    run.start()
    run.fire("u", {"amount": 8})
    run.resolve(half=4)
    assert run.outcome == "completed"
    assert run.variables == {"half": 4}


def test_a_signal_catch_waits_under_the_signals_name(bench):
    process = ProcessBuilder("p")
    process.start("s").catch("c", signal="Alarm").end("e")
    run = bench(process)
    run.start()
    assert run.held[run.wait("c")].key == signal_key("Alarm")
    run.fire("c", {"level": 2})
    assert run.variables == {"level": 2}


def test_a_receive_task_waits_like_a_message_catch(bench):
    process = ProcessBuilder("p")
    process.start("s").receive_task("r", message="M", key="=k", outputs={"got": "=body"}).end("e")
    run = bench(process)
    run.start(k=True)
    assert run.held[run.wait("r")].key == message_key("M", "true")
    run.fire("r", {"body": "hello"})
    assert run.variables == {"k": True, "got": "hello"}
    assert run.trace == ["s", "r", "e"]


def gateway() -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start("s").event_gateway("g").catch("two", timer=after("PT2H")).end("e1")
    process.at("g").catch("five", timer=after("PT5H")).end("e2")
    process.at("g").catch("msg", message="M", key="=k").end("e3")
    process.at("g").receive_task("rcv", message="R").end("e4")
    process.at("g").catch("sig", signal="S").end("e5")
    return process


def test_every_arm_of_an_event_gateway_is_armed_in_one_race(bench):
    """D5, X3: several timers keep all their deadlines."""
    run = bench(gateway())
    run.start(k=1)
    assert run.tokens == [("g", "waiting")]
    assert [arm.node for arm in run.held.values()] == ["two", "five", "msg", "rcv", "sig"]
    assert {arm.group for arm in run.held.values()} == {"1:2"}
    assert (run.deadline("two"), run.deadline("five")) == (2 * HOUR, 5 * HOUR)


@pytest.mark.parametrize(("arm", "end"), [("five", "e2"), ("msg", "e3"), ("rcv", "e4"), ("sig", "e5")])
def test_the_first_arm_wins_and_its_siblings_are_withdrawn(bench, arm, end):
    """T38, R22."""
    run = bench(gateway())
    run.start(k=1)
    run.fire(arm, {} if arm == "five" else {"x": 1})
    assert run.held == {}
    assert run.trace == ["s", "g", arm, end]
    assert run.outcome == "completed"
    assert run.variables == ({"k": 1} if arm == "five" else {"k": 1, "x": 1})


def test_the_losing_deadline_never_fires(bench):
    """T38."""
    run = bench(gateway())
    run.start(k=1)
    run.pass_time(DAY)
    assert run.trace == ["s", "g", "two", "e1"]


def test_two_arms_in_one_inbox_have_one_winner_and_one_overtaken(bench):
    """R22, R29."""
    run = bench(gateway())
    run.start(k=1)
    timer, message = run.wait("two"), run.wait("msg")
    step = run.trigger(Trigger("t1", "timer", timer), Trigger("m1", "message", message, values={"x": 1}))
    assert [trigger.id for trigger in step.overtaken] == ["m1"]
    assert run.trace == ["s", "g", "two", "e1"]


def test_a_trigger_of_another_kind_never_fires_a_wait(bench):
    """N2: kinds never cross."""
    process = ProcessBuilder("p")
    process.start("s").catch("c", message="M").end("e")
    run = bench(process)
    run.start()
    step = run.trigger(Trigger("t", "timer", run.wait("c")))
    assert step.overtaken
    assert run.tokens == [("c", "waiting")]


def test_a_user_task_is_armed_as_a_task_and_its_outputs_are_bound(bench):
    """H56, D11."""
    process = ProcessBuilder("p")
    process.start("s").user_task("u", name="Call", required_outputs=["ok"]).end("e")
    run = bench(process)
    run.start(ok=False)
    arm = run.held[run.wait("u")]
    assert (arm.kind, arm.group, arm.task.name, arm.task.required, arm.task.priority) == (
        "task",
        "",
        "Call",
        ("ok",),
        50,
    )
    run.fire("u", {"ok": True, "note": "fine"})
    assert run.variables == {"ok": True, "note": "fine"}


def test_assignment_is_evaluated_once_and_frozen(bench):
    """H58."""
    process = ProcessBuilder("p")
    process.start("s").user_task(
        "u",
        assignee="=boss",
        candidate_users="anna, bert",
        candidate_groups="=teams",
        due="=deadline",
        follow_up="PT1H",
        priority="=40 + 2",
        inputs={"question": "=topic"},
    ).end("e")
    run = bench(process)
    run.start(boss="carl", teams=["sales", "", "ops"], deadline="2026-01-02T00:00:00Z", topic="?")
    row = run.held[run.wait("u")].task
    assert (row.assignee, row.users, row.groups) == ("carl", ("anna", "bert"), ("sales", "ops"))
    assert (row.due, row.follow_up, row.priority, row.inputs) == (NOW + DAY, NOW + HOUR, 42, {"question": "?"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [(datetime(2026, 1, 1, 1, tzinfo=UTC), NOW + HOUR), (timedelta(hours=2), NOW + 2 * HOUR), ("", None), (None, None)],
)
def test_a_due_date_may_be_a_date_a_duration_or_nothing(bench, value, expected):
    process = ProcessBuilder("p")
    process.start("s").user_task("u", due="=due").end("e")
    run = bench(process)
    run.start(due=value)
    assert run.held[run.wait("u")].task.due == expected


@pytest.mark.parametrize("field", ["assignee", "candidate_users", "priority", "due"])
def test_an_assignment_of_the_wrong_kind_is_an_incident_that_names_the_task(bench, field):
    operands: dict[str, Any] = {field: Expression("x")}
    nodes: dict[str, FlowNode] = {
        "s": UserTask("s", scope="p", outgoing=("f",), **operands),
        "e": CatchEvent("e", scope="p", incoming=("f",), definitions=(MessageDefinition(name="M"),)),
    }
    run = bench(Process("p", nodes=nodes, flows={"f": SequenceFlow("f", "s", "e")}))
    run.start(x={"a": 1})
    assert run.tokens == [("s", "incident")]


def test_mapped_inputs_are_seen_by_the_task_alone(bench):
    process = ProcessBuilder("p")
    process.start("s").user_task("u", inputs={"a": "=x + 1", "b": "=a * 2"}, outputs={"y": "=b + given"}).end("e")
    run = bench(process)
    run.start(x=1)
    assert run.state.tracks["1"].local == {"a": 2, "b": 4}
    run.fire("u", {"given": 10})
    assert run.variables == {"x": 1, "y": 14}


def test_an_input_mapping_that_fails_is_an_incident_before_anything_is_armed(bench):
    process = ProcessBuilder("p")
    process.start("s").user_task("u", inputs={"a": Expression("missing + 1", "python")}).end("e")
    run = bench(process)
    run.start()
    assert run.waiting == [("u", "incident")]
    assert "input mapping 'a'" in run.cause


def test_any_failure_inside_an_expression_language_stays_an_incident(bench, monkeypatch):
    from dataclasses import replace

    process = ProcessBuilder("p")
    process.start("s").catch("c", timer=after("=x")).end("e")
    run = bench(process)
    node = run.program.nodes["c"]

    def broken(_variables, _now):
        raise ZeroDivisionError("a fault of the language itself")

    timer = replace(node.definitions[0], value=replace(node.definitions[0].value, evaluate=broken))
    nodes = {**run.program.nodes, "c": replace(node, definitions=(timer,))}
    run.program = replace(run.program, nodes=nodes)
    run.start()
    assert "ZeroDivisionError" in run.cause


def test_a_woken_token_counts_its_wakes(bench):
    process = ProcessBuilder("p")
    process.start("s").catch("a", timer=after("PT1H")).catch("b", message="M").user_task("c").end("e")
    run = bench(process)
    run.start()
    run.pass_time(HOUR)
    run.fire("b")
    assert run.state.tracks["1"].wakes == 2


def test_a_wait_id_may_contain_a_node_id_with_colons():
    wait = wait_id("3", "ns:node:1", 0, 12, 4)
    assert wait == "3:ns:node:1:0:12#4"
    assert parse_wait_id(wait) == ("3", "ns:node:1", "0", "12#4")


def test_a_date_in_the_past_is_due_at_once(bench):
    """X5."""
    process = ProcessBuilder("p")
    process.start("s").catch("c", timer=at_date("2025-01-01T00:00:00Z")).end("e")
    run = bench(process)
    run.start()
    run.pass_time(0)
    assert run.outcome == "completed"


def test_a_thousand_parallel_waits_wake_from_their_own_parts():
    """The checkpoint is in parts: a wake of one of many reads the head, itself and its scope."""
    process = ProcessBuilder("p")
    fork = process.start("s").parallel("g")
    for number in range(200):
        fork.catch(f"c{number}", message="M", key=str(number)).parallel("j") if number == 0 else fork.catch(
            f"c{number}", message="M", key=str(number)
        ).to("j")
    process.at("j").end("e")
    run = Bench(process, "partial")
    run.start()
    step = run.fire("c77")
    assert run.reloads == 0
    assert step.changed | step.removed == {"h", "s0", "t78"}


def test_an_instantiating_receive_task_starts_with_its_message(bench):
    nodes: dict[str, FlowNode] = {
        "r": ReceiveTask("r", scope="p", outgoing=("f",), message=MessageDefinition(name="M"), instantiate=True),
        "u": UserTask("u", scope="p", incoming=("f",)),
    }
    run = bench(Process("p", nodes=nodes, flows={"f": SequenceFlow("f", "r", "u")}))
    assert run.program.triggered == ("r",)
    run.start("r", x=1)
    assert run.trace == ["r"]
    assert run.variables == {"x": 1}


def test_an_event_gateway_whose_timer_never_fires_is_an_incident_that_variables_heal(bench):
    process = ProcessBuilder("p")
    process.start("s").event_gateway("g").catch("t", timer=every("=cycle")).end("e1")
    process.at("g").catch("m", message="M").end("e2")
    run = bench(process)
    run.start(cycle="R0/PT1H")
    assert run.waiting == [("g", "incident")]
    assert "'t', an arm of 'g', has no occurrence" in run.cause
    run.resolve(cycle="R1/PT1H")
    assert run.waiting == [("m", "message"), ("t", "timer")]
    run.pass_time(HOUR)
    assert run.trace == ["s", "g", "t", "e1"]


@pytest.mark.parametrize("number", [4711, 4711.0, Decimal("4711.00")])
def test_an_assignee_and_a_priority_may_be_any_whole_number(bench, number):
    process = ProcessBuilder("p")
    process.start("s").user_task("u", assignee="=n", priority="=n").end("e")
    run = bench(process)
    run.start(n=number)
    row = run.held[run.wait("u")].task
    assert (row.assignee, row.priority) == ("4711", 4711)
