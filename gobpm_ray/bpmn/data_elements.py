"""Data objects, properties, typed inputs and outputs, and data stores of one process, as the model keeps them.

What moves between them stands in `gobpm_ray.bpmn.data`. An element without a name is nobody's variable and stays
documentation, as does a data store that is only drawn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.context import NodeContext
from gobpm_ray.bpmn.data import name_of
from gobpm_ray.bpmn.extensions import RAY
from gobpm_ray.bpmn.findings import named
from gobpm_ray.model.data import DataElement, DataKind, DataStore, ItemType, in_order
from gobpm_ray.model.elements import FlowNode

_SCOPES = ("process", "subProcess", "transaction", "adHocSubProcess")
_INNER = ("ioSpecification",)
_VENDORS = ("http://activiti.org/bpmn", "http://flowable.org/bpmn")


def read_data(context: NodeContext, nodes: Mapping[str, FlowNode]) -> tuple[DataElement, ...]:
    """Everything that has a name or a type; `nodes` are those that were read."""
    process = context.process
    process_id = xml.attribute(process, "id")
    found: dict[str, DataElement] = {}
    for element in process.iter():
        if xml.is_bpmn(element):
            for one in _elements(element, context):
                found.setdefault(one.id, one)
    return in_order(found.values(), (process_id, *nodes))


def _elements(element: etree._Element, context: NodeContext) -> Iterator[DataElement]:
    match xml.local(element):
        case "dataObject":
            yield from _data_object(element, context)
        case "property":
            if name := name_of(element):
                yield _element(element, name, "property", _owner(element), context)
        case "dataInput":
            yield from _typed(element, "dataInput", context)
        case "dataOutput":
            yield from _typed(element, "dataOutput", context)


def _data_object(element: etree._Element, context: NodeContext) -> Iterator[DataElement]:
    """The variable of its name; of one without a name, those of its references' names: tools name only these."""
    if name := name_of(element):
        yield _element(element, name, "dataObject", _scope(element), context)
        return
    names: dict[str, etree._Element] = {}
    for reference in context.data.references_to(xml.attribute(element, "id")):
        if name := name_of(reference):
            names.setdefault(name, reference)
    for name, reference in names.items():
        item = context.declarations.type_of(element, "itemSubjectRef", context.findings)
        where, line = _scope(reference), xml.line(reference)
        initial = _initial(element, item, context)
        yield DataElement(_id(reference, name, where), name, where, "dataObject", item, initial, line)


def _typed(element: etree._Element, kind: DataKind, context: NodeContext) -> Iterator[DataElement]:
    item = context.declarations.type_of(element, "itemSubjectRef", context.findings)
    if item is None:
        return
    name, where = name_of(element), _owner(element)
    unchecked = ""
    if kind == "dataOutput" and where == xml.attribute(context.process, "id"):
        unchecked = "what a process gives is its variables"
    elif not name and not (item.schema and not item.collection):
        unchecked = "it has no name"
    if unchecked:
        context.findings.warn("type_not_checked", element, f"type of {named(element)}: {unchecked}: not checked")
        return
    yield DataElement(_id(element, name, where), name, where, kind, item, line=xml.line(element))


def _element(element: etree._Element, name: str, kind: DataKind, scope: str, context: NodeContext) -> DataElement:
    item = context.declarations.type_of(element, "itemSubjectRef", context.findings)
    initial = _initial(element, item, context)
    return DataElement(_id(element, name, scope), name, scope, kind, item, initial, xml.line(element))


def _id(element: etree._Element, name: str, scope: str) -> str:
    """Its own, or the same made one on every reading."""
    return xml.attribute(element, "id") or f"{scope}_{xml.local(element)}_{name}".replace(" ", "_")


def _owner(element: etree._Element) -> str:
    """The id of what has the property, input or output."""
    parent = element.getparent()
    if parent is not None and xml.local(parent) in _INNER:
        parent = parent.getparent()
    return "" if parent is None else xml.attribute(parent, "id")


def _scope(element: etree._Element) -> str:
    """The id of the process or sub-process that it lies in."""
    parent = element.getparent()
    while parent is not None and xml.local(parent) not in _SCOPES:
        parent = parent.getparent()
    return "" if parent is None else xml.attribute(parent, "id")


def _initial(element: etree._Element, item: ItemType | None, context: NodeContext) -> str:
    """The first value as JSON: this engine's attribute, or the extension in which Activiti and Flowable have it."""
    written = xml.attribute(element, f"{{{RAY}}}initial")
    if not written:
        for space, name, found in xml.extension_elements(element):
            if space in _VENDORS and name == "value":
                return _as_json(xml.text(found), item)
        return ""
    try:
        return json.dumps(json.loads(written), ensure_ascii=False)
    except (ValueError, RecursionError) as broken:
        message = f"{named(element)} has an initial value that is not JSON: {broken}"
        context.findings.error("initial_value", element, message)
        return ""


def _as_json(text: str, item: ItemType | None) -> str:
    """The text, unless its type says that it is a number or a truth value."""
    if item is not None and item.simple and not item.collection:
        from gobpm_ray.items import compiled

        try:
            value = json.loads(text)
        except ValueError:
            return json.dumps(text, ensure_ascii=False)
        if value is not None and not compiled(item.simple, "", False)(value):
            return json.dumps(value, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False)


# --- data stores -------------------------------------------------------------------------------------------------


def read_stores(context: NodeContext, nodes: Mapping[str, FlowNode]) -> tuple[DataStore, ...]:
    """The data stores that the process refers to, by name; of those that are only drawn, the ones that data moves to or
    from."""
    used = {name for node in nodes.values() for mapping in (*node.inputs, *node.outputs) for name in mapping.stores}
    used |= {mapping.target for node in nodes.values() for mapping in node.outputs if mapping.to_store}
    found: dict[str, DataStore] = {}
    for reference in context.process.iter(f"{{{xml.MODEL}}}dataStoreReference"):
        wanted = xml.attribute(reference, "dataStoreRef")
        name = context.data.store(xml.attribute(reference, "id"))
        if not name or (not wanted and name not in used):
            continue
        declared = context.declarations.data_store(wanted) if wanted else None
        if wanted and declared is None:
            message = f"{named(reference)} refers to the data store '{wanted}', which does not exist: '{name}' is used"
            context.findings.warn("unknown_data_store", reference, message)
        store = _store(name, reference if declared is None else declared, context)
        if name not in found or (declared is not None and found[name].item is None and not found[name].capacity):
            found[name] = store
    return tuple(found.values())


def _store(name: str, element: etree._Element, context: NodeContext) -> DataStore:
    capacity = xml.attribute(element, "capacity")
    limited = capacity.isdecimal() and not xml.flag(element, "isUnlimited")
    item = context.declarations.type_of(element, "itemSubjectRef", context.findings)
    return DataStore(name, int(capacity) if limited else 0, item, xml.line(element))
