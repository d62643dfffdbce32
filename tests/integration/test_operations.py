"""The commands that act on an engine, over its real store: what they print, and what the store then holds.

No Ray here: the engine's other side is a driver of the test's own on the same store, so that it is certain that the
commands themselves need none.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.cli.main import call
from gobpm_ray.engine.opening import Opened, open_store
from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.driver import Driver
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import Settings
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder
from tests.support.documents import APPROVAL, document, flows, message, written


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    rows: list[dict[str, Any]]
    err: str

    @property
    def row(self) -> dict[str, Any]:
        (only,) = self.rows
        return only


Command = Callable[..., Answer]


@pytest.fixture(scope="module")
def opened() -> Iterator[Opened]:
    home = tempfile.mkdtemp(prefix="gobpm-test-")
    found = open_store("embedded", Settings(), home)
    yield found
    found.store.close()
    assert found.embedded is not None
    found.embedded.stop()
    shutil.rmtree(home)


@pytest.fixture
def engine(opened: Opened, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """An engine id of the test's own on the shared store, named to the commands; and who works there."""
    from gobpm_ray.store.connection import open_client
    from gobpm_ray.store.redis_store import RedisStore

    settings = Settings(engine_id=request.node.name.replace("[", "-").replace("]", ""))
    assert opened.embedded is not None
    monkeypatch.setenv("GOBPM_HOME", str(opened.embedded.home))
    monkeypatch.setenv("GOBPM_ENGINE_ID", settings.engine_id)
    monkeypatch.delenv("GOBPM_REDIS_URL", raising=False)
    store = RedisStore(open_client(opened.url), settings)
    holders = [kind(store, settings) for kind in (TimerHolder, MessageHolder, TaskHolder)]
    driver = Driver(store, settings, Programs(store), Callables(lambda _topic: None), holders)
    yield driver
    driver.close()
    store.close()


@pytest.fixture
def gobpm(engine: Driver, capsys: pytest.CaptureFixture[str]) -> Command:
    """A command, and then all that it caused."""

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        code = call([*(str(argument) for argument in arguments), "--json"])
        out, err = capsys.readouterr()
        engine.drive()
        return Answer(code, [json.loads(line) for line in out.splitlines()], err)

    return run


@pytest.fixture
def approval(gobpm: Command, tmp_path: Path) -> str:
    """The id of an instance that waits at its task."""
    assert gobpm("deploy", written(tmp_path, APPROVAL)).code == 0
    instance_id = gobpm("start", "p", "--var", "amount=5", "--business-key", "K1").row["instance_id"]
    return str(instance_id)


def test_a_file_is_deployed_once(gobpm: Command, tmp_path: Path) -> None:
    file = written(tmp_path, APPROVAL)
    assert gobpm("deploy", file).row == {"process_id": "p", "version": 1, "created": True}
    assert gobpm("deploy", file).row == {"process_id": "p", "version": 1, "created": False}


def test_of_several_files_all_or_none_are_deployed(gobpm: Command, tmp_path: Path) -> None:
    """Issue 2, bad input: nothing half written."""
    refused = gobpm("deploy", written(tmp_path, APPROVAL), written(tmp_path, "no xml", "bad.bpmn"))
    assert (refused.code, refused.row["error"]["code"]) == (2, "invalid_model")
    assert gobpm("start", "p").code == 2


def test_the_absence_of_a_supervisor_is_said_once(gobpm: Command) -> None:
    """Design 11: operations warn once when no supervisor is alive."""
    answer = gobpm("list")
    assert (answer.code, answer.rows) == (0, [])
    assert answer.err.count("no supervisor") == 1


def test_an_instance_is_started_listed_and_shown(gobpm: Command, approval: str) -> None:
    listed = gobpm("list").row
    assert listed == {
        "instance_id": approval,
        "process_id": "p",
        "version": 1,
        "state": "waiting",
        "resident": False,
        "business_key": "K1",
        "tokens": [{"node": "approve", "state": "waiting"}],
    }
    shown = gobpm("show", approval).row
    assert shown["variables"] == {"amount": 5}
    assert [(wait["node"], wait["kind"]) for wait in shown["waits"]] == [("approve", "task")]
    assert [entry["event"] for entry in shown["history"]] == ["started", "node"]
    assert gobpm("list", "--state", "completed").rows == []


def test_a_start_with_the_same_delivery_is_a_duplicate(gobpm: Command, approval: str) -> None:
    """N5."""
    first = gobpm("start", "p", "--id", "order-7")
    again = gobpm("start", "p", "--id", "order-7")
    assert (first.row["duplicate"], again.row["duplicate"]) == (False, True)
    assert again.row["instance_id"] == first.row["instance_id"] != approval
    assert set(first.row) == {"id", "duplicate", "instance_id"}


def test_a_task_is_claimed_given_back_and_completed(gobpm: Command, approval: str) -> None:
    """H57."""
    task = gobpm("tasks").row
    assert (task["node"], task["name"], task["owner"]) == ("approve", "Approve", None)
    assert gobpm("claim", task["task"], "--user", "ada").row == {"task": task["task"], "owner": "ada"}
    assert gobpm("tasks", "--user", "bob").rows == []
    refused = gobpm("complete", task["task"], "--user", "bob")
    assert (refused.code, refused.row["error"]["code"]) == (2, "task_refused")
    assert gobpm("unclaim", "approve").code == 0
    done = gobpm("complete", "approve", "--user", "bob", "--outputs", '{"ok": true}', "--var", "n=1")
    assert (done.code, done.row["instance_id"]) == (0, approval)
    shown = gobpm("show", approval).row
    assert (shown["state"], shown["variables"]) == ("completed", {"amount": 5, "ok": True, "n": 1})


def test_messages_and_signals_reach_who_waits(gobpm: Command, tmp_path: Path) -> None:
    text = document(
        '<bpmn:startEvent id="s"/><bpmn:receiveTask id="wait" messageRef="m_Answer"/><bpmn:endEvent id="e"/>'
        + flows("s", "wait", "e"),
        around=message("Answer", "ref"),
    )
    gobpm("deploy", written(tmp_path, text))
    instance_id = gobpm("start", "p", "--var", "ref=7").row["instance_id"]
    sent = gobpm("publish", "Answer", "--key", "7", "--payload", '{"a": 1}', "--id", "m1", "--ttl", "PT1H").row
    assert sent == {"id": "m1", "duplicate": False, "instance_id": None}
    assert gobpm("publish", "Answer", "--key", "7", "--id", "m1").row["duplicate"] is True
    assert gobpm("show", instance_id).row["variables"] == {"ref": 7, "a": 1}
    assert gobpm("signal", "Nobody").code == 0


def test_an_operator_repairs_holds_and_ends(gobpm: Command, tmp_path: Path) -> None:
    text = document(
        '<bpmn:startEvent id="s"/><bpmn:serviceTask id="work" camunda:type="external" camunda:topic="t"/>'
        '<bpmn:receiveTask id="count" messageRef="m_Answer"/><bpmn:userTask id="last"/>'
        + flows("s", "work", "count", "last"),
        around=message("Answer", "missing"),
    )
    deployed = gobpm("deploy", written(tmp_path, text))
    assert deployed.code == 0, deployed
    instance_id = gobpm("start", "p", "--instance", "i-1").row["instance_id"]
    assert gobpm("tasks", "--jobs").row["topic"] == "t"
    assert gobpm("complete", "work").code == 0
    incident = gobpm("incidents").row
    assert (incident["instance_id"], incident["node"]) == ("i-1", "count")
    assert gobpm("list").row["state"] == "incident"
    assert gobpm("resolve", instance_id, "count", "--outputs", '{"n": 3}').code == 0
    assert gobpm("set", instance_id, "m=1", 'who="ada"').code == 0
    assert gobpm("show", instance_id).row["variables"] == {"n": 3, "m": 1, "who": "ada"}
    assert gobpm("retry", instance_id).code == 2
    assert gobpm("suspend", instance_id).row == {"instance_id": "i-1", "suspended": True, "changed": True}
    assert gobpm("list").row["state"] == "suspended"
    assert gobpm("resume", instance_id).row["changed"] is True
    assert gobpm("cancel", instance_id).code == 0
    assert gobpm("list").row["state"] == "terminated"
    assert gobpm("list", "--living").rows == []


def test_an_operator_holds_lets_go_and_ends_many(gobpm: Command, approval: str) -> None:
    """D21, R26: by process, state and business key; nothing is meant by saying nothing."""
    keyed = gobpm("start", gobpm("list").row["process_id"], "--var", "amount=5", "--business-key", "K").row[
        "instance_id"
    ]
    process = gobpm("show", keyed).row["process_id"]
    held = gobpm("suspend", "--business-key", "K").rows
    assert held == [{"instance_id": keyed, "suspended": True}, {"count": 1}]
    assert [row["state"] for row in gobpm("list").rows] == ["waiting", "suspended"]
    assert gobpm("resume", "--process", process).rows[-1] == {"count": 1}
    for command in ("suspend", "resume", "cancel"):
        assert gobpm(command).code == 2
        assert gobpm(command, keyed, "--process", process).code == 2
    gobpm("suspend", keyed)
    assert gobpm("cancel", "--state", "suspended").rows == [{"instance_id": keyed, "cancelled": True}, {"count": 1}]
    assert gobpm("cancel", "--process", process).rows[-1] == {"count": 1}
    assert {row["state"] for row in gobpm("list").rows} == {"terminated"}


def test_tasks_are_reassigned_filtered_and_ordered(gobpm: Command, approval: str) -> None:
    """H57, issue 5.5."""
    process = gobpm("show", approval).row["process_id"]
    gobpm("start", process, "--var", "amount=9")
    assert len(gobpm("tasks", "--process", process, "--order", "priority").rows) == 2
    assert gobpm("tasks", "--process", "other").rows == []
    task = gobpm("tasks", "--where", "amount=9").row["task"]
    assert gobpm("reassign", task, "--user", "eve").row == {"task": task, "owner": "eve"}
    assert gobpm("tasks", "--where", "amount=9").row["owner"] == "eve"
    assert gobpm("tasks", "--due-before", "P1D").rows == []
    assert gobpm("tasks", "--follow-up-before", "2026-01-01T00:00:00Z").rows == []
    assert gobpm("tasks", "--due-before", "soon").code == 2


def test_top_gives_every_count_of_the_contract(gobpm: Command, approval: str) -> None:
    top = gobpm("top").row
    assert set(top) >= {
        *("resident", "free", "spares", "ready", "oldest_ready_ms", "waiting", "due", "pending", "parked"),
        *("incidents", "actors", "dead", "signals"),
    }
    assert (top["waiting"], top["resident"], top["actors"]) == (1, 0, 0)


def test_what_is_unknown_is_named(gobpm: Command, approval: str) -> None:
    for arguments, code in (
        (("show", "nope"), "unknown_instance"),
        (("cancel", "nope"), "unknown_instance"),
        (("suspend", "nope"), "unknown_instance"),
        (("start", "nope"), "unknown_process"),
        (("start", "p", "--version", "9"), "unknown_process"),
        (("complete", "nope"), "unknown_task"),
        (("claim", "nope", "--user", "a"), "unknown_task"),
    ):
        answer = gobpm(*arguments)
        assert (answer.code, answer.row["error"]["code"]) == (2, code), arguments
        assert "nope" in answer.row["error"]["message"] or "9" in answer.row["error"]["message"]


def test_people_are_shown_tables(engine: Driver, approval: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["list"], ["show", approval], ["tasks"], ["incidents"], ["top"]):
        capsys.readouterr()
        assert call(arguments) == 0
        out, err = capsys.readouterr()
        assert out.strip(), arguments
        assert "Traceback" not in err


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "unix:///nowhere/at/all.sock"])
def test_a_store_that_is_down_is_an_environment_failure(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 2, bad input: exit 5, one line that names it."""
    monkeypatch.setenv("GOBPM_REDIS_URL", url)
    assert call(["list", "--json"]) == 5
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == "store_unavailable"
    assert url in json.loads(out)["error"]["message"]
    assert "Traceback" not in err


def test_a_wrong_password_is_named_and_not_shown(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 2, bad input."""
    assert opened.embedded is not None
    monkeypatch.setenv("GOBPM_REDIS_URL", f"unix://nobody:s3cret@{opened.embedded.socket}")
    assert call(["list", "--json"]) == 5
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == "store_refused"
    assert "s3cret" not in out + err
