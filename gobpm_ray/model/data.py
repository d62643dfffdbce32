"""What a process says of its data: types, data objects and properties, data stores. Frozen values, like the rest of the
model; whether a value fits its type is asked of `gobpm_ray.items`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal

from gobpm_ray import items
from gobpm_ray.errors import InvalidModel


@dataclass(frozen=True, slots=True)
class ItemType:
    """What a value must be (BPMN 8.4.10): a simple type of XML Schema by its local name, or a JSON schema as text; both
    '': anything, of which `collection` may still say that it is a list."""

    simple: str = ""
    schema: str = ""
    collection: bool = False


DataKind = Literal["dataObject", "property", "dataInput", "dataOutput"]


@dataclass(frozen=True, slots=True)
class DataElement:
    """A data object or property is the variable of its name in its scope, and lives as long as that. A data input or
    output stands here for its type: of a process it is a start variable, of an activity or event a mapped input or a
    result; without a name it is all of them together."""

    id: str
    name: str
    scope: str
    """The process, the sub-process or, of properties, inputs and outputs, the activity or event that has it."""
    kind: DataKind = "dataObject"
    item: ItemType | None = None
    initial: str = ""
    """Its value at the beginning, as JSON; '' : none."""
    line: int = 0


_KINDS = ("dataInput", "dataOutput", "property", "dataObject")


def in_order(elements: Iterable[DataElement], scopes: Iterable[str]) -> tuple[DataElement, ...]:
    """By scope and kind: one order, however they were written. Those of other scopes than these are left out."""
    places = {scope: index for index, scope in enumerate(scopes)}
    known = [element for element in elements if element.scope in places]
    return tuple(sorted(known, key=lambda element: (places[element.scope], _KINDS.index(element.kind))))


@dataclass(frozen=True, slots=True)
class DataStore:
    """A data store of the engine that the process reads or writes: one JSON value, under one name for all processes."""

    name: str
    capacity: int = 0
    """Most entries of a list or table that it holds; 0: any number."""
    item: ItemType | None = None
    line: int = 0


_PYTHON: dict[object, str] = {
    bool: "boolean",
    int: "integer",
    float: "double",
    str: "string",
    Decimal: "decimal",
    date: "date",
    datetime: "dateTime",
    time: "time",
    timedelta: "duration",
}

Type = Any
"""How a builder is told a type: `xsd:int`, a JSON schema as a table, a Python type, or a pydantic model."""


def item_type(given: Type, *, collection: bool = False) -> ItemType | None:
    """The type as the model keeps it: a pydantic model, or any type that pydantic knows, as its JSON schema."""
    if given is None:
        return ItemType(collection=True) if collection else None
    if isinstance(given, ItemType):
        return given
    if isinstance(given, str):
        simple = given.removeprefix("xsd:").removeprefix("xs:")
        if not items.known(simple):
            raise InvalidModel(f"type {given!r}: expected a simple type of XML Schema such as xsd:int, or a schema")
        return ItemType(simple, collection=collection)
    if isinstance(given, Mapping):
        return ItemType(schema=schema_text(given), collection=collection)
    if (simple_name := _PYTHON.get(given)) is not None:
        return ItemType(simple_name, collection=collection)
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return ItemType(schema=schema_text(TypeAdapter(given).json_schema()), collection=collection)
    except PydanticUserError as unknown:
        raise InvalidModel(f"type {given!r}: has no JSON schema: {' '.join(str(unknown).split())[:200]}") from None


def schema_text(schema: object) -> str:
    """The same text for the same schema."""
    return json.dumps(schema, ensure_ascii=False, sort_keys=True)


def type_problem(item: ItemType | None) -> str:
    """'' or why values cannot be checked against the type."""
    if item is None:
        return ""
    try:
        items.compiled(item.simple, item.schema, item.collection)
    except InvalidModel as wrong:
        return str(wrong)
    return ""
