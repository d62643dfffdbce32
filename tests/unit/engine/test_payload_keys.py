"""A message whose payload says what its sender did not name: whoever has learnt otherwise does not take it (M49)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gobpm_ray import Engine, ProcessBuilder, Secret

BOTH = {"order": "order", "invoice": "invoice"}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open(store=None, clock="virtual") as opened:
        yield opened


def payments(name: str = "p", key: dict[str, str] | None = None) -> ProcessBuilder:
    """Begun by a message that teaches order and invoice; then one payment."""
    built = ProcessBuilder(name)
    built.start("begin", message="Ordered", key=BOTH).receive_task("paid", message="Paid", key=key or BOTH).end("done")
    return built


def begun(engine: Engine, order: str, invoice: str) -> str:
    before = {view.instance_id for view in engine.list_instances()}
    engine.publish("Ordered", {"order": order, "invoice": invoice})
    (fresh,) = {view.instance_id for view in engine.list_instances()} - before
    return fresh


def test_a_payload_that_contradicts_what_was_learnt_is_not_taken_and_stays_parked(engine: Engine) -> None:
    """Though its sender named nothing but a plain key, or only the property that agrees."""
    engine.deploy(payments())
    instance = begun(engine, "O-1", "I-9")
    engine.publish("Paid", "O-1", {"order": "O-1", "invoice": "I-OTHER"})
    engine.publish("Paid", {"order": "O-1"}, {"invoice": "I-OTHER"})
    assert engine.inspect(instance).state == "waiting"
    assert engine.top().parked == 2
    engine.publish("Paid", "O-1", {"order": "O-1", "invoice": "I-9"})
    assert engine.inspect(instance).state == "completed"
    assert engine.top().parked == 2


def test_what_the_sender_names_is_believed_before_the_payload(engine: Engine) -> None:
    engine.deploy(payments())
    instance = begun(engine, "O-1", "I-9")
    engine.publish("Paid", {"order": "O-1", "invoice": "I-9"}, {"invoice": "I-OTHER"})
    assert engine.inspect(instance).state == "completed"


def test_a_payload_that_says_nothing_of_it_contradicts_nothing(engine: Engine) -> None:
    """Absent, null, empty, of a type that is no key; a secret is read as well."""
    engine.deploy(payments())
    nothing: tuple[dict[str, Any], ...] = ({}, {"invoice": None}, {"invoice": ""}, {"invoice": [1]})
    for number, said in enumerate((*nothing, {"invoice": Secret("I-9")})):
        instance = begun(engine, f"O-{number}", "I-9")
        engine.publish("Paid", f"O-{number}", said)
        assert engine.inspect(instance).state == "completed"
    instance = begun(engine, "O-9", "I-9")
    engine.publish("Paid", "O-9", {"invoice": Secret("I-8")})
    assert engine.inspect(instance).state == "waiting"


def test_the_right_conversation_is_found_behind_the_contradicted_one(engine: Engine) -> None:
    engine.deploy(payments())
    wrong = begun(engine, "O-1", "I-1")
    right = begun(engine, "O-2", "I-2")
    engine.publish("Paid", {"order": "O-2"}, {"invoice": "I-1"})
    assert (engine.inspect(wrong).state, engine.inspect(right).state) == ("waiting", "waiting")
    engine.publish("Paid", {"order": "O-2"}, {"invoice": "I-2"})
    assert (engine.inspect(wrong).state, engine.inspect(right).state) == ("waiting", "completed")


def test_a_property_that_two_models_read_differently_is_nobodys(engine: Engine) -> None:
    other = {"order": "order", "invoice": "number"}
    engine.deploy(payments(), payments("q", other))
    engine.publish("Ordered", {"order": "O-1", "invoice": "I-9"})
    engine.publish("Paid", "O-1", {"invoice": "I-9", "number": "I-OTHER"})
    assert [view.state for view in engine.list_instances(ended=False)] == []


def test_a_version_that_reads_no_properties_any_more_ends_the_reading(engine: Engine) -> None:
    engine.deploy(payments())
    assert engine.store.values("correlates:Paid")
    plain = ProcessBuilder("p")
    plain.start().receive_task("paid", message="Paid", key="order").end()
    engine.deploy(plain)
    assert engine.store.values("correlates:Paid") == {}
    engine.start("p", {"order": "O-1"})
    engine.publish("Paid", "O-1", {"invoice": "I-OTHER"})
    assert engine.list_instances(ended=False) == []


def test_a_parked_message_is_judged_by_its_payload_when_it_is_taken(engine: Engine) -> None:
    """M51: it came before the wait."""
    built = ProcessBuilder("p")
    built.start("begin", message="Ordered", key=BOTH).user_task("first").receive_task(
        "paid", message="Paid", key=BOTH
    ).end()
    engine.deploy(built)
    engine.publish("Ordered", {"order": "O-1", "invoice": "I-9"})
    engine.publish("Paid", "O-1", {"invoice": "I-OTHER"}, id="wrong")
    engine.publish("Paid", "O-1", {"invoice": "I-9"}, id="right")
    assert engine.top().parked == 2
    engine.complete("first")
    assert engine.list_instances(ended=False) == []
    assert engine.top().parked == 1
