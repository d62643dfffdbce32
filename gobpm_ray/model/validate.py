"""What must hold for a process to be executed: every finding names the element, with the line where there is one.

Shared by the XML reader and the builder, so that both refuse the same models for the same reasons. It knows structure;
events stand in `gobpm_ray.model.positions`, expressions in `gobpm_ray.model.operands`, and what merely looks wrong is
`gobpm_ray.model.lint`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

from gobpm_ray.model.data_problems import data_problems
from gobpm_ray.model.elements import (
    Activity,
    BoundaryEvent,
    CallActivity,
    CatchEvent,
    Choice,
    DecisionTask,
    EndEvent,
    Event,
    EventBasedGateway,
    FlowNode,
    LinkDefinition,
    MultiInstance,
    Problem,
    Process,
    ReceiveTask,
    SequenceFlow,
    StartEvent,
    SubProcess,
    WorkTask,
)
from gobpm_ray.model.operands import expression_problems, expressions
from gobpm_ray.model.positions import event_problems, link_problems, message_problems
from gobpm_ray.model.problems import described, invalid, problem

__all__ = ["STRUCTURE", "described", "expressions", "invalid", "problem", "require_valid", "validate"]

STRUCTURE = frozenset({"duplicate_id", "unknown_source", "unknown_target", "crosses_scopes", "unknown_attachment"})
"""Codes of faults that no diagram means: a document with one is broken, not merely unfinished."""


def validate(process: Process) -> tuple[Problem, ...]:
    """Every reason why the process cannot be executed; empty when it can. Expressions are compiled here, once each."""
    problems: list[Problem] = []
    if not process.nodes:
        problems.append(Problem("empty_process", process.id, f"process '{process.id}' has no flow nodes", process.line))
    guarded = {node.attached_to for node in process.nodes.values() if isinstance(node, BoundaryEvent)}
    for key, node in process.nodes.items():
        problems.extend(_identity(process, key, node))
        problems.extend(_connections(process, node))
        if isinstance(node, Event):
            problems.extend(event_problems(process, node))
        elif isinstance(node, EventBasedGateway):
            problems.extend(_event_gateway(process, node, guarded))
        elif isinstance(node, Activity):
            problems.extend(_activity(node))
    for flow in process.flows.values():
        problems.extend(_flow(process, flow))
    problems.extend(_defaults(process))
    problems.extend(_boundaries(process))
    problems.extend(link_problems(process))
    problems.extend(_sub_processes(process))
    problems.extend(data_problems(process))
    problems.extend(expression_problems(process))
    return tuple(problems)


def require_valid(process: Process, name: str) -> Process:
    """The process itself, or `InvalidModel` with one line that begins with `name` and every problem attached."""
    if problems := validate(process):
        raise invalid(name, problems)
    return process


# --- structure ---------------------------------------------------------------------------------------------------


def _identity(process: Process, key: str, node: FlowNode) -> Iterator[Problem]:
    if not node.id or node.id != key:
        yield problem("missing_id", node, f"stands under the id '{key}'")
    if node.scope != process.id and not isinstance(process.nodes.get(node.scope), SubProcess):
        yield problem("unknown_scope", node, f"lies in '{node.scope}', which is neither its process nor a sub-process")


def _connections(process: Process, node: FlowNode) -> Iterator[Problem]:
    if node.incoming and isinstance(node, StartEvent | BoundaryEvent):
        yield problem("incoming_flow", node, f"has an incoming flow, '{node.incoming[0]}'; none may lead to it")
    if node.outgoing and isinstance(node, EndEvent):
        yield problem("outgoing_flow", node, f"has an outgoing flow, '{node.outgoing[0]}'; none may leave it")
    if isinstance(node, Activity):
        flows = (*node.incoming, *node.outgoing)
        if flows and node.for_compensation:
            yield problem("handler_flow", node, f"is a compensation handler, and the flow '{flows[0]}' touches it")
        elif flows and isinstance(node, SubProcess) and node.kind == "event":
            yield problem("handler_flow", node, f"is an event sub-process, and the flow '{flows[0]}' touches it")
    if isinstance(node, BoundaryEvent):
        yield from _attachment(process, node)


def _attachment(process: Process, node: BoundaryEvent) -> Iterator[Problem]:
    host = process.nodes.get(node.attached_to)
    if host is None:
        yield problem("unknown_attachment", node, _end("is attached to", node.attached_to))
    elif not isinstance(host, Activity):
        yield problem("unknown_attachment", node, f"is attached to {described(host)}, which is not an activity")
    elif host.scope != node.scope:
        yield problem("unknown_attachment", node, f"is attached to {described(host)}, which lies in another scope")
    elif isinstance(host, SubProcess) and host.kind == "event":
        yield problem("wrong_attachment", node, f"is attached to {described(host)}, an event sub-process")


def _flow(process: Process, flow: SequenceFlow) -> Iterator[Problem]:
    source, target = process.nodes.get(flow.source), process.nodes.get(flow.target)
    if source is None:
        yield problem("unknown_source", flow, _end("comes from", flow.source))
    if target is None:
        yield problem("unknown_target", flow, _end("leads to", flow.target))
    if source is not None and target is not None and source.scope != target.scope:
        yield problem(
            "crosses_scopes", flow, f"crosses the border of a sub-process, from '{source.id}' to '{target.id}'"
        )


def _end(verb: str, node_id: str) -> str:
    return f"{verb} '{node_id}', which does not exist" if node_id else f"{verb} nothing"


def _defaults(process: Process) -> Iterator[Problem]:
    for node in process.nodes.values():
        marked = [flow for flow in node.outgoing if flow in process.flows and process.flows[flow].default]
        if len(marked) > 1:
            yield problem("several_defaults", node, f"has several default flows: {', '.join(marked)}")
        named = node.default if isinstance(node, Choice) else ""
        if named and named not in marked:
            yield problem("unknown_default", node, f"has the default flow '{named}', which does not leave it")


# --- activities --------------------------------------------------------------------------------------------------


def _activity(node: Activity) -> Iterator[Problem]:
    if isinstance(node, ReceiveTask) or (isinstance(node, WorkTask) and not node.topic):
        yield from message_problems(node, node.message)
    elif isinstance(node, CallActivity) and not node.called.text.strip():
        yield problem("missing_called", node, "names no process to call")
    elif isinstance(node, DecisionTask) and not node.decision.text.strip():
        yield problem("missing_decision", node, "names no decision to evaluate")
    if isinstance(node, CallActivity | DecisionTask) and node.binding == "version" and node.version < 1:
        yield problem("missing_version", node, "is bound to a version and names none")
    if isinstance(node.loop, MultiInstance):
        yield from _iteration(node, node.loop)


def _iteration(node: Activity, loop: MultiInstance) -> Iterator[Problem]:
    if loop.cardinality is None and loop.collection is None:
        yield problem("missing_collection", node, "is multi-instance, with neither a collection nor a cardinality")
    elif loop.cardinality is not None and loop.collection is not None:
        yield problem("two_counts", node, "is multi-instance, with a collection and a cardinality: only one is asked")
    if loop.output_item is not None and not loop.output_collection:
        yield problem("missing_collection", node, "has an output element and no output collection")
    wanted = {"none": 1, "one": 1, "all": 0, "complex": len(loop.conditions)}[loop.behavior]
    if len(loop.events) != wanted or (loop.behavior == "complex" and not wanted):
        yield problem("wrong_behavior", node, f"has the behaviour {loop.behavior}, with {len(loop.events)} events")


def _boundaries(process: Process) -> Iterator[Problem]:
    """One handler an activity (S84), one cancel a transaction."""
    counted: Counter[tuple[str, str]] = Counter()
    for node in process.nodes.values():
        if not isinstance(node, BoundaryEvent):
            continue
        for kind in {definition.type for definition in node.definitions} & {"compensate", "cancel"}:
            counted[node.attached_to, kind] += 1
            if counted[node.attached_to, kind] == 2:
                yield problem(f"several_{kind}", node, f"is the second {kind} event on '{node.attached_to}'")


# --- sub-processes and gateways ----------------------------------------------------------------------------------


def _sub_processes(process: Process) -> Iterator[Problem]:
    starts: dict[str, list[StartEvent]] = {}
    for node in process.nodes.values():
        if isinstance(node, StartEvent):
            starts.setdefault(node.scope, []).append(node)
        outside = process.nodes.get(node.scope)
        if isinstance(outside, SubProcess) and outside.kind == "adhoc" and isinstance(node, StartEvent | EndEvent):
            yield problem("adhoc_event", node, f"lies in {described(outside)}, which is ad-hoc and has no such event")
    for node in process.nodes.values():
        if not isinstance(node, SubProcess) or node.kind != "event":
            continue
        inside = starts.get(node.id, [])
        if len(inside) != 1:
            yield problem(
                "event_start", node, f"is an event sub-process with {len(inside)} start events; one begins it"
            )
        elif not inside[0].definitions:
            yield problem("event_start", inside[0], f"begins {described(node)}, and says no event that it waits for")
        if node.loop is not None or node.for_compensation:
            yield problem("event_loop", node, "is an event sub-process: it can neither loop nor be a handler")


def _event_gateway(process: Process, gateway: EventBasedGateway, guarded: Set[str]) -> Iterator[Problem]:
    if not gateway.outgoing:
        yield problem("event_gateway_arm", gateway, "has no outgoing flow: it would wait for nothing")
    if gateway.parallel and not gateway.instantiate:
        yield problem("wrong_gateway", gateway, "is parallel and does not instantiate: a parallel catch says that")
    if gateway.instantiate:
        if gateway.incoming:
            yield problem("incoming_flow", gateway, f"begins its process, and '{gateway.incoming[0]}' leads to it")
        if gateway.scope != process.id:
            yield problem("wrong_gateway", gateway, "begins a process, and lies in a sub-process")
    for flow_id in gateway.outgoing:
        target = process.nodes.get(process.flows[flow_id].target) if flow_id in process.flows else None
        if target is None:
            continue
        if not isinstance(target, CatchEvent | ReceiveTask) or _is_link(target):
            yield problem(
                "event_gateway_arm", gateway, f"leads to {described(target)}, which is no catch event or receive task"
            )
        elif len(target.incoming) > 1:
            yield problem("event_gateway_arm", gateway, f"leads to {described(target)}, which other flows reach too")
        elif target.id in guarded:
            yield problem("event_gateway_arm", gateway, f"leads to {described(target)}, which has a boundary event")
        elif isinstance(target, ReceiveTask) and target.loop is not None:
            yield problem("event_gateway_arm", gateway, f"leads to {described(target)}, which loops")


def _is_link(node: FlowNode) -> bool:
    return isinstance(node, CatchEvent) and any(isinstance(each, LinkDefinition) for each in node.definitions)
