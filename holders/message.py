"""MessageHolder: correlates messages and broadcasts signals (design section 4).

A pass walks the pending rows by `seq` with a rising cursor. What becomes of a row is decided by the store's one script;
here is only the order: a row that could not be folded for want of the store blocks later rows of its key in this pass,
so order per key holds. A row whose content no script can fold is said loudly and blocks nobody.
"""

from __future__ import annotations

from gobpm_ray.core.keys import routes
from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.runtime.correlating import key_with_payload
from gobpm_ray.runtime.crashpoints import reached
from gobpm_ray.runtime.folding import Outcome
from gobpm_ray.runtime.ports import PendingRow
from holders.loop import LATE_MS, Holder, log
from holders.poison import CAREFUL_ROWS, MOST_DEATHS, Marks

BATCH = 200
BATCHES = 25
"""A pass is bounded, so that the order lease is renewed and a stop is heard while a flood comes in."""
MOST_FAILURES = 3
"""So many rows in a row without an answer: the store is away, and the pass is over."""
NAMED = 5
"""Late rows named one by one in a pass; the rest is counted."""


class MessageHolder(Holder):
    kind = "message"
    bell = "message"
    careful = 0
    """Rows still to be taken one by one, because a folder died with one of them in hand."""

    def begin(self) -> None:
        self.marks = Marks(self.store, self.kind)
        if self.marks.begin():
            log.warning("message: the last folder died: the next %d rows are folded one by one", CAREFUL_ROWS)
            self.careful = CAREFUL_ROWS

    def end(self) -> None:
        self.marks.end()

    def pass_once(self) -> Outcome:
        """Every row that was pending has been folded once, or stays pending. EnvironmentFailure when not even the list
        of rows can be read."""
        outcome = Outcome()
        blocked: set[str] = set()
        cursor, failures = 0, 0
        for _ in range(BATCHES):
            size = 1 if self.careful else BATCH
            rows = self.store.pending(cursor, size)
            if rows:
                reached("message.listed")
            for row in rows:
                cursor = row.seq
                keys = routes(row.key)
                if not blocked.isdisjoint(keys):
                    outcome.kept += 1
                    continue
                self._note_late(row, outcome)
                try:
                    if not self._fold(row, outcome):
                        blocked.update(keys)
                    failures = 0
                except EnvironmentFailure as failure:
                    log.warning("message: %s %s of '%s' stays pending: %s", row.kind, row.id, row.name, failure)
                    outcome.kept += 1
                    blocked.update(keys)
                    failures += 1
                    if failures == MOST_FAILURES:
                        return outcome
                except Exception as failure:
                    self._set_aside(row, str(failure) or type(failure).__name__, outcome)
            if len(rows) < size:
                self.careful = 0
                return outcome
        outcome.more = True
        return outcome

    def backlog(self) -> str:
        pending = self.store.population().pending
        return ", ".join(f"{count} {kind}s pending" for kind, count in sorted(pending.items()))

    def _fold(self, row: PendingRow, outcome: Outcome) -> bool:
        """True: the row is folded, or was before. False: it stays, and those of its key behind it."""
        if not self.careful:
            return self._route(row, outcome)
        self.careful -= 1
        deaths = self.marks.take(row.seq)
        if deaths >= MOST_DEATHS:
            self._set_aside(row, f"poison: {deaths} folders died with it in hand", outcome)
            folded = True
        else:
            folded = self._route(row, outcome)
        self.marks.put_down(row.seq)
        return folded

    def _set_aside(self, row: PendingRow, why: str, outcome: Outcome) -> None:
        """Its content is wrong, and would be the next time: it is a dead letter, which an operator reads (H6)."""
        log.error("message: %s %s of '%s' cannot be folded: %s", row.kind, row.id, row.name, why)
        try:
            self.store.fail(row.seq, why)
        except EnvironmentFailure:
            outcome.kept += 1
            return
        outcome.refused += 1
        self.counters.refused += 1

    def _route(self, row: PendingRow, outcome: Outcome) -> bool:
        """A broadcast takes as many calls as it has listeners, in batches; where it stands is kept in the store."""
        while True:
            routed = self.store.route(row.seq, BATCH)
            if routed.result == "unread":
                key = key_with_payload(self.store, row, self.store.now())
                routed = self.store.route(row.seq, BATCH, key)
            outcome.woken += routed.woken
            outcome.started += routed.started
            if routed.result != "partial":
                break
            reached("message.partly_folded")
        reached("message.folded")
        if routed.result == "full":
            log.warning("message: %s '%s' stays pending: its taker holds all it may", row.id, row.name)
            outcome.kept += 1
            return False
        if routed.result != "gone":
            outcome.folded += 1
            self.counters.folded += 1
            self.counters.parked += routed.result == "parked"
            self.counters.expired += routed.result == "expired"
        return True

    def _note_late(self, row: PendingRow, outcome: Outcome) -> None:
        late = self.live_ms() - row.accepted_live
        if self.first_pass or late <= LATE_MS:
            return
        outcome.behind += 1
        if outcome.behind <= NAMED:
            log.warning("message: %s %s of '%s' waited %d s to be folded", row.kind, row.id, row.name, late // 1_000)
