"""`gobpm-ray check`: one file to one answer, whatever the file holds. It reads, and never raises for what it read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gobpm_ray.bpmn.reader import examine, read_bytes
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import Problem, Process
from gobpm_ray.model.lint import lint

UNREADABLE = "unreadable"


def check_file(path: str | Path) -> dict[str, Any]:
    """The answer for one file: `{"file", "ok", "processes", "executable", "errors", "warnings"}`. `ok`: there are no
    errors; `executable`: some process can be run. A finding has `code`, `element`, `message` and, if known, `line`."""
    name = str(path)
    try:
        data = read_bytes(path)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        return _answer(name, errors=(Problem(UNREADABLE, "", f"cannot be opened: {reason}"),))
    return check_bytes(data, name)


def check_bytes(data: bytes, name: str = "<bytes>") -> dict[str, Any]:
    """The same answer for a document in memory."""
    try:
        examination = examine(data, name)
    except InvalidModel as refusal:
        problems = tuple(problem for problem in refusal.problems if isinstance(problem, Problem))
        return _answer(name, errors=problems or (Problem(refusal.code, "", str(refusal)),))
    definitions = examination.definitions
    warnings = list(definitions.warnings)
    if not examination.errors:
        for process in definitions.processes:
            if process.executable:
                warnings.extend(lint(process))
    return _answer(name, definitions.processes, examination.errors, warnings)


def _answer(
    name: str,
    processes: Iterable[Process] = (),
    errors: Iterable[Problem] = (),
    warnings: Iterable[Problem] = (),
) -> dict[str, Any]:
    processes, errors = tuple(processes), tuple(errors)
    return {
        "file": name,
        "ok": not errors,
        "processes": [process.id for process in processes],
        "executable": not errors and any(process.executable for process in processes),
        "errors": [_finding(problem) for problem in errors],
        "warnings": [_finding(problem) for problem in warnings],
    }


def _finding(problem: Problem) -> dict[str, Any]:
    finding: dict[str, Any] = {"code": problem.code, "element": problem.element, "message": problem.message}
    if problem.line:
        finding["line"] = problem.line
    return finding
