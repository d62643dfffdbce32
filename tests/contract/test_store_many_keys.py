"""Messages whose sender named several keys and that nobody took: found by any of them, taken once (M49, M51, M53)."""

from __future__ import annotations

from typing import Any

import pytest

from gobpm_ray.core.keys import learnt_text, message_key, properties_of, with_read
from gobpm_ray.runtime.ports import ArmRow, Store
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import Verifier
from tests.support.stores import (
    StoreBed,
    armed,
    claimed,
    commit_of,
    dehydrate,
    deploy,
    fold,
    inbox,
    message,
    publish,
    waiting,
)

BOTH = {"order": "A-1", "invoice": "I-9"}
BEGIN = ArmRow("@:Start_1:0:0", "message", "Start_1", key=message_key("Reply"))


def parked(store: Store, *deliveries: tuple[str, object], **more: Any) -> None:
    for delivery, key in deliveries:
        publish(store, delivery, key, **more)
    assert {routed.result for routed in fold(store)} == {"parked"}


def test_a_parked_message_is_found_by_any_key_that_its_sender_named(store: Store) -> None:
    """M49, M51"""
    for place, key in enumerate(("A-1", "I-9")):
        parked(store, (f"m{place}", BOTH))
        waiting(store, f"i{place}", message("w1", key=key))
        (trigger,) = claimed(store, instance=f"i{place}").triggers
        assert (trigger.id, trigger.key) == (f"m{place}", message_key("Reply", BOTH))
        assert store.population().parked == 0


def test_a_message_that_was_found_by_one_key_is_not_found_by_another(store: Store) -> None:
    """M49: once, whatever it is looked for by."""
    parked(store, ("m1", BOTH))
    waiting(store, "i1", message("w1", key="I-9"))
    assert inbox(store, "i1") == ["m1"]
    dehydrate(store, "i1")
    waiting(store, "i2", message("w1", key="A-1"))
    waiting(store, "i3", message("w1", key="I-9"))
    assert [inbox(store, name) for name in ("i2", "i3")] == [[], []]


def test_order_is_kept_for_each_key(store: Store) -> None:
    """M53: a message of several keys stands in the line of each, at its place."""
    parked(store, ("m1", "I-9"), ("m2", BOTH), ("m3", "I-9"), ("m4", "A-1"))
    waiting(store, "i1", message("w1", key="I-9", repeat=True))
    assert inbox(store, "i1") == ["m1", "m2", "m3"]
    dehydrate(store, "i1")
    waiting(store, "i2", message("w1", key="A-1", repeat=True))
    assert inbox(store, "i2") == ["m4"]


def test_one_wait_by_each_key_takes_it_once(store: Store) -> None:
    """M49: the race of the two is over with the first."""
    parked(store, ("m1", BOTH), ("m2", BOTH))
    waiting(store, "i1", message("w1", key="A-1", group="g"), message("w2", key="I-9", group="g"))
    assert inbox(store, "i1") == ["m1"]
    assert armed(store, "i1") == set()
    assert store.population().parked == 1


def test_it_is_one_message_however_many_keys_it_has(store: Store) -> None:
    """M51: counted once, expired once, one dead letter."""
    now = store.manual_clock(10_000)
    parked(store, ("m1", BOTH), ("m2", "I-9"), ttl=100)
    assert store.population().parked == 2
    store.set_clock(now + 100)
    assert store.expire(10) == 2
    assert [letter.id for letter in store.dead()] == ["m2", "m1"]
    waiting(store, "i1", message("w1", key="I-9"))
    assert inbox(store, "i1") == []


def test_what_expired_is_a_dead_letter_by_whatever_key_that_is_seen(store: Store) -> None:
    """M51: judged when it is matched."""
    now = store.manual_clock(10_000)
    parked(store, ("m1", BOTH), ttl=100)
    store.set_clock(now + 100)
    waiting(store, "i1", message("w1", key="I-9"))
    assert (inbox(store, "i1"), [letter.id for letter in store.dead()]) == ([], ["m1"])
    waiting(store, "i2", message("w1", key="A-1"))
    assert (inbox(store, "i2"), store.expire(10), len(store.dead())) == ([], 0, 1)


def test_what_contradicts_the_taker_stays_for_another_under_every_key(store: Store) -> None:
    """M49, M52"""
    parked(store, ("m1", {"order": "A-1", "invoice": "OTHER"}))
    waiting(store, "i1", message("w1"), learnt=learnt_text({"order": "A-1", "invoice": "I-9"}))
    assert inbox(store, "i1") == []
    waiting(store, "i2", message("w1", key="OTHER"))
    assert inbox(store, "i2") == ["m1"]


def test_a_message_given_back_waits_by_every_key_and_goes_first(store: Store) -> None:
    """M53"""
    waiting(store, "i1", message("w1", key="I-9"))
    publish(store, "m1", BOTH)
    fold(store)
    parked(store, ("m2", "A-1"))
    claim = claimed(store, instance="i1")
    # m2 queues up behind m1, which is pending again and looked for by the same key.
    store.commit(commit_of(claim, returned=claim.triggers, arms=[message("w2", key="A-1")]))
    assert inbox(store, "i1") == []
    fold(store)
    assert inbox(store, "i1") == ["m1"]
    assert store.population().parked == 1


def test_a_start_that_is_deployed_later_takes_it_once(store: Store) -> None:
    """M50"""
    parked(store, ("m1", BOTH), ("m2", "B-2"))
    deploy(store, "order", BEGIN)
    assert [row.id for row in store.pending(0, 10)] == ["m1", "m2"]
    assert [routed.result for routed in fold(store)] == ["delivered"] * 2
    assert store.population().parked == 0


def test_the_end_of_a_conversation_looks_at_it_once_more(store: Store, bed: StoreBed) -> None:
    """M50: parked for the conversation that its second key belongs to."""
    deploy(store, "order", BEGIN)
    seq = publish(store, "m1", "I-9").seq
    fold(store)
    parked(store, ("m2", BOTH))
    dehydrate(store, f"order-{seq}", outcome="completed")
    assert [row.id for row in store.pending(0, 10)] == ["m2"]
    assert [(routed.result, routed.started) for routed in fold(store)] == [("delivered", 1)]


def test_a_message_whose_payload_says_its_properties_is_read_before_it_is_routed(store: Store) -> None:
    """M49: by somebody who can read; then it is routed, and what it says contradicts and does not route."""
    store.put_value("correlates:Reply", "order", b"{}")
    waiting(store, "i1", message("w1"), learnt=learnt_text({"order": "A-1", "invoice": "I-9"}))
    waiting(store, "i2", message("w1", key="OTHER"))
    seq = publish(store, "m1", "A-1").seq
    assert store.route(seq, 10).result == "unread"
    key = with_read(message_key("Reply", "A-1"), {"invoice": "OTHER", "order": "A-1"})
    assert store.route(seq, 10, key).result == "parked"
    assert (inbox(store, "i1"), inbox(store, "i2")) == ([], [])
    if isinstance(store, RedisStore):
        assert Verifier(store, meaning=False).verify().differences == []
    seq = publish(store, "m2", {"order": "A-1"}).seq
    key = with_read(message_key("Reply", {"order": "A-1"}), {"invoice": "I-9", "order": "ignored"})
    assert store.route(seq, 10, key).result == "delivered"
    claim = claimed(store, instance="i1")
    (trigger,) = claim.triggers
    assert (trigger.id, trigger.key) == ("m2", key)
    assert properties_of(key) == {"order": "A-1", "invoice": "I-9"}
    assert properties_of(key, read=False) == {"order": "A-1"}
    # Armed again, it takes the parked one no more than before.
    store.commit(commit_of(claim, arms=[message("w2")]))
    assert (armed(store, "i1"), store.population().parked) == ({"w2"}, 1)
    assert store.route(publish(store, "other", "A-1", name="Said").seq, 10).result == "parked"


def test_verify_knows_each_place_of_a_parked_message(store: Store) -> None:
    """H12: an entry too many or too few is found and put right, whatever its key."""
    if not isinstance(store, RedisStore):
        pytest.skip("the memory store has no indexes that could be wrong")
    client, keys = store.client, store.keys
    parked(store, ("m1", BOTH))
    first, second = client.zrange(keys["parked"], 0, -1)
    assert Verifier(store).verify().differences == []
    for damage in (
        lambda: client.zrem(keys["parked"], second),
        lambda: client.zrem(keys["parked"], first),
        lambda: client.zadd(keys["parkx"], {second: 7}),
        lambda: client.zrem(keys["parkx"], first),
        lambda: client.zadd(keys["parked"], {second.replace(b"I-9", b"I-8"): 0}),
    ):
        damage()
        assert Verifier(store).verify().differences != []
        assert Verifier(store).verify(repair=True).left == 0
        assert client.zrange(keys["parked"], 0, -1) == [first, second]
        assert client.zrange(keys["parkx"], 0, -1) == [first]
        assert Verifier(store).verify().differences == []
