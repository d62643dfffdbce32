"""Who may write: claims, tokens, epochs, expiry, and every way a lease ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gobpm_ray.errors import LeaseLost
from gobpm_ray.runtime.ports import Claim, Store
from tests.support.stores import (
    StoreBed,
    armed,
    claimed,
    commit_of,
    dehydrate,
    deploy,
    human,
    inbox,
    payload,
    start,
    waiting,
    woken,
)

SHORT = {"lease_ttl_ms": 60, "lease_renew_ms": 20}


# -------------------------------------------------------------------------------------------------------------- claims


def test_nothing_ready_claims_nothing(store: Store) -> None:
    assert store.claim("a:1") is None
    waiting(store, "i1", human("w1"))
    assert store.claim("a:1") is None


def test_of_many_claimers_exactly_one_gets_the_instance(store: Store) -> None:
    """C59."""
    deploy(store)
    with ThreadPoolExecutor(6) as pool:
        for round_ in range(20):
            start(store, f"i{round_}")
            claims = list(pool.map(lambda n: store.claim(f"a{n}:1"), range(6)))
            (winner,) = (claim for claim in claims if claim is not None)
            assert winner.instance_id == f"i{round_}"
            assert [(instance, token) for instance, token, _ in store.leases()] == [(winner.instance_id, winner.token)]
            store.commit(commit_of(winner, outcome="completed"))


def test_the_longest_ready_instance_is_claimed_first(bed: StoreBed) -> None:
    store = bed.store()
    deploy(store)
    for instance in ("c", "a", "b"):
        start(store, instance)
        bed.elapse(2)
    assert [claimed(store).instance_id for _ in range(3)] == ["c", "a", "b"]


def test_every_claim_raises_the_epoch(store: Store) -> None:
    waiting(store, "i1", human("w1"), human("w2"))
    epochs = []
    for wait in ("w1", "w2"):
        store.deliver("i1", "task", wait, f"d-{wait}", payload())
        claim = claimed(store, instance="i1")
        epochs.append(claim.epoch)
        store.commit(commit_of(claim))
    assert epochs == [2, 3]


def test_a_claim_is_seen_among_the_leases(bed: StoreBed) -> None:
    store = bed.store(lease_ttl_ms=5_000, lease_renew_ms=1_000)
    deploy(store)
    start(store, "i1")
    claimed(store, "actor-7:x")
    ((instance, token, left),) = store.leases()
    assert (instance, token) == ("i1", "actor-7:x")
    assert 3_000 < left <= 5_000
    record = store.instance("i1")
    assert record is not None
    assert record.resident


def _wide(store: Store, touch: dict[str, tuple[str, ...]]) -> None:
    """An instance of a hundred tracks, with a task for each of `touch`."""
    parts = {"h": b"head", "s0": b"scope"} | {f"t{n}": f"track {n}".encode() for n in range(100)}
    deploy(store)
    start(store, "i1")
    dehydrate(store, "i1", *(replace(human(wait), touch=names) for wait, names in touch.items()), parts=parts)


def test_a_wake_of_a_wide_instance_gets_the_parts_that_it_touches(store: Store) -> None:
    """Design section 6: one of 1,000 parallel waits reads its own part, though its wait is gone by then."""
    _wide(store, {"w1": ("t1", "s0"), "w2": ("t2", "s0")})
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store, instance="i1")
    assert not claim.complete
    assert claim.parts == {"h": b"head", "s0": b"scope", "t1": b"track 1"}


def test_two_triggers_touch_the_parts_of_both(store: Store) -> None:
    _wide(store, {"w1": ("t1", "s0"), "w2": ("t2", "s0")})
    store.deliver("i1", "task", "w1", "d1", payload())
    store.deliver("i1", "task", "w2", "d2", payload())
    assert set(claimed(store).parts) == {"h", "s0", "t1", "t2"}


def test_a_trigger_for_the_instance_gets_every_part(store: Store) -> None:
    _wide(store, {"w1": ("t1", "s0")})
    store.deliver("i1", "task", "w1", "d1", payload())
    store.deliver("i1", "cancel", "", "d2", payload())
    claim = claimed(store)
    assert claim.complete
    assert len(claim.parts) == 102


def test_a_small_instance_comes_whole(store: Store) -> None:
    waiting(store, "i1", human("w1"), parts={"h": b"head", "s0": b"scope", "t1": b"1", "t2": b"2"})
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store)
    assert claim.complete
    assert claim.parts == {"h": b"head", "s0": b"scope", "t1": b"1", "t2": b"2"}


def test_load_gives_the_whole_instance_to_its_leaseholder(store: Store) -> None:
    _wide(store, {"w1": ("t1", "s0")})
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store, "a:1")
    whole = store.load("i1", "a:1")
    assert whole.complete
    assert len(whole.parts) == 102
    assert (whole.epoch, whole.version, whole.triggers) == (claim.epoch, claim.version, claim.triggers)
    with pytest.raises(LeaseLost, match="i1"):
        store.load("i1", "a:2")


def test_a_claim_hands_out_a_bounded_number_of_triggers(bed: StoreBed) -> None:
    store = bed.store(claim_triggers=3)
    waiting(store, "i1", *(human(f"w{n}") for n in range(5)))
    for n in range(5):
        store.deliver("i1", "task", f"w{n}", f"d{n}", payload())
    claim = claimed(store, "a:1")
    assert [trigger.id for trigger in claim.triggers] == ["d0", "d1", "d2"]
    assert claim.inbox == 5

    answer = store.commit(commit_of(claim, residency="keep"))
    assert (answer.kept, answer.inbox) == (True, 2)
    triggers, _ = store.fetch("i1", "a:1")
    assert [trigger.id for trigger in triggers] == ["d3", "d4"]


def test_fetch_gives_what_came_meanwhile_and_consumes_nothing(store: Store) -> None:
    waiting(store, "i1", human("w1"), human("w2"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claimed(store, "a:1")
    store.deliver("i1", "task", "w2", "d2", payload())
    for _ in range(2):
        triggers, now = store.fetch("i1", "a:1")
        assert [trigger.id for trigger in triggers] == ["d1", "d2"]
        assert abs(now - store.now()) < 5_000
    with pytest.raises(LeaseLost, match="i1"):
        store.fetch("i1", "a:2")


# ------------------------------------------------------------------------------------------------------------- fencing


def test_a_zombie_after_the_sweep_leaves_no_trace(bed: StoreBed) -> None:
    """C60, N8."""
    store = bed.store(**SHORT)
    waiting(store, "i1", human("w1"), human("w2"))
    store.deliver("i1", "task", "w1", "d1", payload())
    zombie = claimed(store, "a:1")
    bed.elapse(65)
    assert store.sweep() == 1
    before = store.instance("i1")
    with pytest.raises(LeaseLost, match="i1"):
        store.commit(
            commit_of(
                zombie,
                parts={"t1": b"zombie"},
                arms=[human("w9")],
                withdrawals=["w2"],
                history=[b"zombie"],
                facts=[b'{"fact": "zombie"}'],
                next_token="a:2",
            )
        )
    assert store.instance("i1") == before
    assert store.facts() == []
    assert store.leases() == []

    heir = claimed(store, "b:1")
    assert (heir.epoch, [trigger.id for trigger in heir.triggers]) == (zombie.epoch + 1, ["d1"])
    with pytest.raises(LeaseLost, match="i1"):
        store.commit(commit_of(zombie))
    assert store.commit(commit_of(heir)).version == zombie.version + 1


def test_an_expired_lease_is_lost_before_anyone_sweeps_it(bed: StoreBed) -> None:
    """C61, N8."""
    store = bed.store(**SHORT)
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    bed.elapse(65)
    before = store.instance("i1")
    with pytest.raises(LeaseLost, match="i1"):
        store.commit(commit_of(claim, parts={"h": b"late"}))
    with pytest.raises(LeaseLost, match="i1"):
        store.renew("i1", "a:1")
    with pytest.raises(LeaseLost, match="i1"):
        store.fetch("i1", "a:1")
    with pytest.raises(LeaseLost, match="i1"):
        store.load("i1", "a:1")
    assert store.instance("i1") == before
    assert store.sweep() == 1, "the refused renewal has not extended it"


def test_another_token_is_refused(store: Store) -> None:
    waiting(store, "i1", human("w1"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store, "a:1")
    with pytest.raises(LeaseLost, match="i1"):
        store.commit(commit_of(claim, token="b:1"))
    with pytest.raises(LeaseLost, match="i1"):
        store.renew("i1", "b:1")
    with pytest.raises(LeaseLost, match="i1"):
        store.abandon("i1", "b:1", 0)
    with pytest.raises(LeaseLost, match="nobody"):
        store.renew("nobody", "a:1")
    assert store.commit(commit_of(claim)).version == claim.version + 1


@pytest.mark.slow
def test_a_renewed_lease_lives_on(bed: StoreBed) -> None:
    store = bed.store(lease_ttl_ms=400, lease_renew_ms=100)
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    bed.elapse(250)
    assert store.renew("i1", "a:1") == (1, 0)
    bed.elapse(250)
    assert store.sweep() == 0
    assert store.commit(commit_of(claim)).version == 1


def test_renew_says_what_came_and_who_is_waiting_for_an_actor(store: Store) -> None:
    """Design section 3: a lost signal costs one heartbeat."""
    waiting(store, "i1", human("w1"), human("w2"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store, "a:1")
    store.commit(commit_of(claim, residency="keep"))
    assert store.renew("i1", "a:1") == (0, 0)
    store.deliver("i1", "task", "w2", "d2", payload())
    start(store, "i2")
    start(store, "i3")
    assert store.renew("i1", "a:1") == (1, 2)


def test_a_corpse_never_writes(store: Store) -> None:
    """R30: kill and wake, over and over; the inbox survives each death and is consumed once."""
    waiting(store, "i1", human("w1"))
    store.deliver("i1", "task", "w1", "d1", payload())
    for n in range(100):
        corpse = claimed(store, f"a{n}:1", "i1")
        assert store.release_dead(f"a{n}") == 1
        with pytest.raises(LeaseLost, match="i1"):
            store.commit(commit_of(corpse, parts={"h": b"corpse"}))
    heir = claimed(store, instance="i1")
    assert (heir.epoch, heir.parts["h"]) == (102, b"head")
    assert [trigger.id for trigger in heir.triggers] == ["d1"]


# -------------------------------------------------------------------------------------------------- how a lease ends


def test_the_sweep_returns_expired_leases_with_their_triggers(bed: StoreBed) -> None:
    """N9; C64: a lease that lives is not touched."""
    store = bed.store(**SHORT)
    for instance in ("i1", "i2", "i3"):
        waiting(store, instance, human("w1"))
    store.deliver("i1", "task", "w1", "d1", payload())
    store.deliver("i2", "task", "w1", "d2", payload())
    assert claimed(store).instance_id in ("i1", "i2")
    claimed(store)
    bed.elapse(65)
    store.deliver("i3", "task", "w1", "d3", payload())
    living = claimed(store, "b:1", "i3")

    assert store.sweep(limit=1) == 1
    assert store.sweep() == 1
    assert store.sweep() == 0
    assert woken(store) == {"i1": ["d1"], "i2": ["d2"]}
    assert store.commit(commit_of(living)).version == living.version + 1


def test_a_swept_instance_without_triggers_is_looked_at_again(bed: StoreBed) -> None:
    """N10: its actor may have died inside an effect whose intent is open, so somebody must come."""
    store = bed.store(**SHORT)
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    store.commit(commit_of(claim, residency="keep", parts={"h": b"head"}))
    bed.elapse(65)
    assert store.sweep() == 1
    again = claimed(store, "b:1", "i1")
    assert (again.triggers, again.complete, again.parts) == ((), True, {"h": b"head"})


def test_an_abandoned_lease_is_ready_again_after_the_back_off(bed: StoreBed) -> None:
    """D18, C66: with the same trigger, and not before."""
    store = bed.store()
    waiting(store, "i1", human("w1"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claimed(store, "a:1")
    store.abandon("i1", "a:1", 80)
    assert store.leases() == []
    assert store.claim("b:1") is None
    bed.elapse(85)
    again = claimed(store, "b:1", "i1")
    assert [trigger.id for trigger in again.triggers] == ["d1"]


def test_a_dead_actor_loses_its_leases_at_once_and_no_other_actor_does(store: Store) -> None:
    deploy(store)
    claims: dict[str, Claim] = {}
    for token in ("actor-1:x", "actor-1:y", "actor-10:x"):
        start(store, f"i-{token[:-2]}-{token[-1]}")
        claims[token] = claimed(store, token)
    assert store.release_dead("actor-1") == 2
    assert store.release_dead("actor-1") == 0
    assert [token for _, token, _ in store.leases()] == ["actor-10:x"]
    assert sorted(woken(store)) == ["i-actor-1-x", "i-actor-1-y"]
    with pytest.raises(LeaseLost, match="actor-1"):
        store.commit(commit_of(claims["actor-1:x"]))
    assert store.commit(commit_of(claims["actor-10:x"])).version == 1


def test_a_suspended_instance_is_not_ready_however_its_lease_ends(bed: StoreBed) -> None:
    """D21."""
    store = bed.store(**SHORT)
    deploy(store)
    for ending in ("sweep", "abandon", "death"):
        start(store, ending)
        claimed(store, f"{ending}:1", ending)
        store.suspend(ending, True)
    assert store.release_dead("death") == 1
    store.abandon("abandon", "abandon:1", 0)
    bed.elapse(65)
    assert store.sweep() == 1
    assert store.claim("b:1") is None
    for ending in ("sweep", "abandon", "death"):
        store.suspend(ending, False)
    assert len(woken(store)) == 3


# --------------------------------------------------------------------------------------------------- the instance bell


def test_a_trigger_rings_its_leaseholder_and_nobody_else(store: Store) -> None:
    waiting(store, "i1", human("w1"), human("w2"), human("w3"))
    waiting(store, "i2", human("w1"))
    for instance in ("i1", "i2"):
        store.deliver(instance, "task", "w1", f"d-{instance}", payload())
    claimed(store)
    claimed(store)
    assert not store.wait_instance_bell("i1", 0.01)
    store.deliver("i1", "task", "w2", "d2", payload())
    store.deliver("i1", "task", "w3", "d3", payload())
    assert not store.wait_instance_bell("i2", 0.01)
    assert store.wait_instance_bell("i1", 0.01)
    assert not store.wait_instance_bell("i1", 0.01), "one bit, popped"
    assert armed(store, "i1") == set()
    assert inbox(store, "i1") == ["d-i1", "d2", "d3"]


def test_a_sleeping_leaseholder_is_woken_by_the_bell(store: Store) -> None:
    waiting(store, "i1", human("w1"), human("w2"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claimed(store)
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(store.wait_instance_bell, "i1", 5.0)
        store.deliver("i1", "task", "w2", "d2", payload())
        assert heard.result(timeout=5.0)
