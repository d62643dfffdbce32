"""TimerHolder: fires due deadlines, earliest first, in bounded batches (D9, N6).

Timers have no producer, so this poll is their only one. Whether a row is still due is decided by the store's script at
the act; here is only the order, and how the cycle of a process's start timer goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from gobpm_ray.checkpoint.rows import read_start_timer, start_timer_row
from gobpm_ray.core.starts import next_start_arm
from gobpm_ray.core.state import ArmedWait
from gobpm_ray.errors import EnvironmentFailure, GobpmError, StoreRefused
from gobpm_ray.runtime.crashpoints import reached
from gobpm_ray.runtime.folding import Outcome
from gobpm_ray.runtime.ports import DueRow
from holders.loop import LATE_MS, Holder, log

BATCH = 100
"""Deadlines that one script fires: it holds the store some 25 us for each, and no longer than 5 ms for all (T42)."""
BATCHES = 100
PROCESS = "@"
"""Begins the owner of a start timer: it belongs to a process, not to an instance."""


class TimerHolder(Holder):
    kind = "timer"
    bell = "timer"

    def pass_once(self) -> Outcome:
        """Everything that was due has fired. EnvironmentFailure when the store does not answer: what fired has fired,
        the rest is still due."""
        outcome = Outcome()
        stuck = moved = 0
        for _ in range(BATCHES):
            due = self.store.due(BATCH + stuck)
            outcome.now, outcome.next_deadline = due.now, due.next_deadline
            if not due.rows:
                return outcome
            reached("timer.listed")
            self._note_late(due.rows, due.now, outcome)
            moved = self._fire(due.rows, due.now, outcome)
            if not moved and len(due.rows) < BATCH + stuck:
                # Nothing moved: the same rows would come again. They are somebody else's, or the next pass's.
                return outcome
            # Those that stay due, whatever keeps them, must not hide the ones behind them.
            stuck = len(due.rows) - moved
        outcome.more = moved > 0
        return outcome

    def backlog(self) -> str:
        return f"{self.store.population().due} deadlines due"

    def _fire(self, rows: Sequence[DueRow], now: int, outcome: Outcome) -> int:
        moved = 0
        between: list[DueRow] = []
        # Earliest first, also between instances and start timers: what lies between two starts is one call.
        for row in rows:
            if not row.instance_id.startswith(PROCESS):
                between.append(row)
                continue
            moved += self._wake(between, outcome)
            between = []
            moved += self._start(row, now, outcome)
        return moved + self._wake(between, outcome)

    def _wake(self, rows: list[DueRow], outcome: Outcome) -> int:
        if not rows:
            return 0
        fired = self.store.fire(rows)
        reached("timer.fired")
        self.counters.timers_fired += fired
        outcome.folded += fired
        outcome.woken += fired
        return fired

    def _start(self, row: DueRow, now: int, outcome: Outcome) -> bool:
        """An instance is started for the deadline, and the next occurrence of its cycle is armed by the same script."""
        wait, deadline, data = self._following(row, now, outcome)
        reached("timer.following")
        try:
            started = self.store.fire_start(row, wait, deadline, data)
        except StoreRefused as failure:
            # A full store takes no new instance; the deadlines behind this one belong to those that must finish.
            log.warning("timer: start timer %s of %s waits: %s", row.wait, row.instance_id[1:], failure)
            outcome.kept += 1
            return False
        reached("timer.started")
        self.counters.timers_fired += started
        outcome.folded += started
        outcome.started += started
        return started

    def _following(self, row: DueRow, now: int, outcome: Outcome) -> tuple[str, int, bytes]:
        """(wait id, deadline, row) of the next occurrence; ('', 0, b'') when there is none."""
        try:
            data = self.store.start_timer_row(row.instance_id, row.wait)
            cycle, anchor, index = read_start_timer(data or b"", f"start timer {row.wait} of {row.instance_id[1:]}")
            following = next_start_arm(row.wait, ArmedWait("timer", row.deadline, cycle, anchor, index), now)
        except EnvironmentFailure:
            raise
        except GobpmError as failure:
            # The deadline that is due is sound; what follows it is lost, and must not block the deadlines behind it.
            log.error("timer: start timer %s of %s goes no further: %s", row.wait, row.instance_id[1:], failure)
            outcome.refused += 1
            following = None
        if following is None:
            return "", 0, b""
        arm, armed = following
        return arm.wait, arm.deadline or 0, start_timer_row(armed.cycle, armed.anchor, armed.index)

    def _note_late(self, rows: Sequence[DueRow], now: int, outcome: Outcome) -> None:
        if self.first_pass:
            return
        late = [row for row in rows if now - row.deadline > LATE_MS]
        # A manual clock that jumps makes everything late; only one that runs says that this holder is slow.
        if late and not outcome.behind and self._clock_runs(now):
            log.warning(
                "timer: %d deadlines were due for more than %d s, first %s of %s",
                len(late),
                LATE_MS // 1_000,
                late[0].wait,
                late[0].instance_id,
            )
        outcome.behind += len(late)

    def _clock_runs(self, now: int) -> bool:
        """The business clock is the machine's and not a manual one."""
        return abs(self.live_ms() - now) < LATE_MS
