"""Small BPMN documents for tests, as text around what a test is about."""

from __future__ import annotations

from pathlib import Path

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    ' xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"'
    ' xmlns:camunda="http://camunda.org/schema/1.0/bpmn"'
    ' xmlns:flowable="http://flowable.org/bpmn"'
    ' xmlns:activiti="http://activiti.org/bpmn"'
    ' xmlns:ray="http://gobpm.dev/schema/ray"'
    ' targetNamespace="http://example.org"{attributes}>\n'
)
CORPUS = Path(__file__).parents[4] / "shared" / "corpus"


def document(process_body: str, *, beside: str = "", executable: str = "true", attributes: str = "") -> bytes:
    """One process `p` with the body; `beside` stands at the root. `executable` '' leaves the attribute out."""
    flag = f' isExecutable="{executable}"' if executable else ""
    return (
        HEAD.format(attributes=attributes)
        + beside
        + f'<bpmn:process id="p"{flag}>\n{process_body}\n</bpmn:process>\n</bpmn:definitions>'
    ).encode()


def around(element: str, node_id: str = "x", *, beside: str = "", executable: str = "true") -> bytes:
    """start -> the element, whose id is `node_id` -> end."""
    return document(
        '<bpmn:startEvent id="s"/>\n'
        f"{element}\n"
        '<bpmn:endEvent id="e"/>\n'
        f'<bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="{node_id}"/>\n'
        f'<bpmn:sequenceFlow id="f2" sourceRef="{node_id}" targetRef="e"/>',
        beside=beside,
        executable=executable,
    )
