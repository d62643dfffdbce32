"""Correlation on the real engine (M49, M50, M52): several keys, starts that join, and whom one message is for.

After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

import pytest

from gobpm_ray.model.builder import ProcessBuilder
from tests.integration.scene import Scene

pytestmark = pytest.mark.slow

BOTH = {"order": "order", "invoice": "invoice"}


def states(scene: Scene, process_id: str) -> list[str]:
    return [view.state for view in scene.of_process(process_id)]


def test_the_first_message_teaches_a_second_key_and_a_later_one_routes_by_either(scene: Scene) -> None:
    """M49: begun by a message that names order and invoice, woken by the invoice alone and by the order alone; one that
    contradicts what was learnt is not taken, and stays parked."""
    process = scene.process("orders")
    process.start("begin", message=scene.name("Ordered"), key=BOTH).receive_task(
        "first", message=scene.name("Paid"), key=BOTH
    ).receive_task("second", message=scene.name("Paid"), key=BOTH).end("done")
    process_id = scene.deploy(process)
    scene.publish(scene.name("Ordered"), "O-1", order="O-1", invoice="I-9")
    (view,) = scene.of_process(process_id)
    instance = view.instance_id
    scene.released(instance)

    scene.publish(scene.name("Paid"), {"order": "O-1", "invoice": "I-OTHER"}, paid=0)
    assert scene.cycles(instance) == (1, 0), "it is not even woken by what contradicts its keys"
    assert scene.engine.top().parked == 1
    scene.publish(scene.name("Paid"), "I-9", paid=1)
    scene.released(instance)
    assert scene.see(instance).trace == ("begin", "first")
    assert scene.engine.top().parked == 1, "armed again, it does not take the parked one either"
    scene.publish(scene.name("Paid"), "O-1", more=2)

    done = scene.completed(instance, "begin", "first", "second", "done")
    assert (done.variables["paid"], done.variables["more"]) == (1, 2)
    other = scene.process("other")
    other.start("s").receive_task("paid", message=scene.name("Paid"), key=BOTH).end("e")
    taken = scene.begin(other, order="O-1", invoice="I-OTHER")
    assert scene.completed(taken, "s", "paid", "e").variables["paid"] == 0


def test_a_second_key_is_learnt_from_the_message_that_wakes(scene: Scene) -> None:
    """M49: set once, whatever a later payload says."""
    process = scene.process("learner")
    process.start("s").receive_task("first", message=scene.name("Paid"), key=BOTH).receive_task(
        "second", message=scene.name("Paid"), key=BOTH
    ).end("e")
    instance = scene.begin(process, order="O-1", invoice=None)
    scene.released(instance)

    scene.publish(scene.name("Paid"), {"order": "O-1", "invoice": "I-9"}, invoice="I-LATER")
    scene.released(instance)
    scene.publish(scene.name("Paid"), "I-9")

    scene.completed(instance, "s", "first", "second", "e")


def test_a_name_that_starts_and_wakes_joins_a_seen_key_and_starts_an_unseen_one(scene: Scene) -> None:
    """M50: a seen key wakes without a duplicate instance, also while the catch is still to come; an unseen key starts;
    when the conversation has ended, the key starts a new one."""
    process = scene.process("talk")
    process.start("begun", message=scene.name("Said")).user_task("look").receive_task(
        "more", message=scene.name("Said"), key="=who", outputs={"last": "=text"}
    ).end("e")
    process_id = scene.deploy(process)
    scene.publish(scene.name("Said"), "ann", who="ann", text="first")
    scene.publish(scene.name("Said"), "bob", who="bob", text="first")
    ann, bob = (view.instance_id for view in scene.of_process(process_id))
    scene.released(ann, bob)

    scene.publish(scene.name("Said"), "ann", text="second")
    assert len(scene.of_process(process_id)) == 2, "the conversation is known: it starts nobody"
    assert scene.engine.top().parked == 1, "and waits until its instance comes to the catch"
    for task in scene.engine.tasks(node="look"):
        scene.complete(task.id)
    assert scene.completed(ann, "begun", "look", "more", "e").variables["last"] == "second"
    scene.released(bob)
    scene.publish(scene.name("Said"), "bob", text="third")
    assert scene.completed(bob).variables["last"] == "third"
    assert len(scene.of_process(process_id)) == 2

    scene.publish(scene.name("Said"), "ann", who="ann", text="again")
    (again,) = (view for view in scene.of_process(process_id) if view.instance_id not in (ann, bob))
    assert again.trace == ("begun",)
    scene.call_off(again.instance_id)


def hearer(scene: Scene, name: str) -> ProcessBuilder:
    process = scene.process(name)
    process.start("s").catch("hear", message=scene.name("News"), key="=k", outputs={"heard": "=text"}).end("e")
    return process


def test_one_message_is_for_one_instance_of_every_process_that_waits(scene: Scene) -> None:
    """M52: at most one instance per process id, every process id that waits at that moment, and nobody who arms
    later."""
    ours, theirs = scene.deploy(hearer(scene, "ours")), scene.deploy(hearer(scene, "theirs"))
    for process_id in (ours, ours, theirs):
        scene.begin(process_id, k="A")
    late = scene.deploy(hearer(scene, "late"))

    scene.publish(scene.name("News"), "A", text="one")

    assert states(scene, ours) == ["completed", "waiting"], "the older one"
    assert states(scene, theirs) == ["completed"]
    for process_id in (ours, theirs, late):
        armed_later = scene.begin(process_id, k="A")
        scene.released(armed_later)
    scene.publish(scene.name("News"), "A", text="two")
    assert states(scene, ours) == ["completed", "completed", "waiting"]
    assert states(scene, theirs) == [*states(scene, late), "completed"] == ["completed", "completed"]
    scene.publish(scene.name("News"), "A", text="three")
    assert [view.variables["heard"] for view in scene.of_process(ours)] == ["one", "two", "three"]
    assert [view.variables["heard"] for view in scene.of_process(theirs)] == ["one", "two"]


def test_a_message_that_lost_to_a_completion_goes_back_to_routing_for_its_own_process(scene: Scene) -> None:
    """R29, M52: a completion and an interrupting message in one inbox; the first wins, the second ends as overtaken and
    is for who waits next of that process alone: the other one had its copy."""
    process = scene.process("guarded")
    with process.start("s").sub_process("scope") as inside:
        inside.start("si").user_task("task").end("ei")
    process.at("scope").end("done")
    process.boundary("scope", "stop", message=scene.name("News"), key="=k").end("aside")
    process_id = scene.deploy(process)
    other = scene.deploy(hearer(scene, "other"))
    instance, heard = scene.begin(process_id, k="A"), scene.begin(other, k="A")
    scene.engine.suspend(instance)
    scene.complete(scene.engine.tasks(instance_id=instance)[0].id)
    scene.publish(scene.name("News"), "A", text="for both")
    record = scene.store.instance(instance)
    assert record is not None
    assert [row.kind for row in record.inbox] == ["task", "message"]
    scene.completed(heard, "s", "hear", "e")

    scene.engine.resume(instance)
    scene.engine.wait_quiet()

    scene.completed(instance, "s", "si", "task", "ei", "scope", "done")
    assert [fact.data["trigger"] for fact in scene.facts(instance) if fact.fact == "Overtaken"] == ["message"]
    assert scene.engine.top().parked == 1
    waits_on = scene.begin(other, k="A")
    scene.released(waits_on)
    scene.completed(scene.begin(process_id, k="A"), "s", "si", "stop", "aside")
    scene.call_off(waits_on)
