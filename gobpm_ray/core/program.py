"""A process made ready to run: adjacency, starts, boundaries and compiled expressions, each looked up once.

A `Program` is immutable and shared by every instance of its definition on a host. It knows how elements hang together
and which family executes each; it knows nothing of an instance, and whether the model is valid was asked before
(`gobpm_ray.model.validate`): here only what cannot be compiled at all is refused.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Protocol, TypeVar

from gobpm_ray.calendar.durations import add_duration, parse_duration
from gobpm_ray.core import shapes, wiring
from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.core.nodes import ITERATIONS, family_of
from gobpm_ray.core.nodes.family import Dehydratable, Family
from gobpm_ray.core.operands import (
    Binding,
    Cancel,
    Compensate,
    Conditional,
    Definition,
    Error,
    Escalation,
    Link,
    Message,
    Operand,
    Property,
    Signal,
    StoreShape,
    Terminate,
    Timer,
)
from gobpm_ray.core.reachability import upstream
from gobpm_ray.core.shapes import Shape
from gobpm_ray.core.state import Track
from gobpm_ray.errors import ExpressionError, GobpmError, InvalidModel
from gobpm_ray.expressions import compile_expression, compile_script
from gobpm_ray.model.elements import (
    LITERAL,
    Activity,
    BoundaryEvent,
    CancelDefinition,
    Choice,
    CompensateDefinition,
    ConditionalDefinition,
    CorrelationProperty,
    CustomTask,
    ErrorDefinition,
    EscalationDefinition,
    Event,
    EventBasedGateway,
    EventDefinition,
    Expression,
    FlowNode,
    LinkDefinition,
    Loop,
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
    WorkTask,
)
from gobpm_ray.model.elements import Mapping as ModelMapping

_T = TypeVar("_T")


class Decider(Protocol):
    """The decisions of one document, as tasks ask for them (`gobpm_ray.decisions.compiled.Decisions`)."""

    def __contains__(self, decision_id: object, /) -> bool: ...
    def evaluate(self, decision_id: str, variables: Mapping[str, object], now_ms: int) -> object: ...
    def result_name(self, decision_id: str) -> str: ...


DecisionSource = Callable[[str, str, int], Decider | None]
"""(decision id, binding, version) -> the decisions of the document that defines it; None while it is not deployed."""


def _no_decisions(_decision: str, _binding: str, _version: int) -> Decider | None:
    return None


@dataclass(frozen=True, slots=True)
class ProgramFlow:
    id: str
    target: str
    condition: Operand | None
    default: bool


@dataclass(frozen=True, slots=True, eq=False)
class ProgramNode:
    """A flow node, its surroundings resolved. Ids instead of references where the graph has cycles."""

    id: str
    element: FlowNode
    family: Family
    dehydratable: Dehydratable | None
    """The family's capability; absent means resident (D2)."""
    scope: str
    incoming: tuple[str, ...]
    outgoing: tuple[ProgramFlow, ...]
    conditional: bool
    """Some outgoing flow has a condition that counts, so leaving has to choose."""
    inputs: tuple[Binding, ...]
    outputs: tuple[Binding, ...]
    definitions: tuple[Definition, ...]
    terminates: bool
    boundaries: tuple[str, ...]
    rivals: frozenset[str]
    """Of its boundaries those that wait for one thing and interrupt: they race with the activity's own wait."""
    operands: Mapping[str, Operand]
    """Every expression that is an attribute of the element, by the attribute's name (assignee, due, ...)."""
    script: Callable[[Mapping[str, object], int], dict[str, object]] | None = None
    """Statements; a script that is one expression stands in `operands` instead."""
    gathers: bool = False
    """A parallel multiple event: all of its definitions must occur."""
    linked: bool = False
    """A link's catch: it waits for nothing."""
    link: str = ""
    """Of a link's throw, the catch that it goes on at."""
    compensation: str = ""
    """The boundary event whose handler undoes the activity."""
    booked: bool = False
    """Its completion may have to be entered in the ledger of its scope."""
    job: bool = False
    """Its work waits for a worker as a job, instead of being called in the host."""
    body: ProgramNode | None = None
    """Of an iterating activity: what each of its rounds executes."""
    watcher: Family | None = None
    """Is told when the node is done, before its token leaves: the iteration of a body, an ad-hoc sub-process."""
    upstream: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Inclusive and complex joins: incoming flow -> the nodes from which a token can still come by it."""
    pinned: int = 0
    """Call activities: the newest version of the called process when this one was deployed; 0: there was none."""
    properties: tuple[Binding, ...] = ()
    """An activity's own variables, with their first values."""
    writes: bool = False
    """Some output goes into a data store."""
    needs: Shape | None = None
    """What its mapped inputs must be."""
    results: Shape | None = None
    """What its results must be before they are mapped."""
    mapped: Shape | None = None
    """What its output mappings must give."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    process: Process
    version: int
    nodes: Mapping[str, ProgramNode]
    starts: Mapping[str, tuple[str, ...]]
    """Scope (process id or sub-process id) -> the nodes where a token begins when it is entered: the none start events,
    or, in a scope without any start event, every node that nothing leads to (BPMN 13.3.4)."""
    triggered: tuple[str, ...]
    """Root start events with a definition, receive tasks that instantiate, and the arms of event-based gateways that
    do, in document order."""
    scopes: frozenset[str] = field(default_factory=frozenset)
    merges: bool = False
    """It has a join that has to be asked again when tokens elsewhere have moved or died."""
    listeners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Scope -> the start events of its event sub-processes, compensation apart."""
    undoers: Mapping[str, str] = field(default_factory=dict)
    """Sub-process -> the start event of its compensation event sub-process."""
    instantiating: Mapping[str, str] = field(default_factory=dict)
    """Arm of an event-based gateway that starts the process -> that gateway."""
    decisions: DecisionSource = _no_decisions
    """Who has the decisions that business rule tasks evaluate."""
    thresholds: Mapping[str, int] = field(default_factory=dict)
    """Elements with a dehydration threshold of their own -> ms."""
    shape: Shape | None = None
    """What the variables of a start must be."""
    declared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Scope -> its own variables, with their first values as JSON."""
    stores: tuple[str, ...] = ()
    """The data stores whose values a step may ask for, or change."""

    def at(self, track: Track) -> ProgramNode | None:
        """The node that the token stands at: for a round of an iterating activity, the body alone."""
        node = self.nodes.get(track.node)
        return node.body if node is not None and track.round else node

    @property
    def id(self) -> str:
        return self.process.id


def compile_process(
    process: Process,
    version: int = 1,
    *,
    jobs: Callable[[WorkTask], bool] = lambda _: False,
    pins: Mapping[str, int] | None = None,
    decisions: DecisionSource = _no_decisions,
) -> Program:
    """The process as a `Program`. `jobs` says of a service or send task whether it is a job or a call of the host,
    `pins` gives the version that a call activity bound to its deployment calls, `decisions` what business rule tasks
    evaluate.

    Raises InvalidModel, naming every element whose expression does not compile or whose flow leads nowhere."""
    return _Compiler(process, jobs, pins or {}, decisions).program(version)


class _Compiler:
    def __init__(
        self,
        process: Process,
        jobs: Callable[[WorkTask], bool],
        pins: Mapping[str, int],
        decisions: DecisionSource = _no_decisions,
    ) -> None:
        self.process = process
        self.jobs = jobs
        self.pins = pins
        self.decisions = decisions
        self.compensable = wiring.compensable(process)
        self.problems: list[Problem] = []
        self.shapes = shapes.Shapes(process)
        self.stores: dict[str, StoreShape] = {}
        self.used: dict[str, None] = {}
        """Data stores that some mapping names."""
        self.incoming: defaultdict[str, list[str]] = defaultdict(list)
        for flow in process.flows.values():
            self.incoming[flow.target].append(flow.id)

    def program(self, version: int) -> Program:
        process = self.process
        arms = self.instantiating()
        attached: defaultdict[str, list[str]] = defaultdict(list)
        for element in process.nodes.values():
            if isinstance(element, BoundaryEvent):
                attached[element.attached_to].append(element.id)
        self.stores = self.store_shapes()
        shape = self.shaped(process, lambda: self.shapes.start())
        nodes = {element.id: self.node(element, tuple(attached[element.id])) for element in process.nodes.values()}
        thresholds = self.thresholds()
        if self.problems:
            rest = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            raise InvalidModel(f"process '{process.id}': {self.problems[0].message}{rest}", tuple(self.problems))
        scopes = frozenset(element.scope or process.id for element in process.nodes.values()) | {process.id}
        return Program(
            process=process,
            version=version,
            nodes=MappingProxyType(nodes),
            starts=MappingProxyType({scope: self.starts(scope) for scope in scopes}),
            triggered=tuple(
                element.id
                for element in process.nodes.values()
                if element.scope in ("", process.id)
                and (
                    (isinstance(element, StartEvent) and element.definitions)
                    or (isinstance(element, ReceiveTask) and element.instantiate and not self.incoming[element.id])
                    or element.id in arms
                )
            ),
            scopes=scopes,
            merges=any(node.upstream for node in nodes.values()),
            instantiating=MappingProxyType(arms),
            listeners=MappingProxyType(wiring.listeners(process)),
            undoers=MappingProxyType(wiring.undoers(process)),
            decisions=self.decisions,
            thresholds=MappingProxyType(thresholds),
            shape=shape,
            declared=MappingProxyType(shapes.declared(process)),
            stores=tuple(self.used),
        )

    def store_shapes(self) -> dict[str, StoreShape]:
        found = {}
        for store in self.process.stores:
            made = self.shaped(self.process, lambda store=store: shapes.store_shape(store))  # type: ignore[misc]
            found[store.name] = made or StoreShape(store.name, store.capacity)
        return found

    def shaped(self, element: FlowNode | Process, make: Callable[[], _T | None]) -> _T | None:
        """What `make` gives; a type that cannot be checked is a problem of the element."""
        try:
            return make()
        except GobpmError as error:
            message = f"data of a type that cannot be checked: {error}"
            if not any(message in problem.message for problem in self.problems):
                self.problem(element, f"'{element.id}' has {message}")
            return None

    def thresholds(self) -> dict[str, int]:
        found = {}
        for element in self.process.nodes.values():
            if element.dehydration_threshold:
                try:
                    found[element.id] = add_duration(0, parse_duration(element.dehydration_threshold))
                except GobpmError as error:
                    self.problem(element, f"{element.type} '{element.id}': dehydration threshold: {error}")
        return found

    def starts(self, scope: str) -> tuple[str, ...]:
        inside = [element for element in self.process.nodes.values() if (element.scope or self.process.id) == scope]
        events = [element for element in inside if isinstance(element, StartEvent)]
        if events:
            return tuple(event.id for event in events if not event.definitions)
        return tuple(
            element.id
            for element in inside
            if not self.incoming[element.id]
            and wiring.begins(element)
            and not (isinstance(element, ReceiveTask | EventBasedGateway) and element.instantiate)
        )

    def node(self, element: FlowNode, boundaries: tuple[str, ...]) -> ProgramNode:
        default = element.default if isinstance(element, Choice) else ""
        outgoing = tuple(
            self.flow(self.process.flows[flow], default) for flow in element.outgoing if self.known(element, flow)
        )
        try:
            family = family_of(element)
        except InvalidModel as unknown:
            self.problem(element, str(unknown))
            family = Family()
        script = None
        operands = {
            name: self.operand(element, name, value)
            for name in (attribute.name for attribute in fields(element))
            if isinstance(value := getattr(element, name), Expression) and not _statements(element, value)
        }
        if isinstance(element, CustomTask):
            given = self.bindings(element, "parameter", element.parameters)
            operands.update({binding.target: binding.source for binding in given})
        if isinstance(element, ScriptTask) and _statements(element, element.script):
            script = self.statements(element)
        definitions = tuple(self.definition(element, definition) for definition in _definitions(element))
        compensation = wiring.compensation(self.process, boundaries)
        link = wiring.link(self.process, element)
        if not link and isinstance(element, ThrowEvent) and any(isinstance(named, Link) for named in definitions):
            self.problem(element, f"{element.type} '{element.id}' throws a link that no catch event of its scope has")
        made = ProgramNode(
            id=element.id,
            element=element,
            family=family,
            dehydratable=family if isinstance(family, Dehydratable) else None,
            scope=element.scope or self.process.id,
            incoming=tuple(self.incoming[element.id]),
            outgoing=outgoing,
            conditional=any(flow.condition is not None or flow.default for flow in outgoing),
            inputs=self.bindings(element, "input", element.inputs),
            outputs=self.bindings(element, "output", element.outputs),
            definitions=definitions,
            terminates=any(isinstance(definition, Terminate) for definition in definitions),
            boundaries=boundaries,
            rivals=frozenset(boundary for boundary in boundaries if wiring.races(self.process.nodes[boundary])),
            operands=MappingProxyType(operands),
            script=script,
            gathers=wiring.gathers(element),
            linked=wiring.linked(element),
            link=link,
            compensation=compensation,
            booked=bool(compensation) or (isinstance(element, SubProcess) and self.compensable),
            job=isinstance(element, WorkTask) and not _sends(element) and self.jobs(element),
            watcher=self.watcher(element),
            upstream=MappingProxyType(upstream(self.process, self.incoming, element)),
            pinned=self.pins.get(element.id, 0),
            properties=tuple(_constant(*each) for each in self.shapes.properties(element).items()),
            writes=any(mapping.to_store for mapping in element.outputs),
            needs=self.shaped(element, lambda: self.shapes.inputs(element)),
            results=self.shaped(element, lambda: self.shapes.results(element)),
            mapped=self.shaped(element, lambda: self.shapes.mapped(element)),
        )
        loop = element.loop if isinstance(element, Activity) else None
        return made if loop is None else self.iterating(made, loop)

    def iterating(self, made: ProgramNode, loop: Loop) -> ProgramNode:
        """The activity as the iteration of itself: boundaries and flows are that one's, the rest is each round's."""
        family = ITERATIONS[type(loop)]
        operands = {
            name: self.operand(made.element, f"loop {name.replace('_', ' ')}", value)
            for name in (attribute.name for attribute in fields(loop))
            if isinstance(value := getattr(loop, name), Expression)
        }
        for index, condition in enumerate(getattr(loop, "conditions", ())):
            operands[f"conditions.{index}"] = self.operand(made.element, "behaviour condition", condition)
        body = replace(
            made, outgoing=(), conditional=False, boundaries=(), rivals=frozenset(), watcher=family, incoming=()
        )
        return replace(
            made,
            family=family,
            dehydratable=family if isinstance(family, Dehydratable) else None,
            inputs=(),
            outputs=(),
            definitions=(),
            booked=False,
            operands=MappingProxyType(operands),
            script=None,
            job=False,
            body=body,
            properties=(),
            writes=False,
            needs=None,
            results=None,
            mapped=None,
        )

    def watcher(self, element: FlowNode) -> Family | None:
        around = self.process.nodes.get(element.scope)
        if not wiring.begins(element):
            return None  # a handler is none of the activities that the ad-hoc sub-process offers
        if isinstance(around, SubProcess) and around.kind == "adhoc" and isinstance(element, Activity):
            return family_of(around)
        return None

    def instantiating(self) -> dict[str, str]:
        """Arm -> gateway, of the root's event-based gateways that start the process (BPMN 10.6.6)."""
        return {
            self.process.flows[flow].target: element.id
            for element in self.process.nodes.values()
            if isinstance(element, EventBasedGateway) and element.instantiate and not self.incoming[element.id]
            if element.scope in ("", self.process.id)
            for flow in element.outgoing
            if flow in self.process.flows
        }

    def known(self, element: FlowNode, flow_id: str) -> bool:
        flow = self.process.flows.get(flow_id)
        if flow is not None and flow.target in self.process.nodes:
            return True
        self.problem(element, f"{element.type} '{element.id}' has the outgoing flow '{flow_id}', which leads nowhere")
        return False

    def flow(self, flow: SequenceFlow, default: str) -> ProgramFlow:
        # A condition on the default flow is ignored (BPMN 8.3.13), whatever it says.
        is_default = flow.default or flow.id == default
        condition = None if flow.condition is None or is_default else self.operand(flow, "condition", flow.condition)
        return ProgramFlow(flow.id, flow.target, condition, is_default)

    def definition(self, element: FlowNode, definition: EventDefinition) -> Definition:
        try:
            if isinstance(definition, TimerDefinition):
                return Timer(definition.kind, self.operand(element, "timer", definition.value))
            if isinstance(definition, MessageDefinition):
                key = None if definition.key is None else self.operand(element, "correlation key", definition.key)
                several = tuple(self.property(element, each) for each in definition.properties)
                return Message(definition.name, key, message_key(definition.name), several)
            if isinstance(definition, SignalDefinition):
                return Signal(definition.name, signal_key(definition.name))
            if isinstance(definition, ConditionalDefinition):
                return Conditional(self.operand(element, "condition", definition.condition))
        except GobpmError as error:
            self.problem(element, f"{element.type} '{element.id}': {error}")
        match definition:
            case ErrorDefinition():
                return Error(definition.code)
            case EscalationDefinition():
                return Escalation(definition.code)
            case CompensateDefinition():
                return Compensate(definition.activity)
            case LinkDefinition():
                return Link(definition.name)
            case CancelDefinition():
                return Cancel()
            case _:
                return Terminate()

    def property(self, element: FlowNode, written: CorrelationProperty) -> Property:
        use = f"correlation property '{written.name}'"
        path = None if written.path is None else self.operand(element, use, written.path)
        data = None if written.data is None else self.operand(element, use, written.data)
        return Property(written.name, path, data)

    def bindings(self, element: FlowNode, what: str, mappings: tuple[ModelMapping, ...]) -> tuple[Binding, ...]:
        return tuple(self.binding(element, what, mapping) for mapping in mappings)

    def binding(self, element: FlowNode, what: str, mapping: ModelMapping) -> Binding:
        source = self.operand(element, f"{what} '{mapping.target}'", mapping.source)
        store = self.stores.get(mapping.target, StoreShape(mapping.target)) if mapping.to_store else None
        self.used.update(dict.fromkeys(mapping.stores if store is None else (*mapping.stores, store.name)))
        return Binding(mapping.target, source, mapping.stores, store)

    def operand(self, element: FlowNode | SequenceFlow, use: str, expression: Expression) -> Operand:
        text = expression.text
        if expression.language == LITERAL:
            return Operand(text, lambda _variables, _now: text)
        try:
            return Operand(text, compile_expression(text, expression.language).evaluate)
        except ExpressionError as error:
            self.problem(element, f"'{element.id}' has a {use} that cannot be read: {error}")
            return Operand(text, lambda _variables, _now: None)

    def statements(self, element: ScriptTask) -> Callable[[Mapping[str, object], int], dict[str, object]] | None:
        try:
            return compile_script(element.script.text, element.script.language).run
        except ExpressionError as error:
            self.problem(element, f"'{element.id}' has a script that cannot be read: {error}")
            return None

    def problem(self, element: FlowNode | SequenceFlow | Process, message: str) -> None:
        self.problems.append(Problem("uncompilable", element.id, " ".join(message.split()), element.line))


def _constant(name: str, text: str) -> Binding:
    return Binding(name, Operand(text, lambda _variables, _now: json.loads(text)))


def _definitions(element: FlowNode) -> tuple[EventDefinition, ...]:
    if isinstance(element, Event):
        return element.definitions
    if isinstance(element, ReceiveTask):
        return (element.message,)
    if isinstance(element, WorkTask) and element.message is not None and _sends(element):
        return (element.message,)
    return ()


def _sends(task: WorkTask) -> bool:
    """It throws a message itself; nothing is registered for it and no worker is asked."""
    return task.type == "sendTask" and task.message is not None and not task.topic


def _statements(element: FlowNode, value: Expression) -> bool:
    return isinstance(element, ScriptTask) and value is element.script and value.language == "python"
