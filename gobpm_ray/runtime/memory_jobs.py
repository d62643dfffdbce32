"""Jobs in memory: fetched and locked, reported, given back. The other half of the real store's `job_calls`."""

from __future__ import annotations

import secrets
import time
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gobpm_ray.core.keys import SEPARATOR
from gobpm_ray.errors import LockLost, UnknownTask
from gobpm_ray.runtime.limits import checked_payload
from gobpm_ray.runtime.memory_state import Instance, Task, Wait, locked
from gobpm_ray.runtime.memory_tasks import MemoryTasks
from gobpm_ray.runtime.ports import Accepted, JobVerb, JobView, TriggerRow
from gobpm_ray.settings import SECOND, Settings


@dataclass(slots=True)
class Lock:
    token: str
    until: int


class MemoryJobs(MemoryTasks):
    def __init__(self, settings: Settings, clock: Callable[[], int] | None = None) -> None:
        super().__init__(settings, clock)
        self._offered: dict[str, list[tuple[str, int, str]]] = {}
        """topic -> (urgency, seq, task id), the next one first"""
        self._locks: dict[str, Lock] = {}
        self._backoffs: dict[str, int] = {}
        """task id -> business time from which it may be fetched again"""

    def _list_task(self, wait: Wait) -> None:
        super()._list_task(wait)
        if wait.arm.kind == "job":
            self._offer(f"{wait.owner}/{wait.arm.wait}")

    def _unlist_task(self, task_id: str) -> None:
        task = self._tasks[task_id]
        if task.wait.arm.kind == "job":
            self._unoffer(task_id)
            self._locks.pop(task_id, None)
            self._backoffs.pop(task_id, None)
        super()._unlist_task(task_id)

    @locked
    def fetch_jobs(self, topics: Sequence[str], worker: str, lock_ms: int, limit: int) -> list[JobView]:
        self._wake_jobs(100)
        until = self._live() + lock_ms
        token = f"{worker}:{secrets.token_hex(8)}"
        found: list[JobView] = []
        for index, topic in enumerate(topics):
            share = -(-(limit - len(found)) // (len(topics) - index))
            offered = self._offered.get(topic, [])
            for _, _, task_id in offered[:share]:
                task = self._tasks[task_id]
                self._locks[task_id] = Lock(token, until)
                task.owner = worker
                instance = self._instances[task.wait.owner]
                found.append(
                    JobView(
                        task_id,
                        instance.process_id,
                        instance.process_version,
                        token,
                        until,
                        task.created,
                        task.wait.arm.row,
                        task.failures,
                        task.cause,
                    )
                )
            del offered[:share]
            if offered:
                self._ring_topic(topic)
        return found

    def wait_jobs(self, topics: Sequence[str], timeout_s: float) -> bool:
        bells = {_bell(topic) for topic in topics}
        until = time.monotonic() + max(0.0, timeout_s)
        with self._lock:
            while not self._bells & bells:
                left = until - time.monotonic()
                if left <= 0:
                    return False
                if self._wake_jobs(100):
                    continue
                ahead = [lock.until - self._live() for lock in self._locks.values()]
                if self._manual is None:
                    ahead += [at - self._live() for at in self._backoffs.values()]
                nearest = max(0.01, (min(ahead) + 1) / SECOND) if ahead else left
                self._bell_rung.wait(min(left, nearest))
            self._bells -= bells
            return True

    @locked
    def report_job(self, task_id: str, verb: JobVerb, lock: str, delivery_id: str, payload: bytes) -> Accepted:
        checked_payload(payload, self.settings, f"{verb} of job {task_id}")
        if (seen := self._seen(delivery_id)) is not None:
            return Accepted(delivery_id, duplicate=True, instance_id=task_id.partition("/")[0], seq=seen.seq)
        task = self._job(task_id, lock)
        wait, seq = task.wait, self._next_seq()
        trigger = TriggerRow(delivery_id, verb, wait.arm.wait, seq, payload=payload)
        self._deliver(self._owner(task), wait, trigger, stay=verb == "escalation")
        self._remember(delivery_id, wait.owner, seq)
        return Accepted(delivery_id, instance_id=wait.owner, seq=seq)

    @locked
    def retry_job(self, task_id: str, lock: str, delivery_id: str, backoff_ms: int, cause: str, history: bytes) -> bool:
        if self._seen(delivery_id) is not None:
            return False
        task = self._job(task_id, lock)
        instance = self._owner(task)
        task.failures += 1
        task.cause = "".join(c for c in cause if c.isprintable())
        instance.history.append(history)
        del instance.history[: max(0, len(instance.history) - self.settings.history_limit)]
        if backoff_ms > 0:
            self._unoffer(task_id)
            self._locks.pop(task_id, None)
            task.owner = ""
            self._backoffs[task_id] = self._now() + backoff_ms
            self._ring("task")
        else:
            self._back(task_id)
        self._remember(delivery_id, instance.id, 0)
        return True

    @locked
    def extend_lock(self, task_id: str, lock: str, lock_ms: int) -> int:
        self._job(task_id, lock)
        if not lock:
            raise LockLost(f"job {task_id}: nobody has locked it; nothing was changed")
        self._locks[task_id].until = self._live() + lock_ms
        return self._locks[task_id].until

    @locked
    def unlock_job(self, task_id: str, lock: str) -> None:
        self._job(task_id, lock)
        if task_id in self._locks:
            self._back(task_id)

    @locked
    def wake_jobs(self, limit: int) -> int:
        return self._wake_jobs(limit)

    @locked
    def incidents(self, after_seq: int = 0, limit: int = 1_000) -> list[tuple[int, str, str]]:
        found = [
            (wait.seq, instance.id, wait.arm.wait)
            for instance in self._instances.values()
            for wait in instance.waits.values()
            if wait.arm.kind == "incident"
        ]
        found += [(i.held_seq, i.id, "") for i in self._instances.values() if i.held_at]
        return [row for row in sorted(found) if row[0] > after_seq][:limit]

    # --- moves

    def _wake_jobs(self, limit: int) -> int:
        live, now = self._live(), self._now()
        expired = [task_id for task_id, lock in self._locks.items() if lock.until <= live][:limit]
        over = [task_id for task_id, at in self._backoffs.items() if at <= now][:limit]
        for task_id in (*expired, *over):
            self._back(task_id)
        return len(expired) + len(over)

    def _job(self, task_id: str, lock: str) -> Task:
        """The open job, under this lock if one is named."""
        task = self._tasks.get(task_id)
        if task is None or task.wait.arm.kind != "job":
            raise UnknownTask(f"job {task_id} is unknown or has already ended")
        held = self._locks.get(task_id)
        if lock and (held is None or held.token != lock or held.until <= self._live()):
            raise LockLost(f"job {task_id}: the lock {lock!r} has ended; nothing was changed")
        return task

    def _owner(self, task: Task) -> Instance:
        return self._instances[task.wait.owner]

    def _back(self, task_id: str) -> None:
        """It may be fetched again, from its lock or its wait."""
        self._locks.pop(task_id, None)
        self._backoffs.pop(task_id, None)
        self._tasks[task_id].owner = ""
        self._unoffer(task_id)
        self._offer(task_id)

    def _hold_jobs(self, instance: Instance) -> None:
        """It has just been held, or goes on. A job under a lock keeps it, and its report counts."""
        for wait in instance.waits.values():
            task_id = f"{instance.id}/{wait.arm.wait}"
            if wait.arm.kind == "job" and task_id not in self._locks and task_id not in self._backoffs:
                self._unoffer(task_id)
                self._offer(task_id)

    def _offer(self, task_id: str) -> None:
        if self._owner(self._tasks[task_id]).status == "suspended":
            return  # it comes back when its instance is resumed
        topic, entry = self._place(task_id)
        insort(self._offered.setdefault(topic, []), entry)
        self._ring_topic(topic)

    def _unoffer(self, task_id: str) -> None:
        topic, entry = self._place(task_id)
        offered = self._offered.get(topic, [])
        if entry in offered:
            offered.remove(entry)

    def _place(self, task_id: str) -> tuple[str, tuple[str, int, str]]:
        wait = self._tasks[task_id].wait
        topic, _, urgency = wait.arm.key.partition(SEPARATOR)
        return topic, (urgency, wait.seq, task_id)

    def _ring_topic(self, topic: str) -> None:
        self._bells.add(_bell(topic))
        self._bell_rung.notify_all()


def _bell(topic: str) -> str:
    return f"job:{topic}"
