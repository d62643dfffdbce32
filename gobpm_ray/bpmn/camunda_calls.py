"""What Camunda 7 and its relatives say about calling: other processes, and decisions.

There, nothing passes between caller and called unless it is said; an element that says nothing at all passes everything
here, as BPMN does. The called instance's business key is its own.
"""

from __future__ import annotations

import re

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.extras import Extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.operands import Operands
from gobpm_ray.model.elements import Expression, Mapping

NAMESPACES = {
    "http://camunda.org/schema/1.0/bpmn": "camunda",
    "http://flowable.org/bpmn": "flowable",
    "http://activiti.org/bpmn": "activiti",
}

_OWN_KEY = re.compile(r"[#$]\{\s*execution\.(process)?[bB]usinessKey\s*\}")
_WHOLE_RESULT = ("singleEntry", "")
"""The forms of a decision's result that are the same here."""
_NOT_EXECUTED = (
    "calledElementTenantId",
    "decisionRefTenantId",
    "variableMappingClass",
    "processInstanceIdVariableName",
)


def read(element: etree._Element, operands: Operands, findings: Findings, extras: Extras, owner: str) -> None:
    """Variables in and out, business key and binding of a call activity; the decision of a business rule task."""
    for space, prefix in NAMESPACES.items():
        _passed(element, space, prefix, operands, findings, extras, owner)
        if any(str(name).startswith(f"{{{space}}}") for name in element.attrib):
            _attributes(element, space, prefix, operands, findings, extras, owner)
        if xml.attribute(element, f"{{{space}}}type") == "dmn":
            _flowable_decision(element, space, operands, extras)


def _attributes(
    element: etree._Element,
    space: str,
    prefix: str,
    operands: Operands,
    findings: Findings,
    extras: Extras,
    owner: str,
) -> None:
    def value(name: str) -> str:
        return xml.attribute(element, f"{{{space}}}{name}")

    def warn(name: str) -> None:
        message = f'{prefix}:{name}="{value(name)}" of {named(element)} is not used by this engine'
        findings.warn("ignored", element, message, owner=owner)

    if decision := value("decisionRef"):
        extras.decision = extras.decision or operands.optional(decision)
        if value("mapDecisionResult") not in _WHOLE_RESULT:
            warn("mapDecisionResult")
    for subject in ("calledElement", "decisionRef"):
        binding, version = value(f"{subject}Binding"), value(f"{subject}Version")
        if binding == "latest" or (binding == "deployment" and extras.binding is None):
            extras.binding = extras.binding or ("latest" if binding == "latest" else "deployment")
        elif binding == "version" and version.isdecimal():
            extras.binding, extras.version = "version", int(version)
        elif binding:
            findings.refuse(element, owner=owner, what=f"{prefix}:{subject}Binding {binding} of {named(element)}")
    if xml.flag(element, f"{{{space}}}sameDeployment") and extras.binding is None:
        extras.binding = "deployment"
    if value("inheritVariables") and extras.inherit is None:
        extras.inherit = xml.flag(element, f"{{{space}}}inheritVariables")
    if key := value("businessKey"):
        _key(element, f"{prefix}:businessKey of {named(element)}", key, operands, findings, extras, owner)
    for name in (
        "calledElementTenantId",
        "decisionRefTenantId",
        "variableMappingClass",
        "processInstanceIdVariableName",
    ):
        if value(name):
            warn(name)
    if value("calledElementType") not in ("", "key"):
        findings.refuse(element, owner=owner, what=f"{prefix}:calledElementType of {named(element)}")


def _passed(
    element: etree._Element,
    space: str,
    prefix: str,
    operands: Operands,
    findings: Findings,
    extras: Extras,
    owner: str,
) -> None:
    inputs: list[Mapping] = []
    outputs: list[Mapping] = []
    everything = {"in": False, "out": False}
    met = False
    for found_space, name, found in xml.extension_elements(element):
        if found_space != space or name not in ("in", "out"):
            continue
        met = True
        kind = f"{prefix}:{named(found, owner)}"
        if xml.flag(found, "local"):
            findings.warn("ignored", found, f"local of {kind} is not used by this engine", owner=owner)
        if xml.attribute(found, "variables") == "all":
            everything[name] = True
        elif key := xml.attribute(found, "businessKey"):
            _key(found, kind, key, operands, findings, extras, owner)
        elif mapping := _mapping(found, kind, operands, findings, owner):
            (inputs if name == "in" else outputs).append(mapping)
    if not met:
        return
    if (inputs and extras.inputs) or (outputs and extras.outputs):
        findings.refuse(element, owner=owner, what=f"{prefix}:in and out beside other mappings of {named(element)}")
    extras.inputs.extend(inputs)
    extras.outputs.extend(outputs)
    extras.inherit = everything["in"] if extras.inherit is None else extras.inherit
    extras.propagate = everything["out"] if extras.propagate is None else extras.propagate


def _mapping(found: etree._Element, kind: str, operands: Operands, findings: Findings, owner: str) -> Mapping | None:
    target = xml.attribute(found, "target") or xml.attribute(found, "source")
    if not target:
        findings.error("missing_target", found, f"{kind} has no target", owner=owner)
        return None
    return Mapping(target, _source(found, operands))


def _source(found: etree._Element, operands: Operands) -> Expression:
    expression = xml.attribute(found, "sourceExpression")
    if expression:
        return operands.expression(expression)
    return operands.named_variable(xml.attribute(found, "source"))


def _key(
    element: etree._Element, what: str, key: str, operands: Operands, findings: Findings, extras: Extras, owner: str
) -> None:
    if _OWN_KEY.fullmatch(key):
        message = f"{what}: the caller's business key is not handed on; give an expression over variables"
        findings.warn("ignored", element, message, owner=owner)
    else:
        extras.business_key = extras.business_key or operands.optional(key)


def _flowable_decision(element: etree._Element, space: str, operands: Operands, extras: Extras) -> None:
    for found_space, name, found in xml.extension_elements(element):
        wanted = ("decisionTableReferenceKey", "decisionServiceReferenceKey")
        if found_space == space and name == "field" and xml.attribute(found, "name") in wanted:
            text = xml.attribute(found, "stringValue") or xml.text(found)
            extras.decision = extras.decision or operands.optional(text)
