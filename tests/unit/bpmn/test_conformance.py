"""`docs/conformance.md` against the reader's tables, and the tables against what the reader does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gobpm_ray.bpmn.nodes import NODE_READERS
from gobpm_ray.bpmn.reader import examine
from gobpm_ray.bpmn.tables import DOCUMENTATION, EVENT_DEFINITIONS, EXECUTED, REFUSED, WARNED
from tests.unit.bpmn.documents import document

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
    '<bpmn:error id="r" errorCode="E"/><bpmn:escalation id="c" escalationCode="C"/>'
    '<bpmn:timerEventDefinition id="shared"><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition>'
)
_MESSAGE = '<bpmn:messageEventDefinition messageRef="m"/>'
_TIMER = "<bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition>"
_SIGNAL = '<bpmn:signalEventDefinition signalRef="g"/>'
_ERROR = '<bpmn:errorEventDefinition errorRef="r"/>'
_ANY_ERROR = "<bpmn:errorEventDefinition/>"
_ESCALATION = '<bpmn:escalationEventDefinition escalationRef="c"/>'
_CONDITION = (
    "<bpmn:conditionalEventDefinition><bpmn:condition>x &gt; 1</bpmn:condition></bpmn:conditionalEventDefinition>"
)
_COMPENSATE = "<bpmn:compensateEventDefinition/>"
_CANCEL = "<bpmn:cancelEventDefinition/>"
_TERMINATE = "<bpmn:terminateEventDefinition/>"
_LINK = '<bpmn:linkEventDefinition name="L"/>'
_HANDLER = '<bpmn:task id="h" isForCompensation="true"/><bpmn:association id="a" sourceRef="n" targetRef="h"/>'


def _inside(kind: str, definitions: str) -> str:
    """An event sub-process begun by the start event `n`."""
    flags = ' isInterrupting="false"' if kind == "without interrupting" else ""
    return (
        '<bpmn:startEvent id="s"/><bpmn:subProcess id="sub" triggeredByEvent="true">'
        f'<bpmn:startEvent id="n"{flags}>{definitions}</bpmn:startEvent></bpmn:subProcess>'
    )


EXECUTABLE = {
    **{f"start {kind}": f'<bpmn:startEvent id="n">{d}</bpmn:startEvent>' for kind, d in (
        ("none", ""), ("message", _MESSAGE), ("timer", _TIMER), ("signal", _SIGNAL), ("multiple", _MESSAGE + _SIGNAL))},
    **{f"event sub-process by {kind}": _inside("", d) for kind, d in (
        ("message", _MESSAGE), ("timer", _TIMER), ("signal", _SIGNAL), ("error", _ERROR), ("any error", _ANY_ERROR),
        ("escalation", _ESCALATION), ("condition", _CONDITION), ("compensation", _COMPENSATE))},
    **{f"event sub-process beside, by {kind}": _inside("without interrupting", d) for kind, d in (
        ("message", _MESSAGE), ("timer", _TIMER), ("signal", _SIGNAL), ("escalation", _ESCALATION),
        ("condition", _CONDITION))},
    **{f"end {kind}": f'<bpmn:endEvent id="n">{d}</bpmn:endEvent>' for kind, d in (
        ("none", ""), ("message", _MESSAGE), ("signal", _SIGNAL), ("error", _ERROR), ("escalation", _ESCALATION),
        ("compensation", _COMPENSATE), ("terminate", _TERMINATE), ("multiple", _MESSAGE + _SIGNAL + _TERMINATE))},
    "end cancel": '<bpmn:startEvent id="s"/><bpmn:transaction id="t">'
    f'<bpmn:endEvent id="n">{_CANCEL}</bpmn:endEvent></bpmn:transaction>',
    **{f"catch {kind}": f'<bpmn:intermediateCatchEvent id="n"{flag}>{d}</bpmn:intermediateCatchEvent>'
        for kind, d, flag in (
        ("message", _MESSAGE, ""), ("timer", _TIMER, ""), ("signal", _SIGNAL, ""), ("condition", _CONDITION, ""),
        ("link", _LINK, ""), ("multiple", _MESSAGE + _TIMER, ""),
        ("parallel multiple", _MESSAGE + _SIGNAL, ' parallelMultiple="true"'),
        ("shared", "<bpmn:eventDefinitionRef>shared</bpmn:eventDefinitionRef>", ""))},
    **{f"throw {kind}": f'<bpmn:intermediateThrowEvent id="n">{d}</bpmn:intermediateThrowEvent>' for kind, d in (
        ("none", ""), ("message", _MESSAGE), ("signal", _SIGNAL), ("escalation", _ESCALATION),
        ("compensation", _COMPENSATE), ("multiple", _MESSAGE + _SIGNAL))},
    "throw link": f'<bpmn:intermediateThrowEvent id="n">{_LINK}</bpmn:intermediateThrowEvent>'
    f'<bpmn:intermediateCatchEvent id="o">{_LINK}</bpmn:intermediateCatchEvent>',
    **{f"boundary {kind}": f'<bpmn:task id="t"/><bpmn:boundaryEvent id="n" attachedToRef="t">{d}</bpmn:boundaryEvent>'
        for kind, d in (
        ("message", _MESSAGE), ("timer", _TIMER), ("signal", _SIGNAL), ("error", _ERROR), ("any error", _ANY_ERROR),
        ("escalation", _ESCALATION), ("condition", _CONDITION), ("multiple", _ERROR + _TIMER))},
    **{f"boundary beside, {kind}": '<bpmn:task id="t"/><bpmn:boundaryEvent id="n" attachedToRef="t"'
        f' cancelActivity="false">{d}</bpmn:boundaryEvent>' for kind, d in (
        ("message", _MESSAGE), ("timer", _TIMER), ("signal", _SIGNAL), ("escalation", _ESCALATION),
        ("condition", _CONDITION))},
    "boundary compensation": '<bpmn:task id="t"/><bpmn:boundaryEvent id="n" attachedToRef="t">'
    f"{_COMPENSATE}</bpmn:boundaryEvent>{_HANDLER}",
    "boundary cancel": '<bpmn:transaction id="t"/><bpmn:boundaryEvent id="n" attachedToRef="t">'
    f"{_CANCEL}</bpmn:boundaryEvent>",
    **{kind: f'<bpmn:{kind} id="n"/>' for kind in (
        "task", "manualTask", "serviceTask", "sendTask", "userTask", "businessRuleTask", "exclusiveGateway",
        "parallelGateway", "inclusiveGateway", "complexGateway", "subProcess", "transaction", "adHocSubProcess")},
    "callActivity": '<bpmn:callActivity id="n" calledElement="q"/>',
    "receiveTask": '<bpmn:receiveTask id="n" messageRef="m"/>',
    "scriptTask": '<bpmn:scriptTask id="n"><bpmn:script>1 + 1</bpmn:script></bpmn:scriptTask>',
    "complexGateway with a condition": '<bpmn:complexGateway id="n"><bpmn:activationCondition>activationCount = 2'
    "</bpmn:activationCondition></bpmn:complexGateway>",
    **{f"eventBasedGateway{flags}": f'<bpmn:eventBasedGateway id="n"{flags}/><bpmn:receiveTask id="r" messageRef="m"/>'
        '<bpmn:sequenceFlow id="f" sourceRef="n" targetRef="r"/>' for flags in (
        "", ' instantiate="true"', ' instantiate="true" eventGatewayType="Parallel"')},
    **{f"{kind} that loops": f'<bpmn:{kind} id="n">{loop}</bpmn:{kind}>' for kind, loop in (
        ("task", "<bpmn:standardLoopCharacteristics/>"),
        ("subProcess", "<bpmn:multiInstanceLoopCharacteristics><bpmn:loopCardinality>3</bpmn:loopCardinality>"
         "</bpmn:multiInstanceLoopCharacteristics>"))},
}  # fmt: skip
_TYPES = {"transaction": "subProcess", "adHocSubProcess": "subProcess"}
"""Elements whose node is called otherwise in the model."""


@pytest.mark.parametrize("what", EXECUTABLE)
def test_every_executed_node_is_read(what: str) -> None:
    examination = examine(document(EXECUTABLE[what], beside=ROOT))
    assert examination.errors == ()
    process = examination.definitions.processes[0]
    assert process.executable
    tag = re.findall(r'<bpmn:(\w+) id="n"', EXECUTABLE[what])[0]
    assert process.nodes["n"].type == _TYPES.get(tag, tag)


def test_the_test_above_leaves_no_node_out() -> None:
    seen = {tag for body in EXECUTABLE.values() for tag in re.findall(r"<bpmn:(\w+) id=", body)}
    assert NODE_READERS.keys() <= seen


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_every_refused_element_is_refused_by_kind_id_and_line(kind: str) -> None:
    problems = examine(document(f'<bpmn:{kind} id="n"/>')).errors
    assert [(problem.code, problem.element, problem.message) for problem in problems] == [
        ("unsupported", "n", f"{kind} 'n' (line 4) is not supported yet")
    ]


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_a_refused_element_inside_a_task_is_refused_with_it(kind: str) -> None:
    problems = examine(document(f'<bpmn:task id="n"><bpmn:{kind}/></bpmn:task>')).errors
    assert [(problem.code, problem.element) for problem in problems] == [("unsupported", "n")]


@pytest.mark.parametrize("kind", sorted(DOCUMENTATION))
def test_every_documentation_element_is_accepted_in_a_process_and_beside_it(kind: str) -> None:
    part = f'<bpmn:{kind} id="n"/>'
    examination = examine(document(f'<bpmn:startEvent id="s"/>{part}', beside=part))
    assert examination.errors == ()
    assert list(examination.definitions.processes[0].nodes) == ["s"]


def _start(definitions: str, flags: str = "") -> str:
    return f'<bpmn:startEvent id="x"{flags}>{definitions}</bpmn:startEvent>'


def _on_task(definitions: str, flags: str = "", host: str = "task", more: str = "") -> str:
    return (
        f'<bpmn:{host} id="t"{more}/>'
        f'<bpmn:boundaryEvent id="x" attachedToRef="t"{flags}>{definitions}</bpmn:boundaryEvent>'
    )


def _event_sub_process(inside: str, flags: str = "", more: str = "") -> str:
    return f'<bpmn:subProcess id="x" triggeredByEvent="true"{flags}>{more}{inside}</bpmn:subProcess>'


def _arm(target: str, flags: str = "", more: str = "") -> str:
    return (
        f'<bpmn:eventBasedGateway id="x"{flags}/>{target}<bpmn:sequenceFlow id="f" sourceRef="x" targetRef="t"/>{more}'
    )


def _iterating(inside: str, attributes: str = "") -> str:
    loop = f"<bpmn:multiInstanceLoopCharacteristics{attributes}>{inside}</bpmn:multiInstanceLoopCharacteristics>"
    return f'<bpmn:task id="x">{loop}</bpmn:task>'


_COUNT = "<bpmn:loopCardinality>2</bpmn:loopCardinality>"
_ITEMS = "<bpmn:loopDataInputRef>items</bpmn:loopDataInputRef>"
_RECEIVES = '<bpmn:receiveTask id="t" messageRef="m"/>'
_BY_MESSAGE = f'<bpmn:startEvent id="i">{_MESSAGE}</bpmn:startEvent>'
REFUSED_COMBINATIONS = {
    "start by a condition": (_start(_CONDITION), "wrong_definition"),
    "start by an error": (_start(_ERROR), "wrong_definition"),
    "start by an escalation": (_start(_ESCALATION), "wrong_definition"),
    "start by a compensation": (_start(_COMPENSATE), "wrong_definition"),
    "start by all of several": (_start(_MESSAGE + _SIGNAL, ' parallelMultiple="true"'), "wrong_combination"),
    "end of a cancel without a transaction": (f'<bpmn:endEvent id="x">{_CANCEL}</bpmn:endEvent>', "wrong_definition"),
    "end in two ways": (f'<bpmn:endEvent id="x">{_ERROR}{_TERMINATE}</bpmn:endEvent>', "wrong_combination"),
    "end of an error without a code": (f'<bpmn:endEvent id="x">{_ANY_ERROR}</bpmn:endEvent>', "missing_code"),
    "throw of an error": (
        f'<bpmn:intermediateThrowEvent id="x">{_ERROR}</bpmn:intermediateThrowEvent>', "wrong_definition"),
    "throw of a link that nothing catches": (
        f'<bpmn:intermediateThrowEvent id="x">{_LINK}</bpmn:intermediateThrowEvent>', "unmatched_link"),
    "catch of an error": (
        f'<bpmn:intermediateCatchEvent id="x">{_ERROR}</bpmn:intermediateCatchEvent>', "wrong_definition"),
    "catch of a link and more": (
        f'<bpmn:intermediateCatchEvent id="x">{_LINK}{_SIGNAL}</bpmn:intermediateCatchEvent>', "wrong_combination"),
    "catch without a condition": ('<bpmn:intermediateCatchEvent id="x"><bpmn:conditionalEventDefinition/>'
                                  "</bpmn:intermediateCatchEvent>", "missing_condition"),
    "boundary cancel on a task": (_on_task(_CANCEL), "wrong_definition"),
    "boundary error beside": (_on_task(_ERROR, ' cancelActivity="false"'), "wrong_definition"),
    "boundary of all errors": (_on_task(_ERROR + _SIGNAL, ' parallelMultiple="true"'), "wrong_combination"),
    "boundary compensation and more": (_on_task(_COMPENSATE + _TIMER), "wrong_combination"),
    "boundary compensation without a handler": (_on_task(_COMPENSATE), "missing_handler"),
    "boundary on an event sub-process": (
        f'<bpmn:subProcess id="t" triggeredByEvent="true">{_BY_MESSAGE}</bpmn:subProcess>'
        f'<bpmn:boundaryEvent id="x" attachedToRef="t">{_TIMER}</bpmn:boundaryEvent>', "wrong_attachment"),
    "event sub-process without a start": (_event_sub_process('<bpmn:task id="i"/>'), "event_start"),
    "event sub-process with two starts": (
        _event_sub_process(_BY_MESSAGE, more=f'<bpmn:startEvent id="j">{_SIGNAL}</bpmn:startEvent>'), "event_start"),
    "event sub-process for compensation": (
        _event_sub_process(_BY_MESSAGE, ' isForCompensation="true"'), "event_loop"),
    "event sub-process that loops": (
        _event_sub_process(_BY_MESSAGE, more="<bpmn:standardLoopCharacteristics/>"), "event_loop"),
    "iteration over nothing": (_iterating(""), "missing_collection"),
    "iteration over two things": (_iterating(_COUNT + _ITEMS), "two_counts"),
    "iteration that throws nothing": (_iterating(_COUNT, ' behavior="None"'), "wrong_behavior"),
    "iteration with another behaviour": (_iterating(_COUNT, ' behavior="Any"'), "unsupported"),
    "two loops": (f'<bpmn:task id="x"><bpmn:standardLoopCharacteristics/>{"<bpmn:standardLoopCharacteristics/>"}'
                  "</bpmn:task>", "several_loops"),
    "parallel event gateway": (_arm(_RECEIVES, ' eventGatewayType="Parallel"'), "wrong_gateway"),
    "instantiating gateway with a flow into it": (
        _arm(_RECEIVES, ' instantiate="true"', '<bpmn:task id="u"/>'
             '<bpmn:sequenceFlow id="f2" sourceRef="u" targetRef="x"/>'), "incoming_flow"),
    "gateway whose arm loops": (
        _arm('<bpmn:receiveTask id="t" messageRef="m"><bpmn:standardLoopCharacteristics/></bpmn:receiveTask>'),
        "event_gateway_arm"),
    "call of nothing": ('<bpmn:callActivity id="x"/>', "missing_called"),
    "call of a global task that cannot be": ('<bpmn:callActivity id="x" calledElement="global"/>', "not_callable"),
    "call of a version tag": (
        '<bpmn:callActivity id="x" calledElement="q"><bpmn:extensionElements>'
        '<zeebe:calledElement processId="q" bindingType="versionTag"/></bpmn:extensionElements></bpmn:callActivity>',
        "unsupported"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED_COMBINATIONS)
def test_what_an_element_cannot_be_is_refused_by_its_id_and_line(what: str) -> None:
    body, code = REFUSED_COMBINATIONS[what]
    problems = examine(document(body, beside=ROOT + '<bpmn:globalScriptTask id="global"/>')).errors
    assert [(problem.code, problem.element, problem.line) for problem in problems] == [(code, "x", 4)]
    assert "'x' (line 4)" in problems[0].message


def test_an_error_that_begins_a_sub_process_or_stands_in_the_wrong_scope_is_refused_by_its_own_id() -> None:
    inside = {
        "wrong_definition": f'<bpmn:subProcess id="sub">{_start(_ERROR)}</bpmn:subProcess>',
        "adhoc_event": f'<bpmn:adHocSubProcess id="sub">{_start("")}</bpmn:adHocSubProcess>',
        "event_start": f'<bpmn:subProcess id="sub" triggeredByEvent="true">{_start("")}</bpmn:subProcess>',
    }
    for code, body in inside.items():
        problems = examine(document(body, beside=ROOT)).errors
        assert [(problem.code, problem.element) for problem in problems] == [(code, "x")]


def test_two_compensation_boundaries_on_one_activity_are_refused() -> None:
    """S84."""
    body = (
        f'<bpmn:task id="t"/><bpmn:boundaryEvent id="n" attachedToRef="t">{_COMPENSATE}</bpmn:boundaryEvent>{_HANDLER}'
        f'<bpmn:boundaryEvent id="x" attachedToRef="t">{_COMPENSATE}</bpmn:boundaryEvent>'
        '<bpmn:association id="a2" sourceRef="x" targetRef="h"/>'
    )
    problems = examine(document(body)).errors
    assert [(problem.code, problem.element) for problem in problems] == [("several_compensate", "x")]
    assert "is the second compensate event on 't'" in problems[0].message
