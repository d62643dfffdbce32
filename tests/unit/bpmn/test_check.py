"""`check`: one answer per file, of one shape (design 11), for the corpus as for rubbish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gobpm_ray.bpmn.check import check_bytes, check_file, check_files
from gobpm_ray.bpmn.reader import read_file
from gobpm_ray.model.elements import (
    BoundaryEvent,
    Expression,
    MessageDefinition,
    ReceiveTask,
    TimerDefinition,
    WorkTask,
    literal,
)
from tests.unit.bpmn.documents import CORPUS, around, document

FILES = sorted(CORPUS.glob("miwg*/*.bpmn"))
needs_corpus = pytest.mark.skipif(not FILES, reason="the corpus of exchanged models is not here")


def _is_an_answer(answer: dict[str, object]) -> None:
    assert list(answer) == ["file", "ok", "processes", "executable", "errors", "warnings"]
    assert answer["ok"] == (not answer["errors"])
    for findings in (answer["errors"], answer["warnings"]):
        assert isinstance(findings, list)
        for finding in findings:
            assert {"code", "element", "message"} <= set(finding) <= {"code", "element", "message", "line"}
            assert finding["message"]
            assert "\n" not in finding["message"]
    json.dumps(answer)


def test_a_sound_file_is_ok_and_executable(tmp_path: Path) -> None:
    file = tmp_path / "a.bpmn"
    file.write_bytes(around('<bpmn:task id="x"/>'))
    assert check_file(file) == {
        "file": str(file),
        "ok": True,
        "processes": ["p"],
        "executable": True,
        "errors": [],
        "warnings": [],
    }


def test_a_faulty_file_names_code_element_message_and_line() -> None:
    answer = check_bytes(around('<bpmn:choreographyTask id="x"/>'), "a.bpmn")
    _is_an_answer(answer)
    assert answer["errors"] == [
        {
            "code": "unsupported",
            "element": "x",
            "message": "choreographyTask 'x' (line 5) is not supported yet",
            "line": 5,
        }
    ]
    assert (answer["ok"], answer["executable"], answer["processes"]) == (False, False, ["p"])


def test_files_that_belong_together_know_each_others_processes(tmp_path: Path) -> None:
    caller, called = tmp_path / "caller.bpmn", tmp_path / "called.bpmn"
    caller.write_bytes(around('<bpmn:callActivity id="x" calledElement="q"/>'))
    called.write_bytes(around('<bpmn:task id="x"/>').replace(b'id="p"', b'id="q"'))
    alone = check_file(caller)
    _is_an_answer(alone)
    assert [(warning["code"], warning["element"], warning["line"]) for warning in alone["warnings"]] == [
        ("unknown_process", "x", 5)
    ]
    assert [answer["warnings"] for answer in check_files((caller, called))] == [[], []]


def test_a_file_that_cannot_be_opened_is_an_answer_too(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.bpmn", tmp_path, Path("a\0b")):
        answer = check_file(path)
        _is_an_answer(answer)
        assert [error["code"] for error in answer["errors"]] == ["unreadable"]


def test_a_document_that_is_no_bpmn_has_one_error_with_its_line() -> None:
    answer = check_bytes(b"<a>\n<b></a>", "a.bpmn")
    _is_an_answer(answer)
    assert [(error["code"], error["line"]) for error in answer["errors"]] == [("not_xml", 2)]


def test_the_linter_speaks_about_executable_processes_that_have_no_errors() -> None:
    body = '<bpmn:startEvent id="s"/><bpmn:task id="a"/>'
    assert [w["code"] for w in check_bytes(document(body))["warnings"]] == ["no_incoming"]
    assert check_bytes(document(body, executable="false"))["warnings"] == []


@needs_corpus
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_of_the_corpus_has_a_sensible_answer(file: Path) -> None:
    """I86, I87: no traceback, and every error names an element and a line or is about the whole file."""
    answer = check_file(file)
    _is_an_answer(answer)
    for error in answer["errors"]:
        assert error.get("line"), error
        assert error["element"] or not answer["processes"], error


@needs_corpus
@pytest.mark.parametrize(
    ("stem", "ok", "executable"),
    [
        ("A.1.0", True, False),
        ("C.9.1", True, True),
        ("C.9.2", True, True),
        ("bonita-A.1.0", True, True),
        ("camunda-modeler-C.9.1", False, False),
        ("genmymodel-C.1.0", False, False),
        ("ibm-process-designer-A.3.0", True, False),
        ("enterprise-architect-A.1.0", True, False),
        ("enterprise-explorer-A.1.0", True, False),
    ],
)
def test_known_files_of_the_corpus_are_judged_rightly(stem: str, ok: bool, executable: bool) -> None:
    answer = check_file(next(file for file in FILES if file.stem == stem))
    assert (answer["ok"], answer["executable"]) == (ok, executable)


@needs_corpus
def test_the_document_request_of_the_corpus_is_read_as_it_is_drawn() -> None:
    """M48: C.9.1, which waits for days."""
    process = read_file(next(file for file in FILES if file.stem == "C.9.1")).processes[0]
    nodes = process.nodes
    receive, daily, week = (nodes[i] for i in ("ReceiveTask_WaitForDocument", "BoundaryEvent_1", "BoundaryEvent_2"))
    send = nodes["SendTask_RequestDocument"]
    assert isinstance(receive, ReceiveTask)
    assert receive.message == MessageDefinition(name="MESSAGE_documentReceived", key=Expression("documentReferenceId"))
    assert isinstance(daily, BoundaryEvent)
    assert isinstance(week, BoundaryEvent)
    assert (daily.interrupting, week.interrupting) == (False, True)
    assert daily.definitions == (TimerDefinition(kind="cycle", value=literal("R6/P1D")),)
    assert week.definitions == (TimerDefinition(kind="duration", value=literal("P7D")),)
    assert isinstance(send, WorkTask)
    assert (send.type, send.topic) == ("sendTask", "email")


@given(st.binary(max_size=200))
def test_no_bytes_bring_it_down(data: bytes) -> None:
    _is_an_answer(check_bytes(data))


SOUND = around(
    '<bpmn:exclusiveGateway id="x" default="f2"/><bpmn:userTask id="u"/>'
    '<bpmn:sequenceFlow id="f3" sourceRef="x" targetRef="u"><bpmn:conditionExpression>'
    "a &gt; 1</bpmn:conditionExpression>"
    "</bpmn:sequenceFlow>"
    '<bpmn:boundaryEvent id="b" attachedToRef="u"><bpmn:timerEventDefinition><bpmn:timeCycle>R3/PT1H</bpmn:timeCycle>'
    "</bpmn:timerEventDefinition></bpmn:boundaryEvent>"
)


@given(
    st.lists(
        st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 12), st.binary(max_size=6)), min_size=1, max_size=3
    )
)
def test_no_damage_to_a_sound_file_brings_it_down(damage: list[tuple[int, int, bytes]]) -> None:
    """I87, I88: cut, overwritten and inserted bytes at any place."""
    data = SOUND
    for place, length, inserted in damage:
        data = data[:place] + inserted + data[place + length :]
    _is_an_answer(check_bytes(data))
