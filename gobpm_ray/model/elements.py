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

from gobpm_ray.model.data import DataElement, DataStore, ItemType


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
class CorrelationProperty:
    """One of several keys of a conversation. An instance learns it, once, from the first message that brings it, or has
    it from its own data."""

    name: str
    path: Expression | None = None
    """Reads it from a message's payload when it is received, and in the thrower's scope when it is sent."""
    data: Expression | None = None
    """Reads it in the catcher's scope, as long as no message has brought it."""


@dataclass(frozen=True, slots=True)
class MessageDefinition:
    """`name` is the message's name, not its XML id. `key` is the correlation key's expression, evaluated in the
    catcher's scope when the wait is armed, and in the thrower's scope when it is sent; None: correlated by name
    alone."""

    type: Literal["message"] = "message"
    name: str = ""
    key: Expression | None = None
    properties: tuple[CorrelationProperty, ...] = ()
    """In place of a key: several, each of which routes (BPMN 8.4.2)."""
    item: ItemType | None = None
    """What its payload must be."""


@dataclass(frozen=True, slots=True)
class SignalDefinition:
    type: Literal["signal"] = "signal"
    name: str = ""


@dataclass(frozen=True, slots=True)
class TerminateDefinition:
    type: Literal["terminate"] = "terminate"


@dataclass(frozen=True, slots=True)
class ErrorDefinition:
    """`code` '' catches every error; a throw always has one."""

    type: Literal["error"] = "error"
    code: str = ""


@dataclass(frozen=True, slots=True)
class EscalationDefinition:
    """`code` '' catches every escalation."""

    type: Literal["escalation"] = "escalation"
    code: str = ""


@dataclass(frozen=True, slots=True)
class ConditionalDefinition:
    """Fires when `condition` goes from false to true; true when armed fires at once."""

    type: Literal["conditional"] = "conditional"
    condition: Expression = field(default=Expression("false"))


@dataclass(frozen=True, slots=True)
class CompensateDefinition:
    """`activity` '' throws for everything completed in the scope; on a boundary event it is ''."""

    type: Literal["compensate"] = "compensate"
    activity: str = ""


@dataclass(frozen=True, slots=True)
class CancelDefinition:
    type: Literal["cancel"] = "cancel"


@dataclass(frozen=True, slots=True)
class LinkDefinition:
    """A throw with this name goes on at the catch of the same name and scope."""

    type: Literal["link"] = "link"
    name: str = ""


EventDefinition = Annotated[
    TimerDefinition
    | MessageDefinition
    | SignalDefinition
    | TerminateDefinition
    | ErrorDefinition
    | EscalationDefinition
    | ConditionalDefinition
    | CompensateDefinition
    | CancelDefinition
    | LinkDefinition,
    Field(discriminator="type"),
]


# --- loops (BPMN 10.3.8) ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StandardLoop:
    """Repeats while `condition` holds (None: for ever, up to `maximum`); tested before each round or after it."""

    type: Literal["standardLoop"] = "standardLoop"
    condition: Expression | None = None
    test_before: bool = False
    maximum: Expression | None = None


@dataclass(frozen=True, slots=True)
class MultiInstance:
    """One body per item of `collection`, or `cardinality` bodies; one of the two is given.

    A body sees its item as `item_variable` and `loopCounter` (from 1). `output_item` is evaluated as each body ends and
    collected, in the order of the items, in the variable `output_collection` of the surrounding scope."""

    type: Literal["multiInstance"] = "multiInstance"
    sequential: bool = False
    cardinality: Expression | None = None
    collection: Expression | None = None
    item_variable: str = ""
    output_collection: str = ""
    output_item: Expression | None = None
    completion: Expression | None = None
    """Evaluated after each body; true ends the rest."""
    behavior: Literal["none", "one", "all", "complex"] = "all"
    """When the activity throws its events while bodies complete (BPMN 13.3.7); `all` throws none."""
    events: tuple[str, ...] = ()
    """`one`/`none`: the signal or message event's name; `complex`: parallel to `conditions`."""
    conditions: tuple[Expression, ...] = ()


Loop = Annotated[StandardLoop | MultiInstance, Field(discriminator="type")]


@dataclass(frozen=True, slots=True)
class Mapping:
    """One input or output mapping: `target` takes the value of `source`. Without mappings a task sees its whole
    scope, and every output becomes a variable of the task's scope."""

    target: str
    source: Expression
    stores: tuple[str, ...] = ()
    """Data stores whose values the source sees, each under its name."""
    to_store: bool = False
    """Of an output: the target is the data store of this name, written in the commit of the step itself."""


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
    dehydration_threshold: str = ""
    """A duration: its instance stays resident while a deadline of this element is nearer than that; '' : the engine's
    setting."""


@dataclass(frozen=True, slots=True)
class _Activity(_Node):
    loop: Loop | None = None
    for_compensation: bool = False
    """A compensation handler: outside the normal flow, run by a compensation alone."""


@dataclass(frozen=True, slots=True)
class StartEvent(_Node):
    type: Literal["startEvent"] = "startEvent"
    definitions: tuple[EventDefinition, ...] = ()
    interrupting: bool = True
    """Of an event sub-process."""
    parallel_multiple: bool = False
    """All of its definitions must occur, not any one."""


@dataclass(frozen=True, slots=True)
class EndEvent(_Node):
    type: Literal["endEvent"] = "endEvent"
    definitions: tuple[EventDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class CatchEvent(_Node):
    type: Literal["intermediateCatchEvent"] = "intermediateCatchEvent"
    definitions: tuple[EventDefinition, ...] = ()
    parallel_multiple: bool = False


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
    parallel_multiple: bool = False
    handler: str = ""
    """Compensation boundaries: the activity that the association leads to."""


@dataclass(frozen=True, slots=True)
class AbstractTask(_Activity):
    """A task without a type, and a manual task: both pass at once (the engine has no part in them)."""

    type: Literal["task", "manualTask"] = "task"


@dataclass(frozen=True, slots=True)
class CustomTask(_Activity):
    """An element of the user's own: `element` names the family that executes it (`gobpm_ray.core.nodes.custom`), which
    reads the parameters as operands."""

    type: Literal["customTask"] = "customTask"
    element: str = ""
    parameters: tuple[Mapping, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkTask(_Activity):
    """A service or send task: work done by a callable. `topic` is the name that a callable is registered under
    (Zeebe job type, Camunda topic, or this engine's `callable` attribute); empty: the node's id is tried."""

    type: Literal["serviceTask", "sendTask", "businessRuleTask"] = "serviceTask"
    topic: str = ""
    idempotent: bool = False
    message: MessageDefinition | None = None
    """A send task with a message and no topic sends it, like a throw event."""
    result_variable: str = ""
    retries: Expression | None = None
    """How often a failed attempt is repeated (`gobpm_ray.calendar.retries`); None: the engine's default."""
    timeout: Expression | None = None
    """How long an attempt of a callable is waited for; a Ray task is cancelled then. None: as long as it takes."""
    ray_options: tuple[tuple[str, str], ...] = ()
    """The callable runs as a Ray task of its own with these options: name -> JSON text. Empty: in the host."""


@dataclass(frozen=True, slots=True)
class DecisionTask(_Activity):
    """A business rule task that evaluates a decision of a deployed DMN file."""

    type: Literal["decisionTask"] = "decisionTask"
    decision: Expression = field(default=Expression("", LITERAL))
    binding: Literal["latest", "deployment", "version"] = "latest"
    version: int = 0
    result_variable: str = ""


@dataclass(frozen=True, slots=True)
class ScriptTask(_Activity):
    type: Literal["scriptTask"] = "scriptTask"
    script: Expression = field(default=Expression("null"))
    result_variable: str = ""


@dataclass(frozen=True, slots=True)
class UserTask(_Activity):
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
class ReceiveTask(_Activity):
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
class InclusiveGateway(_Node):
    type: Literal["inclusiveGateway"] = "inclusiveGateway"
    default: str = ""


@dataclass(frozen=True, slots=True)
class ComplexGateway(_Node):
    """`activation`, over `activationCount` and the incoming flows' counts, says when it opens; None: at the first
    token."""

    type: Literal["complexGateway"] = "complexGateway"
    default: str = ""
    activation: Expression | None = None


@dataclass(frozen=True, slots=True)
class EventBasedGateway(_Node):
    """`parallel` and `instantiate` as in BPMN 10.6.6: an instantiating gateway starts its process."""

    type: Literal["eventBasedGateway"] = "eventBasedGateway"
    parallel: bool = False
    instantiate: bool = False


@dataclass(frozen=True, slots=True)
class SubProcess(_Activity):
    """A sub-process; its nodes carry its id as their `scope`. `event`: triggered by its start event."""

    type: Literal["subProcess"] = "subProcess"
    kind: Literal["embedded", "event", "transaction", "adhoc"] = "embedded"
    ordering: Literal["parallel", "sequential"] = "parallel"
    """Ad-hoc only, as the two below."""
    completion: Expression | None = None
    cancel_remaining: bool = True


@dataclass(frozen=True, slots=True)
class CallActivity(_Activity):
    """Calls another process as an instance of its own. Without input mappings the child gets all variables of the
    caller's scope, without output mappings the caller gets all of the child's, unless `inherit` / `propagate` say no.
    """

    type: Literal["callActivity"] = "callActivity"
    called: Expression = field(default=Expression("", LITERAL))
    binding: Literal["latest", "deployment", "version"] = "latest"
    version: int = 0
    inherit: bool = True
    propagate: bool = True
    business_key: Expression | None = None


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
    | InclusiveGateway
    | ComplexGateway
    | DecisionTask
    | SubProcess
    | CallActivity
    | CustomTask,
    Field(discriminator="type"),
]
Activity = (
    AbstractTask
    | WorkTask
    | DecisionTask
    | ScriptTask
    | UserTask
    | ReceiveTask
    | SubProcess
    | CallActivity
    | CustomTask
)
Event = StartEvent | EndEvent | CatchEvent | ThrowEvent | BoundaryEvent
Choice = ExclusiveGateway | InclusiveGateway | ComplexGateway
"""Gateways with a default flow."""


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
    secrets: tuple[str, ...] = ()
    """Names of variables whose values nobody is shown (`gobpm_ray.core.secrets`)."""
    data: tuple[DataElement, ...] = ()
    """Its data objects and properties, of every nesting level, and what else has a type."""
    stores: tuple[DataStore, ...] = ()
    """The data stores that it refers to."""


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
