"""Failed and slow wakes, a killed holder and a restored store on the real engine (F33, F34, T43).

After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from actors.registry import actor_rows
from gobpm_ray.engine import cluster
from gobpm_ray.model.builder import ProcessBuilder
from tests.integration.conftest import RunningEngine, wait_until
from tests.integration.scene import HOUR, Scene, frozen, log_of, work_until

SETTINGS = {"wake_backoff_ms": 300}

pytestmark = pytest.mark.slow


def test_a_rebuild_that_fails_leaves_every_hold_of_the_track(scene: Scene) -> None:
    """F33, D18: of a track with two timers, a task and a subscription; the failed wake takes none of them, and mended
    it goes on with all."""
    scene.unclean = True  # a wake that fails has no fact of its own
    process = scene.process("damaged")
    process.start("s").user_task("task").end("done")
    process.boundary("task", "soon", timer="PT1H", interrupting=False).end("early")
    process.boundary("task", "late", timer="PT2H", interrupting=False).end("reminded")
    process.boundary("task", "note", message=scene.name("Note"), key="=k", interrupting=False).end("noted")
    instance = scene.begin(process, k="A")
    key = scene.store.keys.instance(instance)
    part = scene.client.hget(key, ".t1")
    scene.client.hset(key, ".t1", b'{"n": 5')
    epoch = record(scene, instance).epoch

    scene.store.set_clock(scene.engine.now() + HOUR)
    wait_until(lambda: record(scene, instance).epoch >= epoch + 2, "it has been tried twice")

    held = record(scene, instance)
    assert sorted(row[0] for row in held.waits.values()) == ["message", "task", "timer"]
    assert [row.kind for row in held.inbox] == ["timer"], "and the one that fired is kept"
    wait_until(
        lambda: any("part 't1' of its checkpoint is damaged" in log_of(row.pid) for row in actor_rows(scene.store)),
        "it is said loudly",
    )
    scene.client.hset(key, ".t1", part)
    scene.engine.wait_quiet()
    assert scene.see(instance).trace == ("s", "soon", "early")
    scene.publish(scene.name("Note"), "A")
    scene.later("PT1H")
    assert scene.see(instance).trace == ("s", "soon", "early", "note", "noted", "late", "reminded")
    scene.complete("task")
    scene.completed(instance)


def record(scene: Scene, instance: str):
    found = scene.store.instance(instance)
    assert found is not None
    return found


def test_a_slow_wake_is_not_entered_by_a_second_pass(scene: Scene, tmp_path: Path) -> None:
    """F34, D7: while it works, a message, a deadline and an operator's `set` come for it; one lease, one run of the
    work, and each of them counts afterwards."""
    gate, visits = tmp_path / "gate", tmp_path / "visits"
    process = scene.process("slow")
    process.start("s").catch("go", message=scene.name("Go"), key="=k").parallel("fork").service_task(
        "work", topic=scene.name("work")
    ).end("worked")
    process.at("fork").catch("told", message=scene.name("Tell"), key="=k").end("heard")
    process.at("fork").catch("nap", timer="PT1H").end("slept")
    scene.engine.register(scene.name("work"), work_until(gate, visits))
    instance = scene.begin(process, k="A")
    scene.engine.publish(scene.name("Go"), "A")
    wait_until(visits.exists, "the slow work has begun")
    (lease,) = scene.store.leases()

    scene.engine.publish(scene.name("Tell"), "A")
    scene.engine.set(instance, {"n": 1})
    scene.store.set_clock(scene.engine.now() + HOUR)
    for _ in range(20):
        scene.store.ring("ready")
        scene.store.ring("supervisor")
    wait_until(lambda: {"told", "nap"} <= set(scene.see(instance).trace), "its host has taken what came")
    assert [row[:2] for row in scene.store.leases()] == [lease[:2]], "the same lease of the same host"
    assert visits.read_text() == "x"
    gate.touch()
    scene.engine.wait_quiet()

    view = scene.completed(instance)
    assert sorted(view.trace) == sorted(("s", "go", "fork", "told", "heard", "nap", "slept", "work", "worked"))
    assert view.variables["n"] == 1
    assert visits.read_text() == "x"
    assert scene.cycles(instance) == (1, 1), "one wake"


def naps(scene: Scene, *spans: str) -> dict[str, str]:
    """Span -> an instance that sleeps so long."""
    process = ProcessBuilder(f"naps_{scene.id}")
    process.start("s").catch("nap", timer="=span").end("e")
    process_id = scene.deploy(process)
    return {span: scene.begin(process_id, span=span) for span in spans}


def test_a_timer_holder_killed_with_deadlines_in_its_hands_fires_all_of_them_after_its_restart(
    scene: Scene, virtual_engine: RunningEngine
) -> None:
    """T43: it stands still as they fall due and is killed; the next one fires every one of them, once."""
    found = naps(scene, "PT1H", "PT2H", "PT3H", "PT30H")
    pid = cluster.status(virtual_engine.handle)["TimerHolder"]["pid"]
    with frozen(pid):
        scene.store.set_clock(scene.engine.now() + 24 * HOUR)
        assert len(scene.store.due(100).rows) == 3
        os.kill(pid, signal.SIGKILL)

    scene.engine.wait_quiet()
    for span in ("PT1H", "PT2H", "PT3H"):
        scene.completed(found[span], "s", "nap", "e")
        assert scene.cycles(found[span]) == (1, 1)
    scene.released(found["PT30H"])
    scene.later("PT6H")
    scene.completed(found["PT30H"], "s", "nap", "e")


def test_every_overdue_timer_of_an_older_store_that_was_restored_fires_again(scene: Scene) -> None:
    """T43: the store falls back to what it was before the timers fired, as from yesterday's backup, under a living
    engine; by then all of them are overdue, and each fires within one lease."""
    scene.unclean = True  # the facts of what the restored store does not know are gone with it
    found = naps(scene, "PT1H", "PT2H", "PT3H")
    backup = backup_of(scene)
    began = scene.engine.now()
    scene.later("PT4H")
    for instance in found.values():
        scene.completed(instance, "s", "nap", "e")

    restore(scene, backup)
    assert scene.engine.now() == began
    scene.released(*found.values())
    scene.store.set_clock(began + 24 * HOUR)

    lease_s = scene.store.settings.lease_ttl_ms / 1_000
    wait_until(lambda: {scene.see(one).state for one in found.values()} == {"completed"}, "all have fired", lease_s)
    scene.engine.wait_quiet()
    for instance in found.values():
        view = scene.completed(instance, "s", "nap", "e")
        assert view.history[-1].at_ms == began + 24 * HOUR


def backup_of(scene: Scene) -> dict[bytes, bytes]:
    """Every key of the engine as it is, when nothing moves."""
    scene.engine.wait_quiet()
    names = list(scene.client.scan_iter(match=f"{scene.store.keys.tag}:*", count=1_000))
    pipe = scene.client.pipeline(transaction=True)
    for name in names:
        pipe.dump(name)
    return {name: dump for name, dump in zip(names, pipe.execute(), strict=True) if dump is not None}


def restore(scene: Scene, backup: dict[bytes, bytes]) -> None:
    """The engine's keys are what they were, at one moment."""
    scene.engine.wait_quiet()
    pipe = scene.client.pipeline(transaction=True)
    for name in scene.client.scan_iter(match=f"{scene.store.keys.tag}:*", count=1_000):
        pipe.delete(name)
    for name, dump in backup.items():
        pipe.restore(name, 0, dump, replace=True)
    pipe.execute()
