"""A model as BPMN 2.0 XML: standard elements, and this engine's own extensions for what BPMN has no place for.

Reading what was written gives the same model again, lines apart. An expression stands in BPMN's own place when the
reader finds the same there; otherwise it stands, exactly and with its language, in a `ray:operand` beside it. What has
no diagram gets one (`gobpm_ray.bpmn.layout`).
"""

from __future__ import annotations

from collections.abc import Iterable

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.diagrams import draw
from gobpm_ray.bpmn.extensions import RAY
from gobpm_ray.bpmn.ids import Ids
from gobpm_ray.bpmn.written_data import write_data
from gobpm_ray.bpmn.written_nodes import write_node
from gobpm_ray.bpmn.written_parts import Roots, bpmn, formal, ray_attribute, text_attributes
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import BoundaryEvent, Definitions, Process, SequenceFlow, SubProcess

_NAMESPACES = {
    "bpmn": xml.MODEL,
    "bpmndi": "http://www.omg.org/spec/BPMN/20100524/DI",
    "dc": "http://www.omg.org/spec/DD/20100524/DC",
    "di": "http://www.omg.org/spec/DD/20100524/DI",
    "xsi": xml.XSI,
    "xsd": "http://www.w3.org/2001/XMLSchema",
    "ray": RAY,
}
TARGET = "http://gobpm.dev/processes"


def write_bpmn(model: Process | Definitions | Iterable[Process], *, diagram: bool = True) -> bytes:
    """The processes as one BPMN document in UTF-8. Raises `InvalidModel` for what XML cannot hold (control characters).
    `diagram`: with a simple layout, from left to right."""
    if isinstance(model, Process):
        processes: tuple[Process, ...] = (model,)
    else:
        processes = model.processes if isinstance(model, Definitions) else tuple(model)
    try:
        root = _document(processes, diagram)
    except ValueError as broken:
        names = ", ".join(f"'{process.id}'" for process in processes)
        raise InvalidModel(f"process {names}: cannot be written as XML: {broken}") from None
    # Between elements only: texts are leaves, and stay what they are.
    etree.indent(root, space="  ")
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True)


def _document(processes: tuple[Process, ...], diagram: bool) -> etree._Element:
    root = etree.Element(f"{{{xml.MODEL}}}definitions", nsmap=_NAMESPACES)
    root.set("targetNamespace", TARGET)
    root.set("exporter", "gobpm_ray")
    ids = Ids(processes)
    roots = Roots(ids)
    written = [_process(process, ids, roots) for process in processes]
    root.extend([*roots.elements, *(element for element, *_ in written)])
    if diagram:
        for process, (_, associations, data) in zip(processes, written, strict=True):
            root.append(draw(process, ids, associations, data))
    return root


def _process(process: Process, ids: Ids, roots: Roots) -> tuple[etree._Element, dict[str, str], dict[str, str]]:
    """The element, the association of each compensation boundary, and what of its data is drawn."""
    element = bpmn("process", id=process.id)
    text_attributes(element, name=process.name)
    element.set("isExecutable", "true" if process.executable else "false")
    ray_attribute(element, "secrets", " ".join(process.secrets))
    inside: dict[str, etree._Element] = {process.id: element}
    # All first: a model's table may hold a node before the sub-process that it lies in.
    written = {node.id: write_node(node, process, roots) for node in process.nodes.values()}
    inside.update({node.id: written[node.id] for node in process.nodes.values() if isinstance(node, SubProcess)})
    drawn = write_data(process, {process.id: element, **written}, roots, ids)
    for node in process.nodes.values():
        inside.get(node.scope, element).append(written[node.id])
    for flow in process.flows.values():
        source = process.nodes.get(flow.source)
        inside.get(process.id if source is None else source.scope, element).append(_flow(flow))
    associations: dict[str, str] = {}
    for node in process.nodes.values():
        if isinstance(node, BoundaryEvent) and node.handler:
            association = bpmn("association", id=ids.free(f"{node.id}_to_{node.handler}"))
            text_attributes(association, associationDirection="One", sourceRef=node.id, targetRef=node.handler)
            inside.get(node.scope, element).append(association)
            associations[node.id] = xml.attribute(association, "id")
        elif isinstance(node, SubProcess) and node.kind == "adhoc":
            # The schema has it behind everything that lies inside.
            written[node.id].extend(written[node.id].findall(f"{{{xml.MODEL}}}completionCondition"))
    return element, associations, drawn


def _flow(flow: SequenceFlow) -> etree._Element:
    written = bpmn("sequenceFlow", id=flow.id, sourceRef=flow.source, targetRef=flow.target)
    text_attributes(written, name=flow.name)
    if flow.condition is not None:
        formal(written, "conditionExpression", flow.condition, "condition")
    return written
