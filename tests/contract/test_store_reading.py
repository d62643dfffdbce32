"""What is told about instances, facts, counts and registers, and what retention takes away."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gobpm_ray.runtime.ports import BellName, Store
from tests.support.stores import (
    StoreBed,
    broadcast,
    claimed,
    commit_of,
    dehydrate,
    deploy,
    fold,
    human,
    message,
    payload,
    publish,
    start,
    timer,
    waiting,
)


def test_names_may_be_written_in_any_alphabet(store: Store) -> None:
    now = store.manual_clock(1_000)
    waiting(store, "é-№1", message("w:ü", key="ключ", name="Ответ"), timer("w:时", now), human("w:Å"), process="Заказ")
    store.claim_task("é-№1/w:Å", "Аня", ())
    store.complete_task("é-№1/w:Å", "Аня", (), (), "d:ж", payload(text="ß"))
    publish(store, "m:ж", key="ключ", name="Ответ")
    fold(store)
    assert store.fire(store.due(10).rows) == 1
    claim = claimed(store)
    assert (claim.instance_id, claim.process_id) == ("é-№1", "Заказ")
    assert [trigger.wait for trigger in claim.triggers] == ["w:Å", "w:ü", "w:时"]


def test_an_unknown_instance_is_none(store: Store) -> None:
    assert store.instance("i9") is None
    assert store.status("i9") is None


def test_a_record_is_everything_about_an_instance(store: Store) -> None:
    now = store.manual_clock(9_000)
    deploy(store, document=b"xml\n1")
    version = deploy(store, document=b"xml\n2")
    store.start("order", 0, "i1", "d1", "bk-1", payload(a=1))
    record = store.instance("i1")
    assert record is not None
    assert (record.instance_id, record.process_id, record.process_version) == ("i1", "order", version)
    assert (record.business_key, record.status, record.created) == ("bk-1", "active", now)
    assert (record.version, record.epoch, record.resident) == (0, 0, False)
    assert (record.parts, record.waits, record.history) == ({}, {}, ())
    assert [trigger.id for trigger in record.inbox] == ["d1"]

    dehydrate(store, "i1", human("w1"), parts={"h": b"head"}, history=[b"started"])
    record = store.instance("i1")
    assert record is not None
    assert (record.version, record.epoch, record.parts, record.history) == (1, 1, {"h": b"head"}, (b"started",))
    assert (list(record.waits), record.inbox) == (["w1"], ())


def test_instances_are_listed_oldest_first_in_pages(store: Store) -> None:
    deploy(store)
    for n in range(6):
        start(store, f"i{n}")
    for _ in range(6):
        claim = claimed(store)
        store.commit(commit_of(claim, outcome="completed" if claim.instance_id in ("i1", "i4") else ""))

    assert [name for _, name in store.instances(ended=False)] == ["i0", "i2", "i3", "i5"]
    assert [name for _, name in store.instances(ended=True)] == ["i1", "i4"]
    first = store.instances(ended=False, limit=2)
    assert [name for _, name in store.instances(ended=False, after_seq=first[-1][0], limit=2)] == ["i3", "i5"]
    first = store.instances(ended=True, limit=1)
    assert [name for _, name in store.instances(ended=True, after_seq=first[-1][0])] == ["i4"]


def test_all_instances_are_listed_in_one_order_whether_ended_or_not(store: Store) -> None:
    """(seq, id): the same pair before and after the end, so that a page's cursor holds."""
    deploy(store)
    for n in range(4):
        start(store, f"i{n}")
    before = store.instances()
    assert [name for _, name in before] == ["i0", "i1", "i2", "i3"]
    for _ in range(4):
        claim = claimed(store)
        store.commit(commit_of(claim, outcome="completed" if claim.instance_id in ("i0", "i2") else ""))
    assert store.instances() == before
    assert store.instances(after_seq=before[1][0], limit=1) == before[2:3]


def test_facts_come_from_commits_in_order_and_in_pages(store: Store) -> None:
    waiting(store, "i1", human("w1"), facts=[b'{"fact": "a"}', b'{"fact": "b"}'])
    assert store.facts() != []
    store.deliver("i1", "task", "w1", "d1", payload())
    dehydrate(store, "i1", facts=[b'{"fact": "c"}'], outcome="completed")
    facts = store.facts()
    assert [fact for _, fact in facts] == [b'{"fact": "a"}', b'{"fact": "b"}', b'{"fact": "c"}']
    stamps = [tuple(map(int, name.split("-"))) for name, _ in facts]
    assert stamps == sorted(set(stamps))
    assert store.facts(limit=2) == facts[:2]
    assert store.facts(after=facts[1][0]) == facts[2:]
    assert store.facts(after=facts[2][0]) == []


def test_facts_are_bounded(bed: StoreBed) -> None:
    store = bed.store(facts_limit=50)
    waiting(store, "i1", facts=[b"%d" % n for n in range(1_000)])
    facts = store.facts()
    assert facts[-1][1] == b"999"
    assert 50 <= len(facts) <= 250, "the oldest go, in blocks"


def test_the_population_adds_up(bed: StoreBed) -> None:
    """Promise 7's counts, as `top` shows them."""
    store = bed.store()
    now = store.manual_clock(1_000)
    deploy(store)
    start(store, "ended")
    dehydrate(store, "ended", outcome="completed")
    waiting(store, "w1", human("a"), timer("t", now + 50))
    waiting(store, "w2", message("a", key="else"))
    start(store, "resident")
    claimed(store)
    start(store, "ready")
    bed.elapse(20)
    publish(store, "m1")
    fold(store)
    publish(store, "m2", key="B")
    broadcast(store, "s1")

    population = store.population()
    assert (population.resident, population.ready, population.waiting, population.ended) == (1, 1, 2, 1)
    assert population.resident + population.ready + population.waiting == len(store.instances(ended=False))
    assert population.oldest_ready_ms >= 20
    assert (population.due, population.parked, population.dead, population.incidents) == (1, 1, 0, 0)
    assert sum(population.pending.values()) == 2


def test_ended_instances_go_when_their_retention_is_over(bed: StoreBed) -> None:
    store = bed.store(retention_ms=40)
    deploy(store)
    start(store, "i1")
    start(store, "i2")
    for _ in range(2):
        claim = claimed(store)
        store.commit(commit_of(claim, outcome="completed" if claim.instance_id == "i1" else "", history=[b"x"]))
    store.expire(10)
    assert store.status("i1") == "completed"
    bed.elapse(45)
    assert store.expire(10) >= 1
    assert (store.instance("i1"), store.status("i1")) == (None, None)
    assert store.instances(ended=True) == []
    assert store.status("i2") == "active"
    assert bed.traces(store, "i1") == []


def test_the_oldest_ended_instances_go_when_there_are_too_many(bed: StoreBed) -> None:
    store = bed.store(retention_count=2)
    deploy(store)
    for n in range(5):
        start(store, f"i{n}")
        dehydrate(store, f"i{n}", outcome="completed")
        bed.elapse(2)
    for _ in range(10):
        store.expire(10)
    assert [name for _, name in store.instances(ended=True)] == ["i3", "i4"]


def test_two_engines_on_one_store_do_not_see_each_other(bed: StoreBed) -> None:
    one, other = bed.store(), bed.store()
    waiting(one, "i1", human("w1"))
    publish(one, "m1")
    assert (other.instances(), other.pending(0, 10), other.definitions()) == ([], [], [])
    assert not publish(other, "m1").duplicate


@pytest.mark.parametrize("bell", ["message", "timer", "task", "ready", "supervisor"])
def test_a_bell_is_one_bit(store: Store, bell: BellName) -> None:
    assert not store.wait_bell(bell, 0.01)
    store.ring(bell)
    store.ring(bell)
    assert store.wait_bell(bell, 0.01)
    assert not store.wait_bell(bell, 0.01)


def test_a_sleeper_is_woken_by_its_bell(store: Store) -> None:
    with ThreadPoolExecutor(2) as pool:
        heard = pool.submit(store.wait_bell, "ready", 5.0)
        other = pool.submit(store.wait_bell, "task", 0.05)
        store.ring("ready")
        assert heard.result(timeout=5)
        assert not other.result(timeout=5)


def test_readiness_rings_for_actors_and_for_the_supervisor(store: Store) -> None:
    waiting(store, "i1", human("w1"))
    for bell in ("ready", "supervisor"):
        store.wait_bell(bell, 0.01)
    store.deliver("i1", "task", "w1", "d1", payload())
    assert store.wait_bell("ready", 0.01)
    assert store.wait_bell("supervisor", 0.01)


def test_one_bell_wakes_every_free_actor_in_turn(store: Store) -> None:
    """The bit rings once for many ready instances, so a claim that leaves some behind rings on."""
    deploy(store)
    start(store, "i1")
    start(store, "i2")
    assert store.wait_bell("ready", 0.01)
    claimed(store)
    assert store.wait_bell("ready", 0.01)
    claimed(store)
    assert not store.wait_bell("ready", 0.01)


def test_a_store_serves_any_number_of_short_lived_threads(store: Store) -> None:
    """A driver that asks from a thread per request must not use the store's connections up."""
    deploy(store)
    failures: list[Exception] = []

    def ask(n: int) -> None:
        try:
            start(store, f"i{n}")
        except Exception as failure:
            failures.append(failure)

    for n in range(150):
        thread = threading.Thread(target=ask, args=(n,))
        thread.start()
        thread.join()
    assert failures == []
    assert len(store.instances()) == 150


def test_registers_keep_small_values_by_name(store: Store) -> None:
    assert store.get_value("code", "pay") is None
    store.put_value("code", "pay", b"\x00\x1e\xff")
    store.put_value("code", "send", b"2")
    store.put_value("engine", "pay", b"3")
    store.put_value("code", "send", b"4")
    assert store.get_value("code", "pay") == b"\x00\x1e\xff"
    assert store.values("code") == {"pay": b"\x00\x1e\xff", "send": b"4"}
    assert store.values("actors") == {}
    store.drop_value("code", "pay")
    store.drop_value("code", "pay")
    assert store.values("code") == {"send": b"4"}
    assert store.get_value("engine", "pay") == b"3"
