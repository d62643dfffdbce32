"""Races with real threads on a real store: holders and hosts as they work, against each other and against operators.

The plain classes without Ray; each round is small, so that the interleavings differ. What must hold in the end is said
by the instances' histories, and by `verify`.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from gobpm_ray.checkpoint.rows import read_history_entry
from gobpm_ray.errors import InputError, LeaseLost
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.ports import InstanceRecord
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import Verifier
from tests.support.plain_engine import PlainEngine, until
from tests.support.stores import SERVERS, commit_of, payload

T0 = 1_767_225_600_000
HOUR = 3_600_000


@pytest.fixture(params=SERVERS)
def opened(request: pytest.FixtureRequest, server_url: Callable[[str], str]) -> Iterator[Callable[..., PlainEngine]]:
    """Engines on one real store, each under an id of its own, on a clock that stands at `T0`."""
    engines: list[PlainEngine] = []
    client = open_client(server_url(request.param))

    def open_engine(**settings: object) -> PlainEngine:
        chosen = Settings(**({"engine_id": f"r{uuid.uuid4().hex[:10]}"} | settings))  # type: ignore[arg-type]
        store = RedisStore(client, chosen)
        store.manual_clock(T0)
        engines.append(PlainEngine(store))
        return engines[-1]

    yield open_engine
    for engine in engines:
        engine.close()
        engine.store.close()
    client.close()


@pytest.fixture
def engine(opened: Callable[..., PlainEngine]) -> PlainEngine:
    return opened()


def together(*work: Callable[[], Any]) -> list[Any]:
    """All at once, each in a thread of its own; their answers, or what they raised."""
    barrier = threading.Barrier(len(work))

    def one(call: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(one, work))


def record_of(engine: PlainEngine, instance: str) -> InstanceRecord:
    record = engine.store.instance(instance)
    assert record is not None
    return record


def nodes(engine: PlainEngine, instance: str) -> Counter[str]:
    entries = map(read_history_entry, record_of(engine, instance).history)
    return Counter(entry.node for entry in entries if entry.event == "node")


def in_order(engine: PlainEngine) -> None:
    assert Verifier(engine.store).verify().differences == []


def race() -> ProcessBuilder:
    """A gateway of a message and a timer; which way it went is a variable."""
    process = ProcessBuilder("race")
    process.start().event_gateway("either").catch("answer", message="Answer", key="=k").end("answered")
    process.at("either").catch("timeout", timer="PT1H").end("timed_out")
    return process


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_of_two_gateway_arms_fired_together_one_wins_500_times(engine: PlainEngine) -> None:
    """R29, R22: nothing is left armed, and the losing message is not silently handled: it is parked."""
    operations, store = engine.operations, engine.store
    operations.deploy(race())
    rounds = 500
    operations.start_many("race", [{"k": f"K{n}"} for n in range(rounds)])
    engine.turn()
    for number in range(rounds):
        operations.publish("Answer", f"K{number}")
    store.set_clock(T0 + HOUR)

    def route() -> int:
        return sum(store.route(row.seq, 100).result == "delivered" for row in store.pending(0, rounds))

    def fire() -> int:
        return sum(store.fire([row]) for row in store.due(rounds).rows)

    routed, fired = together(route, fire)
    assert routed + fired == rounds, "one winner in each"
    assert store.population().parked == fired
    engine.turn()
    ways: Counter[str] = Counter()
    for _, instance in store.instances():
        record = record_of(engine, instance)
        assert (record.status, record.waits, record.inbox) == ("completed", {}, ())
        ways += nodes(engine, instance)
    assert (ways["answered"], ways["timed_out"]) == (routed, fired)
    assert (store.population().due, store.quiet().quiet) == (0, True)
    in_order(engine)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_corpse_never_writes_1000_times(engine: PlainEngine) -> None:
    """R30: killed and woken over and over, each corpse still trying to write while the next one works."""
    store = engine.store
    process = ProcessBuilder("p")
    process.start().user_task("work").end()
    engine.operations.deploy(process)
    engine.operations.start("p", id="i")
    engine.turn()
    before = record_of(engine, "i")
    engine.operations.set("i", {"n": 1})
    for number in range(1_000):
        corpse = store.claim(f"c{number}:1:1")
        assert corpse is not None

        def late(corpse: Any = corpse) -> object:
            return store.commit(commit_of(corpse, parts={"h": b"corpse"}, outcome="terminated"))

        def renew(number: int = number) -> object:
            return store.renew("i", f"c{number}:1:1")

        assert store.release_dead(f"c{number}") == 1
        if number % 10:
            with pytest.raises(LeaseLost):
                late()
        else:
            # Now and then at the very moment of the next claim.
            tried = together(late, renew, partial(store.claim, f"n{number}:1:1"))
            assert isinstance(tried[0], LeaseLost)
            assert isinstance(tried[1], LeaseLost)
            assert tried[2] is not None
            assert store.release_dead(f"n{number}") == 1
    after = record_of(engine, "i")
    assert (after.parts, after.version, after.status) == (before.parts, before.version, "active")
    assert after.epoch == before.epoch + 1_100
    claim = store.claim("last:1:1")
    assert claim is not None
    assert [trigger.kind for trigger in claim.triggers] == ["set"], "consumed once, by whoever commits"


@pytest.mark.slow
def test_four_clock_advances_past_one_deadline_wake_it_once(engine: PlainEngine) -> None:
    """R21: however many holders see it due at once."""
    process = ProcessBuilder("p")
    process.start().catch("nap", timer="PT1H").script_task("count", "=n + 1", result="n").end()
    engine.operations.deploy(process)
    for number in range(20):
        engine.operations.start("p", {"n": 0}, id=f"i{number}")
    engine.turn()

    def advance() -> None:
        engine.store.set_clock(T0 + HOUR)
        engine.timers.pass_once()

    assert together(advance, advance, advance, advance) == [None] * 4
    hosts = [engine.new_host(f"h{number}") for number in range(4)]
    together(*[host.serve_once for host in hosts])
    for host in hosts:
        host.close()
    engine.turn()
    for number in range(20):
        assert nodes(engine, f"i{number}")["count"] == 1
    in_order(engine)


@pytest.mark.slow
def test_a_trigger_during_the_cut_is_never_lost(engine: PlainEngine) -> None:
    """R20, D15: messages that come while instances are being released abort the release or wake right after it."""
    process = ProcessBuilder("p")
    process.start().catch("first", message="M", key="=k").catch("second", message="M", key="=k").end()
    engine.operations.deploy(process)
    engine.work_beside(hosts=2)
    ids = [f"i{number}" for number in range(60)]

    def publish(instance: str) -> None:
        engine.operations.publish("M", instance, id=f"{instance}-1")
        engine.operations.publish("M", instance, id=f"{instance}-2")

    def begin() -> None:
        for instance in ids:
            engine.operations.start("p", {"k": instance}, id=instance)

    def publish_all(half: int) -> None:
        for instance in ids[half::2]:
            publish(instance)

    together(begin, partial(publish_all, 0), partial(publish_all, 1))
    until(lambda: all(engine.operations.status(instance) == "completed" for instance in ids))
    for instance in ids:
        assert (nodes(engine, instance)["first"], nodes(engine, instance)["second"]) == (1, 1)
    in_order(engine)


@pytest.mark.slow
def test_a_completion_that_races_another_wake_is_applied_once_and_so_is_the_other(engine: PlainEngine) -> None:
    """R23: in some order, each once."""
    process = ProcessBuilder("p")
    process.start().parallel("fork").user_task("work").end("worked")
    process.at("fork").catch("nap", timer="PT1H").end("slept")
    engine.operations.deploy(process)
    ids = [f"i{number}" for number in range(40)]
    for instance in ids:
        engine.operations.start("p", id=instance)
    engine.turn()
    tasks = [task.id for task in engine.operations.tasks()]
    engine.work_beside(hosts=2)
    engine.store.set_clock(T0 + HOUR)
    for task in tasks:
        engine.operations.complete(task)
    until(lambda: all(engine.operations.status(instance) == "completed" for instance in ids))
    for instance in ids:
        assert (nodes(engine, instance)["worked"], nodes(engine, instance)["slept"]) == (1, 1)


def broken(**_inputs: object) -> None:
    raise RuntimeError("broken")


@pytest.mark.slow
def test_a_retry_that_races_a_timer_leaves_one_live_copy(engine: PlainEngine) -> None:
    """R24: the boundary over the failed activity and the operator's retry, at the same moment."""
    process = ProcessBuilder("p")
    process.start().service_task("work", topic="work").end("worked")
    process.boundary("work", "late", timer="PT1H").end("escalated")
    engine.store.put_value("code", "work", b"known to every host of this test")
    engine.callables.local["work"] = broken
    engine.operations.deploy(process)
    ids = [f"i{number}" for number in range(40)]
    for instance in ids:
        engine.operations.start("p", id=instance)
    engine.turn()
    assert engine.store.population().incidents == len(ids)
    engine.work_beside(hosts=2)

    def retry() -> None:
        for instance in ids:
            with contextlib.suppress(InputError):  # the timer was first
                engine.operations.retry(instance)

    together(retry, lambda: engine.store.set_clock(T0 + HOUR))
    until(lambda: all(engine.operations.status(instance) == "completed" for instance in ids))
    for instance in ids:
        assert nodes(engine, instance)["escalated"] == 1
        assert nodes(engine, instance)["worked"] == 0
    in_order(engine)


@pytest.mark.slow
def test_a_withdrawal_that_lands_inside_an_arming_leaves_no_zombie(engine: PlainEngine) -> None:
    """R25: cancelled while its waits are being armed: no record, no subscription, no deadline is left."""
    operations = engine.operations
    process = ProcessBuilder("p")
    process.start().parallel("fork").user_task("work").end()
    for number in range(5):
        process.at("fork").catch(f"nap{number}", timer="PT1H").end()
        process.at("fork").catch(f"hear{number}", message="M", key=f'="{number}"').end()
    operations.deploy(process)
    engine.work_beside(hosts=2)
    ids = [f"i{number}" for number in range(40)]

    def begin() -> None:
        for instance in ids:
            operations.start("p", id=instance)

    def cancel() -> None:
        for instance in ids:
            until(partial(engine.store.status, instance))
            operations.cancel(instance)

    assert together(begin, cancel) == [None, None]
    until(lambda: all(operations.status(instance) == "terminated" for instance in ids))
    until(lambda: engine.store.population().due == 0)
    client: Any = engine.store.client
    keys = engine.store.keys
    assert client.zcard(keys["subs"]) == client.zcard(keys["topen"]) == client.hlen(keys["tasks"]) == 0
    in_order(engine)


@pytest.mark.slow
def test_an_instance_that_parks_between_a_cancels_check_and_its_act_still_terminates(engine: PlainEngine) -> None:
    """R27: resident or released, the cancel finds it; and a deadline that falls due meanwhile revives nobody (R26)."""
    operations = engine.operations
    process = ProcessBuilder("p")
    process.start().catch("a", message="A", key="=k").catch("nap", timer="PT1H").end()
    operations.deploy(process)
    ids = [f"i{number}" for number in range(40)]
    for instance in ids:
        operations.start("p", {"k": instance}, id=instance)
    engine.turn()
    engine.work_beside(hosts=2)
    together(
        lambda: [operations.publish("A", instance) for instance in ids],
        lambda: [operations.cancel(instance) for instance in ids],
        lambda: engine.store.set_clock(T0 + HOUR),
    )
    until(lambda: all(operations.status(instance) == "terminated" for instance in ids))
    engine.store.set_clock(T0 + 3 * HOUR)
    until(lambda: engine.store.quiet().quiet)
    assert {operations.status(instance) for instance in ids} == {"terminated"}
    in_order(engine)


@pytest.mark.slow
def test_two_engines_on_one_store_run_nothing_twice(opened: Callable[..., PlainEngine]) -> None:
    """X11, D22: holders and hosts of both, on the same keys: the order lease orders, the tokens fence."""
    ours = opened()
    theirs = PlainEngine(ours.store)
    process = ProcessBuilder("p")
    process.start().catch("go", message="Go", key="=k").script_task("count", "=n + 1", result="n").end()
    ours.operations.deploy(process)
    ids = [f"i{number}" for number in range(60)]
    ours.work_beside(hosts=2)
    theirs.work_beside(hosts=2)
    try:
        for instance in ids:
            ours.operations.start("p", {"k": instance, "n": 0}, id=instance)
            theirs.operations.publish("Go", instance)
        until(lambda: all(ours.operations.status(instance) == "completed" for instance in ids))
    finally:
        theirs.close()
    for instance in ids:
        assert set(nodes(ours, instance).values()) == {1}
        assert ours.operations.inspect(instance).variables["n"] == 1
    in_order(ours)


def test_a_claimers_clock_decides_nothing(engine: PlainEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """C62, T47: ten seconds off on the claimer's machine, and a lease lives as long as the store says."""
    import time

    process = ProcessBuilder("p")
    process.start().user_task("work").end()
    engine.operations.deploy(process)
    engine.operations.start("p", id="i")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 10_000)
    monkeypatch.setattr(time, "time_ns", lambda: int((real() + 10_000) * 1e9))
    claim = engine.store.claim("fast:1:1")
    assert claim is not None
    assert claim.now == T0
    assert engine.store.sweep() == 0
    ((_, _, left),) = engine.store.leases()
    assert 9_000 < left <= engine.store.settings.lease_ttl_ms
    monkeypatch.setattr(time, "time", lambda: real() - 10_000)
    assert engine.store.commit(commit_of(claim)).version == 1


def test_a_rebuild_that_fails_leaves_every_hold(engine: PlainEngine, caplog: pytest.LogCaptureFixture) -> None:
    """F33, D18: a track with timers and a subscription, all held through the failed wake, and all fire afterwards."""
    store = engine.store
    process = ProcessBuilder("p")
    process.start().user_task("work").end("worked")
    process.boundary("work", "late", timer="PT2H", interrupting=False).end("reminded")
    process.boundary("work", "note", message="Note", key='="n"', interrupting=False).end("noted")
    process.boundary("work", "soon", timer="PT1H", interrupting=False).end("early")
    engine.operations.deploy(process)
    engine.operations.start("p", id="i")
    engine.turn()
    client: Any = store.client
    part = client.hget(store.keys.instance("i"), ".t1")
    client.hset(store.keys.instance("i"), ".t1", b'{"n": 5')
    store.set_clock(T0 + HOUR)
    engine.turn()
    assert engine.host.counters.abandoned == 1
    assert "part 't1' of its checkpoint is damaged" in caplog.text
    record = record_of(engine, "i")
    assert sorted(row[0] for row in record.waits.values()) == ["message", "task", "timer"]
    assert len(record.inbox) == 1
    client.hset(store.keys.instance("i"), ".t1", part)
    client.zadd(store.keys["ready"], {"i": 1})  # the back-off has elapsed
    engine.operations.publish("Note", "n")
    store.set_clock(T0 + 2 * HOUR)
    engine.turn()
    assert [nodes(engine, "i")[name] for name in ("early", "noted", "reminded")] == [1, 1, 1]
    in_order(engine)


def test_a_slow_wake_is_not_entered_by_a_second_pass(engine: PlainEngine) -> None:
    """F34: leased is leased, whatever is delivered meanwhile."""
    process = ProcessBuilder("p")
    process.start().user_task("work").end()
    engine.operations.deploy(process)
    engine.operations.start("p", id="i")
    engine.turn()
    engine.operations.set("i", {"n": 1})
    slow = engine.store.claim("slow:1:1")
    assert slow is not None
    engine.store.deliver("i", "set", "", "later", payload(n=2))
    engine.fold()
    assert not engine.host.serve_once()
    assert engine.store.commit(commit_of(slow)).inbox == 1
    engine.turn()
    assert engine.operations.inspect("i").variables == {"n": 2}
