"""Jobs as their workers see them: fetched and locked, kept, reported, given back; or reported by an operator.

A worker reports a `Job` that it fetched, which names its lock: once that has ended, nothing it says counts any more
(C68). An operator names a job by its id, or by a node id for the oldest open one, and needs no lock. This module knows
requests and refusals; it does not know who runs workers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from gobpm_ray.calendar.retries import parse_retries
from gobpm_ray.checkpoint import rows
from gobpm_ray.core.faults import one_line
from gobpm_ray.core.step import HistoryEntry
from gobpm_ray.engine.amounts import Span, after
from gobpm_ray.engine.base import checked_delivery, encoded, new_id
from gobpm_ray.engine.clockwork import Clockwork
from gobpm_ray.engine.views import Job, Started, TaskInfo
from gobpm_ray.errors import GobpmError, InputError, LockLost
from gobpm_ray.runtime.ports import JobVerb, JobView
from gobpm_ray.secret import HIDDEN
from gobpm_ray.settings import SECOND

MOST_JOBS = 1_000
"""Jobs that one call fetches at most."""
LOCK = "PT1M"
LONGEST_STACK = 8_000
_LOOK_S = 1.0
"""A sleeper looks again this often although no bell was rung: a worker that was rung and died took the bell with it."""


class Jobs(Clockwork):
    """See the module's docstring."""

    # --- workers
    def fetch_and_lock(
        self,
        topics: str | Sequence[str],
        worker: str = "worker",
        duration: Span = LOCK,
        max_jobs: int = 1,
        wait: float = 0.0,
    ) -> list[Job]:
        """Jobs of these topics, locked for this worker until `duration` of real time has passed: the most urgent first,
        then the oldest, every topic having a share.

        If there is none, waits up to `wait` seconds for one; then the list is empty."""
        wanted = [topics] if isinstance(topics, str) else list(dict.fromkeys(topics))
        if not wanted or not all(isinstance(topic, str) and topic for topic in wanted):
            raise InputError("fetch_and_lock: expected at least one topic")
        if not worker or any(ord(c) < 32 for c in worker):
            raise InputError(f"fetch_and_lock: worker {worker[:80]!r}: expected a name without control characters")
        if not 1 <= max_jobs <= MOST_JOBS:
            raise InputError(f"fetch_and_lock: max_jobs {max_jobs}: expected 1 to {MOST_JOBS}")
        lock_ms = _length(duration, "a lock")
        until = time.monotonic() + wait
        while True:
            found = self.store.fetch_jobs(wanted, worker, lock_ms, max_jobs)
            left = until - time.monotonic()
            if found or left <= 0:
                return [job_of(view) for view in found]
            self.store.wait_jobs(wanted, min(left, _LOOK_S))

    def extend(self, job: Job, duration: Span = LOCK) -> None:
        """The lock ends so long from now; LockLost, UnknownTask."""
        self.store.extend_lock(job.id, job.lock, _length(duration, "a lock"))

    def unlock(self, job: Job | str) -> None:
        """Others may fetch it at once, and no attempt has failed. By name it is an operator who says so."""
        name, lock = self._named(job)
        self.store.unlock_job(name, lock)
        self._settle()

    # --- reports
    def complete_job(
        self, job: Job | str, outputs: Mapping[str, Any] | None = None, *, id: str | None = None
    ) -> Started:
        """The job is done; `outputs` become variables. UnknownTask, LockLost, Mistyped."""
        found = self._info(job)
        self._check_result(found.process_id, found.process_version, found.node, outputs)
        return self._report("job", job, encoded(outputs, f"job {_name(job)}"), id)

    def bpmn_error(
        self,
        job: Job | str,
        code: str,
        message: str = "",
        outputs: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
    ) -> Started:
        """The job ends by throwing this BPMN error: who catches it in the model gets `outputs` as variables, and nobody
        is an incident. UnknownTask, LockLost."""
        what = f"error of job {_name(job)}"
        return self._report("error", job, encoded(outputs, what, message, _code(code, what)), id)

    def escalate(
        self, job: Job | str, code: str, outputs: Mapping[str, Any] | None = None, *, id: str | None = None
    ) -> Started:
        """Throw an escalation; the job goes on, unless who catches it interrupts it. UnknownTask, LockLost."""
        what = f"escalation of job {_name(job)}"
        return self._report("escalation", job, encoded(outputs, what, "", _code(code, what)), id)

    def fail_job(
        self,
        job: Job | str,
        cause: str,
        *,
        retries: int | None = None,
        backoff: Span | None = None,
        stack: str = "",
        id: str | None = None,
    ) -> Started:
        """The attempt failed. `retries`: how many are left; 0: an incident at the element, which an operator retries or
        resolves; None: what the element's policy says, which without one is an incident.

        `backoff` is business time; None: the policy's pause, else none. UnknownTask, LockLost."""
        if not cause.strip():
            raise InputError(f"job {_name(job)}: a failure needs a cause that a person can read")
        if retries is not None and retries < 0:
            raise InputError(f"job {_name(job)}: retries {retries}: expected 0 or more")
        name, lock = self._named(job)
        shown = one_line(self._concealed(job, cause))
        pause = self._pause(self._info(job), retries, backoff)
        delivery = _delivery(id)
        if pause is None:
            # Nothing of a failure becomes a variable: the stack is for who reads the incident.
            values = {"stack": self._concealed(job, stack)[-LONGEST_STACK:]} if stack else None
            return self._report("failed", job, encoded(values, f"job {name}", shown), delivery)
        entry = rows.history_entry(HistoryEntry("failed", self.now(), self._info(job).node, shown))
        fresh = self.store.retry_job(name, lock, delivery, pause, shown, entry)
        self._settle()
        return Started(delivery, not fresh, name.partition("/")[0])

    # --- inside
    def _report(self, verb: JobVerb, job: Job | str, payload: bytes, delivery: str | None) -> Started:
        name, lock = self._named(job)
        reported = _delivery(delivery)
        accepted = self._surely(
            lambda: self.store.report_job(name, verb, lock, reported, payload), ours=delivery is None
        )
        self._settle()
        return Started(accepted.id, accepted.duplicate, accepted.instance_id)

    def _named(self, job: Job | str) -> tuple[str, str]:
        """(exact id, lock)"""
        if not isinstance(job, Job):
            return self.task(job, "job").id, ""
        if not job.lock:
            raise LockLost(f"job {job.id}: it was not fetched, so it has no lock to report by")
        return job.id, job.lock

    def _info(self, job: Job | str) -> Job | TaskInfo:
        return job if isinstance(job, Job) else self.task(job, "job")

    def _pause(self, job: Job | TaskInfo, retries: int | None, backoff: Span | None) -> int | None:
        """Milliseconds until the next attempt; None: there is none."""
        now = self.now()
        policy = parse_retries(job.retries or self.settings.retries)
        failures = job.failures + 1
        due = policy.next_attempt(failures, now, job.id)
        if retries == 0 or (retries is None and due is None):
            return None
        if backoff is not None:
            return after(now, backoff) - now
        return max(0, due - now) if due is not None else 0

    def _concealed(self, job: Job | str, text: str) -> str:
        """The text without the values of secrets: a worker has them, and an exception may quote them."""
        if not isinstance(job, Job):
            return text
        try:
            return self._veil(job.process_id, job.process_version, job.inputs, job.secrets).text(text)
        except GobpmError as unreadable:
            # Which of its inputs are secret nobody can tell: then none of it is told.
            return f"{HIDDEN} (its process cannot be read: {unreadable})"


def job_of(view: JobView) -> Job:
    row = rows.read_task_row(view.row, f"job {view.id}")
    return Job(
        id=view.id,
        instance_id=view.id.partition("/")[0],
        process_id=view.process_id,
        process_version=view.process_version,
        node=row.node,
        topic=row.topic,
        lock=view.lock,
        until_ms=view.until,
        created_ms=view.created,
        failures=view.failures,
        cause=view.cause,
        name=row.name,
        retries=row.retries,
        inputs=row.inputs,
        secrets=row.secrets,
    )


def _name(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job


def _code(code: str, what: str) -> str:
    if not isinstance(code, str) or not code:
        raise InputError(f"{what}: expected a code")
    return code


def _length(duration: Span, what: str) -> int:
    length = after(0, duration)
    if not 0 < length <= 86_400 * 365 * SECOND:
        raise InputError(f"{what} of {duration!r}: expected more than nothing and at most a year")
    return length


def _delivery(delivery_id: str | None) -> str:
    return new_id() if delivery_id is None else checked_delivery(delivery_id)
