"""A place behind an element, where the next one is added: the flow that leads there, and the words of one element each.

The words stand by kind: activities in `gobpm_ray.model.steps`, gateways and events here. Where an operand may be an
expression, `"=..."` is FEEL and other text a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from gobpm_ray.errors import InvalidModel
from gobpm_ray.model import draft as drafts
from gobpm_ray.model.data import DataKind, Type, item_type
from gobpm_ray.model.draft import Mappings, Messages, Timer
from gobpm_ray.model.elements import (
    CatchEvent,
    ComplexGateway,
    EndEvent,
    EventBasedGateway,
    ExclusiveGateway,
    Expression,
    InclusiveGateway,
    MessageDefinition,
    MultiInstance,
    ParallelGateway,
    ReceiveTask,
    StandardLoop,
    SubProcess,
    ThrowEvent,
)
from gobpm_ray.model.steps import Steps

if TYPE_CHECKING:
    from gobpm_ray.model.builder import ScopeBuilder


class Cursor(Steps):
    """A place behind an element. Adding gives the cursor behind the new element."""

    # --- the flow to the next element ---

    def when(self, condition: str | Expression, *, language: str = "feel", name: str = "") -> Cursor:
        """The next flow is taken only if the condition holds."""
        cursor = Cursor(self._draft, self._scope, self.node_id)
        cursor._condition, cursor._flow_name = drafts.condition(condition, language), name
        return cursor

    def otherwise(self, *, name: str = "") -> Cursor:
        """The next flow is the default: taken when no condition holds."""
        cursor = Cursor(self._draft, self._scope, self.node_id)
        cursor._default, cursor._flow_name = True, name
        return cursor

    def to(self, target: str, *, flow_id: str | None = None) -> Cursor:
        """A flow to an element by id, existing or still to come. The cursor then stands behind that element."""
        self._connect(target, flow_id)
        return Cursor(self._draft, self._scope, target)

    # --- the element just added ---

    def stay_within(self, threshold: str) -> Self:
        """While a deadline of the element just added is nearer than this duration its instance stays resident; without
        it the engine's `dehydration_threshold_ms` counts."""
        self._draft.change(self.node_id, dehydration_threshold=threshold)
        return self

    def returns(self, type: Type = None, /, **named: Type) -> Self:
        """What the element just added gives: `type` is all of its results together (a pydantic model, a JSON schema),
        `named` single ones. Who completes it with other data is refused; a callable's is an incident."""
        self._declare("dataOutput", type, named)
        return self

    def takes(self, type: Type = None, /, **named: Type) -> Self:
        """What the mapped inputs of the element just added must be; others are an incident before it begins."""
        self._declare("dataInput", type, named)
        return self

    def carries(self, type: Type) -> Self:
        """What the message that the element just added waits for must bring; another payload is an incident there, with
        what it brought."""
        item = item_type(type)
        node = self._draft.nodes[self.node_id]
        if isinstance(node, ReceiveTask):
            self._draft.change(self.node_id, message=replace(node.message, item=item))
            return self
        definitions = getattr(node, "definitions", ())
        if not any(isinstance(each, MessageDefinition) for each in definitions):
            raise InvalidModel(f"'{self.node_id}' waits for no message, so none has a type there")
        typed = tuple(replace(e, item=item) if isinstance(e, MessageDefinition) else e for e in definitions)
        self._draft.change(self.node_id, definitions=typed)
        return self

    def property(self, name: str, type: Type = None, *, initial: object = None, collection: bool = False) -> Self:
        """A property of the activity just added: its own variable, as long as it lasts."""
        drafts.declare(self._draft, self.node_id, name, "property", type, initial, collection)
        return self

    def _declare(self, kind: DataKind, type: Type, named: Mapping[str, Type]) -> None:
        if type is not None:
            drafts.declare(self._draft, self.node_id, "", kind, type)
        for name, each in named.items():
            drafts.declare(self._draft, self.node_id, name, kind, each)

    # --- the activity just added ---

    def multi_instance(
        self,
        *,
        collection: str | Expression | None = None,
        item: str = "",
        cardinality: str | int | Expression | None = None,
        sequential: bool = False,
        output: str = "",
        output_item: str | Expression | None = None,
        until: str | Expression | None = None,
        behavior: Literal["none", "one", "all", "complex"] = "all",
        events: tuple[str, ...] = (),
        conditions: tuple[str | Expression, ...] = (),
    ) -> Self:
        """The activity just added runs once per item of `collection`, each as `item`, or `cardinality` times. The value
        of `output_item` at each end is collected in `output`; once `until` holds, the rest is ended."""
        count = str(cardinality) if isinstance(cardinality, int) else cardinality
        loop = MultiInstance(
            sequential=sequential,
            cardinality=_feel(count),
            collection=_feel(collection),
            item_variable=item,
            output_collection=output,
            output_item=_feel(output_item),
            completion=_feel(until),
            behavior=behavior,
            events=events,
            conditions=tuple(drafts.condition(condition, "feel") for condition in conditions),
        )
        self._draft.change(self.node_id, loop=loop)
        return self

    def loop(
        self,
        *,
        while_: str | Expression | None = None,
        test_before: bool = False,
        maximum: str | int | Expression | None = None,
    ) -> Self:
        """The activity just added is repeated while the condition holds, `maximum` times at most."""
        most = str(maximum) if isinstance(maximum, int) else maximum
        repeated = StandardLoop(condition=_feel(while_), test_before=test_before, maximum=_feel(most))
        self._draft.change(self.node_id, loop=repeated)
        return self

    # --- sub-processes ---

    def sub_process(
        self,
        id: str | None = None,
        body: Callable[[ScopeBuilder], object] | None = None,
        *,
        name: str = "",
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> SubProcessCursor:
        """An embedded sub-process; its inside is written by `body`, or in a `with` block that gives its builder."""
        return self._inside(body, self._add(SubProcess, "sub_process", id, name, inputs, outputs))

    def transaction(
        self,
        id: str | None = None,
        body: Callable[[ScopeBuilder], object] | None = None,
        *,
        name: str = "",
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> SubProcessCursor:
        """A sub-process that a cancel end undoes as a whole: compensated, and left by its cancel boundary."""
        added = self._add(SubProcess, "transaction", id, name, inputs, outputs, kind="transaction")
        return self._inside(body, added)

    def ad_hoc(
        self,
        id: str | None = None,
        body: Callable[[ScopeBuilder], object] | None = None,
        *,
        sequential: bool = False,
        until: str | Expression | None = None,
        cancel_remaining: bool = True,
        name: str = "",
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> SubProcessCursor:
        """A sub-process without an order of its own: what nothing leads to inside begins; it is over when `until`
        holds, or when everything is done. Inside, `first` begins each path."""
        added = self._add(
            SubProcess,
            "ad_hoc",
            id,
            name,
            inputs,
            outputs,
            kind="adhoc",
            ordering="sequential" if sequential else "parallel",
            completion=_feel(until),
            cancel_remaining=cancel_remaining,
        )
        return self._inside(body, added)

    def _inside(self, body: Callable[[ScopeBuilder], object] | None, added: Cursor) -> SubProcessCursor:
        cursor = SubProcessCursor(self._draft, self._scope, added.node_id)
        if body is not None:
            body(cursor.inside)
        return cursor

    # --- gateways ---

    def exclusive(self, id: str | None = None, *, default: str = "", name: str = "") -> Cursor:
        """A choice, or a merge. `default` is the element (or flow) that its default flow leads to."""
        return self._gateway(self._add(ExclusiveGateway, "exclusive", id, name), default)

    def inclusive(self, id: str | None = None, *, default: str = "", name: str = "") -> Cursor:
        """Every flow whose condition holds; as a join, it waits for the tokens that can still come."""
        return self._gateway(self._add(InclusiveGateway, "inclusive", id, name), default)

    def complex(
        self, id: str | None = None, *, activation: str | Expression | None = None, default: str = "", name: str = ""
    ) -> Cursor:
        """Opens when `activation` holds, over `activationCount`, and takes every flow whose condition holds."""
        added = self._add(ComplexGateway, "complex", id, name, activation=_feel(activation))
        return self._gateway(added, default)

    def parallel(self, id: str | None = None, *, name: str = "") -> Cursor:
        """A fork, or a join."""
        return self._add(ParallelGateway, "parallel", id, name)

    def event_gateway(
        self, id: str | None = None, *, instantiate: bool = False, parallel: bool = False, name: str = ""
    ) -> Cursor:
        """Waits for the first of the catch events and receive tasks that follow it. `instantiate`, where nothing leads
        to it: its events begin the process, each of them one (or, `parallel`, all of them the same one)."""
        return self._add(EventBasedGateway, "event_gateway", id, name, instantiate=instantiate, parallel=parallel)

    def _gateway(self, added: Cursor, default: str) -> Cursor:
        if default:
            self._draft.default_targets[added.node_id] = default
        return added

    # --- events ---

    def catch(
        self,
        id: str | None = None,
        *,
        timer: Timer | None = None,
        message: Messages | None = None,
        key: drafts.Key | None = None,
        signal: str | None = None,
        conditional: str | Expression | None = None,
        link: str | None = None,
        parallel_multiple: bool = False,
        name: str = "",
        outputs: Mappings = None,
    ) -> Cursor:
        """Waits for a timer, a message, a signal or a condition: any of those given, or all (`parallel_multiple`). A
        `link` begins a path where the throw of the same name ended one."""
        caught = drafts.definitions(
            timer=timer, message=message, key=key, signal=signal, conditional=conditional, link=link
        )
        return self._add(
            CatchEvent, "catch", id, name, None, outputs, definitions=caught, parallel_multiple=parallel_multiple
        )

    def throw(
        self,
        id: str | None = None,
        *,
        message: str | None = None,
        key: drafts.Key | None = None,
        signal: str | None = None,
        escalation: str | None = None,
        compensate: bool | str = False,
        link: str | None = None,
        name: str = "",
        inputs: Mappings = None,
    ) -> Cursor:
        """Sends a message or a signal, escalates, compensates (an activity, or True: all), and goes on; `link` goes on
        at the catch of the same name. Without any it is a milestone."""
        thrown = drafts.definitions(
            message=message, key=key, signal=signal, escalation=escalation, compensate=compensate, link=link
        )
        return self._add(ThrowEvent, "throw", id, name, inputs, definitions=thrown)

    def end(
        self,
        id: str | None = None,
        *,
        message: str | None = None,
        key: drafts.Key | None = None,
        signal: str | None = None,
        error: str | None = None,
        escalation: str | None = None,
        compensate: bool | str = False,
        cancel: bool = False,
        terminate: bool = False,
        name: str = "",
        inputs: Mappings = None,
    ) -> Cursor:
        """Ends this path; `terminate` ends the whole scope, `error` its activity, `cancel` its transaction."""
        thrown = drafts.definitions(
            message=message,
            key=key,
            signal=signal,
            error=error,
            escalation=escalation,
            compensate=compensate,
            cancel=cancel,
            terminate=terminate,
        )
        return self._add(EndEvent, "end", id, name, inputs, definitions=thrown)


class SubProcessCursor(Cursor):
    """Stands behind a sub-process; as a context manager it gives the builder of its inside."""

    @property
    def inside(self) -> ScopeBuilder:
        from gobpm_ray.model.builder import ScopeBuilder

        return ScopeBuilder(self._draft, self.node_id)

    def __enter__(self) -> ScopeBuilder:
        return self.inside

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class HandlerCursor(Cursor):
    """Stands at a compensation boundary: the activity added here, or led to, is its handler, by an association."""

    def _add(self, node_class: type[Any], wanted: str, /, *arguments: Any, **fields: Any) -> Cursor:
        outside = Cursor(self._draft, self._scope, "")
        added = outside._add(node_class, wanted, *arguments, **fields)
        self._draft.handle(self.node_id, added.node_id)
        return added

    def to(self, target: str, *, flow_id: str | None = None) -> Cursor:
        """The handler is an activity that was added before."""
        if flow_id is not None:
            raise InvalidModel(f"boundaryEvent '{self.node_id}': an association leads to a handler, not a flow")
        self._draft.handle(self.node_id, target)
        return Cursor(self._draft, self._scope, target)


def _feel(value: str | Expression | None) -> Expression | None:
    """Where only an expression makes sense: text is FEEL, with or without its mark."""
    return None if value is None else drafts.condition(value, "feel")
