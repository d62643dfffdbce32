"""What is wrong, or looks wrong, in what a process says of its data: types that cannot be checked, names that hide
others, data stores that nothing moves to or from."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gobpm_ray import items
from gobpm_ray.model.data import DataElement, ItemType, type_problem
from gobpm_ray.model.elements import (
    BoundaryEvent,
    CatchEvent,
    FlowNode,
    MessageDefinition,
    Problem,
    Process,
    ReceiveTask,
    StartEvent,
)

VARIABLES = ("dataObject", "property")


def data_problems(process: Process) -> Iterator[Problem]:
    """Reasons not to execute the process."""
    for element in process.data:
        if why := _type(element.item):
            yield _problem("item_type", element, f"has a type that cannot be checked: {why}")
        if element.initial and (why := _initial(element)):
            yield _problem("initial_value", element, f"has an initial value that {why}")
    for store in process.stores:
        if why := _type(store.item):
            message = f"data store '{store.name}' has a type that cannot be checked: {why}"
            yield Problem("item_type", store.name, message, store.line)
    for node in process.nodes.values():
        for item in message_types(node):
            if why := _type(item):
                message = f"{node.type} '{node.id}' has a message of a type that cannot be checked: {why}"
                yield Problem("item_type", node.id, message, node.line)


def data_warnings(process: Process) -> Iterator[Problem]:
    """What a person should look at."""
    seen: dict[tuple[str, str], DataElement] = {}
    for element in process.data:
        if element.kind not in VARIABLES:
            continue
        other = seen.setdefault((element.scope, element.name), element)
        if other is not element:
            yield _problem("duplicate_data", element, f"is the same variable as {other.kind} '{other.id}'")
        scope = process.nodes[element.scope].scope if element.scope in process.nodes else ""
        while scope:
            if (hidden := seen.get((scope, element.name))) is not None:
                yield _problem("hidden_data", element, f"hides {hidden.kind} '{hidden.id}' of the same name")
                break
            scope = process.nodes[scope].scope if scope in process.nodes else ""
    used = {name for node in process.nodes.values() for each in (*node.inputs, *node.outputs) for name in each.stores}
    used |= {each.target for node in process.nodes.values() for each in node.outputs if each.to_store}
    for store in process.stores:
        if store.name not in used:
            message = f"data store '{store.name}' is referred to, and nothing is read from it or written to it"
            yield Problem("unused_data_store", store.name, message, store.line)


def message_types(node: FlowNode) -> Iterator[ItemType]:
    """The types of the messages that the node may receive."""
    if isinstance(node, ReceiveTask):
        definitions: tuple[object, ...] = (node.message,)
    else:
        definitions = node.definitions if isinstance(node, StartEvent | CatchEvent | BoundaryEvent) else ()
    for definition in definitions:
        if isinstance(definition, MessageDefinition) and definition.item is not None:
            yield definition.item


def _type(item: ItemType | None) -> str:
    if item is not None and item.simple and not items.known(item.simple):
        return f"'{item.simple}' is no simple type of XML Schema"
    return type_problem(item)


def _initial(element: DataElement) -> str:
    try:
        value = json.loads(element.initial)
    except (ValueError, RecursionError):
        return "is not JSON"
    if element.item is None or _type(element.item):
        return ""
    wrong = items.compiled(element.item.simple, element.item.schema, element.item.collection)(value)
    return f"is not of its own type{wrong}" if wrong else ""


def _problem(code: str, element: DataElement, what: str) -> Problem:
    return Problem(code, element.id, f"{element.kind} '{element.name or element.id}' {what}", element.line)
