"""Packages into a store: compiled and judged whole before the first write.

A deployed service or send task is done by a registered callable, or is a job of its topic; one that is neither is
refused here, where somebody reads the answer, instead of becoming an incident later (design section 9). What is a job
is written down beside the definition, so that every host decides alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gobpm_ray.checkpoint.rows import start_timer_row
from gobpm_ray.core.keys import together_text
from gobpm_ray.core.program import Program, compile_process
from gobpm_ray.core.starts import start_arms
from gobpm_ray.core.state import ArmedWait, parse_wait_id
from gobpm_ray.core.step import Arm
from gobpm_ray.engine.data_stores import declare_stores
from gobpm_ray.engine.sources import Package, Rules
from gobpm_ray.engine.views import Deployed, WaitView
from gobpm_ray.errors import InvalidModel, UnregisteredCallable
from gobpm_ray.model.elements import LITERAL, CallActivity, DecisionTask, Process, WorkTask
from gobpm_ray.runtime.correlating import declare_correlations
from gobpm_ray.runtime.ports import ArmRow, Store
from gobpm_ray.runtime.programs import (
    decision_pin,
    is_decision,
    load_elements,
    write_job_nodes,
    write_pins,
    write_secrets,
)
from gobpm_ray.settings import Settings


@dataclass(frozen=True, slots=True)
class _Ready:
    package: Package
    program: Program
    jobs: frozenset[str]
    starts: tuple[tuple[Arm, ArmedWait], ...]


def deploy_packages(
    store: Store,
    settings: Settings,
    packages: Iterable[Package],
    registered: Collection[str],
    job_nodes: frozenset[str],
    rules: Iterable[Rules] = (),
    secrets: Collection[str] = (),
) -> list[Deployed]:
    """Every package is stored and its start events armed; or nothing is, and an InputError says why. `rules` are stored
    before: an instance that starts at once finds its decisions."""
    now, rules = store.now(), list(rules)
    ready = [_prepare(store, package, settings, registered, job_nodes, now) for package in packages]
    decided = {each.decision_id for each in rules}
    _refuse_shared_ids(store, {each.package.process.id for each in ready}, decided)
    for prepared in ready:
        _refuse_called_decisions(store, prepared.package.process, decided)
    for each in rules:
        store.deploy(each.decision_id, each.document, [])
    for prepared in ready:
        write_secrets(store, prepared.package.process.id, secrets)
    deployed = [_write(store, each) for each in ready]
    for prepared, one in zip(ready, deployed, strict=True):
        # When all of them are there: what is called may be deployed together with who calls it, before or after.
        write_pins(store, one.process_id, one.version, _pins(store, prepared.package.process))
    return deployed


def _refuse_shared_ids(store: Store, processes: set[str], decisions: set[str]) -> None:
    """Processes and decisions stand in one table: whoever starts or asks by an id must find what it means."""
    for taken in sorted(processes & decisions):
        raise InvalidModel(f"'{taken}' is the id of a process and of a decision: one of them needs another")
    for decision_id in sorted(decisions):
        if (there := store.definition(decision_id)) is not None and not is_decision(there.document):
            raise InvalidModel(
                f"decision '{decision_id}': a process of this id is deployed; the decision needs another"
            )
    for process_id in sorted(processes):
        if (there := store.definition(process_id)) is not None and is_decision(there.document):
            raise InvalidModel(f"process '{process_id}': a decision of this id is deployed; the process needs another")


def _refuse_called_decisions(store: Store, process: Process, decisions: set[str]) -> None:
    """A decision is no process: nothing would ever run in the called instance."""
    for node in process.nodes.values():
        if isinstance(node, CallActivity) and node.called.language == LITERAL:
            called = node.called.text.strip()
            there = None if called in decisions else store.definition(called)
            if called in decisions or (there is not None and is_decision(there.document)):
                raise InvalidModel(
                    f"process {process.id}: callActivity '{node.id}' calls '{called}', which is a decision: "
                    f"a business rule task evaluates it"
                )


def _prepare(
    store: Store,
    package: Package,
    settings: Settings,
    registered: Collection[str],
    job_nodes: frozenset[str],
    now_ms: int,
) -> _Ready:
    process = package.process
    jobs = {task.id for task in work_of(process) if task.id in job_nodes}
    if not settings.auto_complete:
        for task in unregistered(process, registered):
            if not task.topic and task.id not in jobs:
                raise UnregisteredCallable(
                    f"process {process.id}: {task.type} '{task.id}' has no topic, "
                    f"and no callable is registered under its id"
                )
            jobs.add(task.id)
    load_elements(store, process)
    program = compile_process(process, jobs=lambda task: task.id in jobs)
    return _Ready(package, program, frozenset(jobs), tuple(start_arms(program, now_ms)))


def _write(store: Store, ready: _Ready) -> Deployed:
    process = ready.package.process
    # Before the definition: an instance that starts at once must find it.
    write_job_nodes(store, process.id, ready.jobs)
    declare_stores(store, process)
    declare_correlations(store, process)
    version, created = store.deploy(process.id, ready.package.document, [_row(*start) for start in ready.starts])
    return Deployed(
        process_id=process.id,
        version=version,
        created=created,
        starts=tuple(
            WaitView(arm.wait, parse_wait_id(arm.wait)[1], arm.kind, arm.deadline, arm.key) for arm, _ in ready.starts
        ),
        plain_start=bool(ready.program.starts[process.id]),
    )


def _pins(store: Store, process: Process) -> dict[str, int]:
    """Call activity (or decision) bound to this deployment -> the newest version of what it calls; nothing for what is
    not there."""
    found = {}
    for node in process.nodes.values():
        if isinstance(node, CallActivity) and node.binding == "deployment" and node.called.language == LITERAL:
            wanted, pin = node.called.text.strip(), node.id
        elif isinstance(node, DecisionTask) and node.binding == "deployment" and node.decision.language == LITERAL:
            wanted = node.decision.text
            pin = decision_pin(wanted)
        else:
            continue
        definition = store.definition(wanted)
        if definition is not None:
            found[pin] = definition.version
    return found


def work_of(process: Process) -> list[WorkTask]:
    """Service and send tasks, but for a send task that throws its own message: it needs nobody."""
    return [
        node
        for node in process.nodes.values()
        if isinstance(node, WorkTask) and not (node.type == "sendTask" and node.message is not None and not node.topic)
    ]


def unregistered(process: Process, registered: Collection[str]) -> list[WorkTask]:
    """The work that no registered callable does."""
    return [task for task in work_of(process) if (task.topic or task.id) not in registered]


def _row(arm: Arm, armed: ArmedWait) -> ArmRow:
    timer = arm.kind == "timer"
    return ArmRow(
        wait=arm.wait,
        kind=arm.kind,
        node=arm.node,
        key=arm.key,
        deadline=arm.deadline or 0,
        repeat=arm.repeat,
        row=start_timer_row(armed.cycle, armed.anchor, armed.index) if timer else together_text(arm.together),
    )
