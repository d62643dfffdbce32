"""What is still in the inbox when an instance ends: messages go back to routing, everything else ends visibly."""

from __future__ import annotations

import json

from gobpm_ray.checkpoint.rows import read_history_entry
from gobpm_ray.runtime.ports import Store
from tests.support.stores import claimed, commit_of, human, message, publish, waiting


def test_a_completion_that_comes_during_the_last_step_ends_as_overtaken(store: Store) -> None:
    """Promise 2, F34: its sender was told "accepted"; the instance that a cancel ends meanwhile says what became of
    it."""
    waiting(store, "i", human("1:Task_1:0:1"))
    store.deliver("i", "cancel", "", "operator-1", b"{}")
    claim = claimed(store, instance="i")

    accepted = store.complete_task("i/1:Task_1:0:1", "", (), (), "completion-1", b"{}")
    store.commit(commit_of(claim, outcome="terminated"))

    assert not accepted.duplicate
    record = store.instance("i")
    assert record is not None
    assert record.status == "terminated"
    assert record.inbox == ()
    last = read_history_entry(record.history[-1])
    assert (last.event, last.node, last.detail) == ("overtaken", "Task_1", "task")
    facts = [json.loads(fact) for _, fact in store.facts()]
    assert [(f["fact"], f["instance"], f["trigger"], f["wait"]) for f in facts][-1] == (
        "Overtaken",
        "i",
        "task",
        "1:Task_1:0:1",
    )


def test_a_message_that_comes_during_the_last_step_goes_back_to_routing(store: Store) -> None:
    """Promise 2: it was not read, so it is for whoever waits next, at its place."""
    waiting(store, "i", message("1:Catch_1:0:1"))
    store.deliver("i", "cancel", "", "operator-1", b"{}")
    claim = claimed(store, instance="i")
    first = publish(store, "m1")
    store.route(first.seq, 100)

    store.commit(commit_of(claim, outcome="terminated"))

    assert [(row.seq, row.id) for row in store.pending(0, 10)] == [(first.seq, "m1")]


def test_an_instance_that_was_suspended_while_its_dead_hosts_effect_is_open_is_ready_when_resumed(store: Store) -> None:
    """N10, D21: nothing is in its inbox, and yet somebody must come: only a claimer can judge the open effect."""
    waiting(store, "i", message("1:Catch_1:0:1"))
    store.deliver("i", "set", "", "operator-1", b"{}")
    claim = claimed(store, token="a:1", instance="i")
    store.commit(commit_of(claim, residency="keep"))
    store.release_dead("a")

    store.suspend("i", True)
    assert store.claim("b:1") is None
    store.suspend("i", False)

    assert claimed(store, token="b:2", instance="i").triggers == ()


def test_an_instance_whose_host_dies_while_it_is_suspended_is_ready_when_resumed(store: Store) -> None:
    """N9, N10: as above, in the other order."""
    waiting(store, "i", message("1:Catch_1:0:1"))
    store.deliver("i", "set", "", "operator-1", b"{}")
    claim = claimed(store, token="a:1", instance="i")
    store.commit(commit_of(claim, residency="keep"))
    store.suspend("i", True)
    store.release_dead("a")
    assert store.claim("b:1") is None

    store.suspend("i", False)

    assert claimed(store, token="b:2", instance="i").triggers == ()


def test_resuming_an_instance_that_merely_waits_wakes_nobody(store: Store) -> None:
    """N7: a wake for nothing is a reliability signal, not a habit."""
    waiting(store, "i", message("1:Catch_1:0:1"))
    store.suspend("i", True)
    store.suspend("i", False)

    assert store.claim("b:1") is None
