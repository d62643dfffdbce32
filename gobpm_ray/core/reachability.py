"""From where a token can still come to a join: computed once, when a process is compiled (BPMN 13.4.3).

A path leads over sequence flows of one scope, from an activity also to its boundary events, and from a link throw to
its catch. What happens inside a sub-process happens, seen from here, at the sub-process.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from gobpm_ray.model.elements import (
    BoundaryEvent,
    CatchEvent,
    ComplexGateway,
    FlowNode,
    InclusiveGateway,
    LinkDefinition,
    Process,
    ThrowEvent,
)


def upstream(process: Process, incoming: Mapping[str, Sequence[str]], join: FlowNode) -> dict[str, frozenset[str]]:
    """Incoming flow -> every node from which a path leads to that flow without passing the join. Empty for a node that
    is no inclusive or complex join."""
    arriving = incoming.get(join.id, ())
    if not isinstance(join, InclusiveGateway | ComplexGateway) or len(arriving) < 2:
        return {}
    throws = _link_throws(process, join.scope)
    found: dict[str, frozenset[str]] = {}
    for flow in arriving:
        reached: set[str] = set()
        pending = [process.flows[flow].source]
        while pending:
            node_id = pending.pop()
            if node_id in reached or node_id == join.id or node_id not in process.nodes:
                continue
            reached.add(node_id)
            pending.extend(process.flows[before].source for before in incoming.get(node_id, ()))
            pending.extend(_before(process.nodes[node_id], throws))
        found[flow] = frozenset(reached)
    return found


def _before(node: FlowNode, throws: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Where a token comes from that arrives by no flow."""
    if isinstance(node, BoundaryEvent):
        yield node.attached_to
    elif isinstance(node, CatchEvent):
        for definition in node.definitions:
            if isinstance(definition, LinkDefinition):
                yield from throws.get(definition.name, ())


def _link_throws(process: Process, scope: str) -> Mapping[str, Sequence[str]]:
    throws: defaultdict[str, list[str]] = defaultdict(list)
    for node in process.nodes.values():
        if isinstance(node, ThrowEvent) and node.scope == scope:
            for definition in node.definitions:
                if isinstance(definition, LinkDefinition):
                    throws[definition.name].append(node.id)
    return throws
