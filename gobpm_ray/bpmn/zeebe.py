"""Camunda 8's extension elements. Its attributes are constants unless they begin with `=`."""

from __future__ import annotations

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.extras import Extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.operands import Operands
from gobpm_ray.model.elements import Expression, Mapping

ZEEBE = "http://camunda.org/schema/zeebe/1.0"

_REFUSED = frozenset({"executionListeners", "executionListener", "taskListeners", "taskListener", "adHoc"})
_WITH_THEIR_ELEMENT = frozenset({"calledElement", "calledDecision", "loopCharacteristics"})
"""They belong to elements that are refused themselves."""
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
        elif name not in _WITH_THEIR_ELEMENT:
            _value(name, found, operands, extras)


def _task_definition(found: etree._Element, findings: Findings, extras: Extras, owner: str) -> None:
    topic = xml.attribute(found, "type")
    if topic.startswith("="):
        findings.refuse(found, owner=owner, what=f"the computed type of zeebe:{named(found, owner)}")
    extras.topic = extras.topic or topic
    if xml.attribute(found, "retries"):
        message = f"retries of zeebe:{named(found, owner)} are not used by this engine"
        findings.warn("ignored", found, message, owner=owner)


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
