"""When an instance may be released, and what a deployed process waits for before it has one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gobpm_ray.core.faults import Fault
from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.core.nodes import FAMILIES
from gobpm_ray.core.nodes.family import Dehydratable, Family
from gobpm_ray.core.program import compile_process
from gobpm_ray.core.projection import open_incidents
from gobpm_ray.core.starts import next_start_arm, start_arms
from gobpm_ray.core.step import Trigger
from gobpm_ray.errors import BrokenInvariant, InvalidTimer
from gobpm_ray.model.builder import ProcessBuilder, after, every
from gobpm_ray.model.elements import AbstractTask, SubProcess
from tests.unit.core.driving import DAY, HOUR, MINUTE, NOW, SECOND, Bench


def waiting(build) -> Bench:
    process = ProcessBuilder("p")
    build(process.start("s")).end("e")
    run = Bench(process)
    run.start()
    return run


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda at: at.user_task("u"), True),
        (lambda at: at.catch("c", message="M"), True),
        (lambda at: at.catch("c", signal="S"), True),
        (lambda at: at.receive_task("r", message="M"), True),
        (lambda at: at.catch("c", timer=after("PT30S")), True),
        (lambda at: at.catch("c", timer=after("PT29S")), False),
        (lambda at: at.service_task("w"), False),
        (lambda at: at.sub_process("sub", lambda inside: inside.start().user_task("u").end()), True),
        (lambda at: at.sub_process("sub", lambda inside: inside.start().service_task("w").end()), False),
    ],
)
def test_each_family_answers_for_its_own_wait(build, expected):
    """D2, X13, X16; W2: a timer under the threshold keeps its instance."""
    assert waiting(build).willing(30 * SECOND) is expected


def test_an_event_gateway_is_always_willing_whatever_its_arms_say():
    process = ProcessBuilder("p")
    process.start("s").event_gateway("g").catch("a", timer=after("PT1S")).end("e1")
    process.at("g").catch("b", message="M").end("e2")
    run = Bench(process)
    run.start()
    assert run.willing()


def test_a_near_boundary_timer_keeps_the_instance_resident():
    """Promise 5: release is decided per wait."""
    process = ProcessBuilder("p")
    process.start("s").user_task("u").end("e")
    process.boundary("u", "b", timer=after("PT10S")).end("x")
    run = Bench(process)
    run.start()
    assert not run.willing()
    assert run.willing(5 * SECOND)


def test_a_job_in_flight_keeps_the_instance_resident():
    """D12, W17."""
    process = ProcessBuilder("p")
    process.start("s").service_task("w", topic="t").end("e")
    run = Bench(process, jobs=lambda _: True)
    run.start()
    assert not run.willing()


def test_an_open_incident_is_a_wait_for_an_operator():
    """D24."""
    process = ProcessBuilder("p")
    process.start("s").service_task("w").end("e")
    process.boundary("w", "b", timer=after("PT1H")).end("x")
    run = Bench(process)
    run.start()
    run.failed("w", "boom")
    assert run.willing()
    run.now += HOUR - SECOND
    assert not run.willing(), "the boundary over it is near"


def test_one_unwilling_branch_keeps_the_whole_instance():
    process = ProcessBuilder("p")
    process.start("s").parallel("g").user_task("u").end("e1")
    process.at("g").service_task("w").end("e2")
    run = Bench(process)
    run.start()
    assert not run.willing()
    run.done("w")
    assert run.willing()


class Blocking(Family):
    """A family of a user's own, without the capability."""

    def enter(self, run, track, node):
        raise Fault("blocked", "parks for ever")


def test_a_family_without_the_capability_keeps_its_instance_resident(monkeypatch):
    """D2: absent means resident. A further family needs a row in the table and nothing else."""
    from gobpm_ray.core.state import TrackState

    class Parking(Family):
        def enter(self, run, track, node):
            track.state = TrackState.WAITING

    class Opting(Parking):
        def dehydratable(self, park):
            return park.node.id == "t"

    for family, expected in ((Parking(), False), (Opting(), True)):
        assert isinstance(family, Dehydratable) is expected
        monkeypatch.setitem(FAMILIES, AbstractTask, family)
        process = ProcessBuilder("p")
        process.start("s").task("t").end("e")
        run = Bench(process)
        run.start()
        assert run.tokens == [("t", "waiting")]
        assert run.willing() is expected


def test_a_custom_familys_fault_is_an_incident_with_its_code(monkeypatch):
    monkeypatch.setitem(FAMILIES, AbstractTask, Blocking())
    process = ProcessBuilder("p")
    process.start("s").task("t").end("e")
    run = Bench(process)
    run.start()
    [incident] = open_incidents(run.state)
    assert (incident.code, incident.cause, incident.node, incident.at) == ("blocked", "parks for ever", "t", NOW)


def test_what_cannot_happen_is_a_broken_invariant(monkeypatch):
    process = ProcessBuilder("p")
    process.start("s").user_task("u").end("e")
    run = Bench(process)
    run.start()
    wait = run.wait("u")
    run.program = replace(
        run.program, nodes={**run.program.nodes, "u": replace(run.program.nodes["u"], family=Family())}
    )
    with pytest.raises(BrokenInvariant, match="arms no wait"):
        run.trigger(Trigger("x", "task", wait))
    run.state.tracks["1"].node = "gone"
    with pytest.raises(BrokenInvariant, match="'gone'"):
        run.cancel()


def test_a_family_that_hosts_or_calls_nothing_refuses_to_hear_of_it():
    process = ProcessBuilder("p")
    process.start("s").sub_process("sub", lambda inside: inside.start().user_task("u").end()).end("e")
    run = Bench(process)
    run.start()
    assert isinstance(run.program.nodes["sub"].element, SubProcess)
    run.program = replace(
        run.program, nodes={**run.program.nodes, "sub": replace(run.program.nodes["sub"], family=Family())}
    )
    with pytest.raises(BrokenInvariant, match="hosts scope 1"):
        run.fire("u")


# --- start events of a process -----------------------------------------------------------------------------------


def triggered() -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start("plain").end("e0")
    process.start("msg", message="Order", outputs={"amount": "=total"}).end("e1")
    process.start("sig", signal="Alarm").end("e2")
    process.start("tick", timer=every("R2/PT10M")).end("e3")
    process.start("once", timer=after("PT1H")).end("e4")
    process.start("never", timer=every("R0/PT1H")).end("e5")
    return process


def test_a_deployed_process_waits_for_its_triggered_starts():
    """X12, D10: messages and signals stay armed, by name alone for any key."""
    program = compile_process(triggered().build())
    arms = [arm for arm, _ in start_arms(program, NOW)]
    assert [(arm.wait, arm.kind, arm.repeat, arm.key, arm.deadline) for arm in arms] == [
        ("@:msg:0:0", "message", True, message_key("Order"), None),
        ("@:sig:0:0", "signal", True, signal_key("Alarm"), None),
        ("@:tick:0:0", "timer", False, "", NOW + 10 * MINUTE),
        ("@:once:0:0", "timer", False, "", NOW + HOUR),
    ]


def test_a_timer_start_goes_on_through_its_cycle_and_no_further():
    """T37."""
    program = compile_process(triggered().build())
    held = {arm.wait: armed for arm, armed in start_arms(program, NOW)}
    following = next_start_arm("@:tick:0:0", held["@:tick:0:0"], NOW + 10 * MINUTE)
    assert following is not None
    arm, armed = following
    assert (arm.wait, arm.deadline) == ("@:tick:0:0#2", NOW + 20 * MINUTE)
    assert next_start_arm(arm.wait, armed, NOW + 20 * MINUTE) is None
    assert next_start_arm("@:once:0:0", held["@:once:0:0"], NOW + HOUR) is None


def test_a_timer_start_that_cannot_be_read_is_refused_by_name():
    process = ProcessBuilder("p")
    process.start("tick", timer=after("=soon")).end("e")
    with pytest.raises(InvalidTimer, match="start event 'tick'"):
        start_arms(compile_process(process.build()), NOW)


def test_a_start_by_a_message_binds_its_payload_through_the_mappings(bench):
    run = bench(triggered())
    run.start("msg", total=5, noise=1)
    assert run.trace == ["msg", "e1"]
    assert run.variables == {"amount": 5}


@pytest.mark.parametrize(("node", "trace"), [("sig", ["sig", "e2"]), ("tick", ["tick", "e3"]), ("", ["plain", "e0"])])
def test_a_start_runs_only_the_start_event_that_is_meant(bench, node, trace):
    run = bench(triggered())
    run.start(node, x=1)
    assert run.trace == trace
    assert run.variables == {"x": 1}


def test_an_instance_born_parked_is_willing_at_once():
    """W18."""
    process = ProcessBuilder("p")
    process.start("s", message="M").catch("c", timer=after("P7D")).end("e")
    run = Bench(process)
    run.start("s")
    assert run.willing()
    assert run.deadline("c") == 7 * DAY
