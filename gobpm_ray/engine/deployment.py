"""Packages into a store: compiled and judged whole before the first write.

A deployed service or send task is done by a registered callable, or is a job of its topic; one that is neither is
refused here, where somebody reads the answer, instead of becoming an incident later (design section 9). What is a job
is written down beside the definition, so that every host decides alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gobpm_ray.checkpoint.rows import start_timer_row
from gobpm_ray.core.program import Program, compile_process
from gobpm_ray.core.starts import start_arms
from gobpm_ray.core.state import ArmedWait
from gobpm_ray.core.step import Arm
from gobpm_ray.engine.sources import Package
from gobpm_ray.engine.views import Deployed, WaitView
from gobpm_ray.errors import UnregisteredCallable
from gobpm_ray.model.elements import Process, WorkTask
from gobpm_ray.runtime.ports import ArmRow, Store
from gobpm_ray.runtime.programs import write_job_nodes
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
) -> list[Deployed]:
    """Every package is stored and its start events armed; or nothing is, and an InputError says why."""
    now = store.now()
    ready = [_prepare(package, settings, registered, job_nodes, now) for package in packages]
    return [_write(store, each) for each in ready]


def _prepare(
    package: Package, settings: Settings, registered: Collection[str], job_nodes: frozenset[str], now_ms: int
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
    program = compile_process(process, jobs=lambda task: task.id in jobs)
    return _Ready(package, program, frozenset(jobs), tuple(start_arms(program, now_ms)))


def _write(store: Store, ready: _Ready) -> Deployed:
    process = ready.package.process
    # Before the definition: an instance that starts at once must find it.
    write_job_nodes(store, process.id, ready.jobs)
    version, created = store.deploy(process.id, ready.package.document, [_row(*start) for start in ready.starts])
    return Deployed(
        process_id=process.id,
        version=version,
        created=created,
        starts=tuple(WaitView(arm.wait, arm.node, arm.kind, arm.deadline, arm.key) for arm, _ in ready.starts),
        plain_start=bool(ready.program.starts[process.id]),
    )


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
        row=start_timer_row(armed.cycle, armed.anchor, armed.index) if timer else b"",
    )
