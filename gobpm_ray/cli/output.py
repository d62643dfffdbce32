"""The contract of every command's output: answers on stdout (JSON lines with `--json`), everything else on stderr, and
the exit codes.

Exit codes, first that applies: 5 environment, 2 input, 4 an incident is open, 3 something still waits, 0. 130:
interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import typer

from gobpm_ray.errors import EnvironmentFailure, ExpressionError, GobpmError, InputError, NotInTime

OK = 0
INPUT = 2
WAITING = 3
INCIDENT = 4
ENVIRONMENT = 5
INTERRUPTED = 130

DEBUG_VARIABLE = "GOBPM_DEBUG"
"""Set: an error of the engine itself shows its traceback."""


@dataclass(slots=True)
class Output:
    """Where one command writes."""

    json: bool = False
    warned: set[str] = field(default_factory=set)

    def row(self, answer: object, text: Callable[[], str] | None = None) -> None:
        """One answer: a JSON object on a line of its own; for people `text` (nothing: the table that follows shows
        it)."""
        if self.json:
            sys.stdout.write(json.dumps(answer, ensure_ascii=False, default=str) + "\n")
            sys.stdout.flush()
        elif text is not None:
            sys.stdout.write(text() + "\n")

    def note(self, text: str) -> None:
        """Said to people beside the answer."""
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def warn(self, text: str) -> None:
        """Said once, however often it is true."""
        if text not in self.warned:
            self.warned.add(text)
            self.note(f"warning: {text}")

    def error(self, code: str, message: str) -> None:
        line = " ".join(message.split())
        if self.json:
            self.row({"error": {"code": code, "message": line}})
        self.note(f"error: {line}")


def exit_code(error: BaseException) -> int:
    """What the command ends with when this was raised."""
    if isinstance(error, EnvironmentFailure):
        return ENVIRONMENT
    if isinstance(error, InputError | ExpressionError):
        return INPUT
    return ENVIRONMENT if isinstance(error, GobpmError | OSError) else 1


@contextmanager
def reported(output: Output) -> Iterator[list[int]]:
    """Inside, whatever is raised becomes one line and an exit code: the list's only item."""
    code = [OK]
    try:
        yield code
    except NotInTime as late:
        output.error(late.code, str(late))
        code[0] = WAITING
    except GobpmError as refused:
        output.error(refused.code, str(refused))
        code[0] = exit_code(refused)
    except BrokenPipeError:
        # Whoever read stdout has gone (`| head`); the interpreter must not find that out again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        output.note("interrupted")
        code[0] = INTERRUPTED
    except OSError as failure:
        output.error("environment", f"{failure.filename or 'system'}: {failure.strerror or failure}")
        code[0] = ENVIRONMENT
    except Exception as broken:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        output.error("internal", f"{type(broken).__name__}: {broken} (set {DEBUG_VARIABLE}=1 for the traceback)")
        code[0] = 1


def finish(json: bool, body: Callable[[Output], int]) -> NoReturn:
    """Run a command's body and end with its exit code, whatever it raises."""
    output = Output(json)
    with reported(output) as code:
        code[0] = body(output)
    raise typer.Exit(code[0])


def variables(pairs: Iterable[str], option: str = "--var ") -> dict[str, Any]:
    """`k=JSON` options as variables; InputError names the one that is no JSON. `option` is '' for plain arguments."""
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InputError(f"{option}{pair!r}: expected name=JSON, e.g. amount=5 or name='\"Ada\"'")
        found[name] = json_value(text, f"{option}{name}")
    return found


def marked(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The variables, those named marked as secret; InputError for a name that is none of them."""
    from gobpm_ray.secret import Secret

    for name in names:
        if name not in values:
            raise InputError(f"--secret {name[:60]!r}: no --var of this name is given")
    return {name: Secret(value) if name in names else value for name, value in values.items()}


def correlation(given: Sequence[str]) -> Any:
    """What `--key` options say: nothing, one plain key, which is a text, or a table of correlation properties, each a
    JSON scalar or, where it is none, a text. InputError for both kinds at once, or for a property without a value."""
    named: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            if len(given) > 1:
                raise InputError(f"--key {text[:60]!r}: one of several, expected name=value, e.g. order=A-1")
            return value if equals else text
        if name in named:
            raise InputError(f"--key {text[:60]!r}: the property {name!r} is given twice")
        named[name] = _scalar(value, f"--key {name}")
    return named or None


def _scalar(text: str, what: str) -> Any:
    try:
        value = json_value(text, what)
    except InputError:
        return text
    if value is None or isinstance(value, dict | list):
        raise InputError(f"{what}: expected a text, a number or a boolean, found {text[:60]!r}")
    return value


def json_object(text: str | None, what: str) -> dict[str, Any]:
    """The JSON object of an option; InputError otherwise."""
    if text is None:
        return {}
    value = json_value(text, what)
    if not isinstance(value, dict):
        raise InputError(f'{what}: expected a JSON object such as {{"a": 1}}, found {text[:60]!r}')
    return value


def json_value(text: str, what: str) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as broken:
        raise InputError(f"{what}: not JSON: {text[:60]!r} ({broken})") from None
