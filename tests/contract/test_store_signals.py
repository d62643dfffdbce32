"""Signals: everyone who waits, once, and nobody later."""

from __future__ import annotations

import pytest

from gobpm_ray.runtime.ports import Store
from gobpm_ray.store.redis_store import RedisStore
from tests.support.stores import (
    armed,
    broadcast,
    claimed,
    damage,
    deploy,
    fold,
    inbox,
    signal,
    values_of,
    waiting,
    woken,
)


def results(store: Store, limit: int = 100) -> list[str]:
    return [routed.result for routed in fold(store, limit)]


# ------------------------------------------------------------------------------------------------------------- signals


def test_a_signal_wakes_everyone_who_waits_for_it(store: Store) -> None:
    """M54."""
    waiting(store, "i1", signal("w1"))
    waiting(store, "i2", signal("w1", repeat=True))
    waiting(store, "i3", signal("w1", name="Other"))
    accepted = broadcast(store, "s1", n=1)
    (routed,) = fold(store)
    assert (routed.result, routed.woken, routed.started) == ("delivered", 2, 0)
    assert (armed(store, "i1"), armed(store, "i2"), armed(store, "i3")) == (set(), {"w1"}, {"w1"})
    for _ in range(2):
        (trigger,) = claimed(store).triggers
        assert (trigger.id, trigger.kind, trigger.wait, trigger.seq) == ("s1", "signal", "w1", accepted.seq)
        assert values_of(trigger) == {"n": 1}


def test_a_signal_to_nobody_is_dropped_and_never_kept(store: Store) -> None:
    """M51, M54."""
    broadcast(store, "s1")
    assert results(store) == ["dropped"]
    waiting(store, "i1", signal("w1"))
    assert inbox(store, "i1") == []
    assert (store.population().parked, store.population().dead) == (0, 0)


def test_a_damaged_listener_takes_the_signal_from_nobody_else(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """A79, H6: the others are woken, once; it is named, and hears the next one when it has been mended."""
    if not isinstance(store, RedisStore):
        pytest.skip("the memory store holds values, not bytes")
    for n in range(5):
        waiting(store, f"i{n}", signal("w1"))
    mend = damage(store, "i2")
    seq = broadcast(store, "s1").seq
    assert [store.route(seq, 2).result for _ in range(3)] == ["partial", "partial", "delivered"]
    assert sorted(woken(store)) == ["i0", "i1", "i3", "i4"]
    assert f"signal {seq} passes by wait w1 of instance i2, whose record is damaged" in caplog.text
    assert store.dead() == []
    mend()
    assert armed(store, "i2") == {"w1"}
    broadcast(store, "s2")
    fold(store)
    assert woken(store) == {"i2": ["s2"]}


def test_who_arms_after_a_broadcast_is_not_woken_by_it(store: Store) -> None:
    """M54: order is the acceptance's and the arming's seq, whenever the row is folded."""
    waiting(store, "i1", signal("w1"))
    broadcast(store, "s1")
    waiting(store, "i2", signal("w1"))
    (routed,) = fold(store)
    assert routed.woken == 1
    assert (inbox(store, "i1"), inbox(store, "i2")) == (["s1"], [])


def test_a_wide_broadcast_goes_on_where_it_stopped(store: Store) -> None:
    """H1: a bounded number of waits a call, in the order of arming, each once; the progress is the store's."""
    deploy(store)
    for n in range(7):
        waiting(store, f"i{n}", signal("w1", repeat=n % 2 == 0))
    seq = broadcast(store, "s1").seq
    first = store.route(seq, 3)
    assert (first.result, first.woken) == ("partial", 3)
    assert [name for name in (f"i{n}" for n in range(7)) if inbox(store, name)] == ["i0", "i1", "i2"]
    assert [row.seq for row in store.pending(0, 10)] == [seq], "a new holder finds it still pending"

    folded = fold(store, limit=3)
    assert folded[-1].result == "delivered"
    assert 3 + sum(routed.woken for routed in folded) == 7
    assert [inbox(store, f"i{n}") for n in range(7)] == [["s1"]] * 7
    assert store.route(seq, 3).result == "gone"


def test_a_signal_starts_one_instance_of_each_process(store: Store) -> None:
    deploy(store, "order", signal("s1", node="Start_1"), signal("s2", node="Start_2"))
    deploy(store, "bill", signal("s1"))
    waiting(store, "i1", signal("w1"), process="order")
    accepted = broadcast(store, "s1", n=1)
    folded = fold(store)
    assert (sum(r.woken for r in folded), sum(r.started for r in folded)) == (1, 2)
    assert sorted(woken(store)) == [f"bill-{accepted.seq}", "i1", f"order-{accepted.seq}"]


def test_a_redeployment_between_a_broadcast_and_its_fold_loses_no_start(store: Store) -> None:
    """The same start event of the next version was waiting all the time."""
    deploy(store, "order", signal("s1", node="Start_1"), document=b"xml\n1")
    broadcast(store, "s1")
    deploy(store, "order", signal("s1", node="Start_1"), document=b"xml\n2")
    folded = fold(store)
    assert sum(routed.started for routed in folded) == 1
    assert claimed(store).process_version == 2


def test_a_signal_wins_a_race_once(store: Store) -> None:
    waiting(store, "i1", signal("w1", group="g"), signal("w2", group="g"))
    broadcast(store, "s1")
    (routed,) = fold(store)
    assert routed.woken == 1
    assert inbox(store, "i1") == ["s1"]
    assert armed(store, "i1") == set()
