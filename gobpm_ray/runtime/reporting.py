"""What one process has counted, added to the engine's totals now and then (N12).

It knows when to tell and what has been told already; it refuses to know what a signal means. A crash loses the counts
of the last seconds, and nothing but counts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.runtime.counters import Counters
from gobpm_ray.runtime.ports import Store

log = logging.getLogger("gobpm_ray.runtime")

EVERY_S = 5.0

Told = Callable[[Mapping[str, int]], None]


class Reporting:
    """`report` may be called at any time from any thread: it costs nothing while nothing was counted."""

    def __init__(
        self,
        store: Store,
        counters: Counters,
        also: Told | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._counters = counters
        self.also = also
        """Is told the same: the metrics of the process."""
        self._monotonic = monotonic
        self._told: dict[str, int] = {}
        self._told_at = monotonic()
        self._lock = threading.Lock()

    def report(self, *, at_once: bool = False) -> None:
        """What has been counted since the last time is in the totals, if that was long enough ago."""
        if not at_once and self._monotonic() - self._told_at < EVERY_S:
            return
        with self._lock:
            self._told_at = self._monotonic()
            counted = self._counters.as_dict()
            more = {name: count - self._told.get(name, 0) for name, count in counted.items()}
            more = {name: count for name, count in more.items() if count}
            if not more:
                return
            try:
                self._store.count(more)
            except EnvironmentFailure as failure:
                log.debug("signals are told later: %s", failure)
                return
            self._told = counted
        if self.also is not None:
            self.also(more)
