"""Data of BPMN as variables: what data objects, properties, inputs and outputs are called, and what moves between them.

A data object is the variable of its name, a data store what the engine keeps under its name. An association is a
mapping where it says what it moves: by assignments, by a transformation, or between two ends that both have a name. One
that merely draws an arrow is documentation. What the elements themselves are is `gobpm_ray.bpmn.data_elements`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.declarations import Declarations
from gobpm_ray.bpmn.extras import Extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.operands import Operands, variable
from gobpm_ray.model.elements import Expression, Mapping

_WORDS = re.compile(r"[^\W\d]\w*")
_DATA = ("dataObject", "dataObjectReference", "dataStoreReference", "property", "dataInput", "dataOutput")
PARTS = ("dataInputAssociation", "dataOutputAssociation", "ioSpecification")


class DataNames:
    """The variable behind each data element of a process, by the element's id, or the data store; '' where it has no
    name."""

    def __init__(self, process: etree._Element, declarations: Declarations) -> None:
        self._declarations = declarations
        self._elements: dict[str, etree._Element] = {}
        self._references: defaultdict[str, list[etree._Element]] = defaultdict(list)
        for kind in _DATA:
            for element in process.iter(f"{{{xml.MODEL}}}{kind}"):
                self._elements.setdefault(xml.attribute(element, "id"), element)
                if kind == "dataObjectReference":
                    self._references[xml.attribute(element, "dataObjectRef")].append(element)

    def references_to(self, data_object: str) -> list[etree._Element]:
        """In document order."""
        return self._references.get(data_object, [])

    def variable(self, reference: str) -> str:
        """The name of the data element's variable: a reference has that of its object, else its own."""
        element = self._elements.get(reference)
        if element is None or xml.local(element) == "dataStoreReference":
            return ""
        behind = self._elements.get(xml.attribute(element, "dataObjectRef"))
        found = "" if behind is None else name_of(behind)
        return found or name_of(element)

    def store(self, reference: str) -> str:
        """The name of the data store that a reference to one means: its store's, or without one its own."""
        element = self._elements.get(reference)
        if element is None or xml.local(element) != "dataStoreReference":
            return ""
        wanted = xml.attribute(element, "dataStoreRef")
        behind = self._declarations.data_store(wanted) if wanted else None
        return (store_name(behind) if behind is not None else "") or name_of(element) or wanted

    def knows(self, reference: str) -> bool:
        return reference in self._elements

    def fed_by(self, activity: etree._Element, data_input: str) -> str:
        """The variable that an association copies into the activity's data input; '' where none does."""
        for association in activity.findall(f"{{{xml.MODEL}}}dataInputAssociation"):
            if data_input in xml.texts(association, "targetRef"):
                return next(filter(None, map(self.variable, xml.texts(association, "sourceRef"))), "")
        return ""

    def store_into(self, activity: etree._Element, data_input: str) -> str:
        """The data store that an association copies into the activity's data input."""
        for association in activity.findall(f"{{{xml.MODEL}}}dataInputAssociation"):
            if data_input in xml.texts(association, "targetRef"):
                return next(filter(None, map(self.store, xml.texts(association, "sourceRef"))), "")
        return ""

    def feeds(self, activity: etree._Element, data_output: str) -> str:
        """The variable that an association copies the activity's data output into."""
        for association in activity.findall(f"{{{xml.MODEL}}}dataOutputAssociation"):
            if data_output in xml.texts(association, "sourceRef"):
                return next(filter(None, map(self.variable, xml.texts(association, "targetRef"))), "")
        return ""


def name_of(element: etree._Element) -> str:
    """The element's name as a variable's; '' for none, and for those that tools put in for want of one."""
    name = " ".join(xml.attribute(element, "name").split())
    return "" if "`" in name or name == "__targetRef_placeholder" else name


def store_name(element: etree._Element) -> str:
    """What a data store is called in the engine: by its name, which several files share, else by its id."""
    return name_of(element) or xml.attribute(element, "id")


def read(
    element: etree._Element, names: DataNames, operands: Operands, findings: Findings, extras: Extras, owner: str
) -> None:
    """The node's associations as mappings, where no vendor's mapping says otherwise."""
    unread: dict[str, None] = {}
    for kind in ("dataInputAssociation", "dataOutputAssociation"):
        found: list[Mapping] = []
        for association in element.findall(f"{{{xml.MODEL}}}{kind}"):
            moved = _moved(association, names, operands, out=kind == "dataOutputAssociation")
            found.extend(moved)
            if not moved:
                unread[kind] = None
        if not found:
            continue
        into = extras.inputs if kind == "dataInputAssociation" else extras.outputs
        if into:
            unread[kind] = None
        else:
            into.extend(found)
    specified = xml.child(element, "ioSpecification")
    if specified is not None and not (extras.inputs or extras.outputs or _typed(specified)):
        unread["ioSpecification"] = None
    if unread:
        parts = ", ".join(unread)
        message = f"{parts} of {named(element)}: accepted as documentation, not executed"
        findings.warn("ignored", element, message, owner=owner)


def _typed(specified: etree._Element) -> bool:
    """Its inputs or outputs have types: those are used, whatever moves."""
    return any(xml.attribute(each, "itemSubjectRef") for _, each in xml.bpmn_children(specified))


@dataclass(frozen=True, slots=True)
class _Target:
    name: str
    store: bool = False

    def takes(self, source: Expression, stores: tuple[str, ...] = ()) -> Mapping:
        return Mapping(self.name, source, stores, self.store)


def _moved(association: etree._Element, names: DataNames, operands: Operands, *, out: bool) -> list[Mapping]:
    target = next(iter(xml.texts(association, "targetRef")), "")
    into = _target(target, names, out=out)
    sources = xml.texts(association, "sourceRef")
    # A data store is read where something goes into an activity, and written where something comes out of one; what
    # comes out may read it as well, to be written anew.
    stores = tuple(dict.fromkeys(filter(None, map(names.store, sources))))
    if out and into is not None and into.store and into.name not in stores:
        stores = (*stores, into.name) if xml.child(association, "transformation") is not None else stores
    assignments = association.findall(f"{{{xml.MODEL}}}assignment")
    if assignments:
        found = (_assigned(each, into, stores, names, operands, out=out) for each in assignments)
        return [moved for moved in found if moved is not None]
    transformation = xml.child(association, "transformation")
    if transformation is not None and into is not None and xml.text(transformation):
        return [into.takes(operands.formal(transformation), stores)]
    source = next((name for each in sources if (name := names.variable(each) or names.store(each))), "")
    return [into.takes(variable(source), stores)] if source and into is not None else []


def _target(reference: str, names: DataNames, *, out: bool) -> _Target | None:
    if name := names.variable(reference):
        return _Target(name)
    store = names.store(reference) if out else ""
    return _Target(store, True) if store else None


def _assigned(
    assignment: etree._Element,
    into: _Target | None,
    stores: tuple[str, ...],
    names: DataNames,
    operands: Operands,
    *,
    out: bool,
) -> Mapping | None:
    source, target = xml.child(assignment, "from"), xml.child(assignment, "to")
    if source is None or not xml.text(source):
        return None
    written = "" if target is None else xml.text(target)
    # Tools write the id of a data input, its name, or nothing that differs from the association's own target.
    where = _target(written, names, out=out)
    if where is None:
        where = _Target(written) if _WORDS.fullmatch(written) and not names.knows(written) else into
    if where is None:
        return None
    text = xml.text(source)
    if read := names.store(text):
        return where.takes(variable(read), tuple(dict.fromkeys((*stores, read))))
    if names.variable(text):
        return where.takes(variable(names.variable(text)), stores)
    if where.store:
        # As it is when it is written: a counter is one more than itself.
        stores = tuple(dict.fromkeys((*stores, where.name)))
    return where.takes(operands.formal(source), stores)
