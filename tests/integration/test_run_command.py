"""`run`, `up`, `status` and `down` on the real engine: the same answers as `simulate`, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.cli.main import call
from gobpm_ray.store.embedded import EmbeddedStore
from tests.support.documents import APPROVAL, REMINDERS, document, flows, message, timer, written

ROOT = Path(__file__).parents[2]

ANSWERED = "variables: {ref: A-1}\nsteps: [{advance: P2DT12H}, {message: {name: Document, key: A-1}}]"
CALLED = "variables: {ref: A-1}\nsteps: [{advance: P8D}, {expect: {waits: [call]}}, {complete: {task: call}}]"
SILENT = "variables: {ref: A-1}"

pytestmark = pytest.mark.slow


@pytest.fixture
def store_of_the_session(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GOBPM_HOME", str(home))
    monkeypatch.delenv("GOBPM_REDIS_URL", raising=False)
    return home


def answered(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[dict[str, Any]]]:
    capsys.readouterr()
    code = call([*(str(argument) for argument in arguments), "--json"])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        # The one thing that may differ from run to run.
        row.pop("instance_id", None)
    return code, rows


@pytest.mark.parametrize(("name", "text"), [("answered", ANSWERED), ("called", CALLED), ("silent", SILENT)])
def test_the_real_engine_answers_as_the_simulation_does(
    name: str,
    text: str,
    tmp_path: Path,
    ray_cluster: str,
    store_url: str,
    store_of_the_session: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Issue 2, shown by: two reminders and the answer; six reminders, the interrupt, and the call of a person."""
    file, scenario = written(tmp_path, REMINDERS), written(tmp_path, text, "s.yaml")
    simulated = answered(capsys, "simulate", file, "--scenario", scenario)
    run = answered(capsys, "run", file, "--scenario", scenario, "--threshold", "PT0S")
    assert run == simulated
    assert run[1][0]["trace"].count("remind") == {"answered": 2, "called": 6, "silent": 6}[name]
    assert run[0] == (3 if name == "silent" else 0)


def test_a_run_leaves_nothing_in_a_store_that_others_use(
    tmp_path: Path,
    ray_cluster: str,
    store_url: str,
    store_of_the_session: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from gobpm_ray.store.connection import open_client

    with open_client(store_url) as client:
        before = set(client.scan_iter("{gobpm:run-*"))
        assert answered(capsys, "run", written(tmp_path, APPROVAL))[0] == 3
        assert set(client.scan_iter("{gobpm:run-*")) == before


def test_jobs_start_events_and_incidents_are_the_same_on_the_real_engine(
    tmp_path: Path,
    ray_cluster: str,
    store_url: str,
    store_of_the_session: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Design 11: an element named by a job step waits as a job, on every host; a child is what a throw starts."""
    sender = document(
        '<bpmn:startEvent id="s"/><bpmn:serviceTask id="work" camunda:type="external" camunda:topic="t"/>'
        '<bpmn:intermediateThrowEvent id="tell"><bpmn:messageEventDefinition messageRef="m_News"/>'
        '</bpmn:intermediateThrowEvent><bpmn:endEvent id="e"/>' + flows("s", "work", "tell", "e"),
        "sender",
        around=message("News"),
    )
    receiver = document(
        '<bpmn:startEvent id="told"><bpmn:messageEventDefinition messageRef="m_News"/></bpmn:startEvent>'
        f'<bpmn:intermediateCatchEvent id="pause">{timer("timeDuration", "P1D")}</bpmn:intermediateCatchEvent>'
        '<bpmn:endEvent id="e"/>' + flows("told", "pause", "e"),
        "receiver",
        around=message("News"),
    )
    file, beside = written(tmp_path, sender, "a.bpmn"), written(tmp_path, receiver, "b.bpmn")
    steps = (
        "steps: [{fail: {job: work, cause: busy}}, {expect: {state: incident}}, "
        "{retry: {node: work}}, {job: {job: work}}]"
    )
    scenario = written(tmp_path, steps, "s.yaml")
    simulated = answered(capsys, "simulate", file, "--with", beside, "--scenario", scenario)
    run = answered(capsys, "run", file, "--with", beside, "--scenario", scenario)
    for _, (row,) in (simulated, run):
        for child in row["children"]:
            child.pop("instance_id")
    assert run == simulated
    assert (run[0], run[1][0]["state"], run[1][0]["children"][0]["state"]) == (0, "completed", "completed")


# --- as programs of their own


def program(home: Path, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("GOBPM_REDIS_URL", "GOBPM_ENGINE_ID")}
    return subprocess.run(
        [sys.executable, "-m", "gobpm_ray.cli.main", *(str(argument) for argument in arguments), "--json"],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        cwd=ROOT,
        env={**environment, "GOBPM_HOME": str(home), **more},
    )


def row(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout.strip(), done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture
def own_home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gobpm-") as folder:
        yield Path(folder)
        program(Path(folder), "down")
        EmbeddedStore(folder).stop()


def test_the_engine_stays_when_up_has_ended_and_goes_with_down(own_home: Path, tmp_path: Path) -> None:
    """Design 11: `up`, `status`, `down`; operations find the engine by its home."""
    assert (program(own_home, "status").returncode, row(program(own_home, "status"))["up"]) == (5, False)
    up = program(own_home, "up", "--no-dashboard", "--clock", "virtual")
    assert (up.returncode, row(up)["up"]) == (0, True), up.stderr
    assert "already" in program(own_home, "up").stderr
    program(own_home, "deploy", written(tmp_path, REMINDERS))
    started = program(own_home, "start", "request", "--var", "ref=7")
    # A task with a topic that nobody registered is a job: a worker's, reported here by hand.
    for _ in range(100):
        if (job := program(own_home, "complete", "ask")).returncode == 0:
            break
        time.sleep(0.1)
    assert job.returncode == 0, job.stdout
    for _ in range(100):
        shown = row(program(own_home, "show", row(started)["instance_id"]))
        if shown["tokens"] == [{"node": "wait", "state": "waiting"}]:
            break
        time.sleep(0.1)
    assert {wait["node"] for wait in shown["waits"]} == {"wait", "daily", "week"}
    top = program(own_home, "top")
    assert "no supervisor" not in top.stderr
    assert row(top)["waiting"] + row(top)["resident"] == 1
    assert row(program(own_home, "down")) == {"engine": True, "store": True}
    assert program(own_home, "status").returncode == 5
    # Nothing that was accepted is lost: the store alone knows the instance.
    listed = program(own_home, "list")
    assert row(listed)["state"] == "waiting"
    assert "no supervisor" in listed.stderr


@pytest.mark.long
def test_after_a_kill_of_everything_the_run_goes_on(tmp_path: Path) -> None:
    """Design 11, `restart`; promise 1: cluster and store are killed with SIGKILL; each reminder counts once."""
    steps = (
        "variables: {ref: A-1}\n"
        "steps: [{advance: P1DT1H}, {restart: {}}, {advance: P1D}, {message: {name: Document, key: A-1}}]"
    )
    file, scenario = written(tmp_path, REMINDERS), written(tmp_path, steps, "s.yaml")
    with tempfile.TemporaryDirectory(prefix="gobpm-") as folder:
        done = program(Path(folder), "run", file, "--scenario", scenario)
        assert EmbeddedStore(folder).stop() is False
    assert done.returncode == 0, done.stdout + done.stderr
    assert (row(done)["state"], row(done)["trace"].count("remind")) == ("completed", 2)
