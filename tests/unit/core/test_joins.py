"""Inclusive and complex gateways: what they wait for, and what they no longer wait for."""

from __future__ import annotations

import pytest

from gobpm_ray.core.program import compile_process
from gobpm_ray.core.reachability import upstream
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.elements import (
    BoundaryEvent,
    ComplexGateway,
    ExclusiveGateway,
    Expression,
    InclusiveGateway,
    MessageDefinition,
    ParallelGateway,
    Process,
    SequenceFlow,
)
from tests.unit.core.drawing import drawn


def routed(process: Process, **conditions: str) -> Process:
    """Conditions on flows by `source_target`; `default` marks the default flow."""
    flows = dict(process.flows)
    for name, text in conditions.items():
        flow = flows[name.replace("_", "-")]
        condition = None if text == "default" else Expression(text)
        flows[flow.id] = SequenceFlow(flow.id, flow.source, flow.target, condition=condition, default=text == "default")
    return Process(process.id, nodes=process.nodes, flows=flows)


def split_and_join() -> Process:
    """Three branches with a task each between an inclusive split and an inclusive join."""
    drawing = "s > g > u1 > j > e\ng > u2 > j\ng > u3 > j"
    process = drawn(drawing, InclusiveGateway("g"), InclusiveGateway("j"))
    return routed(process, g_u1="a", g_u2="b", g_u3="c")


# --- split -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("true", [["a"], ["a", "b"], ["b", "c"], ["a", "b", "c"]])
def test_every_flow_whose_condition_holds_is_taken_and_the_join_waits_for_these_alone(bench, true):
    """S80."""
    run = bench(split_and_join())
    run.start(**{name: name in true for name in "abc"})
    tasks = [f"u{'abc'.index(name) + 1}" for name in true]
    assert [node for node, kind in run.waiting] == tasks
    for task in reversed(tasks):
        assert "j" not in run.trace
        run.fire(task)
    assert run.trace == ["s", "g", *reversed(tasks), "j", "e"]
    assert run.outcome == "completed"


def test_without_a_condition_that_holds_the_default_is_taken_and_its_own_condition_ignored(bench):
    process = routed(split_and_join(), g_u3="default")
    run = bench(process)
    run.start(a=False, b=False)
    assert run.waiting == [("u3", "task")]


def test_without_any_way_out_the_split_is_an_incident_that_a_retry_decides_again(bench):
    run = bench(split_and_join())
    run.start(a=False, b=False, c=False)
    assert "out of inclusiveGateway 'g'" in run.cause
    run.assign(b=True)
    run.retry()
    run.fire("u2")
    assert run.trace == ["s", "g", "u2", "j", "e"]


# --- join --------------------------------------------------------------------------------------------------------


def test_a_join_opens_when_the_token_it_waited_for_dies(bench):
    process = drawn(
        "s > p > u1 > j > e\np > u2 > x > j\nx > e2", ParallelGateway("p"), InclusiveGateway("j"), ExclusiveGateway("x")
    )
    run = bench(routed(process, x_j="come", x_e2="default"))
    run.start(come=False)
    run.fire("u1")
    assert run.tokens == [("j", "joined"), ("u2", "waiting")]
    run.fire("u2")
    assert run.trace == ["s", "p", "u1", "u2", "x", "e2", "j", "e"]
    assert run.outcome == "completed"


def test_a_join_opens_when_the_token_it_waited_for_has_moved_past(bench):
    process = drawn(
        "s > p > u1 > j > e\np > u2 > x > j\nx > u3 > e2",
        ParallelGateway("p"),
        InclusiveGateway("j"),
        ExclusiveGateway("x"),
    )
    run = bench(routed(process, x_j="come", x_u3="default"))
    run.start(come=False)
    run.fire("u1")
    run.fire("u2")
    assert run.trace[-2:] == ["j", "e"]
    assert run.waiting == [("u3", "task")]


def test_a_token_behind_the_join_is_not_waited_for(bench):
    """A loop leads from behind the join to before it: only through the join, so it does not count."""
    process = drawn(
        "s > p > j > u3 > x > e\np > u2 > j\nx > m > u4 > j",
        ParallelGateway("p"),
        InclusiveGateway("j"),
        ExclusiveGateway("x"),
        ExclusiveGateway("m"),
    )
    run = bench(routed(process, x_e="again = false", x_m="default"))
    run.start(again=True)
    assert run.trace == ["s", "p"]
    run.fire("u2")
    assert run.trace == ["s", "p", "u2", "j"]
    run.fire("u3")
    run.fire("u4")
    assert run.trace[-2:] == ["u4", "j"]
    run.assign(again=False)
    run.fire("u3")
    assert run.outcome == "completed"


def test_a_token_that_may_as_well_come_where_one_is_already_is_not_waited_for(bench):
    """BPMN 13.4.3, (iv) to (vi): it can reach a flow that has a token too, so nothing is certain to come."""
    process = drawn(
        "s > p > u1 > m > j > e\np > u2 > x > m\nx > u3 > j",
        ParallelGateway("p"),
        ExclusiveGateway("m"),
        ExclusiveGateway("x"),
        InclusiveGateway("j"),
    )
    run = bench(routed(process, x_m="default", x_u3="aside"))
    run.start(aside=True)
    run.fire("u1")
    assert run.trace[-2:] == ["j", "e"]


def test_a_second_token_by_one_flow_belongs_to_the_next_opening(bench):
    """Joins that count tokens instead of flows open too early."""
    process = drawn(
        "s > p > u1 > m > j > u9 > e\np > u2 > m\np > u3 > j",
        ParallelGateway("p"),
        ExclusiveGateway("m"),
        InclusiveGateway("j"),
    )
    run = bench(process)
    run.start()
    run.fire("u1")
    run.fire("u2")
    assert "j" not in run.trace
    run.fire("u3")
    assert run.trace.count("j") == 2
    assert run.tokens == [("u9", "waiting"), ("u9", "waiting")]


def test_a_token_inside_a_sub_process_counts_where_the_sub_process_stands(bench):
    process = ProcessBuilder("p")
    fork = process.start("s").parallel("p1")
    fork.user_task("u1").inclusive("j").end("e")
    with process.at("p1").sub_process("sub") as inside:
        inside.start("is").user_task("u2").end("ie")
    process.at("sub").to("j")
    run = bench(process)
    run.start()
    run.fire("u1")
    assert "j" not in run.trace
    run.fire("u2")
    assert run.trace[-3:] == ["sub", "j", "e"]


def test_a_boundary_event_may_still_come_while_its_activity_runs(bench):
    boundary = BoundaryEvent("b", attached_to="u2", definitions=(MessageDefinition(name="M"),))
    process = drawn("s > p > u1 > j > e\np > u2 > e2\nb > j", ParallelGateway("p"), InclusiveGateway("j"), boundary)
    run = bench(process)
    run.start()
    run.fire("u1")
    assert "j" not in run.trace
    other = bench(process)
    other.start()
    other.fire("u1")
    run.fire("b")
    assert run.trace[-3:] == ["b", "j", "e"]
    other.fire("u2")
    assert other.trace[-3:] == ["e2", "j", "e"]


def test_a_join_that_waits_for_an_incident_opens_when_that_is_resolved(bench):
    process = drawn("s > p > u1 > j > e\np > w2 > j", ParallelGateway("p"), InclusiveGateway("j"))
    run = bench(process)
    run.start()
    run.failed("w2", "broken")
    run.fire("u1")
    assert "j" not in run.trace
    run.resolve()
    assert run.trace[-2:] == ["j", "e"]


def test_two_joins_that_wait_for_each_other_are_an_incident_that_names_one(bench):
    """Not left waiting in silence."""
    process = drawn(
        "s > p > j1 > x1 > m2 > j2 > x2 > e\np > j2\nx2 > m1 > j1\nx1 > e1",
        ParallelGateway("p"),
        InclusiveGateway("j1"),
        InclusiveGateway("j2"),
        ExclusiveGateway("x1"),
        ExclusiveGateway("x2"),
        ExclusiveGateway("m1"),
        ExclusiveGateway("m2"),
    )
    run = bench(routed(process, x1_m2="default", x1_e1="false", x2_e="true", x2_m1="default"))
    run.start()
    assert "inclusive join 'j1' can never open" in run.cause
    run.resolve()
    assert run.outcome == "completed"


def test_a_join_that_all_flows_have_reached_needs_no_other_part():
    from tests.unit.core.driving import Bench

    process = drawn("s > p > u1 > j > e\np > u2 > j\np > u3 > e3", ParallelGateway("p"), InclusiveGateway("j"))
    run = Bench(process, "partial")
    run.start()
    run.fire("u1")
    reloads = run.reloads
    run.fire("u2")
    assert run.reloads == reloads
    assert run.trace[-2:] == ["j", "e"]


def test_what_is_upstream_of_a_flow_is_known_when_the_process_is_compiled():
    program = compile_process(split_and_join())
    assert program.merges
    assert program.nodes["j"].upstream["u1-j"] == {"s", "g", "u1"}
    assert dict(program.nodes["g"].upstream) == {}
    assert upstream(program.process, {}, program.process.nodes["u1"]) == {}


# --- complex -----------------------------------------------------------------------------------------------------


def two_of_three(activation: str | None = "activationCount >= 2", **flows: str) -> Process:
    condition = None if activation is None else Expression(activation)
    process = drawn(
        "s > p > u1 > k > u9 > e\np > u2 > k\np > u3 > k",
        ParallelGateway("p"),
        ComplexGateway("k", activation=condition),
    )
    return routed(process, **flows)


def test_a_complex_join_opens_when_its_condition_holds_and_swallows_the_rest(bench):
    """BPMN 13.4.5: two of three."""
    run = bench(two_of_three())
    run.start()
    run.fire("u1")
    assert run.tokens == [("k", "joined"), ("u2", "waiting"), ("u3", "waiting")]
    run.fire("u3")
    assert run.trace[-1] == "k"
    assert run.tokens == [("u2", "waiting"), ("u9", "waiting")]
    run.fire("u2")
    assert run.trace.count("k") == 1
    run.fire("u9")
    assert run.outcome == "completed"


def test_the_rest_may_come_after_what_the_join_let_through_has_ended(bench):
    run = bench(two_of_three())
    run.start()
    run.fire("u1")
    run.fire("u2")
    run.fire("u9")
    assert run.outcome == ""
    run.fire("u3")
    assert run.outcome == "completed"
    assert run.trace.count("u9") == 1


def test_without_a_condition_the_first_token_opens_it(bench):
    run = bench(two_of_three(None))
    run.start()
    run.fire("u2")
    assert run.waiting == [("u1", "task"), ("u3", "task"), ("u9", "task")]


def test_after_the_reset_the_join_begins_anew(bench):
    """A token that comes twice by one flow while the first cycle is not over belongs to the next one."""
    process = drawn(
        "s > p > u1 > m > k > u9 > e\np > u2 > m\np > u3 > k",
        ParallelGateway("p"),
        ExclusiveGateway("m"),
        ComplexGateway("k"),
    )
    run = bench(process)
    run.start()
    run.fire("u1")
    run.fire("u2")
    assert run.trace.count("k") == 1
    run.fire("u3")
    assert run.trace.count("k") == 2
    assert run.tokens == [("u9", "waiting"), ("u9", "waiting")]
    run.fire("u9")
    run.fire("u9")
    assert run.outcome == "completed"


def test_a_condition_sees_each_flows_tokens_under_its_id(bench):
    process = ProcessBuilder("p")
    process.start("s").parallel("f").user_task("u1").to("k", flow_id="left")
    process.at("f").user_task("u2").to("k", flow_id="right")
    process.first.complex("k", activation="left > 0").end("e")
    run = bench(process)
    run.start()
    run.fire("u2")
    assert "k" not in run.trace
    run.fire("u1")
    assert run.trace[-2:] == ["k", "e"]


def test_flows_that_ask_for_the_reset_are_taken_at_the_reset(bench):
    process = drawn("s > p > u1 > k > t1 > e\np > u2 > k\nk > t2 > e2", ParallelGateway("p"), ComplexGateway("k"))
    run = bench(routed(process, k_t1="waitingForStart", k_t2="not(waitingForStart)"))
    run.start()
    run.fire("u1")
    assert run.trace == ["s", "p", "u1", "k", "t1", "e"]
    run.fire("u2")
    assert run.trace[-4:] == ["u2", "k", "t2", "e2"]
    assert run.outcome == "completed"


def test_a_complex_join_whose_condition_never_holds_is_an_incident(bench):
    run = bench(two_of_three("activationCount > 3"))
    run.start()
    for task in ("u1", "u2", "u3"):
        run.fire(task)
    assert "complex join 'k' can never open" in run.cause
    run.resolve()
    run.fire("u9")
    assert run.outcome == "completed"


def test_a_condition_that_cannot_be_told_leaves_its_token_where_it_can_come_again(bench):
    run = bench(two_of_three("wanted"))
    run.start()
    run.fire("u1")
    assert run.cause == "activation condition of 'k', 'wanted': expected true or false, got null"
    run.assign(wanted=True)
    run.retry()
    assert run.waiting == [("u2", "task"), ("u3", "task"), ("u9", "task")]


def test_a_complex_split_takes_every_flow_whose_condition_holds(bench):
    run = bench(routed(drawn("s > k > t1 > e1\nk > t2 > e2\nk > t3 > e3", ComplexGateway("k")), k_t1="a", k_t2="b"))
    run.start(a=True, b=False)
    assert run.trace == ["s", "k", "t1", "t3", "e1", "e3"]
