"""The Ray shells of the three holders: long-lived named actors around the plain classes that tests drive without Ray.

Each has its plain class's name, for that is what people look for in Ray's dashboard. Nothing else is known here.
"""

from __future__ import annotations

import contextlib
import threading

from actors.handles import this_actor
from actors.loop import LoopActor
from actors.metrics import SignalMetrics
from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.runtime.ports import BellName, Store
from holders.loop import Holder


class Ordered:
    """A holder whose order lease passes on without a wait: to its successor after a kill, to anybody after a stop."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        metrics = SignalMetrics(holder.settings.engine_id, f"{holder.kind.capitalize()}Holder")
        holder.reporting.also = metrics.add
        self.bell: BellName = holder.bell
        # Ray restarts an actor under the id it had, so that a token of that name is the successor's as well.
        holder.token = f"{holder.kind}:{this_actor()}"

    def run(self, stop: threading.Event) -> None:
        self._holder.run(stop)
        with contextlib.suppress(EnvironmentFailure):
            # A millisecond from now nobody holds it.
            self._holder.store.order_lease(self._holder.kind, self._holder.token, 1)


class TimerHolder(LoopActor):
    def build(self, store: Store) -> Ordered:
        from holders.timer import TimerHolder as Plain

        return Ordered(Plain(store, self._spec.settings))


class MessageHolder(LoopActor):
    def build(self, store: Store) -> Ordered:
        from holders.message import MessageHolder as Plain

        return Ordered(Plain(store, self._spec.settings))


class TaskHolder(LoopActor):
    def build(self, store: Store) -> Ordered:
        from holders.task import TaskHolder as Plain

        return Ordered(Plain(store, self._spec.settings))


SHELLS: dict[str, type[LoopActor]] = {
    "TimerHolder": TimerHolder,
    "MessageHolder": MessageHolder,
    "TaskHolder": TaskHolder,
}
