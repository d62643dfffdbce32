"""Human tasks and jobs in memory: list, owner and refusals. It reads a task's frozen row, never a process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

from gobpm_ray.errors import TaskRefused, UnknownTask
from gobpm_ray.runtime.limits import checked_payload
from gobpm_ray.runtime.memory_state import MemoryState, Task, Wait, locked
from gobpm_ray.runtime.ports import Accepted, TaskView, TriggerRow


class MemoryTasks(MemoryState):
    def _list_task(self, wait: Wait) -> None:
        owner = str(_row(wait).get("assignee") or "") if wait.arm.kind == "task" else ""
        self._tasks[f"{wait.owner}/{wait.arm.wait}"] = Task(wait.seq, owner, self._now(), wait)

    @locked
    def tasks(
        self, kind: str = "task", instance_id: str = "", limit: int = 1_000, after_seq: int = 0
    ) -> list[TaskView]:
        found = (
            (task_id, task)
            for task_id, task in self._tasks.items()  # insertion order is order of seq
            if task.wait.arm.kind == kind and task.seq > after_seq and instance_id in ("", task.wait.owner)
        )
        return [self._view(task_id, task) for (task_id, task), _ in zip(found, range(limit), strict=False)]

    @locked
    def task(self, task_id: str) -> TaskView | None:
        task = self._tasks.get(task_id)
        return self._view(task_id, task) if task is not None else None

    @locked
    def claim_task(self, task_id: str, user: str, groups: Sequence[str]) -> None:
        if not user:
            raise TaskRefused(f"task {task_id}: a claim needs a user")
        task = self._open(task_id)
        self._check_user(task_id, task, user, groups)
        task.owner = user

    @locked
    def unclaim_task(self, task_id: str) -> None:
        self._open(task_id).owner = ""

    @locked
    def reassign_task(self, task_id: str, user: str) -> None:
        if not user:
            raise TaskRefused(f"task {task_id}: it is given to a user; unclaim it to give it back")
        self._open(task_id).owner = user

    @locked
    def complete_task(
        self,
        task_id: str,
        user: str,
        groups: Sequence[str],
        outputs: Iterable[str],
        delivery_id: str,
        payload: bytes,
        *,
        strict: bool = False,
    ) -> Accepted:
        checked_payload(payload, self.settings, f"completion of {task_id}")
        if (seen := self._seen(delivery_id)) is not None:
            return Accepted(delivery_id, duplicate=True, instance_id=task_id.partition("/")[0], seq=seen.seq)
        task = self._open(task_id)
        self._check_user(task_id, task, user, groups)
        if strict and user and not task.owner and task.wait.arm.kind == "task":
            raise TaskRefused(f"task {task_id} must be claimed first")
        given = set(outputs)
        for name in _row(task.wait).get("required") or ():
            if name not in given:
                raise TaskRefused(f"task {task_id} needs output '{name}'")
        wait = task.wait
        seq = self._next_seq()
        trigger = TriggerRow(delivery_id, wait.arm.kind, wait.arm.wait, seq, payload=payload)
        self._deliver(self._instances[wait.owner], wait, trigger)
        self._remember(delivery_id, wait.owner, seq)
        return Accepted(delivery_id, instance_id=wait.owner, seq=seq)

    def _open(self, task_id: str) -> Task:
        task = self._tasks.get(task_id)
        if task is None:
            raise UnknownTask(f"task {task_id} is unknown or already ended")
        return task

    def _check_user(self, task_id: str, task: Task, user: str, groups: Sequence[str]) -> None:
        """An operator ('') is refused as nobody; the owner has been found eligible already."""
        if not user or task.owner == user:
            return
        if task.owner:
            raise TaskRefused(f"task {task_id} is claimed by another user")
        row = _row(task.wait)
        users, allowed = row.get("users") or (), row.get("groups") or ()
        if (users or allowed) and user not in users and not set(groups) & set(allowed):
            raise TaskRefused(f"task {task_id}: user {user!r} is not eligible")

    def _view(self, task_id: str, task: Task) -> TaskView:
        wait = task.wait
        kind = cast(Literal["task", "job"], wait.arm.kind)
        process_id = self._instances[wait.owner].process_id
        view = (task_id, wait.owner, process_id, wait.arm.wait, kind, task.owner, task.created, wait.arm.row)
        version = self._instances[wait.owner].process_version
        return TaskView(*view, task.failures, task.cause, version, task.seq)


def _row(wait: Wait) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(wait.arm.row) if wait.arm.row else {}
    return row
