"""Bad input (issue 2) from a shell: one line that names the thing, exit 2 (input) or 5 (environment), never a
traceback, and nothing half written.

The command runs as a program of its own on a real store, in which an instance waits; afterwards every key is what it
was.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.engine.operations import Operations
from gobpm_ray.engine.views import plain
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from tests.support.documents import APPROVAL, document, flows, written

ROOT = Path(__file__).parents[2]
INPUT, ENVIRONMENT = 2, 5

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


@dataclass
class Shell:
    """A shell whose environment names a store and an engine id."""

    store: RedisStore
    client: Any
    variables: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: object, **more: str) -> Ended:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("GOBPM_")}
        done = subprocess.run(
            [sys.executable, "-m", "gobpm_ray.cli.main", *(str(argument) for argument in arguments)],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            cwd=ROOT,
            env={**inherited, **self.variables, **more},
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def everything(self) -> dict[bytes, object]:
        """Every key of every engine in the store, as it is written: a value's dump is the same only if the value is."""
        keys = sorted(self.client.scan_iter(match="{gobpm:*", count=1_000))
        return {key: self.client.dump(key) for key in keys}


@pytest.fixture
def shell(store_url: str, home: Path) -> Iterator[Shell]:
    """In its engine `p` is deployed and an instance of it is accepted; nobody works, so nothing moves by itself."""
    settings = Settings(engine_id=f"t{uuid.uuid4().hex[:8]}")
    with open_client(store_url) as client:
        store = RedisStore(client, settings)
        engine = Operations(store, settings)
        engine.deploy(APPROVAL.encode())
        engine.start("p", {"n": 1}, id="i-1")
        yield Shell(store, client, {"GOBPM_HOME": str(home), "GOBPM_ENGINE_ID": settings.engine_id})


def own_keys(shell: Shell) -> dict[bytes, object]:
    return {key: value for key, value in shell.everything().items() if key.startswith(shell.store.keys.tag.encode())}


def refused(shell: Shell, code: int, names: str, *arguments: object, **more: str) -> None:
    """Both forms of the answer are one line that names the thing, and the store is what it was."""
    before = own_keys(shell)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(shell.run, *arguments, *form, **more) for form in ((), ("--json",))]
        plain, as_json = (one.result() for one in asked)

    for ended in (plain, as_json):
        assert ended.code == code, ended
        assert "Traceback" not in ended.out + ended.err
    said = [line for line in plain.err.splitlines() if not line.startswith(("warning", "no supervisor"))]
    told = said or plain.out.splitlines()
    assert len([line for line in told if names in line]) == 1, plain
    assert len(said) <= 1, plain
    (line,) = as_json.out.splitlines()
    answer = json.loads(line)
    message = answer["error"]["message"] if isinstance(answer.get("error"), dict) else line
    assert names in message, answer
    assert "\\n" not in message
    assert own_keys(shell) == before
    assert before, "there was something to spoil"


UNKNOWN = document(
    '<bpmn:startEvent id="s"/><bpmn:teapotTask id="pot7"/><bpmn:endEvent id="e"/>' + flows("s", "pot7", "e")
)
NOWHERE = document(
    '<bpmn:startEvent id="s"/><bpmn:endEvent id="e"/><bpmn:sequenceFlow id="flow7" sourceRef="s" targetRef="nowhere"/>'
)


@pytest.mark.parametrize(
    ("text", "names"),
    [("this is no XML", "bad.bpmn:1: cannot be read as XML"), (UNKNOWN, "pot7"), (NOWHERE, "flow7")],
    ids=["not XML", "an unknown element", "a flow into nowhere"],
)
@pytest.mark.parametrize("command", ["deploy", "simulate"])
def test_a_file_that_cannot_be_run(shell: Shell, tmp_path: Path, command: str, text: str, names: str) -> None:
    """A good file beside it is not deployed either."""
    good = written(tmp_path, APPROVAL.replace('"p"', '"q"'), "good.bpmn")
    bad = written(tmp_path, text, "bad.bpmn")
    refused(shell, INPUT, names, command, *((good, bad) if command == "deploy" else (bad,)))


def test_check_names_what_is_wrong_with_a_file(shell: Shell, tmp_path: Path) -> None:
    ended = shell.run("check", written(tmp_path, UNKNOWN, "bad.bpmn"), "--json")
    assert ended.code == INPUT
    (answer,) = map(json.loads, ended.out.splitlines())
    assert [error["element"] for error in answer["errors"]] == ["pot7"]
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("start", "nope"), "nope"),
        (("start", "p", "--version", "9"), "version 9"),
        (("publish", "Tell", "--payload", "{nope"), "--payload"),
        (("publish", "Tell", "--payload", "[1, 2]"), "--payload"),
        (("start", "p", "--var", "n=nope"), "--var"),
        (("set", "i-1", "who=nope"), "who: not JSON: 'nope'"),
        (("start", "p", "--var", 'who="\\ud800"'), "who"),
        (("publish", "Tell", "--payload", '{"deep": ' + "[" * 200 + "]" * 200 + "}"), "deep"),
    ],
    ids=[
        "an unknown process",
        "an unknown version",
        "a payload that is not JSON",
        "a payload that is no object",
        "a variable that is not JSON",
        "an operator's value that is not JSON",
        "half of a surrogate pair",
        "nested too deeply",
    ],
)
def test_a_request_that_cannot_be_accepted(shell: Shell, arguments: tuple[str, ...], names: str) -> None:
    """An unknown process, a payload that is not JSON, a value that cannot be stored."""
    refused(shell, INPUT, names, *arguments)


def test_a_number_beyond_every_number_is_kept_and_told_as_json(shell: Shell) -> None:
    """It has a durable form; what is printed of it stays JSON, which has none."""
    started = json.loads(shell.run("start", "p", "--instance", "i-2", "--var", "big=1e999", "--json").out)
    assert started["instance_id"] == "i-2"
    record = shell.store.instance("i-2")
    assert record is not None
    assert b'"$f":"inf"' in record.inbox[0].payload
    assert json.dumps(plain({"big": float("inf"), "none": Decimal("NaN")})) == '{"big": "inf", "none": "nan"}'


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize("command", [("list",), ("start", "p"), ("run",)], ids=["list", "start", "run"])
def test_a_store_that_is_down(shell: Shell, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Exit 5, and its address; a run ends before it has started Ray for nothing."""
    port = closed_port()
    arguments = (*command, written(tmp_path, APPROVAL)) if command == ("run",) else command
    refused(shell, ENVIRONMENT, f"127.0.0.1:{port}", *arguments, GOBPM_REDIS_URL=f"redis://127.0.0.1:{port}")


def test_a_wrong_password(shell: Shell, home: Path) -> None:
    """Exit 5, who was refused and where; the password itself is nowhere."""
    url = f"unix://nobody:s3cret@{home}/store.sock"
    refused(shell, ENVIRONMENT, str(home), "publish", "Tell", "--key", "A", GOBPM_REDIS_URL=url)
    ended = shell.run("list", GOBPM_REDIS_URL=url)
    assert ended.code == ENVIRONMENT
    assert "s3cret" not in ended.out + ended.err
