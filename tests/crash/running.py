"""Runs a case to its end, with a crash at the nth passing of a point or without, and says how everything ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import redis

from gobpm_ray.checkpoint import rows
from gobpm_ray.checkpoint.parts import decode
from gobpm_ray.core.faults import SEALED
from gobpm_ray.runtime import crashpoints
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import InstanceRecord
from gobpm_ray.runtime.programs import write_job_nodes
from gobpm_ray.settings import Settings
from gobpm_ray.store.redis_store import RedisStore
from tests.crash.cases import BEGIN, Case, deploy
from tests.crash.one_process import Crash, EngineProcess, World

MakeWorld = Callable[[Settings], World]

QUICK = Settings(engine_id="crash", linger_ms=0, dehydration_threshold_ms=0, wake_backoff_ms=100)
LIVE_BEGIN = 1_800_000_000_000


@dataclass(frozen=True)
class End:
    """How it all ended, in terms that a crash may not change."""

    instances: tuple[tuple[str, str, tuple[str, ...], str, tuple[tuple[str, str], ...]], ...]
    """(process, state, trace, variables, waits), sorted: ids of instances that a trigger started carry a number."""
    effects: frozenset[str]
    """Idempotency keys of the effects that happened at least once."""
    parked: int
    dead: int
    incidents: int
    facts: tuple[tuple[str, int], ...]
    data: tuple[tuple[str, bytes], ...] = ()
    """What the data stores hold."""


def memory_world(settings: Settings) -> World:
    live = [LIVE_BEGIN]

    def elapse(ms: int) -> None:
        live[0] += ms

    return World(MemoryStore(settings, lambda: live[0]), elapse, lambda: live[0], settings, points=True)


class RealWorlds:
    """Worlds on a real server, one after the other, each on an empty store whose liveness clock is the test's
    (`lua/prelude.lua`)."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._stores: dict[Settings, RedisStore] = {}

    def __call__(self, settings: Settings) -> World:
        store = self._stores.get(settings)
        if store is None:
            store = self._stores[settings] = RedisStore(self._client, settings)
        key = store.keys["liveness"]
        live = [LIVE_BEGIN]
        self._client.flushdb()
        self._client.set(key, live[0])

        def elapse(ms: int) -> None:
            live[0] += ms
            self._client.set(key, live[0])

        return World(store, elapse, lambda: live[0], settings, points=False)


class Recorder:
    """The hook of a run: counts passings, and raises at the one that is asked for."""

    def __init__(self, point: str = "", nth: int = 1) -> None:
        self.passed: Counter[str] = Counter()
        self._point = point
        self._nth = nth

    def __call__(self, point: str) -> None:
        assert point in crashpoints.POINTS, f"{point} is not in the table of crash points"
        self.passed[point] += 1
        if point == self._point and self.passed[point] == self._nth:
            raise Crash(point)


@contextmanager
def armed(hook: crashpoints.Hook) -> Iterator[None]:
    crashpoints.arm(hook)
    try:
        yield
    finally:
        crashpoints.arm(None)


def run(case: Case, make_world: MakeWorld, hook: Recorder) -> tuple[End, World]:
    """The case from beginning to end; after a crash its successor boots and the client repeats its call."""
    world = make_world(replace(QUICK, **case.settings))
    live(case, world, hook)
    return end_of(world), world


def live(case: Case, world: World, hook: crashpoints.Hook) -> None:
    """What is left to do of the case, by the world's memory."""
    world.failing.update(case.failing)
    world.unwell.update(case.unwell)
    with mock.patch("holders.message.BATCH", 1 if case.narrow else 200):
        lives = Lives(case, world)
        with armed(hook):
            lives.steps()
        lives.retry_sealed()
        lives.engine.die()


class Lives:
    """The os_processes of a run, one after the other, and the client that survives them all."""

    def __init__(self, case: Case, world: World) -> None:
        self.world = world
        self._case = case
        self._topics = {topic: world.work(topic) for topic in case.topics}
        self.engine = self._boot()

    def _boot(self) -> EngineProcess:
        return EngineProcess(self.world, self._topics)

    def steps(self) -> None:
        steps = [self._deploy, *self._case.steps]
        for index in range(self.world.memo.get("cursor", 0), len(steps)):
            self._step(steps[index], f"step-{index}")
            self.world.memo["cursor"] = index + 1

    def _deploy(self, engine: EngineProcess, name: str) -> None:
        engine.store.manual_clock(BEGIN)
        for process in self._case.processes:
            if self._case.jobs:
                write_job_nodes(engine.store, "p", self._case.jobs)
            deploy(engine.store, process)

    def _step(self, step: Callable[[EngineProcess, str], object], name: str) -> None:
        while True:
            try:
                step(self.engine, name)
                self.engine.settle()
                return
            except Crash:
                self.engine.die()
                self.world.elapse(self.world.settings.lease_ttl_ms + 1)
                self.engine = self._boot()

    def retry_sealed(self) -> None:
        """What an operator does about a non-idempotent attempt that a crash cut off: look, and let it go on."""
        store = self.world.store
        for _, instance_id in store.instances():
            record = store.instance(instance_id)
            assert record is not None
            for track in _state(record).tracks.values():
                if track.incident is not None and track.incident.code == SEALED:
                    wait = next(wait for wait, armed in track.waits.items() if armed.kind == "incident")
                    store.deliver(instance_id, "retry", wait, f"operator-{wait}", b"{}")
                    self.world.memo["sealed"] = self.world.memo.get("sealed", 0) + 1
                    self.engine.settle()


def end_of(world: World) -> End:
    store = world.store
    found = []
    for _, instance_id in store.instances():
        record = store.instance(instance_id)
        assert record is not None
        assert not record.resident, f"{instance_id} is leased although nothing moves"
        assert not record.inbox, f"{instance_id} has unread triggers although nothing moves"
        found.append(
            (
                record.process_id,
                record.status,
                trace(record),
                json.dumps(_state(record).scopes["0"].variables, sort_keys=True),
                tuple(sorted(row[:2] for row in record.waits.values())),
            )
        )
    population = store.population()
    counted = Counter(rows.read_fact(fact)["fact"] for _, fact in store.facts())
    return End(
        tuple(sorted(found)),  # type: ignore[arg-type]
        frozenset(world.effects),
        population.parked,
        population.dead,
        population.incidents,
        tuple((name, counted[name]) for name in ("Started", "Overtaken", "Completed", "Terminated", "Stored")),
        tuple((row.name, row.value) for row in store.all_data()),
    )


def trace(record: InstanceRecord) -> tuple[str, ...]:
    entries = map(rows.read_history_entry, record.history)
    return tuple(entry.node for entry in entries if entry.event == "node")


def _state(record: InstanceRecord) -> Any:
    return decode(
        record.instance_id, record.process_id, record.process_version, record.business_key, record.parts, True
    )
