"""Global tasks (BPMN 10.3.7): each that is called is a process of one node; what cannot be called is refused by id."""

from __future__ import annotations

from pathlib import Path

import pytest

from gobpm_ray.bpmn.check import check_file
from gobpm_ray.bpmn.reader import examine, read_bpmn, read_file
from gobpm_ray.bpmn.writer import write_bpmn
from gobpm_ray.engine.engine import Engine
from gobpm_ray.model.elements import ScriptTask, UserTask
from tests.unit.bpmn.documents import document

ASK = (
    '<bpmn:globalUserTask id="ask" name="Ask her" camunda:assignee="ada">'
    "<bpmn:documentation>why</bpmn:documentation></bpmn:globalUserTask>"
)
CALL = '<bpmn:callActivity id="x" calledElement="{}"/>'


def test_a_called_global_task_is_a_process_behind_the_documents_own() -> None:
    definitions = read_bpmn(document(CALL.format("ask"), beside=ASK))
    assert [(process.id, process.executable) for process in definitions.processes] == [("p", True), ("ask", True)]
    ask = definitions.process("ask")
    assert ask is not None
    assert (ask.name, list(ask.nodes), ask.flows) == ("Ask her", ["ask_task"], {})
    task = ask.nodes["ask_task"]
    assert isinstance(task, UserTask)
    assert (task.name, task.assignee and task.assignee.text) == ("Ask her", "ada")
    assert (ask.line, task.line) == (3, 3)


def test_a_prefix_before_the_called_tasks_id_is_no_part_of_it() -> None:
    data = document(CALL.format("tns:ask"), beside=ASK).replace(
        b"<bpmn:definitions", b'<bpmn:definitions xmlns:tns="x"'
    )
    assert [process.id for process in read_bpmn(data).processes] == ["p", "ask"]


def test_a_script_tasks_language_is_called_otherwise_there() -> None:
    script = (
        '<bpmn:globalScriptTask id="g" scriptLanguage="python"><bpmn:script>y = 1</bpmn:script></bpmn:globalScriptTask>'
    )
    process = read_bpmn(document(CALL.format("g"), beside=script)).process("g")
    assert process is not None
    task = process.nodes["g_task"]
    assert isinstance(task, ScriptTask)
    assert (task.script.language, task.script.text) == ("python", "y = 1")


def test_one_that_nobody_calls_is_documentation() -> None:
    assert [process.id for process in read_bpmn(document('<bpmn:task id="t"/>', beside=ASK)).processes] == ["p"]


def test_a_document_of_global_tasks_alone_is_there_to_be_called() -> None:
    data = document("", beside=ASK + '<bpmn:globalManualTask id="hand"/>')
    begin, end = data.index(b"<bpmn:process"), data.index(b"</bpmn:process>") + len(b"</bpmn:process>")
    definitions = read_bpmn(data[:begin] + data[end:])
    assert [(process.id, process.executable) for process in definitions.processes] == [("ask", True), ("hand", True)]
    assert read_bpmn(write_bpmn(definitions)).processes[0].nodes.keys() == {"ask_task"}


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ('<bpmn:globalScriptTask id="g"/>', "has no script"),
        ('<bpmn:globalUserTask id="g"><bpmn:extensionElements><camunda:taskListener event="create"/>'
         "</bpmn:extensionElements></bpmn:globalUserTask>", "taskListener"),
    ],
)  # fmt: skip
def test_a_call_of_one_that_cannot_be_executed_is_refused_with_its_reason(task: str, why: str) -> None:
    [problem] = examine(document(CALL.format("g"), beside=task)).errors
    assert (problem.code, problem.element) == ("not_callable", "x")
    assert problem.message.startswith("callActivity 'x' (line 4) calls the global task 'g', which cannot be executed: ")
    assert why in problem.message


def test_one_of_an_imported_file_is_called_and_deployed_with_the_importing_one(tmp_path: Path) -> None:
    space = "http://www.omg.org/spec/BPMN/20100524/MODEL"
    imports = f'<bpmn:import importType="{space}" location="b.bpmn" namespace="urn:b"/>'
    (tmp_path / "b.bpmn").write_bytes(document("", beside=ASK, executable="false"))
    (tmp_path / "a.bpmn").write_bytes(document(CALL.format("ask"), beside=imports))
    assert [process.id for process in read_file(tmp_path / "a.bpmn").processes] == ["p", "ask"]
    assert check_file(tmp_path / "a.bpmn")["ok"]
    with Engine.open(None, clock="virtual") as engine:
        engine.deploy(tmp_path / "a.bpmn")
        engine.start("p")
        [task] = engine.tasks()
        assert (task.node, task.assignee) == ("ask_task", "ada")
