"""Data as XML elements: the counterpart of `gobpm_ray.bpmn.data_elements`. Each stands in its scope, before what the
schema wants behind it; data objects of the process and data stores have a reference each, which is what is drawn."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.ids import Ids
from gobpm_ray.bpmn.written_parts import Roots, bpmn, ray_attribute, text_attributes
from gobpm_ray.model.data import DataElement
from gobpm_ray.model.elements import Process

_AHEAD = frozenset(
    {
        *("documentation", "extensionElements", "auditing", "monitoring", "incoming", "outgoing", "ioSpecification"),
        *("property", "dataInput", "dataOutput", "dataObject", "dataObjectReference", "dataStoreReference"),
    }
)
"""What stands before everything else in its element."""


def write_data(process: Process, places: Mapping[str, etree._Element], roots: Roots, ids: Ids) -> dict[str, str]:
    """The elements are in their places (id of process or node -> element); what of them is drawn: id -> its kind."""
    drawn: dict[str, str] = {}
    for element in process.data:
        place = places.get(element.scope)
        if place is None:
            continue
        if element.kind in ("dataInput", "dataOutput"):
            _specify(place, element, roots)
            continue
        written = bpmn(element.kind, id=element.id)
        text_attributes(written, name=element.name)
        if element.item is not None:
            written.set("itemSubjectRef", roots.item(element.item))
        ray_attribute(written, "initial", element.initial)
        _insert(place, written)
        if element.kind == "dataObject" and element.scope == process.id:
            reference = bpmn("dataObjectReference", id=ids.free(f"{element.id}_reference"))
            text_attributes(reference, name=element.name, dataObjectRef=element.id)
            _insert(place, reference)
            drawn[xml.attribute(reference, "id")] = "dataObject"
    for store in process.stores:
        store_id = roots.store(store)
        reference = bpmn("dataStoreReference", id=ids.free(f"{store_id}_reference"))
        text_attributes(reference, name=store.name, dataStoreRef=store_id)
        _insert(places[process.id], reference)
        drawn[xml.attribute(reference, "id")] = "dataStore"
    return drawn


def _specify(place: etree._Element, element: DataElement, roots: Roots) -> None:
    """A typed input or output. Events have theirs without a specification around them."""
    written = bpmn(element.kind, id=element.id)
    text_attributes(written, name=element.name)
    if element.item is not None:
        written.set("itemSubjectRef", roots.item(element.item))
    if xml.local(place).endswith("Event"):
        _insert(place, written)
        return
    specification = xml.child(place, "ioSpecification")
    if specification is None:
        specification = bpmn("ioSpecification")
        _insert(place, specification)
        specification.append(bpmn("inputSet"))
        specification.append(bpmn("outputSet"))
    specification.insert(len(specification) - 2, written)


def _insert(place: etree._Element, written: etree._Element) -> None:
    index = 0
    for position, child in enumerate(place, 1):
        if xml.is_bpmn(child) and xml.local(child) in _AHEAD:
            index = position
    place.insert(index, written)
