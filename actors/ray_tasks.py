"""Work that runs as a Ray task of its own: where an instance's actor sends what has options of one.

It knows how options become Ray's, and which of Ray's failures mean that the work may have been done. It refuses to know
what is done. The task needs this project on its node and nothing of the engine: no store, no actor.

Ray itself never repeats such a task: how often it is tried is the process's business. A task whose host ends goes with
it, as Ray ends what a dead owner asked for; the next host finds the open intent and decides.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from actors.handles import RayTask, lost_on_the_way, node_resources, strategy_of
from gobpm_ray.errors import RayUnavailable
from gobpm_ray.runtime.elsewhere import Cancel, Ended, Errand, Told, perform
from gobpm_ray.runtime.scarce import Scarcity, wanted

log = logging.getLogger(__name__)

FORCED_AFTER_S = 5.0
"""A function that does not heed its interruption for so long loses its process."""


class RayTasks:
    """The port `gobpm_ray.runtime.elsewhere.Elsewhere` on Ray. `key` checks code that was stored by value."""

    def __init__(self, key: bytes | None, patience_s: float = 300.0) -> None:
        self._key = key
        self._patience_s = patience_s
        self._scarcity = Scarcity(node_resources, patience_s)

    def send(
        self, errand: Errand, options: Mapping[str, Any], name: str, ended: Ended, lacking: Callable[[str], None]
    ) -> Cancel:
        chosen = {option: value for option, value in options.items() if option != "scheduling"}
        if "scheduling" in options:
            chosen["scheduling_strategy"] = strategy_of(options["scheduling"])
        try:
            # Large inputs go by Ray's object store: it copies them there when they are arguments.
            ray_task = RayTask(perform, (errand, self._key), {**chosen, "max_retries": 0, "name": name})
        except Exception as failure:
            raise RayUnavailable(f"Ray task '{name}' cannot be sent: {' '.join(str(failure).split())[:300]}") from None

        untold = threading.Lock()

        def tell(told: Told) -> None:
            if untold.acquire(blocking=False):  # and never released: the first outcome is the only one
                ended(told)

        def given_up(what: str) -> None:
            cause = (
                f"no node of the cluster has what the task asks for: {what}; waited {self._patience_s:g} s "
                "(resource_patience_ms). Add such a node or ask for less, then retry"
            )
            # First: what is cancelled tells so as well, from Ray's thread, and that reads like work that was lost.
            tell(Told("unavailable", {}, cause=cause))
            ray_task.cancel(force=False)  # waiting, it never begins

        forget = self._scarcity.watch(wanted(options), lacking, given_up)

        def over(told: Told | None, failure: BaseException | None) -> None:
            forget()
            tell(_told(told, failure))

        ray_task.when_ended(over)

        def cancel() -> None:
            forget()
            ray_task.cancel(force=False)
            timer = threading.Timer(FORCED_AFTER_S, ray_task.cancel, kwargs={"force": True})
            timer.daemon = True
            timer.start()

        return cancel


def _told(told: Told | None, failure: BaseException | None) -> Told:
    if told is not None:
        return told
    cause = " ".join(f"{type(failure).__name__}: {failure}".split())[:500]
    lost = failure is not None and lost_on_the_way(failure)
    return Told("lost" if lost else "failed", {}, cause=cause)
