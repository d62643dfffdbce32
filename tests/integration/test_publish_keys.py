"""`gobpm-ray publish --key` and `--secret`: as a user types them, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gobpm_ray import ProcessBuilder
from gobpm_ray.bpmn.writer import write_bpmn
from gobpm_ray.runtime.driver import Driver
from tests.integration.test_operations import Command, engine, gobpm, opened

__all__ = ["engine", "gobpm", "opened"]


def typed(*words: str) -> tuple[int, dict[str, object]]:
    """What the installed command answers; the environment names the engine."""
    command = [sys.executable, "-m", "gobpm_ray.cli.main", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout)


def orders() -> bytes:
    """Begun by a message that teaches two keys; then it waits for a payment by either."""
    built = ProcessBuilder("p")
    both = {"order": "order", "invoice": "invoice"}
    built.start("begin", message="Ordered", key=both).receive_task("paid", message="Paid", key=both).end("done")
    return write_bpmn(built.build())


@pytest.mark.parametrize(
    ("keys", "taken"),
    [
        (("invoice=9",), True),
        (('invoice="9"',), True),
        (("order=O-1", "invoice=9.0"), True),
        (("invoice=9", "order=OTHER"), False),
        (("9",), True),
        (("=9",), True),
        (("O-1",), True),
        (("x=O-1",), True),
        (("=x=O-1",), False),
    ],
)
def test_a_message_is_published_by_the_properties_that_are_typed(
    gobpm: Command, engine: Driver, tmp_path: Path, keys: tuple[str, ...], taken: bool
) -> None:
    """M49: each is a JSON scalar, or else a text; a plain key is a text, also one with an `=` in it."""
    file = tmp_path / "p.bpmn"
    file.write_bytes(orders())
    assert gobpm("deploy", file).code == 0
    gobpm("publish", "Ordered", "--key", "order=O-1", "--key", "invoice=9")
    code, receipt = typed("publish", "Paid", *(word for key in keys for word in ("--key", key)))
    assert (code, receipt["duplicate"]) == (0, False)
    engine.drive()
    assert gobpm("list").row["state"] == ("completed" if taken else "waiting")


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        (("order=A", "plain"), "'plain'"),
        (("order=A", "order=B"), "twice"),
        (("order=[1]",), "order"),
        (("order=null",), "order"),
        (("order=",), "expected"),
    ],
)
def test_keys_that_say_nothing_are_refused_by_name(gobpm: Command, keys: tuple[str, ...], part: str) -> None:
    """M49: nothing is accepted."""
    code, answer = typed("publish", "Paid", *(word for key in keys for word in ("--key", key)))
    assert code == 2
    error = answer["error"]
    assert isinstance(error, dict)
    assert part in error["message"]


def test_a_secret_is_marked_where_it_is_typed(gobpm: Command, engine: Driver, tmp_path: Path) -> None:
    """Issue 6, secrets: for one instance, or by the deployment for all."""
    built = ProcessBuilder("p")
    built.start().user_task("wait").end()
    file = tmp_path / "p.bpmn"
    file.write_bytes(write_bpmn(built.build()))
    assert typed("deploy", str(file), "--secret", "pin")[0] == 0
    words = ("start", "p", "--var", "pin=1234", "--var", 'password="opensesame"', "--var", "user=5")
    code, started = typed(*words, "--secret", "password")
    assert code == 0
    engine.drive()
    shown = typed("show", str(started["instance_id"]))[1]
    assert shown["variables"] == {"pin": "***", "password": "***", "user": 5}
    code, answer = typed(*words, "--secret", "pasword")
    assert (code, "'pasword'" in str(answer["error"])) == (2, True)
