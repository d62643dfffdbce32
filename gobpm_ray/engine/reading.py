"""Everything that is only looked at: instances, tasks, incidents, facts, the population. Nothing here changes the
store."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from actors.registry import supervisor_is_alive, take_census
from gobpm_ray.checkpoint import rows
from gobpm_ray.core.secrets import Veil, veil_of
from gobpm_ray.core.step import TaskRow
from gobpm_ray.engine.base import Base
from gobpm_ray.engine.instance_views import instance_view
from gobpm_ray.engine.views import ENDED, Fact, IncidentView, InstanceView, TaskInfo, Top
from gobpm_ray.errors import UnknownInstance, UnknownProcess, UnknownTask
from gobpm_ray.model.elements import Process
from gobpm_ray.runtime.ports import InstanceRecord, Store, TaskView
from gobpm_ray.runtime.programs import Programs, is_decision
from gobpm_ray.settings import Settings

PAGE = 500


class Reading(Base):
    """See the module's docstring."""

    def __init__(self, store: Store, settings: Settings | None = None, *, signing_key: bytes | None = None) -> None:
        super().__init__(store, settings, signing_key=signing_key)
        self._programs = Programs(store, self.settings)

    def _forget(self) -> None:
        """Nothing is known any more but what the store says."""
        self._programs = Programs(self.store, self.settings)

    # --- instances
    def inspect(self, instance_id: str) -> InstanceView:
        """Everything about one instance, as one consistent read; UnknownInstance."""
        record = self.store.instance(instance_id)
        if record is None:
            raise UnknownInstance(f"instance {instance_id}: unknown, or ended and past its retention")
        return self._view(record)

    def list_instances(
        self,
        *,
        process_id: str = "",
        ended: bool | None = None,
        state: str = "",
        business_key: str = "",
        limit: int = 1_000,
    ) -> list[InstanceView]:
        """Instances, oldest first; `ended` None: both living and ended ones."""
        found: list[InstanceView] = []
        for view in self._instances(ended):
            fits = process_id in ("", view.process_id) and state in ("", view.state)
            if fits and business_key in ("", view.business_key):
                found.append(view)
                if len(found) == limit:
                    break
        return found

    def _view(self, record: InstanceRecord) -> InstanceView:
        return instance_view(record, self._programs.get(record.process_id, record.process_version))

    def _instances(self, ended: bool | None = None) -> Iterator[InstanceView]:
        after = 0
        while page := self.store.instances(ended=ended, after_seq=after, limit=PAGE):
            for seq, instance_id in page:
                after = seq
                # It may have ended and gone between the two reads.
                if (record := self.store.instance(instance_id)) is not None:
                    yield self._view(record)

    def status(self, instance_id: str) -> str:
        """active | suspended | completed | terminated, without reading the instance; UnknownInstance."""
        status = self.store.status(instance_id)
        if status is None:
            raise UnknownInstance(f"instance {instance_id}: unknown, or ended and past its retention")
        return status

    def wait(
        self, instance_id: str, timeout: float = 60.0, *, until: Literal["ended", "waiting"] = "ended"
    ) -> InstanceView:
        """The instance when it has ended; or, with `until="waiting"`, as soon as only an outside trigger or a deadline
        moves it on. NotInTime after `timeout` seconds of real time."""

        def reached() -> bool:
            self._settle()
            if until == "ended":
                return self.status(instance_id) in ENDED
            view = self.inspect(instance_id)
            return view.ended or not view.moving

        self._poll(reached, timeout, f"instance {instance_id}: waited for it to be {until}")
        return self.inspect(instance_id)

    # --- human tasks and jobs
    def tasks(
        self,
        *,
        instance_id: str = "",
        node: str = "",
        user: str = "",
        groups: Sequence[str] = (),
        process_id: str = "",
        variables: Mapping[str, object] | None = None,
        due_before_ms: int | None = None,
        follow_up_before_ms: int | None = None,
        order: Literal["age", "priority", "due"] = "age",
        limit: int = 1_000,
    ) -> list[TaskInfo]:
        """Open human tasks; with `user` or `groups` those that this person owns or may claim.

        `variables`: only tasks that are shown these values as inputs, or whose instance has them. The dates: only tasks
        that have one, before that time. `order`: the oldest first; or the most urgent (highest priority), or the one
        that is due first, and of equals the oldest."""
        found: Iterable[TaskInfo] = (
            task
            for task in self._open("task", instance_id)
            if node in ("", task.node)
            and process_id in ("", task.process_id)
            and (not (user or groups) or _may_see(task, user, groups))
            and (due_before_ms is None or (task.due_ms is not None and task.due_ms < due_before_ms))
            and (
                follow_up_before_ms is None
                or (task.follow_up_ms is not None and task.follow_up_ms < follow_up_before_ms)
            )
        )
        if variables:
            found = self._with_variables(found, variables)
        if order == "priority":
            found = sorted(found, key=lambda task: -task.priority)
        elif order == "due":
            found = sorted(found, key=lambda task: (task.due_ms is None, task.due_ms or 0))
        return [task for task, _ in zip(found, range(limit), strict=False)]

    def _with_variables(self, tasks: Iterable[TaskInfo], wanted: Mapping[str, object]) -> Iterator[TaskInfo]:
        known: dict[str, Mapping[str, object]] = {}
        for task in tasks:
            if task.instance_id not in known:
                record = self.store.instance(task.instance_id)
                known[task.instance_id] = {} if record is None else self._view(record).variables
            has = {**known[task.instance_id], **task.inputs}
            if all(name in has and has[name] == value for name, value in wanted.items()):
                yield task

    def jobs(self, *, topic: str = "", instance_id: str = "", node: str = "", limit: int = 1_000) -> list[TaskInfo]:
        """Open jobs, oldest first."""
        found = (
            job
            for job in self._open("job", instance_id)
            if (not topic or job.topic == topic) and (not node or job.node == node)
        )
        return [job for job, _ in zip(found, range(limit), strict=False)]

    def task(self, name: str, kind: Literal["task", "job"] = "task") -> TaskInfo:
        """The open task (or job) of an exact id, or else the oldest one of this node id; UnknownTask."""
        if "/" in name:
            view = self.store.task(name)
            if view is not None and view.kind == kind:
                return self._task_info(view)
        else:
            for found in self._open(kind, ""):
                if found.node == name:
                    return found
        raise UnknownTask(f"{kind} {name}: none is open by this id")

    def _open(self, kind: str, instance_id: str) -> Iterator[TaskInfo]:
        after = 0
        while views := self.store.tasks(kind, instance_id, PAGE, after):
            yield from map(self._task_info, views)
            after = views[-1].seq
            if len(views) < PAGE or not after:  # the last one ended while it was read
                return

    def _task_info(self, view: TaskView) -> TaskInfo:
        row = rows.read_task_row(view.row, f"task {view.id}")
        info = _task_info(view, row)
        if not info.inputs:
            return info
        veil = self._veil(view.process_id, view.process_version, info.inputs, row.secrets)
        return replace(info, inputs=veil.values(info.inputs))

    def _veil(self, process_id: str, version: int, values: Mapping[str, object], marked: Sequence[str]) -> Veil:
        """What the process's secrets hide, and those that are marked, of what such values say."""
        return veil_of(self._programs.get(process_id, version).process, values, marked=marked)

    # --- incidents, facts, population
    def incidents(
        self, instance_id: str = "", *, process_id: str = "", node: str = "", code: str = "", limit: int = 1_000_000
    ) -> list[IncidentView]:
        """Open incidents of one instance, or of all, oldest first; only those that fit what else is given.

        They stand in an index of their own: an instance without one is not looked at."""
        if instance_id:
            every: Iterable[IncidentView] = self.inspect(instance_id).incidents
        else:
            every = self._indexed_incidents()
        fitting = (
            one
            for one in every
            if process_id in ("", one.process_id) and node in ("", one.node) and code in ("", one.code)
        )
        return [one for one, _ in zip(fitting, range(limit), strict=False)]

    def _indexed_incidents(self) -> Iterator[IncidentView]:
        after = 0
        while page := self.store.incidents(after, PAGE):
            after = page[-1][0]
            views: dict[str, dict[str, IncidentView]] = {}
            for _, instance_id, wait in page:
                if instance_id not in views:
                    record = self.store.instance(instance_id)
                    # It may have been repaired, or its instance have ended, between the two reads.
                    found = () if record is None else self._view(record).incidents
                    views[instance_id] = {incident.wait: incident for incident in found}
                if (incident := views[instance_id].get(wait)) is not None:
                    yield incident

    def facts(self, after: str = "0", limit: int = 1_000) -> list[Fact]:
        """What happened after the fact of that id, oldest first (D14)."""
        found = []
        for fact_id, row in self.store.facts(after, limit):
            data = rows.read_fact(row)
            found.append(Fact(fact_id, str(data.pop("fact", "")), data))
        return found

    def top(self) -> Top:
        """The engine at a glance."""
        counts, actors = self.store.population(), take_census(self.store)
        return Top(
            resident=counts.resident,
            free=actors.free,
            spares=actors.spares,
            ready=counts.ready,
            oldest_ready_ms=counts.oldest_ready_ms,
            waiting=counts.waiting,
            due=counts.due,
            pending=counts.pending,
            parked=counts.parked,
            incidents=counts.incidents,
            actors=actors.actors,
            dead=counts.dead,
            signals={name: int(count) for name, count in sorted(self.store.values("signals").items())},
        )

    def supervised(self) -> bool:
        """Somebody keeps actors for what is ready; False: what is accepted waits until the engine is started."""
        return supervisor_is_alive(self.store, time.time_ns() // 1_000_000)

    def now(self) -> int:
        """The business time, in milliseconds."""
        return self.store.now()

    # --- definitions
    def processes(self) -> list[tuple[str, int]]:
        """(process id, newest version) of all processes that are deployed."""
        return [each for each in self.store.definitions() if not self._is_decision(*each)]

    def _is_decision(self, name: str, version: int) -> bool:
        definition = self.store.definition(name, version)
        return definition is not None and is_decision(definition.document)

    def process(self, process_id: str, version: int = 0) -> Process:
        """The model of a deployed process; `version` 0: the newest. UnknownProcess."""
        definition = self.store.definition(process_id, version)
        if definition is None or is_decision(definition.document):
            raise unknown_process(process_id, version, [known for known, _ in self.processes()])
        return self._programs.get(process_id, definition.version).process


def unknown_process(process_id: str, version: int, known: Sequence[str]) -> UnknownProcess:
    which = f" version {version}" if version else ""
    deployed = f"deployed: {', '.join(known[:10])}" if known else "nothing is deployed"
    return UnknownProcess(f"process {process_id}{which}: not deployed ({deployed})")


def _task_info(view: TaskView, row: TaskRow) -> TaskInfo:
    return TaskInfo(
        id=view.id,
        instance_id=view.instance_id,
        process_id=view.process_id,
        node=row.node,
        kind=view.kind,
        name=row.name,
        owner=view.owner,
        assignee=row.assignee,
        users=row.users,
        groups=row.groups,
        required=row.required,
        created_ms=view.created,
        due_ms=row.due,
        follow_up_ms=row.follow_up,
        priority=row.priority,
        form=row.form,
        topic=row.topic,
        inputs=row.inputs,
        retries=row.retries,
        failures=view.failures,
        cause=view.cause,
        process_version=view.process_version,
    )


def _may_see(task: TaskInfo, user: str, groups: Sequence[str]) -> bool:
    if task.owner:
        return task.owner == user
    if not task.users and not task.groups:
        return True
    return user in task.users or bool(set(groups) & set(task.groups))
