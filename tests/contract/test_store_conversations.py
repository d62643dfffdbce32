"""Conversations: what a message's key begins, several keys of one message, and messages that were given back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gobpm_ray.core.keys import learnt_text, message_key, together_text
from gobpm_ray.errors import TaskRefused, UnknownTask
from gobpm_ray.runtime.ports import ArmRow, Store
from tests.support.stores import (
    StoreBed,
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
    timer,
    waiting,
)

BEGIN = ArmRow("@:Start_1:0:0", "message", "Start_1", key=message_key("Reply"))


def results(store: Store) -> list[tuple[str, int, int]]:
    return [(routed.result, routed.woken, routed.started) for routed in fold(store)]


def instances(store: Store, process: str = "order") -> list[str]:
    return [name for _, name in store.instances() if name.startswith(process)]


def begun(store: Store, delivery: str = "m1", key: object = "A-1") -> str:
    """The instance that the message has started, ready and claimed by nobody yet."""
    seq = publish(store, delivery, key).seq
    assert results(store) == [("delivered", 0, 1)]
    return f"order-{seq}"


# --------------------------------------------------------------------------------------------------- same name twice


def test_an_unseen_key_starts_and_a_seen_key_wakes_without_a_duplicate(store: Store) -> None:
    """M50"""
    deploy(store, "order", BEGIN)
    first = begun(store)
    dehydrate(store, first, message("w1"))
    publish(store, "m2")
    assert results(store) == [("delivered", 1, 0)]
    assert inbox(store, first) == ["m2"]
    begun(store, "m3", "B-2")
    assert len(instances(store)) == 2


def test_a_message_of_a_living_conversation_that_nobody_waits_for_is_parked_for_it(store: Store) -> None:
    """M50, M51: it does not start a second instance, and the first takes it when it gets there."""
    deploy(store, "order", BEGIN)
    first = begun(store)
    publish(store, "m2")
    assert results(store) == [("parked", 0, 0)]
    assert instances(store) == [first]
    dehydrate(store, first, message("w1"))
    assert inbox(store, first) == ["m2"]


def test_when_the_conversation_has_ended_its_key_starts_a_new_one(store: Store, bed: StoreBed) -> None:
    """M50: also with the message that was parked for it meanwhile."""
    deploy(store, "order", BEGIN)
    first = begun(store)
    publish(store, "m2")
    publish(store, "m3")
    fold(store)
    dehydrate(store, first, outcome="completed")
    assert bed.traces(store, first) == []
    assert results(store) == [("delivered", 0, 1), ("parked", 0, 0)]
    second = instances(store)[1]
    dehydrate(store, second, message("w1"))
    assert inbox(store, second) == ["m3"]


def test_a_message_without_a_key_begins_no_conversation(store: Store) -> None:
    """M50: each starts an instance of its own."""
    deploy(store, "order", BEGIN)
    publish(store, "m1", None)
    publish(store, "m2", None)
    assert results(store) == [("delivered", 0, 1)] * 2
    assert len(instances(store)) == 2


TOGETHER = (
    ArmRow("@:s:0:0", "message", "s#0", key=message_key("Reply"), row=together_text(("Paid",))),
    ArmRow("@:s:1:0", "message", "s#1", key=message_key("Paid"), row=together_text(("Reply",))),
)
"""The waits of a start event whose two messages must both come."""


def test_messages_that_must_both_come_begin_one_conversation(store: Store) -> None:
    """M50: the second is parked for the instance that the first began, also while that one has not yet been awake."""
    deploy(store, "order", *TOGETHER)
    first = begun(store)
    publish(store, "m2", name="Paid")
    assert results(store) == [("parked", 0, 0)]
    dehydrate(store, first, message("w1", name="Paid"))
    assert inbox(store, first) == ["m2"]
    publish(store, "m3", "B-2", name="Paid")
    publish(store, "m4", "B-2")
    assert results(store) == [("delivered", 0, 1), ("parked", 0, 0)]
    assert len(instances(store)) == 2


def test_messages_that_must_both_come_are_free_again_when_their_conversation_has_ended(
    store: Store, bed: StoreBed
) -> None:
    """M50"""
    deploy(store, "order", *TOGETHER)
    first = begun(store)
    publish(store, "m2", name="Paid")
    fold(store)
    dehydrate(store, first, outcome="completed")
    assert bed.traces(store, first) == []
    assert results(store) == [("delivered", 0, 1)]
    assert len(instances(store)) == 2


def test_a_new_version_that_collects_other_messages_is_armed_anew(store: Store) -> None:
    """M50: what the older version's start said about its conversation is not kept."""
    deploy(store, "order", TOGETHER[0])
    deploy(store, "order", replace(TOGETHER[0], row=together_text(("Sent",))), document=b"xml\n<b/>")
    begun(store)
    publish(store, "m2", name="Sent")
    assert results(store) == [("parked", 0, 0)]


def test_a_conversation_is_one_processes_own(store: Store) -> None:
    """M52: another process that starts by the same name and key is not kept from it."""
    deploy(store, "order", BEGIN)
    begun(store)
    deploy(store, "audit", BEGIN)
    publish(store, "m2")
    assert results(store) == [("delivered", 0, 1)]
    assert len(instances(store, "audit")) == 1


def test_a_message_start_takes_what_was_parked_under_its_name_before_it_was_deployed(store: Store) -> None:
    """M50, M51: in order of acceptance, whatever the key."""
    for n, key in enumerate(("B-2", "A-1", None)):
        publish(store, f"m{n}", key)
    publish(store, "other", "A-1", name="Replying")
    fold(store)
    assert store.population().parked == 4
    deploy(store, "order", BEGIN)
    assert [row.id for row in store.pending(0, 10)] == ["m0", "m1", "m2"]
    assert results(store) == [("delivered", 0, 1)] * 3
    assert store.population().parked == 1


# ------------------------------------------------------------------------------------------------------- several keys


def learnt(store: Store, instance: str, *arms: ArmRow, **properties: str) -> None:
    """A waiting instance that knows these properties, and waits by each."""
    deploy(store)
    start(store, instance)
    dehydrate(store, instance, *arms, learnt=learnt_text(properties))


BOTH = {"order": "A-1", "invoice": "I-9"}


def test_a_message_with_several_keys_routes_by_any_of_them(store: Store) -> None:
    """M49"""
    learnt(store, "i1", message("w1", key="I-9"), order="A-1", invoice="I-9")
    publish(store, "m1", BOTH)
    assert results(store) == [("delivered", 1, 0)]
    (trigger,) = claimed(store, instance="i1").triggers
    assert trigger.key == message_key("Reply", BOTH)


def test_a_message_that_contradicts_a_learnt_key_is_refused_and_stays_parked(store: Store) -> None:
    """M49: it is for nobody else's conversation either, and the right one is found behind it."""
    learnt(store, "i1", message("w1"), order="A-1", invoice="I-9")
    publish(store, "m1", {"order": "A-1", "invoice": "OTHER"})
    assert results(store) == [("parked", 0, 0)]
    assert inbox(store, "i1") == []
    publish(store, "m2", BOTH)
    assert results(store) == [("delivered", 1, 0)]
    assert inbox(store, "i1") == ["m2"]
    # Armed again, it does not take the parked one either.
    dehydrate(store, "i1", message("w2"))
    assert inbox(store, "i1") == []
    assert store.population().parked == 1


def test_a_contradicted_message_goes_to_the_next_instance_of_the_process(store: Store) -> None:
    """M49, M52"""
    learnt(store, "i1", message("w1"), order="A-1", invoice="I-9")
    waiting(store, "i2", message("w1"))
    publish(store, "m1", {"order": "A-1", "invoice": "OTHER"})
    assert results(store) == [("delivered", 1, 0)]
    assert (inbox(store, "i1"), inbox(store, "i2")) == ([], ["m1"])


def test_a_message_with_several_keys_begins_the_conversation_of_each(store: Store) -> None:
    """M49, M50"""
    deploy(store, "order", BEGIN)
    begun(store, "m1", BOTH)
    publish(store, "m2", "I-9")
    publish(store, "m3", "A-1")
    assert results(store) == [("parked", 0, 0)] * 2


# -------------------------------------------------------------------------------------------------------- given back


def given_back(store: Store, process: str) -> None:
    """An instance of the process has been handed m1 and gives it back."""
    waiting(store, f"{process}1", message("w1"), process=process)
    publish(store, "m1")
    fold(store)
    claim = claimed(store, instance=f"{process}1")
    store.commit(commit_of(claim, returned=claim.triggers))


def test_a_message_given_back_goes_to_the_process_that_gave_it_back_and_to_no_other(store: Store) -> None:
    """M52: of a process that had its copy, another instance must not get it again."""
    waiting(store, "pay1", message("w1"), process="pay")
    waiting(store, "order1", message("w1"), process="order")
    publish(store, "m1")
    assert results(store) == [("delivered", 2, 0)]
    claims = {claim.instance_id: claim for claim in (claimed(store), claimed(store))}
    store.commit(commit_of(claims["pay1"]))
    waiting(store, "pay2", message("w1"), process="pay")
    waiting(store, "order2", message("w1"), process="order")
    store.commit(commit_of(claims["order1"], returned=claims["order1"].triggers))
    assert results(store) == [("delivered", 1, 0)]
    assert inbox(store, "pay2") == []
    assert inbox(store, "order2") == ["m1"]


def test_the_restriction_outlives_parking(store: Store) -> None:
    """M52: who arms later is asked as well."""
    given_back(store, "order")
    assert results(store) == [("parked", 0, 0)]
    waiting(store, "pay2", message("w1"), process="pay")
    assert inbox(store, "pay2") == []
    waiting(store, "order2", message("w1"), process="order")
    assert inbox(store, "order2") == ["m1"]
    assert store.population().parked == 0


def test_a_message_that_two_processes_give_back_is_for_both(store: Store) -> None:
    """M52"""
    waiting(store, "pay1", message("w1"), process="pay")
    waiting(store, "order1", message("w1"), process="order")
    publish(store, "m1")
    fold(store)
    for _ in range(2):
        claim = claimed(store)
        store.commit(commit_of(claim, returned=claim.triggers))
        fold(store)
    assert store.population().parked == 1
    waiting(store, "log1", message("w1"), process="log")
    assert inbox(store, "log1") == []
    waiting(store, "pay2", message("w1"), process="pay")
    assert inbox(store, "pay2") == ["m1"]


def test_an_ended_instances_unread_message_is_for_its_own_process(store: Store) -> None:
    """M52: what an end leaves in the inbox goes back in the same way."""
    waiting(store, "order1", message("w1"))
    publish(store, "m1")
    fold(store)
    dehydrate(store, "order1", outcome="completed", consumed=())
    waiting(store, "pay1", message("w1"), process="pay")
    fold(store)
    assert inbox(store, "pay1") == []
    waiting(store, "order2", message("w1"))
    assert inbox(store, "order2") == ["m1"]


# ---------------------------------------------------------------------------------------- holds, cancels, owners


def test_a_suspended_instance_is_cancelled_at_once(store: Store) -> None:
    """R26, D21: before all that it was handed while it was held, which is not run."""
    now = store.now()
    waiting(store, "i1", human("w1"), message("w2"), timer("w3", now + 10_000_000))
    store.suspend("i1", True)
    publish(store, "m1")
    fold(store)
    assert store.claim("a:1") is None
    store.deliver("i1", "cancel", "", "c1", b"{}")
    claim = claimed(store, instance="i1")
    assert [trigger.id for trigger in claim.triggers] == ["c1", "m1"]
    assert store.status("i1") == "active"


def test_a_suspended_instance_that_is_hosted_is_cancelled_as_well(store: Store) -> None:
    """R26: what its host has been handed already stays in its place."""
    deploy(store)
    start(store, "i1")
    claim = claimed(store, instance="i1")
    store.suspend("i1", True)
    store.deliver("i1", "cancel", "", "c1", b"{}")
    store.commit(commit_of(claim, arms=[human("w1")]))
    assert [trigger.id for trigger in claimed(store, instance="i1").triggers] == ["c1"]


def test_a_held_instance_is_cancelled_at_once_and_is_no_incident_any_more(store: Store) -> None:
    """N9, R26"""
    deploy(store)
    start(store, "i1")
    claim = claimed(store, instance="i1")
    store.hold("i1", claim.token, b"{}", b"{}")
    assert store.population().incidents == 1
    store.deliver("i1", "cancel", "", "c1", b"{}")
    assert store.population().incidents == 0
    claim = claimed(store, instance="i1")
    assert ([trigger.id for trigger in claim.triggers], claim.deaths, claim.suspect) == (
        ["c1", "start-i1"],
        0,
        False,
    )


def test_a_task_is_given_to_another_user_by_an_operator_and_nobody_wakes(store: Store) -> None:
    """H57: whoever has it, and whoever may; claims, unclaims and reassignments hydrate nothing."""
    waiting(store, "i1", human("w1", users=["ann"]))
    store.claim_task("i1/w1", "ann", ())
    store.reassign_task("i1/w1", "bob")
    with pytest.raises(TaskRefused):
        store.complete_task("i1/w1", "ann", (), (), "d1", b"{}")
    store.unclaim_task("i1/w1")
    store.reassign_task("i1/w1", "bob")
    assert store.claim("a:1") is None
    record = store.instance("i1")
    assert record is not None
    assert (record.epoch, record.resident) == (1, False)
    store.complete_task("i1/w1", "bob", (), (), "d2", b"{}", strict=True)
    assert inbox(store, "i1") == ["d2"]


def test_a_task_is_not_given_to_nobody_and_an_unknown_one_to_nobody_either(store: Store) -> None:
    waiting(store, "i1", human("w1"))
    with pytest.raises(TaskRefused):
        store.reassign_task("i1/w1", "")
    with pytest.raises(UnknownTask):
        store.reassign_task("i1/w9", "bob")


def test_verify_finds_and_mends_conversations(store: Store, bed: StoreBed) -> None:
    """H12"""
    if not bed.real:
        pytest.skip("the memory store has no indexes that could be wrong")
    from gobpm_ray.store.redis_store import RedisStore
    from gobpm_ray.store.verify import Verifier

    assert isinstance(store, RedisStore)
    deploy(store, "order", BEGIN)
    first = begun(store)
    conv, field = store.keys["conv"], b"order\x1e" + message_key("Reply", "A-1").encode()
    assert store.client.hgetall(conv) == {field: first.encode()}
    assert Verifier(store, meaning=False).verify().differences == []
    store.client.hdel(conv, field)
    store.client.hset(conv, "order\x1em\x1fReply\x1f=gone", "order-99")
    report = Verifier(store, meaning=False).verify(repair=True)
    assert [one.kind for one in report.differences] == ["conv", "conv"]
    assert report.left == 0
    assert store.client.hgetall(conv) == {field: first.encode()}
    dehydrate(store, first, outcome="completed")
    assert store.client.exists(conv) == 0


def test_verify_knows_the_conversations_of_messages_that_must_both_come(store: Store, bed: StoreBed) -> None:
    """H12"""
    if not bed.real:
        pytest.skip("the memory store has no indexes that could be wrong")
    from gobpm_ray.store.redis_store import RedisStore
    from gobpm_ray.store.verify import Verifier

    assert isinstance(store, RedisStore)
    deploy(store, "order", *TOGETHER)
    first = begun(store)
    assert set(store.client.hgetall(store.keys["conv"]).values()) == {first.encode()}
    assert Verifier(store, meaning=False).verify().differences == []
    store.client.hdel(store.keys["conv"], b"order\x1e" + message_key("Paid", "A-1").encode())
    assert Verifier(store, meaning=False).verify(repair=True).left == 0
    publish(store, "m2", name="Paid")
    assert results(store) == [("parked", 0, 0)]
