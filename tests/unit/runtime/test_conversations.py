"""Conversations as processes have them: several keys, learnt once; the same name starts and wakes; keys that fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray.checkpoint import rows
from gobpm_ray.core.keys import message_key
from gobpm_ray.model.builder import ProcessBuilder
from tests.unit.runtime.desk import DAY, Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


def send(desk: Desk, name: str, key: object, **values: object) -> None:
    desk.publish(name, key, DAY, **values)
    desk.turn()


def ids(desk: Desk) -> list[str]:
    return [name for _, name in desk.store.instances()]


def orders() -> ProcessBuilder:
    """Begun by a message that names the order and teaches the invoice; then it waits for two payments, by either."""
    builder = ProcessBuilder("p")
    both = {"order": "order", "invoice": "invoice"}
    begun = builder.start("begin", message="Ordered", key=both)
    begun.receive_task("first", message="Paid", key=both).receive_task("second", message="Paid", key=both).end("done")
    return builder


def test_the_first_message_teaches_a_second_key_and_either_routes(desk: Desk) -> None:
    """M49"""
    desk.deploy(orders())
    send(desk, "Ordered", "O-1", order="O-1", invoice="I-9")
    (instance,) = ids(desk)
    assert desk.state(instance).head.keys == {"order": "O-1", "invoice": "I-9"}
    assert len(desk.record(instance).waits) == 2
    send(desk, "Paid", "I-9")
    assert desk.history(instance) == ["begin", "first"]
    send(desk, "Paid", "O-1")
    assert desk.history(instance) == ["begin", "first", "second", "done"]
    assert desk.status(instance) == "completed"


def test_a_value_that_contradicts_what_was_learnt_is_not_taken_and_stays_parked(desk: Desk) -> None:
    """M49: and a key is set once, whatever a later payload says."""
    desk.deploy(orders())
    send(desk, "Ordered", {"order": "O-1", "invoice": "I-9"})
    (instance,) = ids(desk)
    send(desk, "Paid", {"order": "O-1", "invoice": "I-OTHER"})
    assert desk.history(instance) == ["begin"]
    assert desk.store.population().parked == 1
    send(desk, "Paid", {"order": "O-1", "invoice": "I-9"}, order="O-2")
    assert desk.history(instance) == ["begin", "first"]
    assert desk.state(instance).head.keys == {"order": "O-1", "invoice": "I-9"}
    assert desk.store.population().parked == 1


def test_a_second_key_is_learnt_from_a_message_that_wakes(desk: Desk) -> None:
    """M49: the instance knew its order from its own data; the first payment names the invoice."""
    builder = ProcessBuilder("p")
    both = {"order": "order", "invoice": "invoice"}
    builder.start().receive_task("first", message="Paid", key=both).receive_task(
        "second", message="Paid", key=both
    ).end()
    desk.deploy(builder)
    desk.start(order="O-1", invoice=None)
    desk.turn()
    send(desk, "Paid", {"order": "O-1", "invoice": "I-9"})
    send(desk, "Paid", "I-9")
    assert desk.status() == "completed"


def test_the_thrower_names_all_properties_that_it_knows(desk: Desk) -> None:
    """M49: so a receiver that knows only the second is found."""
    sender = ProcessBuilder("sender")
    sender.start().throw("tell", message="Paid", key={"order": "order", "invoice": "invoice"}).end()
    receiver = ProcessBuilder("p")
    receiver.start().receive_task("hear", message="Paid", key={"invoice": "invoice"}).end()
    desk.deploy(sender)
    desk.deploy(receiver)
    desk.start(invoice="I-9")
    desk.start("sender", "s", order="O-1", invoice="I-9")
    desk.turn()
    assert desk.status() == "completed"


def test_the_same_name_starts_and_wakes_by_its_key(desk: Desk) -> None:
    """M50"""
    builder = ProcessBuilder("p")
    builder.start(message="Said").script_task("k", "1", result="n").receive_task(
        "more", message="Said", key="who"
    ).end()
    desk.deploy(builder)
    send(desk, "Said", "ann", who="ann")
    send(desk, "Said", "bob", who="bob")
    assert len(ids(desk)) == 2
    send(desk, "Said", "ann")
    assert [desk.status(each) for each in ids(desk)] == ["completed", "active"]
    send(desk, "Said", "ann", who="ann")
    assert len(ids(desk)) == 3


@pytest.mark.parametrize("who", [None, "", "'unclosed"])
def test_an_empty_or_failing_key_is_an_incident_and_never_a_match_for_everybody(desk: Desk, who: str | None) -> None:
    """Issue 5.6: a key that cannot be computed must not take other people's messages."""
    builder = ProcessBuilder("p")
    key = "who + 1" if who == "'unclosed" else "who"
    builder.start().receive_task("hear", message="Said", key=key).end()
    desk.deploy(builder)
    desk.start(who=who)
    desk.turn()
    assert [kind for kind, _ in desk.waiting()] == ["incident"]
    for key_of_others in (None, "ann", "null"):
        send(desk, "Said", key_of_others)
    assert desk.history() == ["start"]
    assert desk.store.population().parked == 3


def test_no_known_property_is_an_incident(desk: Desk) -> None:
    """Issue 5.6"""
    builder = ProcessBuilder("p")
    builder.start().receive_task("hear", message="Said", key={"a": "a", "b": "b"}).end()
    desk.deploy(builder)
    desk.start(a=None, b=None)
    desk.turn()
    assert [kind for kind, _ in desk.waiting()] == ["incident"]


def test_an_overtaken_message_returns_to_its_own_process_only(desk: Desk) -> None:
    """R29, M52: the task's completion came first, so the boundary's message is given back; the other process had its
    copy and its next instance does not get a second one."""
    guarded = ProcessBuilder("p")
    guarded.start().user_task("t").end()
    guarded.boundary("t", message="Stop", key="who").end()
    other = ProcessBuilder("q")
    other.start().receive_task("hear", message="Stop", key="who").end()
    desk.deploy(guarded)
    desk.deploy(other)
    desk.start(who="x")
    desk.start("q", "q1", who="x")
    desk.turn()
    # Both in one inbox: the message first by its own right, had the set not cancelled all of it before.
    desk.store.deliver("i", "cancel", "", "c", rows.payload({}))
    desk.store.publish("m", "message", message_key("Stop", "x"), "Stop", rows.payload({}), DAY)
    desk.turn()
    assert (desk.status("i"), desk.status("q1")) == ("terminated", "completed")
    desk.start("q", "q2", who="x")
    desk.turn()
    assert desk.status("q2") == "active"
    desk.start("p", "i2", who="x")
    desk.turn()
    assert desk.status("i2") == "completed"
