"""Flow nodes: one reader per element that executes, in one table. Each gives a node, or None and says why not."""

from __future__ import annotations

from collections.abc import Callable

from lxml import etree

from gobpm_ray.bpmn import data, xml
from gobpm_ray.bpmn.activities import ACTIVITY_READERS, SUB_PROCESSES
from gobpm_ray.bpmn.context import NodeContext
from gobpm_ray.bpmn.extensions import read_extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.loops import read_loop
from gobpm_ray.bpmn.reading import Reading
from gobpm_ray.bpmn.tables import DOCUMENTATION, EXECUTED, REFUSED, WARNED
from gobpm_ray.model.elements import (
    BoundaryEvent,
    CatchEvent,
    CompensateDefinition,
    ComplexGateway,
    EndEvent,
    EventBasedGateway,
    ExclusiveGateway,
    FlowNode,
    InclusiveGateway,
    ParallelGateway,
    StartEvent,
    ThrowEvent,
    WorkTask,
)


def read_node(kind: str, element: etree._Element, scope: str, context: NodeContext) -> FlowNode | None:
    """The node, or None if it is refused; `kind` is a key of `NODE_READERS`."""
    node_id = xml.attribute(element, "id")
    refused = not _parts_are_known(kind, element, node_id, context.findings)
    for quantity in ("startQuantity", "completionQuantity"):
        if xml.attribute(element, quantity) not in ("", "1"):
            context.findings.warn("ignored", element, f"{quantity} of {named(element)} is not used: one token each")
    extras = read_extras(element, context.operands, context.findings)
    data.read(element, context.data, context.operands, context.findings, extras, node_id)
    loop, sound = read_loop(element, context) if kind in ACTIVITY_READERS else (None, True)
    node = NODE_READERS[kind](Reading(element, scope, extras, context, loop))
    if extras.topic and node is not None and not isinstance(node, WorkTask):
        message = f"the topic '{extras.topic}' of {named(element)} is not used: only service and send tasks have one"
        context.findings.warn("ignored", element, message)
    return node if sound and not refused else None


def _parts_are_known(kind: str, element: etree._Element, node_id: str, findings: Findings) -> bool:
    """Whether no child of the node is refused; event definitions are judged by their own reader."""
    refused: list[etree._Element] = []
    if kind not in SUB_PROCESSES:
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


def _start(reading: Reading) -> FlowNode | None:
    parallel = xml.flag(reading.element, "parallelMultiple")
    # Where all of its events must come, the instance waits for the rest of them, by their keys.
    definitions = reading.definitions("start" if reading.at_process_level and not parallel else "catch")
    if definitions is None:
        return None
    return StartEvent(
        **reading.base,
        definitions=definitions,
        interrupting=xml.flag(reading.element, "isInterrupting", default=True),
        parallel_multiple=parallel,
    )


def _end(reading: Reading) -> FlowNode | None:
    definitions = reading.definitions("throw")
    return None if definitions is None else EndEvent(**reading.base, definitions=definitions)


def _catch(reading: Reading) -> FlowNode | None:
    definitions = reading.definitions("catch")
    if definitions is None:
        return None
    parallel = xml.flag(reading.element, "parallelMultiple")
    return CatchEvent(**reading.base, definitions=definitions, parallel_multiple=parallel)


def _throw(reading: Reading) -> FlowNode | None:
    definitions = reading.definitions("throw")
    return None if definitions is None else ThrowEvent(**reading.base, definitions=definitions)


def _boundary(reading: Reading) -> FlowNode | None:
    definitions = reading.definitions("catch")
    if definitions is None:
        return None
    handler = ""
    if any(isinstance(definition, CompensateDefinition) for definition in definitions):
        found = _handlers(reading)
        if len(found) > 1:
            message = f"{named(reading.element)} has several compensation handlers: {', '.join(found)}"
            reading.context.findings.error("several_handlers", reading.element, message)
        handler = next(iter(found), "")
    return BoundaryEvent(
        **reading.base,
        definitions=definitions,
        attached_to=xml.attribute(reading.element, "attachedToRef"),
        interrupting=xml.flag(reading.element, "cancelActivity", default=True),
        parallel_multiple=xml.flag(reading.element, "parallelMultiple"),
        handler=handler,
    )


def _handlers(reading: Reading) -> list[str]:
    """What an association joins to the event and is an activity: notes are joined by associations too."""
    ends = reading.context.associations.get(reading.id, [])
    activities = reading.context.activities
    return [end for end in dict.fromkeys(ends) if end in activities]


# --- gateways ----------------------------------------------------------------------------------------------------


def _exclusive(reading: Reading) -> FlowNode:
    return ExclusiveGateway(**reading.base, default=xml.attribute(reading.element, "default"))


def _inclusive(reading: Reading) -> FlowNode:
    return InclusiveGateway(**reading.base, default=xml.attribute(reading.element, "default"))


def _complex(reading: Reading) -> FlowNode:
    return ComplexGateway(
        **reading.base,
        default=xml.attribute(reading.element, "default"),
        activation=reading.formal("activationCondition", "activation"),
    )


def _parallel(reading: Reading) -> FlowNode:
    return ParallelGateway(**reading.base)


def _event_based(reading: Reading) -> FlowNode:
    return EventBasedGateway(
        **reading.base,
        parallel=xml.attribute(reading.element, "eventGatewayType").lower() == "parallel",
        instantiate=xml.flag(reading.element, "instantiate"),
    )


NODE_READERS: dict[str, Callable[[Reading], FlowNode | None]] = {
    "startEvent": _start,
    "endEvent": _end,
    "intermediateCatchEvent": _catch,
    "intermediateThrowEvent": _throw,
    "boundaryEvent": _boundary,
    **ACTIVITY_READERS,
    "exclusiveGateway": _exclusive,
    "inclusiveGateway": _inclusive,
    "parallelGateway": _parallel,
    "complexGateway": _complex,
    "eventBasedGateway": _event_based,
}
