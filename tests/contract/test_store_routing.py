"""Accepted rows and messages: who gets one, who does not, and which start an instance."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.runtime.ports import Store
from tests.support.stores import (
    StoreBed,
    broadcast,
    claimed,
    commit_of,
    dehydrate,
    deploy,
    fold,
    inbox,
    message,
    payload,
    publish,
    signal,
    start,
    values_of,
    waiting,
    woken,
)


def results(store: Store, limit: int = 100) -> list[str]:
    return [routed.result for routed in fold(store, limit)]


# -------------------------------------------------------------------------------------------------------- pending rows


def test_a_published_row_is_pending_as_it_was_accepted(store: Store) -> None:
    now = store.manual_clock(7_000)
    accepted = store.publish("m1", "message", message_key("Reply", 5), "Reply", payload(n=1), 500)
    store.publish("s1", "signal", signal_key("Alarm"), "Alarm", payload(n=2), 500)
    first, second = store.pending(0, 10)
    assert (first.seq, first.id, first.kind, first.key, first.name) == (
        accepted.seq,
        "m1",
        "message",
        message_key("Reply", 5),
        "Reply",
    )
    assert (first.payload, first.accepted, first.expires) == (payload(n=1), now, now + 500)
    assert abs(first.accepted_live - second.accepted_live) < 5_000
    assert first.accepted_live > 1_600_000_000_000, "the store's own time, whatever the manual clock says"
    assert (second.kind, second.expires) == ("signal", 0)


def test_a_pass_walks_pending_rows_by_seq(store: Store) -> None:
    """H3: a strictly rising cursor and a bounded page."""
    seqs = [publish(store, f"m{n}", key=n).seq for n in range(5)]
    assert seqs == sorted(set(seqs))
    assert [row.seq for row in store.pending(0, 3)] == seqs[:3]
    assert [row.seq for row in store.pending(seqs[2], 3)] == seqs[3:]
    assert store.pending(seqs[-1], 3) == []


def test_publishing_rings_the_message_bell(store: Store) -> None:
    assert not store.wait_bell("message", 0.01)
    publish(store, "m1")
    publish(store, "m2")
    assert store.wait_bell("message", 0.01)
    assert not store.wait_bell("message", 0.01), "one bit"


def test_a_folded_row_is_gone(store: Store) -> None:
    waiting(store, "i1", message("w1", repeat=True))
    seq = publish(store, "m1").seq
    assert store.route(seq, 10).result == "delivered"
    assert store.route(seq, 10).result == "gone"
    assert store.route(seq + 1_000, 10).result == "gone"
    assert inbox(store, "i1") == ["m1"]


def test_two_folders_fold_a_row_once(store: Store) -> None:
    """Exactly-once never depends on the order lease."""
    waiting(store, "i1", message("w1", repeat=True))
    rows = [publish(store, f"m{n}").seq for n in range(20)]
    with ThreadPoolExecutor(4) as pool:
        folded = list(pool.map(lambda seq: store.route(seq, 10).result, rows * 3))
    assert folded.count("delivered") == 20
    assert folded.count("gone") == 40
    assert sorted(inbox(store, "i1")) == sorted(f"m{n}" for n in range(20))


def test_one_holder_of_a_kind_has_the_order_lease(bed: StoreBed) -> None:
    store = bed.store()
    assert store.order_lease("message", "h1", 60)
    assert store.order_lease("message", "h1", 60), "renewed"
    assert not store.order_lease("message", "h2", 60)
    assert store.order_lease("timer", "h2", 60), "another kind"
    bed.elapse(65)
    assert store.order_lease("message", "h2", 60)
    assert not store.order_lease("message", "h1", 60)


# ------------------------------------------------------------------------------------------------------------ messages


def test_a_message_wakes_the_instance_that_waits_for_its_key(store: Store) -> None:
    waiting(store, "i1", message("w1"))
    accepted = publish(store, "m1", n=3)
    (routed,) = fold(store)
    assert (routed.result, routed.woken, routed.started) == ("delivered", 1, 0)
    claim = claimed(store, instance="i1")
    (trigger,) = claim.triggers
    assert (trigger.id, trigger.kind, trigger.wait, trigger.seq) == ("m1", "message", "w1", accepted.seq)
    assert trigger.key == message_key("Reply", "A-1")
    assert trigger.expires > store.now(), "or a returned message would live for ever"
    assert values_of(trigger) == {"n": 3}
    assert store.population().parked == 0


def test_a_message_for_another_conversation_touches_nobody(store: Store) -> None:
    """M48, D4: a wrong key never wakes an instance."""
    waiting(store, "i1", message("w1", key="A-1"))
    before = store.instance("i1")
    publish(store, "m1", key="B-2")
    publish(store, "m2", key="A-1", name="Other")
    publish(store, "m3", key=None)
    publish(store, "m4", key="A")
    publish(store, "m5", key="A-1x")
    assert results(store) == ["parked"] * 5
    assert store.instance("i1") == before
    assert store.claim("a:1") is None
    assert store.population().parked == 5


def test_kinds_never_cross(store: Store) -> None:
    """N2: a signal of the same name is no message."""
    waiting(store, "i1", message("w1", key=None, name="X"))
    waiting(store, "i2", signal("w1", name="X"))
    broadcast(store, "s1", "X")
    fold(store)
    assert (inbox(store, "i1"), inbox(store, "i2")) == ([], ["s1"])


def test_a_message_reaches_one_instance_of_each_process_that_waits(store: Store) -> None:
    """M52: who arms later does not get a taken one."""
    deploy(store, "order")
    deploy(store, "bill")
    waiting(store, "o1", message("w1"), process="order")
    waiting(store, "o2", message("w1"), process="order")
    waiting(store, "b1", message("w1"), process="bill")
    publish(store, "m1")
    (routed,) = fold(store)
    assert (routed.result, routed.woken) == ("delivered", 2)
    assert (inbox(store, "o1"), inbox(store, "o2"), inbox(store, "b1")) == (["m1"], [], ["m1"])

    woken(store)
    deploy(store, "ship")
    waiting(store, "s1", message("w1"), process="ship")
    assert inbox(store, "s1") == []


def test_the_oldest_instance_comes_first(bed: StoreBed) -> None:
    """Oldest by start, not by who armed first."""
    store = bed.store()
    deploy(store)
    start(store, "i1")
    bed.elapse(2)
    start(store, "i2")
    first, second = claimed(store, instance="i1"), claimed(store, instance="i2")
    store.commit(commit_of(second, arms=[message("w1")]))
    store.commit(commit_of(first, arms=[message("w1")]))
    publish(store, "m1")
    fold(store)
    assert (inbox(store, "i1"), inbox(store, "i2")) == (["m1"], [])


def test_in_an_instance_the_innermost_scope_comes_first_then_the_oldest_wait(store: Store) -> None:
    """Design section 7, route."""
    arms = [message("w1", depth=0), message("w2", depth=2), message("w3", depth=2), message("w4", depth=1)]
    waiting(store, "i1", *arms)
    for n in range(4):
        publish(store, f"m{n}")
    fold(store)
    assert [trigger.wait for trigger in claimed(store, instance="i1").triggers] == ["w2", "w3", "w4", "w1"]


def test_a_suspended_instance_is_given_its_message(store: Store) -> None:
    """D21: it waits, so the message is its own; it takes it when it is resumed."""
    waiting(store, "i1", message("w1"))
    store.suspend("i1", True)
    publish(store, "m1")
    assert results(store) == ["delivered"]
    assert store.claim("a:1") is None
    store.suspend("i1", False)
    assert woken(store) == {"i1": ["m1"]}


# -------------------------------------------------------------------------------------------------------------- starts


def test_a_message_starts_an_instance_of_the_newest_version(store: Store) -> None:
    deploy(store, "order", message("s1", key=None, node="Start_1"), document=b"xml\n1")
    deploy(store, "order", message("s1", key=None, node="Start_2"), document=b"xml\n2")
    accepted = publish(store, "m1", key="A-1", n=1)
    (routed,) = fold(store)
    assert (routed.result, routed.woken, routed.started) == ("delivered", 0, 1)
    claim = claimed(store)
    assert (claim.instance_id, claim.process_id, claim.process_version) == (f"order-{accepted.seq}", "order", 2)
    (trigger,) = claim.triggers
    # The start event's node travels as the trigger's wait: the store does not open the payload.
    assert (trigger.id, trigger.kind, trigger.wait) == ("m1", "start", "Start_2")
    assert values_of(trigger) == {"n": 1}


def test_a_start_event_with_a_key_of_its_own_takes_only_that_key(store: Store) -> None:
    deploy(store, "order", message("s1", key="A-1"))
    publish(store, "m1", key="B-2")
    publish(store, "m2", key="A-1")
    assert results(store) == ["parked", "delivered"]


def test_a_start_event_is_not_used_up(store: Store) -> None:
    deploy(store, "order", message("s1", key=None))
    for n in range(3):
        publish(store, f"m{n}", key=n)
    assert results(store) == ["delivered"] * 3
    assert len(woken(store)) == 3


def test_a_seen_key_wakes_and_an_unseen_one_starts(store: Store) -> None:
    """M50: when the conversation ended, the key starts a new one."""
    deploy(store, "order", message("s1", key=None))
    waiting(store, "i1", message("w1"), process="order")
    publish(store, "m1", key="A-1")
    (routed,) = fold(store)
    assert (routed.woken, routed.started) == (1, 0)
    publish(store, "m2", key="B-2")
    (routed,) = fold(store)
    assert (routed.woken, routed.started) == (0, 1)

    for _ in range(2):
        dehydrate(store, outcome="completed")
    publish(store, "m3", key="A-1")
    (routed,) = fold(store)
    assert (routed.woken, routed.started) == (0, 1)


def test_two_matching_start_events_of_a_process_start_one_instance(store: Store) -> None:
    """M52: one instance per process id."""
    deploy(store, "order", message("s1", key=None, node="Start_1"), message("s2", key="A-1", node="Start_2"))
    deploy(store, "bill", message("s1", key=None))
    publish(store, "m1", key="A-1")
    (routed,) = fold(store)
    assert routed.started == 2
    assert len(store.instances()) == 2


def test_a_newer_version_without_the_start_event_is_not_started(store: Store) -> None:
    deploy(store, "order", message("s1", key=None), document=b"xml\n1")
    deploy(store, "order", document=b"xml\n2")
    publish(store, "m1")
    assert results(store) == ["parked"]
