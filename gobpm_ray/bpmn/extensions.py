"""Extension attributes and elements of the known vendors, by namespace; all others are documentation.

Zeebe, Camunda 7, Flowable, Activiti and this engine's own namespace. Where several vendors speak about one element,
this engine's own word comes first, then Zeebe's, then the others'. Listeners and connectors are code that would run:
refused.
"""

from __future__ import annotations

import json
from typing import cast

from lxml import etree

from gobpm_ray.bpmn import camunda, xml, zeebe
from gobpm_ray.bpmn.extras import Binding, Extras
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.operands import Operands
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model import ray_options
from gobpm_ray.model.elements import Expression, Mapping

RAY = "http://gobpm.dev/schema/ray"
"""Attributes of this engine: `callable` (or `topic`), `idempotent`, `retries`, `timeout`, `resultVariable`, the
assignment, `formKey` and `requiredOutputs` of a user task, `correlationKey` on a message, `decision`, `binding` and
`version`, `inherit`, `propagate` and `businessKey` of a call, `collection`, `itemVariable`, `outputCollection` and
`outputItem` of a multi-instance activity.

Of the Ray task that a service or send task runs as: `num_cpus`, `num_gpus`, `memory`, `resources`, `accelerator_type`,
`runtime_env`, `scheduling`, `label_selector`. Of a process: `secrets`, the names of variables that nobody is shown.
Of a data object or property: `initial`, its first value as JSON. Of a task: `element`, the user's own element that it
is. Of any element: `dehydrationThreshold`.

Elements: `input` and `output` (with the data `stores` that the source sees; an output with `dataStore` writes one),
`schema` (of an item definition: a JSON schema), `requiredOutput`, `parameter` (of an own element), `property` (one of
several correlation keys of a message), `option` (of a Ray task, as JSON), and `operand`: any expression of the element,
BPMN's own included, by its `use`, exactly as written and with its `language`."""


def read_extras(element: etree._Element, operands: Operands, findings: Findings, owner: str = "") -> Extras:
    """Everything that extensions say about the element; `owner` is the id to report for it."""
    extras = Extras()
    owner = owner or xml.attribute(element, "id")
    _own(element, operands, findings, extras, owner)
    zeebe.read(element, operands, findings, extras, owner)
    camunda.read(element, operands, findings, extras, owner)
    return extras


def own_operands(element: etree._Element) -> dict[str, Expression]:
    """This engine's own word about the element's expressions: use -> expression, exactly as written."""
    return {
        xml.attribute(found, "use"): _exact(found)
        for space, name, found in xml.extension_elements(element)
        if space == RAY and name == "operand"
    }


def _exact(found: etree._Element) -> Expression:
    return Expression("".join(str(part) for part in found.itertext()), xml.attribute(found, "language") or "feel")


def _own(element: etree._Element, operands: Operands, findings: Findings, extras: Extras, owner: str) -> None:
    required: list[str] = []
    for space, name, found in xml.extension_elements(element):
        if space != RAY:
            continue
        if name == "operand":
            extras.operands[xml.attribute(found, "use")] = _exact(found)
        elif name in ("input", "output"):
            into = extras.inputs if name == "input" else extras.outputs
            stores = _names(str(found.get("stores") or ""), found, findings, owner)
            to_store = name == "output" and xml.flag(found, "dataStore")
            into.append(Mapping(str(found.get("target") or ""), _exact(found), stores, to_store))
        elif name == "option":
            _ray_option(str(found.get("name") or ""), str(found.get("value") or ""), found, findings, extras, owner)
        elif name == "parameter":
            extras.parameters.append(Mapping(str(found.get("name") or ""), _exact(found)))
        elif name == "property":
            uses = extras.properties.setdefault(str(found.get("name") or ""), {})
            if (use := str(found.get("use") or "")) in ("path", "data"):
                uses[use] = _exact(found)
        elif name == "requiredOutput":
            required.append(str(found.get("name") or ""))
        else:
            message = f"ray:{named(found, owner)} is no extension of this engine"
            findings.error("unknown_element", found, message, owner=owner)
    if any(str(name).startswith(f"{{{RAY}}}") for name in element.attrib) or extras.operands:
        _attributes(element, operands, extras)
        for name in ray_options.NAMES:
            if written := xml.attribute(element, f"{{{RAY}}}{name}"):
                _ray_option(name, written, element, findings, extras, owner)
    extras.required_outputs = (*extras.required_outputs, *required)


def _names(written: str, found: etree._Element, findings: Findings, owner: str) -> tuple[str, ...]:
    """Names of data stores: a JSON list, for they may hold any character; one name may stand alone."""
    if not written.startswith("["):
        return (written,) if written else ()
    try:
        names = json.loads(written)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        findings.error("data_store", found, f"{named(found, owner)}: expected a JSON list of names", owner=owner)
        return ()
    return tuple(names)


def _ray_option(name: str, written: str, found: etree._Element, findings: Findings, extras: Extras, owner: str) -> None:
    """An attribute of its name, or an `option` element with its name and value."""
    try:
        extras.ray_options = (*extras.ray_options, ray_options.from_text(name, written, named(found, owner)))
    except InvalidModel as wrong:
        findings.error("ray_option", found, str(wrong), owner=owner)


def _attributes(element: etree._Element, operands: Operands, extras: Extras) -> None:
    def value(name: str) -> str:
        return xml.attribute(element, f"{{{RAY}}}{name}")

    def operand(name: str) -> Expression | None:
        return extras.operands.get(name) or operands.optional(value(name))

    extras.topic = value("callable") or value("topic")
    extras.idempotent = xml.flag(element, f"{{{RAY}}}idempotent")
    extras.retries = operand("retries")
    extras.timeout = operand("timeout")
    extras.result_variable = value("resultVariable")
    extras.required_outputs = tuple(value("requiredOutputs").replace(",", " ").split())
    extras.assignee = operand("assignee")
    extras.candidate_users = operand("candidateUsers")
    extras.candidate_groups = operand("candidateGroups")
    extras.due = operand("dueDate")
    extras.follow_up = operand("followUpDate")
    extras.priority = operand("priority")
    extras.form = value("formKey")
    extras.element = value("element")
    extras.threshold = value("dehydrationThreshold")
    if key := value("correlationKey"):
        extras.key = operands.expression(key)
    extras.decision = operand("decision")
    extras.business_key = operand("businessKey")
    binding = value("binding")
    if binding in ("latest", "deployment", "version"):
        extras.binding = cast("Binding", binding)
    extras.version = int(value("version")) if value("version").isdecimal() else 0
    if value("inherit"):
        extras.inherit = xml.flag(element, f"{{{RAY}}}inherit")
    if value("propagate"):
        extras.propagate = xml.flag(element, f"{{{RAY}}}propagate")
    if collection := value("collection"):
        extras.collection = operands.expression(collection)
    extras.collection = extras.operands.get("collection") or extras.collection
    extras.item_variable = value("itemVariable")
    extras.output_collection = value("outputCollection")
    if item := value("outputItem"):
        extras.output_item = operands.expression(item)
    extras.output_item = extras.operands.get("outputItem") or extras.output_item
