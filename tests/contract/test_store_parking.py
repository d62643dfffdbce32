"""Messages that nobody took: kept in order, given to the first catch, or dead letters."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from gobpm_ray.core.keys import message_key
from gobpm_ray.runtime.ports import ArmRow, Store
from tests.support.stores import (
    armed,
    claimed,
    commit_of,
    dehydrate,
    deploy,
    fold,
    human,
    inbox,
    message,
    publish,
    start,
    values_of,
    waiting,
)


def results(store: Store, limit: int = 100) -> list[str]:
    return [routed.result for routed in fold(store, limit)]


# -------------------------------------------------------------------------------------------------------------- parked


def test_a_message_before_its_catch_is_delivered_when_the_catch_is_armed(store: Store) -> None:
    """M51."""
    accepted = publish(store, "m1", n=1)
    assert results(store) == ["parked"]
    assert store.pending(0, 10) == []
    waiting(store, "i1", message("w1"), human("w2"))
    assert armed(store, "i1") == {"w2"}
    assert store.population().parked == 0
    (trigger,) = claimed(store, instance="i1").triggers
    assert (trigger.id, trigger.kind, trigger.wait, trigger.seq) == ("m1", "message", "w1", accepted.seq)
    assert trigger.key == message_key("Reply", "A-1")
    assert values_of(trigger) == {"n": 1}


def test_parked_messages_are_taken_first_in_first_out(store: Store) -> None:
    """M51."""
    for n in range(3):
        publish(store, f"m{n}")
    fold(store)
    for n in range(3):
        waiting(store, f"i{n}", message("w1"))
        assert inbox(store, f"i{n}") == [f"m{n}"]
        dehydrate(store, f"i{n}")
    waiting(store, "i3", message("w1"))
    assert inbox(store, "i3") == []


def test_each_armed_wait_takes_a_parked_message_of_its_own(store: Store) -> None:
    publish(store, "m1")
    publish(store, "m2")
    publish(store, "m3", key="B-2")
    fold(store)
    waiting(store, "i1", message("w1"), message("w2"), message("w3", key="B-2"), message("w4", key="C-3"))
    assert armed(store, "i1") == {"w4"}
    assert {t.wait: t.id for t in claimed(store, instance="i1").triggers} == {"w1": "m1", "w2": "m2", "w3": "m3"}


def test_a_parked_message_decides_the_race_that_it_is_armed_into(store: Store) -> None:
    """D5: the gateway is won at once, and its other arms are not armed any more; the second message stays parked."""
    publish(store, "m1", key="A-1")
    publish(store, "m2", key="B-2")
    fold(store)
    waiting(store, "i1", message("w1", group="g"), message("w2", key="B-2", group="g"), human("w3", group="g"))
    assert armed(store, "i1") == set()
    assert inbox(store, "i1") == ["m1"]
    assert store.population().parked == 1
    dehydrate(store, "i1")
    waiting(store, "i2", message("w1", key="B-2"))
    assert inbox(store, "i2") == ["m2"]


def test_a_repeat_wait_takes_every_parked_message_in_order(store: Store) -> None:
    """M51: what a non-interrupting boundary would have got one by one must not lie parked beside its open ear."""
    for n in range(3):
        publish(store, f"m{n}")
    fold(store)
    waiting(store, "i1", message("w1", repeat=True))
    assert inbox(store, "i1") == ["m0", "m1", "m2"]
    assert armed(store, "i1") == {"w1"}
    assert store.population().parked == 0


def test_the_ttl_of_a_parked_message_is_judged_at_match_time(store: Store) -> None:
    """M51: not by whether the sweeper has come by."""
    now = store.manual_clock(10_000)
    publish(store, "m1", ttl=100)
    publish(store, "m2", ttl=300)
    fold(store)
    store.set_clock(now + 100)
    waiting(store, "i1", message("w1"))
    assert inbox(store, "i1") == ["m2"]
    assert (store.population().parked, store.population().dead) == (0, 1)


def test_the_ttl_of_a_pending_message_is_judged_at_match_time(store: Store) -> None:
    now = store.manual_clock(10_000)
    waiting(store, "i1", message("w1"))
    publish(store, "m1", ttl=100)
    store.set_clock(now + 100)
    assert results(store) == ["expired"]
    assert inbox(store, "i1") == []
    assert armed(store, "i1") == {"w1"}
    assert store.population().dead == 1


def test_expired_messages_become_dead_letters(store: Store) -> None:
    """X15: and the living ones stay, in bounded batches."""
    now = store.manual_clock(10_000)
    for n in range(5):
        publish(store, f"m{n}", key=n, ttl=100)
    publish(store, "m9", ttl=500)
    fold(store)
    assert store.expire(10) == 0
    store.set_clock(now + 100)
    assert store.expire(3) == 3
    assert store.expire(10) == 2
    assert store.expire(10) == 0
    assert (store.population().parked, store.population().dead) == (1, 5)
    waiting(store, "i1", message("w1"))
    assert inbox(store, "i1") == ["m9"]


def test_a_taken_parked_message_never_becomes_a_dead_letter(store: Store) -> None:
    now = store.manual_clock(10_000)
    publish(store, "m1", ttl=100)
    fold(store)
    waiting(store, "i1", message("w1"))
    store.set_clock(now + 1_000)
    assert store.expire(10) == 0
    assert store.population().dead == 0


def test_a_returned_message_is_parked_before_later_ones(store: Store) -> None:
    """M53: order per key is kept across a refusal."""
    waiting(store, "i1", message("w1"))
    publish(store, "m1")
    fold(store)
    publish(store, "m2")
    fold(store)
    claim = claimed(store, instance="i1")
    store.commit(commit_of(claim, returned=claim.triggers))
    assert results(store) == ["parked"]
    waiting(store, "i2", message("w1"), message("w2"))
    assert inbox(store, "i2") == ["m1", "m2"]


def given_back(store: Store, *arms: ArmRow) -> None:
    """i1 gives m1 back in the commit that arms these waits, while m2 and m3 of the same key are parked."""
    waiting(store, "i1", message("w1"))
    for delivery in ("m1", "m2", "m3"):
        publish(store, delivery)
        fold(store)
    claim = claimed(store, instance="i1")
    store.commit(commit_of(claim, returned=claim.triggers, arms=arms))


def test_a_message_given_back_goes_first_to_the_wait_that_is_armed_with_it(store: Store) -> None:
    """M53: parked ones of its key queue up behind it, and are not lost when it goes elsewhere."""
    given_back(store, message("w2"))
    assert inbox(store, "i1") == []
    fold(store)
    assert inbox(store, "i1") == ["m1"]
    dehydrate(store, "i1")
    waiting(store, "i2", message("w1"), message("w2"))
    assert inbox(store, "i2") == ["m2", "m3"]


def test_a_repeat_wait_takes_the_message_given_back_first_and_then_the_others(store: Store) -> None:
    """M53"""
    given_back(store, message("w2", repeat=True))
    fold(store)
    assert inbox(store, "i1") == ["m1", "m2", "m3"]
    assert store.population().parked == 0


def test_a_parked_message_is_taken_when_the_older_one_given_back_has_expired(store: Store) -> None:
    """M51, M53"""
    now = store.manual_clock(1_000_000)
    waiting(store, "i1", message("w1"))
    publish(store, "m1", ttl=1_000)
    fold(store)
    publish(store, "m2")
    fold(store)
    claim = claimed(store, instance="i1")
    store.commit(commit_of(claim, returned=claim.triggers, arms=[message("w2")]))
    store.set_clock(now + 1_000)
    fold(store)
    assert inbox(store, "i1") == ["m2"]
    assert [row.id for row in store.dead()] == ["m1"]


def test_a_row_routed_while_its_catch_is_armed_is_never_lost(store: Store) -> None:
    """Routing and parking are one decision: the wait is seen, or it drains the parked message itself."""
    deploy(store)
    with ThreadPoolExecutor(2) as pool:
        for n in range(30):
            start(store, f"i{n}")
            claim = claimed(store, instance=f"i{n}")
            seq = publish(store, f"m{n}", key=n).seq
            commit = commit_of(claim, arms=[message("w1", key=n)])
            both = (pool.submit(store.route, seq, 10), pool.submit(store.commit, commit))
            for one in both:
                one.result()
            assert inbox(store, f"i{n}") == [f"m{n}"]
            dehydrate(store, f"i{n}", outcome="completed")
