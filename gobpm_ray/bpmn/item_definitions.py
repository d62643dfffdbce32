"""Item definitions: what type an `itemSubjectRef` or `itemRef` means, and what is said of one that is not known.

A type is known by its name in XML Schema, by a JSON schema in the item definition (`ray:schema`), or by one in a file
that is imported and lies beside the document. Every other one is a note for people: accepted, said to be unchecked, and
not checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from lxml import etree

from gobpm_ray import items
from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.extensions import RAY
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.model.data import ItemType, schema_text, type_problem

XSD = "http://www.w3.org/2001/XMLSchema"
_PREFIXES = ("xsd", "xs")


class ItemDefinitions:
    """`schemas`: namespace -> the JSON schema that is imported for it."""

    def __init__(self, schemas: Mapping[str, object]) -> None:
        self._elements: dict[str, etree._Element] = {}
        self._schemas = schemas
        self.imports_used: dict[str, None] = {}

    @property
    def table(self) -> dict[str, etree._Element]:
        """id -> element, filled by who walks the root."""
        return self._elements

    def type_of(self, element: etree._Element, attribute: str, findings: Findings, owner: str) -> ItemType | None:
        """The type that the element's attribute refers to; None where nothing can be checked."""
        reference = xml.attribute(element, attribute)
        several = xml.flag(element, "isCollection")
        nothing = ItemType(collection=True) if several else None
        if not reference:
            return nothing
        definition = self._elements.get(reference, self._elements.get(reference.rpartition(":")[2]))
        if definition is None:
            # Some tools name the type itself where an item definition is meant.
            if simple := _simple(element, reference):
                return ItemType(simple, collection=several) if simple not in items.ANYTHING else nothing
            message = f"{named(element, owner)} refers to the item definition '{reference}', which does not exist"
            findings.warn("unknown_item_definition", element, f"{message}: not checked", owner=owner)
            return nothing
        several = several or xml.flag(definition, "isCollection")
        nothing = ItemType(collection=True) if several else None
        structure = xml.attribute(definition, "structureRef")
        schema, problem = self._schema(definition, structure)
        if problem:
            findings.error("item_type", definition, f"{named(definition)}: {problem}", owner=owner)
            return nothing
        if schema:
            return ItemType(schema=schema, collection=several)
        if not structure:
            return nothing
        simple = _simple(definition, structure)
        if not simple:
            message = f"{named(definition)} has the type '{structure}', which is not known here: not checked"
            findings.warn("type_not_checked", definition, message, owner=owner)
            return nothing
        return ItemType(simple, collection=several) if simple not in items.ANYTHING else nothing

    def _schema(self, definition: etree._Element, structure: str) -> tuple[str, str]:
        """(the JSON schema as text, '' without one; what is wrong with it)"""
        text = next(
            (
                "".join(str(part) for part in found.itertext())
                for space, name, found in xml.extension_elements(definition)
                if space == RAY and name == "schema"
            ),
            "",
        )
        if text:
            try:
                text = schema_text(json.loads(text))
            except (ValueError, RecursionError) as broken:
                return "", f"its JSON schema is not JSON: {broken}"
        else:
            prefix, _, local = structure.rpartition(":")
            space = (definition.nsmap.get(prefix) if prefix else None) or ""
            if space not in self._schemas:
                return "", ""
            whole = self._schemas[space]
            self.imports_used[structure] = None
            parts = whole.get("$defs") if isinstance(whole, dict) else None
            if isinstance(whole, dict) and isinstance(parts, dict) and local in parts:
                whole = {"$defs": parts, "$ref": f"#/$defs/{local}"}
            text = schema_text(whole)
        return text, type_problem(ItemType(schema=text))


def _simple(element: etree._Element, reference: str) -> str:
    """The local name of a simple type of XML Schema that is known; '' for what is none."""
    prefix, _, local = reference.rpartition(":")
    space = element.nsmap.get(prefix) if prefix else None
    if "#" in local:
        # An address as a whole: http://www.w3.org/2001/XMLSchema#int.
        address, _, local = reference.rpartition("#")
        space = address
    is_schema = space == XSD or (space is None and prefix in _PREFIXES)
    return local if is_schema and items.known(local) else ""
