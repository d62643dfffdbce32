"""Human tasks and jobs: listed, claimed, completed, and refused in four distinct ways."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from gobpm_ray.errors import TaskRefused, UnknownTask
from gobpm_ray.runtime.ports import Accepted, ArmRow, Store
from tests.support.stores import (
    armed,
    claimed,
    dehydrate,
    deploy,
    human,
    inbox,
    message,
    payload,
    values_of,
    waiting,
)


def job(wait: str, **row: Any) -> ArmRow:
    return replace(human(wait, **row), kind="job")


def complete(
    store: Store,
    task_id: str,
    user: str = "",
    groups: tuple[str, ...] = (),
    delivery: str = "d1",
    *,
    strict: bool = False,
    **outputs: Any,
) -> Accepted:
    return store.complete_task(task_id, user, groups, outputs, delivery, payload(**outputs), strict=strict)


# --------------------------------------------------------------------------------------------------------------- lists


def test_an_armed_task_is_listed_as_its_row_says(store: Store) -> None:
    now = store.manual_clock(5_000)
    waiting(store, "i1", human("w1", name="Check invoice", priority=70), message("w2"))
    (view,) = store.tasks()
    assert (view.id, view.instance_id, view.process_id, view.wait) == ("i1/w1", "i1", "order", "w1")
    assert (view.kind, view.owner, view.created) == ("task", "", now)
    assert json.loads(view.row)["name"] == "Check invoice"
    assert store.task("i1/w1") == view
    assert store.task("i1/w2") is None
    assert store.task("i9/w1") is None


def test_tasks_are_listed_oldest_first_by_kind_and_instance(store: Store) -> None:
    waiting(store, "i1", human("w1"), job("w2"))
    waiting(store, "i2", human("w1"), human("w2"))
    waiting(store, "i1x", human("w1"))
    assert [view.id for view in store.tasks()] == ["i1/w1", "i2/w1", "i2/w2", "i1x/w1"]
    assert [view.id for view in store.tasks("job")] == ["i1/w2"]
    assert [view.id for view in store.tasks(instance_id="i2")] == ["i2/w1", "i2/w2"]
    assert [view.id for view in store.tasks(instance_id="i1")] == ["i1/w1"]
    assert [view.id for view in store.tasks(limit=2)] == ["i1/w1", "i2/w1"]
    record = store.instance("i2")
    assert record is not None
    seen = int(record.waits["w1"][7])
    assert [view.id for view in store.tasks(after_seq=seen, limit=1)] == ["i2/w2"]


# ---------------------------------------------------------------------------------------------------- claim and unclaim


def test_claims_do_not_wake_the_instance(store: Store) -> None:
    """H57."""
    waiting(store, "i1", human("w1"))
    before = store.instance("i1")
    store.claim_task("i1/w1", "ann", ())
    store.unclaim_task("i1/w1")
    store.claim_task("i1/w1", "bob", ())
    view = store.task("i1/w1")
    assert view is not None
    assert view.owner == "bob"
    assert store.instance("i1") == before
    assert store.claim("a:1") is None


def test_of_concurrent_claims_one_wins(store: Store) -> None:
    """H57."""
    waiting(store, "i1", human("w1"))

    def claim(user: str) -> str | None:
        try:
            store.claim_task("i1/w1", user, ())
        except TaskRefused:
            return None
        return user

    with ThreadPoolExecutor(6) as pool:
        (winner,) = (user for user in pool.map(claim, "abcdef") if user)
    view = store.task("i1/w1")
    assert view is not None
    assert view.owner == winner


def test_a_claimed_task_is_its_owners(store: Store) -> None:
    waiting(store, "i1", human("w1"))
    store.claim_task("i1/w1", "ann", ())
    store.claim_task("i1/w1", "ann", ())
    with pytest.raises(TaskRefused, match="claimed by another user"):
        store.claim_task("i1/w1", "bob", ())
    store.unclaim_task("i1/w1")
    store.claim_task("i1/w1", "bob", ())


def test_an_assigned_task_is_its_assignees_from_the_start(store: Store) -> None:
    waiting(store, "i1", human("w1", assignee="ann"))
    view = store.task("i1/w1")
    assert view is not None
    assert view.owner == "ann"
    with pytest.raises(TaskRefused, match="claimed by another user"):
        store.claim_task("i1/w1", "bob", ())
    complete(store, "i1/w1", "ann", strict=True)
    assert inbox(store, "i1") == ["d1"]


def test_an_assigned_task_can_be_given_to_another(store: Store) -> None:
    """H57, reassign: unclaim takes it from its assignee, claim gives it to whoever is eligible."""
    waiting(store, "i1", human("w1", assignee="ann"))
    store.unclaim_task("i1/w1")
    store.claim_task("i1/w1", "bob", ())
    view = store.task("i1/w1")
    assert view is not None
    assert view.owner == "bob"


@pytest.mark.parametrize(
    ("users", "groups", "user", "of", "eligible"),
    [
        ([], [], "ann", (), True),
        (["ann"], [], "ann", (), True),
        (["ann"], [], "bob", ("clerks",), False),
        ([], ["clerks"], "bob", ("clerks", "staff"), True),
        ([], ["clerks"], "bob", ("clerk",), False),
        (["ann"], ["clerks", "chiefs"], "bob", ("chiefs",), True),
        (["ann"], ["clerks"], "clerks", (), False),
    ],
)
def test_eligible_is_who_is_named_or_in_a_named_group(
    store: Store, users: list[str], groups: list[str], user: str, of: tuple[str, ...], eligible: bool
) -> None:
    waiting(store, "i1", human("w1", users=users, groups=groups))
    if eligible:
        store.claim_task("i1/w1", user, of)
        return
    with pytest.raises(TaskRefused, match="is not eligible"):
        store.claim_task("i1/w1", user, of)
    view = store.task("i1/w1")
    assert view is not None
    assert view.owner == ""


def test_nobody_claims_nothing(store: Store) -> None:
    waiting(store, "i1", human("w1"))
    with pytest.raises(TaskRefused, match="needs a user"):
        store.claim_task("i1/w1", "", ())
    with pytest.raises(UnknownTask, match="i1/w9"):
        store.claim_task("i1/w9", "ann", ())
    with pytest.raises(UnknownTask, match="i1/w9"):
        store.unclaim_task("i1/w9")


# ------------------------------------------------------------------------------------------------------------ complete


def test_a_completed_task_wakes_its_instance_with_the_outputs(store: Store) -> None:
    """H56 at the store."""
    waiting(store, "i1", human("w1", group="g"), message("w2", group="g"), human("w3"))
    accepted = complete(store, "i1/w1", "ann", approved=True)
    assert (accepted.id, accepted.duplicate, accepted.instance_id) == ("d1", False, "i1")
    assert armed(store, "i1") == {"w3"}, "with the race group"
    assert [view.id for view in store.tasks()] == ["i1/w3"]
    (trigger,) = claimed(store, instance="i1").triggers
    assert (trigger.id, trigger.kind, trigger.wait, trigger.seq) == ("d1", "task", "w1", accepted.seq)
    assert values_of(trigger) == {"approved": True}


def test_a_completed_job_is_a_job_trigger(store: Store) -> None:
    waiting(store, "i1", job("w1"))
    complete(store, "i1/w1", strict=True, n=1)
    (trigger,) = claimed(store, instance="i1").triggers
    assert (trigger.kind, trigger.wait) == ("job", "w1")


def test_a_wrong_completion_is_refused_in_four_distinct_ways_and_changes_nothing(store: Store) -> None:
    """H58."""
    row: dict[str, Any] = {"users": ["ann"], "groups": ["clerks"], "required": ["approved", "note"]}
    waiting(store, "i1", human("w1", **row), human("w2", **row))
    store.claim_task("i1/w2", "ann", ())
    before, tasks = store.instance("i1"), store.tasks()

    with pytest.raises(TaskRefused, match="must be claimed first"):
        complete(store, "i1/w1", "ann", strict=True, approved=True, note="")
    with pytest.raises(TaskRefused, match="claimed by another user"):
        complete(store, "i1/w2", "bob", ("clerks",), approved=True, note="")
    with pytest.raises(TaskRefused, match="is not eligible"):
        complete(store, "i1/w1", "eve", ("guests",), approved=True, note="")
    with pytest.raises(TaskRefused, match="needs output 'note'"):
        complete(store, "i1/w1", "ann", approved=True)

    assert (store.instance("i1"), store.tasks()) == (before, tasks)
    assert store.claim("a:1") is None
    # No refusal has used the delivery id up.
    assert not complete(store, "i1/w1", "ann", approved=True, note="", delivery="d1").duplicate


def test_an_owner_completes_strictly_and_anyone_eligible_does_not_need_to_claim(store: Store) -> None:
    waiting(store, "i1", human("w1"), human("w2"))
    store.claim_task("i1/w1", "ann", ())
    complete(store, "i1/w1", "ann", strict=True)
    complete(store, "i1/w2", "bob", delivery="d2")
    assert inbox(store, "i1") == ["d1", "d2"]


def test_an_operator_completes_what_belongs_to_others(store: Store) -> None:
    waiting(store, "i1", human("w1", users=["ann"]), human("w2", assignee="ann"), human("w3", users=["ann"]))
    store.claim_task("i1/w3", "ann", ())
    for wait in ("w1", "w2", "w3"):
        complete(store, f"i1/{wait}", strict=True, delivery=f"d-{wait}")
    assert inbox(store, "i1") == ["d-w1", "d-w2", "d-w3"]


def test_a_completed_task_is_unknown_except_to_its_own_completion(store: Store) -> None:
    """M55: the worker's retry is a duplicate, a second worker's completion is not."""
    waiting(store, "i1", human("w1"))
    complete(store, "i1/w1", "ann")
    again = complete(store, "i1/w1", "ann")
    assert (again.duplicate, again.instance_id) == (True, "i1")
    with pytest.raises(UnknownTask, match="i1/w1"):
        complete(store, "i1/w1", "bob", delivery="d2")
    assert inbox(store, "i1") == ["d1"]


def test_a_withdrawn_task_is_unknown(store: Store) -> None:
    waiting(store, "i1", human("w1", group="g"), message("w2", group="g"))
    store.deliver("i1", "message", "w2", "d0", payload())
    with pytest.raises(UnknownTask, match="already ended"):
        complete(store, "i1/w1", "ann")
    assert inbox(store, "i1") == ["d0"]


def test_concurrent_completions_satisfy_a_task_once(store: Store) -> None:
    """R23."""
    deploy(store)
    for n in range(15):
        waiting(store, f"i{n}", human("w1"))

        def finish(user: str, task: str = f"i{n}/w1") -> bool:
            try:
                complete(store, task, user, delivery=f"{task}-{user}")
            except UnknownTask:
                return False
            return True

        with ThreadPoolExecutor(3) as pool:
            assert sum(pool.map(finish, "abc")) == 1
        assert len(inbox(store, f"i{n}")) == 1
        dehydrate(store, f"i{n}", outcome="completed")


def test_an_owner_survives_a_wake_of_the_instance(store: Store) -> None:
    """H57, X8: the owner belongs to the task's row, not to whoever hosts the instance."""
    waiting(store, "i1", human("w1"), human("w2"))
    store.claim_task("i1/w1", "ann", ())
    store.deliver("i1", "task", "w2", "d2", payload())
    dehydrate(store, "i1", human("w3"))
    view = store.task("i1/w1")
    assert view is not None
    assert view.owner == "ann"
