"""Which event may stand where, and what its definitions must say (BPMN 10.5, tables 10.84 to 10.93).

It knows one event and its surroundings in the process; links and handlers, which are pairs of elements, included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gobpm_ray.calendar.timers import parse_cycle, parse_date, parse_duration
from gobpm_ray.errors import GobpmError
from gobpm_ray.model.elements import (
    LITERAL,
    Activity,
    BoundaryEvent,
    CatchEvent,
    CompensateDefinition,
    ConditionalDefinition,
    EndEvent,
    ErrorDefinition,
    EscalationDefinition,
    Event,
    EventDefinition,
    FlowNode,
    LinkDefinition,
    MessageDefinition,
    Problem,
    Process,
    SignalDefinition,
    StartEvent,
    SubProcess,
    ThrowEvent,
    TimerDefinition,
)
from gobpm_ray.model.problems import described, problem

_REPEATABLE = ("message", "timer", "signal", "conditional", "escalation")
"""What may come again, so that an event that does not interrupt can wait for it."""
_START = ("message", "timer", "signal")
_INSIDE_START = (*_REPEATABLE, "error", "compensate")
_BOUNDARY = (*_REPEATABLE, "error", "compensate", "cancel")
_ALLOWED: dict[str, tuple[str, ...]] = {
    "endEvent": ("message", "signal", "error", "escalation", "compensate", "cancel", "terminate"),
    "intermediateCatchEvent": ("message", "timer", "signal", "conditional", "link"),
    "intermediateThrowEvent": ("message", "signal", "escalation", "compensate", "link"),
}
_NEEDS_DEFINITION = ("intermediateCatchEvent", "boundaryEvent")
_ALONE = ("link", "compensate")
"""Caught, they never stand beside another definition: the link is a place, the handler is no path."""
_ENDS_ITS_SCOPE = ("error", "cancel", "terminate")
_TOGETHER = ("message", "timer", "signal", "conditional")
"""What a parallel multiple event can collect, one after the other."""
_LITERAL_TIMERS: dict[str, Callable[[str], object]] = {
    "date": parse_date,
    "duration": parse_duration,
    "cycle": parse_cycle,
}


def scope_kind(process: Process, node: FlowNode) -> str:
    """The kind of the sub-process that the node lies in directly; `process` at the top."""
    outside = process.nodes.get(node.scope)
    return outside.kind if isinstance(outside, SubProcess) else "process"


def event_problems(process: Process, event: Event) -> Iterator[Problem]:
    """Everything wrong with one event."""
    kinds: list[str] = [definition.type for definition in event.definitions]
    if not kinds and event.type in _NEEDS_DEFINITION:
        yield problem("missing_definition", event, "has no event definition: what it waits for is not said")
    for definition in event.definitions:
        if refusal := _misplaced(process, event, definition.type):
            yield problem("wrong_definition", event, refusal)
        else:
            yield from _definition(process, event, definition)
    yield from _combined(process, event, kinds)
    if isinstance(event, BoundaryEvent) and kinds == ["compensate"]:
        yield from _handler(process, event)


def _misplaced(process: Process, event: Event, kind: str) -> str:
    """Why a definition of this kind cannot stand at the event; '' when it can."""
    never = f"cannot have a {kind} event definition"
    if isinstance(event, StartEvent):
        inside = scope_kind(process, event)
        if inside == "event":
            if not event.interrupting and kind in _INSIDE_START and kind not in _REPEATABLE:
                return f"always interrupts: one that does not cannot wait for a {kind}"
            return "" if kind in _INSIDE_START else never
        if inside != "process":
            return f"starts an embedded sub-process, so it cannot wait for a {kind}" if kind in _INSIDE_START else never
        if kind == "conditional":
            return "cannot begin a process by a condition: before an instance exists there are no data to ask"
        return "" if kind in _START else never
    if isinstance(event, BoundaryEvent):
        if kind not in _BOUNDARY:
            return never
        if not event.interrupting and kind in ("error", "cancel"):
            return f"always interrupts: one that does not cannot wait for a {kind}"
        host = process.nodes.get(event.attached_to)
        if kind == "cancel" and isinstance(host, Activity) and not _is_transaction(host):
            return f"waits for a cancel, and {described(host)} is no transaction"
        return ""
    if kind not in _ALLOWED[event.type]:
        return never
    if kind == "cancel" and scope_kind(process, event) != "transaction":
        return "cancels a transaction, and lies in none"
    return ""


def _is_transaction(node: FlowNode) -> bool:
    return isinstance(node, SubProcess) and node.kind == "transaction"


def _combined(process: Process, event: Event, kinds: list[str]) -> Iterator[Problem]:
    if len(kinds) > 1:
        catching = not isinstance(event, EndEvent | ThrowEvent)
        alone = next((kind for kind in kinds if kind == "link" or (catching and kind in _ALONE)), "")
        if alone:
            yield problem("wrong_combination", event, f"has a {alone} event definition, which must stand alone")
        ending = [kind for kind in kinds if kind in _ENDS_ITS_SCOPE]
        if isinstance(event, EndEvent) and len(ending) > 1:
            yield problem("wrong_combination", event, f"ends its scope in several ways: {', '.join(ending)}")
    if isinstance(event, StartEvent | CatchEvent | BoundaryEvent) and event.parallel_multiple:
        once = next((kind for kind in kinds if kind not in _TOGETHER), "")
        if once:
            yield problem("wrong_combination", event, f"is parallel multiple, and cannot collect a {once} with others")
        elif len(kinds) > 1 and isinstance(event, StartEvent) and scope_kind(process, event) == "process":
            # Each event begins an instance unless one waits for it: a signal would do both, a timer has no addressee.
            other = next((kind for kind in kinds if kind != "message"), "")
            if other:
                why = f"is parallel multiple and begins a process: a {other} belongs to no conversation"
                yield problem("wrong_combination", event, f"{why}, so only messages can be collected there")


def _definition(process: Process, event: Event, definition: EventDefinition) -> Iterator[Problem]:
    throws = isinstance(event, EndEvent | ThrowEvent)
    if isinstance(definition, MessageDefinition):
        yield from message_problems(event, definition)
    elif isinstance(definition, SignalDefinition) and not definition.name:
        yield problem("missing_signal", event, "names no signal")
    elif isinstance(definition, TimerDefinition):
        yield from _timer(event, definition)
    elif isinstance(definition, ErrorDefinition | EscalationDefinition) and throws and not definition.code:
        yield problem("missing_code", event, f"throws an {definition.type} without a code")
    elif isinstance(definition, ConditionalDefinition) and not definition.condition.text.strip():
        yield problem("missing_condition", event, "waits for a condition and has none")
    elif isinstance(definition, LinkDefinition):
        yield from _link(event, definition)
    elif isinstance(definition, CompensateDefinition) and definition.activity:
        target = process.nodes.get(definition.activity)
        if not isinstance(target, Activity):
            yield problem("unknown_activity", event, f"compensates '{definition.activity}', which is no activity here")


def message_problems(node: FlowNode, message: MessageDefinition | None) -> Iterator[Problem]:
    """A message that is sent or waited for needs a name."""
    if message is not None and not message.name:
        yield problem("missing_message", node, "names no message: a messageRef to a declared message is missing")


def _timer(event: Event, timer: TimerDefinition) -> Iterator[Problem]:
    if not timer.value.text.strip():
        yield problem("missing_timer", event, "has a timer without a date, duration or cycle")
    elif timer.value.language == LITERAL:
        try:
            _LITERAL_TIMERS[timer.kind](timer.value.text)
        except GobpmError as wrong:
            yield problem("invalid_timer", event, f"has a timer that cannot be read: {wrong}")


# --- pairs -------------------------------------------------------------------------------------------------------


Links = dict[tuple[str, str], tuple[list[str], list[str]]]
"""(scope, name) -> the ids of the throws and of the catches of that link"""


def links(process: Process) -> Links:
    """Every link of the process, with both its ends."""
    found: Links = {}
    for node in process.nodes.values():
        if isinstance(node, CatchEvent | ThrowEvent):
            for definition in node.definitions:
                if isinstance(definition, LinkDefinition):
                    throws, catches = found.setdefault((node.scope, definition.name), ([], []))
                    (throws if isinstance(node, ThrowEvent) else catches).append(node.id)
    return found


def link_problems(process: Process) -> Iterator[Problem]:
    """A throw of a link has exactly one catch, of its name and scope."""
    for (_, name), (throws, catches) in links(process).items():
        for throw in throws:
            if not name or len(catches) == 1:
                continue
            many = f"several catch: {', '.join(catches)}" if catches else "nothing catches here"
            yield problem("unmatched_link", process.nodes[throw], f"leads to the link '{name}', which {many}")


def _link(event: Event, link: LinkDefinition) -> Iterator[Problem]:
    if not link.name:
        yield problem("missing_link", event, "is a link without a name")
    elif isinstance(event, ThrowEvent):
        if event.outgoing:
            yield problem("link_flow", event, f"is a link and has an outgoing flow, '{event.outgoing[0]}'")
    elif event.incoming:
        yield problem("link_flow", event, f"is a link and has an incoming flow, '{event.incoming[0]}'")


def _handler(process: Process, event: BoundaryEvent) -> Iterator[Problem]:
    handler = process.nodes.get(event.handler)
    if event.outgoing:
        yield problem(
            "compensation_flow", event, f"has a flow, '{event.outgoing[0]}': an association leads to a handler"
        )
    if not event.handler:
        yield problem("missing_handler", event, "has no compensation handler: no association leads to one")
    elif not isinstance(handler, Activity):
        yield problem("missing_handler", event, f"has the handler '{event.handler}', which is no activity here")
    elif not handler.for_compensation:
        yield problem("missing_handler", event, f"has the handler {described(handler)}, which is not for compensation")
    elif handler.scope != event.scope:
        yield problem("missing_handler", event, f"has the handler {described(handler)}, which lies in another scope")
