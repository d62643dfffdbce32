"""What must hold for a process to be executed: every finding names the element, with the line where there is one.

Shared by the XML reader and the builder, so that both refuse the same models for the same reasons. It knows structure,
literal timers and that expressions compile; what merely looks wrong is `gobpm_ray.model.lint`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gobpm_ray.calendar.timers import parse_cycle, parse_date, parse_duration
from gobpm_ray.errors import ExpressionError, GobpmError, InvalidModel
from gobpm_ray.model.elements import (
    LITERAL,
    Activity,
    BoundaryEvent,
    CatchEvent,
    EndEvent,
    EventBasedGateway,
    EventDefinition,
    ExclusiveGateway,
    Expression,
    FlowNode,
    MessageDefinition,
    Problem,
    Process,
    ReceiveTask,
    ScriptTask,
    SequenceFlow,
    SignalDefinition,
    StartEvent,
    SubProcess,
    ThrowEvent,
    TimerDefinition,
    UserTask,
    WorkTask,
)

Event = StartEvent | EndEvent | CatchEvent | ThrowEvent | BoundaryEvent

_ALLOWED: dict[str, tuple[str, ...]] = {
    "startEvent": ("message", "timer", "signal"),
    "endEvent": ("message", "signal", "terminate"),
    "intermediateCatchEvent": ("message", "timer", "signal"),
    "intermediateThrowEvent": ("message", "signal"),
    "boundaryEvent": ("message", "timer", "signal"),
}
_NEEDS_DEFINITION = ("intermediateCatchEvent", "boundaryEvent")
_LITERAL_TIMERS: dict[str, Callable[[str], object]] = {
    "date": parse_date,
    "duration": parse_duration,
    "cycle": parse_cycle,
}

STRUCTURE = frozenset({"duplicate_id", "unknown_source", "unknown_target", "crosses_scopes", "unknown_attachment"})
"""Codes of faults that no diagram means: a document with one is broken, not merely unfinished."""


def validate(process: Process) -> tuple[Problem, ...]:
    """Every reason why the process cannot be executed; empty when it can. Expressions are compiled here, once each."""
    problems: list[Problem] = []
    if not process.nodes:
        problems.append(Problem("empty_process", process.id, f"process '{process.id}' has no flow nodes", process.line))
    for key, node in process.nodes.items():
        problems.extend(_identity(process, key, node))
        problems.extend(_connections(process, node))
        if isinstance(node, Event):
            problems.extend(_event(process, node))
        elif isinstance(node, ReceiveTask):
            problems.extend(_message(node, node.message))
        elif isinstance(node, EventBasedGateway):
            problems.extend(_arms(process, node))
        elif isinstance(node, WorkTask) and node.message is not None and not node.topic:
            problems.extend(_message(node, node.message))
    for flow in process.flows.values():
        problems.extend(_flow(process, flow))
    problems.extend(_defaults(process))
    problems.extend(_expressions(process))
    return tuple(problems)


def require_valid(process: Process, name: str) -> Process:
    """The process itself, or `InvalidModel` with one line that begins with `name` and every problem attached."""
    if problems := validate(process):
        raise invalid(name, problems)
    return process


def invalid(name: str, problems: tuple[Problem, ...]) -> InvalidModel:
    """The exception whose one line gives the first problem and counts the others."""
    rest = len(problems) - 1
    more = f" (and {rest} more problem{'s' if rest > 1 else ''})" if rest else ""
    return InvalidModel(f"{name}: {problems[0].message}{more}", problems)


def described(element: FlowNode | SequenceFlow) -> str:
    """Kind, id and line, as every message names an element."""
    kind = "sequenceFlow" if isinstance(element, SequenceFlow) else element.type
    return f"{kind} '{element.id}'" + (f" (line {element.line})" if element.line else "")


def problem(code: str, element: FlowNode | SequenceFlow, message: str) -> Problem:
    """A finding whose message begins with the element: `startEvent 'x' (line 4) has an incoming flow`."""
    return Problem(code, element.id, " ".join(f"{described(element)} {message}".split()), element.line)


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
    if isinstance(node, BoundaryEvent):
        host = process.nodes.get(node.attached_to)
        if host is None:
            yield problem("unknown_attachment", node, _end("is attached to", node.attached_to))
        elif not isinstance(host, Activity):
            yield problem("unknown_attachment", node, f"is attached to {described(host)}, which is not an activity")
        elif host.scope != node.scope:
            yield problem("unknown_attachment", node, f"is attached to {described(host)}, which lies in another scope")


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
        if isinstance(node, ExclusiveGateway) and node.default and node.default not in marked:
            yield problem("unknown_default", node, f"has the default flow '{node.default}', which does not leave it")


# --- events ------------------------------------------------------------------------------------------------------


def _event(process: Process, event: Event) -> Iterator[Problem]:
    if len(event.definitions) > 1:
        kinds = ", ".join(definition.type for definition in event.definitions)
        yield problem("unsupported", event, f"has several event definitions ({kinds}), which is not supported yet")
    if not event.definitions and event.type in _NEEDS_DEFINITION:
        yield problem("missing_definition", event, "has no event definition: what it waits for is not said")
    for definition in event.definitions:
        if definition.type not in _ALLOWED[event.type]:
            yield problem("wrong_definition", event, f"cannot have a {definition.type} event definition")
        elif isinstance(event, StartEvent) and event.scope != process.id:
            message = f"starts an embedded sub-process, so it cannot wait for a {definition.type}"
            yield problem("wrong_definition", event, message)
        else:
            yield from _definition(event, definition)


def _definition(event: Event, definition: EventDefinition) -> Iterator[Problem]:
    if isinstance(definition, MessageDefinition):
        yield from _message(event, definition)
    elif isinstance(definition, SignalDefinition) and not definition.name:
        yield problem("missing_signal", event, "names no signal")
    elif isinstance(definition, TimerDefinition):
        yield from _timer(event, definition)


def _message(node: FlowNode, message: MessageDefinition) -> Iterator[Problem]:
    if not message.name:
        yield problem("missing_message", node, "names no message")


def _timer(event: Event, timer: TimerDefinition) -> Iterator[Problem]:
    if not timer.value.text.strip():
        yield problem("missing_timer", event, "has a timer without a date, duration or cycle")
    elif timer.value.language == LITERAL:
        try:
            _LITERAL_TIMERS[timer.kind](timer.value.text)
        except GobpmError as wrong:
            yield problem("invalid_timer", event, f"has a timer that cannot be read: {wrong}")


def _arms(process: Process, gateway: EventBasedGateway) -> Iterator[Problem]:
    if not gateway.outgoing:
        yield problem("event_gateway_arm", gateway, "has no outgoing flow: it would wait for nothing")
    guarded = {node.attached_to for node in process.nodes.values() if isinstance(node, BoundaryEvent)}
    for flow_id in gateway.outgoing:
        target = process.nodes.get(process.flows[flow_id].target) if flow_id in process.flows else None
        if target is None:
            continue
        if not isinstance(target, CatchEvent | ReceiveTask):
            yield problem(
                "event_gateway_arm", gateway, f"leads to {described(target)}, which is no catch event or receive task"
            )
        elif len(target.incoming) > 1:
            yield problem("event_gateway_arm", gateway, f"leads to {described(target)}, which other flows reach too")
        elif target.id in guarded:
            yield problem("event_gateway_arm", gateway, f"leads to {described(target)}, which has a boundary event")


# --- expressions -------------------------------------------------------------------------------------------------


def expressions(process: Process) -> Iterator[tuple[FlowNode | SequenceFlow, str, Expression]]:
    """Every operand that is not a constant: its element, what it is for, and itself."""
    for node in process.nodes.values():
        for use, operand in _operands(node):
            if operand is not None and operand.language != LITERAL:
                yield node, use, operand
    for flow in process.flows.values():
        if flow.condition is not None and flow.condition.language != LITERAL:
            yield flow, "condition", flow.condition


def _operands(node: FlowNode) -> Iterator[tuple[str, Expression | None]]:
    yield from ((f"input '{mapping.target}'", mapping.source) for mapping in node.inputs)
    yield from ((f"output '{mapping.target}'", mapping.source) for mapping in node.outputs)
    if isinstance(node, Event):
        for definition in node.definitions:
            if isinstance(definition, TimerDefinition):
                yield "timer", definition.value
            elif isinstance(definition, MessageDefinition):
                yield "correlation key", definition.key
    elif isinstance(node, ReceiveTask | WorkTask):
        yield "correlation key", node.message.key if node.message is not None else None
    elif isinstance(node, ScriptTask):
        yield "script", node.script
    elif isinstance(node, UserTask):
        yield from (
            ("assignee", node.assignee),
            ("candidate users", node.candidate_users),
            ("candidate groups", node.candidate_groups),
            ("due date", node.due),
            ("follow-up date", node.follow_up),
            ("priority", node.priority),
        )


def _expressions(process: Process) -> Iterator[Problem]:
    verdicts: dict[tuple[Expression, bool], str] = {}
    for element, use, expression in expressions(process):
        key = (expression, isinstance(element, ScriptTask) and use == "script")
        if key not in verdicts:
            verdicts[key] = _compiles(*key)
        if verdict := verdicts[key]:
            yield problem("expression", element, f"has a {use} that cannot be read: {verdict}")


def _compiles(expression: Expression, script: bool) -> str:
    """'' or why not. A script task's Python is statements; every other operand is one expression."""
    # The one import upwards: the compiler lies above the model, and a bad condition must be found before it is met.
    from gobpm_ray.expressions import compile_expression, compile_script

    compiler = compile_script if script and expression.language == "python" else compile_expression
    try:
        compiler(expression.text, expression.language)
    except ExpressionError as wrong:
        return " ".join(str(wrong).split())
    return ""
