"""The front door's bulk on a real store: born parked, woken like all others, and plainly where that is not worth it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gobpm_ray.engine.operations import PARKED_FROM, Operations
from gobpm_ray.errors import LimitReached
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.secret import Secret
from gobpm_ray.settings import Settings
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import verify
from tests.support.plain_engine import PlainEngine, models
from tests.support.stores import SERVERS, StoreBed

DAY = 86_400_000
T0 = 1_767_225_600_000

pytestmark = pytest.mark.parametrize("bed", SERVERS, indirect=True)
"""An engine without a store of its own has no instance that nobody hosts (D17)."""


@pytest.fixture
def engine(bed: StoreBed) -> Iterator[PlainEngine]:
    engine = _engine(bed)
    yield engine
    engine.close()


def _engine(bed: StoreBed, **changes: object) -> PlainEngine:
    store = bed.store(**changes)
    assert isinstance(store, RedisStore)
    store.manual_clock(T0)
    engine = PlainEngine(store)
    engine.operations.deploy(*models())
    return engine


def test_a_bulk_of_every_kind_of_wait_is_parked_and_ends(engine: PlainEngine) -> None:
    """Issue 7: nothing is ready after it; verify agrees; and what they wait for finds each."""
    operations, store = engine.operations, engine.store
    each = {
        name: [{"k": n, "who": "ann"} for n in range(PARKED_FROM)] for name in ("approval", "alarm", "wait", "race")
    }
    ids = [one.instance_id for name, values in each.items() for one in operations.start_many(name, values)]
    assert (store.readiness()[0], store.population().waiting) == (0, len(ids))
    assert {view.owner for view in operations.tasks()} == {"ann"}
    assert verify(store).differences == []
    facts = [fact.fact for fact in operations.facts()]
    assert (facts.count("Started"), facts.count("Dehydrated")) == (len(ids), len(ids))

    for task in operations.tasks():
        operations.complete(task.id, user="ann")
    operations.signal("Alarm")
    operations.publish("Answer", 3)
    engine.turn()
    store.set_clock(T0 + DAY)
    engine.turn()
    assert {operations.status(instance) for instance in ids} == {"completed"}
    assert all(operations.inspect(instance).trace for instance in ids)


def test_a_small_bulk_and_a_switched_off_one_are_started_plainly(bed: StoreBed, engine: PlainEngine) -> None:
    assert Settings().park_at_start
    engine.operations.start_many("wait", [None] * (PARKED_FROM - 1))
    assert engine.store.readiness()[0] == PARKED_FROM - 1
    off = _engine(bed, park_at_start=False)
    off.operations.start_many("wait", [None] * PARKED_FROM)
    assert (off.store.readiness()[0], off.store.population().waiting) == (PARKED_FROM, 0)
    off.close()


def test_a_process_that_begins_with_an_incident_is_told_by_its_host(engine: PlainEngine) -> None:
    engine.operations.start_many("failing", [None] * PARKED_FROM)
    assert engine.store.readiness()[0] == PARKED_FROM
    engine.turn()
    assert len(engine.operations.incidents()) == PARKED_FROM


def test_the_secrets_of_a_bulk_are_nowhere_told(engine: PlainEngine) -> None:
    """The veil of a first leg is the same, whoever computes it."""
    engine.operations.start_many("approval", [{"who": "ann", "pin": Secret("hush-4711")}] * PARKED_FROM)
    assert engine.store.readiness()[0] == 0
    shown = [engine.operations.inspect(name).variables["pin"] for _, name in engine.store.instances()]
    assert "hush-4711" not in repr(shown)
    assert "hush-4711" not in repr(engine.operations.facts())


def test_a_refusal_in_a_bulk_says_how_many_are_stored(bed: StoreBed) -> None:
    """E90: also those that were born before it."""
    engine = _engine(bed, max_pending=3)
    both = ProcessBuilder("both")
    both.start().exclusive("which")
    both.at("which").when("busy").service_task("do", topic="do").end()
    both.at("which").otherwise().catch("nap", timer="PT1H").end()
    engine.operations.deploy(both)
    values = [{"busy": number >= 20} for number in range(40)]
    with pytest.raises(LimitReached, match=r"23 of these 40 starts are stored"):
        engine.operations.start_many("both", values)
    assert (engine.store.readiness()[0], engine.store.population().waiting) == (3, 20)
    engine.close()


def test_after_a_new_deployment_the_bulk_is_of_the_newest_version(engine: PlainEngine) -> None:
    """Also for a client that did not deploy it."""
    other = Operations(engine.store, replace(engine.store.settings, park_at_start=True))
    other.start_many("wait", [None] * PARKED_FROM)
    newer = ProcessBuilder("wait")
    newer.start().catch("nap", timer="PT2H").end()
    engine.operations.deploy(newer)
    for _ in range(2):
        other.start_many("wait", [None] * PARKED_FROM)
    records = [engine.store.instance(name) for _, name in engine.store.instances()]
    versions = [record.process_version for record in records if record is not None]
    assert versions == [1] * PARKED_FROM + [2] * PARKED_FROM * 2
