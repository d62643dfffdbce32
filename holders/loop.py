"""The thin loop around a holder's pass: when to begin the next one, and what is said about it.

It knows the order lease, the bell, the tick and the log lines that every holder owes (H7). It refuses to know what a
pass folds. A failing pass ends the pass, never the loop.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable

from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.runtime.counters import Counters
from gobpm_ray.runtime.crashpoints import reached
from gobpm_ray.runtime.folding import Outcome
from gobpm_ray.runtime.ports import BellName, Store
from gobpm_ray.runtime.reporting import Reporting
from gobpm_ray.settings import SECOND, Settings

log = logging.getLogger("gobpm_ray.holders")

ORDER_LEASE_MS = 5 * SECOND
LATE_MS = 300 * SECOND
"""A row that waited this long before its fold began is worth a warning."""


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Holder:
    """`bell` wakes the loop; `kind` names the order lease. Stateless but for what the log must not repeat."""

    kind: str
    bell: BellName
    patience = 1
    """Ticks that it may sleep when nobody rings."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        live_ms: Callable[[], int] = wall_ms,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.settings = settings
        self.live_ms = live_ms
        """The store's liveness clock as this node sees it: only warnings depend on it."""
        self.counters = Counters()
        self.token = f"{self.kind}:{secrets.token_hex(6)}"
        self.reporting = Reporting(store, self.counters, monotonic=monotonic)
        self._monotonic = monotonic
        self._ordered_at = float("-inf")
        self._passes = 0
        self._last_now = 0

    def pass_once(self) -> Outcome:
        raise NotImplementedError

    def backlog(self) -> str:
        """What waits at the start, in a few words."""
        raise NotImplementedError

    def begin(self) -> None:
        """The loop begins, and this holder has the order lease."""

    def end(self) -> None:
        """The loop that had begun ends as it should."""

    @property
    def first_pass(self) -> bool:
        """Whatever is late now was late before anybody here could help it."""
        return self._passes == 0

    def run(self, stop: threading.Event) -> None:
        """Pass after pass, until `stop`; a second holder of the kind idles while the first one lives."""
        begun = failing = False
        while not stop.is_set():
            try:
                if not self._ordered():
                    stop.wait(self.settings.holder_tick_ms / SECOND)
                    continue
                reached("holder.ordered")
                if not begun:
                    log.info("%s: begins, %s", self.kind, self.backlog())
                    self.begin()
                    begun = True
                outcome = self.pass_once()
                self._passes += 1
                failing = False
                self.reporting.report()
                if not outcome.more and not stop.is_set():
                    self.store.wait_bell(self.bell, self._pause_s(outcome))
            except EnvironmentFailure as failure:
                # Said once per outage: the store's own log has the rest.
                log.log(logging.DEBUG if failing else logging.WARNING, "%s: pass ended: %s", self.kind, failure)
                failing = True
                stop.wait(self.settings.holder_tick_ms / SECOND)
            except Exception:
                log.exception("%s: pass failed, the next one begins after the tick", self.kind)
                stop.wait(self.settings.holder_tick_ms / SECOND)
        if begun:
            with contextlib.suppress(EnvironmentFailure):
                self.end()
                self.reporting.report(at_once=True)

    def _ordered(self) -> bool:
        """The order lease is ours, and has not been asked for longer than a third of its life."""
        now = self._monotonic()
        if now - self._ordered_at < ORDER_LEASE_MS / SECOND / 3:
            return True
        ours = self.store.order_lease(self.kind, self.token, ORDER_LEASE_MS)
        self._ordered_at = now if ours else float("-inf")
        return ours

    def _pause_s(self, outcome: Outcome) -> float:
        """Up to the tick; less when a deadline comes first, unless the clock stands still, as a manual one does."""
        pause = self.settings.holder_tick_ms * self.patience
        if outcome.next_deadline is not None and outcome.now != self._last_now:
            pause = min(pause, max(1, outcome.next_deadline - outcome.now))
        self._last_now = outcome.now
        return pause / SECOND
