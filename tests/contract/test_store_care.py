"""Dead letters, limits, silent deaths, dropped wakes: what the stores do so that nothing ends silently."""

from __future__ import annotations

import pytest

from gobpm_ray.checkpoint import rows
from gobpm_ray.core.keys import message_key
from gobpm_ray.core.step import HistoryEntry
from gobpm_ray.errors import InputError, LeaseLost, LimitReached, UnknownDelivery
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Claim, Store
from gobpm_ray.store.redis_store import RedisStore
from tests.support.stores import (
    DAY,
    StoreBed,
    broadcast,
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
    signal,
    start,
    timer,
    waiting,
    woken,
)

# --- dead letters


def test_a_row_that_cannot_be_folded_becomes_a_dead_letter_with_its_reason(store: Store) -> None:
    """H6: at once and visibly; folded by nobody afterwards."""
    seq = publish(store, "m-1", text="hello").seq
    assert store.fail(seq, "its key\nhas no form")
    assert store.pending(0, 10) == []
    assert store.route(seq, 10).result == "gone"
    (letter,) = store.dead()
    assert (letter.id, letter.kind, letter.name, letter.reason) == ("m-1", "message", "Reply", "its key has no form")
    assert letter.payload == payload(text="hello")
    assert letter.key == message_key("Reply", "A-1")
    assert store.population().dead == 1


def test_a_row_fails_once(store: Store) -> None:
    seq = publish(store, "m-1").seq
    assert store.fail(seq, "wrong")
    assert not store.fail(seq, "wrong again")
    assert not store.fail(99_999, "never accepted")
    assert len(store.dead()) == 1


def test_a_broadcast_that_fails_half_way_leaves_no_progress(store: Store) -> None:
    for number in range(3):
        waiting(store, f"i{number}", signal("w"))
    seq = broadcast(store, "s-1").seq
    assert store.route(seq, 1).result == "partial"
    assert store.fail(seq, "enough")
    assert [letter.kind for letter in store.dead()] == ["signal"]
    assert store.replay("s-1", "s-1~1", 0).seq > seq
    assert sum(routed.woken for routed in fold(store)) == 2, "the first one has taken it already"


def test_dead_letters_are_listed_newest_first(bed: StoreBed) -> None:
    """X15: also those that expired while they were parked."""
    store = bed.store()
    store.manual_clock(1_000_000)
    for number in range(3):
        publish(store, f"m-{number}", number, ttl=10)
    fold(store)
    store.set_clock(1_000_100)
    store.expire(100)
    store.fail(publish(store, "m-9").seq, "wrong")
    letters = store.dead()
    assert letters[0].id == "m-9"
    assert {letter.id for letter in letters[1:]} == {"m-0", "m-1", "m-2"}
    assert {letter.reason for letter in letters[1:]} == {"expired"}
    assert {(letter.accepted, letter.at) for letter in letters[1:]} == {(1_000_000, 1_000_100)}
    assert [letter.id for letter in store.dead(1)] == ["m-9"]


def test_a_replayed_letter_is_a_delivery_of_its_own(store: Store) -> None:
    """X15: accepted again under a new id; the old one is remembered still."""
    waiting(store, "i1", message("w"))
    store.fail(publish(store, "m-1", text="late").seq, "wrong")
    accepted = store.replay("m-1", "m-1~1", DAY)
    assert (accepted.id, accepted.duplicate) == ("m-1~1", False)
    assert store.dead() == []
    assert publish(store, "m-1").duplicate
    assert publish(store, "m-1~1").duplicate
    fold(store)
    assert woken(store) == {"i1": ["m-1~1"]}


def test_a_replay_of_nothing_or_to_a_known_id_changes_nothing(store: Store) -> None:
    store.fail(publish(store, "m-1").seq, "wrong")
    publish(store, "m-2")
    with pytest.raises(UnknownDelivery, match="m-7"):
        store.replay("m-7", "m-7~1", DAY)
    with pytest.raises(InputError, match="accepted before"):
        store.replay("m-1", "m-2", DAY)
    assert [letter.id for letter in store.dead()] == ["m-1"]


def test_a_dropped_letter_is_gone(store: Store) -> None:
    for number in range(2):
        store.fail(publish(store, f"m-{number}").seq, "wrong")
    store.drop_dead("m-0")
    assert [letter.id for letter in store.dead()] == ["m-1"]
    with pytest.raises(UnknownDelivery, match="m-0"):
        store.drop_dead("m-0")


def test_a_row_whose_bytes_are_damaged_is_set_aside_and_blocks_nobody(store: Store) -> None:
    """H6: one such row would otherwise end every pass before it began."""
    if not isinstance(store, RedisStore):
        pytest.skip("the memory store holds values, not bytes")
    bad = publish(store, "m-1").seq
    publish(store, "m-2")
    store.client.hset(store.keys["in"], bad, b"garbage")
    assert [row.id for row in store.pending(0, 10)] == ["m-2"]
    (letter,) = store.dead()
    assert letter.payload == b"garbage"
    assert "damaged" in letter.reason


# --- limits


def test_a_payload_that_is_too_large_is_refused_by_its_size(bed: StoreBed) -> None:
    """Backpressure: on every way in, and nothing is stored."""
    store = bed.store(max_payload=100)
    deploy(store)
    waiting(store, "i1", human("w"))
    large = payload(x="y" * 100)
    for accept in (
        lambda: store.start("order", 0, "big", "d-1", "", large),
        lambda: store.publish("d-2", "message", message_key("Reply"), "Reply", large, DAY),
        lambda: store.deliver("i1", "set", "", "d-3", large),
        lambda: store.complete_task("i1/w", "", (), (), "d-4", large),
    ):
        with pytest.raises(LimitReached, match=r"bytes, the limit is 100 \(max_payload\)"):
            accept()
    assert store.instance("big") is None
    assert store.pending(0, 10) == []
    assert inbox(store, "i1") == []
    assert not store.complete_task("i1/w", "", (), (), "d-4", payload()).duplicate


def test_too_many_pending_rows_refuse_the_next_one(bed: StoreBed) -> None:
    """Backpressure: a clear refusal; a duplicate is still answered, and room is room again."""
    store = bed.store(max_pending=2)
    publish(store, "m-1")
    broadcast(store, "s-1")
    with pytest.raises(LimitReached, match=r"2 accepted rows are not folded \(limit: max_pending\)"):
        publish(store, "m-2")
    assert publish(store, "m-1").duplicate
    fold(store)
    assert not publish(store, "m-2").duplicate


def test_too_many_ready_instances_refuse_the_next_start(bed: StoreBed) -> None:
    store = bed.store(max_pending=2)
    deploy(store)
    start(store, "i1")
    with pytest.raises(LimitReached, match="2 instances are ready"):
        store.start_many([("order", 0, f"j{n}", f"d{n}", "", payload()) for n in range(3)])
    assert store.instance("j0") is not None
    assert store.instance("j1") is None
    assert start(store, "i1").duplicate
    claimed(store)
    assert not start(store, "i2").duplicate


def test_a_full_inbox_refuses_operators_but_a_cancel(bed: StoreBed) -> None:
    store = bed.store(max_inbox=2)
    waiting(store, "i1", timer("w", 5))
    for number in range(2):
        store.deliver("i1", "set", "", f"d-{number}", payload())
    with pytest.raises(LimitReached, match="2 triggers wait in its inbox"):
        store.deliver("i1", "set", "", "d-2", payload())
    assert store.deliver("i1", "set", "", "d-1", payload()).duplicate
    store.deliver("i1", "cancel", "", "d-3", payload())
    assert inbox(store, "i1") == ["d-0", "d-1", "d-3"]


def test_a_message_for_a_full_inbox_stays_pending(bed: StoreBed) -> None:
    """Not lost and not forced in: it waits at its place, and goes in when there is room."""
    store = bed.store(max_inbox=2)
    waiting(store, "i1", message("w", repeat=True))
    for number in range(3):
        publish(store, f"m-{number}")
    assert [routed.result for routed in fold(store)] == ["delivered", "delivered", "full"]
    assert [row.id for row in store.pending(0, 10)] == ["m-2"]
    store.commit(commit_of(claimed(store)))
    assert [routed.result for routed in fold(store)] == ["delivered"]
    assert inbox(store, "i1") == ["m-2"]


# --- silent deaths


def die(bed: StoreBed, store: Store, claim: Claim, how: str) -> None:
    """The host of the claim ends without a word."""
    if how == "killed":
        store.release_dead(claim.token.partition(":")[0])
    else:
        bed.elapse(60)
        store.sweep()


@pytest.mark.parametrize("how", ["killed", "expired"])
def test_deaths_count_once_real_work_had_begun(bed: StoreBed, how: str) -> None:
    """N9, C63: a renewal or an open intent says so; a commit in between makes good again."""
    store = bed.store(lease_ttl_ms=50, lease_renew_ms=10)
    deploy(store)
    start(store, "i1")
    first = claimed(store, "a:1")
    assert (first.deaths, first.suspect) == (0, False)
    die(bed, store, first, how)
    second = claimed(store, "b:1")
    assert (second.deaths, second.suspect) == (0, True), "it may never have begun"
    store.renew("i1", "b:1")
    die(bed, store, second, how)
    third = claimed(store, "c:1")
    assert (third.deaths, third.suspect) == (1, True)
    kept = store.commit(commit_of(third, residency="keep"))
    die(bed, store, third, how)
    fourth = claimed(store, "d:1")
    assert (fourth.deaths, fourth.suspect) == (1, True), "its intent was open; what had been before is made good"
    store.commit(commit_of(fourth, version=kept.version))
    store.deliver("i1", "set", "", "s", payload())
    assert not claimed(store).suspect


def test_a_resident_that_merely_waits_is_not_blamed_for_its_host(store: Store) -> None:
    """Silent deaths count only in work: a node that goes down takes many idle residents with it."""
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    store.renew("i1", "a:1")
    assert store.commit(commit_of(claim, residency="either", arms=[message("w")])).kept
    store.release_dead("a")
    again = claimed(store)
    assert (again.deaths, again.suspect) == (0, False)


def test_a_failed_wake_is_no_silent_death(store: Store) -> None:
    """D18: a host that gives back says why."""
    deploy(store)
    start(store, "i1")
    claimed(store, "a:1")
    store.renew("i1", "a:1")
    store.release_dead("a")
    assert claimed(store, "b:1").suspect
    store.abandon("i1", "b:1", 0)
    assert not claimed(store, "c:1").suspect


def held(store: Store) -> None:
    deploy(store)
    start(store, "i1")
    claimed(store, "a:1")
    entry = rows.history_entry(HistoryEntry("incident", 7, "", "three hosts died"))
    store.hold("i1", "a:1", entry, b'{"fact": "Incident"}')


def test_a_held_instance_keeps_its_triggers_until_somebody_resumes_it(store: Store) -> None:
    """C63, N9: an incident in its history, never a silent terminal."""
    held(store)
    record = store.instance("i1")
    assert record is not None
    assert (record.status, record.resident, record.held_at > 0) == ("suspended", False, True)
    assert [rows.read_history_entry(entry).detail for entry in record.history] == ["three hosts died"]
    assert inbox(store, "i1") == ["start-i1"]
    assert store.population().incidents == 1
    assert store.claim("b:1") is None
    assert store.suspend("i1", False)
    record = store.instance("i1")
    assert record is not None
    assert record.held_at == 0
    assert store.population().incidents == 0
    claim = claimed(store, instance="i1")
    assert (claim.deaths, claim.suspect) == (0, False)
    assert [trigger.id for trigger in claim.triggers] == ["start-i1"]


def test_a_resumed_instance_is_looked_at_even_if_nothing_has_come(store: Store) -> None:
    """N10: an effect of the dead hosts may be open."""
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    store.commit(commit_of(claim, residency="keep"))
    store.hold("i1", "a:1", b"{}", b"{}")
    assert inbox(store, "i1") == []
    store.suspend("i1", False)
    claimed(store, instance="i1")


def test_only_the_leaseholder_holds(store: Store) -> None:
    """N8."""
    deploy(store)
    start(store, "i1")
    claimed(store, "a:1")
    with pytest.raises(LeaseLost):
        store.hold("i1", "b:1", b"{}", b"{}")
    assert store.instance("i1").history == ()  # type: ignore[union-attr]


def test_other_instances_are_not_affected_by_a_held_one(store: Store) -> None:
    """C64."""
    held(store)
    start(store, "i2")
    dehydrate(store, "i2", timer("w", 9_000_000_000_000))
    assert store.instance("i2").status == "active"  # type: ignore[union-attr]


# --- dropped wakes


def drop_wake(store: Store, instance: str) -> None:
    """What no engine does: the instance has triggers and is not ready."""
    if isinstance(store, MemoryStore):
        store._unready(instance)
    else:
        assert isinstance(store, RedisStore)
        store.client.zrem(store.keys["ready"], instance)


def walk(store: Store, limit: int = 1_000) -> int:
    cursor, repaired = store.reconcile("", limit)
    while cursor:
        cursor, more = store.reconcile(cursor, limit)
        repaired += more
    return repaired


def test_a_dropped_wake_is_found_by_the_walk(store: Store) -> None:
    """C69: and nothing else is touched."""
    waiting(store, "quiet", timer("w", 9_000_000_000_000))
    waiting(store, "held", timer("w", 9_000_000_000_000))
    store.deliver("held", "set", "", "d-1", payload())
    store.suspend("held", True)
    start(store, "leased")
    claimed(store, instance="leased")
    start(store, "dropped")
    start(store, "ready")
    drop_wake(store, "dropped")
    assert walk(store) == 1
    assert walk(store) == 0
    assert set(woken(store)) == {"dropped", "ready"}


def test_the_walk_goes_page_by_page_and_ends(store: Store) -> None:
    """C69: bounded pages with a cursor that another may take up."""
    deploy(store)
    for number in range(60):
        start(store, f"i{number}")
        drop_wake(store, f"i{number}")
    assert walk(store, 7) == 60


# --- signals


def test_counts_add_up_over_processes(store: Store) -> None:
    """N12."""
    store.count({"fenced": 1, "claims": 10})
    store.count({"claims": 5})
    assert {name: int(value) for name, value in store.values("signals").items()} == {"fenced": 1, "claims": 15}


def test_readiness_is_the_populations(bed: StoreBed) -> None:
    store = bed.store()
    assert store.readiness() == (0, 0)
    deploy(store)
    start(store, "i1")
    bed.elapse(20)
    ready, oldest = store.readiness()
    assert ready == 1
    assert oldest >= 20
