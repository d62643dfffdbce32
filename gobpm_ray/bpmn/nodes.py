"""Flow nodes: one reader per element that executes, in one table. Each gives a node, or None and says why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.camunda import NAMESPACES as CAMUNDA_LIKE
from gobpm_ray.bpmn.declarations import Declarations, Side
from gobpm_ray.bpmn.events import read_definitions
from gobpm_ray.bpmn.extensions import read_extras
from gobpm_ray.bpmn.extras import Extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.operands import Operands
from gobpm_ray.bpmn.tables import DOCUMENTATION, EXECUTED, REFUSED, WARNED
from gobpm_ray.model.elements import (
    AbstractTask,
    BoundaryEvent,
    CatchEvent,
    EndEvent,
    EventBasedGateway,
    EventDefinition,
    ExclusiveGateway,
    FlowNode,
    Mapping,
    ParallelGateway,
    ReceiveTask,
    ScriptTask,
    StartEvent,
    SubProcess,
    ThrowEvent,
    UserTask,
    WorkTask,
)


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What every node's reader needs to know."""

    process: etree._Element
    declarations: Declarations
    operands: Operands
    findings: Findings


class _Base(TypedDict):
    id: str
    name: str
    scope: str
    line: int
    inputs: tuple[Mapping, ...]
    outputs: tuple[Mapping, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """One element being read."""

    element: etree._Element
    scope: str
    extras: Extras
    context: NodeContext

    @property
    def base(self) -> _Base:
        return _Base(
            id=xml.attribute(self.element, "id"),
            name=" ".join(xml.attribute(self.element, "name").split()),
            scope=self.scope,
            line=xml.line(self.element),
            inputs=tuple(self.extras.inputs),
            outputs=tuple(self.extras.outputs),
        )

    @property
    def at_process_level(self) -> bool:
        return self.scope == xml.attribute(self.context.process, "id")

    def definitions(self, side: Side) -> tuple[EventDefinition, ...] | None:
        known = self.context
        return read_definitions(self.element, side, known.process, known.declarations, known.operands, known.findings)


def read_node(kind: str, element: etree._Element, scope: str, context: NodeContext) -> FlowNode | None:
    """The node, or None if it is refused; `kind` is a key of `NODE_READERS`."""
    node_id = xml.attribute(element, "id")
    refused = not _parts_are_known(kind, element, node_id, context.findings)
    if xml.flag(element, "isForCompensation"):
        context.findings.refuse(element, what=f"isForCompensation of {named(element)}")
        refused = True
    for quantity in ("startQuantity", "completionQuantity"):
        if xml.attribute(element, quantity) not in ("", "1"):
            context.findings.warn("ignored", element, f"{quantity} of {named(element)} is not used: one token each")
    extras = read_extras(element, context.operands, context.findings)
    node = NODE_READERS[kind](_Reading(element, scope, extras, context))
    if extras.topic and node is not None and not isinstance(node, WorkTask):
        message = f"the topic '{extras.topic}' of {named(element)} is not used: only service and send tasks have one"
        context.findings.warn("ignored", element, message)
    return None if refused else node


def _parts_are_known(kind: str, element: etree._Element, node_id: str, findings: Findings) -> bool:
    """Whether no child of the node is refused; event definitions are judged by their own reader."""
    if kind == "subProcess":
        refused = [child for name, child in xml.bpmn_children(element) if name.endswith("LoopCharacteristics")]
    else:
        refused = [
            child
            for name, child in xml.bpmn_children(element)
            if (name in REFUSED and not name.endswith("EventDefinition")) or name in NODE_READERS
        ]
        for name, child in xml.bpmn_children(element):
            if name not in EXECUTED and name not in DOCUMENTATION and name not in REFUSED:
                message = f"{named(child, node_id)} is no BPMN 2.0 element"
                findings.error("unknown_element", child, message, owner=node_id)
    for child in refused:
        findings.refuse(child, owner=node_id)
    warned = dict.fromkeys(name for name, _ in xml.bpmn_children(element) if name in WARNED)
    if warned:
        parts = ", ".join(warned)
        findings.warn("ignored", element, f"{parts} of {named(element)}: accepted as documentation, not executed")
    return not refused


# --- events ------------------------------------------------------------------------------------------------------


def _start(reading: _Reading) -> FlowNode | None:
    definitions = reading.definitions("start" if reading.at_process_level else "catch")
    return None if definitions is None else StartEvent(**reading.base, definitions=definitions)


def _end(reading: _Reading) -> FlowNode | None:
    definitions = reading.definitions("throw")
    return None if definitions is None else EndEvent(**reading.base, definitions=definitions)


def _catch(reading: _Reading) -> FlowNode | None:
    definitions = reading.definitions("catch")
    return None if definitions is None else CatchEvent(**reading.base, definitions=definitions)


def _throw(reading: _Reading) -> FlowNode | None:
    definitions = reading.definitions("throw")
    return None if definitions is None else ThrowEvent(**reading.base, definitions=definitions)


def _boundary(reading: _Reading) -> FlowNode | None:
    definitions = reading.definitions("catch")
    if definitions is None:
        return None
    return BoundaryEvent(
        **reading.base,
        definitions=definitions,
        attached_to=xml.attribute(reading.element, "attachedToRef"),
        interrupting=xml.flag(reading.element, "cancelActivity", default=True),
    )


# --- activities --------------------------------------------------------------------------------------------------


def _task(reading: _Reading) -> FlowNode:
    return AbstractTask(**reading.base, type="task")


def _manual_task(reading: _Reading) -> FlowNode:
    return AbstractTask(**reading.base, type="manualTask")


def _service_task(reading: _Reading) -> FlowNode:
    return _work(reading)


def _work(reading: _Reading) -> WorkTask:
    extras = reading.extras
    return WorkTask(
        **reading.base,
        type="serviceTask",
        topic=extras.topic,
        idempotent=extras.idempotent,
        result_variable=extras.result_variable,
    )


def _send_task(reading: _Reading) -> FlowNode:
    extras, context = reading.extras, reading.context
    message = None
    if xml.attribute(reading.element, "messageRef"):
        owner = xml.attribute(reading.element, "id")
        message = context.declarations.message(reading.element, "throw", context.process, context.findings, owner)
    return WorkTask(
        **reading.base,
        type="sendTask",
        topic=extras.topic,
        idempotent=extras.idempotent,
        message=message,
        result_variable=extras.result_variable,
    )


def _receive_task(reading: _Reading) -> FlowNode:
    context, element = reading.context, reading.element
    instantiate = xml.flag(element, "instantiate")
    side: Side = "start" if instantiate and reading.at_process_level else "catch"
    owner = xml.attribute(element, "id")
    message = context.declarations.message(element, side, context.process, context.findings, owner)
    return ReceiveTask(**reading.base, message=message, instantiate=instantiate)


def _user_task(reading: _Reading) -> FlowNode:
    extras = reading.extras
    return UserTask(
        **reading.base,
        assignee=extras.assignee,
        candidate_users=extras.candidate_users,
        candidate_groups=extras.candidate_groups,
        due=extras.due,
        follow_up=extras.follow_up,
        priority=extras.priority,
        form=extras.form,
        required_outputs=extras.required_outputs,
    )


def _script_task(reading: _Reading) -> FlowNode | None:
    element, extras, findings = reading.element, reading.extras, reading.context.findings
    if any(xml.attribute(element, f"{{{space}}}resource") for space in CAMUNDA_LIKE):
        findings.refuse(element, what=f"a script in another file, for {named(element)},")
        return None
    script = extras.script
    written = xml.child(element, "script")
    if script is None and written is not None and xml.text(written):
        script = reading.context.operands.expression(xml.text(written), xml.attribute(element, "scriptFormat"))
    if script is not None:
        return ScriptTask(**reading.base, script=script, result_variable=extras.result_variable)
    if extras.topic:
        return _work(reading)
    findings.error("missing_script", element, f"{named(element)} has no script")
    return None


def _sub_process(reading: _Reading) -> FlowNode | None:
    if xml.flag(reading.element, "triggeredByEvent"):
        reading.context.findings.refuse(reading.element, what=f"event sub-process: {named(reading.element)}")
        return None
    return SubProcess(**reading.base)


# --- gateways ----------------------------------------------------------------------------------------------------


def _exclusive(reading: _Reading) -> FlowNode:
    return ExclusiveGateway(**reading.base, default=xml.attribute(reading.element, "default"))


def _parallel(reading: _Reading) -> FlowNode:
    return ParallelGateway(**reading.base)


def _event_based(reading: _Reading) -> FlowNode | None:
    element = reading.element
    for wrong, what in (
        (xml.flag(element, "instantiate"), "instantiate"),
        (xml.attribute(element, "eventGatewayType") == "Parallel", "eventGatewayType Parallel"),
    ):
        if wrong:
            reading.context.findings.refuse(element, what=f"{what} of {named(element)}")
            return None
    return EventBasedGateway(**reading.base)


NODE_READERS: dict[str, Callable[[_Reading], FlowNode | None]] = {
    "startEvent": _start,
    "endEvent": _end,
    "intermediateCatchEvent": _catch,
    "intermediateThrowEvent": _throw,
    "boundaryEvent": _boundary,
    "task": _task,
    "manualTask": _manual_task,
    "serviceTask": _service_task,
    "sendTask": _send_task,
    "receiveTask": _receive_task,
    "userTask": _user_task,
    "scriptTask": _script_task,
    "subProcess": _sub_process,
    "exclusiveGateway": _exclusive,
    "parallelGateway": _parallel,
    "eventBasedGateway": _event_based,
}
