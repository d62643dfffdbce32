"""A wait that joins the race of one that is armed already: how a message is waited for by a key that is learnt late."""

from __future__ import annotations

import pytest

from gobpm_ray.core.keys import message_key
from gobpm_ray.runtime.ports import ArmRow, Store
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import Verifier
from tests.support.stores import armed, claimed, commit_of, fold, human, inbox, message, publish, waiting


def unkeyed(wait: str, **more: object) -> ArmRow:
    return ArmRow(wait, "unkeyed", "Catch_1", touch=("t1",), **more)  # type: ignore[arg-type]


def joined(wait: str, joins: str, key: object = "I-9", *, group: str = "late", **more: object) -> ArmRow:
    return message(wait, key=key, joins=joins, group=group, **more)  # type: ignore[arg-type]


def learn(store: Store, *arms: ArmRow) -> None:
    """Something else comes to i1, and its commit arms these."""
    store.deliver("i1", "set", "", "s1", b"{}")
    claim = claimed(store, instance="i1")
    store.commit(commit_of(claim, arms=arms))
    if isinstance(store, RedisStore):
        assert Verifier(store, meaning=False).verify().differences == []


@pytest.mark.parametrize("key", ["A-1", "I-9"])
@pytest.mark.parametrize("group", ["", "g"])
def test_of_a_wait_and_the_one_that_joined_it_one_is_met(store: Store, key: str, group: str) -> None:
    """M49: in whatever race the first one was, or in none."""
    waiting(store, "i1", message("w1", group=group), human("u1"))
    learn(store, joined("w2", "w1"))
    assert armed(store, "i1") == {"w1", "w2", "u1"}
    publish(store, "m1", key)
    fold(store)
    assert inbox(store, "i1") == ["m1"]
    assert armed(store, "i1") == {"u1"}


@pytest.mark.parametrize("first", ["w1", "w2", "w3", "u1"])
def test_it_races_with_all_that_the_first_races_with(store: Store, first: str) -> None:
    """D5, M49"""
    waiting(store, "i1", message("w1", group="g"), human("u1", group="g"), human("u2"))
    learn(store, joined("w2", "w1"), joined("w3", "w1", "L-5"))
    if first == "u1":
        store.complete_task("i1/u1", "", (), (), "m1", b"{}")
    else:
        publish(store, "m1", {"w1": "A-1", "w2": "I-9", "w3": "L-5"}[first])
        fold(store)
    assert inbox(store, "i1") == ["m1"]
    assert armed(store, "i1") == {"u2"}


def test_an_unkeyed_wait_is_found_by_nothing_and_ends_with_its_race(store: Store) -> None:
    """M49: a message whose key is not known is not waited for."""
    waiting(store, "i1", unkeyed("w1", group="g"), human("u1", group="g"))
    publish(store, "m1", None)
    fold(store)
    assert inbox(store, "i1") == []
    store.complete_task("i1/u1", "", (), (), "d1", b"{}")
    assert armed(store, "i1") == set()


@pytest.mark.parametrize("group", ["", "g"])
def test_an_unkeyed_wait_is_replaced_by_those_that_join_it(store: Store, group: str) -> None:
    """M49, M51: and what was parked for their keys is taken at once."""
    waiting(store, "i1", unkeyed("w1", group=group), human("u1", group="g"))
    learn(store, joined("w2", "w1"), joined("w3", "w1", "L-5"))
    assert armed(store, "i1") == {"w2", "w3", "u1"}
    publish(store, "m1", "L-5")
    fold(store)
    assert inbox(store, "i1") == ["m1"]
    assert armed(store, "i1") == (set() if group else {"u1"})


def test_a_parked_message_is_taken_by_a_wait_that_joins(store: Store) -> None:
    """M51"""
    waiting(store, "i1", message("w1"))
    publish(store, "m1", "I-9")
    fold(store)
    learn(store, joined("w2", "w1"))
    assert inbox(store, "i1") == ["m1"]
    assert armed(store, "i1") == set()


def test_waits_that_stay_armed_are_joined_without_a_race(store: Store) -> None:
    """M49: a non-interrupting boundary hears by every key."""
    waiting(store, "i1", message("w1", repeat=True))
    learn(store, joined("w2", "w1", group="", repeat=True))
    for delivery, key in (("m1", "I-9"), ("m2", "A-1"), ("m3", "I-9")):
        publish(store, delivery, key)
    fold(store)
    assert inbox(store, "i1") == ["m1", "m2", "m3"]
    assert armed(store, "i1") == {"w1", "w2"}


def test_whose_partner_has_just_been_met_waits_alone(store: Store) -> None:
    """R29: its trigger is in the inbox; the step that reads it withdraws the late one."""
    waiting(store, "i1", message("w1"))
    store.deliver("i1", "set", "", "s1", b"{}")
    claim = claimed(store, instance="i1")
    publish(store, "m1")
    fold(store)
    store.commit(commit_of(claim, arms=[joined("w2", "w1")]))
    assert armed(store, "i1") == {"w2"}
    record = store.instance("i1")
    assert record is not None
    assert record.waits["w2"][2] == message_key("Reply", "I-9")
    store.commit(commit_of(claimed(store, instance="i1"), withdrawals=["w1", "w2"]))
    assert armed(store, "i1") == set()
