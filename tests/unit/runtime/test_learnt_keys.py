"""What is armed before a correlation property is learnt waits by it once it is (BPMN 8.4.2, M49).

Boundaries, event sub-processes and receives: each armed by what was known, or by nothing yet, beside the message that
brings the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gobpm_ray.core.keys import message_key
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.elements import CatchEvent, MessageDefinition
from tests.unit.runtime.desk import DAY, Desk


@pytest.fixture(params=["", "wide"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """`wide`: a claim brings only the parts that its triggers touch."""
    made = Desk(whole_parts=0) if request.param else Desk()
    yield made
    made.close()


def send(desk: Desk, name: str, key: object, **values: object) -> None:
    desk.publish(name, key, DAY, **values)
    desk.turn()


def keys(desk: Desk, node: str, instance: str = "i") -> list[str]:
    rows = desk.record(instance).waits.values()
    return sorted(row[2].rpartition("\x1f")[2] for row in rows if row[1] == node and row[0] == "message")


def build(kind: str, *, known: bool) -> ProcessBuilder:
    """A wait of this kind by order and invoice, and a message beside it, `Told`, that brings the invoice."""
    both = {"order": "order", "invoice": "invoice"} if known else {"invoice": "invoice"}
    built = ProcessBuilder("p")
    fork = (
        built.start().parallel("fork").receive_task("told", message="Told", key={"case": "case", "invoice": "invoice"})
    )
    fork.end("heard")
    if kind in ("boundary", "beside"):
        built.at("fork").user_task("work").end("done")
        built.boundary("work", "stop", message="Stop", key=both, interrupting=kind == "boundary").end("stopped")
    elif kind == "receive":
        built.at("fork").receive_task("stop", message="Stop", key=both).end("stopped")
    elif kind == "gateway":
        built.at("fork").event_gateway("either").catch("stop", message="Stop", key=both).end("stopped")
        built.at("either").catch("late", timer="P2D").end("expired")
    else:
        built.at("fork").user_task("work").end("done")
        with built.event_sub_process("event") as event:
            event.start("stop", message="Stop", key=both, interrupting=kind == "event").end("stopped")
    return built


KINDS = ("boundary", "beside", "receive", "gateway", "event", "event beside")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", ["O-1", "I-9"])
def test_a_wait_armed_by_one_key_is_met_by_another_that_is_learnt_later(desk: Desk, kind: str, by: str) -> None:
    """M49: by either, once."""
    desk.deploy(build(kind, known=True))
    desk.start(order="O-1", case="C-1", invoice=None)
    desk.turn()
    assert keys(desk, "stop") == ["=O-1"]
    send(desk, "Told", {"case": "C-1", "invoice": "I-9"})
    assert keys(desk, "stop") == ["=I-9", "=O-1"]
    send(desk, "Stop", by)
    assert desk.history().count("stopped") == 1
    stays = kind in ("beside", "event beside")
    assert keys(desk, "stop") == (["=I-9", "=O-1"] if stays else [])
    send(desk, "Stop", {"order": "O-1", "invoice": "I-9"})
    assert desk.history().count("stopped") == (2 if stays else 1)
    assert desk.store.population().parked == (0 if stays else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_whose_key_is_not_known_waits_for_it_and_not_for_everybody(desk: Desk, kind: str) -> None:
    """M49: a message of nobody's key, or of another's, is not its own; the learnt one's is, also parked before."""
    desk.deploy(build(kind, known=False))
    desk.start(case="C-1", invoice=None)
    desk.turn()
    assert ("unkeyed", "stop") in desk.waiting()
    for key in (None, "I-8", "I-9"):
        send(desk, "Stop", key)
    assert "stopped" not in desk.history()
    assert desk.store.population().parked == 3
    send(desk, "Told", {"case": "C-1", "invoice": "I-9"})
    assert desk.history().count("stopped") == 1
    assert ("unkeyed", "stop") not in desk.waiting()
    assert desk.store.population().parked == 2


@pytest.mark.parametrize("kind", ["boundary", "gateway"])
def test_what_wins_the_race_ends_the_wait_for_a_key(desk: Desk, kind: str) -> None:
    """D5, D6: nothing of it is left when the key comes."""
    desk.deploy(build(kind, known=False))
    desk.start(case="C-1", invoice=None)
    desk.turn()
    if kind == "boundary":
        desk.complete("work")
    else:
        desk.advance(3 * DAY)
    desk.turn()
    assert desk.waiting() == [("message", "told")]
    send(desk, "Told", {"case": "C-1", "invoice": "I-9"})
    assert desk.status() == "completed"
    assert "stopped" not in desk.history()


def test_the_race_with_the_activity_holds_for_the_learnt_key(desk: Desk) -> None:
    """D5: the task ends with the boundary that was met by the key that came late, and the other way round."""
    for winner in ("I-9", "work"):
        instance = f"i-{winner}"
        desk.deploy(build("boundary", known=True))
        desk.start("p", instance, order=f"O-{winner}", case=f"C-{winner}", invoice=None)
        desk.turn()
        send(desk, "Told", {"case": f"C-{winner}", "invoice": "I-9" if winner == "I-9" else "I-0"})
        if winner == "work":
            desk.complete("work")
            desk.turn()
            send(desk, "Stop", "I-0")
        else:
            send(desk, "Stop", "I-9")
        assert desk.status(instance) == "completed"
        assert ("stopped" in desk.history(instance)) == (winner == "I-9")
        assert desk.store.tasks() == []


def test_messages_that_must_all_come_are_each_waited_for_once(desk: Desk) -> None:
    """A parallel multiple catch whose keys are learnt while it waits needs each of its messages, and no third wait."""
    built = ProcessBuilder("p")
    fork = (
        built.start().parallel("fork").receive_task("told", message="Told", key={"case": "case", "invoice": "invoice"})
    )
    fork.end("heard")
    built.at("fork").catch("all", message="A", key={"invoice": "invoice"}).end("stopped")
    process = built.build()
    catch = process.nodes["all"]
    assert isinstance(catch, CatchEvent)
    (first,) = catch.definitions
    assert isinstance(first, MessageDefinition)
    every = replace(catch, definitions=(first, replace(first, name="B")), parallel_multiple=True)
    desk.deploy_process(replace(process, nodes={**process.nodes, "all": every}))
    desk.start(case="C-1", invoice=None)
    desk.turn()
    assert desk.waiting() == [("message", "told"), ("unkeyed", "all"), ("unkeyed", "all")]
    send(desk, "Told", {"case": "C-1", "invoice": "I-9"})
    assert desk.waiting() == [("message", "all"), ("message", "all")]
    send(desk, "A", "I-9")
    assert desk.waiting() == [("message", "all")]
    send(desk, "B", "I-9")
    assert desk.status() == "completed"


def test_a_key_that_nothing_can_teach_is_an_incident_at_once(desk: Desk) -> None:
    """Issue 5.6: it would wait for ever, and nobody would see it."""
    built = ProcessBuilder("p")
    built.start().parallel("fork").receive_task("told", message="Told", key="case").end("heard")
    built.at("fork").receive_task("stop", message="Stop", key={"invoice": "invoice"}).end("stopped")
    desk.deploy(built)
    desk.start(case="C-1", invoice=None)
    desk.turn()
    assert ("incident", "stop") in desk.waiting()


def test_a_value_that_is_known_already_is_not_learnt_and_adds_no_wait(desk: Desk) -> None:
    """M49: set once."""
    desk.deploy(build("receive", known=True))
    desk.start(order="O-1", case="C-1", invoice="I-9")
    desk.turn()
    assert keys(desk, "stop") == ["=I-9", "=O-1"]
    send(desk, "Told", {"case": "C-1", "invoice": "I-9"})
    assert keys(desk, "stop") == ["=I-9", "=O-1"]
    assert message_key("Stop", "I-9") in {row[2] for row in desk.record().waits.values()}
