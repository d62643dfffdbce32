"""Instances on a memory store: released at every wait, woken once, going on where they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.draft import every
from tests.unit.runtime.desk import DAY, HOUR, Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.close()


def test_a_date_timer_is_released_woken_once_and_completes(desk: Desk) -> None:
    """W1, D14: one `Dehydrated` and one `Hydrated` fact, with names and counts only."""
    process = ProcessBuilder("p")
    process.start().catch("wait", timer="PT2H").end("end")
    desk.deploy(process)
    desk.start(secret="not for facts")
    desk.turn()
    assert desk.status() == "active"
    assert not desk.record().resident
    assert desk.store.leases() == []
    desk.advance(2 * HOUR)
    assert desk.status() == "completed"
    assert desk.history() == [*desk.history()[:1], "wait", "end"]
    assert desk.history(event="woken") == ["wait"]
    assert desk.counts() == {"Started": 1, "Dehydrated": 1, "Hydrated": 1, "Completed": 1}
    released, woken = desk.facts("Dehydrated")[0], desk.facts("Hydrated")[0]
    assert (released["kinds"], released["waits"], released["actors"]) == (["timer"], 1, 0)
    assert (woken["trigger"], woken["outcome"], woken["track"]) == ("timer", "completed", "1")
    assert "not for facts" not in str(desk.facts())


def test_two_long_timers_are_two_release_cycles_and_the_lineage_does_not_grow(desk: Desk) -> None:
    """W3, D7, D8"""
    process = ProcessBuilder("p")
    process.start().catch("one", timer="P1D").catch("two", timer="P1D").end()
    desk.deploy(process)
    desk.start()
    desk.advance(DAY)
    sizes = {name: len(part) for name, part in desk.record().parts.items()}
    assert set(sizes) == {"h", "s0", "t1"}
    assert desk.state().tracks["1"].node == "two"
    desk.advance(DAY)
    assert desk.status() == "completed"
    assert desk.counts()["Dehydrated"] == 2


def escalation(interrupting: bool = True) -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start().user_task("approve").end("approved")
    process.boundary("approve", "late", timer="PT24H", interrupting=interrupting).script_task(
        "note", "=true", result="escalated"
    ).end("escalation")
    return process


def test_an_interrupting_timer_boundary_fires_on_a_released_task_and_withdraws_it(desk: Desk) -> None:
    """W5"""
    desk.deploy(escalation())
    desk.start()
    desk.turn()
    assert desk.waiting() == [("task", "approve"), ("timer", "late")]
    desk.advance(25 * HOUR)
    assert desk.status() == "completed"
    assert desk.store.tasks() == []
    assert desk.variables() == {"escalated": True}
    assert "approve" not in desk.history()


def test_a_human_completes_in_time_and_the_boundary_never_fires(desk: Desk) -> None:
    """W6, D11: only the completion wakes the instance, and its outputs are bound."""
    desk.deploy(escalation())
    desk.start()
    desk.advance(23 * HOUR)
    desk.complete("approve", verdict="yes")
    desk.turn()
    assert desk.status() == "completed"
    assert desk.variables() == {"verdict": "yes"}
    desk.advance(10 * DAY)
    assert desk.history()[1:] == ["approve", "approved"]
    assert desk.store.due(10).next_deadline is None


def test_a_non_interrupting_boundary_fires_once_and_the_instance_is_released_again(desk: Desk) -> None:
    """W7, T41, X10: a duration never repeats, also after more release rounds."""
    desk.deploy(escalation(interrupting=False))
    desk.start()
    desk.advance(25 * HOUR)
    assert desk.waiting() == [("task", "approve")]
    assert not desk.record().resident
    assert desk.variables() == {"escalated": True}
    for _ in range(10):
        desk.advance(25 * HOUR)
    assert desk.history().count("late") == 1
    desk.complete("approve")
    desk.turn()
    assert desk.status() == "completed"


def test_a_message_boundary_takes_the_exception_flow_with_its_payload(desk: Desk) -> None:
    """W8, X2"""
    process = ProcessBuilder("p")
    process.start().user_task("approve").end("approved")
    process.boundary("approve", "withdrawn", message="withdraw", key="=order").end("cancelled")
    desk.deploy(process)
    desk.start(order=7)
    desk.turn()
    desk.publish("withdraw", 8, reason="someone else's")
    desk.turn()
    assert desk.status() == "active"
    assert desk.counts()["Hydrated"] == 0, "a wrong key never wakes an instance (D4)"
    desk.publish("withdraw", 7, reason="changed my mind")
    desk.turn()
    assert desk.status() == "completed"
    assert desk.variables() == {"order": 7, "reason": "changed my mind"}
    assert desk.store.tasks() == []
    assert "approve" not in desk.history()


def test_a_signal_boundary_wakes_every_released_instance(desk: Desk) -> None:
    """W9, M54"""
    process = ProcessBuilder("p")
    process.start().user_task("work").end()
    process.boundary("work", "closing", signal="closing time").end("home")
    desk.deploy(process)
    for instance in ("a", "b"):
        desk.start(instance_id=instance)
    desk.turn()
    desk.signal("closing time")
    desk.turn()
    assert [desk.status(i) for i in ("a", "b")] == ["completed", "completed"]


def split(first: str, second: str) -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start().parallel("fork").catch("one", timer=first).parallel("join").end("end")
    process.at("fork").catch("two", timer=second).to("join")
    return process


def test_both_waits_of_a_split_are_held_and_both_triggers_count(desk: Desk) -> None:
    """W11, X4"""
    desk.deploy(split("P1D", "P1D"))
    desk.start()
    desk.turn()
    assert desk.waiting() == [("timer", "one"), ("timer", "two")]
    desk.advance(DAY)
    assert desk.status() == "completed"
    assert sorted(desk.history()[2:4]) == ["one", "two"]
    assert desk.history()[4:] == ["join", "end"]


def test_the_second_wait_of_a_split_is_not_shifted_by_the_first_wake(desk: Desk) -> None:
    """W12, D13"""
    desk.deploy(split("PT2H", "PT3H"))
    desk.start()
    desk.advance(2 * HOUR)
    deadlines = [row[3] for row in desk.record().waits.values()]
    assert deadlines == [str(desk.store.now() + HOUR)]
    desk.advance(HOUR - 1)
    assert desk.status() == "active"
    desk.advance(1)
    assert desk.status() == "completed"


def test_an_instance_born_parked_is_released_with_no_further_event(desk: Desk) -> None:
    """W18"""
    process = ProcessBuilder("p")
    process.start("begun", message="order").catch("reply", message="reply", key="=number").end()
    desk.deploy(process)
    desk.publish("order", number="N-1")
    desk.turn()
    ((_, instance),) = desk.store.instances()
    assert not desk.record(instance).resident
    assert desk.waiting(instance) == [("message", "reply")]
    desk.publish("reply", "N-1")
    desk.turn()
    assert desk.status(instance) == "completed"


def test_each_instance_on_one_modelled_timer_is_resumed_by_its_own(desk: Desk) -> None:
    """T36"""
    process = ProcessBuilder("p")
    process.start().catch("wait", timer="PT2H").end()
    desk.deploy(process)
    desk.start(instance_id="a")
    desk.advance(HOUR)
    desk.start(instance_id="b")
    desk.advance(HOUR)
    assert (desk.status("a"), desk.status("b")) == ("completed", "active")
    desk.advance(HOUR)
    assert desk.status("b") == "completed"


def test_a_message_before_its_catch_is_delivered_when_it_is_armed(desk: Desk) -> None:
    """M51"""
    process = ProcessBuilder("p")
    process.start().catch("wait", timer="PT1H").catch("reply", message="reply", key="=n").end()
    desk.deploy(process)
    desk.start(n=1)
    desk.publish("reply", 1, text="early")
    desk.turn()
    desk.advance(HOUR)
    assert desk.status() == "completed"
    assert desk.variables() == {"n": 1, "text": "early"}


def test_a_message_that_lost_to_an_earlier_trigger_goes_back_to_routing(desk: Desk) -> None:
    """R29: completion and interrupting message in one inbox: the first wins, the message waits for its next taker."""
    process = ProcessBuilder("p")
    process.start().user_task("work").catch("later", message="stop", key="=n").end("end")
    process.boundary("work", "stopped", message="stop", key="=n", interrupting=False).end("noted")
    desk.deploy(process)
    desk.start(n=1)
    desk.turn()
    desk.complete("work")
    desk.publish("stop", 1)
    desk.fold()  # both are in the inbox before anybody claims
    assert desk.record().inbox != ()
    desk.turn()
    assert desk.status() == "completed"
    assert "stopped" not in desk.history()
    assert desk.history(event="overtaken") == ["stopped"]


def test_a_start_timer_cycle_starts_exactly_its_number_of_instances(desk: Desk) -> None:
    """T37, X12"""
    process = ProcessBuilder("p")
    process.start("tick", timer=every("R3/PT1H")).end()
    desk.deploy(process)
    desk.advance(DAY)
    assert len(desk.store.instances(ended=True)) == 3
    assert desk.store.due(1).next_deadline is None


def test_a_thrown_message_is_accepted_by_the_commit_and_wakes_its_catcher(desk: Desk) -> None:
    """Promise 3: a throw is an accept inside the commit."""
    catcher = ProcessBuilder("catcher")
    catcher.start().catch("hear", message="hello", key="=n").end()
    thrower = ProcessBuilder("thrower")
    thrower.start().throw("say", message="hello", key="=n", inputs={"text": "=greeting"}).end()
    desk.deploy(catcher)
    desk.deploy(thrower)
    desk.start("catcher", "c", n=5)
    desk.turn()
    desk.start("thrower", "t", n=5, greeting="hi")
    desk.turn()
    assert (desk.status("c"), desk.status("t")) == ("completed", "completed")
    assert desk.variables("c")["text"] == "hi"
