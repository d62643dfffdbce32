"""Activities: one reader per element. Each gives a node, or None and says why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.camunda import NAMESPACES as CAMUNDA_LIKE
from gobpm_ray.bpmn.declarations import Side, unprefixed
from gobpm_ray.bpmn.findings import named
from gobpm_ray.bpmn.reading import Reading
from gobpm_ray.model.elements import (
    AbstractTask,
    CallActivity,
    CustomTask,
    DecisionTask,
    Expression,
    FlowNode,
    ReceiveTask,
    ScriptTask,
    SubProcess,
    UserTask,
    WorkTask,
    literal,
)


def _task(reading: Reading) -> FlowNode:
    extras = reading.extras
    if extras.element:
        return CustomTask(**reading.activity, element=extras.element, parameters=tuple(extras.parameters))
    return AbstractTask(**reading.activity, type="task")


def _manual_task(reading: Reading) -> FlowNode:
    return AbstractTask(**reading.activity, type="manualTask")


def _service_task(reading: Reading) -> FlowNode:
    return _decision(reading) or _work(reading)


def _work(reading: Reading, kind: Literal["serviceTask", "businessRuleTask"] = "serviceTask") -> WorkTask:
    extras = reading.extras
    return WorkTask(
        **reading.activity,
        type=kind,
        topic=extras.topic,
        idempotent=extras.idempotent,
        result_variable=extras.result_variable,
        retries=extras.retries,
        timeout=extras.timeout,
        ray_options=extras.ray_options,
    )


def _business_rule_task(reading: Reading) -> FlowNode:
    return _decision(reading) or _work(reading, "businessRuleTask")


def _decision(reading: Reading) -> DecisionTask | None:
    extras = reading.extras
    if extras.decision is None:
        return None
    return DecisionTask(
        **reading.activity,
        decision=extras.decision,
        binding=extras.binding or "latest",
        version=extras.version,
        result_variable=extras.result_variable,
    )


def _send_task(reading: Reading) -> FlowNode:
    extras, context = reading.extras, reading.context
    message = None
    if xml.attribute(reading.element, "messageRef"):
        message = context.declarations.message(reading.element, "throw", context.process, context.findings, reading.id)
    return WorkTask(
        **reading.activity,
        type="sendTask",
        topic=extras.topic,
        idempotent=extras.idempotent,
        message=message,
        result_variable=extras.result_variable,
        retries=extras.retries,
        timeout=extras.timeout,
        ray_options=extras.ray_options,
    )


def _receive_task(reading: Reading) -> FlowNode:
    context, element = reading.context, reading.element
    instantiate = xml.flag(element, "instantiate")
    side: Side = "start" if instantiate and reading.at_process_level else "catch"
    message = context.declarations.message(element, side, context.process, context.findings, reading.id)
    return ReceiveTask(**reading.activity, message=message, instantiate=instantiate)


def _user_task(reading: Reading) -> FlowNode:
    extras = reading.extras
    return UserTask(
        **reading.activity,
        assignee=extras.assignee,
        candidate_users=extras.candidate_users,
        candidate_groups=extras.candidate_groups,
        due=extras.due,
        follow_up=extras.follow_up,
        priority=extras.priority,
        form=extras.form,
        required_outputs=extras.required_outputs,
    )


def _script_task(reading: Reading) -> FlowNode | None:
    element, extras, findings = reading.element, reading.extras, reading.context.findings
    if any(xml.attribute(element, f"{{{space}}}resource") for space in CAMUNDA_LIKE):
        findings.refuse(element, what=f"a script in another file, for {named(element)},")
        return None
    script = extras.operands.get("script") or extras.script
    written = xml.child(element, "script")
    if script is None and written is not None and xml.text(written):
        script = reading.context.operands.expression(xml.text(written), xml.attribute(element, "scriptFormat"))
    if script is not None:
        return ScriptTask(**reading.activity, script=script, result_variable=extras.result_variable)
    if extras.topic:
        return _work(reading)
    findings.error("missing_script", element, f"{named(element)} has no script")
    return None


def _call_activity(reading: Reading) -> FlowNode | None:
    extras, element, context = reading.extras, reading.element, reading.context
    called = extras.operands.get("called") or extras.called or _called_element(reading)
    if called is not None and (why := context.declarations.not_callable.get(called.text, "")):
        message = f"{named(element)} calls the global task '{called.text}', which cannot be executed: {why}"
        context.findings.error("not_callable", element, message)
        return None
    return CallActivity(
        **reading.activity,
        called=called or literal(""),
        binding=extras.binding or "latest",
        version=extras.version,
        inherit=extras.inherit is not False,
        propagate=extras.propagate is not False,
        business_key=extras.operands.get("businessKey") or extras.business_key,
    )


def _called_element(reading: Reading) -> Expression | None:
    text = xml.attribute(reading.element, "calledElement")
    prefix, colon, _ = text.partition(":")
    # A QName only where the prefix is one: ids of some tools hold colons of their own.
    if colon and prefix in reading.element.nsmap:
        text = unprefixed(text)
    return reading.context.operands.optional(text)


# --- sub-processes -----------------------------------------------------------------------------------------------


def _sub_process(reading: Reading) -> FlowNode:
    event = xml.flag(reading.element, "triggeredByEvent")
    return SubProcess(**reading.activity, kind="event" if event else "embedded")


def _transaction(reading: Reading) -> FlowNode:
    return SubProcess(**reading.activity, kind="transaction")


def _ad_hoc(reading: Reading) -> FlowNode:
    sequential = xml.attribute(reading.element, "ordering").lower() == "sequential"
    return SubProcess(
        **reading.activity,
        kind="adhoc",
        ordering="sequential" if sequential else "parallel",
        completion=reading.formal("completionCondition", "completion"),
        cancel_remaining=xml.flag(reading.element, "cancelRemainingInstances", default=True),
    )


SUB_PROCESSES = ("subProcess", "transaction", "adHocSubProcess")
ACTIVITY_READERS: dict[str, Callable[[Reading], FlowNode | None]] = {
    "task": _task,
    "manualTask": _manual_task,
    "serviceTask": _service_task,
    "sendTask": _send_task,
    "receiveTask": _receive_task,
    "userTask": _user_task,
    "scriptTask": _script_task,
    "businessRuleTask": _business_rule_task,
    "callActivity": _call_activity,
    "subProcess": _sub_process,
    "transaction": _transaction,
    "adHocSubProcess": _ad_hoc,
}
