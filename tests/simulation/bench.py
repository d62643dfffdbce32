"""Plays histories on one server: the definitions are compiled once, and every history begins on an empty store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gobpm_ray.runtime.ports import Store
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from tests.crash.cases import deployment
from tests.crash.workload import processes
from tests.simulation.world import BEGIN, SETTINGS, Happening, Verdict, history, play, shrunk

VERIFIED = 4
"""Every so many seeds end with the engine's `verify`, which adds a third to what one costs; a failing one always."""


class Bench:
    def __init__(self, client: Any) -> None:
        self.client = client
        self.store = RedisStore(client, SETTINGS)
        client.flushdb()
        self.store.manual_clock(BEGIN)
        self._deployments = [deployment(builder, BEGIN) for builder in processes()]
        self._starting(self.store)
        self._programs = Programs(self.store)
        for process_id, _, _ in self._deployments:
            self._programs.get(process_id, 1)

    def _starting(self, store: Store) -> None:
        for deployed in self._deployments:
            store.deploy(*deployed)

    def play(self, events: Sequence[Happening], notes: list[str] | None = None, *, verifies: bool = True) -> Verdict:
        return play(self.store, self.client, events, self._starting, self._programs, notes, verifies=verifies)

    def seed(self, seed: int) -> Verdict:
        return self.play(history(seed), verifies=seed % VERIFIED == 0)

    def shortest(self, seed: int) -> tuple[list[Happening], list[str]]:
        """The shortest history that still fails, and what is wrong at its end."""
        events = shrunk(history(seed), lambda candidate: bool(self.play(candidate).faults))
        return events, self.play(events).faults

    def explain(self, seed: int) -> str:
        events, faults = self.shortest(seed)
        notes: list[str] = []
        self.play(events, notes)
        lines = [
            f"seed {seed} fails with {len(events)} events:",
            *map(str, events),
            "calls:",
            *notes,
            "faults:",
            *faults,
        ]
        return "\n".join(lines)


@contextmanager
def bench(url: str) -> Iterator[Bench]:
    with open_client(url) as client:
        yield Bench(client)
