"""One example: a process, a script and trouble, played straight and released, and what is wrong with the outcome.

`Stage` holds what costs time to make: the real server's store. Every example begins on an empty one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Store
from gobpm_ray.settings import Settings
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import Verifier
from tests.machine.deploying import LIVE, SETTINGS, Model
from tests.machine.picture import Picture, differences, picture, remains
from tests.machine.released import Bed, Released, Trouble
from tests.machine.script import SCRIPTS, Action, Client, Moment
from tests.machine.straight import Straight
from tests.support.blocks import Plan, plans
from tests.support.stores import memory_traces, redis_traces

TROUBLE = st.lists(
    st.builds(Trouble, st.integers(1, 60), st.sampled_from(("die", "die", "expire", "lose"))), max_size=6
).map(tuple)
BEGUN: Moment = (Action("start"),)


@dataclass(frozen=True)
class Ways:
    """How the engine is set up, which nobody may notice."""

    hand_over: bool = False
    whole_parts: int = 64
    claim_ahead: int = 8

    @property
    def settings(self) -> Settings:
        return replace(SETTINGS, **asdict(self))


WAYS = st.builds(Ways, st.booleans(), st.sampled_from((0, 64)), st.sampled_from((1, 8)))


@dataclass(frozen=True, repr=False)
class Example:
    plan: Plan
    script: tuple[Moment, ...]
    trouble: tuple[tuple[Trouble, ...], tuple[Trouble, ...]]
    """In memory, and on the real scripts."""
    ways: Ways = Ways()

    def __repr__(self) -> str:
        moments = "\n    ".join(" & ".join(map(repr, moment)) for moment in self.script)
        memory, real = self.trouble
        trouble = f"trouble {memory} in memory, {real} on the server"
        return f"\n  {self.plan!r}\n  script\n    {moments}\n  {trouble}\n  {self.ways}\n"


EXAMPLES = st.builds(
    Example,
    st.one_of(*[plans(most=10)] * 5, plans(most=10, alone=True)),
    SCRIPTS.map(lambda script: (BEGUN, *script)),
    st.tuples(TROUBLE, TROUBLE),
    WAYS,
)


@dataclass
class Verdict:
    faults: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """What the example had in it: so that nobody takes examples without trouble for a proof."""
    log: list[str] = field(default_factory=list)


class Stage:
    """`client` reaches the real server, which is this stage's alone."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._stores: dict[Settings, RedisStore] = {}

    def play(self, example: Example) -> Verdict:
        verdict = Verdict()
        model = Model(example.plan)
        straight = Straight(model)
        client = Client(straight.store, straight.settle)
        for moment in example.script:
            client.play(moment)
        wanted = {sealed: picture(straight.store, straight.effects.calls, sealed=sealed) for sealed in (False, True)}
        verdict.log += client.log
        verdict.counts["actions"] += len(client.log)
        client.cancel_all()
        ended = {sealed: picture(straight.store, straight.effects.calls, sealed=sealed) for sealed in (False, True)}
        straight.close()
        verdict.faults += [f"straight: a wake failed: {failure}" for failure in straight.failures]
        _count(verdict.counts, wanted[False])
        for name, bed, trouble in (
            ("memory", self._memory_bed(example.ways.settings), example.trouble[0]),
            ("server", self._real_bed(example.ways.settings), example.trouble[1]),
        ):
            found = self._released(model, bed, example, trouble, wanted, ended, verdict)
            verdict.faults += [f"{name}: {fault}" for fault in found]
        return verdict

    def _released(
        self,
        model: Model,
        bed: Bed,
        example: Example,
        trouble: Sequence[Trouble],
        wanted: dict[bool, Picture],
        ended: dict[bool, Picture],
        verdict: Verdict,
    ) -> Iterator[str]:
        world = Released(model, bed, trouble, example.ways.settings)
        client = Client(world.wire, world.settle)
        with world.armed(), world.acting():
            for moment in example.script:
                client.play(moment)
            have = picture(world.store, world.effects.calls, sealed=world.sealed > 0)
            found = [*differences(wanted[world.sealed > 0], have), *_indexes(world)]
            client.cancel_all()
        verdict.counts.update(what.partition(" at ")[0] for what in world.told)
        verdict.counts["sealed"] += world.sealed
        if not found:
            last = picture(world.store, world.effects.calls, sealed=world.sealed > 0)
            found = [*differences(ended[world.sealed > 0], last), *self._leftovers(world.store)]
        if client.log[: len(verdict.log)] != verdict.log:
            other = next(pair for pair in zip(verdict.log, client.log, strict=False) if pair[0] != pair[1])
            found.insert(0, f"the script meant something else: straight {other[0]}, it is {other[1]}")
        found += [f"a wake failed: {failure}" for failure in world.failures]
        if found:
            found.append(f"trouble: {'; '.join(world.told) or 'none'}")
        yield from found

    def _leftovers(self, store: Store) -> Iterator[str]:
        """Of a store on which everything has ended: an instance is its last parts and its history."""
        ended = [instance_id for _, instance_id in store.instances()]
        for instance_id in ended:
            record = store.instance(instance_id)
            assert record is not None
            yield from remains(record)
        if isinstance(store, MemoryStore):
            for instance_id in ended:
                yield from (f"{instance_id}, ended, is in {trace}" for trace in memory_traces(store, instance_id))
        else:
            for trace in redis_traces(self._client, SETTINGS.engine_id, *ended) if ended else ():
                if not trace.startswith("in: "):  # a message that it sent and that nobody has taken names its sender
                    yield f"ended, and left {trace}"

    def _memory_bed(self, settings: Settings) -> Bed:
        live = [LIVE]

        def elapse(ms: int) -> None:
            live[0] += ms

        store = MemoryStore(settings, lambda: live[0])
        return Bed(store, elapse, lambda: [name for at, name in store._ready if at <= live[0]], points=True)

    def _real_bed(self, settings: Settings) -> Bed:
        client = self._client
        store = self._stores.get(settings)
        if store is None:
            store = self._stores[settings] = RedisStore(client, settings)
        client.flushdb()
        live = [LIVE]
        client.set(store.keys["liveness"], LIVE)

        def elapse(ms: int) -> None:
            live[0] += ms
            client.set(store.keys["liveness"], live[0])

        def ready() -> list[str]:
            return [name.decode() for name in client.zrangebyscore(store.keys["ready"], "-inf", live[0])]

        return Bed(store, elapse, ready, points=False)


def _indexes(world: Released) -> Iterator[str]:
    """Every index of a store at rest is what the records say."""
    if isinstance(world.store, RedisStore):
        verifier = Verifier(world.store)
        verifier._programs = world.programs
        yield from (f"verify: {difference}" for difference in verifier.verify().differences)


def _count(counts: Counter[str], seen: Picture) -> None:
    for instance in seen.instances.values():
        counts[instance["status"]] += 1
        counts["waits"] += len(instance["waits"])
        counts.update(event for _, event, _, _ in instance["history"])
