"""Parallel and instantiating event-based gateways (BPMN 10.6.6)."""

from __future__ import annotations

from gobpm_ray.core.keys import message_key
from gobpm_ray.core.starts import start_arms
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.elements import CatchEvent, EventBasedGateway, MessageDefinition, Process
from tests.unit.core.drawing import after, drawn, feel
from tests.unit.core.driving import HOUR, NOW


def both() -> Process:
    """A parallel gateway in the middle: an order and a payment, in any order."""
    return drawn(
        "s > g > order > t1 > e1\ng > paid > t2 > e2",
        EventBasedGateway("g", parallel=True),
        CatchEvent("order", definitions=(MessageDefinition(name="Order"),)),
        CatchEvent("paid", definitions=(MessageDefinition(name="Paid"),)),
    )


def started_by_any(parallel: bool = False) -> Process:
    process = ProcessBuilder("p")
    process.first.event_gateway("g", instantiate=True, parallel=parallel)
    process.at("g").catch("order", message="Order").task("t1").end("e1")
    process.at("g").catch("paid", message="Paid", key="=number").task("t2").end("e2")
    return process.build()


def test_a_parallel_gateway_needs_all_of_its_arms_and_each_goes_on_when_its_event_comes(bench):
    run = bench(both())
    run.start()
    run.fire("paid", {"amount": 5})
    assert run.trace == ["s", "paid", "t2", "e2"]
    assert run.waiting == [("order", "message")]
    assert run.outcome == ""
    run.fire("order")
    assert run.trace == ["s", "paid", "t2", "e2", "g", "order", "t1", "e1"]
    assert run.outcome == "completed"


def test_the_arms_of_a_parallel_gateway_do_not_race(bench):
    run = bench(both())
    run.start()
    assert {arm.group for arm in run.held.values()} == {""}
    assert run.willing()


def test_a_parallel_gateway_in_an_incident_is_armed_again(bench):
    process = drawn(
        "s > g > order > e1\ng > late > e2",
        EventBasedGateway("g", parallel=True),
        CatchEvent("order", definitions=(MessageDefinition(name="Order", key=feel("number")),)),
        CatchEvent("late", definitions=(after("PT1H"),)),
    )
    run = bench(process)
    run.start()
    assert "correlation key of message 'Order'" in run.cause
    run.assign(number=5)
    run.retry()
    run.fire("order")
    run.pass_time(2 * HOUR)
    assert run.trace == ["s", "order", "e1", "g", "late", "e2"]


def test_an_instantiating_gateway_waits_for_its_arms_before_there_is_an_instance(bench):
    run = bench(started_by_any())
    held = {arm.node: (arm.kind, arm.key, arm.repeat) for arm, _ in start_arms(run.program, NOW)}
    assert held == {
        "order": ("message", message_key("Order"), True),
        "paid": ("message", message_key("Paid"), True),
    }
    assert run.program.starts["p"] == ()


def test_any_arm_begins_an_instance_and_the_others_are_not_waited_for(bench):
    run = bench(started_by_any())
    run.start("paid", number=7)
    assert run.trace == ["g", "paid", "t2", "e2"]
    assert (run.outcome, run.variables) == ("completed", {"number": 7})


def test_behind_a_parallel_one_the_instance_waits_for_the_others_of_its_conversation(bench):
    run = bench(started_by_any(parallel=True))
    run.start("order", number=7)
    assert run.trace == ["order", "t1", "e1"]
    assert [arm.key for arm in run.held.values()] == [message_key("Paid", 7)]
    run.fire("paid")
    assert run.trace == ["order", "t1", "e1", "g", "paid", "t2", "e2"]
    assert run.outcome == "completed"


def test_what_cannot_be_waited_for_is_an_incident_of_the_gateway_and_the_first_arm_goes_on(bench):
    run = bench(started_by_any(parallel=True))
    run.start("order")
    assert run.trace == ["order", "t1", "e1"]
    assert run.tokens == [("g", "incident")]
    run.assign(number=9)
    run.retry()
    assert [(arm.node, arm.key) for arm in run.held.values()] == [("paid", message_key("Paid", 9))]
    run.fire("paid")
    assert run.outcome == "completed"


def test_a_process_that_only_events_start_is_not_started_by_its_name(bench):
    run = bench(started_by_any())
    run.start()
    assert "no start event that needs no trigger" in run.cause
