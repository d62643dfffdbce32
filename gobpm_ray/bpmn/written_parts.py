"""The parts that written elements are made of: expressions in their places, and root elements that are referred to."""

from __future__ import annotations

import json

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.extensions import RAY
from gobpm_ray.bpmn.ids import Ids
from gobpm_ray.bpmn.operands import Operands
from gobpm_ray.model.data import DataStore, ItemType
from gobpm_ray.model.elements import LITERAL, Expression, Mapping, MessageDefinition

_READER = Operands()
"""What the reader makes of a text in a document that declares no language, as the written ones do."""
_TYPE = f"{{{xml.XSI}}}type"


def bpmn(name: str, **attributes: str) -> etree._Element:
    element = etree.Element(f"{{{xml.MODEL}}}{name}")
    for key, value in attributes.items():
        if value:
            element.set(key, value)
    return element


def text_attributes(element: etree._Element, **attributes: str) -> None:
    for name, value in attributes.items():
        if value:
            element.set(name, value)


def flag(element: etree._Element, name: str, value: bool, *, default: bool = False) -> None:
    if value is not default:
        element.set(name, "true" if value else "false")


# --- this engine's extensions -------------------------------------------------------------------------------------


def ray_attribute(element: etree._Element, name: str, value: str) -> None:
    if value:
        element.set(f"{{{RAY}}}{name}", value)


def extension(element: etree._Element, name: str, expression: Expression | None = None, /, **attributes: str) -> None:
    """One of this engine's extension elements; an expression is its text, exactly, with its language."""
    holder = element.find(f"{{{xml.MODEL}}}extensionElements")
    if holder is None:
        holder = bpmn("extensionElements")
        element.insert(0, holder)
    made = etree.SubElement(holder, f"{{{RAY}}}{name}")
    for key, value in attributes.items():
        made.set(key, value)
    if expression is not None:
        made.set("language", expression.language)
        made.text = expression.text


def mapping(element: etree._Element, name: str, written: Mapping) -> None:
    """An input or output mapping, with the data stores that it has to do with."""
    about = {"target": written.target}
    if written.stores:
        about["stores"] = json.dumps(written.stores, ensure_ascii=False)
    if written.to_store:
        about["dataStore"] = "true"
    extension(element, name, written.source, **about)


def operand(element: etree._Element, use: str, expression: Expression | None, *, only_expression: bool = False) -> None:
    """The operand as one of this engine's attributes, or as an element where an attribute would not read the same."""
    if expression is None:
        return
    marked = f"={expression.text}" if expression.language == "feel" else expression.text
    text = "" if marked.strip() != marked else marked
    read = _READER.expression(text) if only_expression else _READER.optional(text)
    if text and read == expression:
        ray_attribute(element, use, text)
    else:
        extension(element, "operand", expression, use=use)


# --- BPMN's own places --------------------------------------------------------------------------------------------


def formal(element: etree._Element, name: str, expression: Expression, use: str) -> None:
    """The expression in the child called `name`; if another would be read there, also this engine's word for it."""
    child = etree.SubElement(element, f"{{{xml.MODEL}}}{name}")
    child.set(_TYPE, "bpmn:tFormalExpression")
    child.text = expression.text
    if expression.language not in ("feel", LITERAL):
        child.set("language", expression.language)
    if not xml.text(child) or _READER.formal(child) != expression:
        extension(element, "operand", expression, use=use)


def script(element: etree._Element, expression: Expression) -> None:
    """A script task's text, and its language as the format."""
    element.set("scriptFormat", expression.language)
    child = etree.SubElement(element, f"{{{xml.MODEL}}}script")
    child.text = expression.text
    if not xml.text(child) or _READER.expression(xml.text(child), expression.language) != expression:
        extension(element, "operand", expression, use="script")


def timer(element: etree._Element, kind: str, expression: Expression) -> None:
    """The timer's text, in the way of most files: a constant as it is, FEEL with its mark."""
    child = etree.SubElement(element, f"{{{xml.MODEL}}}time{kind.capitalize()}")
    child.set(_TYPE, "bpmn:tFormalExpression")
    child.text = f"={expression.text}" if expression.language == "feel" else expression.text
    if expression.language not in ("feel", LITERAL):
        child.set("language", expression.language)
    if _READER.timer(kind, child) != expression:
        extension(element, "operand", expression, use="timer")


class Roots:
    """What stands beside the processes because elements refer to it: each distinct thing once."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._known: dict[tuple[str, object], str] = {}
        self.elements: list[etree._Element] = []

    def message(self, message: MessageDefinition) -> str:
        """The id of the message with this name and key; '' for one without a name."""
        if not message.name:
            return ""
        identity = (message.name, message.key, message.properties, message.item)
        known = ("message", identity) in self._known
        item = "" if message.item is None else self.item(message.item)
        message_id = self._root("message", identity, message.name, message.key)
        if not known:
            text_attributes(self.elements[-1], itemRef=item)
        if not known and message.properties:
            element = self.elements[-1]
            for each in message.properties:
                extension(element, "property", name=each.name)
                if each.path is not None:
                    extension(element, "property", each.path, name=each.name, use="path")
                if each.data is not None:
                    extension(element, "property", each.data, name=each.name, use="data")
        return message_id

    def item(self, item: ItemType) -> str:
        """The id of the item definition of this type."""
        known = self._known.get(("itemDefinition", item))
        if known is None:
            element = self._made("itemDefinition", item.simple or ("schema" if item.schema else "list"))
            text_attributes(element, structureRef=f"xsd:{item.simple}" if item.simple else "")
            flag(element, "isCollection", item.collection)
            if item.schema:
                extension(element, "schema")
                element[0][0].text = item.schema
            known = self._known["itemDefinition", item] = xml.attribute(element, "id")
        return known

    def store(self, store: DataStore) -> str:
        """The id of the data store with this name, type and capacity."""
        identity = (store.name, store.item, store.capacity)
        known = self._known.get(("dataStore", identity))
        if known is None:
            item = "" if store.item is None else self.item(store.item)
            element = self._made("dataStore", store.name)
            text_attributes(element, name=store.name, itemSubjectRef=item)
            if store.capacity:
                element.set("capacity", str(store.capacity))
                element.set("isUnlimited", "false")
            known = self._known["dataStore", identity] = xml.attribute(element, "id")
        return known

    def signal(self, name: str) -> str:
        return self._root("signal", name, name) if name else ""

    def coded(self, kind: str, code: str) -> str:
        """The id of the error or escalation with this code; '' for none."""
        if not code:
            return ""
        known = self._known.get((kind, code))
        if known is None:
            element = self._made(kind, code)
            element.set(f"{kind}Code", code)
            known = self._known[kind, code] = xml.attribute(element, "id")
        return known

    def signal_definition(self, name: str) -> str:
        """The id of an event definition at the root that throws the signal: behaviours refer to one."""
        known = self._known.get(("signalEventDefinition", name))
        if known is None:
            reference = self.signal(name)
            element = self._made("signalEventDefinition", name)
            element.set("signalRef", reference)
            known = self._known["signalEventDefinition", name] = xml.attribute(element, "id")
        return known

    def _root(self, kind: str, key: object, name: str, correlation: Expression | None = None) -> str:
        known = self._known.get((kind, key))
        if known is None:
            element = self._made(kind, name)
            element.set("name", name)
            operand(element, "correlationKey", correlation, only_expression=True)
            known = self._known[kind, key] = xml.attribute(element, "id")
        return known

    def _made(self, kind: str, name: str) -> etree._Element:
        plain = "".join(letter if letter.isalnum() else "_" for letter in name)
        element = bpmn(kind, id=self._ids.free(f"{kind}_{plain}"))
        self.elements.append(element)
        return element
