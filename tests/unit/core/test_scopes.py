"""Embedded sub-processes: scopes, their variables and their end."""

from __future__ import annotations

import pytest

from gobpm_ray.core.step import Trigger
from gobpm_ray.model.builder import ProcessBuilder, after
from gobpm_ray.model.elements import Expression, Mapping, Process, SubProcess
from tests.unit.core.driving import HOUR, Bench


def nested() -> ProcessBuilder:
    process = ProcessBuilder("p")
    with process.start("s").sub_process("sub") as inside:
        inside.start("si").parallel("f").user_task("a").end("ea")
        inside.at("f").user_task("b").end("eb")
    process.at("sub").end("e")
    return process


def with_mappings(process: Process, node: str, inputs: dict[str, str], outputs: dict[str, str]) -> Process:
    from dataclasses import replace

    sub = process.nodes[node]
    assert isinstance(sub, SubProcess)
    mapped = replace(
        sub,
        inputs=tuple(Mapping(target, Expression(source)) for target, source in inputs.items()),
        outputs=tuple(Mapping(target, Expression(source)) for target, source in outputs.items()),
    )
    return replace(process, nodes={**process.nodes, node: mapped})


def test_the_token_hosts_a_scope_and_goes_on_when_its_inside_is_done(bench):
    """W14."""
    run = bench(nested())
    run.start()
    assert run.tokens == [("a", "waiting"), ("b", "waiting"), ("sub", "hosting")]
    assert {scope.id: (scope.depth, scope.live, scope.host) for scope in run.state.scopes.values()} == {
        "0": (0, 1, ""),
        "1": (1, 2, "1"),
    }
    assert {arm.depth for arm in run.held.values()} == {1}
    run.fire("a")
    step = run.fire("b")
    assert run.trace == ["s", "si", "f", "a", "ea", "b", "eb", "sub", "e"]
    assert run.outcome == "completed"
    assert "s1" in step.removed


def test_a_wake_inside_names_the_hosts_of_its_scopes_among_its_parts():
    run = Bench(nested(), "partial")
    run.start()
    assert run.touch[run.wait("a")] == ("h", "t2", "s1", "t1", "s0")
    run.fire("a")
    run.fire("b")
    assert run.reloads == 0
    assert run.outcome == "completed"


def test_an_inside_without_nodes_completes_at_once(bench):
    process = ProcessBuilder("p")
    process.start("s").sub_process("sub").end("e")
    process.boundary("sub", "b", message="M").end("x")
    run = bench(process)
    step = run.start()
    assert run.trace == ["s", "sub", "e"]
    assert step.arms == []


def test_an_inside_without_a_start_event_starts_at_what_nothing_leads_to(bench):
    process = ProcessBuilder("p")
    with process.start("s").sub_process("sub") as inside:
        inside.first.user_task("a")
        inside.first.task("t")
    process.boundary("sub", "late", timer=after("PT1H"))
    run = bench(process)
    run.start()
    assert run.waiting == [("a", "task"), ("late", "timer")]
    run.fire("a")
    assert run.trace == ["s", "t", "a", "sub"]
    assert run.outcome == "completed"


def test_an_interrupting_boundary_tears_the_inside_down_at_every_depth(bench):
    """W5 over a scope; needs the whole instance, and says so."""
    process = ProcessBuilder("p")
    with process.start("s").sub_process("outer") as outer:
        with outer.start("so").sub_process("inner") as inner:
            inner.start("si").parallel("f").user_task("a").end("ea")
            inner.at("f").service_task("work").parallel("j").end("ej")
            inner.at("f").task("t").to("j")
        outer.at("inner").end("eo")
    process.at("outer").end("e")
    process.boundary("outer", "b", timer=after("PT1H")).end("late")
    run = bench(process)
    run.start(x=1)
    assert ("j", "joined") in run.tokens
    key = next(iter(run.calls))
    run.pass_time(HOUR)
    assert run.last.cancelled == [key]
    assert run.trace[-2:] == ["b", "late"]
    assert run.outcome == "completed"
    assert set(run.parts) == {"h", "s0"}
    if run.hydration == "partial":
        assert run.reloads == 1


def test_a_non_interrupting_boundary_leaves_the_inside_alone(bench):
    process = nested()
    process.boundary("sub", "note", signal="S", interrupting=False).user_task("h").end("x")
    run = bench(process)
    run.start()
    run.fire("note")
    assert run.tokens == [("a", "waiting"), ("b", "waiting"), ("h", "waiting"), ("sub", "hosting")]
    assert run.state.tracks["4"].scope == "0"
    run.fire("a")
    run.fire("b")
    run.fire("h")
    assert run.outcome == "completed"
    assert run.held == {}


def test_a_terminate_end_inside_ends_only_that_scope(bench):
    process = ProcessBuilder("p")
    with process.start("s").sub_process("sub") as inside:
        inside.start("si").parallel("f").user_task("a").end("stop", terminate=True)
        inside.at("f").user_task("b").end("eb")
    process.at("sub").user_task("after").end("e")
    run = bench(process)
    run.start()
    run.fire("a")
    assert run.waiting == [("after", "task")]
    assert run.trace == ["s", "si", "f", "a", "stop", "sub"]
    assert run.outcome == ""


def test_an_inner_completion_in_the_same_inbox_as_the_interrupt_is_overtaken(bench):
    process = nested()
    process.boundary("sub", "late", timer=after("PT1H")).end("x")
    run = bench(process)
    run.start()
    inner, timer = run.wait("a"), run.wait("late")
    step = run.trigger(Trigger("t", "timer", timer), Trigger("a", "task", inner))
    assert [trigger.id for trigger in step.overtaken] == ["a"]


def test_an_assignment_lands_in_the_nearest_scope_that_has_the_name_else_in_the_root(bench):
    process = with_mappings(nested().build(), "sub", {"mine": "start"}, {})
    run = bench(process)
    run.start(start=1)
    assert run.state.scopes["1"].variables == {"mine": 1}
    run.fire("a", {"mine": 2, "new": 3, "start": 4})
    assert run.state.scopes["1"].variables == {"mine": 2}
    assert run.variables == {"start": 4, "new": 3}
    run.fire("b")
    assert run.variables == {"start": 4, "new": 3}, "what was mapped in does not leak out"


def test_output_mappings_of_a_sub_process_see_its_inside(bench):
    process = with_mappings(nested().build(), "sub", {"mine": "0"}, {"result": "mine + outer"})
    run = bench(process)
    run.start(outer=10)
    run.fire("a", {"mine": 5})
    run.fire("b")
    assert run.variables == {"outer": 10, "result": 15}


def test_a_failed_output_mapping_of_a_sub_process_keeps_its_inside_until_it_is_retried(bench):
    process = with_mappings(nested().build(), "sub", {"mine": "1"}, {})
    from dataclasses import replace

    sub = replace(process.nodes["sub"], outputs=(Mapping("r", Expression("mine / z", "python")),))
    process = replace(process, nodes={**process.nodes, "sub": sub})
    run = bench(process)
    run.start(z=0)
    run.fire("a")
    run.fire("b", {"mine": 6})
    assert run.waiting == [("sub", "incident")]
    run.assign(z=2)
    run.retry()
    assert run.outcome == "completed"
    assert run.variables["r"] == 3


def test_a_boundary_timer_over_a_sub_process_sees_its_mapped_inputs(bench):
    process = nested()
    process.boundary("sub", "late", timer=after("=limit")).end("x")
    run = bench(with_mappings(process.build(), "sub", {"limit": '"PT2H"'}, {}))
    run.start()
    assert run.deadline("late") == 2 * HOUR


def test_a_deadlock_inside_is_an_incident_there(bench):
    process = ProcessBuilder("p")
    with process.start("s").sub_process("sub") as inside:
        inside.start("si").exclusive("x").when("true").parallel("j").end("ej")
        inside.at("x").otherwise().to("j")
    process.at("sub").end("e")
    run = bench(process)
    run.start()
    assert run.tokens == [("j", "incident"), ("j", "joined"), ("sub", "hosting")]
    run.resolve()
    assert run.trace == ["s", "si", "x", "j", "ej", "sub", "e"]


@pytest.mark.parametrize("hydration", ["resident", "whole", "partial"])
def test_a_sub_process_in_a_loop_gets_a_new_scope_each_time(hydration):
    process = ProcessBuilder("p")
    with process.start("s").exclusive("m").sub_process("sub") as inside:
        inside.start().user_task("u").script_task("i", "i + 1", result="i").end()
    process.at("sub").exclusive("g").when("i < 3").to("m")
    process.at("g").otherwise().end("e")
    run = Bench(process, hydration)
    run.start(i=0)
    seen = []
    while not run.outcome:
        seen.append(set(run.state.scopes))
        run.fire("u")
    assert seen == [{"0", "1"}, {"0", "2"}, {"0", "3"}]


def test_a_token_that_stood_in_the_queue_of_a_terminated_scope_never_runs(bench):
    process = ProcessBuilder("p")
    with process.start("s").sub_process("sub") as inside:
        inside.start("si").parallel("f").end("stop", terminate=True)
        inside.at("f").task("never").end("ei")
    process.at("sub").end("e")
    run = bench(process)
    run.start()
    assert run.trace == ["s", "si", "f", "stop", "sub", "e"]
    assert run.outcome == "completed"
