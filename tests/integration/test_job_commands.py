"""The commands about jobs and incidents, over the real store and without Ray."""

from __future__ import annotations

from pathlib import Path

from gobpm_ray import ProcessBuilder
from gobpm_ray.bpmn.writer import write_bpmn
from tests.integration.test_operations import Command, engine, gobpm, opened

__all__ = ["engine", "gobpm", "opened"]


def deployed(gobpm: Command, folder: Path) -> str:
    built = ProcessBuilder("p")
    built.start().service_task("print", topic="printing", retries="R1/PT0S").end("done")
    built.boundary("print", error="E1").end("refused")
    built.boundary("print", escalation="X1", interrupting=False).end("told")
    file = folder / "p.bpmn"
    file.write_bytes(write_bpmn(built.build()))
    assert gobpm("deploy", file).code == 0
    return str(gobpm("start", "p", "--var", "page=5").row["instance_id"])


def test_jobs_are_listed_and_failed_until_they_are_an_incident(gobpm: Command, tmp_path: Path) -> None:
    instance = deployed(gobpm, tmp_path)
    (listed,) = gobpm("jobs", "--topic", "printing").rows
    assert (listed["node"], listed["worker"], listed["failures"], listed["inputs"]) == ("print", None, 0, {"page": 5})
    assert gobpm("jobs", "--topic", "other").rows == []
    assert gobpm("job", "fail", "print", "--cause", "no paper").code == 0
    (listed,) = gobpm("jobs").rows
    assert (listed["failures"], listed["cause"]) == (1, "no paper")
    assert gobpm("job", "fail", listed["job"], "--cause", "no ink").row["instance_id"] == instance
    assert gobpm("jobs").rows == []
    (incident,) = gobpm("incidents", "--process", "p", "--node", "print", "--code", "failure").rows
    assert (incident["cause"], [entry["cause"] for entry in incident["attempts"]]) == ("no ink", ["no paper"])
    assert incident["data"] == {"page": 5}
    assert gobpm("incidents", "--code", "sealed").rows == []
    assert gobpm("incidents", "--retry", "--resolve", "--node", "print").code == 2
    assert gobpm("incidents", "--drop").row["error"]["code"] == "input"
    assert gobpm("incidents", "--node", "print", "--retry").row == {"action": "retry", "matched": 1, "done": 1}
    assert gobpm("job", "complete", "print", "--var", "printed=true").code == 0
    assert gobpm("show", instance).row["variables"] == {"page": 5, "printed": True}


def test_an_operator_throws_what_a_worker_would(gobpm: Command, tmp_path: Path) -> None:
    instance = deployed(gobpm, tmp_path)
    assert gobpm("job", "escalate", "print", "--code", "X1").code == 0
    (listed,) = gobpm("jobs").rows
    assert gobpm("job", "unlock", "print").row == {"job": listed["job"], "owner": None}
    assert (
        gobpm("job", "error", "print", "--code", "E1", "--message", "no credit", "--outputs", '{"missing": 3}').code
        == 0
    )
    shown = gobpm("show", instance).row
    assert (shown["state"], shown["variables"]["missing"]) == ("completed", 3)
    unknown = gobpm("job", "complete", "print")
    assert (unknown.code, unknown.row["error"]["code"]) == (2, "unknown_task")


def test_incidents_are_resolved_and_dropped_in_bulk(gobpm: Command, tmp_path: Path) -> None:
    first, second = deployed(gobpm, tmp_path), str(gobpm("start", "p").row["instance_id"])
    for _ in range(2):
        gobpm("job", "fail", "print", "--cause", "no paper", "--retries", "0")
    resolved = gobpm("incidents", "--instance", first, "--resolve", "--outputs", '{"by": "hand"}')
    assert resolved.row["done"] == 1
    assert gobpm("show", first).row["variables"]["by"] == "hand"
    assert gobpm("incidents", "--process", "p", "--drop").row["done"] == 1
    assert gobpm("show", second).row["state"] == "terminated"
