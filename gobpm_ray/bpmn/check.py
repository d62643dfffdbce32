"""`gobpm-ray check`: one file to one answer, whatever the file holds. It reads, and never raises for what it read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gobpm_ray.bpmn.dmn import is_dmn, read_decisions
from gobpm_ray.bpmn.reader import Examination, examine, read_bytes
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import Problem, Process
from gobpm_ray.model.lint import lint, lint_calls

UNREADABLE = "unreadable"


def check_file(path: str | Path) -> dict[str, Any]:
    """The answer for one file: `{"file", "ok", "processes", "executable", "errors", "warnings"}`. `ok`: there are no
    errors; `executable`: some process can be run. A finding has `code`, `element`, `message` and, if known, `line`."""
    return check_files((path,))[0]


def check_files(paths: Iterable[str | Path]) -> list[dict[str, Any]]:
    """The answers for files that belong together: a call of a process that none of them has is a warning. DMN files are
    judged too; they have no processes."""
    seen = [_seen(path) for path in paths]
    known = {process.id for _, examination in seen if examination for process in examination.definitions.processes}
    for answer, examination in seen:
        if examination is not None and not examination.errors:
            runnable = [process for process in examination.definitions.processes if process.executable]
            answer["warnings"].extend(map(_finding, lint_calls(runnable, known)))
    return [answer for answer, _ in seen]


def _seen(path: str | Path) -> tuple[dict[str, Any], Examination | None]:
    name = str(path)
    try:
        data = read_bytes(path)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        return _answer(name, errors=(Problem(UNREADABLE, "", f"cannot be opened: {reason}"),)), None
    return _judged(data, name, Path(path).parent)


def check_bytes(data: bytes, name: str = "<bytes>") -> dict[str, Any]:
    """The same answer for a document in memory."""
    return _judged(data, name, None)[0]


def _judged(data: bytes, name: str, folder: Path | None) -> tuple[dict[str, Any], Examination | None]:
    try:
        if is_dmn(data):
            read_decisions(data, name)
            return _answer(name), None
        examination = examine(data, name, folder=folder)
    except InvalidModel as refusal:
        problems = tuple(problem for problem in refusal.problems if isinstance(problem, Problem))
        return _answer(name, errors=problems or (Problem(refusal.code, "", str(refusal)),)), None
    definitions = examination.definitions
    warnings = list(definitions.warnings)
    if not examination.errors:
        for process in definitions.processes:
            if process.executable:
                warnings.extend(lint(process))
    return _answer(name, definitions.processes, examination.errors, warnings), examination


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
