"""Release and wake on the real engine (group W): every kind of wait, released and woken.

After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from actors.registry import actor_rows
from gobpm_ray import Engine, ProcessBuilder
from gobpm_ray.engine import cluster
from tests.integration.conftest import RunningEngine, wait_until
from tests.integration.scene import HOUR, Scene, log_of, work_until

SETTINGS: dict[str, object] = {}
"""An engine of its own: at the end nothing but successful wakes stands in its logs (F35)."""

pytestmark = pytest.mark.slow


def guarded(scene: Scene, **boundary: object) -> ProcessBuilder:
    """A human task under one boundary."""
    process = scene.process("guarded")
    process.start("s").user_task("task").end("done")
    process.boundary("task", "edge", **boundary).end("aside")  # type: ignore[arg-type]
    return process


# ------------------------------------------------------------------------------------------------------------- timers


def test_a_timer_two_hours_away_is_released_and_woken_once(scene: Scene) -> None:
    """W1, D4, D7, D14."""
    process = scene.process()
    process.start("s").catch("nap", timer="PT2H").end("e")
    instance = scene.begin(process)
    scene.released(instance)
    (wait,) = scene.see(instance).waits
    assert wait.deadline_ms == scene.engine.now() + 2 * HOUR

    scene.later("PT1H59M")
    assert scene.cycles(instance) == (1, 0)
    scene.later("PT2M")

    view = scene.completed(instance, "s", "nap", "e")
    assert view.history[-1].at_ms == wait.deadline_ms, "it ran at its time, not when the clock stood still again"
    assert scene.cycles(instance) == (1, 1)
    (hydrated,) = [fact for fact in scene.facts(instance) if fact.fact == "Hydrated"]
    assert hydrated.data["trigger"] == "timer"
    assert hydrated.data["outcome"] == "completed"
    assert hydrated.data["triggers"] == 1


def test_a_timer_under_the_threshold_stays_resident_and_fires_without_a_hydration(scene: Scene) -> None:
    """W2: and it is in `due` all the same, so that it outlives its actor."""
    process = scene.process()
    process.start("s").catch("blink", timer="PT29S").end("e")
    instance = scene.begin(process)

    view = scene.see(instance)
    assert (view.state, view.resident) == ("waiting", True)
    top = scene.engine.top()
    assert (top.resident, top.waiting, top.due) == (1, 0, 1)
    scene.later("PT29S")

    scene.completed(instance, "s", "blink", "e")
    assert scene.cycles(instance) == (0, 0)


def test_long_timers_one_after_the_other_are_release_cycles_and_the_lineage_does_not_grow(scene: Scene) -> None:
    """W3, D7, D8: six cycles leave the checkpoint as large as one does."""
    process = scene.process()
    process.start("s").script_task("count", "n + 1", result="n").catch("nap", timer="PT3H").exclusive(
        "more", default="e"
    )
    process.at("more").when("n < 6").to("count")
    process.at("more").otherwise().end("e")
    instance = scene.begin(process, n=0)

    shapes = []
    for _ in range(5):
        record = scene.store.instance(instance)
        assert record is not None
        # Counters and deadlines may grow a digit; nothing else may differ from one cycle to the next.
        shapes.append({name: re.sub(rb"\d+", b"0", part) for name, part in record.parts.items()})
        assert len(record.waits) == 1
        scene.later("PT3H")
    scene.released(instance)
    assert shapes[1:] == [shapes[1]] * 4
    assert shapes[0].keys() == shapes[1].keys()
    scene.later("PT3H")
    scene.completed(instance)
    assert scene.cycles(instance) == (6, 6)


def test_an_interrupting_timer_boundary_escalates_a_released_task(scene: Scene) -> None:
    """W5, D13: at 25 h the escalation has run at its time, and the task is withdrawn."""
    instance = scene.begin(guarded(scene, timer="PT24H"))
    began = scene.engine.now()
    scene.released(instance)
    assert scene.waits(instance) == [("edge", "timer"), ("task", "task")]

    scene.later("PT25H")

    view = scene.completed(instance, "s", "edge", "aside")
    assert view.history[-1].at_ms == began + 24 * HOUR
    assert scene.engine.tasks(instance_id=instance) == []


def test_a_completion_an_hour_before_the_boundary_ends_it_for_ever(scene: Scene) -> None:
    """W6: the boundary never fires later."""
    instance = scene.begin(guarded(scene, timer="PT24H"))
    scene.later("PT23H")
    scene.complete("task", {"ok": True})
    view = scene.completed(instance, "s", "task", "done")
    assert view.variables == {"ok": True}

    scene.later("P2D")

    assert scene.see(instance) == view
    assert scene.cycles(instance) == (1, 1)


def test_x10_after_a_non_interrupting_boundary_fired_the_instance_is_released_again(scene: Scene) -> None:
    """W7, X10: it fires once, the task survives under the same id, and the instance is released again."""
    instance = scene.begin(guarded(scene, timer="PT24H", interrupting=False))
    (task,) = scene.engine.tasks(instance_id=instance)

    scene.later("P3D")

    scene.released(instance)
    assert scene.see(instance).trace == ("s", "edge", "aside")
    assert scene.waits(instance) == [("task", "task")]
    assert scene.cycles(instance) == (2, 1)
    assert [one.id for one in scene.engine.tasks(instance_id=instance)] == [task.id]
    scene.complete(task.id)
    scene.completed(instance, "s", "edge", "aside", "task", "done")


# ----------------------------------------------------------------------------------------------- messages and signals


def test_x2_a_message_or_signal_boundary_of_a_released_task_runs_the_exception_flow(scene: Scene) -> None:
    """W8, W9, X2: with the payload bound, and the task withdrawn: it is not completed."""
    by_message = scene.begin(guarded(scene, message=scene.name("Stop"), key="=k"), k="A")
    other = scene.process("heard")
    other.start("s").user_task("task").end("done")
    other.boundary("task", "edge", signal=scene.name("Alarm")).end("aside")
    by_signal = scene.begin(other)
    scene.released(by_message, by_signal)

    scene.publish(scene.name("Stop"), "A", why="found")
    scene.signal(scene.name("Alarm"), how="loud")

    told = scene.completed(by_message, "s", "edge", "aside")
    heard = scene.completed(by_signal, "s", "edge", "aside")
    assert told.variables == {"k": "A", "why": "found"}
    assert heard.variables == {"how": "loud"}
    assert scene.engine.tasks() == []
    assert [fact.data["trigger"] for fact in scene.facts(by_message) if fact.fact == "Hydrated"] == ["message"]
    assert [fact.data["trigger"] for fact in scene.facts(by_signal) if fact.fact == "Hydrated"] == ["signal"]


def test_non_interrupting_message_and_signal_boundaries_fire_as_often_as_they_are_met(scene: Scene) -> None:
    """W8, W9, D13: the task survives each, and each is a release cycle."""
    process = scene.process()
    process.start("s").user_task("task").end("done")
    process.boundary("task", "told", message=scene.name("News"), key="=k", interrupting=False).end("noted")
    process.boundary("task", "heard", signal=scene.name("Bell"), interrupting=False).end("rung")
    instance = scene.begin(process, k="A")

    for _ in range(2):
        scene.publish(scene.name("News"), "A")
        scene.signal(scene.name("Bell"))
    scene.released(instance)
    scene.complete("task")

    scene.completed(instance, "s", *("told", "noted", "heard", "rung") * 2, "task", "done")
    assert scene.cycles(instance) == (5, 5)


def test_x13_a_receive_task_and_a_user_task_inside_a_sub_process_are_released(scene: Scene) -> None:
    """W14, X13: and so is one inside a sub-process inside a sub-process, which a message then wakes."""
    process = scene.process()
    process.start("s").receive_task("receive", message=scene.name("Paid"), key="=k").sub_process("outer", nested).end(
        "e"
    )
    instance = scene.begin(process, k="A")
    scene.released(instance)
    assert scene.waits(instance) == [("receive", "message")]

    scene.publish(scene.name("Paid"), "A", paid=5)
    scene.released(instance)
    assert scene.waits(instance) == [("check", "task")]

    scene.complete("check", {"fine": True})
    view = scene.completed(instance, "s", "receive", "so", "si", "check", "ei", "inner", "eo", "outer", "e")
    assert view.variables == {"k": "A", "paid": 5, "fine": True}
    assert scene.cycles(instance) == (2, 2)


def nested(outer) -> None:
    outer.start("so").sub_process("inner", lambda inner: inner.start("si").user_task("check").end("ei")).end("eo")


def test_an_interrupting_boundary_of_a_sub_process_withdraws_all_that_waits_inside(scene: Scene) -> None:
    """D6, as W13 for what stands inside: task, message and timer inside are withdrawn with the scope."""
    process = scene.process()
    with process.start("s").sub_process("inside") as inside:
        inside.start("si").parallel("fork").user_task("task").end("e1")
        inside.at("fork").catch("paid", message=scene.name("Paid"), key="=k").end("e2")
        inside.at("fork").catch("nap", timer="P9D").end("e3")
    process.at("inside").end("done")
    process.boundary("inside", "edge", timer="P1D").end("aside")
    instance = scene.begin(process, k="A")
    scene.released(instance)
    assert len(scene.waits(instance)) == 4

    scene.later("P1D")

    scene.completed(instance, "s", "si", "fork", "edge", "aside")
    scene.publish(scene.name("Paid"), "A")
    assert scene.engine.top().parked == 1, "nobody waits for it any more"
    taker = scene.process("taker")
    taker.start("s").catch("paid", message=scene.name("Paid"), key="=k").end("e")
    scene.completed(scene.begin(taker, k="A"), "s", "paid", "e")


def test_an_instance_that_is_born_parked_is_released_with_no_further_event(scene: Scene) -> None:
    """W18: a message start straight into a catch."""
    process = scene.process("born")
    process.start("told", message=scene.name("Order")).catch("paid", message=scene.name("Paid"), key="=k").end("e")
    process_id = scene.deploy(process)
    scene.publish(scene.name("Order"), k="A")

    (view,) = scene.of_process(process_id)
    scene.released(view.instance_id)
    assert scene.cycles(view.instance_id) == (1, 0)
    scene.publish(scene.name("Paid"), "A")
    scene.completed(view.instance_id, "told", "paid", "e")


# ------------------------------------------------------------------------------------------------------ several waits


def test_x4_both_branches_of_a_split_are_held_before_the_release_and_both_triggers_count(scene: Scene) -> None:
    """W11, X4: two messages in any order, in two wakes or in one."""
    process = scene.process()
    process.start("s").parallel("fork").catch("a", message=scene.name("A"), key="=k").parallel("join").end("e")
    process.at("fork").catch("b", message=scene.name("B"), key="=k").to("join")
    scene.deploy(process)
    one, two = (scene.begin(process.build().id, k=key) for key in ("one", "two"))
    scene.released(one, two)
    assert scene.waits(one) == scene.waits(two) == [("a", "message"), ("b", "message")]

    scene.publish(scene.name("B"), "one")
    scene.released(one)
    assert scene.waits(one) == [("a", "message")]
    scene.publish(scene.name("A"), "one")
    scene.engine.suspend(two)
    scene.publish(scene.name("A"), "two")
    scene.publish(scene.name("B"), "two")
    scene.engine.resume(two)
    scene.engine.wait_quiet()

    scene.completed(one, "s", "fork", "b", "a", "join", "e")
    scene.completed(two, "s", "fork", "a", "b", "join", "e")
    assert scene.cycles(one) == (2, 2)
    assert scene.cycles(two) == (1, 1), "both triggers were one wake"


def test_two_hours_and_three_hours_are_two_and_three_hours(scene: Scene) -> None:
    """W12: the first wake does not shift the second deadline."""
    process = scene.process()
    process.start("s").parallel("fork").catch("two", timer="PT2H").parallel("join").end("e")
    process.at("fork").catch("three", timer="PT3H").to("join")
    instance = scene.begin(process)
    began = scene.engine.now()

    scene.later("P1D")

    at = {entry.node: entry.at_ms for entry in scene.completed(instance).history if entry.event == "node"}
    assert (at["two"] - began, at["three"] - began) == (2 * HOUR, 3 * HOUR)
    assert scene.cycles(instance) == (2, 2)


def test_a_branch_at_the_join_is_released_with_the_branch_that_waits(scene: Scene) -> None:
    """W15: one token waits at the join, the other for a message; they join after the wake."""
    process = scene.process()
    process.start("s").parallel("fork").parallel("join").end("e")
    process.at("fork").catch("reply", message=scene.name("Reply"), key="=k").to("join")
    instance = scene.begin(process, k="A")
    scene.released(instance)
    assert sorted((token.node, token.state) for token in scene.see(instance).tokens) == [
        ("join", "joined"),
        ("reply", "waiting"),
    ]

    scene.publish(scene.name("Reply"), "A")
    scene.completed(instance, "s", "fork", "reply", "join", "e")


# ------------------------------------------------------------------------------------------------------- work at hand


def test_x1_a_timer_boundary_over_a_busy_resident_activity_interrupts_cleanly(scene: Scene, tmp_path: Path) -> None:
    """W10, X1: the instance goes on at once; what the callable still brings is discarded."""
    gate, visits = tmp_path / "gate", tmp_path / "visits"
    process = scene.process()
    process.start("s").service_task("work", topic=scene.name("work")).end("done")
    process.boundary("work", "edge", timer="PT1H").user_task("look").end("aside")
    scene.engine.register(scene.name("work"), work_until(gate, visits))
    instance = scene.engine.start(scene.deploy(process)).instance_id
    wait_until(visits.exists, "the work has begun")
    assert scene.see(instance).resident

    scene.store.set_clock(scene.engine.now() + HOUR)
    wait_until(lambda: scene.waits(instance) == [("look", "task")], "the boundary has fired")
    scene.engine.wait_quiet()
    scene.released(instance)
    gate.touch()
    scene.complete("look")

    view = scene.completed(instance, "s", "edge", "look", "aside")
    assert view.variables == {}
    assert visits.read_text() == "x"


def test_a_workers_job_in_flight_keeps_its_instance_resident_until_it_is_reported(scene: Scene) -> None:
    """W17, D12."""
    process = scene.process()
    process.start("s").service_task("pack", topic=scene.name("pack")).user_task("look").end("e")
    instance = scene.begin(process)
    view = scene.see(instance)
    assert (view.state, view.resident) == ("waiting", True)
    assert scene.cycles(instance) == (0, 0)

    scene.engine.complete_job("pack", {"parcels": 2})
    scene.engine.wait_quiet()

    scene.released(instance)
    assert scene.cycles(instance) == (1, 0)
    scene.complete("look")
    assert scene.completed(instance, "s", "pack", "look", "e").variables == {"parcels": 2}


def test_without_a_store_nothing_ever_releases_and_everything_still_works() -> None:
    """W19, D17."""
    process = ProcessBuilder("plain")
    process.start("s").user_task("task").catch("nap", timer="P1D").catch("reply", message="Reply", key="=k").end("e")
    with Engine.open(None, clock="virtual") as engine:
        engine.deploy(process)
        instance = engine.start("plain", {"k": "A"}).instance_id
        engine.complete("task")
        engine.advance("P2D")
        engine.publish("Reply", "A")
        assert engine.inspect(instance).trace == ("s", "task", "nap", "reply", "e")
        assert [fact.fact for fact in engine.facts()] == ["Started", "Completed"]


# ----------------------------------------------------------------------------------------------------------- at the end


def test_after_all_these_wakes_no_log_of_an_actor_holds_an_error(scene: Scene, virtual_engine: RunningEngine) -> None:
    """F35, D6: a successful wake logs no error; this engine has seen nothing but successful ones."""
    process = scene.process()
    process.start("s").catch("nap", timer="PT2H").end("e")
    instance = scene.begin(process)
    scene.later("PT2H")
    scene.completed(instance)

    pids = [row.pid for row in actor_rows(scene.store)]
    pids += [answer["pid"] for answer in cluster.status(virtual_engine.handle).values()]
    lines = [line for pid in pids for line in log_of(pid).splitlines()]
    assert len(pids) >= 5
    assert any(" INFO " in line for line in lines), "the engine's own log is there"
    assert [line for line in lines if " ERROR " in line or " CRITICAL " in line or "Traceback" in line] == []
