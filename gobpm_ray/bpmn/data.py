"""Data of BPMN as variables: what data objects, properties, inputs and outputs are called, and what moves between them.

A data object is the variable of its name. An association is a mapping where it says what it moves: by assignments, by a
transformation, or between two ends that both have a name. One that merely draws an arrow is documentation.
"""

from __future__ import annotations

import re

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.extras import Extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.operands import Operands, variable
from gobpm_ray.model.elements import Mapping

_WORDS = re.compile(r"[^\W\d]\w*")
_DATA = ("dataObject", "dataObjectReference", "dataStoreReference", "property", "dataInput", "dataOutput")
PARTS = ("dataInputAssociation", "dataOutputAssociation", "ioSpecification")


class DataNames:
    """The variable behind each data element of a process, by the element's id; '' where it has no name."""

    def __init__(self, process: etree._Element) -> None:
        self._elements: dict[str, etree._Element] = {}
        for kind in _DATA:
            for element in process.iter(f"{{{xml.MODEL}}}{kind}"):
                self._elements.setdefault(xml.attribute(element, "id"), element)

    def variable(self, reference: str) -> str:
        """The name of the data element's variable: a reference has that of its object, else its own."""
        element = self._elements.get(reference)
        if element is None:
            return ""
        behind = self._elements.get(xml.attribute(element, "dataObjectRef"))
        found = "" if behind is None else _name(behind)
        return found or _name(element)

    def knows(self, reference: str) -> bool:
        return reference in self._elements

    def fed_by(self, activity: etree._Element, data_input: str) -> str:
        """The variable that an association copies into the activity's data input; '' where none does."""
        for association in activity.findall(f"{{{xml.MODEL}}}dataInputAssociation"):
            if data_input in xml.texts(association, "targetRef"):
                return next(filter(None, map(self.variable, xml.texts(association, "sourceRef"))), "")
        return ""

    def feeds(self, activity: etree._Element, data_output: str) -> str:
        """The variable that an association copies the activity's data output into."""
        for association in activity.findall(f"{{{xml.MODEL}}}dataOutputAssociation"):
            if data_output in xml.texts(association, "sourceRef"):
                return next(filter(None, map(self.variable, xml.texts(association, "targetRef"))), "")
        return ""


def _name(element: etree._Element) -> str:
    name = " ".join(xml.attribute(element, "name").split())
    return "" if "`" in name or name == "__targetRef_placeholder" else name


def read(
    element: etree._Element, names: DataNames, operands: Operands, findings: Findings, extras: Extras, owner: str
) -> None:
    """The node's associations as mappings, where no vendor's mapping says otherwise."""
    unread: dict[str, None] = {}
    for kind in ("dataInputAssociation", "dataOutputAssociation"):
        found: list[Mapping] = []
        for association in element.findall(f"{{{xml.MODEL}}}{kind}"):
            moved = _moved(association, names, operands)
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
    if xml.child(element, "ioSpecification") is not None and not (extras.inputs or extras.outputs):
        unread["ioSpecification"] = None
    if unread:
        parts = ", ".join(unread)
        message = f"{parts} of {named(element)}: accepted as documentation, not executed"
        findings.warn("ignored", element, message, owner=owner)


def _moved(association: etree._Element, names: DataNames, operands: Operands) -> list[Mapping]:
    target = next(iter(xml.texts(association, "targetRef")), "")
    into = names.variable(target)
    assignments = association.findall(f"{{{xml.MODEL}}}assignment")
    if assignments:
        return [moved for each in assignments if (moved := _assigned(each, into, names, operands)) is not None]
    transformation = xml.child(association, "transformation")
    if transformation is not None and into and xml.text(transformation):
        return [Mapping(into, operands.formal(transformation))]
    source = next(filter(None, map(names.variable, xml.texts(association, "sourceRef"))), "")
    return [Mapping(into, variable(source))] if source and into else []


def _assigned(assignment: etree._Element, into: str, names: DataNames, operands: Operands) -> Mapping | None:
    source, target = xml.child(assignment, "from"), xml.child(assignment, "to")
    if source is None or not xml.text(source):
        return None
    written = "" if target is None else xml.text(target)
    # Tools write the id of a data input, its name, or nothing that differs from the association's own target.
    name = names.variable(written) or (written if _WORDS.fullmatch(written) and not names.knows(written) else into)
    if not name:
        return None
    text = xml.text(source)
    if names.variable(text):
        return Mapping(name, variable(names.variable(text)))
    return Mapping(name, operands.formal(source))
