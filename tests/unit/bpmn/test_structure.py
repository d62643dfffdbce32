"""Processes as files really have them (I87): what is accepted, what is refused, each refusal naming its element."""

from __future__ import annotations

import pytest

from gobpm_ray.bpmn.reader import examine, read_bpmn
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import BoundaryEvent, ExclusiveGateway, Process
from tests.unit.bpmn.documents import around, document


def _errors(data: bytes) -> list[tuple[str, str, str]]:
    return [(problem.code, problem.element, problem.message) for problem in examine(data).errors]


def _warnings(data: bytes) -> list[tuple[str, str]]:
    return [(warning.code, warning.element) for warning in read_bpmn(data).warnings]


def _process(data: bytes) -> Process:
    return read_bpmn(data).processes[0]


# --- accepted ----------------------------------------------------------------------------------------------------


def test_a_black_box_pool_and_two_executable_pools_give_two_processes() -> None:
    """I87."""
    second = '<bpmn:process id="q" isExecutable="true"><bpmn:startEvent id="qs"/></bpmn:process>'
    collaboration = (
        '<bpmn:collaboration id="c"><bpmn:participant id="a" name="Customer"/>'
        '<bpmn:participant id="b" processRef="p"/><bpmn:participant id="d" processRef="q"/>'
        '<bpmn:messageFlow id="m" sourceRef="a" targetRef="s"/></bpmn:collaboration>'
    )
    definitions = read_bpmn(document('<bpmn:startEvent id="s"/>', beside=collaboration + second))
    assert [process.id for process in definitions.processes] == ["q", "p"]
    assert all(process.executable for process in definitions.processes)
    assert definitions.warnings == ()
    assert definitions.process("p") is definitions.processes[1]


def test_a_file_without_a_process_is_accepted_with_a_warning() -> None:
    """I87."""
    definitions = read_bpmn(b'<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"/>')
    assert definitions.processes == ()
    assert [warning.code for warning in definitions.warnings] == ["no_process"]


def test_connections_come_from_the_flows_and_not_from_incoming_and_outgoing() -> None:
    """I87: children that are missing, or that lie."""
    task = '<bpmn:task id="x"><bpmn:incoming>nonsense</bpmn:incoming></bpmn:task>'
    node = _process(around(task)).nodes["x"]
    assert (node.incoming, node.outgoing) == (("f1",), ("f2",))


def test_ids_that_are_no_ncnames_are_accepted() -> None:
    """I87: leading digits, spaces and colons."""
    data = around('<bpmn:task id="1 a:b"/>', "1 a:b")
    assert _process(data).nodes["1 a:b"].outgoing == ("f2",)


def test_references_with_a_namespace_prefix_find_their_elements() -> None:
    """I87: QName references, as some modelers write them."""
    data = around('<bpmn:task id="x"/><bpmn:boundaryEvent id="b" attachedToRef="ns:x"/>').replace(
        b'sourceRef="x"', b'sourceRef="ns:x"'
    )
    examination = examine(data)
    process = examination.definitions.processes[0]
    assert process.flows["f2"].source == "x"
    boundary = process.nodes["b"]
    assert isinstance(boundary, BoundaryEvent)
    assert boundary.attached_to == "x"
    assert [problem.code for problem in examination.errors] == ["missing_definition"]


def test_a_flow_without_an_id_gets_the_same_one_on_every_reading() -> None:
    data = around('<bpmn:task id="x"/>').replace(b' id="f1"', b"")
    assert list(_process(data).flows) == ["s_to_x", "f2"]
    assert _process(data) == _process(data)


def test_lanes_annotations_data_and_unknown_extensions_are_documentation() -> None:
    body = (
        '<bpmn:laneSet id="ls"><bpmn:lane id="l"><bpmn:flowNodeRef>s</bpmn:flowNodeRef></bpmn:lane></bpmn:laneSet>'
        '<bpmn:startEvent id="s"><bpmn:extensionElements><v:any xmlns:v="urn:v"><v:deep/></v:any>'
        "</bpmn:extensionElements>"
        "</bpmn:startEvent>"
        '<bpmn:dataObject id="d"/><bpmn:dataObjectReference id="dr" dataObjectRef="d"/>'
        '<bpmn:dataStoreReference id="ds"/>'
        '<bpmn:textAnnotation id="t"><bpmn:text>note</bpmn:text></bpmn:textAnnotation><bpmn:group id="g"/>'
        '<bpmn:association id="a" sourceRef="s" targetRef="t"/>'
    )
    definitions = read_bpmn(document(body))
    assert list(definitions.processes[0].nodes) == ["s"]
    assert definitions.warnings == ()


def test_data_associations_of_a_task_are_accepted_with_a_warning() -> None:
    task = '<bpmn:task id="x"><bpmn:ioSpecification/><bpmn:dataInputAssociation id="i"/></bpmn:task>'
    assert _warnings(around(task)) == [("ignored", "x")]


def test_nodes_and_flows_are_in_document_order_and_know_their_scope() -> None:
    body = (
        '<bpmn:startEvent id="s"/><bpmn:subProcess id="sub"><bpmn:startEvent id="is"/><bpmn:endEvent id="ie"/>'
        '<bpmn:sequenceFlow id="if" sourceRef="is" targetRef="ie"/></bpmn:subProcess><bpmn:endEvent id="e"/>'
        '<bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="sub"/>'
        '<bpmn:sequenceFlow id="f2" sourceRef="sub" targetRef="e"/>'
    )
    process = _process(document(body))
    assert [(node.id, node.scope) for node in process.nodes.values()] == [
        ("s", "p"),
        ("sub", "p"),
        ("is", "sub"),
        ("ie", "sub"),
        ("e", "p"),
    ]
    assert list(process.flows) == ["if", "f1", "f2"]


def test_every_node_and_flow_knows_its_line() -> None:
    process = _process(around('<bpmn:task id="x"/>'))
    assert [node.line for node in process.nodes.values()] == [4, 5, 6]
    assert [flow.line for flow in process.flows.values()] == [7, 8]


def test_the_default_flow_is_marked_on_gateways_and_activities() -> None:
    gateway = _process(around('<bpmn:exclusiveGateway id="x" default="f2"/>'))
    assert isinstance(gateway.nodes["x"], ExclusiveGateway)
    assert gateway.nodes["x"].default == "f2"
    assert gateway.flows["f2"].default
    assert not gateway.flows["f1"].default
    assert _process(around('<bpmn:task id="x" default="f2"/>')).flows["f2"].default


# --- executable or a drawing -------------------------------------------------------------------------------------

UNSUPPORTED = '<bpmn:choreographyTask id="x"/>'


def test_an_executable_process_with_an_unsupported_element_refuses_the_file_in_one_line() -> None:
    with pytest.raises(InvalidModel) as refusal:
        read_bpmn(around(UNSUPPORTED), "order.bpmn")
    assert str(refusal.value) == "order.bpmn: choreographyTask 'x' (line 5) is not supported yet"
    assert len(refusal.value.problems) == 1


def test_several_problems_are_counted_in_the_line_and_all_attached() -> None:
    data = document('<bpmn:choreographyTask id="a"/><bpmn:callChoreography id="b"/><bpmn:subChoreography id="c"/>')
    with pytest.raises(InvalidModel, match=r"'a' \(line 4\) is not supported yet \(and 2 more problems\)$") as refusal:
        read_bpmn(data)
    assert [problem.element for problem in refusal.value.problems] == ["a", "b", "c"]  # type: ignore[attr-defined]


def test_a_drawing_with_an_unsupported_element_is_accepted_with_a_warning_and_not_executable() -> None:
    definitions = read_bpmn(around(UNSUPPORTED, executable="false"))
    assert not definitions.processes[0].executable
    assert [(warning.code, warning.element, warning.line) for warning in definitions.warnings] == [
        ("unsupported", "x", 5)
    ]


def test_a_process_that_does_not_say_is_executable_when_it_reads_whole() -> None:
    assert _process(around('<bpmn:task id="x"/>', executable="")).executable


def test_a_process_that_does_not_say_is_a_drawing_when_it_does_not_read_whole() -> None:
    definitions = read_bpmn(around(UNSUPPORTED, executable=""))
    assert not definitions.processes[0].executable
    assert [(warning.code, warning.element) for warning in definitions.warnings] == [
        ("unsupported", "x"),
        ("not_executable", "p"),
    ]
    assert "choreographyTask 'x'" in definitions.warnings[1].message


def test_a_process_that_does_not_say_and_is_broken_is_refused() -> None:
    data = around('<bpmn:task id="x"/>', executable="").replace(b'targetRef="e"', b'targetRef="gone"')
    assert [(code, element) for code, element, _ in _errors(data)] == [("unknown_target", "f2")]


def test_a_drawing_that_is_broken_is_accepted_with_a_warning() -> None:
    data = around('<bpmn:task id="x"/>', executable="false").replace(b'targetRef="e"', b'targetRef="gone"')
    assert _warnings(data) == [("unknown_target", "f2")]


def test_a_process_that_does_not_say_and_that_nothing_begins_is_a_drawing() -> None:
    circle = (
        '<bpmn:task id="a"/><bpmn:task id="b"/><bpmn:sequenceFlow id="f" sourceRef="a" targetRef="b"/>'
        '<bpmn:sequenceFlow id="g" sourceRef="b" targetRef="a"/>'
    )
    definitions = read_bpmn(document(circle, executable=""))
    assert not definitions.processes[0].executable
    assert [(warning.code, warning.element) for warning in definitions.warnings] == [("not_executable", "p")]


def test_an_id_with_a_line_break_does_not_break_the_message() -> None:
    errors = examine(document('<bpmn:startEvent id="s"/><bpmn:choreographyTask id="a&#10;b"/>')).errors
    assert [(error.element, error.message) for error in errors] == [
        ("a\nb", "choreographyTask 'a b' (line 4) is not supported yet")
    ]


def test_a_process_without_flow_nodes_is_a_drawing_unless_it_says_otherwise() -> None:
    assert _warnings(document("<bpmn:laneSet/>", executable="")) == [("empty_process", "p")]
    assert _warnings(document("", executable="false")) == [("empty_process", "p")]
    assert [code for code, _, _ in _errors(document(""))] == ["empty_process"]


def test_one_executable_process_with_a_fault_refuses_the_file_beside_a_sound_one() -> None:
    second = '<bpmn:process id="q" isExecutable="true"><bpmn:choreographyTask id="c"/></bpmn:process>'
    examination = examine(document('<bpmn:startEvent id="s"/>', beside=second))
    assert [process.id for process in examination.definitions.processes] == ["q", "p"]
    assert [problem.element for problem in examination.errors] == ["c"]


# --- refused -----------------------------------------------------------------------------------------------------

START = '<bpmn:startEvent id="s"/>'
MESSAGE = (
    '<bpmn:message id="m" name="M"/><bpmn:error id="r" errorCode="R"/><bpmn:error id="computed" errorCode="=code"/>'
)
BROKEN = {
    "duplicate ids of nodes": (START + '<bpmn:task id="a"/>\n<bpmn:task id="a"/>', "duplicate_id", "a", "line 5"),
    "a flow with a node's id": (
        START + '<bpmn:task id="a"/><bpmn:sequenceFlow id="a" sourceRef="s" targetRef="a"/>',
        "duplicate_id",
        "a",
        "same id",
    ),
    "a flow without a target": (
        START + '<bpmn:sequenceFlow id="f" sourceRef="s"/>',
        "unknown_target",
        "f",
        "leads to nothing",
    ),
    "a flow into nowhere": (
        START + '<bpmn:sequenceFlow id="f" sourceRef="s" targetRef="gone"/>',
        "unknown_target",
        "f",
        "leads to 'gone', which does not exist",
    ),
    "a flow from nowhere": (
        START + '<bpmn:endEvent id="e"/><bpmn:sequenceFlow id="f" sourceRef="gone" targetRef="e"/>',
        "unknown_source",
        "f",
        "comes from 'gone'",
    ),
    "a node without an id": (START + "<bpmn:task/>", "missing_id", "", "task (line 4) has no id"),
    "a boundary attached to nothing": (
        START + '<bpmn:boundaryEvent id="b"><bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration>'
        "</bpmn:timerEventDefinition></bpmn:boundaryEvent>",
        "unknown_attachment",
        "b",
        "attached to nothing",
    ),
    "a boundary on a gateway": (
        START + '<bpmn:parallelGateway id="g"/><bpmn:boundaryEvent id="b" attachedToRef="g"><bpmn:timerEventDefinition>'
        "<bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>",
        "unknown_attachment",
        "b",
        "parallelGateway 'g' (line 4), which is not an activity",
    ),
    "a flow back into a start event": (
        START + '<bpmn:task id="a"/><bpmn:sequenceFlow id="f" sourceRef="a" targetRef="s"/>',
        "incoming_flow",
        "s",
        "has an incoming flow, 'f'",
    ),
    "a flow out of an end event": (
        START + '<bpmn:endEvent id="e"/><bpmn:task id="a"/><bpmn:sequenceFlow id="f" sourceRef="e" targetRef="a"/>',
        "outgoing_flow",
        "e",
        "has an outgoing flow, 'f'",
    ),
    "a flow over a sub-process' border": (
        START + '<bpmn:subProcess id="sub"><bpmn:task id="a"/></bpmn:subProcess>'
        '<bpmn:sequenceFlow id="f" sourceRef="s" targetRef="a"/>',
        "crosses_scopes",
        "f",
        "from 's' to 'a'",
    ),
    "a catch event that waits for nothing": (
        '<bpmn:intermediateCatchEvent id="c"/>',
        "missing_definition",
        "c",
        "what it waits for",
    ),
    "a message event without a message": (
        '<bpmn:intermediateCatchEvent id="c"><bpmn:messageEventDefinition/></bpmn:intermediateCatchEvent>',
        "missing_message",
        "c",
        "names no message",
    ),
    "an unknown message": (
        '<bpmn:receiveTask id="r" messageRef="gone"/>',
        "unknown_reference",
        "r",
        "message 'gone', which does not exist",
    ),
    "an unknown signal": (
        '<bpmn:endEvent id="e"><bpmn:signalEventDefinition signalRef="gone"/></bpmn:endEvent>',
        "unknown_reference",
        "e",
        "signal 'gone', which does not exist",
    ),
    "a signal event without a signal": (
        '<bpmn:endEvent id="e"><bpmn:signalEventDefinition/></bpmn:endEvent>',
        "missing_signal",
        "e",
        "names no signal",
    ),
    "an unreadable timer": (
        '<bpmn:intermediateCatchEvent id="c"><bpmn:timerEventDefinition><bpmn:timeDuration>7 days</bpmn:timeDuration>'
        "</bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>",
        "invalid_timer",
        "c",
        "'7 days'",
    ),
    "an empty timer": (
        '<bpmn:intermediateCatchEvent id="c"><bpmn:timerEventDefinition/></bpmn:intermediateCatchEvent>',
        "missing_timer",
        "c",
        "without a date, duration or cycle",
    ),
    "a timer that throws": (
        '<bpmn:endEvent id="e"><bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration>'
        "</bpmn:timerEventDefinition></bpmn:endEvent>",
        "wrong_definition",
        "e",
        "cannot have a timer",
    ),
    "a terminate in the middle": (
        '<bpmn:intermediateThrowEvent id="t"><bpmn:terminateEventDefinition/></bpmn:intermediateThrowEvent>',
        "wrong_definition",
        "t",
        "cannot have a terminate",
    ),
    "several ways to end one scope": (
        '<bpmn:endEvent id="e"><bpmn:terminateEventDefinition/><bpmn:errorEventDefinition errorRef="r"/>'
        "</bpmn:endEvent>",
        "wrong_combination",
        "e",
        "ends its scope in several ways: terminate, error",
    ),
    "an error that is not declared": (
        '<bpmn:endEvent id="e"><bpmn:errorEventDefinition errorRef="gone"/></bpmn:endEvent>',
        "unknown_reference",
        "e",
        "refers to the error 'gone', which does not exist",
    ),
    "a computed error code": (
        '<bpmn:endEvent id="e"><bpmn:errorEventDefinition errorRef="computed"/></bpmn:endEvent>',
        "unsupported",
        "e",
        "errorEventDefinition of 'e' (line 4)",
    ),
    "a message start in an embedded sub-process": (
        START + '<bpmn:subProcess id="sub"><bpmn:startEvent id="i"><bpmn:messageEventDefinition messageRef="m"/>'
        "</bpmn:startEvent></bpmn:subProcess>",
        "wrong_definition",
        "i",
        "starts an embedded sub-process",
    ),
    "an event-based gateway before a task": (
        START + '<bpmn:eventBasedGateway id="g"/><bpmn:task id="a"/>'
        '<bpmn:sequenceFlow id="f" sourceRef="g" targetRef="a"/>',
        "event_gateway_arm",
        "g",
        "task 'a' (line 4), which is no catch event or receive task",
    ),
    "an event-based gateway before nothing": (
        START + '<bpmn:eventBasedGateway id="g"/>',
        "event_gateway_arm",
        "g",
        "no outgoing",
    ),
    "a default flow of another element": (
        START + '<bpmn:exclusiveGateway id="g" default="f"/><bpmn:task id="a"/>'
        '<bpmn:sequenceFlow id="f" sourceRef="s" targetRef="a"/>',
        "unknown_default",
        "g",
        "default flow 'f', which does not leave it",
    ),
    "a default flow that does not leave its activity": (
        START + '<bpmn:task id="a" default="f"/><bpmn:sequenceFlow id="f" sourceRef="s" targetRef="a"/>',
        "unknown_default",
        "a",
        "default flow 'f', which does not leave it",
    ),
    "an unknown shared event definition": (
        '<bpmn:startEvent id="x"><bpmn:eventDefinitionRef>gone</bpmn:eventDefinitionRef></bpmn:startEvent>',
        "unknown_reference",
        "x",
        "event definition 'gone', which does not exist",
    ),
    "an element inside a task that is no BPMN": (
        START + '<bpmn:task id="x"><bpmn:wizard/></bpmn:task>',
        "unknown_element",
        "x",
        "wizard of 'x' (line 4) is no BPMN 2.0 element",
    ),
    "a script in another file": (
        START + '<bpmn:scriptTask id="x" camunda:resource="a.groovy"/>',
        "unsupported",
        "x",
        "a script in another file",
    ),
    "a computed job type": (
        START + '<bpmn:serviceTask id="x"><bpmn:extensionElements><zeebe:taskDefinition type="=kind"/>'
        "</bpmn:extensionElements></bpmn:serviceTask>",
        "unsupported",
        "x",
        "the computed type",
    ),
    "a mapping without a target": (
        START + '<bpmn:serviceTask id="x"><bpmn:extensionElements><zeebe:ioMapping><zeebe:input source="=a"/>'
        "</zeebe:ioMapping></bpmn:extensionElements></bpmn:serviceTask>",
        "missing_target",
        "x",
        "zeebe:input of 'x'",
    ),
    "a parameter without a name": (
        START + '<bpmn:serviceTask id="x"><bpmn:extensionElements><camunda:inputOutput><camunda:inputParameter/>'
        "</camunda:inputOutput></bpmn:extensionElements></bpmn:serviceTask>",
        "missing_target",
        "x",
        "parameter without a name",
    ),
    "a script task without a script": (START + '<bpmn:scriptTask id="x"/>', "missing_script", "x", "has no script"),
    "an element that is no BPMN": (
        START + '<bpmn:wizardTask id="w"/>',
        "unknown_element",
        "w",
        "is no BPMN 2.0 element",
    ),
    "a condition that cannot be read": (
        START
        + '<bpmn:exclusiveGateway id="g"/><bpmn:task id="a"/><bpmn:sequenceFlow id="f0" sourceRef="s" targetRef="g"/>'
        '<bpmn:sequenceFlow id="f" sourceRef="g" targetRef="a"><bpmn:conditionExpression>'
        "a &gt; (</bpmn:conditionExpression>"
        "</bpmn:sequenceFlow>",
        "expression",
        "f",
        "sequenceFlow 'f' (line 4) has a condition that cannot be read",
    ),
    "a script in another engine's language": (
        START + '<bpmn:scriptTask id="x" scriptFormat="groovy"><bpmn:script>a = 1</bpmn:script></bpmn:scriptTask>',
        "expression",
        "x",
        "groovy",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_model_is_refused_by_element_and_line(what: str) -> None:
    """I87: each with the element's id, none with a traceback."""
    body, code, element, words = BROKEN[what]
    data = document(body, beside=MESSAGE)
    errors = _errors(data)
    assert [(found, named) for found, named, _ in errors] == [(code, element)]
    assert words in errors[0][2]
    assert all(problem.line > 0 for problem in examine(data).errors)
    with pytest.raises(InvalidModel) as refusal:
        read_bpmn(data)
    assert "\n" not in str(refusal.value)


def test_processes_with_the_same_id_are_refused() -> None:
    twin = '<bpmn:process id="p" isExecutable="true"><bpmn:startEvent id="other"/></bpmn:process>'
    assert [(code, element) for code, element, _ in _errors(document(START, beside=twin))] == [("duplicate_id", "p")]


def test_a_process_without_an_id_is_refused() -> None:
    data = document(START).replace(b' id="p"', b"")
    assert [code for code, _, _ in _errors(data)] == ["missing_id"]


def test_what_leads_to_a_refused_element_is_no_fault_of_its_own() -> None:
    body = (
        START
        + '<bpmn:choreographyTask id="c"/><bpmn:boundaryEvent id="b" attachedToRef="c"><bpmn:timerEventDefinition>'
        "<bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>"
        '<bpmn:endEvent id="e"/><bpmn:sequenceFlow id="f" sourceRef="s" targetRef="c"/>'
        '<bpmn:sequenceFlow id="g" sourceRef="b" targetRef="e"/>'
    )
    assert [element for _, element, _ in _errors(document(body))] == ["c"]


# --- warned ------------------------------------------------------------------------------------------------------


def test_an_empty_condition_is_dropped_with_a_warning() -> None:
    data = around('<bpmn:task id="x"/>').replace(
        b'sourceRef="x" targetRef="e"/>',
        b'sourceRef="x" targetRef="e"><bpmn:conditionExpression/></bpmn:sequenceFlow>',
    )
    assert _warnings(data) == [("empty_condition", "f2")]
    assert _process(data).flows["f2"].condition is None


def test_token_quantities_are_warned_about() -> None:
    assert _warnings(around('<bpmn:task id="x" completionQuantity="2"/>')) == [("ignored", "x")]


def test_a_foreign_element_among_the_flow_elements_is_warned_about() -> None:
    assert _warnings(document(START + '<v:task xmlns:v="urn:v" id="t"/>')) == [("unknown_element", "t")]
