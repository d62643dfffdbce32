"""Processes as a few lines of text, for tests of elements that hang together without flows.

    drawn('''
        s > u > e
        sub: si > w1 > ei
    ''', SubProcess("sub"), ...)

A line is a path; `scope:` before it says where its nodes lie, the process otherwise. A node that is not given is made
by its first letter: s start, e end, t task, u user task, w service task.
"""

from __future__ import annotations

from dataclasses import replace

from gobpm_ray.model.elements import (
    AbstractTask,
    EndEvent,
    EventDefinition,
    Expression,
    FlowNode,
    Process,
    SequenceFlow,
    StartEvent,
    SubProcess,
    TimerDefinition,
    UserTask,
    WorkTask,
    literal,
)

_BY_LETTER: dict[str, type] = {"s": StartEvent, "e": EndEvent, "t": AbstractTask, "u": UserTask, "w": WorkTask}


def drawn(paths: str, *given: FlowNode) -> Process:
    nodes: dict[str, FlowNode] = {}
    flows: dict[str, SequenceFlow] = {}
    known = {node.id: node for node in given}
    for line in filter(None, map(str.strip, paths.splitlines())):
        scope, _, path = line.rpartition(":")
        before = ""
        for node_id in map(str.strip, path.split(">")):
            if node_id not in nodes:
                node = known.get(node_id) or _BY_LETTER[node_id[0]](node_id)
                nodes[node_id] = replace(node, scope=scope.strip() or "p")
            if before:
                flow = SequenceFlow(f"{before}-{node_id}", before, node_id)
                flows[flow.id] = flow
                nodes[before] = replace(nodes[before], outgoing=(*nodes[before].outgoing, flow.id))
                nodes[node_id] = replace(nodes[node_id], incoming=(*nodes[node_id].incoming, flow.id))
            before = node_id
    missing = set(known) - set(nodes)
    assert not missing, f"given and not drawn: {missing}"
    return Process("p", nodes=nodes, flows=flows)


def handler(id: str, start: str, *definitions: EventDefinition, interrupting: bool = True) -> tuple[FlowNode, FlowNode]:
    """An event sub-process and its start event."""
    return SubProcess(id, kind="event"), StartEvent(start, definitions=definitions, interrupting=interrupting)


def after(duration: str) -> TimerDefinition:
    return TimerDefinition("timer", "duration", literal(duration))


def every(cycle: str) -> TimerDefinition:
    return TimerDefinition("timer", "cycle", literal(cycle))


def feel(text: str) -> Expression:
    return Expression(text)
