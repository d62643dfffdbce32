"""Reliability signals (N12) and the population as Ray metrics; Ray exports them for Prometheus on every node.

Counters, each `ray_gobpm_<name>_total` in Prometheus, with the tags `engine` and `role`; the names are those of
`gobpm_ray.runtime.counters.Counters`:

    claims commits retried hydrated dehydrated handed_over suspended_without_wake fenced abandoned held sealed reloaded
    effects discarded lacking stale_requeued timers_fired folded parked refused expired repaired

Gauges, each `ray_gobpm_<name>`, with the tag `engine`, told by the supervisor:

    actors free_actors ready_instances oldest_ready_ms

Only actors import this module: without Ray there is nobody to tell.
"""

from __future__ import annotations

from collections.abc import Mapping

from ray.util.metrics import Counter, Gauge

PREFIX = "gobpm_"
COUNTER_TAGS = ("engine", "role")
GAUGES = {
    "actors": "Living InstanceActors",
    "free_actors": "InstanceActors that host nobody",
    "ready_instances": "Instances that wait for an actor",
    "oldest_ready_ms": "How long the oldest of them has waited",
}


class SignalMetrics:
    """The counters of one process; made when something is counted, so that a process exports what it does."""

    def __init__(self, engine_id: str, role: str) -> None:
        self._tags = {"engine": engine_id, "role": role}
        self._counters: dict[str, Counter] = {}

    def add(self, more: Mapping[str, int]) -> None:
        for name, count in more.items():
            counter = self._counters.get(name)
            if counter is None:
                what = f"gobpm_ray: {name.replace('_', ' ')}"
                counter = self._counters[name] = Counter(PREFIX + name, what, COUNTER_TAGS)
                counter.set_default_tags(self._tags)
            counter.inc(count)


class PopulationMetrics:
    """What the supervisor sees."""

    def __init__(self, engine_id: str) -> None:
        self._gauges = {name: Gauge(PREFIX + name, what, ("engine",)) for name, what in GAUGES.items()}
        for gauge in self._gauges.values():
            gauge.set_default_tags({"engine": engine_id})

    def tell(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._gauges[name].set(value)
