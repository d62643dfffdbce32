"""Camunda 8's extension elements. Its attributes are constants unless they begin with `=`."""

from __future__ import annotations

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.extras import Extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.operands import Operands
from gobpm_ray.model.elements import Expression, Mapping, literal

ZEEBE = "http://camunda.org/schema/zeebe/1.0"

_REFUSED = frozenset({"executionListeners", "executionListener", "taskListeners", "taskListener", "adHoc"})
_NOT_EXECUTED = frozenset({"taskHeaders", "conditionalFilter", "linkedResources"})


def read(element: etree._Element, operands: Operands, findings: Findings, extras: Extras, owner: str) -> None:
    for space, name, found in xml.extension_elements(element):
        if space != ZEEBE:
            continue
        if name in _REFUSED:
            findings.refuse(found, owner=owner, what=f"zeebe:{named(found, owner)}")
        elif name in _NOT_EXECUTED:
            findings.warn("ignored", found, f"zeebe:{named(found, owner)} is not used by this engine", owner=owner)
        elif name == "taskDefinition":
            _task_definition(found, findings, extras, owner)
        elif name == "ioMapping":
            _io_mapping(found, operands, findings, extras, owner)
        elif name in ("calledElement", "calledDecision"):
            _called(name, found, operands, findings, extras, owner)
        elif name == "loopCharacteristics":
            _loop(found, operands, extras)
        else:
            _value(name, found, operands, extras)


def _task_definition(found: etree._Element, findings: Findings, extras: Extras, owner: str) -> None:
    topic = xml.attribute(found, "type")
    if topic.startswith("="):
        findings.refuse(found, owner=owner, what=f"the computed type of zeebe:{named(found, owner)}")
    extras.topic = extras.topic or topic
    retries = xml.attribute(found, "retries")
    if retries.isdecimal() and extras.retries is None:
        # There it counts attempts; here it is how often one is repeated.
        extras.retries = literal(str(max(int(retries) - 1, 0)))
    elif retries.startswith("=") and extras.retries is None:
        extras.retries = Expression(f"max(0, ({retries[1:].strip()}) - 1)")


def _called(
    name: str, found: etree._Element, operands: Operands, findings: Findings, extras: Extras, owner: str
) -> None:
    binding = xml.attribute(found, "bindingType")
    if binding not in ("", "latest", "deployment"):
        findings.refuse(found, owner=owner, what=f"the bindingType {binding} of zeebe:{named(found, owner)}")
    if extras.binding is None and binding in ("latest", "deployment"):
        extras.binding = "latest" if binding == "latest" else "deployment"
    if name == "calledDecision":
        extras.decision = extras.decision or operands.optional(xml.attribute(found, "decisionId"))
        extras.result_variable = extras.result_variable or xml.attribute(found, "resultVariable")
        return
    extras.called = extras.called or operands.optional(xml.attribute(found, "processId"))
    if extras.inherit is None:
        extras.inherit = xml.flag(found, "propagateAllParentVariables", default=True)
    if extras.propagate is None:
        extras.propagate = xml.flag(found, "propagateAllChildVariables", default=True)
    if key := xml.attribute(found, "businessId"):
        extras.business_key = extras.business_key or operands.optional(key)


def _loop(found: etree._Element, operands: Operands, extras: Extras) -> None:
    collection, item = xml.attribute(found, "inputCollection"), xml.attribute(found, "outputElement")
    if collection:
        extras.collection = extras.collection or operands.expression(collection)
    extras.item_variable = extras.item_variable or xml.attribute(found, "inputElement")
    extras.output_collection = extras.output_collection or xml.attribute(found, "outputCollection")
    if item:
        extras.output_item = extras.output_item or operands.expression(item)


def _io_mapping(found: etree._Element, operands: Operands, findings: Findings, extras: Extras, owner: str) -> None:
    if extras.inputs or extras.outputs:
        return
    for mapping in found:
        target, source = xml.attribute(mapping, "target"), xml.attribute(mapping, "source")
        if xml.namespace(mapping) != ZEEBE or xml.local(mapping) not in ("input", "output"):
            continue
        if not target:
            findings.error("missing_target", mapping, f"zeebe:{named(mapping, owner)} has no target", owner=owner)
            continue
        into = extras.inputs if xml.local(mapping) == "input" else extras.outputs
        into.append(Mapping(target, operands.operand(source)))


def _value(name: str, found: etree._Element, operands: Operands, extras: Extras) -> None:
    def operand(attribute: str) -> Expression | None:
        return operands.optional(xml.attribute(found, attribute))

    if name == "subscription":
        key = xml.attribute(found, "correlationKey")
        extras.key = extras.key or (operands.expression(key) if key else None)
    elif name == "assignmentDefinition":
        extras.assignee = extras.assignee or operand("assignee")
        extras.candidate_users = extras.candidate_users or operand("candidateUsers")
        extras.candidate_groups = extras.candidate_groups or operand("candidateGroups")
    elif name == "taskSchedule":
        extras.due = extras.due or operand("dueDate")
        extras.follow_up = extras.follow_up or operand("followUpDate")
    elif name == "priorityDefinition":
        extras.priority = extras.priority or operand("priority")
    elif name == "formDefinition":
        reference = ("formId", "formKey", "externalReference")
        extras.form = extras.form or next((v for a in reference if (v := xml.attribute(found, a))), "")
    elif name == "script":
        extras.script = extras.script or operands.expression(xml.attribute(found, "expression"))
        extras.result_variable = extras.result_variable or xml.attribute(found, "resultVariable")
