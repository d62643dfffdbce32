"""Data objects and properties: variables of the scope that declares them, and gone with it (BPMN 10.4.1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gobpm_ray.core.advance import advance
from gobpm_ray.core.program import compile_process
from gobpm_ray.core.projection import open_incidents
from gobpm_ray.core.state import InstanceState
from gobpm_ray.core.step import Trigger
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.builder import ProcessBuilder, Stored
from gobpm_ray.model.data import DataElement, ItemType
from gobpm_ray.model.validate import validate
from tests.unit.core.driving import Bench


def test_a_first_value_is_there_from_the_start_unless_the_caller_gives_another(bench):
    p = ProcessBuilder("p")
    p.data("log", initial=[])
    p.data("unset")
    p.start("s").user_task("u").end("e")
    run = bench(p)
    run.start()
    assert run.variables == {"log": []}
    other = bench(p)
    other.start(log=["x"])
    assert other.variables == {"log": ["x"]}


def test_two_instances_do_not_share_a_first_value():
    p = ProcessBuilder("p")
    p.data("log", initial=[])
    p.start("s").user_task("u").end("e")
    program = compile_process(p.build())
    states = [InstanceState(name, "p", 1) for name in ("i1", "i2")]
    for state in states:
        advance(program, state, [Trigger(f"d{state.id}", "start")], 0)
    logs = [state.scopes["0"].variables["log"] for state in states]
    assert logs == [[], []]
    assert logs[0] is not logs[1]


def test_a_sub_process_has_its_own_variable_of_a_name_that_is_used_outside_too(bench):
    p = ProcessBuilder("p")
    with p.start("s").sub_process("sub") as inside:
        inside.data("note", initial="inner")
        inside.start("si").script_task("w", '"changed"', result="note").user_task("u").end("ei")
    p.at("sub").end("e")
    run = bench(p)
    run.start(note="outer")
    assert run.state.scopes["1"].variables == {"note": "changed"}
    assert run.state.scopes["0"].variables == {"note": "outer"}
    run.fire("u")
    assert run.outcome == "completed"
    assert run.variables == {"note": "outer"}


def test_one_without_a_first_value_is_null_there_and_begins_anew_each_time(bench):
    p = ProcessBuilder("p")
    with p.start("s").sub_process("sub") as sub:
        sub.data("seen")
        sub.start("si").script_task("w", "if seen = null then 1 else seen + 1", result="seen").script_task(
            "copy", "seen", result="last"
        ).end("ei")
    p.at("sub").loop(while_="true", maximum=3).end("e")
    run = bench(p)
    run.start()
    assert run.outcome == "completed"
    assert run.variables == {"last": 1}


def test_mapped_inputs_are_the_first_values_of_a_sub_process(bench):
    p = ProcessBuilder("p")
    with p.start("s").sub_process("sub", inputs={"note": "=given"}) as sub:
        sub.data("note", initial="inner")
        sub.start("si").user_task("u").end("ei")
    p.at("sub").end("e")
    run = bench(p)
    run.start(given=5)
    assert run.state.scopes["1"].variables == {"note": 5}


def test_an_event_sub_process_declares_its_own(bench):
    p = ProcessBuilder("p")
    p.start("s").user_task("u").end("e")
    with p.event_sub_process("esp") as handler:
        handler.data("tries", initial=0)
        handler.start("h", message="m", interrupting=False).user_task("v").end("he")
    run = bench(p)
    run.start()
    run.fire("h")
    scope = next(scope for scope in run.state.scopes.values() if scope.node == "esp")
    assert scope.variables == {"tries": 0}


def test_a_property_of_a_task_is_its_own_and_takes_nothing_from_it(bench):
    """With it alone there is no input mapping: the callable is still given everything."""
    p = ProcessBuilder("p")
    p.start("s").service_task("w", topic="w").property("tries", initial=3).end("e")
    run = bench(p)
    run.start(order=1)
    (call,) = run.calls.values()
    assert call.inputs == {"order": 1, "tries": 3}
    run.done("w")
    assert run.variables == {"order": 1}


def test_beside_input_mappings_it_is_one_more(bench):
    p = ProcessBuilder("p")
    p.start("s").service_task("w", topic="w", inputs={"twice": "=tries * 2"}).property("tries", initial=3).end("e")
    run = bench(p)
    run.start(order=1)
    (call,) = run.calls.values()
    assert call.inputs == {"tries": 3, "twice": 6}


def test_a_property_is_nobodys_payload(bench):
    p = ProcessBuilder("p")
    p.start("s").send_task("send", message="m").property("tries", initial=3).end("e")
    run = bench(p)
    run.start()
    assert [send.values for send in run.sends] == [{}]


def test_the_innermost_declaration_of_a_name_says_the_type(bench):
    p = ProcessBuilder("p")
    p.data("x", "xsd:int")
    with p.start("s").sub_process("sub") as sub:
        sub.data("x")
        sub.start("si").user_task("inner").end("ei")
    p.at("sub").user_task("outer").end("e")
    run = bench(p)
    run.start()
    run.fire("inner", {"x": "text"})
    run.fire("outer", {"x": "text"})
    assert [incident.node for incident in open_incidents(run.state)] == ["outer"]


def test_a_schema_that_cannot_be_read_is_refused_with_its_element():
    p = ProcessBuilder("p")
    p.start("s").end("e")
    built = p.build()
    broken = replace(built, data=(DataElement("d", "x", "p", item=ItemType(schema='{"type": 5}')),))
    with pytest.raises(InvalidModel, match="'p' has data of a type that cannot be checked"):
        compile_process(broken)
    assert [(problem.code, problem.element) for problem in validate(broken)] == [("item_type", "d")]


def test_the_core_reads_data_stores_from_what_it_is_given_and_says_what_it_used():
    p = ProcessBuilder("p")
    p.start("s").script_task("t", outputs={Stored("Stock"): "=Stock - 1", "x": Stored("Price")}).end("e")
    program = compile_process(p.build())
    assert set(program.stores) == {"Stock", "Price"}
    step = advance(program, InstanceState("i", "p", 1), [Trigger("d", "start")], 0, data={"Stock": 5, "Price": 2})
    assert (step.reads, step.writes) == ({"Stock", "Price"}, {"Stock": 4})
    assert step.state.scopes["0"].variables == {"x": 2}


def test_nothing_of_it_is_there_in_a_process_without_data():
    p = ProcessBuilder("p")
    p.start("s").user_task("u", inputs={"a": "=1"}, outputs={"b": "=2"}).end("e")
    program = compile_process(p.build())
    node = program.nodes["u"]
    assert (program.stores, program.shape, dict(program.declared)) == ((), None, {})
    assert (node.results, node.mapped, node.needs, node.properties, node.writes) == (None, None, None, (), False)
    assert Bench(p).start().reads == set()
