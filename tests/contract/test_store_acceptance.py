"""What is accepted, what is a duplicate, and what is refused without a trace."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from gobpm_ray.errors import InputError, UnknownInstance, UnknownProcess, UnknownTask
from gobpm_ray.runtime.ports import Store
from tests.support.stores import (
    StoreBed,
    armed,
    claimed,
    commit_of,
    dehydrate,
    deploy,
    human,
    inbox,
    message,
    payload,
    publish,
    start,
    values_of,
    waiting,
    woken,
)

# ------------------------------------------------------------------------------------------------------- definitions


def test_the_same_document_deployed_twice_is_one_version(store: Store) -> None:
    assert store.deploy("order", b"xml\n<a/>", ()) == (1, True)
    assert store.deploy("order", b"xml\n<a/>", ()) == (1, False)
    assert store.deploy("order", b"xml\n<b/>", ()) == (2, True)
    # Only the newest counts: going back to an older document is a deployment like any other.
    assert store.deploy("order", b"xml\n<a/>", ()) == (3, True)


def test_a_definition_is_read_by_version_and_0_is_the_newest(store: Store) -> None:
    store.deploy("order", b"xml\n<a/>", ())
    store.deploy("order", b"xml\n<b/>", ())
    store.deploy("bill", b"json\n{}", ())

    first, newest = store.definition("order", 1), store.definition("order")
    assert first is not None
    assert newest is not None
    assert (first.version, first.document) == (1, b"xml\n<a/>")
    assert (newest.process_id, newest.version, newest.document) == ("order", 2, b"xml\n<b/>")
    assert store.definition("order", 3) is None
    assert store.definition("nothing") is None
    assert store.definitions() == [("bill", 1), ("order", 2)]


# ------------------------------------------------------------------------------------------------------------- starts


def test_a_started_instance_is_ready_with_its_start_trigger(store: Store) -> None:
    deploy(store)
    accepted = store.start("order", 0, "i1", "d1", "bk-7", payload(amount=12))

    assert (accepted.id, accepted.duplicate, accepted.instance_id) == ("d1", False, "i1")
    claim = claimed(store, "a:1")
    assert (claim.instance_id, claim.process_id, claim.process_version, claim.business_key) == (
        "i1",
        "order",
        1,
        "bk-7",
    )
    assert (claim.version, claim.epoch, claim.inbox, claim.parts) == (0, 1, 1, {})
    (trigger,) = claim.triggers
    assert (trigger.id, trigger.kind, trigger.wait) == ("d1", "start", "")
    assert values_of(trigger) == {"amount": 12}


def test_a_start_without_a_version_takes_the_newest_and_keeps_it(store: Store) -> None:
    deploy(store, document=b"xml\n1")
    deploy(store, document=b"xml\n2")
    start(store, "i1")
    store.start("order", 1, "i2", "d2", "", payload())
    deploy(store, document=b"xml\n3")

    versions = {}
    for _ in range(2):
        claim = claimed(store)
        versions[claim.instance_id] = claim.process_version
    assert versions == {"i1": 2, "i2": 1}


@pytest.mark.parametrize(("process", "version"), [("nothing", 0), ("order", 2)])
def test_a_start_of_what_is_not_deployed_is_refused(store: Store, process: str, version: int) -> None:
    deploy(store)
    with pytest.raises(UnknownProcess, match=process):
        store.start(process, version, "i1", "d1", "", payload())
    assert store.instance("i1") is None
    assert store.claim("a:1") is None
    # The refusal has not used the delivery id up.
    assert not store.start("order", 0, "i1", "d1", "", payload()).duplicate


def test_a_start_with_a_known_delivery_id_names_the_first_instance(store: Store) -> None:
    """M55: the producer's retry makes its own instance id, and is answered with the one that exists."""
    deploy(store)
    store.start("order", 0, "i1", "d1", "", payload())
    again = store.start("order", 0, "i2", "d1", "", payload())

    assert (again.duplicate, again.instance_id) == (True, "i1")
    assert store.instance("i2") is None
    assert list(woken(store)) == ["i1"]


def test_an_instance_id_is_taken_once(store: Store) -> None:
    deploy(store)
    store.start("order", 0, "i1", "d1", "", payload(n=1))
    with pytest.raises(InputError, match="exists"):
        store.start("order", 0, "i1", "d2", "", payload(n=2))
    assert inbox(store, "i1") == ["d1"]
    assert not store.start("order", 0, "i2", "d2", "", payload()).duplicate


def test_many_starts_are_answered_one_by_one(store: Store) -> None:
    deploy(store)
    rows = [("order", 0, f"i{n}", f"d{n}", "", payload(n=n)) for n in range(20)]
    answers = store.start_many([*rows, rows[3]])

    assert [answer.instance_id for answer in answers] == [f"i{n}" for n in range(20)] + ["i3"]
    assert [answer.duplicate for answer in answers] == [False] * 20 + [True]
    assert [answer.seq for answer in answers[:20]] == sorted({answer.seq for answer in answers[:20]})
    assert len(woken(store)) == 20


def test_of_concurrent_starts_with_one_delivery_id_one_is_first(store: Store) -> None:
    deploy(store)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: store.start("order", 0, f"i{n}", "d", "", payload()), range(16)))
    (first,) = (answer for answer in answers if not answer.duplicate)
    assert {answer.instance_id for answer in answers} == {first.instance_id}
    assert [name for _, name in store.instances()] == [first.instance_id]


# --------------------------------------------------------------------------------------------------------- deliveries


def test_a_delivery_ends_its_wait_and_wakes_the_instance(store: Store) -> None:
    waiting(store, "i1", message("w1"), human("w2"))
    accepted = store.deliver("i1", "message", "w1", "d1", payload(ok=True))

    assert (accepted.duplicate, accepted.instance_id) == (False, "i1")
    assert armed(store, "i1") == {"w2"}
    claim = claimed(store, instance="i1")
    (trigger,) = claim.triggers
    assert (trigger.id, trigger.kind, trigger.wait, trigger.seq) == ("d1", "message", "w1", accepted.seq)
    assert values_of(trigger) == {"ok": True}


def test_triggers_stand_in_the_inbox_in_order_of_delivery(store: Store) -> None:
    waiting(store, "i1", human("w1"), human("w2"), human("w3"))
    for wait in ("w2", "w3", "w1"):
        store.deliver("i1", "task", wait, f"d-{wait}", payload())
    claim = claimed(store)
    assert [trigger.wait for trigger in claim.triggers] == ["w2", "w3", "w1"]
    seqs = [trigger.seq for trigger in claim.triggers]
    assert seqs == sorted(set(seqs))


def test_a_delivery_without_a_wait_addresses_the_instance(store: Store) -> None:
    waiting(store, "i1", human("w1"))
    store.deliver("i1", "set", "", "d1", payload(x=1))
    (trigger,) = claimed(store, instance="i1").triggers
    assert (trigger.kind, trigger.wait) == ("set", "")
    assert armed(store, "i1") == {"w1"}


def test_an_escalation_leaves_its_wait_armed(store: Store) -> None:
    """The job that throws it goes on."""
    waiting(store, "i1", human("w1"))
    store.deliver("i1", "escalation", "w1", "d1", payload())
    (trigger,) = claimed(store, instance="i1").triggers
    assert (trigger.kind, trigger.wait) == ("escalation", "w1")
    assert armed(store, "i1") == {"w1"}


def test_a_delivery_to_nobody_is_refused_without_a_trace(store: Store) -> None:
    waiting(store, "i1", human("w1"))
    with pytest.raises(UnknownInstance, match="i9"):
        store.deliver("i9", "task", "w1", "d1", payload())
    with pytest.raises(InputError, match="w9"):
        store.deliver("i1", "task", "w9", "d1", payload())

    assert inbox(store, "i1") == []
    assert store.claim("a:1") is None
    assert not store.deliver("i1", "task", "w1", "d1", payload()).duplicate


def test_an_ended_instance_takes_nothing(store: Store) -> None:
    deploy(store)
    start(store, "i1")
    dehydrate(store, "i1", outcome="completed")
    with pytest.raises(InputError, match="ended"):
        store.deliver("i1", "set", "", "d1", payload())
    with pytest.raises(InputError, match="ended"):
        store.deliver("i1", "task", "w1", "d2", payload())


def test_a_duplicate_is_a_duplicate_in_every_state_of_its_first(store: Store) -> None:
    """M55, N5: ready, claimed, consumed, ended; and it never satisfies a later wait."""

    def again() -> bool:
        return store.deliver("i1", "task", "w1", "d1", payload()).duplicate

    waiting(store, "i1", human("w1"))
    assert not again()
    assert again(), "ready"
    claim = claimed(store, instance="i1")
    assert again(), "claimed"
    store.commit(commit_of(claim, arms=[human("w1")]))
    assert again(), "consumed, and the same wait is armed anew"
    assert armed(store, "i1") == {"w1"}
    assert inbox(store, "i1") == []
    assert store.claim("a:1") is None

    store.deliver("i1", "cancel", "", "d2", payload())
    dehydrate(store, "i1", outcome="terminated")
    assert again(), "ended"


def test_a_published_duplicate_is_not_stored_again(store: Store) -> None:
    """M55: while pending, while parked, and after it was taken."""
    assert not publish(store, "m1").duplicate
    assert publish(store, "m1").duplicate
    assert len(store.pending(0, 10)) == 1
    (row,) = store.pending(0, 10)
    assert store.route(row.seq, 10).result == "parked"
    assert publish(store, "m1").duplicate
    waiting(store, "i1", message("w1"))
    assert publish(store, "m1").duplicate
    assert inbox(store, "i1") == ["m1"]
    assert store.pending(0, 10) == []


def test_ids_are_forgotten_after_the_window(bed: StoreBed) -> None:
    """M55: *within the dedup window*; afterwards the same id is a delivery of its own."""
    store = bed.store(dedup_window_ms=40)
    assert not publish(store, "m1").duplicate
    bed.elapse(45)
    assert not publish(store, "m1").duplicate
    assert publish(store, "m1").duplicate


def test_a_start_after_the_window_does_not_overwrite_its_instance(bed: StoreBed) -> None:
    """A forgotten delivery id is no licence: the instance id is still taken."""
    store = bed.store(dedup_window_ms=40)
    waiting(store, "i1", human("w1"))
    bed.elapse(45)
    with pytest.raises(InputError, match="exists"):
        start(store, "i1")
    assert armed(store, "i1") == {"w1"}
    assert inbox(store, "i1") == []


def test_a_delivery_after_the_window_is_judged_like_a_new_one(bed: StoreBed) -> None:
    """Answering "stored" for a wait that is gone would lose the delivery silently."""
    store = bed.store(dedup_window_ms=40)
    waiting(store, "i1", human("w1"))
    store.deliver("i1", "task", "w1", "d1", payload())
    dehydrate(store, "i1", human("w2"))
    bed.elapse(45)
    with pytest.raises(InputError, match="w1"):
        store.deliver("i1", "task", "w1", "d1", payload())
    assert inbox(store, "i1") == []


def test_a_completion_after_the_window_is_judged_like_a_new_one(bed: StoreBed) -> None:
    store = bed.store(dedup_window_ms=40)
    waiting(store, "i1", human("w1"))
    store.complete_task("i1/w1", "ann", (), (), "d1", payload())
    bed.elapse(45)
    with pytest.raises(UnknownTask, match="i1/w1"):
        store.complete_task("i1/w1", "ann", (), (), "d1", payload())


# ------------------------------------------------------------------------------------------------- suspend and resume


def test_a_suspended_instance_keeps_its_triggers_until_it_is_resumed(store: Store) -> None:
    """D21."""
    waiting(store, "i1", human("w1"), human("w2"))
    store.deliver("i1", "task", "w1", "d1", payload())
    assert store.suspend("i1", True)
    assert store.status("i1") == "suspended"
    store.deliver("i1", "task", "w2", "d2", payload())
    assert store.claim("a:1") is None
    assert store.population().ready == 0
    assert store.quiet().quiet

    assert store.suspend("i1", False)
    assert store.status("i1") == "active"
    assert woken(store) == {"i1": ["d1", "d2"]}


def test_suspending_twice_changes_nothing(store: Store) -> None:
    waiting(store, "i1", human("w1"))
    assert not store.suspend("i1", False)
    assert store.suspend("i1", True)
    assert not store.suspend("i1", True)
    assert store.suspend("i1", False)
    assert store.claim("a:1") is None, "nothing came while it was held"


def test_an_instance_suspended_while_it_works_is_not_ready_when_it_is_released(store: Store) -> None:
    """D21: its host hears of it by the instance's bell; the release leaves it held."""
    waiting(store, "i1", human("w1"), human("w2"))
    store.deliver("i1", "task", "w1", "d1", payload())
    claim = claimed(store, instance="i1")
    assert store.suspend("i1", True)
    assert store.wait_instance_bell("i1", 0.01)
    store.deliver("i1", "task", "w2", "d2", payload())
    assert not store.commit(commit_of(claim, residency="either")).kept

    assert store.claim("a:1") is None
    store.suspend("i1", False)
    assert woken(store) == {"i1": ["d2"]}


def test_suspend_names_an_instance_that_lives(store: Store) -> None:
    deploy(store)
    start(store, "i1")
    dehydrate(store, "i1", outcome="completed")
    with pytest.raises(InputError, match="ended"):
        store.suspend("i1", True)
    with pytest.raises(UnknownInstance, match="i9"):
        store.suspend("i9", True)
