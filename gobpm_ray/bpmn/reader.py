"""A BPMN 2.0 document to a `Definitions`: the front door of reading. It decides which findings are fatal.

A process with `isExecutable="true"` must be executable whole: each fault refuses the document. One that says `false` is
a drawing: its faults are warnings. One that says nothing is executable when it can be read whole and has something to
begin with; otherwise it is a drawing, unless its structure is broken, which no drawing means (`validate.STRUCTURE`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.declarations import Declarations
from gobpm_ray.bpmn.findings import Findings, named
from gobpm_ray.bpmn.global_tasks import callable_tasks
from gobpm_ray.bpmn.imports import open_imports, open_schemas
from gobpm_ray.bpmn.operands import Operands
from gobpm_ray.bpmn.processes import read_process
from gobpm_ray.model.elements import (
    Activity,
    BoundaryEvent,
    Definitions,
    FlowNode,
    Problem,
    Process,
    StartEvent,
    SubProcess,
)
from gobpm_ray.model.validate import STRUCTURE, invalid


@dataclass(frozen=True, slots=True)
class Examination:
    """All that a reading gives: what could be read, and the errors that forbid to run it."""

    definitions: Definitions
    errors: tuple[Problem, ...] = ()


def read_file(path: str | Path) -> Definitions:
    """The file's definitions. Raises `InvalidModel` for its content, `OSError` where it cannot be opened."""
    return read_bpmn(read_bytes(path), str(path), folder=Path(path).parent)


def read_bytes(path: str | Path) -> bytes:
    """The file's content, never more than the reader accepts plus one byte."""
    with Path(path).open("rb") as file:
        return file.read(xml.MAX_BYTES + 1)


def read_bpmn(data: bytes, name: str = "<bytes>", *, folder: Path | None = None) -> Definitions:
    """The document's processes and the warnings about them. Raises `InvalidModel`: one line with `name`, element, line
    and reason of the first fault, and all of them in `problems`. `folder` is where files that it imports may lie; what
    it took from them is said in warnings of the code `imported`: the document alone does not hold it."""
    examination = examine(data, name, folder=folder)
    if examination.errors:
        raise invalid(name, examination.errors)
    return examination.definitions


def examine(data: bytes, name: str = "<bytes>", *, folder: Path | None = None) -> Examination:
    """Like `read_bpmn`, but a document that is BPMN gives its faults as values. Raises `InvalidModel` if it is not."""
    root, warnings = xml.parse(data, name)
    if xml.local(root) != "definitions" or not xml.is_bpmn(root):
        space = xml.namespace(root)
        found = f"'{xml.local(root)}' " + (f"in namespace '{space}'" if space else "without a namespace")
        raise xml.refused(name, "not_bpmn", f"is not BPMN 2.0: its root is {found}, not 'definitions' of {xml.MODEL}")
    operands = Operands.of(root)
    noticed = list(warnings)
    schemas = open_schemas(root, folder, noticed)
    declarations = Declarations(root, operands, open_imports(root, folder, noticed), schemas)
    errors: list[Problem] = []
    processes: dict[str, Process] = {}
    # Read before who calls them, and listed behind: a file's first process is its main one.
    called = [_read(element, declarations, operands) for element in callable_tasks(root, declarations)]
    for _, process, findings in called:
        if not process.executable:
            declarations.not_callable[process.id] = findings.warnings[0].message
    read = (_read(element, declarations, operands) for element in root.findall(f"{{{xml.MODEL}}}process"))
    for element, process, findings in chain(read, called):
        if process.id in processes:
            findings.error("duplicate_id", element, f"{named(element)} has the same id as another process")
        elif process.id:
            processes[process.id] = process
        errors.extend(findings.errors)
        noticed.extend(findings.warnings)
    noticed.extend(
        Problem("imported", "", f"'{reference}' is taken from an imported file")
        for reference in declarations.imports_used
    )
    if not processes:
        noticed.append(Problem("no_process", "", "there is no process in this file", xml.line(root)))
    return Examination(Definitions(tuple(processes.values()), tuple(noticed)), tuple(errors))


def _read(
    element: etree._Element, declarations: Declarations, operands: Operands
) -> tuple[etree._Element, Process, Findings]:
    findings = Findings()
    return element, _judged(element, read_process(element, declarations, operands, findings), findings), findings


def _judged(element: etree._Element, process: Process, findings: Findings) -> Process:
    """The process with its final `executable`; faults that do not forbid anything become warnings."""
    declared = xml.attribute(element, "isExecutable")
    if not process.id:
        findings.error("missing_id", element, f"{named(element)} has no id")
    if declared and process.executable:
        return process
    if not process.nodes and [problem.code for problem in findings.errors] == ["empty_process"]:
        findings.errors.clear()
        findings.warn(
            "empty_process", element, f"process '{process.id}' has no flow nodes: there is nothing to execute"
        )
        return replace(process, executable=False)
    if declared:
        findings.warnings[:0] = findings.errors
        findings.errors.clear()
        return process
    if any(problem.code in STRUCTURE for problem in findings.errors):
        return process
    if findings.errors:
        first = findings.errors[0].message
        findings.warnings[:0] = findings.errors
        findings.warn("not_executable", element, f"process '{process.id}' is not executable: {first}")
        findings.errors.clear()
        return replace(process, executable=False)
    if not _begins(process):
        findings.warn("not_executable", element, f"process '{process.id}' is not executable: nothing begins it")
        return replace(process, executable=False)
    return process


def _begins(process: Process) -> bool:
    return any(
        isinstance(node, StartEvent) or not (node.incoming or _stands_aside(node))
        for node in process.nodes.values()
        if node.scope == process.id
    )


def _stands_aside(node: FlowNode) -> bool:
    """Nothing leads to it, and yet it begins nothing: what waits beside the flow."""
    if isinstance(node, Activity):
        return node.for_compensation or (isinstance(node, SubProcess) and node.kind == "event")
    return isinstance(node, BoundaryEvent)
