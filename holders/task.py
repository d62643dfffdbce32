"""TaskHolder: owner of the inbox of human tasks and jobs, and of what must be tidied on a tick.

The scripts that accept a completion do a task's own work (owner, eligibility, refusals) without a holder between. What
is left is done here, by the clock: expired leases go back to ready with their triggers (N9), parked messages past their
TTL become dead letters, ended instances and tombstones past their time go, and jobs whose lock has
ended or whose back-off is over are offered again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gobpm_ray.runtime.crashpoints import reached
from gobpm_ray.runtime.folding import Outcome
from gobpm_ray.runtime.ports import Store
from gobpm_ray.settings import Settings
from holders.loop import Holder, log, wall_ms
from holders.walk import Walk

BATCH = 100
BATCHES = 20


class TaskHolder(Holder):
    kind = "task"
    bell = "task"
    patience = 3
    """A lease lives three times as long, and nothing else here is in a hurry."""

    def __init__(self, store: Store, settings: Settings, *, live_ms: Callable[[], int] = wall_ms, **more: Any) -> None:
        super().__init__(store, settings, live_ms=live_ms, **more)
        self.walk = Walk(store, settings, live_ms)

    def pass_once(self) -> Outcome:
        """No lease is expired and nothing is past its time, or the pass ended at its bound. EnvironmentFailure when the
        store does not answer."""
        swept = self._in_batches(self.store.sweep)
        if swept:
            reached("task.swept")
            log.warning("task: %d expired leases went back to ready: their hosts stopped renewing", swept)
        expired = self._in_batches(self.store.expire)
        if expired:
            reached("task.expired")
        woken = self._in_batches(self.store.wake_jobs)
        self.counters.stale_requeued += swept
        self.counters.expired += expired
        repaired = self.walk.step()
        self.counters.repaired += repaired
        if repaired:
            log.warning("task: %d instances had triggers and were not ready: their wakes had been dropped", repaired)
        return Outcome(
            folded=swept + expired + repaired + woken,
            woken=swept + repaired,
            more=max(swept, expired, woken) >= BATCH * BATCHES,
        )

    def backlog(self) -> str:
        counts = self.store.population()
        return f"{counts.parked} messages parked, {counts.ended} ended instances kept"

    def _in_batches(self, work: Callable[[int], int]) -> int:
        total = 0
        for _ in range(BATCHES):
            done = work(BATCH)
            total += done
            if done < BATCH:
                break
        return total
