"""Jobs: fetched and locked, reported, lost, given back, tried again."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gobpm_ray.core.keys import job_key
from gobpm_ray.errors import LockLost, UnknownTask
from gobpm_ray.runtime.ports import ArmRow, JobView, Store
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import Verifier
from tests.support.stores import StoreBed, armed, claimed, commit_of, inbox, payload, timer, waiting

HOUR = 3_600_000


def job(wait: str = "1:Bill:0:1", topic: str = "bill", priority: int = 50, group: str = "", **inputs: object) -> ArmRow:
    row = json.dumps({"node": "Bill", "topic": topic, "inputs": inputs}).encode()
    return ArmRow(wait, "job", "Bill", key=job_key(topic, priority), group=group, touch=("t1",), row=row)


def fetch(store: Store, *topics: str, worker: str = "w", ms: int = HOUR, limit: int = 10) -> list[JobView]:
    return store.fetch_jobs(topics or ("bill",), worker, ms, limit)


def fail(store: Store, view: JobView, backoff_ms: int = 0, delivery: str = "f1", lock: str | None = None) -> bool:
    return store.retry_job(view.id, view.lock if lock is None else lock, delivery, backoff_ms, "no paper", b'{"e":"x"}')


def report(store: Store, view: JobView, verb: Any = "job", delivery: str = "d1", **values: object) -> bool:
    return store.report_job(view.id, verb, view.lock, delivery, payload(**values)).duplicate


def verified(store: Store) -> list[object]:
    return list(Verifier(store, meaning=False).verify().differences) if isinstance(store, RedisStore) else []


# ------------------------------------------------------------------------------------------------------------- fetching


def test_a_job_is_fetched_by_its_topic_once(store: Store) -> None:
    waiting(store, "i1", job(amount=5))
    assert fetch(store, "ship") == []
    (view,) = fetch(store, "ship", "bill", worker="w1")
    assert (view.id, view.process_id, view.process_version, view.failures) == ("i1/1:Bill:0:1", "order", 1, 0)
    assert json.loads(view.row)["inputs"] == {"amount": 5}
    assert fetch(store) == []
    (listed,) = store.tasks("job")
    assert listed.owner == "w1"
    assert verified(store) == []


def test_urgent_jobs_come_first_then_old_ones_and_never_more_than_asked_for(store: Store) -> None:
    waiting(store, "i1", job("1:Bill:0:1"))
    waiting(store, "i2", job("1:Bill:0:1", priority=90))
    waiting(store, "i3", job("1:Bill:0:1"))
    assert [view.id[:2] for view in fetch(store, limit=2)] == ["i2", "i1"]
    assert [view.id[:2] for view in fetch(store, limit=2)] == ["i3"]


def test_every_topic_has_its_share_and_one_is_not_the_beginning_of_another(store: Store) -> None:
    for number in range(4):
        waiting(store, f"i{number}", job(topic="bill"))
    waiting(store, "j", job(topic="bill more"))
    assert [view.id[:1] for view in fetch(store, "bill", "bill more", limit=2)] == ["i", "j"]
    assert fetch(store, "bil") == []


@pytest.mark.slow
def test_of_competing_workers_one_gets_a_job(store: Store) -> None:
    for number in range(40):
        waiting(store, f"i{number}", job())
    with ThreadPoolExecutor(8) as pool:
        got = [
            view.id for views in pool.map(lambda n: fetch(store, worker=f"w{n}", limit=5), range(8)) for view in views
        ]
    assert len(got) == len(set(got)) == 40


def test_a_sleeper_is_woken_by_a_job_of_its_topic_alone(store: Store) -> None:
    woken: list[bool] = []
    sleeper = threading.Thread(target=lambda: woken.append(store.wait_jobs(["bill"], 3.0)))
    sleeper.start()
    waiting(store, "i1", job(topic="ship"))
    time.sleep(0.05)
    assert sleeper.is_alive()
    waiting(store, "i2", job(topic="bill"))
    sleeper.join(2)
    assert woken == [True]
    assert not store.wait_jobs(["other"], 0.01)


def test_who_leaves_jobs_behind_wakes_the_next_sleeper(store: Store) -> None:
    waiting(store, "i1", job())
    waiting(store, "i2", job())
    assert store.wait_jobs(["bill"], 0)
    assert len(fetch(store, limit=1)) == 1
    assert store.wait_jobs(["bill"], 0)
    assert len(fetch(store, limit=1)) == 1
    assert not store.wait_jobs(["bill"], 0)


# ------------------------------------------------------------------------------------------------------------ reporting


@pytest.mark.parametrize("verb", ["job", "failed", "error"])
def test_a_report_ends_the_job_and_its_race(store: Store, verb: str) -> None:
    waiting(store, "i1", job(group="g"), timer("1:Late:0:1", store.now() + HOUR, group="g"))
    (view,) = fetch(store)
    assert not report(store, view, verb, paid=True)
    (trigger,) = claimed(store).triggers
    assert (trigger.kind, trigger.wait, json.loads(trigger.payload)) == (verb, "1:Bill:0:1", {"values": {"paid": True}})
    assert armed(store, "i1") == set()
    assert store.tasks("job") == []
    assert verified(store) == []


def test_the_same_report_again_is_a_duplicate_also_without_its_lock(store: Store) -> None:
    waiting(store, "i1", job())
    (view,) = fetch(store)
    assert not report(store, view)
    assert report(store, view)
    with pytest.raises(UnknownTask, match="i1/1:Bill:0:1"):
        report(store, view, delivery="d2")


def test_an_escalation_leaves_the_job_locked_and_its_race_armed(store: Store) -> None:
    waiting(store, "i1", job(group="g"), timer("1:Late:0:1", store.now() + HOUR, group="g"))
    (view,) = fetch(store)
    assert not report(store, view, "escalation")
    assert armed(store, "i1") == {"1:Bill:0:1", "1:Late:0:1"}
    assert inbox(store, "i1") == ["d1"]
    assert not report(store, view, delivery="d2")
    assert verified(store) == []


def test_a_worker_that_slept_past_its_lock_is_refused_and_the_job_is_fetched_again_once(
    bed: StoreBed, store: Store
) -> None:
    """C68."""
    waiting(store, "i1", job())
    (late,) = fetch(store, ms=30)
    bed.elapse(40)
    for attempt in (
        lambda: report(store, late),
        lambda: fail(store, late),
        lambda: store.extend_lock(late.id, late.lock, 9),
    ):
        with pytest.raises(LockLost, match="i1/1:Bill:0:1"):
            attempt()
    (view,) = fetch(store)
    assert view.lock != late.lock
    with pytest.raises(LockLost):
        report(store, late)
    with pytest.raises(LockLost):
        store.unlock_job(late.id, late.lock)
    assert fetch(store) == []
    assert inbox(store, "i1") == []
    assert not report(store, view)
    assert len(claimed(store).triggers) == 1


def test_a_lock_that_is_extended_lives_on(bed: StoreBed, store: Store) -> None:
    waiting(store, "i1", job())
    (view,) = fetch(store, ms=60)
    assert store.extend_lock(view.id, view.lock, HOUR) > view.until
    bed.elapse(70)
    assert fetch(store) == []
    assert not report(store, view)


def test_an_expired_lock_wakes_the_sleepers_by_the_holders_pass(bed: StoreBed, store: Store) -> None:
    waiting(store, "i1", job())
    assert store.wait_jobs(["bill"], 0)
    fetch(store, ms=30)
    assert store.wake_jobs(100) == 0
    bed.elapse(40)
    assert store.wake_jobs(100) == 1
    assert store.wait_jobs(["bill"], 0)
    assert store.tasks("job")[0].owner == ""
    assert verified(store) == []


def test_a_job_given_back_is_fetched_at_once_and_has_not_failed(store: Store) -> None:
    waiting(store, "i1", job())
    (view,) = fetch(store)
    store.unlock_job(view.id, view.lock)
    (again,) = fetch(store)
    assert again.failures == 0
    store.unlock_job(again.id, "")
    assert len(fetch(store)) == 1
    store.unlock_job("i1/1:Bill:0:1", "")
    store.unlock_job("i1/1:Bill:0:1", "")
    assert len(fetch(store)) == 1


# -------------------------------------------------------------------------------------------------------------- retries


def test_a_failed_attempt_waits_for_its_back_off_on_the_business_clock(store: Store) -> None:
    now = store.manual_clock(1_000_000)
    waiting(store, "i1", job())
    (view,) = fetch(store)
    assert fail(store, view, backoff_ms=HOUR)
    assert not fail(store, view, backoff_ms=HOUR)
    assert fetch(store) == []
    assert store.quiet().quiet
    assert store.quiet().next_deadline == now + HOUR
    assert verified(store) == []
    store.set_clock(now + HOUR)
    assert not store.quiet().quiet
    assert store.wake_jobs(10) == 1
    assert store.quiet().quiet
    (again,) = fetch(store)
    assert (again.failures, again.cause) == (1, "no paper")
    record = store.instance("i1")
    assert record is not None
    assert record.history[-1] == b'{"e":"x"}'
    assert not record.inbox


def test_without_a_back_off_it_is_fetched_at_once(store: Store) -> None:
    waiting(store, "i1", job())
    (view,) = fetch(store)
    assert fail(store, view)
    assert [again.failures for again in fetch(store)] == [1]
    assert verified(store) == []


def test_an_operator_may_fail_a_job_that_nobody_fetched(store: Store) -> None:
    waiting(store, "i1", job())
    (view,) = (view for view in store.tasks("job"))
    assert store.retry_job(view.id, "", "f1", HOUR, "no paper", b"{}")
    assert fetch(store) == []
    assert verified(store) == []
    store.unlock_job(view.id, "")
    assert store.report_job(view.id, "job", "", "d1", b"{}").instance_id == "i1"


# --------------------------------------------------------------------------------------------------------------- ending


def test_a_withdrawn_or_ended_job_leaves_nothing_behind(bed: StoreBed, store: Store) -> None:
    """D6."""
    waiting(store, "i1", job("1:Bill:0:1"), job("2:Bill:0:2"), job("3:Bill:0:3"))
    first, second, third = fetch(store, limit=3)
    fail(store, second, backoff_ms=HOUR)
    fail(store, third, delivery="f2")
    store.deliver("i1", "set", "", "s", b"{}")
    claim = claimed(store)
    store.commit(commit_of(claim, withdrawals=["1:Bill:0:1"]))
    with pytest.raises(UnknownTask):
        report(store, first)
    store.deliver("i1", "cancel", "", "c", b"{}")
    store.commit(commit_of(claimed(store), outcome="terminated"))
    assert fetch(store) == []
    assert bed.traces(store, "i1") == []
    assert verified(store) == []


def test_open_incidents_are_listed_over_all_instances_without_reading_them(store: Store) -> None:
    for name in ("i1", "i2", "i3"):
        waiting(store, name, ArmRow(f"1:{name}:!:1", "incident", name))
    rows = store.incidents()
    assert [(instance, wait) for _, instance, wait in rows] == [(n, f"1:{n}:!:1") for n in ("i1", "i2", "i3")]
    assert store.incidents(after_seq=rows[0][0], limit=1) == rows[1:2]


def test_verify_finds_and_mends_a_job_that_stands_nowhere_or_twice(store: Store) -> None:
    """H12, C70."""
    if not isinstance(store, RedisStore):
        pytest.skip("the memory store has no indexes that could be wrong")
    waiting(store, "i1", job("1:Bill:0:1"), job("2:Bill:0:2"))
    (view, _other) = fetch(store, limit=2)
    store.client.zrem(store.keys["joblocks"], view.id)
    store.client.zadd(store.keys["jobwait"], {"i1/2:Bill:0:2": 5, "i9/1:Bill:0:1": 7})
    found = Verifier(store, meaning=False).verify(repair=True)
    assert {one.kind for one in found.differences} == {"jobq", "jobwait"}
    assert found.left == 0
    assert verified(store) == []
    assert [again.id for again in fetch(store)] == [view.id]
