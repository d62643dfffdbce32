"""How the events of a process hang together without flows: event sub-processes and their scopes, link throws and their
catches, compensation boundaries and the activities they undo. Looked up once, when a process is compiled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gobpm_ray.model.elements import (
    Activity,
    BoundaryEvent,
    CatchEvent,
    CompensateDefinition,
    ConditionalDefinition,
    EventDefinition,
    FlowNode,
    LinkDefinition,
    MessageDefinition,
    Process,
    SignalDefinition,
    StartEvent,
    SubProcess,
    ThrowEvent,
    TimerDefinition,
)

_ARMED = (TimerDefinition, MessageDefinition, SignalDefinition, ConditionalDefinition)


def listeners(process: Process) -> dict[str, tuple[str, ...]]:
    """Scope -> the start events of its event sub-processes that wait or catch, in document order."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for scope, start in _handlers(process):
        if not _compensates(start):
            found[scope].append(start.id)
    return {scope: tuple(starts) for scope, starts in found.items()}


def undoers(process: Process) -> dict[str, str]:
    """Sub-process -> the start event of its compensation event sub-process."""
    return {scope: start.id for scope, start in _handlers(process) if _compensates(start)}


def link(process: Process, throw: FlowNode) -> str:
    """The catch that a link throw goes on at: same name, same scope. '' for what is no link throw, or has none."""
    if not isinstance(throw, ThrowEvent):
        return ""
    names = [definition.name for definition in throw.definitions if isinstance(definition, LinkDefinition)]
    for node in process.nodes.values():
        if names and isinstance(node, CatchEvent) and node.scope == throw.scope:
            for definition in node.definitions:
                if isinstance(definition, LinkDefinition) and definition.name in names:
                    return node.id
    return ""


def linked(node: FlowNode) -> bool:
    """A link's catch: what leads to it is no flow, and it waits for nothing."""
    return isinstance(node, CatchEvent) and any(isinstance(d, LinkDefinition) for d in node.definitions)


def compensation(process: Process, boundaries: tuple[str, ...]) -> str:
    """Of an activity's boundaries the one that compensates it and has a handler; '' if none does."""
    for boundary in boundaries:
        node = process.nodes[boundary]
        if isinstance(node, BoundaryEvent) and _compensates(node) and node.handler in process.nodes:
            return boundary
    return ""


def races(boundary: FlowNode) -> bool:
    """The boundary waits for one thing that, when it comes, ends the activity."""
    return (
        isinstance(boundary, BoundaryEvent)
        and boundary.interrupting
        and not gathers(boundary)
        and any(isinstance(definition, _ARMED) for definition in boundary.definitions)
    )


def gathers(node: FlowNode) -> bool:
    """A parallel multiple event: all of its definitions must occur."""
    return isinstance(node, StartEvent | CatchEvent | BoundaryEvent) and (
        node.parallel_multiple and len(node.definitions) > 1
    )


def begins(node: FlowNode) -> bool:
    """A token may begin here for want of a start event: what nothing leads to, and nothing else runs it."""
    return not (
        isinstance(node, BoundaryEvent)
        or linked(node)
        or (isinstance(node, SubProcess) and node.kind == "event")
        or (isinstance(node, Activity) and node.for_compensation)
    )


def compensable(process: Process) -> bool:
    """Something in the process can be undone."""
    return any(isinstance(node, BoundaryEvent | StartEvent) and _compensates(node) for node in process.nodes.values())


def _handlers(process: Process) -> Iterator[tuple[str, StartEvent]]:
    for node in process.nodes.values():
        around = process.nodes.get(node.scope)
        if isinstance(node, StartEvent) and isinstance(around, SubProcess) and around.kind == "event":
            yield around.scope or process.id, node


def _compensates(node: StartEvent | BoundaryEvent) -> bool:
    definitions: tuple[EventDefinition, ...] = node.definitions
    return any(isinstance(definition, CompensateDefinition) for definition in definitions)
