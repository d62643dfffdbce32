"""Deadlines, start timers, the two clocks, and when nothing moves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest

from gobpm_ray.errors import InputError
from gobpm_ray.runtime.ports import ArmRow, DueRow, Store
from gobpm_ray.settings import Settings
from gobpm_ray.store.redis_store import RedisStore
from holders.timer import TimerHolder
from tests.support.stores import (
    StoreBed,
    armed,
    broadcast,
    claimed,
    commit_of,
    damage,
    dehydrate,
    deploy,
    fire_due,
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

T0 = 1_767_225_600_000


@pytest.fixture
def timed(store: Store) -> Store:
    """A store on a manual clock that stands at T0."""
    store.manual_clock(T0)
    return store


# -------------------------------------------------------------------------------------------------------------- clocks


def test_the_business_clock_is_the_stores_own_until_it_is_made_manual(bed: StoreBed) -> None:
    store = bed.store()
    before = store.now()
    bed.elapse(20)
    assert store.now() >= before + 20
    assert store.manual_clock(T0) == T0
    assert store.now() == T0
    bed.elapse(5)
    assert store.now() == T0
    assert store.manual_clock(T0 + 99) == T0, "there is one already"


def test_a_manual_clock_never_goes_back(timed: Store) -> None:
    assert timed.set_clock(T0 + 50) == T0 + 50
    assert timed.set_clock(T0 + 20) == T0 + 50
    assert timed.now() == T0 + 50


def test_a_clock_that_is_not_manual_cannot_be_set(store: Store) -> None:
    with pytest.raises(InputError, match="clock"):
        store.set_clock(T0)
    assert abs(store.now() - T0) > 1_000_000


def test_setting_the_clock_rings_the_holders(timed: Store) -> None:
    for bell in ("timer", "message", "task"):
        timed.wait_bell(bell, 0.01)
    timed.set_clock(T0 + 1)
    assert timed.wait_bell("timer", 0.01)
    assert timed.wait_bell("message", 0.01)
    assert timed.wait_bell("task", 0.01)


def test_leases_do_not_follow_the_manual_clock(timed: Store) -> None:
    """Design section 5: a week of business time ends no lease."""
    deploy(timed)
    start(timed, "i1")
    claim = claimed(timed)
    timed.set_clock(T0 + 7 * 86_400_000)
    assert timed.sweep() == 0
    assert timed.commit(commit_of(claim)).now == T0 + 7 * 86_400_000


# ----------------------------------------------------------------------------------------------------------- deadlines


def test_due_deadlines_come_earliest_first_in_bounded_batches(timed: Store) -> None:
    """D9."""
    waiting(timed, "i1", timer("w1", T0 + 30), timer("w2", T0 + 10))
    waiting(timed, "i2", timer("w1", T0 + 20), timer("w2", T0 + 90))
    assert timed.due(10).rows == ()
    assert timed.due(10).next_deadline == T0 + 10

    timed.set_clock(T0 + 30)
    due = timed.due(10)
    rows = (DueRow("i1", "w2", T0 + 10), DueRow("i2", "w1", T0 + 20), DueRow("i1", "w1", T0 + 30))
    assert due.rows == rows
    assert (due.now, due.next_deadline) == (T0 + 30, T0 + 90)
    assert timed.due(2).rows == rows[:2]


def test_a_due_timer_fires_once(timed: Store) -> None:
    """T36: two instances on one modelled timer, each by its own."""
    waiting(timed, "i1", timer("w1", T0 + 10))
    waiting(timed, "i2", timer("w1", T0 + 20))
    timed.set_clock(T0 + 10)
    rows = timed.due(10).rows
    assert timed.fire(rows) == 1
    assert timed.fire(rows) == 0
    assert armed(timed, "i1") == set()
    assert armed(timed, "i2") == {"w1"}
    (trigger,) = claimed(timed, instance="i1").triggers
    assert (trigger.kind, trigger.wait) == ("timer", "w1")
    assert timed.claim("a:1") is None
    timed.set_clock(T0 + 20)
    assert fire_due(timed) == 1
    assert list(woken(timed)) == ["i2"]


def test_concurrent_holders_fire_a_deadline_once(timed: Store) -> None:
    """R21, T42."""
    deploy(timed)
    arms = [timer(f"w{n}", T0 + 10) for n in range(50)]
    waiting(timed, "i1", *arms)
    timed.set_clock(T0 + 10)
    rows = timed.due(100).rows
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(timed.fire, [rows] * 4)) == 50
    assert len(inbox(timed, "i1")) == len(set(inbox(timed, "i1"))) == 50


def test_firing_is_checked_again_at_the_act(timed: Store) -> None:
    """A list of what was due is old by the time it is worked through."""
    waiting(timed, "i1", timer("w1", T0 + 10, group="g"), human("w2", group="g"))
    timed.set_clock(T0 + 10)
    rows = timed.due(10).rows
    timed.deliver("i1", "task", "w2", "d1", payload())
    assert timed.fire(rows) == 0, "the task has won"
    assert timed.fire([DueRow("i9", "w1", T0)]) == 0
    dehydrate(timed, "i1", timer("w3", T0 + 500))
    assert timed.fire([DueRow("i1", "w3", T0 + 500)]) == 0, "not due yet"
    assert armed(timed, "i1") == {"w3"}


@pytest.mark.parametrize("place", [0, 7, 24], ids=["first", "between", "in another call"])
def test_a_damaged_instance_holds_up_no_timer_of_another(
    timed: Store, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A79, H6: of twenty-five that are due together one cannot take its timer. The others fire, once; it is named,
    stays due, and fires when it has been mended."""
    ids = [f"i{n:02d}" for n in range(25)]
    for name in ids:
        waiting(timed, name, timer("w1", T0 + 10))
    timed.set_clock(T0 + 10)
    hurt = ids[place]
    mend = damage(timed, hurt)
    sound = [name for name in ids if name != hurt]

    assert timed.fire(timed.due(100).rows) == 24
    assert timed.fire(timed.due(100).rows) == 0

    assert sorted(woken(timed)) == sound
    if isinstance(timed, RedisStore):
        assert [row.instance_id for row in timed.due(100).rows] == [hurt]
        assert caplog.text.count(f"timer w1 of instance {hurt} cannot fire") == 1
    mend()
    timed.fire([DueRow(hurt, "w1", T0 + 10)])
    assert list(woken(timed)) == [hurt]


def test_a_record_that_is_gone_takes_its_deadline_with_it(timed: Store) -> None:
    """A79: nothing is left that could be mended; the others fire."""
    if not isinstance(timed, RedisStore):
        pytest.skip("in memory a deadline is a part of its record")
    waiting(timed, "i1", timer("w1", T0 + 10))
    waiting(timed, "i2", timer("w1", T0 + 10))
    timed.set_clock(T0 + 10)
    timed.client.delete(timed.keys.instance("i1"))
    assert timed.fire(timed.due(10).rows) == 1
    assert timed.due(10).rows == ()
    assert list(woken(timed)) == ["i2"]


def test_a_damaged_instance_hides_neither_start_timers_nor_what_is_due_behind_it(timed: Store) -> None:
    """A79, X12: more stuck deadlines than a batch of the holder has, and behind them one of an instance and one of a
    process; a pass ends although they stay due."""
    deploy(timed, "daily", ArmRow("s:0", "timer", "tick", deadline=T0 + 20, row=b"{}"))
    for n in range(3):
        waiting(timed, f"i{n}", timer("w1", T0 + 10))
    waiting(timed, "last", timer("w1", T0 + 30))
    timed.set_clock(T0 + 30)
    mends = [damage(timed, f"i{n}") for n in range(3)]
    holder = TimerHolder(timed, Settings())

    with mock.patch("holders.timer.BATCH", 2):
        outcome = holder.pass_once()

    assert (outcome.started, outcome.woken, outcome.more) == (1, 1, False)
    assert "last" in woken(timed)
    for mend in mends:
        mend()
    assert holder.pass_once().woken == 3


def test_a_kept_wait_keeps_its_deadline(timed: Store) -> None:
    """Promise 6, D13, T41: ten wakes do not move it, and a duration fires once."""
    waiting(timed, "i1", timer("w1", T0 + 1_000), *(human(f"t{n}") for n in range(10)))
    record = timed.instance("i1")
    assert record is not None
    stored = record.waits["w1"]
    for n in range(10):
        timed.set_clock(T0 + 50 * n)
        timed.deliver("i1", "task", f"t{n}", f"d{n}", payload())
        dehydrate(timed, "i1")
    record = timed.instance("i1")
    assert record is not None
    assert record.waits == {"w1": stored}
    timed.set_clock(T0 + 5_000)
    assert fire_due(timed) == 1
    for _ in range(3):
        timed.set_clock(timed.now() + 1_000)
        assert fire_due(timed) == 0


def test_an_earlier_deadline_rings_the_timer_holder(timed: Store) -> None:
    waiting(timed, "i1", timer("w1", T0 + 100))
    assert timed.wait_bell("timer", 0.01)
    waiting(timed, "i2", timer("w1", T0 + 50))
    assert timed.wait_bell("timer", 0.01), "else it would sleep past it"


# --------------------------------------------------------------------------------------------------------- start timers


def _start_timer(wait: str = "s1", deadline: int = T0 + 10, index: int = 0, text: str = "R/PT10S") -> ArmRow:
    row = f'{{"cycle": "{text}", "anchor": {T0}, "index": {index}}}'.encode()
    return timer(wait, deadline, node="Start_1", key=text, row=row, touch=())


def test_a_start_timer_starts_an_instance_and_arms_its_next_occurrence(timed: Store) -> None:
    """X12."""
    first, second = _start_timer(), _start_timer("s1#1", T0 + 20, 1)
    deploy(timed, "order", first)
    assert timed.start_timer_row("@order", "s1") == first.row
    timed.set_clock(T0 + 10)
    (row,) = timed.due(10).rows
    assert row == DueRow("@order", "s1", T0 + 10)
    assert timed.fire_start(row, "s1#1", T0 + 20, second.row)
    assert not timed.fire_start(row, "s1#1", T0 + 20, second.row), "once"

    claim = claimed(timed)
    assert (claim.process_id, claim.process_version) == ("order", 1)
    assert claim.instance_id.startswith("order-")
    (trigger,) = claim.triggers
    assert (trigger.kind, trigger.wait) == ("start", "Start_1")
    assert timed.start_timer_row("@order", "s1") is None
    assert timed.start_timer_row("@order", "s1#1") == second.row
    assert timed.due(10).next_deadline == T0 + 20
    timed.set_clock(T0 + 20)
    assert timed.fire_start(timed.due(10).rows[0], "", 0, b"")
    assert timed.due(10).next_deadline is None
    assert len(timed.instances()) == 2


def test_a_start_timer_that_is_not_due_starts_nothing(timed: Store) -> None:
    deploy(timed, "order", _start_timer())
    assert not timed.fire_start(DueRow("@order", "s1", T0 + 10), "", 0, b"")
    assert not timed.fire_start(DueRow("@order", "s9", T0), "", 0, b"")
    assert timed.claim("a:1") is None
    assert timed.due(10).next_deadline == T0 + 10


def test_an_occurrence_that_was_armed_anew_is_not_fired_by_an_old_row(timed: Store) -> None:
    """The row was read before a deployment changed the timer; the wait's id is the same."""
    deploy(timed, "order", _start_timer(), document=b"xml\n1")
    timed.set_clock(T0 + 10)
    (old,) = timed.due(10).rows
    deploy(timed, "order", _start_timer(deadline=T0 + 12, text="R/PT12S"), document=b"xml\n2")
    timed.set_clock(T0 + 12)
    assert not timed.fire_start(old, "s1#1", T0 + 20, b"{}")
    assert timed.fire_start(timed.due(10).rows[0], "s1#1", T0 + 24, b"{}")
    assert len(timed.instances()) == 1


def test_concurrent_holders_start_one_instance_for_an_occurrence(timed: Store) -> None:
    deploy(timed, "order", _start_timer())
    timed.set_clock(T0 + 10)
    (row,) = timed.due(10).rows
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda _: timed.fire_start(row, "s1#1", T0 + 20, b"{}"), range(4))) == 1
    assert len(timed.instances()) == 1


def test_the_same_file_deployed_again_keeps_the_running_deadline(timed: Store) -> None:
    """T44: the same document, and the same timer in a new document."""
    deploy(timed, "order", _start_timer(), document=b"xml\n1")
    timed.set_clock(T0 + 5)
    deploy(timed, "order", _start_timer(deadline=T0 + 15), document=b"xml\n1")
    assert timed.due(10).next_deadline == T0 + 10
    deploy(timed, "order", _start_timer(deadline=T0 + 15), document=b"xml\n2")
    assert timed.due(10).next_deadline == T0 + 10

    timed.set_clock(T0 + 10)
    assert timed.fire_start(timed.due(10).rows[0], "s1#1", T0 + 20, _start_timer("s1#1", T0 + 20, 1).row)
    deploy(timed, "order", _start_timer(deadline=T0 + 22), document=b"xml\n3")
    assert timed.due(10).next_deadline == T0 + 20, "also when it has fired in between"
    assert claimed(timed).process_version == 2


def test_a_changed_start_timer_is_armed_anew(timed: Store) -> None:
    deploy(timed, "order", _start_timer(), document=b"xml\n1")
    deploy(timed, "order", _start_timer(deadline=T0 + 60, text="R/PT60S"), document=b"xml\n2")
    assert timed.due(10).next_deadline == T0 + 60
    timed.set_clock(T0 + 60)
    assert [row.deadline for row in timed.due(10).rows] == [T0 + 60], "the older version's is withdrawn"
    deploy(timed, "order", document=b"xml\n3")
    assert timed.due(10).rows == ()


# --------------------------------------------------------------------------------------------------------------- quiet


def _is_quiet(store: Store) -> bool:
    return store.quiet().quiet


def test_an_empty_store_is_quiet(timed: Store) -> None:
    quiet = timed.quiet()
    assert (quiet.quiet, quiet.now, quiet.next_deadline) == (True, T0, None)


def test_quiet_means_that_nothing_moves(timed: Store) -> None:
    """Design section 5: pending, due, ready, inboxes, busy leases, one after the other."""
    publish(timed, "m1")
    assert not _is_quiet(timed), "pending"
    fold(timed)
    assert _is_quiet(timed), "parked"
    deploy(timed)
    start(timed, "i1")
    assert not _is_quiet(timed), "ready"
    claim = claimed(timed, "a:1")
    assert not _is_quiet(timed), "claimed"
    timed.commit(commit_of(claim, residency="keep", arms=[timer("w1", T0 + 10), human("w2")]))
    assert not _is_quiet(timed), "at work in its actor"
    claim = timed.load("i1", "a:1")
    assert timed.commit(commit_of(claim, residency="either")).kept
    assert _is_quiet(timed), "resident, and merely waiting"
    assert timed.quiet().next_deadline == T0 + 10

    timed.deliver("i1", "task", "w2", "d1", payload())
    assert not _is_quiet(timed), "its inbox"
    claim = timed.load("i1", "a:1")
    assert timed.commit(commit_of(claim, residency="either")).kept
    assert _is_quiet(timed)
    timed.set_clock(T0 + 10)
    assert not _is_quiet(timed), "due"
    fire_due(timed)
    assert not _is_quiet(timed)
    claim = timed.load("i1", "a:1")
    timed.commit(commit_of(claim, outcome="completed"))
    assert _is_quiet(timed)


def test_a_suspended_instance_does_not_keep_the_engine_awake(timed: Store) -> None:
    waiting(timed, "i1", human("w1"))
    timed.suspend("i1", True)
    timed.deliver("i1", "task", "w1", "d1", payload())
    assert _is_quiet(timed)
    timed.suspend("i1", False)
    assert not _is_quiet(timed)


def test_a_failed_wake_in_its_back_off_is_not_quiet(timed: Store) -> None:
    deploy(timed)
    start(timed, "i1")
    claimed(timed, "a:1")
    timed.abandon("i1", "a:1", 10_000)
    assert not _is_quiet(timed)


def test_a_broadcast_half_done_is_not_quiet(timed: Store) -> None:
    for n in range(3):
        waiting(timed, f"i{n}", signal("w1"))
        timed.suspend(f"i{n}", True)
    seq = broadcast(timed, "s1").seq
    assert timed.route(seq, 2).result == "partial"
    assert not _is_quiet(timed)
    while timed.route(seq, 2).result == "partial":
        pass
    assert _is_quiet(timed)


def test_time_jumps_from_deadline_to_deadline(timed: Store) -> None:
    """`advance`: quiet, next deadline, fire, and so on until nothing is armed."""
    deploy(timed)
    waiting(timed, "i1", timer("w1", T0 + 3_600_000), timer("w2", T0 + 7_200_000), message("w3"))
    fired = []
    while (quiet := timed.quiet()).next_deadline is not None:
        assert quiet.quiet
        timed.set_clock(quiet.next_deadline)
        assert fire_due(timed) == 1
        fired.append(timed.now() - T0)
        dehydrate(timed, "i1")
    assert fired == [3_600_000, 7_200_000]
    assert armed(timed, "i1") == {"w3"}
