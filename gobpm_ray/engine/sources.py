"""From whatever describes processes to documents that can be stored: read and validated whole before anything is
written.

This module knows files, bytes, models and builders. It refuses to know a store: what it returns, `Operations.deploy`
writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from gobpm_ray.errors import InputError, InvalidModel
from gobpm_ray.model.elements import Definitions, Process


@runtime_checkable
class Builder(Protocol):
    """What builds a process step by step (`gobpm_ray.ProcessBuilder`)."""

    def build(self) -> Process: ...


XML, JSON, DMN = b"xml\n", b"json\n", b"dmn\n"
"""The first line of a stored document: its form (`gobpm_ray.runtime.programs` reads it)."""

_NOT_EXECUTABLE = ("not_executable", "no_process")
"""Codes of the reader's findings that say why there is nothing to run."""

Source = Path | str | bytes | Process | Definitions | Builder
"""A path to BPMN or DMN, such a file's bytes, a built process, or several."""


@dataclass(frozen=True, slots=True)
class Package:
    """One executable process and the document that is stored for it."""

    process: Process
    document: bytes


@dataclass(frozen=True, slots=True)
class Rules:
    """One decision and the document that is stored for it."""

    decision_id: str
    document: bytes


def name_of(source: Source) -> str:
    """How answers and errors call it: the path as it was given, else the process's id."""
    if isinstance(source, Path | str):
        return str(source)
    if isinstance(source, bytes):
        return "document"
    processes = source.processes if isinstance(source, Definitions) else packages(source)[1].processes
    return ", ".join(process.id for process in processes)


def packages(source: Source) -> tuple[list[Package], Definitions]:
    """The executable processes of a source, in order. InvalidModel names each element that cannot be executed;
    InputError a file that cannot be read."""
    if isinstance(source, Path | str):
        path = Path(source)
        return _from_xml(read_content(path), str(source), path.parent)
    if isinstance(source, bytes):
        return _from_xml(source, name_of(source), None)
    if isinstance(source, Definitions):
        return _from_model(source.processes), source
    process = source if isinstance(source, Process) else source.build()
    return _from_model((process,)), Definitions((process,))


def decisions(source: Source) -> list[Rules] | None:
    """The decisions of a DMN file or document; None: it is not DMN. InvalidModel names what cannot be evaluated."""
    if not isinstance(source, Path | str | bytes):
        return None
    from gobpm_ray.bpmn.dmn import is_dmn, read_decisions

    content = source if isinstance(source, bytes) else read_content(Path(source))
    if not is_dmn(content):
        return None
    return [Rules(decision_id, DMN + content) for decision_id in read_decisions(content, name_of(source))]


def read_content(path: Path) -> bytes:
    """The file's bytes, no more than the reader accepts; InputError in one line for what is no readable file."""
    # lxml costs a tenth of a second: only who deploys XML pays for it.
    from gobpm_ray.bpmn.reader import read_bytes

    try:
        return read_bytes(path)
    except (OSError, ValueError) as failure:
        raise InputError(f"{path}: cannot be read: {getattr(failure, 'strerror', None) or failure}") from None


def _from_xml(content: bytes, name: str, folder: Path | None) -> tuple[list[Package], Definitions]:
    from gobpm_ray.bpmn.reader import read_bpmn

    definitions = read_bpmn(content, name, folder=folder)
    # What came from other files is not in this one: then the model itself is stored.
    whole = not any(problem.code == "imported" for problem in definitions.warnings)
    found = [
        Package(process, XML + content if whole else _json(process))
        for process in definitions.processes
        if process.executable
    ]
    return _some(found, name, definitions), definitions


def _json(process: Process) -> bytes:
    from gobpm_ray.model.document import to_json

    return JSON + to_json(process)


def _from_model(processes: tuple[Process, ...]) -> list[Package]:
    from gobpm_ray.model.validate import require_valid

    name = f"process {processes[0].id}" if processes else "definitions"
    valid = [require_valid(process, f"process {process.id}") for process in processes if process.executable]
    return _some([Package(process, _json(process)) for process in valid], name, Definitions(processes))


def _some(found: list[Package], name: str, definitions: Definitions) -> list[Package]:
    if found:
        return found
    drawings = ", ".join(f"'{process.id}'" for process in definitions.processes)
    why = next((problem.message for problem in definitions.warnings if problem.code in _NOT_EXECUTABLE), "")
    if not why:
        why = f"isExecutable is false for {drawings}" if drawings else "there is no process in it"
    raise InvalidModel(f"{name}: nothing to run: {why}", definitions.warnings)
