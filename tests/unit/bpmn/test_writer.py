"""Export (issue 4, 3): model -> XML -> model is the identity, lines apart, and everything that is drawn has a place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from gobpm_ray.bpmn.layout import Box, lay_out
from gobpm_ray.bpmn.reader import examine, read_bpmn
from gobpm_ray.bpmn.writer import write_bpmn
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.builder import Cursor, ProcessBuilder, ScopeBuilder, after, at_date, every
from gobpm_ray.model.elements import BoundaryEvent, Expression, Process, SubProcess, UserTask, WorkTask, literal
from tests.unit.bpmn.documents import CORPUS

FILES = sorted(CORPUS.glob("miwg*/*.bpmn"))


def _without_lines(process: Process) -> Process:
    return replace(
        process,
        line=0,
        nodes={key: replace(node, line=0) for key, node in process.nodes.items()},
        flows={key: replace(flow, line=0) for key, flow in process.flows.items()},
        data=tuple(replace(element, line=0) for element in process.data),
        stores=tuple(replace(store, line=0) for store in process.stores),
    )


def _again(process: Process) -> Process:
    """Written and read; what was valid is valid again."""
    examination = examine(write_bpmn(process))
    assert examination.errors == ()
    return _without_lines(examination.definitions.processes[0])


# --- the identity ------------------------------------------------------------------------------------------------

_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Co", "Cn")), max_size=12)
_NAMES = _TEXTS.map(lambda text: " ".join(text.split()))
_WORDS = st.sampled_from(["a", "order", "x1", "größe", "last item"])
_EXPRESSIONS = st.one_of(
    st.sampled_from(["a + 1", "x > 2", ' " padded " ', "a\nor b", "// note\nx", "`odd-name`"]).map(Expression),
    st.sampled_from(["${a}", "#{x > 1}", "${a} "]).map(lambda text: Expression(text, "juel")),
    st.sampled_from(["a + 1", "a if x else None", "{'k': [1]}"]).map(lambda text: Expression(text, "python")),
)
_OPERANDS = st.one_of(_EXPRESSIONS, _TEXTS.map(literal), st.sampled_from(["=a", "${x", " lead", ""]).map(literal))
_MAPPINGS = st.dictionaries(_WORDS, _OPERANDS, max_size=2)
_TIMERS = st.one_of(
    st.sampled_from([after("PT1H"), at_date("2026-01-01T00:00:00Z"), every("R3/PT10M"), every("0 0 9 * * ?")]),
    _EXPRESSIONS.map(after),
)
_MAYBE = st.one_of(st.none(), _EXPRESSIONS)
_CODES = st.sampled_from(["E-1", "not found", "ö"])


def _activity(draw: st.DrawFn, cursor: Cursor) -> Cursor:
    kind = draw(
        st.sampled_from(["task", "manual", "work", "send", "rule", "decide", "script", "user", "receive", "call"])
    )
    name, inputs, outputs = draw(_NAMES), draw(_MAPPINGS), draw(_MAPPINGS)
    more: dict[str, Any] = {"name": name, "inputs": inputs, "outputs": outputs}
    match kind:
        case "task":
            cursor = cursor.task(name=name)
        case "manual":
            cursor = cursor.manual_task(name=name)
        case "work":
            cursor = cursor.service_task(
                None, draw(_WORDS), idempotent=draw(st.booleans()), result=draw(_WORDS), **more
            )
        case "send":
            cursor = cursor.send_task(message=draw(_CODES), key=draw(_MAYBE), **more)
        case "rule":
            cursor = cursor.business_rule_task(topic=draw(_WORDS), **more)
        case "decide":
            cursor = cursor.business_rule_task(
                decision=draw(st.one_of(_EXPRESSIONS, _WORDS.map(literal))),
                version=draw(st.integers(0, 3)),
                result=draw(_WORDS),
                **more,
            )
        case "script":
            script = draw(st.one_of(_EXPRESSIONS, st.just(Expression("y = 1\nz = y", "python"))))
            cursor = cursor.script_task(None, script, result=draw(_WORDS), **more)
        case "user":
            cursor = cursor.user_task(
                assignee=draw(_OPERANDS),
                candidate_users=draw(_MAYBE),
                candidate_groups=draw(st.lists(_WORDS, max_size=2)),
                due=draw(_MAYBE),
                follow_up=draw(_MAYBE),
                priority=draw(st.one_of(st.none(), st.integers(0, 100))),
                form=draw(_WORDS),
                required_outputs=draw(st.lists(st.sampled_from(["a", "b c", "d,e"]), max_size=2)),
                **more,
            )
        case "receive":
            cursor = cursor.receive_task(message=draw(_CODES), key=draw(_MAYBE), name=name, outputs=outputs)
        case _:
            cursor = cursor.call(
                process=draw(st.one_of(_EXPRESSIONS, st.sampled_from(["q", "a:b", "${", "=x"]).map(literal))),
                binding=draw(st.sampled_from(["latest", "deployment"])),
                inherit=draw(st.booleans()),
                propagate=draw(st.booleans()),
                business_key=draw(st.one_of(st.none(), _OPERANDS)),
                **more,
            )
    return _looping(draw, cursor)


def _looping(draw: st.DrawFn, cursor: Cursor) -> Cursor:
    kind = draw(st.sampled_from(["", "", "standard", "items", "count", "complex"]))
    if kind == "standard":
        most = draw(st.one_of(st.none(), st.integers(1, 9), _EXPRESSIONS))
        return cursor.loop(while_=draw(_MAYBE), test_before=draw(st.booleans()), maximum=most)
    if kind == "items":
        return cursor.multi_instance(
            collection=draw(_EXPRESSIONS),
            item=draw(_WORDS),
            sequential=draw(st.booleans()),
            output=draw(_WORDS),
            output_item=draw(_MAYBE),
            until=draw(_MAYBE),
        )
    if kind == "count":
        behavior: Any = draw(st.sampled_from(["all", "one", "none"]))
        thrown = () if behavior == "all" else (draw(_CODES),)
        return cursor.multi_instance(cardinality=draw(_EXPRESSIONS), behavior=behavior, events=thrown)
    if kind == "complex":
        conditions = tuple(draw(st.lists(_EXPRESSIONS, min_size=1, max_size=2)))
        events = tuple(draw(_CODES) for _ in conditions)
        return cursor.multi_instance(cardinality=3, behavior="complex", events=events, conditions=conditions)
    return cursor


def _event(draw: st.DrawFn, cursor: Cursor) -> Cursor:
    name = draw(_NAMES)
    match draw(st.sampled_from(["timer", "message", "both", "condition", "throw", "escalate", "undo", "milestone"])):
        case "timer":
            return cursor.catch(timer=draw(_TIMERS), name=name, outputs=draw(_MAPPINGS))
        case "message":
            return cursor.catch(message=draw(_CODES), key=draw(_MAYBE), name=name)
        case "both":
            return cursor.catch(message="m", signal=draw(_CODES), parallel_multiple=draw(st.booleans()))
        case "condition":
            return cursor.catch(conditional=draw(_EXPRESSIONS))
        case "throw":
            return cursor.throw(message=draw(_CODES), key=draw(_MAYBE), signal=draw(_CODES), inputs=draw(_MAPPINGS))
        case "escalate":
            return cursor.throw(escalation=draw(_CODES), name=name)
        case "undo":
            return cursor.throw(compensate=True)
        case _:
            return cursor.throw(name=name)


def _gateway(draw: st.DrawFn, cursor: Cursor) -> Cursor:
    match draw(st.sampled_from(["exclusive", "inclusive", "complex", "parallel"])):
        case "exclusive":
            cursor = cursor.exclusive()
        case "inclusive":
            cursor = cursor.inclusive(name=draw(_NAMES))
        case "complex":
            cursor = cursor.complex(activation=draw(_MAYBE))
        case _:
            return cursor.parallel()
    cursor.otherwise(name=draw(_NAMES)).task().end()
    return cursor.when(draw(_EXPRESSIONS), name=draw(_NAMES))


def _border(draw: st.DrawFn, scope: ScopeBuilder, host: str) -> None:
    match draw(st.sampled_from(["", "timer", "error", "escalation", "condition", "several", "undo"])):
        case "timer":
            scope.boundary(host, timer=draw(_TIMERS), interrupting=draw(st.booleans())).end()
        case "error":
            scope.boundary(host, error=draw(st.sampled_from(["", "E-1"]))).end(error=draw(_CODES))
        case "escalation":
            code, interrupting = draw(st.sampled_from(["", "up"])), draw(st.booleans())
            scope.boundary(host, escalation=code, interrupting=interrupting, outputs=draw(_MAPPINGS)).end(
                escalation="up"
            )
        case "condition":
            scope.boundary(host, conditional=draw(_EXPRESSIONS)).end(terminate=True)
        case "several":
            scope.boundary(host, message="m", signal="s", parallel_multiple=draw(st.booleans())).end(compensate=True)
        case "undo":
            scope.boundary(host, compensate=True).service_task(None, draw(_WORDS))
        case _:
            pass


def _fill(draw: st.DrawFn, scope: ScopeBuilder, cursor: Cursor, depth: int) -> Cursor:
    for _ in range(draw(st.integers(0, 3))):
        step = draw(st.sampled_from(["activity", "activity", "event", "gateway", "inside"]))
        if step == "activity":
            cursor = _activity(draw, cursor)
            _border(draw, scope, cursor.node_id)
        elif step == "event":
            cursor = _event(draw, cursor)
        elif step == "gateway":
            cursor = _gateway(draw, cursor)
        elif depth < 2:
            cursor = _sub_process(draw, scope, cursor, depth)
    return cursor


def _sub_process(draw: st.DrawFn, scope: ScopeBuilder, cursor: Cursor, depth: int) -> Cursor:
    match draw(st.sampled_from(["embedded", "transaction", "ad-hoc"])):
        case "embedded":
            added = cursor.sub_process(name=draw(_NAMES), inputs=draw(_MAPPINGS))
            _scope(draw, added.inside, depth + 1)
        case "transaction":
            added = cursor.transaction(outputs=draw(_MAPPINGS))
            _scope(draw, added.inside, depth + 1)
            added.inside.start().end(cancel=True)
            scope.boundary(added.node_id, cancel=True).end()
        case _:
            added = cursor.ad_hoc(
                sequential=draw(st.booleans()), until=draw(_MAYBE), cancel_remaining=draw(st.booleans())
            )
            _activity(draw, added.inside.first)
    return _looping(draw, added)


def _scope(draw: st.DrawFn, scope: ScopeBuilder, depth: int) -> None:
    _fill(draw, scope, scope.start(name=draw(_NAMES)), depth).end(name=draw(_NAMES))
    if draw(st.booleans()):
        with scope.event_sub_process(name=draw(_NAMES)) as inside:
            interrupting = draw(st.booleans())
            begun = draw(st.sampled_from(["message", "error", "condition", "timer"]))
            if begun == "error":
                start = inside.start(error=draw(st.sampled_from(["", "E-1"])))
            elif begun == "condition":
                start = inside.start(conditional=draw(_EXPRESSIONS), interrupting=interrupting)
            elif begun == "timer":
                start = inside.start(timer=draw(_TIMERS), interrupting=interrupting)
            else:
                start = inside.start(message=draw(_CODES), key=draw(_MAYBE), interrupting=interrupting)
            _fill(draw, inside, start, depth + 1).end()


@st.composite
def built(draw: st.DrawFn) -> Process:
    """A process with whatever the builder has words for."""
    builder = ProcessBuilder("p", " ".join(draw(_NAMES).split()))
    _scope(draw, builder, 0)
    if draw(st.booleans()):
        builder.first.receive_task("begin", message="begun", instantiate=True).throw(link="over")
        builder.first.catch("there", link="over").end()
    if draw(st.booleans()):
        gateway = builder.first.event_gateway("first", instantiate=True, parallel=draw(st.booleans()))
        gateway.catch(message="one").end()
        gateway.catch(message="two").end()
    return builder.build()


@settings(max_examples=150, deadline=None)
@given(built())
def test_a_built_model_written_and_read_is_the_same_model(process: Process) -> None:
    assert _again(process) == process


@pytest.mark.skipif(not FILES, reason="the corpus of exchanged models is not here")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_was_read_of_an_exchanged_file_is_the_same_after_export(file: Path) -> None:
    """Also drawings, with whatever is wrong in them."""
    try:
        definitions = examine(file.read_bytes(), file.name).definitions
    except InvalidModel:
        return
    if not definitions.processes:
        return
    written = examine(write_bpmn(definitions)).definitions
    assert [_without_lines(process) for process in written.processes] == [
        _without_lines(process) for process in definitions.processes
    ]


def test_a_flows_order_is_kept_because_conditions_are_asked_in_it() -> None:
    order = ProcessBuilder("p")
    order.start().exclusive("x")
    for number in range(5):
        order.at("x").when(f"a = {number}").end(f"e{number}")
    process = order.build()
    assert _again(process).nodes["x"].outgoing == process.nodes["x"].outgoing


def test_nodes_that_stand_before_their_sub_process_in_the_table_are_written_inside_it() -> None:
    order = ProcessBuilder("p")
    with order.start().sub_process("sub") as inside:
        inside.start("i").end("j")
    order.at("sub").end("e")
    process = order.build()
    moved = replace(process, nodes=dict(reversed(process.nodes.items())))
    assert _again(moved) == process


def test_what_xml_cannot_hold_is_refused_by_process() -> None:
    order = ProcessBuilder("p", "bell \a")
    order.start().end()
    with pytest.raises(InvalidModel, match=r"^process 'p': cannot be written as XML: "):
        write_bpmn(order.build())


def test_two_processes_stand_in_one_document_and_share_its_messages() -> None:
    processes = []
    for name in ("p", "q"):
        builder = ProcessBuilder(name)
        builder.start(message="go").receive_task("r", message="go").end()
        processes.append(builder.build())
    data = write_bpmn(processes)
    assert data.count(b"<bpmn:message ") == 1
    assert [_without_lines(process) for process in read_bpmn(data).processes] == processes


def test_an_ordinary_operand_stands_where_people_look_for_it() -> None:
    order = ProcessBuilder("p")
    order.start().user_task("u", assignee="=boss", due="P1D").end()
    data = write_bpmn(order.build()).decode()
    assert '<bpmn:userTask id="u" ray:assignee="=boss" ray:dueDate="P1D">' in data
    assert "ray:operand" not in data
    strange = replace(order.build(), nodes={"u": UserTask("u", scope="p", assignee=literal("=boss"))}, flows={})
    assert '<ray:operand use="assignee" language="literal">=boss</ray:operand>' in write_bpmn(strange).decode()


def test_how_often_and_how_long_and_where_a_callable_runs_is_kept() -> None:
    order = ProcessBuilder("p")
    order.start().service_task("w").end()
    process = order.build()
    task = process.nodes["w"]
    assert isinstance(task, WorkTask)
    options = (("num_cpus", "2"), ("resources", '{"gpu": 1}'))
    policed = replace(task, retries=literal("R3/PT10S"), timeout=Expression("limit"), ray_options=options)
    process = replace(process, nodes={**process.nodes, "w": policed})
    assert _again(process) == process


# --- the drawing -------------------------------------------------------------------------------------------------


def _inside(inner: Box, outer: Box) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def _apart(one: Box, other: Box) -> bool:
    return (
        one.x + one.width <= other.x
        or other.x + other.width <= one.x
        or one.y + one.height <= other.y
        or other.y + other.height <= one.y
    )


@settings(max_examples=60, deadline=None)
@given(built())
def test_every_node_has_a_place_of_its_own_and_lies_inside_its_sub_process(process: Process) -> None:
    layout = lay_out(process)
    assert layout.boxes.keys() == process.nodes.keys()
    assert layout.routes.keys() == process.flows.keys()
    for node in process.nodes.values():
        if isinstance(node, BoundaryEvent):
            continue
        outside = process.nodes.get(node.scope)
        if isinstance(outside, SubProcess):
            assert _inside(layout.boxes[node.id], layout.boxes[outside.id])
        for other in process.nodes.values():
            if other.scope == node.scope and other.id < node.id and not isinstance(other, BoundaryEvent):
                assert _apart(layout.boxes[node.id], layout.boxes[other.id]), (node.id, other.id)


def test_a_path_runs_from_left_to_right_and_a_loop_back_leads_under_it() -> None:
    order = ProcessBuilder("p")
    order.start("s").task("a").exclusive("x").when("again").to("a")
    order.at("x").otherwise().end("e")
    layout = lay_out(order.build())
    places = [layout.boxes[node].x for node in ("s", "a", "x", "e")]
    assert places == sorted(places)
    back = layout.routes["x_to_a"]
    assert back[0] == layout.boxes["x"].bottom
    assert back[-1] == layout.boxes["a"].bottom


def test_every_shape_and_edge_of_the_diagram_names_an_element_of_the_document() -> None:
    order = ProcessBuilder("p")
    order.start().service_task("book").end()
    order.boundary("book", compensate=True).service_task("undo")
    root = etree.fromstring(write_bpmn(order.build()))
    ids = [str(element.get("id")) for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    drawn = [str(element.get("bpmnElement")) for element in root.iter() if element.get("bpmnElement")]
    assert set(drawn) <= set(ids)
    assert {"p", "book", "undo", "book_boundary", "book_boundary_to_undo"} <= set(drawn)
    assert b"BPMNDiagram" not in write_bpmn(order.build(), diagram=False)


def test_a_chain_of_three_thousand_nodes_is_written_and_drawn_without_recursion() -> None:
    order = ProcessBuilder("p")
    cursor = order.start()
    for number in range(3_000):
        cursor = cursor.task(f"t{number}")
    cursor.end()
    process = order.build()
    layout = lay_out(process)
    assert layout.boxes["t2999"].x > layout.boxes["t0"].x
    assert _again(process) == process
