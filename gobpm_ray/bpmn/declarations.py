"""What stands beside the processes and is referred to by id: messages, signals, errors, event definitions, correlation.

Correlation by BPMN 8.4.2: a message with one retrieval expression, whose property is alone in its correlation key and
bound by the receiving process' subscription, has that key. With several properties, in the message or in its
correlation key, each is a key of its own that routes, and the others must not contradict. A vendor's key on the message
comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.extensions import read_extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.item_definitions import ItemDefinitions
from gobpm_ray.bpmn.operands import Operands, is_marked
from gobpm_ray.bpmn.tables import EVENT_DEFINITIONS, GLOBAL_TASKS
from gobpm_ray.model.data import ItemType
from gobpm_ray.model.elements import (
    CorrelationProperty,
    ErrorDefinition,
    EscalationDefinition,
    Expression,
    MessageDefinition,
    SignalDefinition,
)

Side = Literal["catch", "throw", "start"]
"""Where a message is named: a process' start correlates by name alone, for nothing exists yet to take a key from."""


class Declarations:
    """The document's root elements by id; what it does not declare itself is looked up in the files it imports."""

    def __init__(
        self,
        definitions: etree._Element,
        operands: Operands,
        imported: Sequence[etree._Element] = (),
        schemas: Mapping[str, object] | None = None,
    ) -> None:
        self._operands = operands
        self._items = ItemDefinitions(schemas or {})
        self._stores: dict[str, etree._Element] = {}
        self.imports_used: dict[str, None] = {}
        """References that only an imported file could answer."""
        self._messages: dict[str, etree._Element] = {}
        self._signals: dict[str, etree._Element] = {}
        self._errors: dict[str, etree._Element] = {}
        self._escalations: dict[str, etree._Element] = {}
        self._events: dict[str, etree._Element] = {}
        self._global_tasks: dict[str, etree._Element] = {}
        self.not_callable: dict[str, str] = {}
        """Global tasks that were read and cannot be executed -> why."""
        self._retrievals: dict[str, list[tuple[str, etree._Element]]] = {}
        """message id -> (property id, retrieval expression)"""
        self._key_properties: dict[str, tuple[str, ...]] = {}
        tables = {
            "message": self._messages,
            "signal": self._signals,
            "error": self._errors,
            "escalation": self._escalations,
            "itemDefinition": self._items.table,
            "dataStore": self._stores,
            **dict.fromkeys(EVENT_DEFINITIONS, self._events),
            **dict.fromkeys(GLOBAL_TASKS, self._global_tasks),
        }
        for root in (definitions, *imported):
            for kind, element in xml.bpmn_children(root):
                table = tables.get(kind)
                element_id = xml.attribute(element, "id")
                if table is not None and element_id not in table:
                    table[element_id] = element
                elif kind == "correlationProperty":
                    for retrieval in element.findall(f"{{{xml.MODEL}}}correlationPropertyRetrievalExpression"):
                        message = unprefixed(xml.attribute(retrieval, "messageRef"))
                        self._retrievals.setdefault(message, []).append((element_id, retrieval))
        # The elements are kept by the tables, so their identity stays theirs.
        self._imported = tuple(imported)
        self._foreign = {
            id(element) for table in tables.values() for element in table.values() if element.getparent() in imported
        }
        for key in definitions.iter(f"{{{xml.MODEL}}}correlationKey"):
            references = tuple(unprefixed(ref) for ref in xml.texts(key, "correlationPropertyRef"))
            self._key_properties[xml.attribute(key, "id")] = references

    def data_store(self, reference: str) -> etree._Element | None:
        """The data store at the root that a `dataStoreRef` names."""
        return self._lookup(self._stores, reference)

    def type_of(self, element: etree._Element, attribute: str, findings: Findings, owner: str = "") -> ItemType | None:
        """The type that the attribute refers to; None where nothing can be checked, which is said."""
        # What is taken from another file is not in this document.
        self._lookup(self._items.table, xml.attribute(element, attribute))
        found = self._items.type_of(element, attribute, findings, owner or xml.attribute(element, "id"))
        self.imports_used.update(self._items.imports_used)
        return found

    def event_definition(self, reference: str) -> etree._Element | None:
        """The event definition at the root that an `eventDefinitionRef` names."""
        return self._lookup(self._events, reference)

    def global_task(self, reference: str) -> etree._Element | None:
        """The global task of this id."""
        return self._lookup(self._global_tasks, reference) if reference in self._global_tasks else None

    def signal(self, element: etree._Element, findings: Findings, owner: str) -> SignalDefinition:
        """The signal that the element's `signalRef` names; without one, a definition without a name."""
        reference = xml.attribute(element, "signalRef")
        if not reference:
            return SignalDefinition()
        signal = self._lookup(self._signals, reference)
        if signal is None:
            _unknown(element, "signal", reference, findings, owner)
            return SignalDefinition(name=reference)
        return SignalDefinition(name=xml.attribute(signal, "name") or xml.attribute(signal, "id"))

    def error(self, element: etree._Element, findings: Findings, owner: str) -> ErrorDefinition | None:
        """The error that the element's `errorRef` names, by its code; without a reference every error."""
        code = self._code(element, "error", self._errors, findings, owner)
        return None if code is None else ErrorDefinition(code=code)

    def escalation(self, element: etree._Element, findings: Findings, owner: str) -> EscalationDefinition | None:
        """The escalation that the element's `escalationRef` names, by its code; without a reference every one."""
        code = self._code(element, "escalation", self._escalations, findings, owner)
        return None if code is None else EscalationDefinition(code=code)

    def _code(
        self, element: etree._Element, kind: str, table: dict[str, etree._Element], findings: Findings, owner: str
    ) -> str | None:
        reference = xml.attribute(element, f"{kind}Ref")
        if not reference:
            return ""
        declared = self._lookup(table, reference)
        if declared is None:
            _unknown(element, kind, reference, findings, owner)
            return reference
        given = (xml.attribute(declared, name) for name in (f"{kind}Code", "name", "id"))
        code = next(filter(None, given), "")
        # A computed code cannot be matched before it is thrown: the definition is refused.
        return None if is_marked(code) else code

    def message(
        self, element: etree._Element, side: Side, process: etree._Element, findings: Findings, owner: str
    ) -> MessageDefinition:
        """The message that the element's `messageRef` names, with its key on this side of the exchange."""
        reference = xml.attribute(element, "messageRef")
        if not reference:
            return MessageDefinition()
        message = self._lookup(self._messages, reference)
        if message is None:
            _unknown(element, "message", reference, findings, owner)
            return MessageDefinition(name=reference)
        name = xml.attribute(message, "name") or xml.attribute(message, "id")
        extras = read_extras(message, self._operands, findings)
        key = extras.operands.get("correlationKey") or extras.key
        several = tuple(
            CorrelationProperty(each, uses.get("path"), uses.get("data")) for each, uses in extras.properties.items()
        )
        several = several or (self._several(message, process) if key is None else ())
        item = None if side == "throw" else self.type_of(message, "itemRef", findings, owner)
        if several:
            return MessageDefinition(name=name, properties=several, item=item)
        if side == "start":
            return MessageDefinition(name=name, item=item)
        if key is None:
            key = self._correlated(message, side, process, findings)
        return MessageDefinition(name=name, key=key, item=item)

    def _correlated(
        self, message: etree._Element, side: Side, process: etree._Element, findings: Findings
    ) -> Expression | None:
        retrievals = self._retrievals.get(xml.attribute(message, "id"), [])
        if not retrievals:
            return None
        property_id, retrieval = retrievals[0]
        path = xml.child(retrieval, "messagePath")
        if side == "throw" and path is not None:
            return self._operands.formal(path)
        binding = next(_bindings(process, property_id), None)
        if binding is None:
            findings.refuse(message, what=f"correlation of {named(message)} without a subscription of the process")
            return None
        subscription, data_path = binding
        if data_path is None:
            findings.refuse(subscription, what=f"{named(subscription)} without a data path")
            return None
        return self._operands.formal(data_path)

    def _several(self, message: etree._Element, process: etree._Element) -> tuple[CorrelationProperty, ...]:
        """The properties of a message that has more than one, or one that the instance learns from messages alone."""
        retrievals = self._retrievals.get(xml.attribute(message, "id"), [])
        found: list[CorrelationProperty] = []
        for property_id, retrieval in retrievals:
            path = xml.child(retrieval, "messagePath")
            _, data = next(_bindings(process, property_id), (None, None))
            read = None if path is None else self._operands.formal(path)
            found.append(CorrelationProperty(property_id, read, None if data is None else self._operands.formal(data)))
        keyed = {each for properties in self._key_properties.values() if len(properties) > 1 for each in properties}
        return tuple(found) if len(found) > 1 or any(each.name in keyed for each in found) else ()

    def _lookup(self, table: dict[str, etree._Element], reference: str) -> etree._Element | None:
        # The whole text first: ids that are no NCNames may hold a colon of their own.
        found = table.get(reference, table.get(unprefixed(reference)))
        if found is not None and id(found) in self._foreign:
            self.imports_used[reference] = None
        return found


def _bindings(process: etree._Element, property_id: str) -> Iterator[tuple[etree._Element, etree._Element | None]]:
    """(subscription, data path) of each binding of the property."""
    for subscription in process.findall(f"{{{xml.MODEL}}}correlationSubscription"):
        for binding in subscription.findall(f"{{{xml.MODEL}}}correlationPropertyBinding"):
            if unprefixed(xml.attribute(binding, "correlationPropertyRef")) == property_id:
                yield subscription, xml.child(binding, "dataPath")


def unprefixed(reference: str) -> str:
    """The local part of a QName: references may carry a namespace prefix, ids never do (they are NCNames)."""
    return reference.rpartition(":")[2]


def _unknown(element: etree._Element, kind: str, reference: str, findings: Findings, owner: str) -> None:
    message = f"{named(element, owner)} refers to the {kind} '{reference}', which does not exist"
    findings.error("unknown_reference", element, message, owner=owner)
