"""The words of a cursor that add an activity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gobpm_ray.model import draft as drafts
from gobpm_ray.model.draft import Draft, Mappings, Operand
from gobpm_ray.model.elements import (
    AbstractTask,
    CallActivity,
    CustomTask,
    DecisionTask,
    Expression,
    FlowNode,
    ReceiveTask,
    ScriptTask,
    UserTask,
    WorkTask,
)
from gobpm_ray.model.ray_options import ray_options

if TYPE_CHECKING:
    from gobpm_ray.model.cursor import Cursor

Binding = Literal["latest", "deployment", "version"]
_Node = tuple[str, str | None, str, Mappings, Mappings]
"""What every task has: the id that is wanted if none is given, the id, name, inputs and outputs."""


class Steps:
    """Where a cursor stands, and the flow that it will lead on."""

    def __init__(self, draft: Draft, scope: str, node_id: str) -> None:
        self._draft = draft
        self._scope = scope
        self.node_id = node_id
        self._condition: Expression | None = None
        self._default = False
        self._flow_name = ""

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
        retries: Operand | int | None = None,
        timeout: Operand | None = None,
        ray: Mapping[str, object] | None = None,
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> Cursor:
        """Work by the callable that is registered under `topic`, else under the task's id.

        `retries` is a policy (`gobpm_ray.calendar.retries`), `timeout` bounds an attempt; with `ray`, options of a Ray
        task (`num_cpus`, `resources`, `runtime_env` ...), it runs as one."""
        node = self._node("service_task", id, name, inputs, outputs)
        return self._work(node, topic, idempotent, result, retries, timeout, ray)

    def send_task(
        self,
        id: str | None = None,
        *,
        message: str | None = None,
        key: drafts.Key | None = None,
        topic: str = "",
        name: str = "",
        idempotent: bool = False,
        result: str = "",
        retries: Operand | int | None = None,
        timeout: Operand | None = None,
        ray: Mapping[str, object] | None = None,
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> Cursor:
        """Sends `message`, or runs the callable registered under `topic`."""
        sent = None if message is None else drafts.message_definition(message, key)
        node = self._node("send_task", id, name, inputs, outputs)
        return self._work(node, topic, idempotent, result, retries, timeout, ray, type="sendTask", message=sent)

    def business_rule_task(
        self,
        id: str | None = None,
        *,
        decision: Operand | None = None,
        topic: str = "",
        result: str = "",
        binding: Binding = "latest",
        version: int = 0,
        name: str = "",
        idempotent: bool = False,
        retries: Operand | int | None = None,
        timeout: Operand | None = None,
        ray: Mapping[str, object] | None = None,
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> Cursor:
        """Evaluates `decision`, of a deployed DMN file, into `result`; without one, work by a callable, as a service
        task's."""
        node = self._node("business_rule_task", id, name, inputs, outputs)
        if decision is None:
            return self._work(node, topic, idempotent, result, retries, timeout, ray, type="businessRuleTask")
        return self._add(
            DecisionTask,
            *node,
            decision=drafts.operand(decision),
            binding="version" if version else binding,
            version=version,
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
        key: drafts.Key | None = None,
        instantiate: bool = False,
        name: str = "",
        outputs: Mappings = None,
    ) -> Cursor:
        """Waits for `message`, correlated by `key` or by its name alone; `instantiate`: the message begins the
        process."""
        if instantiate:
            self._draft.refuse_key(self._scope, key)
        awaited = drafts.message_definition(message, key)
        return self._add(ReceiveTask, "receive_task", id, name, None, outputs, message=awaited, instantiate=instantiate)

    def call(
        self,
        id: str | None = None,
        *,
        process: Operand,
        version: int = 0,
        binding: Binding = "latest",
        inherit: bool = True,
        propagate: bool = True,
        business_key: Operand | None = None,
        name: str = "",
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> Cursor:
        """Calls another process, as an instance of its own: the newest, the one deployed with this (`binding`), or one
        `version`. `inherit`: it sees the caller's variables; `propagate`: its own come back."""
        return self._add(
            CallActivity,
            "call",
            id,
            name,
            inputs,
            outputs,
            called=drafts.operand(process),
            binding="version" if version else binding,
            version=version,
            inherit=inherit,
            propagate=propagate,
            business_key=drafts.optional(business_key),
        )

    def custom(
        self,
        element: str,
        id: str | None = None,
        *,
        name: str = "",
        parameters: Mappings = None,
        inputs: Mappings = None,
        outputs: Mappings = None,
    ) -> Cursor:
        """An element of your own, executed by the family registered under `element` (docs/custom-elements.md)."""
        wanted = element.rpartition(":")[2] or "custom"
        given = drafts.mappings(parameters)
        return self._add(CustomTask, wanted, id, name, inputs, outputs, element=element, parameters=given)

    @staticmethod
    def _node(wanted: str, id: str | None, name: str, inputs: Mappings, outputs: Mappings) -> _Node:
        return wanted, id, name, inputs, outputs

    def _work(
        self,
        node: _Node,
        topic: str,
        idempotent: bool,
        result: str,
        retries: Operand | int | None,
        timeout: Operand | None,
        ray: Mapping[str, object] | None,
        **more: object,
    ) -> Cursor:
        """What a callable or a worker does."""
        wanted, id, *_ = node
        return self._add(
            WorkTask,
            *node,
            topic=topic,
            idempotent=idempotent,
            result_variable=result,
            retries=drafts.optional(str(retries) if isinstance(retries, int) else retries),
            timeout=drafts.optional(timeout),
            ray_options=ray_options(ray or {}, f"{wanted.replace('_', ' ')} '{id or topic}'"),
            **more,
        )

    # --- inside ---

    def _add(
        self,
        node_class: type[Any],
        wanted: str,
        node_id: str | None,
        name: str,
        inputs: Mappings = None,
        outputs: Mappings = None,
        /,
        **fields: object,
    ) -> Cursor:
        from gobpm_ray.model.cursor import Cursor

        node: FlowNode = node_class(
            id=node_id or self._draft.free_id(wanted),
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
