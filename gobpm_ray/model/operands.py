"""Every expression of a model: where it stands, what it is for, and whether its language can read it."""

from __future__ import annotations

from collections.abc import Iterator

from gobpm_ray.errors import ExpressionError
from gobpm_ray.model.elements import (
    LITERAL,
    Activity,
    CallActivity,
    ComplexGateway,
    ConditionalDefinition,
    CustomTask,
    DecisionTask,
    Event,
    Expression,
    FlowNode,
    Loop,
    MessageDefinition,
    Problem,
    Process,
    ReceiveTask,
    ScriptTask,
    SequenceFlow,
    StandardLoop,
    SubProcess,
    TimerDefinition,
    UserTask,
    WorkTask,
)
from gobpm_ray.model.problems import problem

Used = Iterator[tuple[str, Expression | None]]


def expressions(process: Process) -> Iterator[tuple[FlowNode | SequenceFlow, str, Expression]]:
    """Every operand that is not a constant: its element, what it is for, and itself."""
    for node in process.nodes.values():
        for use, operand in _operands(node):
            if operand is not None and operand.language != LITERAL:
                yield node, use, operand
    for flow in process.flows.values():
        if flow.condition is not None and flow.condition.language != LITERAL:
            yield flow, "condition", flow.condition


def _operands(node: FlowNode) -> Used:
    yield from ((f"input '{mapping.target}'", mapping.source) for mapping in node.inputs)
    yield from ((f"output '{mapping.target}'", mapping.source) for mapping in node.outputs)
    if isinstance(node, Activity):
        yield from _of_loop(node.loop)
    if isinstance(node, Event):
        for definition in node.definitions:
            if isinstance(definition, TimerDefinition):
                yield "timer", definition.value
            elif isinstance(definition, MessageDefinition):
                yield from _of_message(definition)
            elif isinstance(definition, ConditionalDefinition) and definition.condition.text.strip():
                yield "condition", definition.condition
    elif isinstance(node, ReceiveTask):
        yield from _of_message(node.message)
    elif isinstance(node, CustomTask):
        yield from ((f"parameter '{each.target}'", each.source) for each in node.parameters)
    elif isinstance(node, WorkTask):
        yield from () if node.message is None else _of_message(node.message)
        yield "retry policy", node.retries
        yield "timeout", node.timeout
    elif isinstance(node, ScriptTask):
        yield "script", node.script
    elif isinstance(node, UserTask):
        yield "assignee", node.assignee
        yield "candidate users", node.candidate_users
        yield "candidate groups", node.candidate_groups
        yield "due date", node.due
        yield "follow-up date", node.follow_up
        yield "priority", node.priority
    elif isinstance(node, CallActivity):
        yield "called process", node.called
        yield "business key", node.business_key
    elif isinstance(node, DecisionTask):
        yield "decision", node.decision
    elif isinstance(node, SubProcess):
        yield "completion condition", node.completion
    elif isinstance(node, ComplexGateway):
        yield "activation condition", node.activation


def _of_message(message: MessageDefinition) -> Used:
    yield "correlation key", message.key
    for each in message.properties:
        yield f"correlation property '{each.name}'", each.path
        yield f"correlation property '{each.name}'", each.data


def _of_loop(loop: Loop | None) -> Used:
    if isinstance(loop, StandardLoop):
        yield "loop condition", loop.condition
        yield "loop maximum", loop.maximum
    elif loop is not None:
        yield "loop cardinality", loop.cardinality
        yield "loop collection", loop.collection
        yield "output element", loop.output_item
        yield "completion condition", loop.completion
        yield from (("behaviour condition", condition) for condition in loop.conditions)


def expression_problems(process: Process) -> Iterator[Problem]:
    """Every expression that does not compile; each distinct one is compiled once."""
    verdicts: dict[tuple[Expression, bool], str] = {}
    for element, use, expression in expressions(process):
        key = (expression, isinstance(element, ScriptTask) and use == "script")
        if key not in verdicts:
            verdicts[key] = _compiles(*key)
        if verdict := verdicts[key]:
            yield problem("expression", element, f"has a {use} that cannot be read: {verdict}")


def _compiles(expression: Expression, script: bool) -> str:
    """'' or why not. A script task's Python is statements; every other operand is one expression."""
    # The one import downwards that costs: only who validates pays for the languages.
    from gobpm_ray.expressions import compile_expression, compile_script

    compiler = compile_script if script and expression.language == "python" else compile_expression
    try:
        compiler(expression.text, expression.language)
    except ExpressionError as wrong:
        return " ".join(str(wrong).split())
    return ""
