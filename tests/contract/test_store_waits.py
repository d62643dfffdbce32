"""Waits of an instance: armed, raced, and gone with their indexes when they end or the instance does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from gobpm_ray.core.keys import message_key
from gobpm_ray.errors import InputError
from gobpm_ray.runtime.ports import Store
from tests.support.stores import (
    StoreBed,
    armed,
    claimed,
    commit_of,
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
    timer,
    values_of,
    waiting,
)

# --------------------------------------------------------------------------------------------------------------- waits


def test_waits_are_armed_and_withdrawn_with_all_their_indexes(bed: StoreBed) -> None:
    """D6: timer, message, signal, task, job and incident leave nothing behind."""
    store = bed.store()
    now = store.manual_clock(1_000)
    job, incident = replace(human("wj"), kind="job"), replace(human("wi"), kind="incident", row=b"")
    waiting(
        store, "i1", timer("wt", now + 10), message("wm"), signal("ws"), human("wu"), job, incident, parts={"h": b"1"}
    )
    assert armed(store, "i1") == {"wt", "wm", "ws", "wu", "wj", "wi"}
    assert store.population().incidents == 1
    assert [view.wait for view in store.tasks("job")] == ["wj"]

    store.deliver("i1", "set", "", "d1", payload())
    dehydrate(store, "i1", withdrawals=["wt", "wm", "ws", "wu", "wj", "wi", "unknown"])
    assert armed(store, "i1") == set()
    assert [trace for trace in bed.traces(store, "i1") if not trace.startswith("live:")] == []
    assert (store.tasks("task"), store.tasks("job"), store.population().incidents) == ([], [], 0)
    assert store.quiet().next_deadline is None


def test_a_record_tells_each_wait_as_it_was_armed(store: Store) -> None:
    waiting(store, "i1", message("w1", key=7, group="g1", depth=2), timer("w2", 5_000), signal("w3", repeat=True))
    record = store.instance("i1")
    assert record is not None
    kind, node, key, deadline, group, mode, depth, seq = record.waits["w1"]
    assert (kind, node, key, deadline) == ("message", "Catch_1", message_key("Reply", 7), "0")
    assert (group, mode, depth) == ("g1", "once", "2")
    assert record.waits["w2"][:4] == ("timer", "Timer_1", "", "5000")
    assert record.waits["w3"][5] == "repeat"
    assert int(seq) < int(record.waits["w2"][7]) < int(record.waits["w3"][7])


def test_one_of_a_race_group_withdraws_the_others_at_delivery(bed: StoreBed) -> None:
    """D5, D13: whatever kind they are of; another group and a wait without one stay."""
    store = bed.store()
    now = store.manual_clock(1_000)
    waiting(
        store,
        "i1",
        human("w1", group="g1"),
        timer("w2", now, group="g1"),
        message("w3", group="g1"),
        signal("w4", group="g1"),
        human("w5", group="g2"),
        human("w6"),
    )
    store.deliver("i1", "task", "w1", "d1", payload())
    assert armed(store, "i1") == {"w5", "w6"}
    assert store.due(10).rows == ()
    publish(store, "m1")
    assert [routed.result for routed in fold(store)] == ["parked"]
    assert [view.wait for view in store.tasks()] == ["w5", "w6"]
    assert inbox(store, "i1") == ["d1"]


def test_a_withdrawn_wait_leaves_its_race_group_to_the_others(store: Store) -> None:
    waiting(store, "i1", human("w1", group="g"), human("w2", group="g"), human("w3", group="g"))
    store.deliver("i1", "set", "", "d1", payload())
    dehydrate(store, "i1", withdrawals=["w1"])
    store.deliver("i1", "task", "w2", "d2", payload())
    assert armed(store, "i1") == set()


def test_a_repeat_wait_stays_armed(store: Store) -> None:
    """Non-interrupting boundaries: each trigger is delivered, and none ends the activity's own wait."""
    waiting(store, "i1", human("w1", group="g"), message("w2", repeat=True))
    publish(store, "m1")
    publish(store, "m2")
    assert [routed.result for routed in fold(store)] == ["delivered", "delivered"]
    assert armed(store, "i1") == {"w1", "w2"}
    assert inbox(store, "i1") == ["m1", "m2"]


def test_of_two_arms_fired_together_one_wins(store: Store) -> None:
    """R22, R29, D15: the loser is told so, and nothing is left armed."""
    deploy(store)
    with ThreadPoolExecutor(4) as pool:
        for n in range(40):
            name = f"i{n}"
            waiting(store, name, human("w1", group="g"), human("w2", group="g"))

            def fire(wait: str, name: str = name) -> bool:
                try:
                    store.deliver(name, "task", wait, f"{name}-{wait}", payload())
                except InputError:
                    return False
                return True

            assert sorted(pool.map(fire, ("w1", "w2"))) == [False, True]
            assert armed(store, name) == set()
            assert len(inbox(store, name)) == 1
            dehydrate(store, name)


# ----------------------------------------------------------------------------------------------------------- the end


def test_an_ended_instance_leaves_its_record_and_nothing_else(bed: StoreBed) -> None:
    """D6, R26: no wait, no index entry, no part of a track, no lease."""
    store = bed.store()
    now = store.manual_clock(1_000)
    waiting(
        store,
        "leaver",
        timer("w1", now + 10),
        message("w2", repeat=True),
        signal("w3"),
        human("w4", group="g"),
        human("w5", group="g"),
    )
    store.deliver("leaver", "cancel", "", "d1", payload())
    claim = claimed(store, instance="leaver")
    parts = {"h": b"end", "s0": b"result"}
    store.commit(commit_of(claim, outcome="terminated", parts=parts, history=[b"ended"], removed=["t1"]))

    assert bed.traces(store, "leaver") == []
    record = store.instance("leaver")
    assert record is not None
    assert (record.status, record.resident, record.waits, record.inbox) == ("terminated", False, {}, ())
    assert record.parts == {"h": b"end", "s0": b"result"}
    assert record.history == (b"ended",)
    assert store.status("leaver") == "terminated"
    assert store.instances(ended=False) == []
    assert [name for _, name in store.instances(ended=True)] == ["leaver"]


def test_a_cancelled_instance_is_not_revived_by_a_later_timer(store: Store) -> None:
    """R26."""
    now = store.manual_clock(1_000)
    waiting(store, "i1", timer("w1", now + 10))
    assert store.due(10).rows == ()
    store.set_clock(now + 10)
    due = store.due(10).rows
    store.deliver("i1", "cancel", "", "d1", payload())
    dehydrate(store, "i1", outcome="terminated")
    assert store.fire(due) == 0
    assert fire_due(store) == 0
    assert store.claim("a:1") is None
    assert store.status("i1") == "terminated"


def test_messages_that_an_ended_instance_leaves_unread_are_for_others(store: Store) -> None:
    waiting(store, "i1", message("w1"), message("w2", key="B-2"))
    publish(store, "m1", n=1)
    publish(store, "m2", key="B-2")
    fold(store)
    claim = claimed(store, instance="i1")
    seqs = [trigger.seq for trigger in claim.triggers]
    store.commit(commit_of(claim, outcome="completed", consumed=[]))

    rows = store.pending(0, 10)
    assert [(row.id, row.seq) for row in rows] == [("m1", seqs[0]), ("m2", seqs[1])]
    waiting(store, "i2", message("w1"))
    assert [routed.result for routed in fold(store)] == ["delivered", "parked"]
    claim = claimed(store, instance="i2")
    assert values_of(claim.triggers[0]) == {"n": 1}


def test_a_wide_instance_ends_at_once_and_is_emptied_in_batches(bed: StoreBed) -> None:
    """Design section 7, `end`: bumps the generation and is done; nothing is delivered to it from then on."""
    store = bed.store()
    now = store.manual_clock(1_000)
    width = 1_500
    arms = [message(f"m{n}", repeat=True) for n in range(width)] + [timer(f"t{n}", now + 5) for n in range(100)]
    waiting(store, "leaver", *arms)
    store.deliver("leaver", "cancel", "", "d1", payload())
    dehydrate(store, "leaver", outcome="terminated")
    store.set_clock(now + 5)

    publish(store, "m1")
    assert [routed.result for routed in fold(store)] == ["parked"]
    assert fire_due(store) == 0
    assert store.claim("a:1") is None
    for _ in range(50):
        if not store.expire(1_000):
            break
    assert bed.traces(store, "leaver") == []
    assert store.status("leaver") == "terminated"
    assert store.quiet().quiet
