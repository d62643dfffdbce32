"""Processes written in Python: a fluent builder over the same model that the XML reader gives.

    order = ProcessBuilder("order", name="Order")
    order.start().user_task("approve", assignee="=boss").exclusive("decide")
    order.at("decide").when("amount > 100").service_task("bill", topic="billing").end("billed")
    order.at("decide").otherwise().end("refused")
    order.boundary("approve", timer="PT24H").service_task("remind", topic="mail").end("late")
    process = order.build()

A `Cursor` stands behind the element added last and adds the next one there; `at` puts one anywhere, `to` leads a path
to an element that exists or is still to come. Where an operand may be an expression, `"=..."` is FEEL and other text a
constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as Dict
from types import TracebackType
from typing import Any

from gobpm_ray.errors import InvalidModel
from gobpm_ray.model import draft as drafts
from gobpm_ray.model.draft import Draft, Operand, Timer, after, at_date, every
from gobpm_ray.model.elements import (
    AbstractTask,
    BoundaryEvent,
    CatchEvent,
    EndEvent,
    EventBasedGateway,
    ExclusiveGateway,
    Expression,
    FlowNode,
    MessageDefinition,
    ParallelGateway,
    Process,
    ReceiveTask,
    ScriptTask,
    StartEvent,
    SubProcess,
    TerminateDefinition,
    ThrowEvent,
    UserTask,
    WorkTask,
)
from gobpm_ray.model.validate import require_valid

__all__ = ["Cursor", "Operand", "ProcessBuilder", "ScopeBuilder", "Timer", "after", "at_date", "every"]

Mappings = Dict[str, Operand] | None


class Cursor:
    """A place behind an element, where the next one is added. Adding gives the cursor behind the new element."""

    def __init__(self, draft: Draft, scope: str, node_id: str) -> None:
        self._draft = draft
        self._scope = scope
        self.node_id = node_id
        self._condition: Expression | None = None
        self._default = False
        self._flow_name = ""

    # --- the flow to the next element ---

    def when(self, condition: str | Expression, *, language: str = "feel", name: str = "") -> Cursor:
        """The next flow is taken only if the condition holds."""
        cursor = self._again()
        cursor._condition, cursor._flow_name = drafts.condition(condition, language), name
        return cursor

    def otherwise(self, *, name: str = "") -> Cursor:
        """The next flow is the default: taken when no condition holds."""
        cursor = self._again()
        cursor._default, cursor._flow_name = True, name
        return cursor

    def to(self, target: str, *, flow_id: str | None = None) -> Cursor:
        """A flow to an element by id, existing or still to come. The cursor then stands behind that element."""
        self._connect(target, flow_id)
        return Cursor(self._draft, self._scope, target)

    # --- tasks ---

    def task(self, id: str | None = None, *, name: str = "") -> Cursor:
        """An abstract task: passes at once."""
        return self._add(AbstractTask, "task", id, name)

    def manual_task(self, id: str | None = None, *, name: str = "") -> Cursor:
        """Work outside the engine: passes at once."""
        return self._add(AbstractTask, "manual_task", id, name, type="manualTask")

    def service_task(
        self,
        id: str | None = None,
        topic: str = "",
        *,
        name: str = "",
        idempotent: bool = False,
        result: str = "",
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> Cursor:
        """Work by the callable that is registered under `topic`, else under the task's id."""
        return self._add(
            WorkTask,
            "service_task",
            id,
            name,
            inputs,
            outputs,
            topic=topic,
            idempotent=idempotent,
            result_variable=result,
        )

    def send_task(
        self,
        id: str | None = None,
        *,
        message: str | None = None,
        key: Operand | None = None,
        topic: str = "",
        name: str = "",
        idempotent: bool = False,
        result: str = "",
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> Cursor:
        """Sends `message`, or runs the callable registered under `topic`."""
        sent = None if message is None else MessageDefinition(name=message, key=drafts.correlation(key))
        return self._add(
            WorkTask,
            "send_task",
            id,
            name,
            inputs,
            outputs,
            type="sendTask",
            message=sent,
            topic=topic,
            idempotent=idempotent,
            result_variable=result,
        )

    def script_task(
        self,
        id: str | None = None,
        script: str | Expression = "null",
        *,
        language: str = "feel",
        result: str = "",
        name: str = "",
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> Cursor:
        """An expression (or, in Python, statements); `result` is the variable that takes its value."""
        written = drafts.condition(script, language)
        return self._add(ScriptTask, "script_task", id, name, inputs, outputs, script=written, result_variable=result)

    def user_task(
        self,
        id: str | None = None,
        *,
        assignee: Operand | None = None,
        candidate_users: Operand | Sequence[str] | None = None,
        candidate_groups: Operand | Sequence[str] | None = None,
        due: Operand | None = None,
        follow_up: Operand | None = None,
        priority: Operand | int | None = None,
        form: str = "",
        required_outputs: Sequence[str] = (),
        name: str = "",
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> Cursor:
        """Work for a person, who claims and completes it."""
        return self._add(
            UserTask,
            "user_task",
            id,
            name,
            inputs,
            outputs,
            assignee=drafts.optional(assignee),
            candidate_users=drafts.names(candidate_users),
            candidate_groups=drafts.names(candidate_groups),
            due=drafts.optional(due),
            follow_up=drafts.optional(follow_up),
            priority=drafts.optional(str(priority) if isinstance(priority, int) else priority),
            form=form,
            required_outputs=tuple(required_outputs),
        )

    def receive_task(
        self,
        id: str | None = None,
        *,
        message: str,
        key: Operand | None = None,
        name: str = "",
        outputs: Mappings = None,
    ) -> Cursor:
        """Waits for `message`, correlated by `key` or by its name alone."""
        awaited = MessageDefinition(name=message, key=drafts.correlation(key))
        return self._add(ReceiveTask, "receive_task", id, name, None, outputs, message=awaited)

    def sub_process(
        self, id: str | None = None, body: Callable[[ScopeBuilder], object] | None = None, *, name: str = ""
    ) -> SubProcessCursor:
        """An embedded sub-process; its inside is written by `body`, or in a `with` block that gives its builder."""
        node_id = self._add(SubProcess, "sub_process", id, name).node_id
        cursor = SubProcessCursor(self._draft, self._scope, node_id)
        if body is not None:
            body(cursor.inside)
        return cursor

    # --- gateways ---

    def exclusive(self, id: str | None = None, *, default: str = "", name: str = "") -> Cursor:
        """A choice, or a merge. `default` is the element (or flow) that its default flow leads to."""
        cursor = self._add(ExclusiveGateway, "exclusive", id, name)
        if default:
            self._draft.default_targets[cursor.node_id] = default
        return cursor

    def parallel(self, id: str | None = None, *, name: str = "") -> Cursor:
        """A fork, or a join."""
        return self._add(ParallelGateway, "parallel", id, name)

    def event_gateway(self, id: str | None = None, *, name: str = "") -> Cursor:
        """Waits for the first of the catch events and receive tasks that follow it."""
        return self._add(EventBasedGateway, "event_gateway", id, name)

    # --- events ---

    def catch(
        self,
        id: str | None = None,
        *,
        timer: Timer | None = None,
        message: str | None = None,
        key: Operand | None = None,
        signal: str | None = None,
        name: str = "",
        outputs: Mappings = None,
    ) -> Cursor:
        """Waits for a timer, a message or a signal."""
        caught = drafts.definitions(timer=timer, message=message, key=key, signal=signal)
        return self._add(CatchEvent, "catch", id, name, None, outputs, definitions=caught)

    def throw(
        self,
        id: str | None = None,
        *,
        message: str | None = None,
        key: Operand | None = None,
        signal: str | None = None,
        name: str = "",
        inputs: Mappings = None,
    ) -> Cursor:
        """Sends a message or a signal and goes on; without either it is a milestone."""
        thrown = drafts.definitions(message=message, key=key, signal=signal)
        return self._add(ThrowEvent, "throw", id, name, inputs, definitions=thrown)

    def end(
        self,
        id: str | None = None,
        *,
        message: str | None = None,
        key: Operand | None = None,
        signal: str | None = None,
        terminate: bool = False,
        name: str = "",
        inputs: Mappings = None,
    ) -> Cursor:
        """Ends this path; `terminate` ends the whole scope."""
        thrown = drafts.definitions(message=message, key=key, signal=signal)
        if terminate:
            thrown = (*thrown, TerminateDefinition())
        return self._add(EndEvent, "end", id, name, inputs, definitions=thrown)

    # --- inside ---

    def _add(
        self,
        node_class: type[Any],
        kind: str,
        node_id: str | None,
        name: str,
        inputs: Mappings = None,
        outputs: Mappings = None,
        **fields: object,
    ) -> Cursor:
        node: FlowNode = node_class(
            id=node_id or self._draft.free_id(kind),
            name=name,
            scope=self._scope,
            inputs=drafts.mappings(inputs),
            outputs=drafts.mappings(outputs),
            **fields,
        )
        self._draft.add(node)
        self._connect(node.id, None)
        return Cursor(self._draft, self._scope, node.id)

    def _connect(self, target: str, flow_id: str | None) -> None:
        if self.node_id:
            self._draft.connect(
                self.node_id,
                target,
                self._condition,
                default=self._default,
                name=self._flow_name,
                flow_id=flow_id,
            )

    def _again(self) -> Cursor:
        return Cursor(self._draft, self._scope, self.node_id)


class SubProcessCursor(Cursor):
    """Stands behind a sub-process; as a context manager it gives the builder of its inside."""

    @property
    def inside(self) -> ScopeBuilder:
        return ScopeBuilder(self._draft, self.node_id)

    def __enter__(self) -> ScopeBuilder:
        return self.inside

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class ScopeBuilder:
    """One scope, the process or a sub-process: where paths begin."""

    def __init__(self, draft: Draft, scope: str) -> None:
        self._draft = draft
        self._scope = scope

    def start(
        self,
        id: str | None = None,
        *,
        timer: Timer | None = None,
        message: str | None = None,
        signal: str | None = None,
        name: str = "",
        outputs: Mappings = None,
    ) -> Cursor:
        """A start event: by naming the process, or by a timer, message or signal."""
        begun = drafts.definitions(timer=timer, message=message, signal=signal)
        return self.first._add(StartEvent, "start", id, name, None, outputs, definitions=begun)

    def at(self, node_id: str) -> Cursor:
        """The place behind an element that was added before. Raises `InvalidModel` if there is none."""
        return Cursor(self._draft, self._draft.scope_of(node_id), node_id)

    @property
    def first(self) -> Cursor:
        """The place behind nothing: what is added there has no incoming flow, until one is led to it."""
        return Cursor(self._draft, self._scope, "")

    def boundary(
        self,
        attached_to: str,
        id: str | None = None,
        *,
        timer: Timer | None = None,
        message: str | None = None,
        key: Operand | None = None,
        signal: str | None = None,
        interrupting: bool = True,
        name: str = "",
        outputs: Mappings = None,
    ) -> Cursor:
        """An event on the border of an activity; interrupting, it ends the activity when it fires."""
        caught = drafts.definitions(timer=timer, message=message, key=key, signal=signal)
        outside = Cursor(self._draft, self._draft.scope_of(attached_to), "")
        return outside._add(
            BoundaryEvent,
            f"{attached_to}_boundary",
            id,
            name,
            None,
            outputs,
            definitions=caught,
            attached_to=attached_to,
            interrupting=interrupting,
        )

    def connect(
        self,
        source: str,
        target: str,
        condition: str | Expression | None = None,
        *,
        language: str = "feel",
        default: bool = False,
        name: str = "",
        id: str | None = None,
    ) -> str:
        """A flow between two elements by id, existing or still to come; gives the flow's id."""
        when = None if condition is None else drafts.condition(condition, language)
        return self._draft.connect(source, target, when, default=default, name=name, flow_id=id)


class ProcessBuilder(ScopeBuilder):
    """Builds one process; see the module's text."""

    def __init__(self, id: str, name: str = "", *, executable: bool = True) -> None:
        if not id:
            raise InvalidModel("a process needs an id")
        super().__init__(Draft(id, name, executable), id)

    def build(self) -> Process:
        """The process, validated. Raises `InvalidModel`: one line for the first problem, and all in `problems`."""
        return require_valid(self._draft.built(), f"process '{self._scope}'")
