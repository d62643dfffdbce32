"""A process while it is being built: nodes and flows as they were added, free ids, operands as Python gives them.

It knows how a builder's arguments become model values. It validates nothing but what it could not hold: an id twice.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.data import DataElement, DataKind, DataStore, Type, in_order, item_type, type_problem
from gobpm_ray.model.elements import (
    LITERAL,
    CancelDefinition,
    Choice,
    CompensateDefinition,
    ConditionalDefinition,
    CorrelationProperty,
    ErrorDefinition,
    EscalationDefinition,
    EventDefinition,
    Expression,
    FlowNode,
    LinkDefinition,
    Mapping,
    MessageDefinition,
    Process,
    SequenceFlow,
    SignalDefinition,
    TerminateDefinition,
    TimerDefinition,
    literal,
)

_WORD = re.compile(r"[^\W\d]\w*")

Operand = str | Expression
"""`"=..."` is FEEL, any other text a constant; an `Expression` is itself."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A data store of the engine, in a mapping: as an input's source what it holds (or `expression`, which sees that by
    the store's name), as an output's target where the value goes."""

    name: str
    expression: str | Expression | None = None
    """In the words of `condition`: text is FEEL."""


Mappings = Dict[Any, Operand | Stored] | None
"""Variable (a text; or, of outputs, a `Stored`) -> the operand whose value it takes."""
Key = Operand | Dict[str, Operand]
"""One correlation key, or several by name: a message is routed by any of them."""
Messages = str | Sequence[str]
"""A message's name, or those of several, all correlated by the key."""
Timer = str | timedelta | datetime | TimerDefinition
"""A text's kind is read off it: `P...` a duration, `R...` or five fields a cycle, else a date; an expression is a
duration. `after`, `at_date` and `every` say it where that guess is wrong."""


def after(value: Operand) -> TimerDefinition:
    """A timer that is due a duration after it was armed."""
    return TimerDefinition(kind="duration", value=operand(value))


def at_date(value: Operand) -> TimerDefinition:
    """A timer that is due at a point in time."""
    return TimerDefinition(kind="date", value=operand(value))


def every(value: Operand) -> TimerDefinition:
    """A timer that repeats: `R3/PT10M`, or cron."""
    return TimerDefinition(kind="cycle", value=operand(value))


def operand(value: Operand) -> Expression:
    if isinstance(value, Expression):
        return value
    return Expression(value[1:].strip(), "feel") if value.startswith("=") else literal(value)


def correlation(key: Operand | None) -> Expression | None:
    """A correlation key: unmarked text is an expression too, because a constant would correlate with everybody."""
    return Expression(key) if isinstance(key, str) and not key.startswith(("=", "${")) else optional(key)


def properties(keys: Dict[str, Operand]) -> tuple[CorrelationProperty, ...]:
    """Several keys of one conversation: each expression reads the payload of what comes, and the scope of who waits or
    throws."""
    read = ((name, correlation(value)) for name, value in keys.items())
    return tuple(CorrelationProperty(name, value, value) for name, value in read)


def message_definition(message: str, key: Key | None) -> MessageDefinition:
    if isinstance(key, Dict):
        return MessageDefinition(name=message, properties=properties(key))
    return MessageDefinition(name=message, key=correlation(key))


def optional(value: Operand | None) -> Expression | None:
    return None if value is None else operand(value)


def names(value: Operand | Sequence[str] | None) -> Expression | None:
    """Candidates: one operand, or a sequence of constants."""
    if value is None or isinstance(value, str | Expression):
        return optional(value)
    return Expression(json.dumps(list(value), ensure_ascii=False), "feel")


def condition(value: str | Expression, language: str) -> Expression:
    if isinstance(value, Expression):
        return value
    text = value.strip()
    return Expression(text[1:].strip(), "feel") if text.startswith("=") else Expression(text, language)


def mappings(given: Mappings) -> tuple[Mapping, ...]:
    return tuple(_mapping(target, source) for target, source in (given or {}).items())


def _mapping(target: str | Stored, source: Operand | Stored) -> Mapping:
    """A data store that is written is seen by what is written into it."""
    if not isinstance(target, str | Stored):
        raise InvalidModel(f"mapping: {target!r}: expected the name of a variable, or a data store")
    stores = tuple(dict.fromkeys(each.name for each in (source, target) if isinstance(each, Stored)))
    if isinstance(source, Stored):
        read = source.name if _WORD.fullmatch(source.name) else f"`{source.name}`"
        value = Expression(read) if source.expression is None else condition(source.expression, "feel")
    else:
        value = operand(source)
    if not isinstance(target, Stored):
        return Mapping(target, value, stores)
    return Mapping(target.name, value, stores if value.language != LITERAL else (), True)


def timer_definition(value: Timer) -> TimerDefinition:
    if isinstance(value, TimerDefinition):
        return value
    if isinstance(value, datetime):
        return at_date(value.isoformat())
    if isinstance(value, timedelta):
        return after(f"PT{value.total_seconds():.3f}S")
    if value.startswith(("=", "P", "+", "-")):
        return after(value)
    return every(value) if value.startswith(("R", "@", "CRON_TZ=", "TZ=")) or " " in value else at_date(value)


def definitions(
    *,
    timer: Timer | None = None,
    message: Messages | None = None,
    key: Key | None = None,
    signal: str | None = None,
    error: str | None = None,
    escalation: str | None = None,
    conditional: str | Expression | None = None,
    compensate: bool | str = False,
    link: str | None = None,
    cancel: bool = False,
    terminate: bool = False,
) -> tuple[EventDefinition, ...]:
    """One event definition per argument given, in this order; whether they go together is the validator's to say."""
    found: list[EventDefinition] = []
    if timer is not None:
        found.append(timer_definition(timer))
    if message is not None:
        found.extend(message_definition(name, key) for name in ((message,) if isinstance(message, str) else message))
    if signal is not None:
        found.append(SignalDefinition(name=signal))
    if error is not None:
        found.append(ErrorDefinition(code=error))
    if escalation is not None:
        found.append(EscalationDefinition(code=escalation))
    if conditional is not None:
        found.append(ConditionalDefinition(condition=condition(conditional, "feel")))
    if compensate is not False:
        found.append(CompensateDefinition(activity="" if compensate is True else compensate))
    if link is not None:
        found.append(LinkDefinition(name=link))
    if cancel:
        found.append(CancelDefinition())
    if terminate:
        found.append(TerminateDefinition())
    return tuple(found)


def declare(
    draft: Draft,
    scope: str,
    name: str,
    kind: DataKind,
    given: Type = None,
    initial: object = None,
    collection: bool = False,
    element_id: str | None = None,
) -> None:
    """A data element of the scope, in Python's words."""
    item = item_type(given, collection=collection)
    if problem := type_problem(item):
        raise InvalidModel(f"process '{draft.process_id}': '{name or scope}': {problem}")
    if kind in ("dataObject", "property") and (not name or "`" in name):
        raise InvalidModel(f"process '{draft.process_id}': {name!r} is no name of a variable")
    try:
        text = "" if initial is None else json.dumps(initial, ensure_ascii=False)
    except (TypeError, ValueError) as wrong:
        raise InvalidModel(f"process '{draft.process_id}': initial value of '{name}': not JSON: {wrong}") from None
    plain = "".join(letter if letter.isalnum() else "_" for letter in f"{scope}_{kind}_{name}".rstrip("_"))
    draft.declare(DataElement(element_id or draft.free_id(plain), name, scope, kind, item, text))


@dataclass(slots=True)
class Draft:
    """Everything added so far, of all nesting levels."""

    process_id: str
    name: str = ""
    executable: bool = True
    secrets: tuple[str, ...] = ()
    nodes: dict[str, FlowNode] = field(default_factory=dict)
    flows: dict[str, SequenceFlow] = field(default_factory=dict)
    default_targets: dict[str, str] = field(default_factory=dict)
    """gateway -> the node that its default flow leads to, where it was said before the flow was there"""
    data: dict[str, DataElement] = field(default_factory=dict)
    stores: dict[str, DataStore] = field(default_factory=dict)

    def declare(self, element: DataElement) -> None:
        """A data object, property, input or output; of a scope and kind each name once."""
        same = (
            e for e in self.data.values() if (e.scope, e.name, e.kind) == (element.scope, element.name, element.kind)
        )
        if next(same, None) is not None:
            raise InvalidModel(f"process '{self.process_id}': '{element.scope}' declares '{element.name}' twice")
        self._refuse_taken(element.id)
        self.data[element.id] = element

    def all_stores(self) -> tuple[DataStore, ...]:
        """Those that were declared, and then those that mappings name."""
        found = dict(self.stores)
        for node in self.nodes.values():
            for mapping in (*node.inputs, *node.outputs):
                for name in (*mapping.stores, *((mapping.target,) if mapping.to_store else ())):
                    found.setdefault(name, DataStore(name))
        return tuple(found.values())

    def add(self, node: FlowNode) -> None:
        self._refuse_taken(node.id)
        self.nodes[node.id] = node

    def change(self, node_id: str, **fields: Any) -> None:
        """Fields of an element that was added before. Raises `InvalidModel` where its kind has no such field."""
        node = self.nodes.get(node_id)
        if node is None:
            raise InvalidModel(f"process '{self.process_id}': there is no element '{node_id}' yet")
        if lacking := next((name for name in fields if not hasattr(node, name)), ""):
            raise InvalidModel(f"process '{self.process_id}': {node.type} '{node_id}' has no {lacking}")
        self.nodes[node_id] = replace(node, **fields)

    def handle(self, boundary: str, handler: str) -> None:
        """The activity compensates what the boundary event stands on."""
        self.change(boundary, handler=handler)
        self.change(handler, for_compensation=True)

    def free_id(self, wanted: str) -> str:
        """`wanted`, or the first of `wanted_2`, `wanted_3` ... that no element has."""
        number, candidate = 1, wanted
        while (
            candidate in self.nodes or candidate in self.flows or candidate in self.data or candidate == self.process_id
        ):
            number += 1
            candidate = f"{wanted}_{number}"
        return candidate

    def connect(
        self, source: str, target: str, when: Expression | None, *, default: bool, name: str, flow_id: str | None
    ) -> str:
        """The new flow's id. Both ends may still be unknown: `built` looks."""
        flow_id = flow_id or self.free_id(f"{source}_to_{target}")
        self._refuse_taken(flow_id)
        self.flows[flow_id] = SequenceFlow(flow_id, source, target, name=name, condition=when, default=default)
        return flow_id

    def refuse_key(self, scope: str, key: Key | None) -> None:
        """What begins a process correlates by name alone: nothing exists yet to take a key from (M50)."""
        if key is not None and not isinstance(key, Dict) and scope == self.process_id:
            raise InvalidModel(f"process '{self.process_id}': a message that begins it has no correlation key")

    def scope_of(self, node_id: str) -> str:
        if node_id not in self.nodes:
            raise InvalidModel(f"process '{self.process_id}': there is no element '{node_id}' yet")
        return self.nodes[node_id].scope

    def built(self) -> Process:
        """The process with its connections; not validated."""
        flows = {flow.id: self._with_default(flow) for flow in self.flows.values()}
        incoming: dict[str, list[str]] = defaultdict(list)
        outgoing: dict[str, list[str]] = defaultdict(list)
        for flow in flows.values():
            outgoing[flow.source].append(flow.id)
            incoming[flow.target].append(flow.id)
        nodes: dict[str, FlowNode] = {}
        for node in self.nodes.values():
            node = replace(node, incoming=tuple(incoming[node.id]), outgoing=tuple(outgoing[node.id]))
            if isinstance(node, Choice):
                chosen = next((flow for flow in node.outgoing if flows[flow].default), "")
                node = replace(node, default=chosen or self.default_targets.get(node.id, ""))
            nodes[node.id] = node
        return Process(
            self.process_id,
            self.name,
            self.executable,
            nodes,
            flows,
            secrets=self.secrets,
            data=in_order(self.data.values(), (self.process_id, *nodes)),
            stores=self.all_stores(),
        )

    def _with_default(self, flow: SequenceFlow) -> SequenceFlow:
        wanted = self.default_targets.get(flow.source, "")
        return replace(flow, default=True) if wanted and wanted in (flow.target, flow.id) else flow

    def _refuse_taken(self, element_id: str) -> None:
        if not element_id:
            raise InvalidModel(f"process '{self.process_id}': an element needs an id")
        taken = element_id in self.nodes or element_id in self.flows or element_id in self.data
        if taken or element_id == self.process_id:
            raise InvalidModel(f"process '{self.process_id}': there are two elements with the id '{element_id}'")
