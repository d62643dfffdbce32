"""What looks wrong in a process that could run: warnings, never reasons to refuse. It knows structure, not values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gobpm_ray.model.elements import (
    Activity,
    BoundaryEvent,
    EndEvent,
    EventBasedGateway,
    ExclusiveGateway,
    FlowNode,
    ParallelGateway,
    Problem,
    Process,
    StartEvent,
)
from gobpm_ray.model.validate import problem


def lint(process: Process) -> tuple[Problem, ...]:
    """Warnings about a process that `validate` accepts, grouped by kind, each kind in document order."""
    return (
        *_without_way_in(process),
        *_unreachable(process),
        *_conditions(process),
        *_closed_joins(process),
        *_dead_ends(process),
    )


def _without_way_in(process: Process) -> Iterator[Problem]:
    """BPMN 10.5.2: where a scope has a start event, everything else needs an incoming flow."""
    started = {node.scope for node in process.nodes.values() if isinstance(node, StartEvent)}
    for node in process.nodes.values():
        if not node.incoming and not isinstance(node, StartEvent | BoundaryEvent) and node.scope in started:
            yield problem("no_incoming", node, "has no incoming flow and is no start event: nothing begins it")


def _unreachable(process: Process) -> Iterator[Problem]:
    boundaries: dict[str, list[str]] = defaultdict(list)
    for node in process.nodes.values():
        if isinstance(node, BoundaryEvent):
            boundaries[node.attached_to].append(node.id)
    started = {node.scope for node in process.nodes.values() if isinstance(node, StartEvent)}
    # Without a start event, a scope begins at whatever nothing leads to (BPMN 13.3.4).
    pending = [
        node.id
        for node in process.nodes.values()
        if isinstance(node, StartEvent)
        or not (node.incoming or node.scope in started or isinstance(node, BoundaryEvent))
    ]
    reached = set(pending)
    while pending:
        node_id = pending.pop()
        for following in (*_targets(process, process.nodes[node_id]), *boundaries[node_id]):
            if following not in reached:
                reached.add(following)
                pending.append(following)
    for node in process.nodes.values():
        if node.id not in reached and (node.incoming or isinstance(node, BoundaryEvent)):
            yield problem("unreachable", node, "can never be reached")


def _targets(process: Process, node: FlowNode) -> Iterator[str]:
    return (process.flows[flow].target for flow in node.outgoing if process.flows[flow].target in process.nodes)


def _conditions(process: Process) -> Iterator[Problem]:
    for node in process.nodes.values():
        flows = [process.flows[flow] for flow in node.outgoing]
        if isinstance(node, ExclusiveGateway | Activity):
            for flow in flows:
                if flow.default and flow.condition is not None:
                    yield problem("condition_on_default", flow, "is a default flow, so its condition is never asked")
            conditional = [flow for flow in flows if flow.condition is not None and not flow.default]
            has_default = any(flow.default for flow in flows)
            if conditional and len(conditional) == len(flows) and not has_default:
                yield problem("no_default", node, "has only conditional flows and no default: none may be open")
            if isinstance(node, ExclusiveGateway) and len(flows) > 1:
                for flow in flows:
                    if flow.condition is None and not flow.default:
                        yield problem("no_condition", flow, "leaves a choice without a condition: it is always open")
        else:
            for flow in flows:
                if flow.condition is not None:
                    yield problem("ignored_condition", flow, f"has a condition, which a {node.type} never asks")


def _closed_joins(process: Process) -> Iterator[Problem]:
    """A join whose flows come straight from one exclusive choice: each passing gives a token to only one of them."""
    for node in process.nodes.values():
        if not isinstance(node, ParallelGateway) or len(node.incoming) < 2:
            continue
        origins: set[str] = set()
        for flow in node.incoming:
            origin = _origin(process, flow)
            if origin is None:
                continue
            if origin in origins:
                choice = f"{process.nodes[origin].type} '{origin}'"
                yield problem("closed_join", node, f"may never open: {choice} gives a token to only one of its flows")
                break
            origins.add(origin)


def _origin(process: Process, flow_id: str) -> str | None:
    """The exclusive or event-based choice that the flow descends from without meeting another split or merge."""
    seen: set[str] = set()
    while flow_id not in seen:
        seen.add(flow_id)
        source = process.nodes.get(process.flows[flow_id].source)
        if source is None:
            return None
        if isinstance(source, ExclusiveGateway | EventBasedGateway) and len(source.outgoing) > 1:
            return source.id
        if len(source.incoming) != 1 or len(source.outgoing) != 1:
            return None
        flow_id = source.incoming[0]
    return None


def _dead_ends(process: Process) -> Iterator[Problem]:
    ended = {node.scope for node in process.nodes.values() if isinstance(node, EndEvent)}
    for node in process.nodes.values():
        if not node.outgoing and not isinstance(node, EndEvent) and node.scope in ended:
            yield problem("dead_end", node, "has no outgoing flow: the path ends there without an end event")
