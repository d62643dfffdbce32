"""Jobs on Redis: fetched and locked, reported, given back. A part of `gobpm_ray.store.redis_store.RedisStore`.

It knows which script answers what, and on which bells a worker sleeps. It refuses to know what a job is about.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from gobpm_ray.errors import LockLost, UnknownTask
from gobpm_ray.runtime.limits import checked_payload
from gobpm_ray.runtime.ports import Accepted, JobVerb, JobView
from gobpm_ray.settings import SECOND
from gobpm_ray.store import rows
from gobpm_ray.store.calls import store_call
from gobpm_ray.store.connection import ANSWER_TIMEOUT_S
from gobpm_ray.store.data_calls import DataCalls

_FIELDS = 5
"""Of a job in the answer of `job_fetch.lua`."""


class JobCalls(DataCalls):
    @store_call
    def fetch_jobs(self, topics: Sequence[str], worker: str, lock_ms: int, limit: int) -> list[JobView]:
        # Random, for the same worker that lost a job may fetch it again and must not report it by the old lock.
        lock = f"{worker}:{secrets.token_hex(8)}"
        until, *found = self._run("job_fetch", worker, lock, lock_ms, limit, *topics)
        out = []
        for first in range(0, len(found), _FIELDS):
            task, stored, definition, failures, cause = found[first : first + _FIELDS]
            created, _, row = stored.split(rows.RS, 2)
            process, version = definition.split(rows.RS)
            out.append(
                JobView(
                    task.decode(),
                    process.decode(),
                    int(version),
                    lock,
                    until,
                    int(created),
                    row,
                    int(failures),
                    cause.decode(),
                )
            )
        return out

    @store_call
    def wait_jobs(self, topics: Sequence[str], timeout_s: float) -> bool:
        bells = [self.keys.job_bell(topic) for topic in topics]
        pause = min(timeout_s, ANSWER_TIMEOUT_S / 2, self._until_next())
        if pause <= 0:
            return any(self._client.lpop(bell) is not None for bell in bells)
        return self._client.blpop(bells, timeout=pause) is not None

    def _until_next(self) -> float:
        """Seconds until a lock ends or a back-off is over: who sleeps longer would leave its job to the TaskHolder's
        tick. Never nothing: what is due already is taken by the fetch before."""
        pipe = self._client.pipeline(transaction=False)
        pipe.mget(self.keys["clock"], self.keys["liveness"])
        pipe.time()
        pipe.zrange(self.keys["joblocks"], 0, 0, withscores=True)
        pipe.zrange(self.keys["jobwait"], 0, 0, withscores=True)
        (manual, simulated), (seconds, micros), lock, wait = pipe.execute()
        live = int(simulated or seconds * SECOND + micros // SECOND)
        ahead = [lock[0][1] - live] if lock else []
        if wait and not manual:  # a clock that stands still is moved by somebody, who rings
            ahead.append(wait[0][1] - live)
        return max(0.01, (min(ahead) + 1) / SECOND) if ahead else float("inf")

    @store_call
    def report_job(self, task_id: str, verb: JobVerb, lock: str, delivery_id: str, payload: bytes) -> Accepted:
        checked_payload(payload, self.settings, f"{verb} of job {task_id!r}")
        reply = self._report(verb, task_id, lock, delivery_id, payload)
        instance_id = task_id.partition("/")[0]
        if reply[0] == b"duplicate":
            return Accepted(delivery_id, True, instance_id)
        return Accepted(delivery_id, False, instance_id, reply[1])

    @store_call
    def retry_job(self, task_id: str, lock: str, delivery_id: str, backoff_ms: int, cause: str, history: bytes) -> bool:
        shown = "".join(c for c in cause if c.isprintable())
        reply = self._report("retry", task_id, lock, delivery_id, b"", backoff_ms, history, shown)
        return bool(reply[0] == b"ok")

    @store_call
    def extend_lock(self, task_id: str, lock: str, lock_ms: int) -> int:
        return int(self._report("extend", task_id, lock, ms=lock_ms)[1])

    @store_call
    def unlock_job(self, task_id: str, lock: str) -> None:
        self._report("unlock", task_id, lock)

    @store_call
    def wake_jobs(self, limit: int) -> int:
        # Nearly always nothing is locked and nothing waits.
        if not self._client.exists(self.keys["joblocks"], self.keys["jobwait"]):
            return 0
        return int(self._run("job_wake", limit))

    @store_call
    def incidents(self, after_seq: int = 0, limit: int = 1_000) -> list[tuple[int, str, str]]:
        page = self._client.zrangebyscore(
            self.keys["incidents"], f"({after_seq}", "+inf", start=0, num=limit, withscores=True
        )
        found = []
        for member, seq in page:
            instance_id, _, wait = member.partition(rows.RS)
            found.append((int(seq), instance_id.decode(), wait.decode()))
        return found

    def _report(
        self,
        verb: str,
        task_id: str,
        lock: str,
        delivery_id: str = "",
        payload: bytes = b"",
        ms: int = 0,
        history: bytes = b"",
        cause: str = "",
    ) -> Sequence[Any]:
        instance_id, _, wait = task_id.partition("/")
        reply: Sequence[Any] = self._run(
            "job_report", verb, task_id, instance_id, wait, lock, delivery_id, payload, ms, history, cause
        )
        match reply[0]:
            case b"unknown":
                raise UnknownTask(f"job {task_id!r} is unknown or has already ended")
            case b"lost":
                raise LockLost(f"job {task_id!r}: the lock {lock!r} has ended; nothing was changed")
        return reply
