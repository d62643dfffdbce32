"""Flow nodes as XML elements: the counterpart of `gobpm_ray.bpmn.nodes`, field by field."""

from __future__ import annotations

from lxml import etree

from gobpm_ray.bpmn.written_parts import (
    Roots,
    bpmn,
    extension,
    flag,
    formal,
    mapping,
    operand,
    ray_attribute,
    script,
    text_attributes,
    timer,
)
from gobpm_ray.model.elements import (
    LITERAL,
    Activity,
    BoundaryEvent,
    CallActivity,
    Choice,
    CompensateDefinition,
    ComplexGateway,
    ConditionalDefinition,
    CustomTask,
    DecisionTask,
    EndEvent,
    ErrorDefinition,
    EscalationDefinition,
    Event,
    EventBasedGateway,
    EventDefinition,
    Expression,
    FlowNode,
    LinkDefinition,
    Loop,
    MessageDefinition,
    Process,
    ReceiveTask,
    ScriptTask,
    SignalDefinition,
    StandardLoop,
    StartEvent,
    SubProcess,
    ThrowEvent,
    TimerDefinition,
    UserTask,
    WorkTask,
)

_SUB_PROCESSES = {"transaction": "transaction", "adhoc": "adHocSubProcess"}


def write_node(node: FlowNode, process: Process, roots: Roots) -> etree._Element:
    """The node's element, without what lies inside it."""
    element = bpmn(_tag(node), id=node.id)
    text_attributes(element, name=node.name)
    ray_attribute(element, "dehydrationThreshold", node.dehydration_threshold)
    for each in node.inputs:
        mapping(element, "input", each)
    for each in node.outputs:
        mapping(element, "output", each)
    default = next((flow for flow in node.outgoing if flow in process.flows and process.flows[flow].default), "")
    if isinstance(node, Choice):
        default = node.default or default
    text_attributes(element, default=default)
    for flow in node.incoming:
        etree.SubElement(element, bpmn("incoming").tag).text = flow
    for flow in node.outgoing:
        etree.SubElement(element, bpmn("outgoing").tag).text = flow
    if isinstance(node, Event):
        _event(element, node, roots)
    elif isinstance(node, Activity):
        flag(element, "isForCompensation", node.for_compensation)
        if node.loop is not None:
            _loop(element, node.loop, roots)
        _activity(element, node, roots)
    elif isinstance(node, ComplexGateway) and node.activation is not None:
        formal(element, "activationCondition", node.activation, "activation")
    elif isinstance(node, EventBasedGateway):
        flag(element, "instantiate", node.instantiate)
        text_attributes(element, eventGatewayType="Parallel" if node.parallel else "")
    return element


def _tag(node: FlowNode) -> str:
    if isinstance(node, DecisionTask):
        return "businessRuleTask"
    if isinstance(node, CustomTask):
        return "task"
    return _SUB_PROCESSES.get(node.kind, node.type) if isinstance(node, SubProcess) else node.type


# --- events ------------------------------------------------------------------------------------------------------


def _event(element: etree._Element, node: Event, roots: Roots) -> None:
    if isinstance(node, BoundaryEvent):
        element.set("attachedToRef", node.attached_to)
        flag(element, "cancelActivity", node.interrupting, default=True)
    elif isinstance(node, StartEvent):
        flag(element, "isInterrupting", node.interrupting, default=True)
    if not isinstance(node, EndEvent | ThrowEvent):
        flag(element, "parallelMultiple", node.parallel_multiple)
    for definition in node.definitions:
        element.append(_definition(definition, roots))


def _definition(definition: EventDefinition, roots: Roots) -> etree._Element:
    element = bpmn(f"{definition.type}EventDefinition")
    match definition:
        case TimerDefinition():
            timer(element, definition.kind, definition.value)
        case MessageDefinition():
            text_attributes(element, messageRef=roots.message(definition))
        case SignalDefinition():
            text_attributes(element, signalRef=roots.signal(definition.name))
        case ErrorDefinition():
            text_attributes(element, errorRef=roots.coded("error", definition.code))
        case EscalationDefinition():
            text_attributes(element, escalationRef=roots.coded("escalation", definition.code))
        case ConditionalDefinition():
            formal(element, "condition", definition.condition, "condition")
        case CompensateDefinition():
            text_attributes(element, activityRef=definition.activity)
        case LinkDefinition():
            text_attributes(element, name=definition.name)
        case _:
            pass
    return element


# --- activities --------------------------------------------------------------------------------------------------


def _activity(element: etree._Element, node: Activity, roots: Roots) -> None:
    match node:
        case WorkTask():
            ray_attribute(element, "topic", node.topic)
            ray_attribute(element, "idempotent", "true" if node.idempotent else "")
            ray_attribute(element, "resultVariable", node.result_variable)
            operand(element, "retries", node.retries)
            operand(element, "timeout", node.timeout)
            for name, value in node.ray_options:
                extension(element, "option", name=name, value=value)
            if node.message is not None:
                text_attributes(element, messageRef=roots.message(node.message))
        case CustomTask():
            ray_attribute(element, "element", node.element)
            for parameter in node.parameters:
                extension(element, "parameter", parameter.source, name=parameter.target)
        case DecisionTask():
            operand(element, "decision", node.decision)
            ray_attribute(element, "binding", node.binding if node.binding != "latest" else "")
            ray_attribute(element, "version", str(node.version) if node.version else "")
            ray_attribute(element, "resultVariable", node.result_variable)
        case ScriptTask():
            script(element, node.script)
            ray_attribute(element, "resultVariable", node.result_variable)
        case UserTask():
            _user_task(element, node)
        case ReceiveTask():
            text_attributes(element, messageRef=roots.message(node.message))
            flag(element, "instantiate", node.instantiate)
        case CallActivity():
            _call(element, node)
        case SubProcess():
            _sub_process(element, node)
        case _:
            pass


def _user_task(element: etree._Element, node: UserTask) -> None:
    operand(element, "assignee", node.assignee)
    operand(element, "candidateUsers", node.candidate_users)
    operand(element, "candidateGroups", node.candidate_groups)
    operand(element, "dueDate", node.due)
    operand(element, "followUpDate", node.follow_up)
    operand(element, "priority", node.priority)
    ray_attribute(element, "formKey", node.form)
    for name in node.required_outputs:
        extension(element, "requiredOutput", name=name)


def _call(element: etree._Element, node: CallActivity) -> None:
    if node.called.language == LITERAL:
        text_attributes(element, calledElement=node.called.text)
    if node.called.language != LITERAL or node.called.text.startswith("=") or "{" in node.called.text:
        extension(element, "operand", node.called, use="called")
    ray_attribute(element, "binding", node.binding if node.binding != "latest" else "")
    ray_attribute(element, "version", str(node.version) if node.version else "")
    ray_attribute(element, "inherit", "" if node.inherit else "false")
    ray_attribute(element, "propagate", "" if node.propagate else "false")
    operand(element, "businessKey", node.business_key)


def _sub_process(element: etree._Element, node: SubProcess) -> None:
    flag(element, "triggeredByEvent", node.kind == "event")
    if node.kind == "adhoc":
        element.set("ordering", node.ordering.capitalize())
        flag(element, "cancelRemainingInstances", node.cancel_remaining, default=True)
        if node.completion is not None:
            formal(element, "completionCondition", node.completion, "completion")


def _loop(element: etree._Element, loop: Loop, roots: Roots) -> None:
    if isinstance(loop, StandardLoop):
        written = bpmn("standardLoopCharacteristics")
        flag(written, "testBefore", loop.test_before)
        if loop.maximum is not None:
            if loop.maximum.language == "feel" and loop.maximum.text.isdecimal():
                written.set("loopMaximum", loop.maximum.text)
            else:
                extension(written, "operand", loop.maximum, use="loopMaximum")
        if loop.condition is not None:
            formal(written, "loopCondition", loop.condition, "loopCondition")
        element.append(written)
        return
    written = bpmn("multiInstanceLoopCharacteristics")
    flag(written, "isSequential", loop.sequential)
    if loop.cardinality is not None:
        formal(written, "loopCardinality", loop.cardinality, "cardinality")
    operand(written, "collection", loop.collection, only_expression=True)
    ray_attribute(written, "itemVariable", loop.item_variable)
    ray_attribute(written, "outputCollection", loop.output_collection)
    operand(written, "outputItem", loop.output_item, only_expression=True)
    if loop.behavior != "all":
        written.set("behavior", loop.behavior.capitalize())
    if loop.behavior in ("none", "one") and loop.events:
        written.set(f"{loop.behavior}BehaviorEventRef", roots.signal_definition(loop.events[0]))
    elif loop.behavior == "complex":
        for condition, event in zip(loop.conditions, loop.events, strict=False):
            _complex_behavior(written, condition, event, roots)
    if loop.completion is not None:
        formal(written, "completionCondition", loop.completion, "completion")
    element.append(written)


def _complex_behavior(written: etree._Element, condition: Expression, event: str, roots: Roots) -> None:
    behavior = etree.SubElement(written, bpmn("complexBehaviorDefinition").tag)
    formal(behavior, "condition", condition, "condition")
    thrown = etree.SubElement(behavior, bpmn("event").tag)
    etree.SubElement(thrown, bpmn("signalEventDefinition").tag).set("signalRef", roots.signal(event))
