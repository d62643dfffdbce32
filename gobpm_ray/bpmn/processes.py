"""One `process` element: its nodes and flows of every nesting level, flat, in document order, without recursion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.activities import SUB_PROCESSES
from gobpm_ray.bpmn.context import NodeContext
from gobpm_ray.bpmn.data_elements import read_data, read_stores
from gobpm_ray.bpmn.declarations import Declarations, unprefixed
from gobpm_ray.bpmn.extensions import RAY, own_operands, read_extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.nodes import NODE_READERS, read_node
from gobpm_ray.bpmn.operands import Operands
from gobpm_ray.bpmn.tables import DOCUMENTATION, EXECUTED, REFUSED
from gobpm_ray.model.elements import (
    BoundaryEvent,
    Choice,
    FlowNode,
    Process,
    SequenceFlow,
)
from gobpm_ray.model.validate import validate

_NEEDS_ITS_NEIGHBOURS = frozenset(
    {
        *("event_gateway_arm", "unknown_default", "empty_process", "several_defaults", "event_start"),
        *("unmatched_link", "missing_handler", "unknown_activity"),
    }
)
"""Faults that may only be the hole which a refused neighbour left; not reported beside the refusal."""


@dataclass(slots=True)
class _Reading:
    process: etree._Element
    findings: Findings
    nodes: dict[str, FlowNode] = field(default_factory=dict)
    flows: dict[str, SequenceFlow] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    """Ids of nodes that were met and refused: what leads to them is no fault of its own."""
    elements: dict[str, etree._Element] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    """node id -> the flow that its `default` attribute names"""

    def claim(self, element: etree._Element, element_id: str) -> bool:
        """Whether the id was still free in this process."""
        first = self.elements.setdefault(element_id, element)
        if first is not element:
            message = f"{named(element)} has the same id as {named(first)}"
            self.findings.error("duplicate_id", element, message)
        return first is element


def read_process(
    element: etree._Element, declarations: Declarations, operands: Operands, findings: Findings
) -> Process:
    """The process as far as it can be read; all that is wrong with it stands in `findings`. `executable` is the
    attribute as written, True where it is missing."""
    reading = _Reading(element, findings)
    context = NodeContext.of(element, declarations, operands, findings)
    read_extras(element, operands, findings)
    for kind, found, scope in _flow_elements(element, reading):
        if kind == "sequenceFlow":
            _read_flow(found, operands, reading)
        else:
            _read_one_node(kind, found, scope, context, reading)
    nodes, flows = _connected(reading)
    process = Process(
        id=xml.attribute(element, "id"),
        name=" ".join(xml.attribute(element, "name").split()),
        executable=xml.flag(element, "isExecutable", default=True),
        nodes=nodes,
        flows=flows,
        line=xml.line(element),
        data=read_data(context, nodes),
        stores=read_stores(context, nodes),
        secrets=tuple(xml.attribute(element, f"{{{RAY}}}secrets").replace(",", " ").split()),
    )
    for problem in validate(process):
        if not (reading.refused and problem.code in _NEEDS_ITS_NEIGHBOURS):
            findings.errors.append(problem)
    findings.errors.sort(key=lambda problem: problem.line)
    return process


def _flow_elements(process: etree._Element, reading: _Reading) -> Iterator[tuple[str, etree._Element, str]]:
    """(kind, element, scope) of nodes and flows, depth first; other children are judged on the way."""
    findings = reading.findings
    levels = [(xml.attribute(process, "id"), iter(process))]
    while levels:
        scope, children = levels[-1]
        child = next(children, None)
        if child is None:
            levels.pop()
            continue
        kind = xml.local(child)
        if not xml.is_bpmn(child):
            findings.warn("unknown_element", child, f"{named(child)} is not BPMN: accepted as documentation")
        elif kind in NODE_READERS:
            yield kind, child, scope
            child_id = xml.attribute(child, "id")
            # Only a sub-process that was read is entered; refused ones say so once, for all that they hold.
            if kind in SUB_PROCESSES and child_id in reading.nodes and reading.elements.get(child_id) is child:
                levels.append((child_id, iter(child)))
        elif kind == "sequenceFlow":
            yield kind, child, scope
        elif kind in REFUSED:
            findings.refuse(child)
            reading.refused.add(xml.attribute(child, "id"))
        elif kind not in EXECUTED and kind not in DOCUMENTATION:
            findings.error("unknown_element", child, f"{named(child)} is no BPMN 2.0 element")
            reading.refused.add(xml.attribute(child, "id"))


def _read_one_node(kind: str, element: etree._Element, scope: str, context: NodeContext, reading: _Reading) -> None:
    node_id = xml.attribute(element, "id")
    if not node_id:
        reading.findings.error("missing_id", element, f"{named(element)} has no id")
        return
    if not reading.claim(element, node_id):
        return
    node = read_node(kind, element, scope, context)
    if node is None:
        reading.refused.add(node_id)
        return
    reading.nodes[node_id] = node
    if default := xml.attribute(element, "default"):
        reading.defaults[node_id] = default


def _read_flow(element: etree._Element, operands: Operands, reading: _Reading) -> None:
    source, target = xml.attribute(element, "sourceRef"), xml.attribute(element, "targetRef")
    flow_id = xml.attribute(element, "id") or _free_id(f"{source}_to_{target}", reading)
    if not reading.claim(element, flow_id):
        return
    reading.flows[flow_id] = SequenceFlow(
        id=flow_id,
        source=source,
        target=target,
        name=" ".join(xml.attribute(element, "name").split()),
        condition=None,
        line=xml.line(element),
    )
    condition = xml.child(element, "conditionExpression")
    own = own_operands(element).get("condition")
    if own is not None:
        reading.flows[flow_id] = replace(reading.flows[flow_id], condition=own)
        return
    if condition is None:
        return
    if not xml.text(condition):
        reading.findings.warn("empty_condition", condition, f"{named(condition, flow_id)} is empty", owner=flow_id)
        return
    reading.flows[flow_id] = replace(reading.flows[flow_id], condition=operands.formal(condition))


def _free_id(wanted: str, reading: _Reading) -> str:
    """An id for a flow that has none, the same on every reading."""
    number, candidate = 1, wanted
    while candidate in reading.elements:
        number += 1
        candidate = f"{wanted}_{number}"
    return candidate


def _connected(reading: _Reading) -> tuple[dict[str, FlowNode], dict[str, SequenceFlow]]:
    """Nodes with their flows, which alone say who is connected: `incoming` and `outgoing` children may be missing."""
    known = reading.nodes.keys() | reading.refused
    nodes: dict[str, FlowNode] = {}
    for node in reading.nodes.values():
        if isinstance(node, BoundaryEvent):
            node = replace(node, attached_to=_existing(node.attached_to, known))
            if node.attached_to in reading.refused:
                reading.refused.add(node.id)
                continue
        nodes[node.id] = node
    flows: dict[str, SequenceFlow] = {}
    incoming: dict[str, list[str]] = defaultdict(list)
    outgoing: dict[str, list[str]] = defaultdict(list)
    for flow in reading.flows.values():
        source, target = _existing(flow.source, known), _existing(flow.target, known)
        if source in reading.refused or target in reading.refused:
            continue
        default = _existing(reading.defaults.get(source, ""), reading.flows.keys())
        flows[flow.id] = replace(flow, source=source, target=target, default=default == flow.id)
        outgoing[source].append(flow.id)
        incoming[target].append(flow.id)
    connected: dict[str, FlowNode] = {}
    for node in nodes.values():
        node = replace(node, incoming=tuple(incoming[node.id]), outgoing=tuple(outgoing[node.id]))
        if default := _existing(reading.defaults.get(node.id, ""), reading.flows.keys()):
            node = _with_default(node, default, reading)
        connected[node.id] = node
    return connected, flows


def _with_default(node: FlowNode, default: str, reading: _Reading) -> FlowNode:
    if isinstance(node, Choice):
        return replace(node, default=default)
    # Only a gateway keeps the name of its default flow; for the others a wrong one must be said here.
    if default not in reading.flows or _existing(reading.flows[default].source, reading.nodes.keys()) != node.id:
        element = reading.elements[node.id]
        message = f"{named(element)} has the default flow '{default}', which does not leave it"
        reading.findings.error("unknown_default", element, message)
    return node


def _existing(reference: str, known: Set[str]) -> str:
    """The id that a reference means: itself, or without its namespace prefix where only that exists."""
    return reference if reference in known or unprefixed(reference) not in known else unprefixed(reference)
