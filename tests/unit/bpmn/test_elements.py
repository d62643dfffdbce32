"""Breadth (issue 4): what each element of the standard, and of each vendor, becomes in the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from gobpm_ray.bpmn.reader import examine, read_bpmn, read_file
from gobpm_ray.model.elements import (
    BoundaryEvent,
    CallActivity,
    CancelDefinition,
    CatchEvent,
    CompensateDefinition,
    ComplexGateway,
    ConditionalDefinition,
    DecisionTask,
    EndEvent,
    ErrorDefinition,
    EscalationDefinition,
    EventBasedGateway,
    Expression,
    FlowNode,
    InclusiveGateway,
    LinkDefinition,
    Loop,
    Mapping,
    MultiInstance,
    ReceiveTask,
    StandardLoop,
    StartEvent,
    SubProcess,
    ThrowEvent,
    WorkTask,
    literal,
)
from tests.unit.bpmn.documents import around, document

DECLARED = (
    '<bpmn:message id="m" name="M"/><bpmn:signal id="g" name="G"/>'
    '<bpmn:error id="full" name="Named" errorCode="E-1"/><bpmn:error id="bare" name="Named"/><bpmn:error id="only"/>'
    '<bpmn:escalation id="esc" escalationCode="up"/>'
    '<bpmn:signalEventDefinition id="each" signalRef="g"/>'
)


def _node(body: str, node_id: str = "x", **more: str) -> FlowNode:
    return read_bpmn(document(body, beside=DECLARED + more.get("beside", ""))).processes[0].nodes[node_id]


def _codes(body: str) -> list[tuple[str, str]]:
    return [(warning.code, warning.element) for warning in read_bpmn(document(body, beside=DECLARED)).warnings]


def _end(definition: str) -> object:
    node = _node(f'<bpmn:endEvent id="x">{definition}</bpmn:endEvent>')
    assert isinstance(node, EndEvent)
    return node.definitions[0]


# --- events ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "code"), [("full", "E-1"), ("bare", "Named"), ("only", "only"), ("ns:full", "E-1")]
)
def test_an_error_is_known_by_its_code_else_by_its_name_else_by_its_id(reference: str, code: str) -> None:
    assert _end(f'<bpmn:errorEventDefinition errorRef="{reference}"/>') == ErrorDefinition(code=code)


def test_an_escalation_has_the_code_that_it_refers_to() -> None:
    assert _end('<bpmn:escalationEventDefinition escalationRef="esc"/>') == EscalationDefinition(code="up")


def test_a_catch_without_a_reference_takes_every_error_and_every_escalation() -> None:
    for kind, every in (("error", ErrorDefinition()), ("escalation", EscalationDefinition())):
        body = f'<bpmn:task id="t"/><bpmn:boundaryEvent id="x" attachedToRef="t"><bpmn:{kind}EventDefinition/>'
        node = _node(body + "</bpmn:boundaryEvent>")
        assert isinstance(node, BoundaryEvent)
        assert node.definitions == (every,)


def test_a_condition_keeps_its_text_though_a_comment_and_cdata_stand_in_it() -> None:
    condition = "<bpmn:condition>x <!-- here --> &gt; <![CDATA[1]]></bpmn:condition>"
    node = _node(
        '<bpmn:intermediateCatchEvent id="x"><bpmn:conditionalEventDefinition>'
        f"{condition}</bpmn:conditionalEventDefinition></bpmn:intermediateCatchEvent>"
    )
    assert isinstance(node, CatchEvent)
    assert node.definitions == (ConditionalDefinition(condition=Expression("x  > 1")),)


def test_a_link_a_compensation_and_a_cancel_are_read_with_what_they_name() -> None:
    node = _node(
        '<bpmn:intermediateThrowEvent id="x"><bpmn:linkEventDefinition name="L"/></bpmn:intermediateThrowEvent>'
        '<bpmn:intermediateCatchEvent id="y"><bpmn:linkEventDefinition name="L"/></bpmn:intermediateCatchEvent>'
    )
    assert isinstance(node, ThrowEvent)
    assert node.definitions == (LinkDefinition(name="L"),)
    body = '<bpmn:task id="t"/><bpmn:endEvent id="x"><bpmn:compensateEventDefinition activityRef="t"/></bpmn:endEvent>'
    thrown = _node(body)
    assert isinstance(thrown, EndEvent)
    assert thrown.definitions == (CompensateDefinition(activity="t"),)
    cancelled = _node(
        '<bpmn:startEvent id="s"/><bpmn:transaction id="t"><bpmn:endEvent id="x"><bpmn:cancelEventDefinition/>'
        "</bpmn:endEvent></bpmn:transaction>"
    )
    assert isinstance(cancelled, EndEvent)
    assert cancelled.definitions == (CancelDefinition(),)


def test_an_event_may_have_several_definitions_and_may_ask_for_all_of_them() -> None:
    node = _node(
        '<bpmn:intermediateCatchEvent id="x" parallelMultiple="true"><bpmn:messageEventDefinition messageRef="m"/>'
        '<bpmn:signalEventDefinition signalRef="g"/></bpmn:intermediateCatchEvent>'
    )
    assert isinstance(node, CatchEvent)
    assert [definition.type for definition in node.definitions] == ["message", "signal"]
    assert node.parallel_multiple


def test_an_event_sub_process_has_its_start_and_says_whether_it_interrupts() -> None:
    process = read_bpmn(
        document(
            '<bpmn:startEvent id="s"/><bpmn:subProcess id="sub" triggeredByEvent="true">'
            '<bpmn:startEvent id="x" isInterrupting="false"><bpmn:messageEventDefinition messageRef="m"/>'
            "</bpmn:startEvent></bpmn:subProcess>",
            beside=DECLARED,
        )
    ).processes[0]
    outside, inside = process.nodes["sub"], process.nodes["x"]
    assert isinstance(outside, SubProcess)
    assert outside.kind == "event"
    assert isinstance(inside, StartEvent)
    assert (inside.scope, inside.interrupting) == ("sub", False)


@pytest.mark.parametrize("drawn", ['sourceRef="x" targetRef="undo"', 'sourceRef="undo" targetRef="x"'])
def test_a_compensation_boundary_finds_its_handler_whichever_way_the_association_is_drawn(drawn: str) -> None:
    """The note that another association leads to is no handler."""
    node = _node(
        '<bpmn:task id="t"/><bpmn:boundaryEvent id="x" attachedToRef="t"><bpmn:compensateEventDefinition/>'
        '</bpmn:boundaryEvent><bpmn:serviceTask id="undo" isForCompensation="true"/>'
        '<bpmn:textAnnotation id="note"/><bpmn:association id="a" sourceRef="x" targetRef="note"/>'
        f'<bpmn:association id="b" {drawn}/>'
    )
    assert isinstance(node, BoundaryEvent)
    assert node.handler == "undo"


def test_two_handlers_of_one_boundary_are_refused() -> None:
    body = (
        '<bpmn:task id="t"/><bpmn:boundaryEvent id="x" attachedToRef="t"><bpmn:compensateEventDefinition/>'
        '</bpmn:boundaryEvent><bpmn:task id="u" isForCompensation="true"/><bpmn:task id="v" isForCompensation="true"/>'
        '<bpmn:association id="a" sourceRef="x" targetRef="u"/><bpmn:association id="b" sourceRef="x" targetRef="v"/>'
    )
    errors = examine(document(body)).errors
    assert [(error.code, error.element) for error in errors] == [("several_handlers", "x")]


# --- gateways and sub-processes ----------------------------------------------------------------------------------


def test_gateways_are_read_with_their_conditions_defaults_and_flags() -> None:
    body = (
        '<bpmn:{kind} id="x" default="f2">{inside}</bpmn:{kind}><bpmn:task id="a"/><bpmn:task id="b"/>'
        '<bpmn:sequenceFlow id="f1" sourceRef="x" targetRef="a"><bpmn:conditionExpression>y</bpmn:conditionExpression>'
        '</bpmn:sequenceFlow><bpmn:sequenceFlow id="f2" sourceRef="x" targetRef="b"/>'
    )
    inclusive = _node(body.format(kind="inclusiveGateway", inside=""))
    assert isinstance(inclusive, InclusiveGateway)
    assert inclusive.default == "f2"
    activation = "<bpmn:activationCondition>activationCount &gt;= 2</bpmn:activationCondition>"
    complex_gateway = _node(body.format(kind="complexGateway", inside=activation))
    assert isinstance(complex_gateway, ComplexGateway)
    assert (complex_gateway.default, complex_gateway.activation) == ("f2", Expression("activationCount >= 2"))
    gateway = _node(
        '<bpmn:eventBasedGateway id="x" instantiate="true" eventGatewayType="Parallel"/>'
        '<bpmn:receiveTask id="r" messageRef="m"/><bpmn:sequenceFlow id="f" sourceRef="x" targetRef="r"/>'
    )
    assert isinstance(gateway, EventBasedGateway)
    assert (gateway.instantiate, gateway.parallel) == (True, True)


def test_an_ad_hoc_sub_process_has_an_order_and_an_end() -> None:
    node = _node(
        '<bpmn:adHocSubProcess id="x" ordering="Sequential" cancelRemainingInstances="false"><bpmn:task id="a"/>'
        "<bpmn:completionCondition>done</bpmn:completionCondition></bpmn:adHocSubProcess>"
    )
    assert isinstance(node, SubProcess)
    assert (node.kind, node.ordering, node.cancel_remaining) == ("adhoc", "sequential", False)
    assert node.completion == Expression("done")


# --- calls and decisions -----------------------------------------------------------------------------------------


def _call(inside: str = "", attributes: str = 'calledElement="q"') -> CallActivity:
    node = _node(f'<bpmn:callActivity id="x" {attributes}>{inside}</bpmn:callActivity>')
    assert isinstance(node, CallActivity)
    return node


def _extended(*elements: str) -> str:
    return f"<bpmn:extensionElements>{''.join(elements)}</bpmn:extensionElements>"


def test_a_plain_call_passes_everything_both_ways_to_the_newest_version() -> None:
    call = _call()
    assert (call.called, call.binding, call.inherit, call.propagate) == (literal("q"), "latest", True, True)


def test_a_called_element_loses_a_prefix_that_the_document_binds_and_keeps_any_other_colon() -> None:
    assert _call(attributes='calledElement="bpmn:q"').called == literal("q")
    assert _call(attributes='calledElement="Process:q"').called == literal("Process:q")


def test_zeebe_says_what_is_called_and_what_comes_back() -> None:
    call = _call(
        _extended(
            '<zeebe:calledElement processId="=which" propagateAllChildVariables="false" bindingType="deployment"/>'
        ),
        attributes="",
    )
    assert (call.called, call.binding, call.propagate, call.inherit) == (Expression("which"), "deployment", False, True)


def test_camunda_passes_what_it_names_and_nothing_else() -> None:
    call = _call(
        _extended(
            '<camunda:in source="order no" target="order"/><camunda:in sourceExpression="${a + 1}" target="b"/>',
            '<camunda:in businessKey="${order}"/><camunda:out source="bill" target="invoice"/>',
        ),
        'calledElement="q" camunda:calledElementBinding="version" camunda:calledElementVersion="3"',
    )
    assert call.inputs == (Mapping("order", Expression("`order no`")), Mapping("b", Expression("${a + 1}", "juel")))
    assert call.outputs == (Mapping("invoice", Expression("bill")),)
    assert (call.inherit, call.propagate, call.business_key) == (False, False, Expression("${order}", "juel"))
    assert (call.binding, call.version) == ("version", 3)


def test_camunda_passes_all_where_it_says_all() -> None:
    call = _call(_extended('<camunda:in variables="all"/><camunda:out variables="all"/>'))
    assert (call.inputs, call.outputs, call.inherit, call.propagate) == ((), (), True, True)


def test_the_callers_own_business_key_is_not_handed_on_and_that_is_said() -> None:
    body = '<bpmn:callActivity id="x" calledElement="q">' + _extended(
        '<camunda:in businessKey="#{execution.processBusinessKey}"/>'
    )
    assert _codes(body + "</bpmn:callActivity>") == [("ignored", "x")]


def test_flowable_says_whether_variables_are_inherited_and_which_deployment_is_meant() -> None:
    call = _call(attributes='calledElement="q" flowable:inheritVariables="false" flowable:sameDeployment="true"')
    assert (call.inherit, call.binding) == (False, "deployment")


DECISIONS = {
    "zeebe": '<bpmn:businessRuleTask id="x">'
    + _extended('<zeebe:calledDecision decisionId="rating" resultVariable="rate"/>')
    + "</bpmn:businessRuleTask>",
    "camunda": '<bpmn:businessRuleTask id="x" camunda:decisionRef="rating" camunda:resultVariable="rate"'
    ' camunda:mapDecisionResult="singleEntry"/>',
    "flowable": '<bpmn:serviceTask id="x" flowable:type="dmn" flowable:resultVariable="rate">'
    + _extended('<flowable:field name="decisionTableReferenceKey"><flowable:string>rating</flowable:string>'
                "</flowable:field>")
    + "</bpmn:serviceTask>",
    "this engine": '<bpmn:businessRuleTask id="x" ray:decision="rating" ray:resultVariable="rate"/>',
}  # fmt: skip


@pytest.mark.parametrize("vendor", DECISIONS)
def test_every_vendors_business_rule_task_names_its_decision(vendor: str) -> None:
    task = _node(DECISIONS[vendor])
    assert isinstance(task, DecisionTask)
    assert (task.decision, task.result_variable) == (literal("rating"), "rate")


def test_a_business_rule_task_with_a_job_type_or_topic_is_work() -> None:
    for body in (
        '<bpmn:businessRuleTask id="x">'
        + _extended('<zeebe:taskDefinition type="rules"/>')
        + "</bpmn:businessRuleTask>",
        '<bpmn:businessRuleTask id="x" camunda:type="external" camunda:topic="rules"/>',
    ):
        task = _node(body)
        assert isinstance(task, WorkTask)
        assert (task.type, task.topic) == ("businessRuleTask", "rules")


# --- loops -------------------------------------------------------------------------------------------------------


def _loop(characteristics: str, around_it: str = "") -> Loop | None:
    node = _node(f'{around_it}<bpmn:receiveTask id="x" messageRef="m">{characteristics}</bpmn:receiveTask>')
    assert isinstance(node, ReceiveTask)
    return node.loop


def _multi(inside: str, attributes: str = "") -> MultiInstance:
    loop = _loop(
        f"<bpmn:multiInstanceLoopCharacteristics{attributes}>{inside}</bpmn:multiInstanceLoopCharacteristics>",
        '<bpmn:dataObject id="list" name="Orders of today"/><bpmn:dataObjectReference id="ref" dataObjectRef="list"/>'
        '<bpmn:property id="prop" name="results"/>',
    )
    assert isinstance(loop, MultiInstance)
    return loop


def test_a_standard_loop_has_a_condition_a_maximum_and_a_place_for_its_test() -> None:
    loop = _loop(
        '<bpmn:standardLoopCharacteristics testBefore="true" loopMaximum="5"><bpmn:loopCondition>x &lt; 3'
        "</bpmn:loopCondition></bpmn:standardLoopCharacteristics>"
    )
    assert loop == StandardLoop(condition=Expression("x < 3"), test_before=True, maximum=Expression("5"))


def test_multi_instance_in_the_words_of_the_standard() -> None:
    loop = _multi(
        "<bpmn:loopDataInputRef>ref</bpmn:loopDataInputRef><bpmn:loopDataOutputRef>prop</bpmn:loopDataOutputRef>"
        '<bpmn:inputDataItem id="i" name="order"/><bpmn:outputDataItem id="o" name="bill"/>'
        "<bpmn:completionCondition>enough</bpmn:completionCondition>",
        ' isSequential="true"',
    )
    assert loop == MultiInstance(
        sequential=True,
        collection=Expression("`Orders of today`"),
        item_variable="order",
        output_collection="results",
        output_item=Expression("bill"),
        completion=Expression("enough"),
    )


def test_multi_instance_by_cardinality() -> None:
    assert _multi("<bpmn:loopCardinality>count * 2</bpmn:loopCardinality>").cardinality == Expression("count * 2")


def test_a_collection_that_an_association_feeds_is_the_variable_that_it_comes_from() -> None:
    process = read_bpmn(
        document(
            '<bpmn:property id="prop" name="orders"/><bpmn:task id="x">'
            '<bpmn:ioSpecification><bpmn:dataInput id="in"/></bpmn:ioSpecification>'
            "<bpmn:dataInputAssociation><bpmn:sourceRef>prop</bpmn:sourceRef><bpmn:targetRef>in</bpmn:targetRef>"
            "</bpmn:dataInputAssociation><bpmn:multiInstanceLoopCharacteristics>"
            "<bpmn:loopDataInputRef>in</bpmn:loopDataInputRef></bpmn:multiInstanceLoopCharacteristics></bpmn:task>"
        )
    ).processes[0]
    loop = process.nodes["x"].loop  # type: ignore[union-attr]
    assert isinstance(loop, MultiInstance)
    assert loop.collection == Expression("orders")


def test_multi_instance_in_the_words_of_zeebe() -> None:
    inside = _extended(
        '<zeebe:loopCharacteristics inputCollection="=orders" inputElement="order" outputCollection="bills"'
        ' outputElement="=bill.total"/>'
    )
    assert _multi(inside) == MultiInstance(
        collection=Expression("orders"),
        item_variable="order",
        output_collection="bills",
        output_item=Expression("bill.total"),
    )


@pytest.mark.parametrize("vendor", ["camunda", "flowable", "activiti"])
def test_multi_instance_in_the_words_of_camunda_and_its_relatives(vendor: str) -> None:
    named = _multi("", f' {vendor}:collection="orders" {vendor}:elementVariable="order"')
    assert (named.collection, named.item_variable) == (Expression("orders"), "order")
    computed = _multi("", f' {vendor}:collection="${{all.orders}}"')
    assert computed.collection == Expression("${all.orders}", "juel")


def test_a_behaviour_names_the_signal_that_it_throws() -> None:
    count = "<bpmn:loopCardinality>2</bpmn:loopCardinality>"
    one = _multi(count, ' behavior="One" oneBehaviorEventRef="each"')
    assert (one.behavior, one.events) == ("one", ("G",))
    several = _multi(
        count + "<bpmn:complexBehaviorDefinition><bpmn:condition>numberOfCompletedInstances = 1</bpmn:condition>"
        '<bpmn:event><bpmn:signalEventDefinition signalRef="g"/></bpmn:event></bpmn:complexBehaviorDefinition>',
        ' behavior="Complex"',
    )
    assert (several.events, several.conditions) == (("G",), (Expression("numberOfCompletedInstances = 1"),))


# --- data --------------------------------------------------------------------------------------------------------

DATA = '<bpmn:property id="p1" name="amount"/><bpmn:dataObject id="d1" name="Invoice No"/>'
INPUT = "<bpmn:dataInputAssociation>{}</bpmn:dataInputAssociation>"
OUTPUT = "<bpmn:dataOutputAssociation>{}</bpmn:dataOutputAssociation>"
ENDS = "<bpmn:sourceRef>{}</bpmn:sourceRef><bpmn:targetRef>{}</bpmn:targetRef>"
SPECIFIED = (
    '<bpmn:ioSpecification><bpmn:dataInput id="in" name="sum"/><bpmn:dataOutput id="out" name="answer"/>'
    "</bpmn:ioSpecification>"
)


def _task(inside: str) -> FlowNode:
    return _node(f'{DATA}<bpmn:serviceTask id="x">{inside}</bpmn:serviceTask>')


def test_an_association_between_two_named_ends_is_a_mapping() -> None:
    task = _task(SPECIFIED + INPUT.format(ENDS.format("p1", "in")) + OUTPUT.format(ENDS.format("out", "d1")))
    assert task.inputs == (Mapping("sum", Expression("amount")),)
    assert task.outputs == (Mapping("Invoice No", Expression("answer")),)


def test_an_assignment_says_what_moves_where() -> None:
    assigned = "<bpmn:assignment><bpmn:from>amount * 2</bpmn:from><bpmn:to>in</bpmn:to></bpmn:assignment>"
    task = _task(SPECIFIED + INPUT.format("<bpmn:targetRef>in</bpmn:targetRef>" + assigned))
    assert task.inputs == (Mapping("sum", Expression("amount * 2")),)


def test_a_transformation_is_an_expression_for_its_target() -> None:
    moved = ENDS.format("out", "d1") + "<bpmn:transformation>answer + 1</bpmn:transformation>"
    assert _task(SPECIFIED + OUTPUT.format(moved)).outputs == (Mapping("Invoice No", Expression("answer + 1")),)


def test_an_association_that_only_draws_an_arrow_is_documentation_and_that_is_said() -> None:
    body = f'{DATA}<bpmn:task id="x">{INPUT.format(ENDS.format("d1", "nothing"))}</bpmn:task>'
    assert _codes(body) == [("ignored", "x")]
    assert _task(INPUT.format(ENDS.format("d1", "nothing"))).inputs == ()


def test_a_vendors_mapping_comes_before_an_association() -> None:
    mapping = _extended('<zeebe:ioMapping><zeebe:input source="=y" target="z"/></zeebe:ioMapping>')
    task = _task(mapping + SPECIFIED + INPUT.format(ENDS.format("p1", "in")))
    assert task.inputs == (Mapping("z", Expression("y")),)


# --- imports -----------------------------------------------------------------------------------------------------

IMPORT = '<bpmn:import importType="http://www.omg.org/spec/BPMN/20100524/MODEL" location="{}" namespace="http://x"/>'
WAITS = '<bpmn:startEvent id="s"/><bpmn:receiveTask id="x" messageRef="o:far"/>'


def _importing(folder: Path, location: str) -> Path:
    file = folder / "a.bpmn"
    file.write_bytes(document(WAITS, beside=IMPORT.format(location)))
    return file


def test_a_message_that_only_the_imported_file_declares_is_found_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "b.bpmn").write_bytes(document("", beside='<bpmn:message id="far" name="Far"/>', executable="false"))
    definitions = read_file(_importing(tmp_path, "b.bpmn"))
    task = definitions.processes[0].nodes["x"]
    assert isinstance(task, ReceiveTask)
    assert task.message.name == "Far"
    assert [warning.code for warning in definitions.warnings if warning.code.startswith("import")] == ["imported"]


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("gone.bpmn", "is not there"),
        ("../out.bpmn", "leads out of"),
        ("/etc/passwd", "leads out of"),
        ("http://example.org/b.bpmn", "no file beside"),
        ("link.bpmn", "leads out of"),
        ("rubbish.bpmn", "cannot be read as XML"),
    ],
)
def test_an_import_that_is_not_safely_beside_the_file_stays_closed_with_a_warning(
    tmp_path: Path, location: str, why: str
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "out.bpmn").write_bytes(document("", beside='<bpmn:message id="far" name="Far"/>'))
    (inner / "link.bpmn").symlink_to(tmp_path / "out.bpmn")
    (inner / "rubbish.bpmn").write_text("<a>")
    file = _importing(inner, location)
    examination = examine(file.read_bytes(), "a.bpmn", folder=inner)
    warning = next(each for each in examination.definitions.warnings if each.code == "import")
    assert why in warning.message
    assert [error.code for error in examination.errors] == ["unknown_reference"]


def test_a_document_that_is_no_file_opens_no_imports() -> None:
    examination = examine(document(WAITS, beside=IMPORT.format("b.bpmn")))
    assert [warning.code for warning in examination.definitions.warnings] == ["import"]


def test_what_camunda_adds_to_a_definition_is_not_used_and_that_is_said() -> None:
    body = (
        '<bpmn:task id="t"/><bpmn:boundaryEvent id="x" attachedToRef="t">'
        '<bpmn:errorEventDefinition errorRef="full" camunda:errorCodeVariable="code"/></bpmn:boundaryEvent>'
        '<bpmn:endEvent id="y"><bpmn:messageEventDefinition messageRef="m" camunda:class="a.B"/></bpmn:endEvent>'
        '<bpmn:intermediateThrowEvent id="z"><bpmn:signalEventDefinition signalRef="g">'
        + _extended('<camunda:in source="a" target="b"/>')
        + "</bpmn:signalEventDefinition></bpmn:intermediateThrowEvent>"
    )
    assert _codes(body) == [("ignored", "x"), ("ignored", "y"), ("ignored", "z")]


def test_headers_stay_warnings_and_listeners_stay_refused() -> None:
    worked = _extended('<zeebe:taskDefinition type="t" retries="3"/><zeebe:taskHeaders/>')
    assert _codes(f'<bpmn:serviceTask id="x">{worked}</bpmn:serviceTask>') == [("ignored", "x")]
    heard = _extended('<camunda:executionListener event="start" class="a.B"/>')
    errors = examine(around(f'<bpmn:task id="x">{heard}</bpmn:task>')).errors
    assert [error.message for error in errors] == ["camunda:executionListener of 'x' (line 5) is not supported yet"]
