"""The command line called in this process: what it printed where, and what it ended with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gobpm_ray.cli.main import call


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def row(self) -> dict[str, Any]:
        (only,) = self.rows
        return only

    @property
    def error(self) -> str:
        """The one line of an error answer; it is the same on stderr."""
        message = self.row["error"]["message"]
        assert "\n" not in message
        assert f"error: {message}\n" in self.err
        assert "Traceback" not in self.err
        return str(message)


CommandLine = Callable[..., Ended]


@pytest.fixture
def gobpm(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        code = call([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return run
