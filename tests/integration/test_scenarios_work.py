"""Work that is cut off and recovered, on the real engine (group A, C63, S83).

Whoever dies here is killed by SIGKILL from inside its own work, so the test knows where it was. After each scenario its
fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.registry import actor_rows
from gobpm_ray.engine.views import InstanceView
from gobpm_ray.model.builder import ProcessBuilder
from tests.integration.conftest import RunningEngine, wait_until
from tests.integration.dying_work import arming, calls, died, noting
from tests.integration.scene import Scene, log_of

SETTINGS = {"lease_ttl_ms": 4_000, "lease_renew_ms": 1_000, "max_call_depth": 4, "wake_backoff_ms": 300, "spares": 1}

pytestmark = pytest.mark.slow


def working(scene: Scene, work: Any, *nodes: str, **more: Any) -> ProcessBuilder:
    """Service tasks one after the other, all done by this work; `more` of each of them."""
    process = scene.process("working")
    cursor = process.start("s")
    scene.engine.register(scene.name("work"), work)
    for node in nodes:
        cursor = cursor.service_task(node, topic=scene.name("work"), **more)
    cursor.end("e")
    return process


def events(view: InstanceView, *wanted: str) -> list[tuple[str, str]]:
    return [(entry.event, entry.node) for entry in view.history if entry.event in wanted]


# ------------------------------------------------------------------------------------------------------------- recovery


def test_a_crash_after_a_safe_step_drives_it_again_and_no_earlier_one(scene: Scene, tmp_path: Path) -> None:
    """A71, N10: the second of three idempotent steps kills its actor; the next one does it again, under its one key."""
    scene.unclean = True
    log = tmp_path / "calls"
    process = scene.process("steps")
    steady, deadly = scene.name("steady"), scene.name("deadly")
    process.start("s").service_task("one", topic=steady, idempotent=True).service_task(
        "two", topic=deadly, idempotent=True
    ).service_task("three", topic=steady, idempotent=True).end("e")
    scene.engine.register(steady, noting(log))
    scene.engine.register(deadly, noting(log, dies=1))

    instance = scene.begin(process)

    view = scene.completed(instance, "s", "one", "two", "three", "e")
    assert [(call.node, call.attempt) for call in calls(log)] == [("one", 1), ("two", 1), ("two", 2), ("three", 1)]
    assert len({call.key for call in calls(log)}) == 3
    first, second = (call.pid for call in calls(log) if call.node == "two")
    assert first != second
    assert events(view, "sealed", "incident") == [("sealed", "two")]


def test_a_crash_inside_a_task_that_is_not_idempotent_is_an_incident(scene: Scene, tmp_path: Path) -> None:
    """A72, N10: with a notice in the history; retry runs it, resolve goes past it; nothing runs it by itself."""
    scene.unclean = True
    log = tmp_path / "calls"
    process = working(scene, noting(log, dies=2), "pay")
    process_id = scene.deploy(process)
    retried, resolved = scene.begin(process_id), scene.begin(process_id)

    for instance in (retried, resolved):
        view = scene.see(instance)
        assert view.state == "incident"
        (incident,) = view.incidents
        assert (incident.node, incident.code) == ("pay", "sealed")
        assert "cut off by a crash" in incident.cause
        assert events(view, "sealed", "incident") == [("sealed", "pay"), ("incident", "pay")]
    assert len(calls(log)) == 2, "each ran once, up to its death"

    scene.engine.retry(retried, "pay")
    scene.engine.resolve(resolved, "pay", {"paid": "by hand"})
    scene.engine.wait_quiet()

    assert scene.completed(retried, "s", "pay", "e").variables == {"by_pay": 3}
    assert scene.completed(resolved, "s", "pay", "e").variables == {"paid": "by hand"}
    assert len(calls(log)) == 3


@pytest.mark.parametrize("point", ["hosting.drafted", "store.after.commit"])
def test_a_crash_between_park_decided_and_parked_parks_once(scene: Scene, tmp_path: Path, point: str) -> None:
    """A73: the actor dies with the commit in hand, or when it is durable and nobody has heard of it."""
    scene.unclean = True
    process = scene.process("parking")
    process.start("s").service_task("before", topic=scene.name("arm"), idempotent=True).user_task("park").end("e")
    process.boundary("park", "late", timer="P1D").end("le")
    scene.engine.register(scene.name("arm"), arming(tmp_path, point, 1))

    instance = scene.begin(process)

    wait_until(lambda: died(tmp_path), "its actor is dead")
    scene.engine.wait_quiet()
    scene.released(instance)
    assert scene.waits(instance) == [("late", "timer"), ("park", "task")]
    assert len(scene.engine.tasks(instance_id=instance)) == 1
    assert scene.see(instance).trace == ("s", "before")
    scene.complete("park")
    scene.completed(instance, "s", "before", "park", "e")


def test_a_crash_loop_ends_in_an_incident_at_its_cap(scene: Scene, tmp_path: Path) -> None:
    """A74, N10: work that kills every host is sealed three times, idempotent or not, and then waits for a person."""
    scene.unclean = True
    log = tmp_path / "calls"
    instance = scene.begin(working(scene, noting(log, dies=3), "loop", idempotent=True))

    view = scene.see(instance)
    assert view.state == "incident"
    assert [call.attempt for call in calls(log)] == [1, 2, 3]
    assert events(view, "sealed", "incident") == [("sealed", "loop")] * 3 + [("incident", "loop")]

    scene.engine.retry(instance)
    scene.engine.wait_quiet()
    scene.completed(instance, "s", "loop", "e")
    assert len(calls(log)) == 4


def test_three_silent_deaths_hold_the_instance_until_a_person_lets_it_go_on(scene: Scene, tmp_path: Path) -> None:
    """C63, N9: what its element does kills every host before anything of it is committed; the history says so, the
    trigger is kept, and others are not disturbed (C64)."""
    scene.unclean = True
    scene.engine.register_element("tests:deadly", "tests.integration.deadly_element:Deadly")
    process = scene.process("deadly")
    process.start("s").catch("told", message=scene.name("Tell"), key="=k").custom(
        "tests:deadly", "kills", parameters={"folder": str(tmp_path)}
    ).end("e")
    process_id = scene.deploy(process)
    instance, other = scene.begin(process_id, k="A"), scene.begin(process_id, k="B")

    scene.publish(scene.name("Tell"), "A", told=1)

    view = scene.see(instance)
    # Whoever has only claimed it may have died of anything; from the second host on a death is held against it.
    assert len((tmp_path / "deaths").read_text()) == 1 + 3
    assert view.state == "incident"
    assert view.incidents[0].cause.startswith("3 hosts died over it without a word")
    assert events(view, "incident") == [("incident", "")]
    assert view.trace == ("s",), "nothing of what killed them is committed"
    scene.released(other)

    (tmp_path / "cured").touch()
    scene.engine.retry(instance)
    scene.engine.wait_quiet()
    assert scene.completed(instance, "s", "told", "kills", "e").variables == {"k": "A", "told": 1}
    scene.publish(scene.name("Tell"), "B")
    scene.completed(other, "s", "told", "kills", "e")


def test_a_kill_inside_the_second_pass_of_an_iteration_does_not_run_the_first_again(
    scene: Scene, tmp_path: Path
) -> None:
    """A77: a sequential iteration over three items, killed at the second."""
    scene.unclean = True
    log = tmp_path / "calls"
    process = scene.process("rounds")
    process.start("s").service_task(
        "each", topic=scene.name("each"), idempotent=True, inputs={"item": "=item"}
    ).multi_instance(collection="=items", item="item", sequential=True, output="done", output_item="=item * 10").end(
        "e"
    )
    scene.engine.register(scene.name("each"), noting(log, dies_at=2, dies=1))

    instance = scene.begin(process, items=[1, 2, 3])

    view = scene.completed(instance)
    assert view.trace.count("each") in (3, 4)  # once a body, and the iteration itself where it is listed
    assert view.variables["done"] == [10, 20, 30]
    assert [(call.item, call.attempt) for call in calls(log)] == [(1, 1), (2, 1), (2, 2), (3, 1)]
    assert len({call.key for call in calls(log)}) == 3


def test_a_kill_in_the_middle_of_a_compensation_resumes_its_queue_in_order(scene: Scene, tmp_path: Path) -> None:
    """A78: three bookings are undone in reverse order; the actor dies while it undoes the second."""
    scene.unclean = True
    log = tmp_path / "calls"
    book, undo, deadly = scene.name("book"), scene.name("undo"), scene.name("deadly")
    process = scene.process("trip")
    cursor = process.start("s")
    for name in ("car", "hotel", "flight"):
        cursor = cursor.service_task(name, topic=book, idempotent=True)
    cursor.throw("undo", compensate=True).end("e")
    for name in ("car", "hotel", "flight"):
        topic = deadly if name == "hotel" else undo
        process.boundary(name, compensate=True).service_task(f"no_{name}", topic=topic, idempotent=True)
    scene.engine.register(book, noting(log))
    scene.engine.register(undo, noting(log))
    scene.engine.register(deadly, noting(log, dies=1))

    instance = scene.begin(process)

    view = scene.completed(instance)
    assert [call.node for call in calls(log)] == [
        *("car", "hotel", "flight"),
        *("no_flight", "no_hotel", "no_hotel", "no_car"),
    ]
    undone = [node for node in view.trace if node.startswith("no_")]
    assert undone == ["no_flight", "no_hotel", "no_car"]
    assert view.trace[-2:] == ("undo", "e")


def test_a_corrupt_record_fails_loudly_and_the_others_recover(scene: Scene) -> None:
    """A79: of two that wait one is damaged; both are told; what the damaged one was told is kept until it is mended."""
    process = scene.process("told")
    process.start("s").catch("told", message=scene.name("Tell"), key="=k").end("e")
    process_id = scene.deploy(process)
    damaged, sound = scene.begin(process_id, k="A"), scene.begin(process_id, k="B")
    key = scene.store.keys.instance(damaged)
    head = scene.client.hget(key, ".h")
    scene.client.hset(key, ".h", b"{ no checkpoint")

    for name in ("A", "B"):
        scene.engine.publish(scene.name("Tell"), name, {"heard": name})

    assert scene.engine.wait(sound, 15).variables["heard"] == "B"
    complaint = f"instance {damaged} of process {process_id} version 1: wake failed"
    wait_until(lambda: any(complaint in log_of(row.pid) for row in actor_rows(scene.store)), "its actor says so")
    scene.client.hset(key, ".h", head)
    assert scene.engine.wait(damaged, 15).variables == {"k": "A", "heard": "A"}
    scene.engine.wait_quiet()
    assert scene.cycles(damaged) == (1, 1)


# ------------------------------------------------------------------------------------------------------------ structure


def test_cancelling_a_caller_whose_child_has_an_incident_ends_both(scene: Scene, tmp_path: Path) -> None:
    """S83."""

    def fails(inputs):
        raise ValueError("no such account")

    scene.engine.register(scene.name("fails"), fails)
    child = scene.process("child")
    child.start("cs").service_task("book", topic=scene.name("fails")).end("ce")
    child_id = scene.deploy(child)
    caller = scene.process("caller")
    caller.start("s").call("sub", process=child_id).end("e")
    instance = scene.begin(caller)
    (called,) = scene.of_process(child_id)
    assert (called.state, called.caller) == ("incident", instance)
    assert called.incidents[0].cause == "ValueError: no such account"
    assert scene.see(instance).state == "waiting"

    scene.engine.cancel(instance)
    scene.engine.wait_quiet()

    assert [scene.see(one).state for one in (instance, called.instance_id)] == ["terminated", "terminated"]
    assert scene.engine.incidents() == []


def test_a_process_that_calls_itself_hits_the_depth_limit(scene: Scene) -> None:
    """S83: here four deep; the deepest one's call is an incident that names the limit, and a cancel ends them all."""
    process = scene.process("mirror")
    process.start("s").call("again", process=f"mirror_{scene.id}").end("e")
    instance = scene.begin(process)

    (incident,) = scene.engine.incidents()
    assert incident.node == "again"
    assert "calls nest deeper than 4" in incident.cause
    (process_id,) = {view.process_id for view in scene.of_process(f"mirror_{scene.id}")}
    assert len(scene.of_process(process_id)) == 5

    scene.engine.cancel(instance)
    scene.engine.wait_quiet()
    assert {view.state for view in scene.of_process(process_id)} == {"terminated"}


# ---------------------------------------------------------------------------------------------------- an end by SIGTERM


@pytest.mark.long
def test_a_step_that_runs_when_its_engine_stops_finishes_within_the_grace(
    scene: Scene, virtual_engine: RunningEngine, tmp_path: Path
) -> None:
    """A75, N11: asked to stop, its actor claims nothing more, lets the step finish, commits it, and ends cleanly; one
    that outlasts the grace is abandoned, and reclaimed by whoever comes next."""
    from gobpm_ray.engine import cluster

    scene.unclean = True
    log, gate = tmp_path / "calls", tmp_path / "gate"
    process = scene.process("stopping")
    process.start("s").service_task("brief", topic=scene.name("brief")).user_task("task").end("e")
    lasting = working(scene, noting(log, until=gate), "lasting", idempotent=True)
    scene.engine.register(scene.name("brief"), noting(log, seconds=1.0))
    brief = scene.engine.start(scene.deploy(process)).instance_id
    long = scene.engine.start(scene.deploy(lasting)).instance_id
    wait_until(lambda: len(calls(log)) == 2, "both work")

    cluster.stop(virtual_engine.handle, grace_ms=2_500)

    view = scene.see(brief)
    assert (view.trace, view.resident) == (("s", "brief"), False)
    assert [call.node for call in calls(log)].count("brief") == 1
    assert scene.see(long).trace == ("s",)
    gate.touch()
    spec = virtual_engine.handle.spec
    cluster.ensure(spec.settings, spec.store_url, signing_key=spec.signing_key)
    assert scene.engine.wait(long, 30).trace == ("s", "lasting", "e")
    assert [call.attempt for call in calls(log) if call.node == "lasting"] == [1, 2]
    scene.complete("task")
    scene.completed(brief, "s", "brief", "task", "e")
