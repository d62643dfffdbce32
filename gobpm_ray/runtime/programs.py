"""Definitions made ready to run, read from the store once and kept.

It knows the document forms (`xml`, `json` and, of decisions, `dmn`: the word on their first line) and refuses to know
whether a model is valid: that was asked at deploy. A version never changes, so nothing here goes stale.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from gobpm_ray.core.nodes.custom import imported, register, registered
from gobpm_ray.core.program import DecisionSource, Program, compile_process
from gobpm_ray.decisions.compiled import Decisions
from gobpm_ray.errors import InvalidModel, UnknownProcess
from gobpm_ray.model.elements import CustomTask, Process, WorkTask, literal
from gobpm_ray.runtime.ports import Store
from gobpm_ray.runtime.storing import storing
from gobpm_ray.settings import Settings

ENGINE = "engine"
JOBS = "jobs:"
"""The store's table, and the prefix of the names in it, where a process's job elements stand."""
ELEMENTS = "elements"
"""The store's table of the user's own elements: name -> `module:Class` of its family."""
SECRETS = "secrets:"
"""The prefix of the names where the variables stand that a deployment has declared secret."""
PINS = "pins:"
"""The prefix of the names where the versions stand that a process version's calls are bound to."""

_DECISION_FORM = b"dmn"

KEPT = 256
"""Programs kept by one host; the least recently used goes first."""


def _no_jobs(_task: WorkTask) -> bool:
    return False


class Programs:
    """`jobs` says of a service or send task whether a worker does it (as a job) or the host."""

    def __init__(
        self,
        store: Store,
        settings: Settings | None = None,
        *,
        jobs: Callable[[WorkTask], bool] = _no_jobs,
        kept: int = KEPT,
    ) -> None:
        self._store = store
        self._settings = settings or Settings()
        self._jobs = jobs
        self._kept = max(1, kept)
        self._programs: OrderedDict[tuple[str, int], Program] = OrderedDict()
        self._decisions: OrderedDict[tuple[str, int], Decisions] = OrderedDict()
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
        process = _with_retries(read_document(definition.document, process_id), self._settings.retries)
        if secrets := read_secrets(self._store, process_id):
            process = replace(process, secrets=tuple(sorted(secrets.union(process.secrets))))
        load_elements(self._store, process)
        declared = read_job_nodes(self._store, process_id)
        pins = read_pins(self._store, process_id, definition.version)
        program = compile_process(
            process,
            definition.version,
            jobs=lambda task: task.id in declared or self._jobs(task),
            pins=pins,
            decisions=self._source(pins),
        )
        return storing(program, self._settings.max_variable)

    # --- decisions

    def _source(self, pins: Mapping[str, int]) -> DecisionSource:
        """Who has the decisions for a process whose deployment is bound to these versions."""

        def find(decision_id: str, binding: str, version: int) -> Decisions | None:
            if binding == "deployment":
                version = pins.get(decision_pin(decision_id), 0)
            elif binding == "latest":
                version = 0
            if binding != "latest" and version < 1:
                return None
            return self._find(decision_id, version)

        return find

    def _find(self, decision_id: str, version: int) -> Decisions | None:
        if version:
            with self._lock:
                known = self._decisions.get((decision_id, version))
                if known is not None:
                    self._decisions.move_to_end((decision_id, version))
                    return known
        definition = self._store.definition(decision_id, version)
        if definition is None:
            return None
        form, _, content = definition.document.partition(b"\n")
        if form != _DECISION_FORM:
            return None  # a process of this id
        name = (decision_id, definition.version)
        with self._lock:
            known = self._decisions.get(name)
        if known is None:
            from gobpm_ray.bpmn.dmn import read_decisions

            known = read_decisions(content, decision_id)
        with self._lock:
            self._decisions[name] = known
            self._decisions.move_to_end(name)
            while len(self._decisions) > self._kept:
                self._decisions.popitem(last=False)
        return known


def load_elements(store: Store, process: Process) -> None:
    """The families of the user's own elements that the engine knows by name are registered in this os process."""
    for node in process.nodes.values():
        if isinstance(node, CustomTask) and registered(node.element) is None:
            reference = store.get_value(ELEMENTS, node.element)
            if reference is not None:
                register(node.element, imported(reference.decode()))


def _with_retries(process: Process, policy: str) -> Process:
    """Work that has no policy of its own has the engine's."""
    if policy in ("", "none"):
        return process
    changed = {
        node.id: replace(node, retries=literal(policy))
        for node in process.nodes.values()
        if isinstance(node, WorkTask) and node.retries is None
    }
    return replace(process, nodes={**process.nodes, **changed}) if changed else process


def is_decision(document: bytes) -> bool:
    """The stored document holds decisions; any other form, a process."""
    return document.partition(b"\n")[0] == _DECISION_FORM


def decision_pin(decision_id: str) -> str:
    """The name under which `write_pins` keeps a decision's version: no element's id has a space in it."""
    return f"decision {decision_id}"


def write_job_nodes(store: Store, process_id: str, nodes: Collection[str]) -> None:
    """These service and send tasks of the process wait for a worker as jobs: decided once, at deploy, so that every
    host decides alike. Written before the definition, or an instance that starts at once would not find it."""
    store.put_value(ENGINE, JOBS + process_id, json.dumps(sorted(nodes)).encode())


def read_job_nodes(store: Store, process_id: str) -> frozenset[str]:
    """What `write_job_nodes` said last."""
    row = store.get_value(ENGINE, JOBS + process_id)
    return frozenset(json.loads(row)) if row else frozenset()


def write_secrets(store: Store, process_id: str, names: Collection[str]) -> None:
    """These variables of the process are secret, whatever its model says, and stay it in later versions. Written before
    the definition, or an instance that starts at once would show them."""
    known = read_secrets(store, process_id)
    if not known.issuperset(names):
        store.put_value(ENGINE, SECRETS + process_id, json.dumps(sorted(known | set(names))).encode())


def read_secrets(store: Store, process_id: str) -> frozenset[str]:
    """What every `write_secrets` has said."""
    row = store.get_value(ENGINE, SECRETS + process_id)
    return frozenset(json.loads(row)) if row else frozenset()


def write_pins(store: Store, process_id: str, version: int, pins: Mapping[str, int]) -> None:
    """These call activities and decisions of the version are bound to its deployment: call activity (or `decision_pin`)
    -> version of what it calls. The first answer stays: a version's calls never change."""
    name = f"{PINS}{process_id}:{version}"
    if pins and store.get_value(ENGINE, name) is None:
        store.put_value(ENGINE, name, json.dumps(dict(pins)).encode())


def read_pins(store: Store, process_id: str, version: int) -> dict[str, int]:
    """What `write_pins` said first."""
    row = store.get_value(ENGINE, f"{PINS}{process_id}:{version}")
    return {node: int(pinned) for node, pinned in json.loads(row).items()} if row else {}


def read_document(document: bytes, process_id: str) -> Process:
    """The process that a stored document holds."""
    form, _, content = document.partition(b"\n")
    if form == b"json":
        from gobpm_ray.model.document import from_json

        return from_json(content)
    if form == _DECISION_FORM:
        raise UnknownProcess(f"process {process_id}: a decision of this id is deployed, and no process")
    if form != b"xml":
        raise InvalidModel(f"process {process_id}: its stored document has the unknown form {form[:20]!r}")
    # lxml costs a tenth of a second and is needed only by who runs a process that came as XML.
    from gobpm_ray.bpmn.reader import read_bpmn

    process = read_bpmn(content, process_id).process(process_id)
    if process is None:
        raise InvalidModel(f"process {process_id}: its stored document does not define it")
    return process
