"""Human tasks on Redis: listed, claimed, completed. A part of `gobpm_ray.store.redis_store.RedisStore`.

It knows which script answers what, and what a refusal is called. It refuses to know what a task is about.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from gobpm_ray.errors import (
    TaskRefused,
    UnknownTask,
)
from gobpm_ray.runtime.limits import checked_payload
from gobpm_ray.runtime.ports import (
    Accepted,
    TaskView,
)
from gobpm_ray.store import rows
from gobpm_ray.store.calls import store_call
from gobpm_ray.store.job_calls import JobCalls

log = logging.getLogger("gobpm_ray.store")


class TaskCalls(JobCalls):
    @store_call
    def tasks(
        self, kind: str = "task", instance_id: str = "", limit: int = 1_000, after_seq: int = 0
    ) -> list[TaskView]:
        out: list[TaskView] = []
        while len(out) < limit:
            page = self._client.zrangebyscore(
                self.keys["topen"], f"({after_seq}", "+inf", start=0, num=limit, withscores=True
            )
            if not page:
                break
            after_seq = int(page[-1][1])
            ids = [task_id for task_id, _ in page if not instance_id or task_id.startswith(f"{instance_id}/".encode())]
            out += [view for view in self._task_views(ids) if view.kind == kind]
        return out[:limit]

    @store_call
    def task(self, task_id: str) -> TaskView | None:
        return next(iter(self._task_views([task_id.encode()])), None)

    def _task_views(self, ids: Sequence[bytes]) -> list[TaskView]:
        if not ids:
            return []
        instances = sorted({task_id.partition(b"/")[0].decode() for task_id in ids})
        pipe = self._client.pipeline(transaction=False)
        pipe.hmget(self.keys["tasks"], ids)
        pipe.hmget(self.keys["owners"], ids)
        pipe.hmget(self.keys["jobs"], ids)
        pipe.zmscore(self.keys["topen"], ids)
        for instance_id in instances:
            pipe.hget(self.keys.instance(instance_id), "df")
        stored, owners, states, seqs, *definitions = pipe.execute()
        process_of = dict(zip(instances, definitions, strict=True))
        out = []
        for task_id, value, owner, state, seq in zip(ids, stored, owners, states, seqs, strict=True):
            instance_id, _, wait = task_id.decode().partition("/")
            definition = process_of[instance_id]
            if value is None or definition is None:
                continue
            created, kind, row = value.split(rows.RS, 2)
            word: Literal["task", "job"] = "task" if kind == b"U" else "job"
            process_id, version = definition.decode().split("\x1e")
            user = owner.decode() if owner else ""
            failures, cause = rows.job_state(state)
            view = (task_id.decode(), instance_id, process_id, wait, word, user, int(created), row)
            out.append(TaskView(*view, failures, cause, int(version), int(seq or 0)))
        return out

    @store_call
    def claim_task(self, task_id: str, user: str, groups: Sequence[str]) -> None:
        if not user:
            raise TaskRefused(f"task {task_id!r}: a claim needs a user")
        self._refuse(task_id, user, [self._run("task_owner", task_id, user, "\x1e".join(groups), "1")])

    @store_call
    def unclaim_task(self, task_id: str) -> None:
        self._refuse(task_id, "", [self._run("task_owner", task_id, "", "", "0")])

    @store_call
    def reassign_task(self, task_id: str, user: str) -> None:
        if not user:
            raise TaskRefused(f"task {task_id!r}: it is given to a user; unclaim it to give it back")
        self._refuse(task_id, user, [self._run("task_owner", task_id, user, "", "2")])

    @store_call
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
        instance_id, _, wait = task_id.partition("/")
        checked_payload(payload, self.settings, f"completion of {task_id!r}")
        reply = self._run(
            "task_complete",
            task_id,
            instance_id,
            wait,
            user,
            "\x1e".join(groups),
            "\x1e".join(outputs),
            delivery_id,
            payload,
            "1" if strict else "0",
        )
        if reply[0] == b"duplicate":
            return Accepted(delivery_id, True, instance_id)
        self._refuse(task_id, user, reply)
        return Accepted(delivery_id, False, instance_id, reply[1])

    @staticmethod
    def _refuse(task_id: str, user: str, reply: Sequence[Any]) -> None:
        match reply[0]:
            case b"unknown":
                raise UnknownTask(f"task {task_id!r} is unknown or has already ended")
            case b"owned":
                raise TaskRefused(f"task {task_id!r} is claimed by another user than {user!r}")
            case b"ineligible":
                raise TaskRefused(f"user {user!r} is not eligible for task {task_id!r}")
            case b"missing":
                raise TaskRefused(f"task {task_id!r} needs output {reply[1].decode()!r}")
            case b"unclaimed":
                raise TaskRefused(f"task {task_id!r} must be claimed first")
