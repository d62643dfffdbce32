"""Jobs of an instance that is held: nobody fetches them, what a worker has already counts, and they come back (D21)."""

from __future__ import annotations

import json

import pytest

from gobpm_ray.runtime.ports import Store
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import Verifier
from tests.contract.test_store_jobs import HOUR, fail, fetch, job, report, verified
from tests.support.stores import StoreBed, armed, claimed, commit_of, dehydrate, start, waiting


def test_a_job_of_a_suspended_instance_is_not_fetched_and_comes_back_when_it_is_resumed(store: Store) -> None:
    """D21: at its place, before those that came later."""
    waiting(store, "i1", job())
    waiting(store, "i2", job())
    assert store.suspend("i1", True)
    assert verified(store) == []
    assert [view.id[:2] for view in fetch(store, limit=1)] == ["i2"]
    assert fetch(store) == []
    waiting(store, "i3", job())
    assert store.suspend("i1", False)
    assert verified(store) == []
    assert [view.id[:2] for view in fetch(store)] == ["i1", "i3"]
    assert fetch(store) == []


def test_a_resumed_instance_wakes_the_sleepers_of_its_jobs_topics(store: Store) -> None:
    """D21"""
    waiting(store, "i1", job(), job("1:Ship:0:2", topic="ship"))
    store.suspend("i1", True)
    assert store.wait_jobs(["bill", "ship"], 0)  # rung when they were armed
    while store.wait_jobs(["bill", "ship"], 0):
        pass
    store.suspend("i1", False)
    assert store.wait_jobs(["bill"], 0)
    assert store.wait_jobs(["ship"], 0)


def test_what_a_worker_says_of_a_job_of_a_suspended_instance_counts_when_it_is_resumed(store: Store) -> None:
    """D21: the work is done and is not done again, however long the hold lasts."""
    waiting(store, "i1", job())
    (view,) = fetch(store)
    store.suspend("i1", True)
    assert verified(store) == []
    assert store.extend_lock(view.id, view.lock, HOUR) > 0
    assert not report(store, view, paid=True)
    assert store.claim("a:1") is None
    assert armed(store, "i1") == set()
    store.suspend("i1", False)
    assert fetch(store) == []
    (trigger,) = claimed(store, instance="i1").triggers
    assert (trigger.kind, json.loads(trigger.payload)) == ("job", {"values": {"paid": True}})


def test_an_operator_completes_a_job_of_a_suspended_instance(store: Store) -> None:
    """D21"""
    waiting(store, "i1", job())
    store.suspend("i1", True)
    store.complete_task("i1/1:Bill:0:1", "", (), (), "d1", b"{}", strict=False)
    store.suspend("i1", False)
    assert [trigger.id for trigger in claimed(store, instance="i1").triggers] == ["d1"]


@pytest.mark.parametrize("way", ["unlocked", "lost", "failed", "failed for a while"])
def test_a_job_that_is_given_back_under_the_hold_waits_for_its_end(store: Store, bed: StoreBed, way: str) -> None:
    """D21: by its worker, by the end of its lock, to be tried again at once or later."""
    now = store.manual_clock(1_000_000)
    waiting(store, "i1", job())
    (view,) = fetch(store, ms=20 if way == "lost" else HOUR)
    store.suspend("i1", True)
    if way == "unlocked":
        store.unlock_job(view.id, view.lock)
    elif way == "lost":
        bed.elapse(25)
    else:
        fail(store, view, backoff_ms=0 if way == "failed" else HOUR)
    store.set_clock(now + HOUR)
    store.wake_jobs(10)
    assert fetch(store) == []
    assert verified(store) == []
    store.suspend("i1", False)
    assert verified(store) == []
    (again,) = fetch(store)
    assert again.failures == (1 if way.startswith("failed") else 0)


def test_a_failed_job_that_waits_for_its_next_attempt_waits_on_after_the_hold(store: Store) -> None:
    """D21: the hold makes it neither earlier nor twice."""
    now = store.manual_clock(1_000_000)
    waiting(store, "i1", job())
    (view,) = fetch(store)
    fail(store, view, backoff_ms=HOUR)
    store.suspend("i1", True)
    store.suspend("i1", False)
    assert fetch(store) == []
    assert verified(store) == []
    store.set_clock(now + HOUR)
    assert len(fetch(store)) == 1


def test_a_job_that_is_armed_under_the_hold_is_not_offered_before_its_end(store: Store) -> None:
    """D21: an instance that is suspended while it works commits what it does."""
    waiting(store, "other")  # deploys
    start(store, "i1")
    claim = claimed(store, instance="i1")
    store.suspend("i1", True)
    store.commit(commit_of(claim, arms=[job()]))
    assert fetch(store) == []
    assert len(store.tasks("job")) == 1
    assert verified(store) == []
    store.suspend("i1", False)
    assert len(fetch(store)) == 1


def test_a_job_of_an_instance_that_is_held_for_its_hosts_deaths_is_not_fetched(store: Store) -> None:
    """N9, D21"""
    waiting(store, "i1", job())
    store.deliver("i1", "set", "", "s1", b"{}")
    claim = claimed(store, instance="i1")
    store.hold("i1", claim.token, b'{"e":"incident"}', b"{}")
    assert fetch(store) == []
    assert verified(store) == []
    store.suspend("i1", False)
    assert len(fetch(store)) == 1


def test_a_cancel_of_a_suspended_instance_leaves_no_job_behind(store: Store) -> None:
    """D6, D21"""
    waiting(store, "i1", job())
    store.suspend("i1", True)
    store.deliver("i1", "cancel", "", "c1", b"{}")
    assert verified(store) == []
    dehydrate(store, "i1", outcome="terminated")
    assert (fetch(store), store.tasks("job"), verified(store)) == ([], [], [])


def test_verify_takes_a_held_instances_job_out_of_the_queue(store: Store) -> None:
    """H12: as an older release may have left it."""
    if not isinstance(store, RedisStore):
        pytest.skip("the memory store has no indexes that could be wrong")
    waiting(store, "i1", job())
    store.client.hset(store.keys.instance("i1"), "st", "s")
    (difference,) = Verifier(store, meaning=False).verify().differences
    assert difference.kind == "jobq"
    assert Verifier(store, meaning=False).verify(repair=True).left == 0
    assert fetch(store) == []
    store.suspend("i1", False)
    assert len(fetch(store)) == 1
