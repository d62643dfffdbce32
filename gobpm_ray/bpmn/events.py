"""Event definitions: what an event waits for or throws."""

from __future__ import annotations

from typing import Literal

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.declarations import Declarations, Side
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.operands import Operands
from gobpm_ray.bpmn.tables import EVENT_DEFINITIONS, REFUSED
from gobpm_ray.model.elements import EventDefinition, TerminateDefinition, TimerDefinition, literal

_TIMER_KINDS: tuple[tuple[str, Literal["date", "duration", "cycle"]], ...] = (
    ("timeDate", "date"),
    ("timeDuration", "duration"),
    ("timeCycle", "cycle"),
)


def read_definitions(
    event: etree._Element,
    side: Side,
    process: etree._Element,
    declarations: Declarations,
    operands: Operands,
    findings: Findings,
) -> tuple[EventDefinition, ...] | None:
    """The event's definitions in document order; None if one is refused, which is then said in `findings`."""
    owner = xml.attribute(event, "id")
    read: list[EventDefinition] = []
    refused = False
    for kind, element in _definition_elements(event, declarations, findings, owner):
        if kind not in EVENT_DEFINITIONS:
            findings.refuse(element, owner=owner)
            refused = True
        elif kind == "timerEventDefinition":
            read.append(_timer(element, operands, findings, owner))
        elif kind == "messageEventDefinition":
            read.append(declarations.message(element, side, process, findings, owner))
        elif kind == "signalEventDefinition":
            read.append(declarations.signal(element, findings, owner))
        else:
            read.append(TerminateDefinition())
    if xml.flag(event, "parallelMultiple"):
        findings.refuse(event, what=f"parallelMultiple of {named(event)}")
        refused = True
    return None if refused else tuple(read)


def _definition_elements(
    event: etree._Element, declarations: Declarations, findings: Findings, owner: str
) -> list[tuple[str, etree._Element]]:
    found = []
    for kind, element in xml.bpmn_children(event):
        if kind == "eventDefinitionRef":
            reference = xml.text(element)
            shared = declarations.event_definition(reference)
            if shared is None:
                message = f"{named(element, owner)} refers to the event definition '{reference}', which does not exist"
                findings.error("unknown_reference", element, message, owner=owner)
            else:
                found.append((xml.local(shared), shared))
        elif kind in EVENT_DEFINITIONS or (kind in REFUSED and kind.endswith("EventDefinition")):
            found.append((kind, element))
    return found


def _timer(element: etree._Element, operands: Operands, findings: Findings, owner: str) -> TimerDefinition:
    given = [(kind, child) for name, kind in _TIMER_KINDS if (child := xml.child(element, name)) is not None]
    if not given:
        return TimerDefinition(value=literal(""))
    if len(given) > 1:
        message = f"{named(element, owner)} has more than one of timeDate, timeDuration and timeCycle"
        findings.error("several_timers", element, message, owner=owner)
    kind, child = given[0]
    return TimerDefinition(kind=kind, value=operands.timer(kind, child))
