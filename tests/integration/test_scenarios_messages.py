"""Messages and signals on the real engine (group M), and what a failing wake does to them (F31, F32, X15).

After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from actors.registry import actor_rows
from gobpm_ray.engine import cluster
from gobpm_ray.errors import UnknownDelivery
from gobpm_ray.model.builder import ProcessBuilder
from tests.integration.conftest import RunningEngine, wait_until
from tests.integration.scene import HOUR, Scene, frozen, log_of, work_until

BACKOFF_MS = 400
SETTINGS = {"wake_backoff_ms": BACKOFF_MS}

pytestmark = pytest.mark.slow


def listener(scene: Scene, *catches: str) -> ProcessBuilder:
    """Catches one `Reply` of its conversation after the other."""
    process = scene.process("listener")
    at = process.start("s")
    for catch in catches:
        at = at.catch(catch, message=scene.name("Reply"), key="=k", outputs={catch: "=text"})
    at.end("e")
    return process


# -------------------------------------------------------------------------------------------------------- correlation


def test_a_message_for_another_conversation_leaves_a_released_instance_alone(scene: Scene) -> None:
    """M48, D4: it is not woken, and the message is not consumed: it waits for its own conversation."""
    process_id = scene.deploy(listener(scene, "one"))
    instance = scene.begin(process_id, k="A")
    before = scene.store.instance(instance)

    scene.publish(scene.name("Reply"), "B", text="for B")

    assert scene.store.instance(instance) == before
    assert scene.cycles(instance) == (1, 0)
    assert scene.engine.top().parked == 1
    other = scene.begin(process_id, k="B")
    assert scene.completed(other, "s", "one", "e").variables["one"] == "for B"
    scene.publish(scene.name("Reply"), "A", text="for A")
    assert scene.completed(instance).variables["one"] == "for A"


def test_a_message_before_its_catch_is_parked_and_delivered_first_in_first_out(scene: Scene) -> None:
    """M51: each catch takes one, in the order in which they were accepted."""
    for n in range(3):
        scene.publish(scene.name("Reply"), "A", text=f"text {n}")
    assert scene.engine.top().parked == 3

    instance = scene.begin(listener(scene, "a", "b", "c"), k="A")

    view = scene.completed(instance, "s", "a", "b", "c", "e")
    assert [view.variables[name] for name in "abc"] == ["text 0", "text 1", "text 2"]


def test_the_life_of_a_parked_message_is_judged_when_it_would_match(
    scene: Scene, virtual_engine: RunningEngine
) -> None:
    """M51: not by the sweeper, which stands still here while a message expires and its catch is armed."""
    process_id = scene.deploy(listener(scene, "one"))
    scene.engine.publish(scene.name("Reply"), "A", {"text": "late"}, ttl="PT1H", id=scene.name("late"))
    scene.engine.publish(scene.name("Reply"), "A", {"text": "lasting"}, ttl="PT3H")
    scene.engine.wait_quiet()
    sweeper = cluster.status(virtual_engine.handle)["TaskHolder"]["pid"]

    with frozen(sweeper):
        scene.store.set_clock(scene.engine.now() + 2 * HOUR)
        instance = scene.begin(process_id, k="A")
        assert scene.completed(instance).variables["one"] == "lasting"

    wait_until(lambda: [one.id for one in scene.engine.dead()] == [scene.name("late")], "it is a dead letter")
    scene.engine.drop(scene.name("late"))


def test_a_signal_is_never_kept(scene: Scene) -> None:
    """M51, M54: it wakes both who wait, is nothing to nobody, and nothing to who is armed after it."""
    process = scene.process("hearer")
    process.start("s").catch("hear", signal=scene.name("Alarm"), outputs={"how": "=how"}).end("e")
    process_id = scene.deploy(process)
    scene.signal(scene.name("Alarm"), how="to nobody")
    assert scene.engine.top().parked == 0
    one, two = scene.begin(process_id), scene.begin(process_id)
    scene.released(one, two)

    scene.signal(scene.name("Alarm"), how="to both")

    for instance in (one, two):
        assert scene.completed(instance, "s", "hear", "e").variables == {"how": "to both"}
        assert scene.cycles(instance) == (1, 1)
    after = scene.begin(process_id)
    scene.released(after)
    scene.signal(scene.name("Alarm"), how="again")
    assert scene.completed(after).variables == {"how": "again"}


def test_a_message_that_its_taker_gives_back_keeps_its_place(scene: Scene) -> None:
    """M53: delivered into a scope that a timer ended before it was read, it goes back to routing before its younger
    sibling; R29's rule for overtaken triggers."""
    process = scene.process("strict")
    with process.start("s").sub_process("scope") as inside:
        inside.start("si").catch("inner", message=scene.name("Reply"), key="=k").end("ei")
    process.at("scope").end("in time")
    process.boundary("scope", "late", timer="P1D").catch(
        "first", message=scene.name("Reply"), key="=k", outputs={"first": "=text"}
    ).catch("second", message=scene.name("Reply"), key="=k", outputs={"second": "=text"}).end("e")
    instance = scene.begin(process, k="A")
    scene.engine.suspend(instance)
    scene.later("P1D")
    scene.publish(scene.name("Reply"), "A", text="older")
    scene.publish(scene.name("Reply"), "A", text="younger")
    record = scene.store.instance(instance)
    assert record is not None
    assert [row.kind for row in record.inbox] == ["timer", "message"]
    assert scene.engine.top().parked == 1

    scene.engine.resume(instance)
    scene.engine.wait_quiet()

    view = scene.completed(instance, "s", "si", "late", "first", "second", "e")
    assert (view.variables["first"], view.variables["second"]) == ("older", "younger")
    assert [fact.data["trigger"] for fact in scene.facts(instance) if fact.fact == "Overtaken"] == ["message"]


# ---------------------------------------------------------------------------------------------------------- duplicates


def test_a_duplicate_is_answered_as_one_whatever_became_of_the_first(scene: Scene, tmp_path: Path) -> None:
    """M55, N5: while it is ready, while its instance is claimed, after its consumption; never for a later wait."""
    gate, visits = tmp_path / "gate", tmp_path / "visits"
    process = scene.process("twice")
    process.start("s").catch("one", message=scene.name("Reply"), key="=k").service_task(
        "work", topic=scene.name("work")
    ).catch("two", message=scene.name("Reply"), key="=k").end("e")
    scene.engine.register(scene.name("work"), work_until(gate, visits))
    instance = scene.begin(process, k="A")

    scene.engine.suspend(instance)
    assert scene.publish(scene.name("Reply"), "A", id=scene.name("m1")) is False
    assert scene.publish(scene.name("Reply"), "A", id=scene.name("m1")) is True, "ready"
    scene.engine.resume(instance)
    wait_until(visits.exists, "it was woken, and works")
    assert scene.see(instance).resident
    assert scene.engine.publish(scene.name("Reply"), "A", id=scene.name("m1")).duplicate, "claimed"
    gate.touch()
    scene.engine.wait_quiet()
    assert scene.waits(instance) == [("two", "message")]

    assert scene.publish(scene.name("Reply"), "A", id=scene.name("m1")) is True, "after its consumption"
    assert scene.waits(instance) == [("two", "message")], "a later wait is not satisfied by it"
    assert scene.engine.top().parked == 0
    assert scene.publish(scene.name("Reply"), "A", id=scene.name("m2")) is False
    scene.completed(instance, "s", "one", "work", "two", "e")
    assert scene.publish(scene.name("Reply"), "A", id=scene.name("m1")) is True, "after the end"
    assert visits.read_text() == "x"


# ------------------------------------------------------------------------------------------------------- failing wakes


def lose_definition(scene: Scene, process_id: str) -> None:
    """The store forgets the document, and no actor lives that remembers it."""
    keys = scene.store.keys
    digest = scene.client.hget(keys["defs"], f"{process_id}\x1e1")
    assert scene.client.hdel(keys["docs"], digest) == 1
    rows = actor_rows(scene.store)
    for row in rows:
        os.kill(row.pid, signal.SIGKILL)
    wait_until(lambda: not {row.name for row in rows} & {row.name for row in actor_rows(scene.store)}, "all are buried")


def attempts(scene: Scene, instance: str) -> int:
    """How often it has been claimed."""
    record = scene.store.instance(instance)
    assert record is not None
    return record.epoch


@pytest.mark.parametrize("trigger", ["timer", "message"])
def test_x15_the_trigger_of_a_failing_wake_is_kept_until_the_definition_is_there_again(
    scene: Scene, trigger: str
) -> None:
    """F31, F32, X15, D18: one attempt per back-off, loud; deployed again, it completes without a restart."""
    scene.unclean = True  # a wake that fails has no fact of its own
    process = scene.process("lost")
    process.start("s").event_gateway("either").catch("told", message=scene.name("Reply"), key="=k").end("answered")
    process.at("either").catch("nap", timer="PT2H").end("late")
    process_id = scene.deploy(process)
    instance = scene.begin(process_id, k="A")
    lose_definition(scene, process_id)
    before = attempts(scene, instance)

    if trigger == "timer":
        scene.store.set_clock(scene.engine.now() + 2 * HOUR)
    else:
        scene.engine.publish(scene.name("Reply"), "A", {"text": "kept"}, id=scene.name("m1"))
    wait_until(lambda: attempts(scene, instance) >= before + 2, "it has been tried twice")
    began, tried = time.monotonic(), attempts(scene, instance)
    wait_until(lambda: attempts(scene, instance) >= tried + 3, "and three times more")
    assert time.monotonic() - began > 2 * BACKOFF_MS / 1_000, "it does not spin"

    record = scene.store.instance(instance)
    assert record is not None
    assert [row.kind for row in record.inbox] == [trigger], "the hold is kept"
    assert (record.status, record.version) == ("active", 1)
    wait_until(
        lambda: any(
            f"ERROR gobpm_ray.runtime: instance {instance} of process {process_id}" in log_of(row.pid)
            for row in actor_rows(scene.store)
        ),
        "it is said loudly",
    )

    scene.engine.deploy(process)
    view = scene.engine.wait(instance, 10)

    assert view.trace == ("s", "either", *(("nap", "late") if trigger == "timer" else ("told", "answered")))
    assert view.variables.get("text") == (None if trigger == "timer" else "kept")
    assert scene.cycles(instance) == (1, 1)
    scene.engine.wait_quiet()


def test_x15_messages_have_an_id_a_life_and_a_dead_letter(scene: Scene) -> None:
    """X15: an expired message is set aside, visibly, and an operator may send it again."""
    message = scene.name("m1")
    assert scene.publish(scene.name("Reply"), "A", id=message, text="late") is False
    assert scene.publish(scene.name("Reply"), "A", id=message, text="late") is True
    assert scene.engine.top().parked == 1
    scene.later("P1D")
    wait_until(lambda: scene.engine.top().dead == 1, "it is a dead letter after its day")
    (letter,) = scene.engine.dead()
    assert (letter.id, letter.reason) == (message, "expired")
    instance = scene.begin(listener(scene, "one"), k="A")
    scene.released(instance)

    again = scene.engine.replay(message)
    scene.engine.wait_quiet()

    assert again.id != message
    assert scene.completed(instance).variables["one"] == "late"
    assert scene.engine.top().dead == 0
    with pytest.raises(UnknownDelivery, match=message):
        scene.engine.replay(message)


def test_a_message_starts_one_conversation_and_then_joins_it(scene: Scene) -> None:
    """M50: an unseen name starts an instance, its key wakes it and makes no second one."""
    process = scene.process("talk")
    process.start("asked", message=scene.name("Ask")).catch(
        "told", message=scene.name("Tell"), key="=k", outputs={"answer": "=text"}
    ).end("e")
    process_id = scene.deploy(process)
    scene.publish(scene.name("Ask"), k="A")
    scene.publish(scene.name("Ask"), k="B")
    scene.publish(scene.name("Tell"), "B", text="to B")

    views = {view.variables["k"]: view for view in scene.of_process(process_id)}

    assert views["B"].variables["answer"] == "to B"
    assert (views["A"].state, views["B"].state) == ("waiting", "completed")
    scene.publish(scene.name("Tell"), "A", text="to A")
    assert scene.completed(views["A"].instance_id, "asked", "told", "e").variables["answer"] == "to A"
    assert len(scene.of_process(process_id)) == 2
