"""The one commit: everything of a step or nothing, once, and what becomes of the lease afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.errors import BrokenInvariant, LeaseLost
from gobpm_ray.runtime.ports import CommitResult, SendRow, Store
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
    payload,
    publish,
    start,
    waiting,
    woken,
)

# ------------------------------------------------------------------------------------------------------ what it writes


def test_a_commit_writes_its_parts_and_removes_the_ended_ones(store: Store) -> None:
    waiting(store, "i1", human("w1"), parts={"h": b"1", "s0": b"1", "t1": b"1", "t2": b"1"})
    store.deliver("i1", "task", "w1", "d1", payload())
    dehydrate(store, "i1", parts={"h": b"2", "t3": b"2"}, removed=["t1"])
    record = store.instance("i1")
    assert record is not None
    assert record.parts == {"h": b"2", "s0": b"1", "t2": b"1", "t3": b"2"}
    assert record.version == 2


def test_a_part_that_was_changed_and_then_removed_is_gone(store: Store) -> None:
    waiting(store, "i1", parts={"h": b"1", "t1": b"1"}, removed=["t1"])
    record = store.instance("i1")
    assert record is not None
    assert record.parts == {"h": b"1"}


def test_parts_and_payloads_are_any_bytes(store: Store) -> None:
    """Separators of the store's own rows included: nothing that a user stores may forge a boundary."""
    awkward = bytes(range(256)) * 3
    waiting(store, "i1", human("w1"), parts={"h": awkward})
    trigger_payload = b'{"values": {"text": "a\x1eb\x1fc\\n"}}'
    store.deliver("i1", "task", "w1", "d1", trigger_payload)
    claim = claimed(store, instance="i1")
    assert claim.parts["h"] == awkward
    assert claim.triggers[0].payload == trigger_payload
    publish(store, "m1")
    store.publish("m2", "message", message_key("Reply", "A-1"), "Reply", trigger_payload, 1_000_000)
    assert [row.payload for row in store.pending(0, 10)][1] == trigger_payload


def test_consumed_triggers_are_gone_and_later_ones_stay(store: Store) -> None:
    waiting(store, "i1", human("w1"), human("w2"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store, instance="i1")
    store.deliver("i1", "task", "w2", "d2", payload())
    answer = store.commit(commit_of(claim))
    assert (answer.kept, answer.inbox) == (False, 1)
    assert inbox(store, "i1") == ["d2"]


def test_a_trigger_that_came_before_the_release_makes_it_ready_again(store: Store) -> None:
    """C67, R20, D15."""
    waiting(store, "i1", human("w1"), human("w2"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store, instance="i1")
    store.deliver("i1", "task", "w2", "d2", payload())
    store.commit(commit_of(claim))
    assert woken(store) == {"i1": ["d2"]}


def test_a_release_that_consumed_nothing_comes_back_with_the_same_trigger(store: Store) -> None:
    """C66."""
    waiting(store, "i1", human("w1"))
    store.deliver("i1", "task", "w1", "d1", payload())
    dehydrate(store, "i1", consumed=[])
    assert woken(store) == {"i1": ["d1"]}


@pytest.mark.parametrize("named", [["d9"], ["d1", "d9"], ["d2"], ["d2", "d1"], ["d1", "d2", "d3"]])
def test_a_commit_that_names_triggers_that_are_not_there_is_refused_whole(store: Store, named: list[str]) -> None:
    """C65: and the right commit then succeeds."""
    waiting(store, "i1", human("w1"), human("w2"), human("w3"))
    store.deliver("i1", "task", "w1", "d1", payload())
    store.deliver("i1", "task", "w2", "d2", payload())
    claim = claimed(store, instance="i1")
    before, leases = store.instance("i1"), [token for _, token, _ in store.leases()]

    wrong = commit_of(
        claim,
        consumed=named,
        parts={"h": b"wrong"},
        arms=[human("w9"), message("m9")],
        withdrawals=["w3"],
        sends=[SendRow("s1", "message", message_key("Out"), "Out", payload(), 1_000)],
        history=[b"wrong"],
        facts=[b'{"fact": "wrong"}'],
        outcome="completed",
    )
    with pytest.raises(BrokenInvariant, match="triggers that are not there"):
        store.commit(wrong)
    assert store.instance("i1") == before
    assert [token for _, token, _ in store.leases()] == leases
    assert store.pending(0, 10) == []
    assert store.facts() == []

    assert store.commit(commit_of(claim, parts={"h": b"right"})).version == claim.version + 1
    assert inbox(store, "i1") == []


def test_a_commit_from_an_older_version_is_refused(store: Store) -> None:
    waiting(store, "i1", human("w1"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store, instance="i1")
    store.commit(commit_of(claim, residency="keep", consumed=[]))
    before = store.instance("i1")
    with pytest.raises(LeaseLost, match="version"):
        store.commit(commit_of(claim, parts={"h": b"stale"}))
    assert store.instance("i1") == before


def test_the_history_is_trimmed_from_its_old_end(bed: StoreBed) -> None:
    store = bed.store(history_limit=5)
    waiting(store, "i1", human("w1"), history=[b"1", b"2", b"3"])
    store.deliver("i1", "task", "w1", "d1", payload())
    dehydrate(store, "i1", history=[b"4", b"5", b"6", b"7"])
    record = store.instance("i1")
    assert record is not None
    assert record.history == (b"3", b"4", b"5", b"6", b"7")


# --------------------------------------------------------------------------------------------------- sends and returns


def test_what_a_step_sends_is_accepted_in_its_commit(store: Store) -> None:
    """Promise 3: a throw is an accept, at its place in the order."""
    now = store.manual_clock(50_000)
    deploy(store)
    before = publish(store, "m0")
    start(store, "i1")
    sends = [
        SendRow("i1:1:Throw:1", "message", message_key("Out", 5), "Out", payload(n=1), 700),
        SendRow("i1:2:Throw:1", "signal", signal_key("Alarm"), "Alarm", payload(n=2), 0),
    ]
    assert store.wait_bell("message", 0.01)
    dehydrate(store, "i1", sends=sends)
    assert store.wait_bell("message", 0.01)
    after = publish(store, "m9")

    rows = store.pending(0, 10)
    assert [row.id for row in rows] == ["m0", "i1:1:Throw:1", "i1:2:Throw:1", "m9"]
    assert before.seq < rows[1].seq < rows[2].seq < after.seq
    assert (rows[1].kind, rows[1].key, rows[1].name, rows[1].payload) == (
        "message",
        "m\x1fOut\x1f=5",
        "Out",
        payload(n=1),
    )
    assert (rows[1].accepted, rows[1].expires) == (now, now + 700)
    assert (rows[2].kind, rows[2].expires) == ("signal", 0)


def test_a_returned_message_goes_back_to_its_place(store: Store) -> None:
    """R: overtaken by an earlier trigger of one inbox; M53: before whatever was accepted later."""
    waiting(store, "i1", human("w1"), message("w2"))
    publish(store, "m1", n=1)
    fold(store)
    publish(store, "m2", n=2)
    claim = claimed(store, instance="i1")
    (trigger,) = claim.triggers
    store.wait_bell("message", 0.01)
    store.commit(commit_of(claim, returned=[trigger]))
    assert store.wait_bell("message", 0.01)

    rows = store.pending(0, 10)
    assert [(row.id, row.seq) for row in rows] == [("m1", trigger.seq), ("m2", rows[1].seq)]
    assert (rows[0].key, rows[0].name, rows[0].payload) == (message_key("Reply", "A-1"), "Reply", payload(n=1))
    assert rows[0].expires == trigger.expires
    waiting(store, "i2", message("w1"))
    assert [routed.result for routed in fold(store)] == ["delivered", "parked"]
    assert inbox(store, "i2") == ["m1"]


# ---------------------------------------------------------------------------------------------------- once, repeatedly


def _same(first: CommitResult, again: CommitResult) -> bool:
    def what(result: CommitResult) -> tuple[object, ...]:
        following = result.next
        claim = following and (following.instance_id, following.token, following.epoch, following.triggers)
        return result.kept, result.version, result.inbox, claim

    return what(first) == what(again)


@pytest.mark.parametrize("residency", ["keep", "release"])
def test_the_same_commit_again_answers_the_same_and_changes_nothing(store: Store, residency: str) -> None:
    """A reply that was lost on the way is asked for again."""
    waiting(store, "i1", human("w1"))
    store.deliver("i1", "task", "w1", "d1", payload())
    commit = commit_of(
        claimed(store, instance="i1"),
        residency=residency,
        parts={"h": b"2"},
        arms=[message("w2")],
        sends=[SendRow("s1", "signal", signal_key("Alarm"), "Alarm", payload(), 0)],
        history=[b"line"],
        facts=[b'{"fact": "once"}'],
    )
    first = store.commit(commit)
    record, rows = store.instance("i1"), store.pending(0, 10)
    assert _same(first, store.commit(commit))
    assert store.instance("i1") == record
    assert store.pending(0, 10) == rows
    assert len(store.facts()) == 1


def test_the_same_commit_again_returns_the_same_next_claim(store: Store) -> None:
    """Design section 7: else the instance claimed by the lost reply would wait for the sweep."""
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    start(store, "i2")
    start(store, "i3")
    commit = commit_of(claim, next_token="a:2")
    first = store.commit(commit)
    again = store.commit(commit)
    assert first.next is not None
    assert first.next.instance_id == "i2"
    assert _same(first, again)
    assert [token for _, token, _ in store.leases()] == ["a:2"]
    assert store.commit(commit_of(first.next)).version == 1


def test_a_commit_is_answered_again_after_somebody_elses(store: Store) -> None:
    """The lease that the lost reply has claimed is known by its token, and goes to the actor that asks again."""
    waiting(store, "i1", human("w1"), human("w2"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store, "a:1", "i1")
    start(store, "i2")
    commit = commit_of(claim, next_token="a:2")
    first = store.commit(commit)
    store.deliver("i1", "task", "w2", "d2", payload())
    dehydrate(store, "i1")
    again = store.commit(commit)
    assert again.next is not None
    assert _same(first, again)
    record = store.instance("i1")
    assert record is not None
    assert record.version == claim.version + 2


def test_the_commit_of_an_ended_instance_can_be_asked_again(store: Store) -> None:
    deploy(store)
    start(store, "i1")
    commit = commit_of(claimed(store), outcome="completed", parts={"h": b"end"})
    assert _same(store.commit(commit), store.commit(commit))
    with pytest.raises(LeaseLost):
        store.commit(replace(commit, commit_id="another", version=1, consumed=[]))


# -------------------------------------------------------------------------------------------------- what happens next


def test_a_freed_actor_gets_the_next_ready_instance_in_the_same_call(bed: StoreBed) -> None:
    store = bed.store()
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    for name in ("i3", "i2"):
        start(store, name)
        bed.elapse(2)
    answer = store.commit(commit_of(claim, next_token="a:2"))
    assert answer.next is not None
    assert (answer.next.instance_id, answer.next.token) == ("i3", "a:2")
    assert [trigger.id for trigger in answer.next.triggers] == ["start-i3"]
    last = store.commit(commit_of(answer.next, next_token="a:3", outcome="completed")).next
    assert last is not None
    assert store.commit(commit_of(last, next_token="a:4")).next is None


def test_a_commit_that_keeps_its_lease_claims_nothing(store: Store) -> None:
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    start(store, "i2")
    answer = store.commit(commit_of(claim, residency="keep", next_token="a:2"))
    assert (answer.kept, answer.next) == (True, None)
    assert list(woken(store)) == ["i2"]


@pytest.mark.slow
def test_a_commit_that_keeps_its_lease_renews_it(bed: StoreBed) -> None:
    store = bed.store(lease_ttl_ms=400, lease_renew_ms=100)
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    bed.elapse(250)
    store.commit(commit_of(claim, residency="keep"))
    bed.elapse(250)
    assert store.sweep() == 0
    assert store.renew("i1", "a:1") == (0, 0)


def test_a_resident_that_merely_waits_stays_while_nobody_needs_its_actor(store: Store) -> None:
    """Design section 3: `either` is decided by the store, in the commit."""
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    answer = store.commit(commit_of(claim, residency="either", arms=[human("w1"), human("w2")]))
    assert answer.kept

    store.deliver("i1", "task", "w1", "d1", payload())
    start(store, "i2")
    again = store.load("i1", "a:1")
    answer = store.commit(commit_of(again, residency="either", next_token="a:2"))
    assert not answer.kept
    assert answer.next is not None
    assert answer.next.instance_id == "i2"


def test_a_resident_that_merely_waits_goes_when_there_are_too_many(bed: StoreBed) -> None:
    store = bed.store(max_resident=1)
    deploy(store)
    start(store, "i1")
    start(store, "i2")
    claims = [claimed(store), claimed(store)]
    assert not store.commit(commit_of(claims[0], residency="either")).kept
    assert store.commit(commit_of(claims[1], residency="either")).kept


def test_a_trigger_that_came_meanwhile_is_taken_by_the_resident(store: Store) -> None:
    waiting(store, "i1", human("w1"), human("w2"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store, "a:1")
    store.deliver("i1", "task", "w2", "d2", payload())
    answer = store.commit(commit_of(claim, residency="either"))
    assert (answer.kept, answer.inbox) == (True, 1)
    assert [trigger.id for trigger in store.fetch("i1", "a:1")[0]] == ["d2"]
