"""`docs/conformance.md` against the reader's tables, and the tables against what the reader does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gobpm_ray.bpmn.nodes import NODE_READERS
from gobpm_ray.bpmn.reader import examine
from gobpm_ray.bpmn.tables import DOCUMENTATION, EVENT_DEFINITIONS, EXECUTED, REFUSED, WARNED
from tests.unit.bpmn.documents import around, document

PAGE = Path(__file__).parents[3] / "docs" / "conformance.md"
TABLES = {"Executed": EXECUTED, "Documentation": DOCUMENTATION, "Refused": REFUSED}


@pytest.mark.parametrize("title", TABLES)
def test_the_page_says_what_the_readers_table_says(title: str) -> None:
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\|$", section, re.MULTILINE)
    assert dict(rows) == TABLES[title]
    assert len(rows) == len(TABLES[title])


def test_no_element_stands_in_two_tables() -> None:
    assert len(EXECUTED.keys() | DOCUMENTATION.keys() | REFUSED.keys()) == len(EXECUTED) + len(DOCUMENTATION) + len(
        REFUSED
    )


def test_every_node_and_event_definition_that_is_read_is_said_to_be_executed() -> None:
    assert NODE_READERS.keys() <= EXECUTED.keys()
    assert EXECUTED.keys() >= EVENT_DEFINITIONS
    assert DOCUMENTATION.keys() >= WARNED


ROOT = (
    '<bpmn:message id="m" name="M"/><bpmn:signal id="g" name="G"/>'
    '<bpmn:timerEventDefinition id="shared"><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition>'
)
_MESSAGE = '<bpmn:messageEventDefinition messageRef="m"/>'
_TIMER = "<bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition>"
_SIGNAL = '<bpmn:signalEventDefinition signalRef="g"/>'
EXECUTABLE = {
    **{f"start {kind}": f'<bpmn:startEvent id="n">{d}</bpmn:startEvent>' for kind, d in (
        ("none", ""), ("message", _MESSAGE), ("timer", _TIMER), ("signal", _SIGNAL))},
    **{f"end {kind}": f'<bpmn:endEvent id="n">{d}</bpmn:endEvent>' for kind, d in (
        ("none", ""), ("message", _MESSAGE), ("signal", _SIGNAL), ("terminate", "<bpmn:terminateEventDefinition/>"))},
    **{f"catch {kind}": f'<bpmn:intermediateCatchEvent id="n">{d}</bpmn:intermediateCatchEvent>' for kind, d in (
        ("message", _MESSAGE), ("timer", _TIMER), ("signal", _SIGNAL),
        ("shared", "<bpmn:eventDefinitionRef>shared</bpmn:eventDefinitionRef>"))},
    **{f"throw {kind}": f'<bpmn:intermediateThrowEvent id="n">{d}</bpmn:intermediateThrowEvent>' for kind, d in (
        ("none", ""), ("message", _MESSAGE), ("signal", _SIGNAL))},
    **{f"boundary {kind}": f'<bpmn:task id="t"/><bpmn:boundaryEvent id="n" attachedToRef="t">{d}</bpmn:boundaryEvent>'
        for kind, d in (("message", _MESSAGE), ("timer", _TIMER), ("signal", _SIGNAL))},
    **{kind: f'<bpmn:{kind} id="n"/>' for kind in (
        "task", "manualTask", "serviceTask", "sendTask", "userTask",
        "exclusiveGateway", "parallelGateway", "subProcess")},
    "receiveTask": '<bpmn:receiveTask id="n" messageRef="m"/>',
    "scriptTask": '<bpmn:scriptTask id="n"><bpmn:script>1 + 1</bpmn:script></bpmn:scriptTask>',
    "eventBasedGateway": '<bpmn:eventBasedGateway id="n"/><bpmn:receiveTask id="r" messageRef="m"/>'
    '<bpmn:sequenceFlow id="f" sourceRef="n" targetRef="r"/>',
}  # fmt: skip


@pytest.mark.parametrize("what", EXECUTABLE)
def test_every_executed_node_is_read(what: str) -> None:
    examination = examine(document(EXECUTABLE[what], beside=ROOT))
    assert examination.errors == ()
    process = examination.definitions.processes[0]
    assert process.executable
    tag = re.findall(r'<bpmn:(\w+) id="n"', EXECUTABLE[what])[0]
    assert process.nodes["n"].type == tag


def test_the_test_above_leaves_no_node_out() -> None:
    seen = {tag for body in EXECUTABLE.values() for tag in re.findall(r"<bpmn:(\w+) id=", body)}
    assert NODE_READERS.keys() <= seen


_IN_A_TASK = ("standardLoopCharacteristics", "multiInstanceLoopCharacteristics")
_NEVER_ALONE = {name for name, remark in REFUSED.items() if remark.startswith("of ")}
"""Parts of a refused element: met only inside it, and refused with it."""


@pytest.mark.parametrize("kind", sorted(REFUSED.keys() - _NEVER_ALONE))
def test_every_refused_element_is_refused_by_kind_id_and_line(kind: str) -> None:
    if kind.endswith("EventDefinition"):
        data = document(f'<bpmn:endEvent id="n"><bpmn:{kind}/></bpmn:endEvent>')
        expected = f"{kind} of 'n' (line 4) is not supported yet"
    elif kind in _IN_A_TASK:
        data = document(f'<bpmn:task id="n"><bpmn:{kind}/></bpmn:task>')
        expected = f"{kind} of 'n' (line 4) is not supported yet"
    else:
        data = document(f'<bpmn:{kind} id="n"/>')
        expected = f"{kind} 'n' (line 4) is not supported yet"
    problems = examine(data).errors
    assert [(problem.code, problem.element, problem.message) for problem in problems] == [
        ("unsupported", "n", expected)
    ]


@pytest.mark.parametrize("kind", sorted(_NEVER_ALONE))
def test_a_part_of_a_refused_element_is_refused_where_it_stands_alone_too(kind: str) -> None:
    assert [problem.code for problem in examine(document(f'<bpmn:task id="n"><bpmn:{kind}/></bpmn:task>')).errors] == [
        "unsupported"
    ]


@pytest.mark.parametrize("kind", sorted(DOCUMENTATION))
def test_every_documentation_element_is_accepted_in_a_process_and_beside_it(kind: str) -> None:
    part = f'<bpmn:{kind} id="n"/>'
    examination = examine(document(f'<bpmn:startEvent id="s"/>{part}', beside=part))
    assert examination.errors == ()
    assert list(examination.definitions.processes[0].nodes) == ["s"]


REFUSED_COMBINATIONS = {
    "event sub-process": '<bpmn:subProcess id="x" triggeredByEvent="true"><bpmn:callActivity id="i"/></bpmn:subProcess>'
    "",
    "compensation handler": '<bpmn:task id="x" isForCompensation="true"/>',
    "parallel multiple": f'<bpmn:startEvent id="x" parallelMultiple="true">{_TIMER}</bpmn:startEvent>',
    "iterating sub-process": '<bpmn:subProcess id="x"><bpmn:multiInstanceLoopCharacteristics/></bpmn:subProcess>',
    "instantiating gateway": '<bpmn:eventBasedGateway id="x" instantiate="true"/>',
    "parallel event gateway": '<bpmn:eventBasedGateway id="x" eventGatewayType="Parallel"/>',
}


@pytest.mark.parametrize("what", REFUSED_COMBINATIONS)
def test_what_a_known_element_cannot_do_yet_is_refused_by_its_id(what: str) -> None:
    problems = examine(around(REFUSED_COMBINATIONS[what])).errors
    assert [(problem.code, problem.element, problem.line) for problem in problems] == [("unsupported", "x", 5)]
    assert problems[0].message.endswith("is not supported yet")
