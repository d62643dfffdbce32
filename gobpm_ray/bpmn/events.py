"""Event definitions: what an event waits for or throws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.camunda import NAMESPACES as CAMUNDA_LIKE
from gobpm_ray.bpmn.context import NodeContext
from gobpm_ray.bpmn.declarations import Side, unprefixed
from gobpm_ray.bpmn.extensions import own_operands
from gobpm_ray.bpmn.findings import named
from gobpm_ray.bpmn.tables import EVENT_DEFINITIONS, REFUSED
from gobpm_ray.model.elements import (
    CancelDefinition,
    CompensateDefinition,
    ConditionalDefinition,
    EventDefinition,
    Expression,
    LinkDefinition,
    TerminateDefinition,
    TimerDefinition,
    literal,
)

_TIMER_KINDS: tuple[tuple[str, Literal["date", "duration", "cycle"]], ...] = (
    ("timeDate", "date"),
    ("timeDuration", "duration"),
    ("timeCycle", "cycle"),
)


def read_definitions(event: etree._Element, side: Side, context: NodeContext) -> tuple[EventDefinition, ...] | None:
    """The event's definitions in document order; None if one is refused, which is then said in `findings`."""
    owner = xml.attribute(event, "id")
    read: list[EventDefinition] = []
    refused = False
    for kind, element in _definition_elements(event, context, owner):
        definition = _definition(kind, element, side, context, owner)
        if definition is None:
            context.findings.refuse(element, owner=owner)
            refused = True
        else:
            read.append(definition)
        for extension in _vendors_words(element):
            message = f"{extension} of {named(element, owner)} is not used by this engine"
            context.findings.warn("ignored", element, message, owner=owner)
    return None if refused else tuple(read)


def _vendors_words(element: etree._Element) -> Iterator[str]:
    """What Camunda and its relatives say about a definition (variables for its code, code to run): none of it counts
    here."""
    for attribute in element.attrib:
        space, _, name = str(attribute)[1:].partition("}")
        if space in CAMUNDA_LIKE:
            yield f"{CAMUNDA_LIKE[space]}:{name}"
    for space, name, _ in xml.extension_elements(element):
        if space in CAMUNDA_LIKE:
            yield f"{CAMUNDA_LIKE[space]}:{name}"


def _definition(
    kind: str, element: etree._Element, side: Side, context: NodeContext, owner: str
) -> EventDefinition | None:
    declared, findings = context.declarations, context.findings
    if kind == "timerEventDefinition":
        return _timer(element, context, owner)
    if kind == "messageEventDefinition":
        return declared.message(element, side, context.process, findings, owner)
    if kind == "signalEventDefinition":
        return declared.signal(element, findings, owner)
    if kind == "errorEventDefinition":
        return declared.error(element, findings, owner)
    if kind == "escalationEventDefinition":
        return declared.escalation(element, findings, owner)
    if kind == "conditionalEventDefinition":
        return _conditional(element, context)
    if kind == "compensateEventDefinition":
        if not xml.flag(element, "waitForCompletion", default=True):
            message = f"waitForCompletion of {named(element, owner)} is not used: compensation is always waited for"
            findings.warn("ignored", element, message, owner=owner)
        return CompensateDefinition(activity=unprefixed(xml.attribute(element, "activityRef")))
    if kind == "linkEventDefinition":
        return LinkDefinition(name=" ".join(xml.attribute(element, "name").split()))
    if kind == "cancelEventDefinition":
        return CancelDefinition()
    return TerminateDefinition() if kind == "terminateEventDefinition" else None


def _definition_elements(event: etree._Element, context: NodeContext, owner: str) -> list[tuple[str, etree._Element]]:
    found = []
    for kind, element in xml.bpmn_children(event):
        if kind == "eventDefinitionRef":
            reference = xml.text(element)
            shared = context.declarations.event_definition(reference)
            if shared is None:
                message = f"{named(element, owner)} refers to the event definition '{reference}', which does not exist"
                context.findings.error("unknown_reference", element, message, owner=owner)
            else:
                found.append((xml.local(shared), shared))
        elif kind in EVENT_DEFINITIONS or (kind in REFUSED and kind.endswith("EventDefinition")):
            found.append((kind, element))
    return found


def _timer(element: etree._Element, context: NodeContext, owner: str) -> TimerDefinition:
    given = [(kind, child) for name, kind in _TIMER_KINDS if (child := xml.child(element, name)) is not None]
    if not given:
        return TimerDefinition(value=literal(""))
    if len(given) > 1:
        message = f"{named(element, owner)} has more than one of timeDate, timeDuration and timeCycle"
        context.findings.error("several_timers", element, message, owner=owner)
    kind, child = given[0]
    own = own_operands(element).get("timer")
    return TimerDefinition(kind=kind, value=own or context.operands.timer(kind, child))


def _conditional(element: etree._Element, context: NodeContext) -> ConditionalDefinition:
    own = own_operands(element).get("condition")
    condition = xml.child(element, "condition")
    if own is not None:
        return ConditionalDefinition(condition=own)
    if condition is None or not xml.text(condition):
        return ConditionalDefinition(condition=Expression(""))
    return ConditionalDefinition(condition=context.operands.formal(condition))
