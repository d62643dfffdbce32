"""What the data of a process must be, made ready to be asked: at its start, of results, of mapped values.

A *shape* is what a table of named values must be: some of them by their names, and all of them together. It is compiled
once for each place where data enters an instance. Nothing here decides what follows on wrong data: a caller is refused
(`gobpm_ray.engine.shapes`), a token stands in an incident (`gobpm_ray.core.run`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gobpm_ray import items
from gobpm_ray.core.operands import StoreShape
from gobpm_ray.errors import LimitReached, Mistyped
from gobpm_ray.model.data import DataElement, DataStore, ItemType
from gobpm_ray.model.elements import (
    Activity,
    BoundaryEvent,
    CatchEvent,
    DecisionTask,
    FlowNode,
    MessageDefinition,
    Process,
    ReceiveTask,
    ScriptTask,
    StartEvent,
    SubProcess,
    WorkTask,
)

_VARIABLES = ("dataObject", "property")


@dataclass(frozen=True, slots=True)
class Shape:
    """See the module's docstring."""

    named: Mapping[str, items.Check]
    whole: tuple[items.Check, ...] = ()
    alternatives: tuple[items.Check, ...] = ()
    """One of these must hold: an event with several messages cannot say which has come."""
    inside: str = ""
    """The result variable in which all of them stand."""

    def problem(self, values: Mapping[str, object]) -> str:
        """'' or the path of what is wrong and what was expected there."""
        for name, check in self.named.items():
            if name in values and (wrong := check(values[name])):
                return f"{name}{wrong}"
        together: object = values
        if self.inside and values.keys() == {self.inside}:
            together = values[self.inside]
        for check in self.whole:
            if wrong := check(together):
                return wrong.lstrip(".: ") if wrong.startswith((":", ".")) else wrong
        wrongs = [check(together) for check in self.alternatives]
        return wrongs[0].lstrip(".: ") if wrongs and all(wrongs) else ""

    def require(self, values: Mapping[str, object], what: str) -> None:
        """Mistyped, in one line, unless the values are what they must be."""
        if wrong := self.problem(values):
            raise Mistyped(f"{what}: {wrong}")


class Shapes:
    """The shapes of one process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._elements: defaultdict[str, list[DataElement]] = defaultdict(list)
        for element in process.data:
            self._elements[element.scope or process.id].append(element)

    def start(self) -> Shape | None:
        """Of the variables that an instance is started with."""
        return _shape(self._of(self._process.id, *_VARIABLES, "dataInput"))

    def variables(self) -> Shape | None:
        """Of the root scope's variables, as an operator sets them."""
        return _shape(self._of(self._process.id, *_VARIABLES))

    def inputs(self, node: FlowNode) -> Shape | None:
        """Of a node's mapped inputs."""
        return _shape(self._of(node.id, "dataInput"))

    def results(self, node: FlowNode) -> Shape | None:
        """Of what a node's work, its message or a person gives, before it is mapped."""
        messages = _message_types(node)
        if not (self._elements or messages):
            return None
        # What the inside of a sub-process leaves are variables.
        outputs = [] if isinstance(node, SubProcess) else self._of(node.id, "dataOutput")
        becoming = [] if node.outputs else self._seen(node.scope)
        shape = _shape([*becoming, *outputs], _result_variable(node))
        if not messages:
            return shape
        checks = tuple(_message_check(item) for item in messages)
        return Shape({}, (), checks) if shape is None else Shape(shape.named, shape.whole, checks, shape.inside)

    def mapped(self, node: FlowNode) -> Shape | None:
        """Of what a node's output mappings make variables."""
        return _shape(self._seen(node.scope)) if node.outputs and self._elements else None

    def properties(self, node: FlowNode) -> dict[str, str]:
        """Those of an activity that has no inside, with their first values as JSON."""
        if not self._elements or not isinstance(node, Activity) or isinstance(node, SubProcess):
            return {}
        return {element.name: element.initial for element in self._of(node.id, "property") if element.initial}

    def _of(self, scope: str, *kinds: str) -> list[DataElement]:
        return [element for element in self._elements.get(scope, ()) if element.kind in kinds]

    def _seen(self, scope: str) -> list[DataElement]:
        """The data objects and properties that are seen in a scope, the innermost of each name last."""
        nodes, chain = self._process.nodes, [scope]
        while chain[-1] in nodes:
            chain.append(nodes[chain[-1]].scope)
        chain[-1] = self._process.id
        return [element for place in reversed(chain) for element in self._of(place, *_VARIABLES)]


def store_shape(store: DataStore) -> StoreShape:
    item = store.item
    check = None if item is None else items.compiled(item.simple, item.schema, item.collection)
    return StoreShape(store.name, store.capacity, check)


def declared(process: Process) -> dict[str, dict[str, str]]:
    """Scope -> its own variables, with their first values as JSON. In the root scope only those that have one: the
    others are there as soon as somebody writes them."""
    scopes = {node.id for node in process.nodes.values() if isinstance(node, SubProcess)}
    found: dict[str, dict[str, str]] = {}
    for element in process.data:
        if element.kind in _VARIABLES:
            if element.scope in scopes:
                found.setdefault(element.scope, {})[element.name] = element.initial or "null"
            elif element.scope in ("", process.id) and element.initial:
                found.setdefault(process.id, {})[element.name] = element.initial
    return found


def opened(variables: Mapping[str, str] | None, given: Mapping[str, object]) -> dict[str, object]:
    """A scope's variables at its beginning: its own ones, unless others are given. Read anew each time, so that no two
    instances share a list."""
    if not variables:
        return dict(given)
    return {**{name: json.loads(text) for name, text in variables.items() if name not in given}, **given}


def require_fit(store: StoreShape, value: object) -> None:
    """Mistyped or LimitReached, in one line, for what the data store does not take."""
    if store.check is not None and (wrong := store.check(value)):
        raise Mistyped(f"data store '{store.name}'{wrong}")
    if store.capacity and isinstance(value, list | tuple | Mapping) and len(value) > store.capacity:
        raise LimitReached(f"data store '{store.name}': it holds {store.capacity} entries, not {len(value)} (capacity)")


# --- inside ------------------------------------------------------------------------------------------------------


def _shape(elements: Iterable[DataElement], inside: str = "") -> Shape | None:
    named: dict[str, items.Check] = {}
    whole: list[items.Check] = []
    for element in elements:
        if element.item is None:
            named.pop(element.name, None)  # one that hides a typed one of this name has no type
        elif element.name:
            named[element.name] = _check(element.item)
        else:
            whole.append(_check(element.item))
    return Shape(named, tuple(whole), (), inside) if named or whole else None


def _check(item: ItemType) -> items.Check:
    return items.compiled(item.simple, item.schema, item.collection)


def _message_types(node: FlowNode) -> tuple[ItemType, ...]:
    """The types of the messages that the node receives; none if one of its events is free to bring anything."""
    definitions: tuple[object, ...] = ()
    if isinstance(node, StartEvent | CatchEvent | BoundaryEvent):
        if node.parallel_multiple and len(node.definitions) > 1:
            return ()
        definitions = node.definitions
    elif isinstance(node, ReceiveTask):
        definitions = (node.message,)
    found = [d.item for d in definitions if isinstance(d, MessageDefinition) and d.item is not None]
    return tuple(found) if len(found) == len(definitions) else ()


def _message_check(item: ItemType) -> items.Check:
    """Of a payload: of a simple type it is one value, whatever it is called; a JSON schema describes all of it."""
    one = _check(item)
    if item.schema and not item.collection:
        return one

    def check(payload: object) -> str:
        values = payload if isinstance(payload, Mapping) else {}
        if len(values) != 1:
            return ": expected one value"
        ((name, value),) = values.items()
        return f"{name}{wrong}" if (wrong := one(value)) else ""

    return check


def _result_variable(node: FlowNode) -> str:
    return node.result_variable if isinstance(node, WorkTask | DecisionTask | ScriptTask) else ""
