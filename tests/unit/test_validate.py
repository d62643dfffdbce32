"""Validation of models that neither the reader nor the builder made whole: every fault names its element."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.elements import AbstractTask, EndEvent, Process, SequenceFlow, StartEvent
from gobpm_ray.model.validate import require_valid, validate


def _found(process: Process) -> list[tuple[str, str]]:
    return [(problem.code, problem.element) for problem in validate(process)]


def _by_hand(*nodes: StartEvent | AbstractTask | EndEvent, **flows: SequenceFlow) -> Process:
    return Process("p", nodes={node.id: node for node in nodes}, flows=flows)


def test_a_process_needs_flow_nodes() -> None:
    assert _found(Process("p")) == [("empty_process", "p")]


def test_a_node_stands_under_its_own_id_and_in_a_scope_that_exists() -> None:
    process = Process("p", nodes={"a": StartEvent("b", scope="p"), "c": AbstractTask("c", scope="nowhere")})
    assert _found(process) == [("missing_id", "b"), ("unknown_scope", "c")]


def test_a_scope_is_a_process_or_a_sub_process_and_no_task() -> None:
    assert _found(_by_hand(AbstractTask("t", scope="p"), AbstractTask("inner", scope="t"))) == [
        ("unknown_scope", "inner")
    ]


def test_an_element_has_one_default_flow_at_most() -> None:
    both = ProcessBuilder("p")
    both.start().task("t").end("e1")
    both.first.end("e2")
    both.connect("t", "e2", default=True, id="d1")
    both.connect("t", "e2", default=True, id="d2")
    with pytest.raises(InvalidModel, match=r"task 't' has several default flows: d1, d2"):
        both.build()


def test_an_arm_of_an_event_gateway_is_reached_by_the_gateway_alone() -> None:
    shared = ProcessBuilder("p")
    shared.start().event_gateway("g").catch("c", timer="PT1H").end()
    shared.start("other").to("c")
    with pytest.raises(InvalidModel, match="'c', which other flows reach too"):
        shared.build()


def test_an_arm_of_an_event_gateway_has_no_boundary() -> None:
    guarded = ProcessBuilder("p")
    guarded.start().event_gateway("g").receive_task("r", message="M").end()
    guarded.boundary("r", timer="PT1H").end("late")
    with pytest.raises(InvalidModel, match="'r', which has a boundary event"):
        guarded.build()


def test_a_boundary_lies_beside_its_host() -> None:
    outer = ProcessBuilder("p")
    with outer.start().sub_process("sub") as inside:
        inside.start("i").task("t").end("ie")
    outer.boundary("t", "b", timer="PT1H").end("late")
    outer.at("sub").end()
    process = outer.build()
    moved = replace(process, nodes={**process.nodes, "b": replace(process.nodes["b"], scope="p")})
    assert _found(moved) == [("unknown_attachment", "b"), ("crosses_scopes", "b_to_late")]


def test_a_signal_and_a_message_have_names() -> None:
    nameless = ProcessBuilder("p")
    nameless.start().throw("t", signal="").send_task("s", message="").end()
    with pytest.raises(InvalidModel) as refusal:
        nameless.build()
    assert [p.code for p in refusal.value.problems] == ["missing_signal", "missing_message"]  # type: ignore[attr-defined]


def test_a_valid_process_is_given_back() -> None:
    sound = ProcessBuilder("p")
    sound.start().end()
    process = sound.build()
    assert require_valid(process, "x") is process
    with pytest.raises(InvalidModel, match=r"^x: process 'empty' has no flow nodes$"):
        require_valid(Process("empty"), "x")


@pytest.mark.parametrize(
    ("script", "language", "fault"),
    [("a = 1\nb = a + 1", "python", ""), ("import os", "python", "expression"), ("a = 1 = 2", "feel", "expression")],
)
def test_a_scripts_statements_are_compiled_by_its_language(script: str, language: str, fault: str) -> None:
    scripted = ProcessBuilder("p")
    scripted.start().script_task("x", script, language=language).end()
    if not fault:
        assert scripted.build().nodes["x"]
        return
    with pytest.raises(InvalidModel) as refusal:
        scripted.build()
    assert [(p.code, p.element) for p in refusal.value.problems] == [(fault, "x")]  # type: ignore[attr-defined]


# --- breadth -----------------------------------------------------------------------------------------------------


def _refused(builder: ProcessBuilder) -> list[tuple[str, str]]:
    with pytest.raises(InvalidModel) as refusal:
        builder.build()
    return [(problem.code, problem.element) for problem in refusal.value.problems]  # type: ignore[attr-defined]


def test_a_second_compensation_boundary_and_a_second_cancel_boundary_are_refused() -> None:
    """S84."""
    order = ProcessBuilder("p")
    with order.start().transaction("t") as inside:
        inside.start().service_task("book").end(cancel=True)
        inside.boundary("book", compensate=True).task("undo")
        inside.boundary("book", "again", compensate=True).to("undo")
    order.boundary("t", cancel=True).end()
    order.boundary("t", "twice", cancel=True).end()
    assert _refused(order) == [("several_compensate", "again"), ("several_cancel", "twice")]


def test_a_handler_stands_outside_the_flow_and_in_the_scope_of_its_boundary() -> None:
    order = ProcessBuilder("p")
    order.start().service_task("book").end()
    order.boundary("book", "b", compensate=True).task("undo").task("more")
    assert _refused(order) == [("handler_flow", "undo")]
    order = ProcessBuilder("p")
    with order.start().sub_process("sub") as inside:
        inside.start().task("deep").end()
    order.at("sub").service_task("book").end()
    order.boundary("book", "b", compensate=True).to("deep")
    assert _refused(order) == [("handler_flow", "deep"), ("missing_handler", "b")]


def test_links_are_pairs_of_one_scope() -> None:
    order = ProcessBuilder("p")
    with order.start().sub_process("sub") as inside:
        inside.start().throw("inner", link="a")
    order.at("sub").throw("twice", link="b")
    order.first.catch("one", link="b").end()
    order.first.catch("two", link="b").end()
    order.first.catch("outer", link="a").end()
    assert _refused(order) == [("unmatched_link", "inner"), ("unmatched_link", "twice")]


def test_a_link_has_no_flow_on_the_side_that_jumps() -> None:
    order = ProcessBuilder("p")
    order.start().throw("leaves", link="a").end()
    order.at("start").catch("lands", link="a").end()
    assert _refused(order) == [("link_flow", "leaves"), ("link_flow", "lands")]


def test_an_iteration_needs_one_thing_to_count() -> None:
    order = ProcessBuilder("p")
    order.start().task("none").multi_instance().task("both").multi_instance(cardinality=2, collection="xs").end()
    order.at("both").task("out").multi_instance(cardinality=2, output_item="x").end()
    assert _refused(order) == [("missing_collection", "none"), ("two_counts", "both"), ("missing_collection", "out")]


def test_an_expression_of_a_loop_a_call_or_a_gateway_that_cannot_be_read_names_its_element() -> None:
    order = ProcessBuilder("p")
    order.start().task("t").multi_instance(collection="xs +").call("c", process="=a b c (").complex(
        "g", activation="1 +"
    ).end()
    assert _refused(order) == [("expression", "t"), ("expression", "c"), ("expression", "g")]


def test_a_call_or_a_decision_bound_to_a_version_names_one() -> None:
    order = ProcessBuilder("p")
    order.start().call("c", process="q", binding="version").business_rule_task(
        "d", decision="r", binding="version"
    ).call("n", process="").end()
    assert _refused(order) == [("missing_version", "c"), ("missing_version", "d"), ("missing_called", "n")]


def test_two_thousand_links_are_judged_without_comparing_each_with_each() -> None:
    order = ProcessBuilder("p")
    cursor = order.start()
    for number in range(2_000):
        cursor.throw(f"t{number}", link=f"l{number}")
        cursor = order.first.catch(f"c{number}", link=f"l{number}")
    cursor.end()
    assert validate(order.build()) == ()
