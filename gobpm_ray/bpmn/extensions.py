"""Extension attributes and elements of the known vendors, by namespace; all others are documentation.

Zeebe, Camunda 7, Flowable, Activiti and this engine's own namespace. Where several vendors speak about one element,
this engine's own word comes first, then Zeebe's, then the others'. Listeners and connectors are code that would run:
refused.
"""

from __future__ import annotations

from lxml import etree

from gobpm_ray.bpmn import camunda, xml, zeebe
from gobpm_ray.bpmn.extras import Extras
from gobpm_ray.bpmn.findings import Findings
from gobpm_ray.bpmn.operands import Operands

RAY = "http://gobpm.dev/schema/ray"
"""Attributes of this engine: `callable` (or `topic`), `idempotent`, `requiredOutputs`, `resultVariable`, the assignment
of a user task, and `correlationKey` on a message."""


def read_extras(element: etree._Element, operands: Operands, findings: Findings, owner: str = "") -> Extras:
    """Everything that extensions say about the element; `owner` is the id to report for it."""
    extras = Extras()
    owner = owner or xml.attribute(element, "id")
    _own(element, operands, extras)
    zeebe.read(element, operands, findings, extras, owner)
    camunda.read(element, operands, findings, extras, owner)
    return extras


def _own(element: etree._Element, operands: Operands, extras: Extras) -> None:
    def value(name: str) -> str:
        return xml.attribute(element, f"{{{RAY}}}{name}")

    extras.topic = value("callable") or value("topic")
    extras.idempotent = xml.flag(element, f"{{{RAY}}}idempotent")
    extras.result_variable = value("resultVariable")
    extras.required_outputs = tuple(value("requiredOutputs").replace(",", " ").split())
    extras.assignee = operands.optional(value("assignee"))
    extras.candidate_users = operands.optional(value("candidateUsers"))
    extras.candidate_groups = operands.optional(value("candidateGroups"))
    extras.due = operands.optional(value("dueDate"))
    extras.follow_up = operands.optional(value("followUpDate"))
    extras.priority = operands.optional(value("priority"))
    extras.form = value("formKey")
    if key := value("correlationKey"):
        extras.key = operands.expression(key)
