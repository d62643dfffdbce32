"""Definitions made ready to run, read from the store once and kept.

It knows both document forms (`xml` and `json`, the word on their first line) and refuses to know whether a model is
valid: that was asked at deploy. A version never changes, so nothing here goes stale.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection

from gobpm_ray.core.program import Program, compile_process
from gobpm_ray.errors import InvalidModel, UnknownProcess
from gobpm_ray.model.elements import Process, WorkTask
from gobpm_ray.runtime.ports import Store
from gobpm_ray.runtime.storing import storing

ENGINE = "engine"
JOBS = "jobs:"
"""The store's table, and the prefix of the names in it, where a process's job elements stand."""

KEPT = 256
"""Programs kept by one host; the least recently used goes first."""


def _no_jobs(_task: WorkTask) -> bool:
    return False


class Programs:
    """`jobs` says of a service or send task whether a worker does it (as a job) or the host."""

    def __init__(self, store: Store, *, jobs: Callable[[WorkTask], bool] = _no_jobs, kept: int = KEPT) -> None:
        self._store = store
        self._jobs = jobs
        self._kept = max(1, kept)
        self._programs: OrderedDict[tuple[str, int], Program] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, process_id: str, version: int) -> Program:
        """The program of a deployed version. UnknownProcess while it is not deployed: asked again, it may be (D18)."""
        name = (process_id, version)
        with self._lock:
            program = self._programs.get(name)
            if program is not None:
                self._programs.move_to_end(name)
                return program
        # Compiled outside the lock: two callers that race compile twice and end with equal programs.
        program = self._compile(process_id, version)
        with self._lock:
            self._programs[name] = program
            while len(self._programs) > self._kept:
                self._programs.popitem(last=False)
        return program

    def _compile(self, process_id: str, version: int) -> Program:
        definition = self._store.definition(process_id, version)
        if definition is None:
            raise UnknownProcess(
                f"process {process_id} version {version} is not deployed; deploy it and its instances go on"
            )
        process = read_document(definition.document, process_id)
        declared = read_job_nodes(self._store, process_id)
        program = compile_process(
            process, definition.version, jobs=lambda task: task.id in declared or self._jobs(task)
        )
        return storing(program)


def write_job_nodes(store: Store, process_id: str, nodes: Collection[str]) -> None:
    """These service and send tasks of the process wait for a worker as jobs: decided once, at deploy, so that every
    host decides alike. Written before the definition, or an instance that starts at once would not find it."""
    store.put_value(ENGINE, JOBS + process_id, json.dumps(sorted(nodes)).encode())


def read_job_nodes(store: Store, process_id: str) -> frozenset[str]:
    """What `write_job_nodes` said last."""
    row = store.get_value(ENGINE, JOBS + process_id)
    return frozenset(json.loads(row)) if row else frozenset()


def read_document(document: bytes, process_id: str) -> Process:
    """The process that a stored document holds."""
    form, _, content = document.partition(b"\n")
    if form == b"json":
        from gobpm_ray.model.document import from_json

        return from_json(content)
    if form != b"xml":
        raise InvalidModel(f"process {process_id}: its stored document has the unknown form {form[:20]!r}")
    # lxml costs a tenth of a second and is needed only by who runs a process that came as XML.
    from gobpm_ray.bpmn.reader import read_bpmn

    process = read_bpmn(content, process_id).process(process_id)
    if process is None:
        raise InvalidModel(f"process {process_id}: its stored document does not define it")
    return process
