"""BPMN documents for tests, written short: a body of flow nodes becomes a file that any modeller could have saved."""

from __future__ import annotations

import itertools
from pathlib import Path

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" '
    'xmlns:camunda="http://camunda.org/schema/1.0/bpmn" '
    'id="Definitions_1" targetNamespace="http://example.org/bpmn">\n'
)


def document(body: str, process: str = "p", *, around: str = "", executable: str = "true") -> str:
    """One process with this body; `around` stands beside it (messages, signals, other processes)."""
    return (
        f'{HEAD}{around}\n<bpmn:process id="{process}" isExecutable="{executable}">\n{body}\n</bpmn:process>\n'
        "</bpmn:definitions>\n"
    )


def flows(*ids: str) -> str:
    """Sequence flows along a path of elements."""
    return "\n".join(
        f'<bpmn:sequenceFlow id="f_{source}_{target}" sourceRef="{source}" targetRef="{target}"/>'
        for source, target in itertools.pairwise(ids)
    )


def message(name: str, key: str | None = None) -> str:
    """A message declaration of the id `m_<name>`, correlated by a FEEL key."""
    inside = (
        ""
        if key is None
        else f'<bpmn:extensionElements><zeebe:subscription correlationKey="={key}"/></bpmn:extensionElements>'
    )
    return f'<bpmn:message id="m_{name}" name="{name}">{inside}</bpmn:message>\n'


def timer(kind: str, text: str) -> str:
    """A timer event definition: `timeDuration`, `timeDate` or `timeCycle`."""
    return (
        f'<bpmn:timerEventDefinition><bpmn:{kind} xsi:type="bpmn:tFormalExpression">{text}</bpmn:{kind}>'
        "</bpmn:timerEventDefinition>"
    )


APPROVAL = document(
    '<bpmn:startEvent id="start"/><bpmn:userTask id="approve" name="Approve"/><bpmn:endEvent id="end"/>'
    + flows("start", "approve", "end")
)
"""start, approve (a human task), end."""


def written(folder: Path, text: str, name: str = "process.bpmn") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


REMINDERS = document(
    """
    <bpmn:startEvent id="start"/>
    <bpmn:sendTask id="ask" camunda:type="external" camunda:topic="email"/>
    <bpmn:receiveTask id="wait" messageRef="m_Document"/>
    <bpmn:boundaryEvent id="daily" attachedToRef="wait" cancelActivity="false">{}</bpmn:boundaryEvent>
    <bpmn:boundaryEvent id="week" attachedToRef="wait">{}</bpmn:boundaryEvent>
    <bpmn:sendTask id="remind" camunda:type="external" camunda:topic="email"/>
    <bpmn:endEvent id="reminded"/><bpmn:userTask id="call"/><bpmn:endEvent id="talked"/><bpmn:endEvent id="got"/>
    """.format(timer("timeCycle", "R6/P1D"), timer("timeDuration", "P7D"))
    + flows("start", "ask", "wait", "got")
    + flows("daily", "remind", "reminded")
    + flows("week", "call", "talked"),
    "request",
    around=message("Document", "ref"),
)
"""A request with daily reminders and an escalation after a week."""
