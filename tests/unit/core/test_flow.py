"""Tokens along sequence flows: starts, forks, choices, joins, ends."""

from __future__ import annotations

import pytest

from gobpm_ray.core.program import compile_process
from gobpm_ray.core.projection import variables
from gobpm_ray.core.state import InstanceState
from gobpm_ray.core.step import Trigger
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.builder import ProcessBuilder, ScopeBuilder
from gobpm_ray.model.elements import (
    AbstractTask,
    ExclusiveGateway,
    Expression,
    FlowNode,
    Process,
    ReceiveTask,
    ScriptTask,
    SequenceFlow,
    StartEvent,
)
from tests.unit.core.driving import Bench


def test_a_process_of_passing_nodes_completes_in_one_step(bench):
    process = ProcessBuilder("p")
    process.start("s").task("a").manual_task("b").end("e")
    run = bench(process)
    step = run.start(x=1)
    assert run.outcome == "completed"
    assert run.trace == ["s", "a", "b", "e"]
    assert run.variables == {"x": 1}
    assert (run.events[0], run.events[-1]) == ("started", "ended")
    assert step.changed == {"h", "s0"}
    assert step.removed == set()


def test_without_a_start_event_every_node_that_nothing_leads_to_starts(bench):
    process = ProcessBuilder("p")
    process.first.task("a").end("e1")
    process.first.task("b").end("e2")
    run = bench(process)
    run.start()
    assert run.trace == ["a", "b", "e1", "e2"]


def test_with_a_start_event_no_other_node_starts_by_itself(bench):
    process = ProcessBuilder("p")
    process.start("s").end("e")
    process.first.task("stray").end("e2")
    run = bench(process)
    run.start()
    assert run.trace == ["s", "e"]


def test_several_flows_out_of_a_task_fork_in_one_atomic_step(bench):
    process = ProcessBuilder("p")
    process.start("s").task("t").user_task("a").end("e1")
    process.at("t").user_task("b").end("e2")
    process.at("t").user_task("c").end("e3")
    run = bench(process)
    run.start()
    assert run.tokens == [("a", "waiting"), ("b", "waiting"), ("c", "waiting")]
    assert [(track.id, track.parent) for track in run.state.tracks.values()] == [("1", ""), ("2", "1"), ("3", "1")]
    assert run.state.scopes["0"].live == 3
    run.fire("b")
    run.fire("a")
    assert run.outcome == ""
    run.fire("c")
    assert run.outcome == "completed"
    assert run.trace == ["s", "t", "b", "e2", "a", "e1", "c", "e3"]


def test_a_task_takes_every_flow_whose_condition_holds_and_the_unconditional_ones(bench):
    process = ProcessBuilder("p")
    process.start("s").task("t").end("always")
    process.at("t").when("x > 1").end("big")
    process.at("t").when("x > 10").end("huge")
    process.at("t").otherwise().end("rest")
    run = bench(process)
    run.start(x=5)
    assert run.trace == ["s", "t", "always", "big"]


def test_a_task_takes_its_default_flow_when_no_condition_holds(bench):
    process = ProcessBuilder("p")
    process.start("s").task("t").when("x > 1").end("big")
    process.at("t").otherwise().end("rest")
    run = bench(process)
    run.start(x=0)
    assert run.trace == ["s", "t", "rest"]


def test_a_task_without_a_way_out_is_an_incident_and_is_not_done_twice(bench):
    process = ProcessBuilder("p")
    process.start("s").service_task("t").when("x > 1").end("big")
    run = bench(process)
    run.start(x=0)
    run.done("t")
    assert "serviceTask 't'" in run.cause
    assert run.trace == ["s", "t"]
    run.assign(x=2)
    run.retry()
    assert run.outcome == "completed"
    assert run.trace == ["s", "t", "big"]
    assert not run.calls, "the work was done again"


def test_an_exclusive_gateway_takes_the_first_flow_in_order_whose_condition_holds(bench):
    process = ProcessBuilder("p")
    process.start("s").exclusive("g").when("x > 10").end("huge")
    process.at("g").when("x > 1").end("big")
    process.at("g").when("x > 0").end("small")
    process.at("g").otherwise().end("none")
    for x, expected in ((20, "huge"), (5, "big"), (1, "small"), (0, "none")):
        run = bench(process)
        run.start(x=x)
        assert run.trace == ["s", "g", expected]


def test_a_condition_on_the_default_flow_is_ignored(bench):
    nodes: dict[str, FlowNode] = {
        "s": StartEvent("s", scope="p", outgoing=("f0",)),
        "g": ExclusiveGateway("g", scope="p", incoming=("f0",), outgoing=("f1", "f2"), default="f1"),
        "a": AbstractTask("a", scope="p", incoming=("f1",)),
        "b": AbstractTask("b", scope="p", incoming=("f2",)),
    }
    flows = {
        "f0": SequenceFlow("f0", "s", "g"),
        "f1": SequenceFlow("f1", "g", "a", condition=Expression("true"), default=True),
        "f2": SequenceFlow("f2", "g", "b", condition=Expression("x = 1")),
    }
    run = bench(Process("p", nodes=nodes, flows=flows))
    run.start(x=1)
    assert run.trace == ["s", "g", "b"]
    other = bench(Process("p", nodes=nodes, flows=flows))
    other.start(x=2)
    assert other.trace == ["s", "g", "a"]


def test_an_exclusive_gateway_without_a_way_out_is_an_incident_that_heals_by_setting_a_variable(bench):
    process = ProcessBuilder("p")
    process.start("s").exclusive("g").when("x > 1").end("e")
    run = bench(process)
    run.start(x=0)
    assert run.waiting == [("g", "incident")]
    assert "exclusiveGateway 'g'" in run.cause
    run.retry()
    assert run.waiting == [("g", "incident")], "a retry that fails is an incident again, with a new id"
    run.resolve(x=3)
    assert run.trace == ["s", "g", "e"]
    assert run.outcome == "completed"


def test_a_condition_that_is_neither_true_nor_false_is_an_incident(bench):
    process = ProcessBuilder("p")
    process.start("s").exclusive("g").when("nobody_set_this").end("e")
    process.at("g").otherwise().end("d")
    run = bench(process)
    run.start()
    assert "expected true or false, got null" in run.cause


def test_an_exclusive_merge_passes_every_token(bench):
    process = ProcessBuilder("p")
    process.start("s").parallel("split").exclusive("merge").task("t").end("e")
    process.at("split").to("merge")
    run = bench(process)
    run.start()
    assert run.trace == ["s", "split", "merge", "merge", "t", "t", "e", "e"]


def test_a_parallel_join_opens_once_when_every_flow_has_brought_a_token(bench):
    """W11, W15: it is listed once, and absorbed tokens are still shown."""
    process = ProcessBuilder("p")
    process.start("s").parallel("split").user_task("a").parallel("join").end("e")
    process.at("split").user_task("b").to("join")
    process.at("split").user_task("c").to("join")
    run = bench(process)
    run.start()
    run.fire("b")
    assert run.tokens == [("a", "waiting"), ("c", "waiting"), ("join", "joined")]
    assert run.state.scopes["0"].live == 2
    run.fire("a")
    assert run.outcome == ""
    run.fire("c")
    assert run.outcome == "completed"
    assert run.trace == ["s", "split", "b", "a", "c", "join", "e"]


def test_a_second_token_by_the_same_flow_belongs_to_the_next_activation(bench):
    process = ProcessBuilder("p")
    process.start("s").parallel("two").exclusive("m").parallel("join").end("e")
    process.at("two").to("m")
    process.at("s").user_task("u").parallel("w").to("join")
    process.at("w").to("m2")
    process.first.exclusive("m2")
    process.at("m2").end("x")
    run = bench(process)
    run.start()
    assert [len(activation) for activation in run.state.scopes["0"].joins["join"]] == [1, 1]
    run.fire("u")
    assert run.trace.count("join") == 1
    assert "join" in run.cause, "the second activation can never open"


def test_a_join_that_nothing_can_reach_any_more_is_a_deadlock_that_an_operator_opens(bench):
    process = ProcessBuilder("p")
    process.start("s").exclusive("x").when("true").task("a").parallel("join").end("e")
    process.at("x").otherwise().task("b")
    process.connect("b", "join", id="never")
    run = bench(process)
    run.start()
    assert run.waiting == [("join", "incident")]
    assert "'join'" in run.cause
    assert "'never'" in run.cause
    assert ("join", "incident") in run.tokens
    assert ("join", "joined") in run.tokens
    run.retry()
    assert run.waiting == [("join", "incident")]
    run.resolve(opened=True)
    assert run.outcome == "completed"
    assert run.trace == ["s", "x", "a", "join", "e"]
    assert run.variables == {"opened": True}


def test_a_terminate_end_at_the_root_completes_the_instance_and_withdraws_everything(bench):
    process = ProcessBuilder("p")
    process.start("s").parallel("g").user_task("a").end("stop", terminate=True)
    process.at("g").user_task("b").end("e2")
    process.at("g").service_task("work").end("e3")
    run = bench(process)
    run.start()
    key = next(iter(run.calls))
    step = run.fire("a")
    assert run.outcome == "completed"
    assert run.held == {}
    assert step.cancelled == [key]
    assert run.trace == ["s", "g", "a", "stop"]
    assert set(run.parts) == {"h", "s0"}


def test_cancelling_ends_as_terminated_with_everything_withdrawn(bench):
    process = ProcessBuilder("p")
    process.start("s").parallel("g").user_task("a").end("e1")
    process.at("g").sub_process("sub", lambda inside: inside.start().user_task("b").end()).end("e2")
    run = bench(process)
    run.start(kept=1)
    run.cancel()
    assert run.outcome == "terminated"
    assert run.held == {}
    assert run.variables == {"kept": 1}
    assert set(run.parts) == {"h", "s0"}


def test_an_endless_loop_is_an_incident_of_its_token_and_siblings_go_on(bench):
    process = ProcessBuilder("p")
    process.start("s").parallel("g").exclusive("m").task("t").to("m")
    process.at("g").user_task("u").end("e")
    run = bench(process, max_steps=50)
    run.start()
    assert run.tokens in ([("m", "incident"), ("u", "waiting")], [("t", "incident"), ("u", "waiting")])
    assert "endless loop" in run.cause
    run.fire("u")
    assert run.trace[-1] == "e"
    assert run.outcome == ""


def test_a_loop_that_forks_without_end_is_stopped_too():
    process = ProcessBuilder("p")
    process.start("s").exclusive("m").parallel("g").to("m")
    process.at("g").to("m")
    run = Bench(process, max_steps=40)
    run.start()
    assert {state for _, state in run.tokens} == {"incident"}


def test_a_wide_fork_is_no_endless_loop():
    process = ProcessBuilder("p")
    fork = process.start("s").parallel("g")
    for number in range(60):
        fork.task(f"t{number}").end(f"e{number}")
    run = Bench(process, max_steps=50)
    run.start()
    assert run.outcome == "completed"


def test_tokens_run_first_in_first_out(bench):
    process = ProcessBuilder("p")
    process.start("s").parallel("g").task("a1").task("a2").end("ea")
    process.at("g").task("b1").task("b2").end("eb")
    run = bench(process)
    run.start()
    assert run.trace == ["s", "g", "a1", "b1", "a2", "b2", "ea", "eb"]


def test_a_second_start_is_overtaken(bench):
    process = ProcessBuilder("p")
    process.start("s").user_task("u").end("e")
    run = bench(process)
    run.start()
    step = run.start()
    assert len(step.overtaken) == 1
    assert run.tokens == [("u", "waiting")]


def test_triggers_after_the_end_are_overtaken_and_say_so(bench):
    """Section 7: a trigger whose wait an earlier one ended is returned, never silently dropped."""
    process = ProcessBuilder("p")
    process.start("s").parallel("g").user_task("a").end("stop", terminate=True)
    process.at("g").catch("m", message="M").end("e")
    run = bench(process)
    run.start()
    first, second = run.delivered(run.wait("a")), run.delivered(run.wait("m"))
    step = run.trigger(first, second, Trigger("late", "set", values={"x": 1}))
    assert run.outcome == "completed"
    assert [trigger.id for trigger in step.overtaken] == [second.id, "late"]
    assert run.variables == {}
    assert [entry.detail for entry in step.history if entry.event == "overtaken"] == ["message", "set"]


def test_a_process_that_only_a_trigger_starts_says_so_when_it_is_started_by_name(bench):
    process = ProcessBuilder("p")
    process.start("s", message="M").end("e")
    run = bench(process)
    run.start()
    assert "no start event that needs no trigger" in run.cause


def test_five_hundred_nested_sub_processes_complete():
    process = ProcessBuilder("p")
    inside: ScopeBuilder = process
    for level in range(500):
        inside = inside.first.sub_process(f"sub{level}").inside
    inside.first.user_task("u")
    run = Bench(process)
    run.start()
    assert run.state.scopes["500"].depth == 500
    run.fire("u")
    assert run.outcome == "completed"
    assert run.trace[:2] == ["u", "sub499"]
    again = Bench(process)
    again.start()
    again.cancel()
    assert again.outcome == "terminated"


def test_an_expression_that_does_not_compile_is_refused_naming_its_element():
    nodes: dict[str, FlowNode] = {
        "t": AbstractTask("t", scope="p", outgoing=("f",)),
        "u": AbstractTask("u", scope="p", incoming=("f",)),
    }
    flows = {"f": SequenceFlow("f", "t", "u", condition=Expression("1 +"))}
    with pytest.raises(InvalidModel, match="'f' has a condition that cannot be read"):
        compile_process(Process("p", nodes=nodes, flows=flows))


def test_a_flow_that_leads_nowhere_is_refused_naming_it():
    nodes: dict[str, FlowNode] = {"t": AbstractTask("t", scope="p", outgoing=("f",))}
    with pytest.raises(InvalidModel, match="'t' has the outgoing flow 'f', which leads nowhere"):
        compile_process(Process("p", nodes=nodes))


def test_nothing_is_shown_of_an_instance_that_has_not_started():
    assert variables(InstanceState("i", "p", 1)) == {}


def test_a_process_without_flow_nodes_completes_at_once(bench):
    run = bench(Process("p"))
    run.start(x=1)
    assert run.outcome == "completed"
    assert run.variables == {"x": 1}


@pytest.mark.parametrize("kind", ["cancel", "set"])
def test_what_is_addressed_to_an_instance_that_has_not_started_is_overtaken(bench, kind):
    process = ProcessBuilder("p")
    process.start("s").end("e")
    run = bench(process)
    step = run.trigger(Trigger("early", kind))
    assert [trigger.id for trigger in step.overtaken] == ["early"]
    run.start()
    assert run.outcome == "completed"


def test_a_message_without_a_name_is_refused_naming_its_element():
    nodes: dict[str, FlowNode] = {"r": ReceiveTask("r", scope="p")}
    with pytest.raises(InvalidModel, match="receiveTask 'r': message name"):
        compile_process(Process("p", nodes=nodes))


def test_statements_that_do_not_compile_are_refused_naming_their_task():
    nodes: dict[str, FlowNode] = {"t": ScriptTask("t", scope="p", script=Expression("import os", "python"))}
    with pytest.raises(InvalidModel, match="'t' has a script that cannot be read"):
        compile_process(Process("p", nodes=nodes))


def test_resolving_an_endless_loop_at_a_join_looks_again(bench):
    process = ProcessBuilder("p")
    process.start("s").parallel("g").task("a").task("b").parallel("j").user_task("u").end("e")
    process.at("g").to("j")
    run = bench(process, max_steps=5)
    run.start()
    assert run.tokens == [("j", "incident"), ("j", "joined")]
    run.resolve()
    assert run.tokens == [("u", "waiting")]
