"""What looks wrong in a process that could run: warnings, never reasons to refuse.

It knows how paths hang together, and which conditions ask nothing; no values beyond that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from gobpm_ray.model.constants import constant
from gobpm_ray.model.data_problems import data_warnings
from gobpm_ray.model.elements import (
    LITERAL,
    Activity,
    BoundaryEvent,
    CallActivity,
    CancelDefinition,
    CatchEvent,
    Choice,
    CompensateDefinition,
    ConditionalDefinition,
    EndEvent,
    Event,
    EventBasedGateway,
    ExclusiveGateway,
    FlowNode,
    InclusiveGateway,
    LinkDefinition,
    MessageDefinition,
    ParallelGateway,
    Problem,
    Process,
    ReceiveTask,
    StandardLoop,
    StartEvent,
    SubProcess,
    ThrowEvent,
)
from gobpm_ray.model.positions import links
from gobpm_ray.model.problems import problem


def lint(process: Process) -> tuple[Problem, ...]:
    """Warnings about a process that `validate` accepts, grouped by kind, each kind in document order."""
    reached = _reached(process)
    return (
        *_without_way_in(process),
        *_unreachable(process, reached),
        *_conditions(process),
        *_closed_joins(process, reached),
        *_dead_ends(process),
        *_pairs(process),
        *_strangers(process),
        *data_warnings(process),
    )


def lint_calls(processes: Iterable[Process], known: Collection[str] = ()) -> tuple[Problem, ...]:
    """Calls of processes that are neither among these nor `known`: they must be deployed before the call is met."""
    processes = tuple(processes)
    here = {process.id for process in processes} | set(known)
    return tuple(
        problem("unknown_process", node, f"calls the process '{node.called.text}', which is not in these files")
        for process in processes
        for node in process.nodes.values()
        if isinstance(node, CallActivity) and node.called.language == LITERAL and node.called.text not in here
    )


# --- ways --------------------------------------------------------------------------------------------------------


def _begins_alone(process: Process, node: FlowNode) -> bool:
    """Nothing needs to lead to it: an event begins it, a handler's boundary, a link, or its ad-hoc sub-process."""
    outside = process.nodes.get(node.scope)
    return (
        isinstance(node, StartEvent | BoundaryEvent)
        or (isinstance(node, SubProcess) and node.kind == "event")
        or (isinstance(node, Activity) and (node.for_compensation or bool(getattr(node, "instantiate", False))))
        or (isinstance(node, EventBasedGateway) and node.instantiate)
        or _is_link(node)
        or (isinstance(outside, SubProcess) and outside.kind == "adhoc")
    )


def _is_link(node: FlowNode) -> bool:
    return isinstance(node, CatchEvent) and any(isinstance(each, LinkDefinition) for each in node.definitions)


def _without_way_in(process: Process) -> Iterator[Problem]:
    """BPMN 10.5.2: where a scope has a start event, everything else needs an incoming flow."""
    started = {node.scope for node in process.nodes.values() if isinstance(node, StartEvent)}
    for node in process.nodes.values():
        if not node.incoming and not _begins_alone(process, node) and node.scope in started:
            yield problem("no_incoming", node, "has no incoming flow and is no start event: nothing begins it")


def _reached(process: Process) -> set[str]:
    """Every node that some token can come to."""
    beyond: defaultdict[str, list[str]] = defaultdict(list)
    for node in process.nodes.values():
        if isinstance(node, BoundaryEvent):
            beyond[node.attached_to].append(node.id)
            beyond[node.id].append(node.handler)
    for throws, catches in links(process).values():
        for throw in throws:
            beyond[throw].extend(catches)
    started = {node.scope for node in process.nodes.values() if isinstance(node, StartEvent)}
    # Without a start event, a scope begins at whatever nothing leads to (BPMN 13.3.4).
    pending = [
        node.id
        for node in process.nodes.values()
        if isinstance(node, StartEvent)
        or (isinstance(node, SubProcess) and node.kind == "event")
        or (_begins_alone(process, node) and not isinstance(node, BoundaryEvent) and not _waits_for_others(node))
        or not (node.incoming or node.scope in started or isinstance(node, BoundaryEvent) or _waits_for_others(node))
    ]
    reached = set(pending)
    while pending:
        node_id = pending.pop()
        for following in (*_targets(process, process.nodes[node_id]), *beyond[node_id]):
            if following in process.nodes and following not in reached:
                reached.add(following)
                pending.append(following)
    return reached


def _waits_for_others(node: FlowNode) -> bool:
    return _is_link(node) or (isinstance(node, Activity) and node.for_compensation)


def _unreachable(process: Process, reached: set[str]) -> Iterator[Problem]:
    for node in process.nodes.values():
        if node.id in reached:
            continue
        if isinstance(node, Activity) and node.for_compensation:
            yield problem("unused_handler", node, "is a compensation handler that no boundary event leads to")
        elif _is_link(node):
            yield problem("unmatched_link", node, "catches a link that nothing throws here")
        elif node.incoming or isinstance(node, BoundaryEvent):
            yield problem("unreachable", node, "can never be reached")


def _targets(process: Process, node: FlowNode) -> Iterator[str]:
    return (process.flows[flow].target for flow in node.outgoing if process.flows[flow].target in process.nodes)


def _dead_ends(process: Process) -> Iterator[Problem]:
    ended = {node.scope for node in process.nodes.values() if isinstance(node, EndEvent)}
    for node in process.nodes.values():
        if node.outgoing or isinstance(node, EndEvent) or node.scope not in ended or _ends_alone(node):
            continue
        yield problem("dead_end", node, "has no outgoing flow: the path ends there without an end event")


def _ends_alone(node: FlowNode) -> bool:
    """It needs no way on: a handler, an event sub-process, a link's throw, a compensation event."""
    if isinstance(node, Activity):
        return node.for_compensation or (isinstance(node, SubProcess) and node.kind == "event")
    wanted = LinkDefinition if isinstance(node, ThrowEvent) else CompensateDefinition
    return isinstance(node, ThrowEvent | BoundaryEvent) and any(isinstance(each, wanted) for each in node.definitions)


# --- conditions --------------------------------------------------------------------------------------------------


def _conditions(process: Process) -> Iterator[Problem]:
    for node in process.nodes.values():
        flows = [process.flows[flow] for flow in node.outgoing]
        if isinstance(node, Choice | Activity):
            for flow in flows:
                if flow.default and flow.condition is not None:
                    yield problem("condition_on_default", flow, "is a default flow, so its condition is never asked")
                elif flow.condition is not None and constant(flow.condition) is False:
                    yield problem("dead_condition", flow, "has a condition that never holds, whatever the variables")
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
        if isinstance(node, Event):
            for definition in node.definitions:
                if isinstance(definition, ConditionalDefinition) and constant(definition.condition) is False:
                    yield problem("dead_condition", node, "waits for a condition that never holds")
        elif isinstance(node, Activity) and isinstance(node.loop, StandardLoop) and _never_ends(node.loop):
            yield problem("endless_loop", node, "loops without a condition that ends it, and without a maximum")


def _never_ends(loop: StandardLoop) -> bool:
    return loop.maximum is None and (loop.condition is None or constant(loop.condition) is True)


# --- joins -------------------------------------------------------------------------------------------------------


def _closed_joins(process: Process, reached: set[str]) -> Iterator[Problem]:
    """A join whose flows come straight from one choice, which need not take them all; or from where nothing comes."""
    for node in process.nodes.values():
        if not isinstance(node, ParallelGateway) or len(node.incoming) < 2 or node.id not in reached:
            continue
        origins: set[str] = set()
        for flow in node.incoming:
            source = process.flows[flow].source
            if source in process.nodes and source not in reached:
                yield problem("closed_join", node, f"can never open: no token can come by '{flow}'")
                break
            origin = _origin(process, flow)
            if origin is None:
                continue
            if origin in origins:
                choice = f"{process.nodes[origin].type} '{origin}'"
                inclusive = isinstance(process.nodes[origin], InclusiveGateway)
                why = "need not take all of its flows" if inclusive else "gives a token to only one of its flows"
                yield problem("closed_join", node, f"may never open: {choice} {why}")
                break
            origins.add(origin)


def _origin(process: Process, flow_id: str) -> str | None:
    """The choice that the flow descends from without meeting another split or merge."""
    seen: set[str] = set()
    while flow_id not in seen:
        seen.add(flow_id)
        source = process.nodes.get(process.flows[flow_id].source)
        if source is None:
            return None
        if isinstance(source, ExclusiveGateway | EventBasedGateway) and len(source.outgoing) > 1:
            return source.id
        if isinstance(source, InclusiveGateway) and len(source.outgoing) > 1:
            conditional = process.flows[flow_id].condition is not None or process.flows[flow_id].default
            return source.id if conditional else None
        if len(source.incoming) != 1 or len(source.outgoing) != 1:
            return None
        flow_id = source.incoming[0]
    return None


# --- pairs -------------------------------------------------------------------------------------------------------


def _pairs(process: Process) -> Iterator[Problem]:
    """Throws that nothing answers: a compensation without a handler, a cancel that nobody continues."""
    boundaries = [node for node in process.nodes.values() if isinstance(node, BoundaryEvent)]
    undone = {node.attached_to for node in boundaries if _has(node, CompensateDefinition)}
    caught = {node.attached_to for node in boundaries if _has(node, CancelDefinition)}
    for node in process.nodes.values():
        if not isinstance(node, EndEvent | ThrowEvent):
            continue
        for definition in node.definitions:
            if isinstance(definition, CompensateDefinition) and definition.activity:
                target = process.nodes.get(definition.activity)
                if definition.activity not in undone and not isinstance(target, SubProcess):
                    yield problem("no_handler", node, f"compensates '{definition.activity}', which has no handler")
            elif isinstance(definition, CancelDefinition) and node.scope not in caught:
                yield problem("no_handler", node, f"cancels '{node.scope}', which has no cancel boundary to go on from")


def _strangers(process: Process) -> Iterator[Problem]:
    """Messages that begin an instance together, and nothing that says which of them belong together."""
    for node in process.nodes.values():
        messages: list[MessageDefinition] = []
        if isinstance(node, StartEvent) and node.parallel_multiple and node.scope == process.id:
            messages = [each for each in node.definitions if isinstance(each, MessageDefinition)]
        elif isinstance(node, EventBasedGateway) and node.parallel and node.instantiate:
            for target in (process.nodes.get(each) for each in _targets(process, node)):
                if isinstance(target, ReceiveTask):
                    messages.append(target.message)
                elif isinstance(target, CatchEvent):
                    messages += [each for each in target.definitions if isinstance(each, MessageDefinition)]
        bare = next((each.name for each in messages if each.key is None and not each.properties), "")
        if len(messages) > 1 and bare:
            why = f"waits for several messages, and '{bare}' has no correlation key"
            yield problem("no_key", node, f"{why}: one that finds nobody waiting begins an instance of its own")


def _has(boundary: BoundaryEvent, kind: type) -> bool:
    return any(isinstance(definition, kind) for definition in boundary.definitions)
