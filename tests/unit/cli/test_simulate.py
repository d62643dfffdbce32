"""`simulate` from the outside: answers, exit codes, folders, and the file that the issue names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.documents import APPROVAL, REMINDERS, document, flows, message, written
from tests.unit.cli.conftest import CommandLine


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    return written(tmp_path, REMINDERS, "request.bpmn")


def test_an_answer_on_the_third_day_comes_after_two_reminders(gobpm: CommandLine, request_file: Path) -> None:
    """Issue 2, shown by: completed, exactly two reminders."""
    scenario = written(
        request_file.parent,
        "variables: {ref: A-1}\nsteps: [{advance: P2DT12H}, {message: {name: Document, key: A-1}}]",
        "s.yaml",
    )
    ended = gobpm("simulate", request_file, "--scenario", scenario, "--json")
    assert (ended.code, ended.row["state"], ended.row["error"]) == (0, "completed", None)
    assert ended.row["trace"].count("remind") == 2
    assert ended.row["trace"][-2:] == ["wait", "got"]


def test_without_an_answer_a_person_calls_after_six_reminders(gobpm: CommandLine, request_file: Path) -> None:
    """Issue 2, shown by: six reminders, on day 7 the interrupt, then waiting at the task; completing it ends it."""
    ended = gobpm("simulate", request_file, "--var", 'ref="A-1"', "--json")
    assert (ended.code, ended.row["state"]) == (3, "waiting")
    assert ended.row["trace"].count("remind") == 6
    assert ended.row["trace"][-1] == "week"
    assert ended.row["waits"] == [{"node": "call", "kind": "task", "deadline": None}]
    scenario = written(request_file.parent, "steps: [{advance: P8D}, {complete: {task: call}}]", "s.yaml")
    done = gobpm("simulate", request_file, "--var", "ref=1", "--scenario", scenario, "--json")
    assert (done.code, done.row["trace"][-2:]) == (0, ["call", "talked"])


def test_an_incident_ends_with_four(gobpm: CommandLine, request_file: Path) -> None:
    """The correlation key needs a variable that is not there: an incident, named, and not an error."""
    ended = gobpm("simulate", request_file, "--json")
    assert (ended.code, ended.row["state"]) == (4, "incident")
    assert [incident["node"] for incident in ended.row["incidents"]] == ["wait"]


def test_for_people_the_path_and_the_state_are_told(gobpm: CommandLine, tmp_path: Path) -> None:
    ended = gobpm("simulate", written(tmp_path, APPROVAL))
    assert ended.code == 3
    assert "waiting" in ended.out
    assert "waits: approve (task)" in ended.out


def test_a_folder_holds_a_scenario_for_each_file(gobpm: CommandLine, tmp_path: Path) -> None:
    """Design 11: each file takes `<stem>.yaml`, in a namespace and clock of its own; without one it just runs."""
    files = [written(tmp_path, APPROVAL, f"{name}.bpmn") for name in ("one", "two", "three")]
    folder = tmp_path / "scenarios"
    folder.mkdir()
    written(folder, "steps: [{complete: {task: approve}}]", "one.yaml")
    written(folder, "variables: {n: 2}\nsteps: [{cancel: {}}]", "two.yaml")
    ended = gobpm("simulate", *files, "--scenario", folder, "--json")
    assert [row["state"] for row in ended.rows] == ["completed", "terminated", "waiting"]
    assert [row["variables"] for row in ended.rows] == [{}, {"n": 2}, {}]
    assert ended.code == 3


def test_options_override_the_scenario(gobpm: CommandLine, tmp_path: Path) -> None:
    file = written(tmp_path, APPROVAL)
    scenario = written(tmp_path, "variables: {a: 1, b: 1}\nprocess: nope", "s.yaml")
    ended = gobpm("simulate", file, "--scenario", scenario, "--var", "a=2", "--process", "p", "--json")
    assert ended.row["variables"] == {"a": 2, "b": 1}


def test_a_file_beside_is_deployed_and_not_run(gobpm: CommandLine, tmp_path: Path) -> None:
    sender = document(
        '<bpmn:startEvent id="s"/><bpmn:intermediateThrowEvent id="tell">'
        '<bpmn:messageEventDefinition messageRef="m_News"/></bpmn:intermediateThrowEvent><bpmn:endEvent id="e"/>'
        + flows("s", "tell", "e"),
        "sender",
        around=message("News"),
    )
    receiver = document(
        '<bpmn:startEvent id="told"><bpmn:messageEventDefinition messageRef="m_News"/></bpmn:startEvent>'
        '<bpmn:userTask id="read"/><bpmn:endEvent id="e"/>' + flows("told", "read", "e"),
        "receiver",
        around=message("News"),
    )
    file, beside = written(tmp_path, sender, "a.bpmn"), written(tmp_path, receiver, "b.bpmn")
    ended = gobpm("simulate", file, "--with", beside, "--json")
    assert (ended.row["process_id"], ended.row["state"], ended.code) == ("sender", "completed", 3)
    assert [(c["process_id"], c["state"]) for c in ended.row["children"]] == [("receiver", "waiting")]


def test_a_stopped_run_keeps_its_state_and_ends_with_two(gobpm: CommandLine, tmp_path: Path) -> None:
    scenario = written(tmp_path, "steps: [{complete: {task: nope}}]", "s.yaml")
    ended = gobpm("simulate", written(tmp_path, APPROVAL), "--scenario", scenario, "--json")
    assert (ended.code, ended.row["state"], ended.row["trace"]) == (2, "waiting", ["start"])
    assert "nope" in ended.row["error"]


def test_strict_wants_the_claim(gobpm: CommandLine, tmp_path: Path) -> None:
    """H58."""
    scenario = written(tmp_path, "steps: [{complete: {task: approve, user: ada}}]", "s.yaml")
    file = written(tmp_path, APPROVAL)
    assert gobpm("simulate", file, "--scenario", scenario, "--json").code == 0
    assert gobpm("simulate", file, "--scenario", scenario, "--strict", "--json").code == 2
