"""Camunda 7's extensions, and those of its relatives Flowable and Activiti, which name nearly everything alike.

Texts are constants unless they hold `${...}` or `#{...}`. A Java class, delegate or method expression cannot run here;
its text becomes the topic, so that a callable can be registered under it, with a warning.
"""

from __future__ import annotations

import json
import re

from lxml import etree

from gobpm_ray.bpmn import camunda_calls, xml
from gobpm_ray.bpmn.camunda_calls import NAMESPACES
from gobpm_ray.bpmn.extras import Extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.operands import Operands, is_marked
from gobpm_ray.model.elements import Expression, Mapping

__all__ = ["NAMESPACES", "read"]

_REFUSED = frozenset({"executionListener", "taskListener", "eventListener", "connector"})
_NOT_EXECUTED = frozenset({"field", "errorEventDefinition", "mapException"})
_CODE = ("class", "delegateExpression", "expression")
_VARIABLE = re.compile(r"[$#]\{\s*([^\W\d]\w*)\s*\}")


def read(element: etree._Element, operands: Operands, findings: Findings, extras: Extras, owner: str) -> None:
    for space, prefix in NAMESPACES.items():
        _attributes(element, space, prefix, operands, findings, extras, owner)
    for space, name, found in xml.extension_elements(element):
        if space not in NAMESPACES:
            continue
        kind = f"{NAMESPACES[space]}:{named(found, owner)}"
        if name in _REFUSED:
            findings.refuse(found, owner=owner, what=kind)
        elif name in _NOT_EXECUTED:
            findings.warn("ignored", found, f"{kind} is not used by this engine", owner=owner)
        elif name == "failedJobRetryTimeCycle":
            extras.retries = extras.retries or operands.optional(xml.text(found))
        elif name == "inputOutput":
            _input_output(found, kind, operands, findings, extras, owner)
    camunda_calls.read(element, operands, findings, extras, owner)


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

    if not any(str(name).startswith(f"{{{space}}}") for name in element.attrib):
        return
    extras.assignee = extras.assignee or operands.optional(value("assignee"))
    extras.candidate_users = extras.candidate_users or operands.optional(value("candidateUsers"))
    extras.candidate_groups = extras.candidate_groups or operands.optional(value("candidateGroups"))
    extras.due = extras.due or operands.optional(value("dueDate"))
    extras.follow_up = extras.follow_up or operands.optional(value("followUpDate"))
    extras.priority = extras.priority or operands.optional(value("priority"))
    extras.form = extras.form or value("formKey") or value("formRef")
    extras.result_variable = extras.result_variable or value("resultVariable") or value("resultVariableName")
    if collection := value("collection"):
        extras.collection = extras.collection or operands.named_variable(collection)
    extras.item_variable = extras.item_variable or value("elementVariable")
    if extras.topic:
        return
    if topic := value("topic"):
        extras.topic = topic
    elif code := next((name for name in _CODE if value(name)), ""):
        extras.topic = value(code)
        wanted = f"{prefix}:{code} of {named(element)} names code of another engine"
        findings.warn("foreign_code", element, f"{wanted}: register a callable as '{extras.topic}'", owner=owner)
    elif (built_in := value("type")) and built_in not in ("external", "external-worker", "dmn"):
        extras.topic = built_in
        wanted = f"{prefix}:type of {named(element)} names a built-in of another engine"
        findings.warn("foreign_code", element, f"{wanted}: register a callable as '{built_in}'", owner=owner)


def _input_output(
    found: etree._Element, kind: str, operands: Operands, findings: Findings, extras: Extras, owner: str
) -> None:
    if extras.inputs or extras.outputs:
        return
    for parameter in found:
        name, target = xml.local(parameter), xml.attribute(parameter, "name")
        if name not in ("inputParameter", "outputParameter"):
            continue
        if not target:
            findings.error("missing_target", parameter, f"{kind} has a parameter without a name", owner=owner)
            continue
        into = extras.inputs if name == "inputParameter" else extras.outputs
        if not len(parameter):
            into.append(Mapping(target, operands.operand(xml.text(parameter))))
        elif (text := _collection(parameter[0])) is not None:
            into.append(Mapping(target, Expression(text)))
        else:
            shape = xml.local(parameter[0])
            findings.refuse(parameter, owner=owner, what=f"the {shape} in parameter '{target}' of {kind}")


def _collection(element: etree._Element) -> str | None:
    """A list or map of constants and variables as FEEL; None for what computes, or holds anything else."""
    shape, parts = xml.local(element), []
    for part in element.iterchildren(tag=etree.Element):
        text = _item(xml.text(part)) if not len(part) else None
        if text is None or (shape, xml.local(part)) not in (("list", "value"), ("map", "entry")):
            return None
        parts.append(text if shape == "list" else f"{json.dumps(xml.attribute(part, 'key'))}: {text}")
    inside = ", ".join(parts)
    return {"list": f"[{inside}]", "map": f"{{{inside}}}"}.get(shape)


def _item(text: str) -> str | None:
    if not is_marked(text):
        return json.dumps(text)
    named_variable = _VARIABLE.fullmatch(text)
    return named_variable[1] if named_variable else None
