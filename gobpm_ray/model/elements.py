"""What a process is: frozen values, one class per BPMN element family; no behaviour, no XML, no execution.

A `Process` is flat: nodes and flows of every nesting level stand in one table each, and a node names the scope it
lies in (`scope`: the id of its sub-process, or the process id). Reading order is preserved: tables iterate in
document order. Both the XML reader and the Python builder produce these values, and `gobpm_ray.model.document`
gives them a durable JSON form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as written, and the language that reads it (`gobpm_ray.expressions`)."""

    text: str
    language: str = "feel"


LITERAL = "literal"
"""The pseudo-language of a constant that stands where an expression could, e.g. a timer's plain `P7D`."""


def literal(text: str) -> Expression:
    """The constant `text`, in a place that also takes expressions."""
    return Expression(text, LITERAL)


# --- event definitions (BPMN 10.5.5) ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimerDefinition:
    type: Literal["timer"] = "timer"
    kind: Literal["date", "duration", "cycle"] = "duration"
    value: Expression = field(default=Expression("PT0S", LITERAL))


@dataclass(frozen=True, slots=True)
class MessageDefinition:
    """`name` is the message's name, not its XML id. `key` is the correlation key's expression, evaluated in the
    catcher's scope when the wait is armed, and in the thrower's scope when it is sent; None: correlated by name
    alone."""

    type: Literal["message"] = "message"
    name: str = ""
    key: Expression | None = None


@dataclass(frozen=True, slots=True)
class SignalDefinition:
    type: Literal["signal"] = "signal"
    name: str = ""


@dataclass(frozen=True, slots=True)
class TerminateDefinition:
    type: Literal["terminate"] = "terminate"


EventDefinition = Annotated[
    TimerDefinition | MessageDefinition | SignalDefinition | TerminateDefinition, Field(discriminator="type")
]


@dataclass(frozen=True, slots=True)
class Mapping:
    """One input or output mapping: `target` takes the value of `source`. Without mappings a task sees its whole
    scope, and every output becomes a variable of the task's scope."""

    target: str
    source: Expression


# --- flow nodes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Node:
    id: str
    name: str = ""
    scope: str = ""
    """Id of the sub-process it lies in, or of the process."""
    incoming: tuple[str, ...] = ()
    outgoing: tuple[str, ...] = ()
    line: int = 0
    """Source line in the XML, 0 when built."""
    inputs: tuple[Mapping, ...] = ()
    outputs: tuple[Mapping, ...] = ()


@dataclass(frozen=True, slots=True)
class StartEvent(_Node):
    type: Literal["startEvent"] = "startEvent"
    definitions: tuple[EventDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class EndEvent(_Node):
    type: Literal["endEvent"] = "endEvent"
    definitions: tuple[EventDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class CatchEvent(_Node):
    type: Literal["intermediateCatchEvent"] = "intermediateCatchEvent"
    definitions: tuple[EventDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class ThrowEvent(_Node):
    """An intermediate throw; without a definition it is a none event and passes at once."""

    type: Literal["intermediateThrowEvent"] = "intermediateThrowEvent"
    definitions: tuple[EventDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundaryEvent(_Node):
    type: Literal["boundaryEvent"] = "boundaryEvent"
    definitions: tuple[EventDefinition, ...] = ()
    attached_to: str = ""
    interrupting: bool = True


@dataclass(frozen=True, slots=True)
class AbstractTask(_Node):
    """A task without a type, and a manual task: both pass at once (the engine has no part in them)."""

    type: Literal["task", "manualTask"] = "task"


@dataclass(frozen=True, slots=True)
class WorkTask(_Node):
    """A service or send task: work done by a callable. `topic` is the name that a callable is registered under
    (Zeebe job type, Camunda topic, or this engine's `callable` attribute); empty: the node's id is tried."""

    type: Literal["serviceTask", "sendTask"] = "serviceTask"
    topic: str = ""
    idempotent: bool = False
    message: MessageDefinition | None = None
    """A send task with a message and no topic sends it, like a throw event."""
    result_variable: str = ""


@dataclass(frozen=True, slots=True)
class ScriptTask(_Node):
    type: Literal["scriptTask"] = "scriptTask"
    script: Expression = field(default=Expression("null"))
    result_variable: str = ""


@dataclass(frozen=True, slots=True)
class UserTask(_Node):
    """Assignment operands are evaluated once, when the task is created, and frozen (H58)."""

    type: Literal["userTask"] = "userTask"
    assignee: Expression | None = None
    candidate_users: Expression | None = None
    candidate_groups: Expression | None = None
    due: Expression | None = None
    follow_up: Expression | None = None
    priority: Expression | None = None
    form: str = ""
    required_outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReceiveTask(_Node):
    type: Literal["receiveTask"] = "receiveTask"
    message: MessageDefinition = field(default=MessageDefinition())
    instantiate: bool = False


@dataclass(frozen=True, slots=True)
class ExclusiveGateway(_Node):
    type: Literal["exclusiveGateway"] = "exclusiveGateway"
    default: str = ""


@dataclass(frozen=True, slots=True)
class ParallelGateway(_Node):
    type: Literal["parallelGateway"] = "parallelGateway"


@dataclass(frozen=True, slots=True)
class EventBasedGateway(_Node):
    type: Literal["eventBasedGateway"] = "eventBasedGateway"


@dataclass(frozen=True, slots=True)
class SubProcess(_Node):
    """An embedded sub-process; its nodes carry its id as their `scope`."""

    type: Literal["subProcess"] = "subProcess"


FlowNode = Annotated[
    StartEvent
    | EndEvent
    | CatchEvent
    | ThrowEvent
    | BoundaryEvent
    | AbstractTask
    | WorkTask
    | ScriptTask
    | UserTask
    | ReceiveTask
    | ExclusiveGateway
    | ParallelGateway
    | EventBasedGateway
    | SubProcess,
    Field(discriminator="type"),
]
Activity = AbstractTask | WorkTask | ScriptTask | UserTask | ReceiveTask | SubProcess


@dataclass(frozen=True, slots=True)
class SequenceFlow:
    id: str
    source: str
    target: str
    name: str = ""
    condition: Expression | None = None
    default: bool = False
    """It is the default flow of its source (exclusive gateway or activity): taken when no condition holds."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Process:
    """One executable process. `nodes` and `flows` are in document order, keyed by id."""

    id: str
    name: str = ""
    executable: bool = True
    nodes: dict[str, FlowNode] = field(default_factory=dict)
    flows: dict[str, SequenceFlow] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of a reader or the linter. `code` is stable, `element` an id ('' for the file)."""

    code: str
    element: str
    message: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Definitions:
    """All that one file or builder gives: its processes, in order, and what was accepted with a warning."""

    processes: tuple[Process, ...] = ()
    warnings: tuple[Problem, ...] = ()

    def process(self, process_id: str) -> Process | None:
        return next((p for p in self.processes if p.id == process_id), None)
