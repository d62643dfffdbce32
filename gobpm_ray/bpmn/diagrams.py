"""A model's layout as BPMN diagram interchange (BPMN 12): a plane, a shape per node, an edge per flow."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from gobpm_ray.bpmn.ids import Ids
from gobpm_ray.bpmn.layout import Box, Point, data_row, lay_out
from gobpm_ray.model.elements import BoundaryEvent, ExclusiveGateway, Process, SubProcess

BPMNDI = "http://www.omg.org/spec/BPMN/20100524/DI"
DC = "http://www.omg.org/spec/DD/20100524/DC"
DI = "http://www.omg.org/spec/DD/20100524/DI"


def draw(
    process: Process, ids: Ids, associations: Mapping[str, str], data: Mapping[str, str] | None = None
) -> etree._Element:
    """The process' diagram; `associations`: compensation boundary -> the association that leads to its handler; `data`:
    references to data objects and data stores, which stand in a row under everything else."""
    layout = lay_out(process)
    diagram = etree.Element(f"{{{BPMNDI}}}BPMNDiagram")
    diagram.set("id", ids.free(f"{process.id}_diagram"))
    plane = etree.SubElement(diagram, f"{{{BPMNDI}}}BPMNPlane")
    plane.set("id", ids.free(f"{process.id}_plane"))
    plane.set("bpmnElement", process.id)
    for node_id, box in layout.boxes.items():
        shape = etree.SubElement(plane, f"{{{BPMNDI}}}BPMNShape")
        shape.set("id", ids.free(f"{node_id}_di"))
        shape.set("bpmnElement", node_id)
        node = process.nodes[node_id]
        if isinstance(node, SubProcess):
            shape.set("isExpanded", "true")
        elif isinstance(node, ExclusiveGateway):
            shape.set("isMarkerVisible", "true")
        _bounds(shape, box)
    for reference, box in data_row(layout, data or {}).items():
        shape = etree.SubElement(plane, f"{{{BPMNDI}}}BPMNShape")
        shape.set("id", ids.free(f"{reference}_di"))
        shape.set("bpmnElement", reference)
        _bounds(shape, box)
    for flow_id, way in layout.routes.items():
        _edge(plane, flow_id, way, ids)
    for boundary_id, association in associations.items():
        boundary = process.nodes[boundary_id]
        if isinstance(boundary, BoundaryEvent) and boundary.handler in layout.boxes and boundary_id in layout.boxes:
            _edge(plane, association, [layout.boxes[boundary_id].bottom, layout.boxes[boundary.handler].left], ids)
    return diagram


def _bounds(shape: etree._Element, box: Box) -> None:
    bounds = etree.SubElement(shape, f"{{{DC}}}Bounds")
    for name, value in (("x", box.x), ("y", box.y), ("width", box.width), ("height", box.height)):
        bounds.set(name, str(value))


def _edge(plane: etree._Element, element_id: str, way: list[Point], ids: Ids) -> None:
    edge = etree.SubElement(plane, f"{{{BPMNDI}}}BPMNEdge")
    edge.set("id", ids.free(f"{element_id}_di"))
    edge.set("bpmnElement", element_id)
    for x, y in way:
        point = etree.SubElement(edge, f"{{{DI}}}waypoint")
        point.set("x", str(x))
        point.set("y", str(y))
