"""Processes written in Python: a fluent builder over the same model that the XML reader gives.

    order = ProcessBuilder("order", name="Order")
    order.start().user_task("approve", assignee="=boss").exclusive("decide")
    order.at("decide").when("amount > 100").service_task("bill", topic="billing").end("billed")
    order.at("decide").otherwise().call("ship", process="shipping").multi_instance(collection="parcels", item="parcel")
    order.boundary("approve", timer="PT24H").service_task("remind", topic="mail").end("late")
    order.boundary("bill", compensate=True).service_task("refund", topic="billing")
    with order.event_sub_process("complaint") as complaint:
        complaint.start(message="complained", interrupting=False).user_task("answer").end()
    process = order.build()

A `Cursor` stands behind the element added last and adds the next one there; `at` puts one anywhere, `to` leads a path
to an element that exists or is still to come. Where an operand may be an expression, `"=..."` is FEEL and other text a
constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType

from gobpm_ray.errors import InvalidModel
from gobpm_ray.model import draft as drafts
from gobpm_ray.model.cursor import Cursor, HandlerCursor, SubProcessCursor
from gobpm_ray.model.data import DataStore, Type, item_type
from gobpm_ray.model.draft import Draft, Mappings, Messages, Operand, Stored, Timer, after, at_date, declare, every
from gobpm_ray.model.elements import BoundaryEvent, Expression, Process, StartEvent, SubProcess
from gobpm_ray.model.validate import require_valid

__all__ = [
    "Cursor",
    "EventSubProcessBuilder",
    "Operand",
    "ProcessBuilder",
    "ScopeBuilder",
    "Stored",
    "SubProcessCursor",
    "Timer",
    "after",
    "at_date",
    "every",
]


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
        message: Messages | None = None,
        key: drafts.Key | None = None,
        signal: str | None = None,
        error: str | None = None,
        escalation: str | None = None,
        conditional: str | Expression | None = None,
        compensate: bool = False,
        interrupting: bool = True,
        parallel_multiple: bool = False,
        name: str = "",
        outputs: Mappings = None,
    ) -> Cursor:
        """A start event: by naming the process, or by a timer, message or signal. Of an event sub-process also by an
        error or escalation (code '' takes any), a condition or a compensation; `interrupting` ends what else is there.
        `parallel_multiple`: all must come; of several messages that begin a process the first makes an instance, which
        waits for the others by their `key`."""
        if not parallel_multiple:
            self._draft.refuse_key(self._scope, key)
        begun = drafts.definitions(
            timer=timer,
            message=message,
            key=key,
            signal=signal,
            error=error,
            escalation=escalation,
            conditional=conditional,
            compensate=compensate,
        )
        return self.first._add(
            StartEvent,
            "start",
            id,
            name,
            None,
            outputs,
            definitions=begun,
            interrupting=interrupting,
            parallel_multiple=parallel_multiple,
        )

    def data(
        self,
        name: str,
        type: Type = None,
        *,
        initial: object = None,
        collection: bool = False,
        id: str | None = None,
    ) -> None:
        """A data object: the variable of this name in this scope, which lives as long as the scope. `type`: what it may
        hold (`xsd:int`, a Python type, a pydantic model, a JSON schema), `collection`: a list of that; `initial`: its
        first value, as JSON has it."""
        declare(self._draft, self._scope, name, "dataObject", type, initial, collection, id)

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
        message: Messages | None = None,
        key: drafts.Key | None = None,
        signal: str | None = None,
        error: str | None = None,
        escalation: str | None = None,
        conditional: str | Expression | None = None,
        cancel: bool = False,
        compensate: bool = False,
        interrupting: bool = True,
        parallel_multiple: bool = False,
        name: str = "",
        outputs: Mappings = None,
    ) -> Cursor:
        """An event on the border of an activity; interrupting, it ends the activity when it fires. An error or
        escalation with the code '' takes any. `compensate`: what is added next is the activity's handler."""
        caught = drafts.definitions(
            timer=timer,
            message=message,
            key=key,
            signal=signal,
            error=error,
            escalation=escalation,
            conditional=conditional,
            compensate=compensate,
            cancel=cancel,
        )
        outside = Cursor(self._draft, self._draft.scope_of(attached_to), "")
        added = outside._add(
            BoundaryEvent,
            f"{attached_to}_boundary",
            id,
            name,
            None,
            outputs,
            definitions=caught,
            attached_to=attached_to,
            interrupting=interrupting,
            parallel_multiple=parallel_multiple,
        )
        return HandlerCursor(self._draft, added._scope, added.node_id) if compensate else added

    def event_sub_process(
        self,
        id: str | None = None,
        body: Callable[[ScopeBuilder], object] | None = None,
        *,
        name: str = "",
    ) -> EventSubProcessBuilder:
        """A sub-process that its start event triggers while this scope is alive; a `with` block gives its builder."""
        added = self.first._add(SubProcess, "event_sub_process", id, name, kind="event")
        inside = EventSubProcessBuilder(self._draft, added.node_id)
        if body is not None:
            body(inside)
        return inside

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


class EventSubProcessBuilder(ScopeBuilder):
    """The inside of an event sub-process; nothing leads to it or on from it, so there is no cursor behind it."""

    @property
    def node_id(self) -> str:
        return self._scope

    def __enter__(self) -> ScopeBuilder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class ProcessBuilder(ScopeBuilder):
    """Builds one process; see the module's text."""

    def __init__(
        self, id: str, name: str = "", *, executable: bool = True, secrets: Iterable[str] = (), variables: Type = None
    ) -> None:
        """`secrets`: variables whose values nobody is shown, wherever they turn up. `variables`: what all of a start's
        variables together must be, a pydantic model or a JSON schema."""
        if not id:
            raise InvalidModel("a process needs an id")
        super().__init__(Draft(id, name, executable, tuple(secrets)), id)
        if variables is not None:
            declare(self._draft, id, "", "dataInput", variables)

    def store(self, name: str, type: Type = None, *, capacity: int = 0, collection: bool = False) -> None:
        """What a data store of the engine may hold, as far as this process is concerned; `capacity`: how many entries.
        One that is only named in a mapping (`Stored`) holds anything."""
        if capacity < 0 or not name:
            raise InvalidModel(f"data store {name!r}: expected a name, and a capacity of 0 or more")
        self._draft.stores[name] = DataStore(name, capacity, item_type(type, collection=collection))

    def build(self) -> Process:
        """The process, validated. Raises `InvalidModel`: one line for the first problem, and all in `problems`."""
        return require_valid(self._draft.built(), f"process '{self._scope}'")
