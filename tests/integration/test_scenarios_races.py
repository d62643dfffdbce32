"""Races on the real engine (group R): what happens at one moment has one outcome, and nothing of the other is left.

Rounds are few and each is a real race through holders and actors; hundreds of rounds on the scripts alone stand in
`tests/contract/test_races.py`. After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from actors.registry import actor_rows
from gobpm_ray.engine.engine import Engine
from gobpm_ray.errors import EngineClosed, InputError
from tests.integration.conftest import RunningEngine, wait_until
from tests.integration.scene import HOUR, Scene

pytestmark = pytest.mark.slow


def together(*acts: Callable[[], object]) -> None:
    """All at one moment, each in a thread of its own."""
    barrier = threading.Barrier(len(acts))

    def one(act: Callable[[], object]) -> None:
        barrier.wait()
        act()

    with ThreadPoolExecutor(len(acts)) as pool:
        for done in [pool.submit(one, act) for act in acts]:
            done.result()


def test_a_trigger_during_the_cut_aborts_the_release_or_wakes_right_after_it(scene: Scene) -> None:
    """R20, D15: messages come at the very moment at which their instances are being released; none is lost."""
    process = scene.process("cut")
    process.start("s").catch("first", message=scene.name("M"), key="=k").catch(
        "second", message=scene.name("M"), key="=k"
    ).end("e")
    process_id = scene.deploy(process)
    keys = [f"K{n}" for n in range(30)]
    instances: list[str] = []

    def publish(mine: list[str]) -> None:
        for key in mine:
            for _ in range(2):
                scene.engine.publish(scene.name("M"), key)

    together(
        lambda: instances.extend(
            one.instance_id for one in scene.engine.start_many(process_id, [{"k": k} for k in keys])
        ),
        lambda: publish(keys[::2]),
        lambda: publish(keys[1::2]),
    )
    scene.engine.wait_quiet()

    for instance in instances:
        scene.completed(instance, "s", "first", "second", "e")
    assert scene.engine.top().parked == 0


def test_a_retry_that_races_a_timer_leaves_one_live_copy(scene: Scene, tmp_path: Path) -> None:
    """R24: the failed work's boundary is due as an operator retries; it ends as worked or as escalated, never both."""
    mended = tmp_path / "mended"
    process = scene.process("failing")
    process.start("s").service_task("work", topic=scene.name("work")).end("worked")
    process.boundary("work", "late", timer="PT1H").end("escalated")
    scene.engine.register(scene.name("work"), work_if(mended))
    process_id = scene.deploy(process)
    ways: Counter[str] = Counter()
    for n in range(8):
        mended.unlink(missing_ok=True)
        instances = [one.instance_id for one in scene.engine.start_many(process_id, [None] * 2)]
        scene.engine.wait_quiet()
        assert [scene.see(one).state for one in instances] == ["incident"] * 2
        mended.touch()

        def retry(these: list[str] = instances) -> None:
            for instance in these:
                with contextlib.suppress(InputError):  # the timer was first
                    scene.engine.retry(instance)

        later = scene.engine.now() + HOUR
        acts: list[Callable[[], object]] = [retry, lambda to=later: scene.store.set_clock(to)]  # type: ignore[misc]
        together(*(acts if n % 2 else acts[::-1]))
        scene.engine.wait_quiet()
        for instance in instances:
            trace = scene.completed(instance).trace
            assert trace in (("s", "work", "worked"), ("s", "late", "escalated")), trace
            ways[trace[-1]] += 1
    assert ways.total() == 16
    assert scene.engine.top().incidents == 0


def work_if(mended: Path):
    """Work that fails until a file is there; made inside a function, so that it travels by value."""
    name = str(mended)

    def work(inputs):
        import os

        if not os.path.exists(name):
            raise RuntimeError("broken")
        return {}

    return work


def test_a_withdrawal_that_lands_inside_the_arming_leaves_nothing_armed(scene: Scene) -> None:
    """R25, D6: cancelled while eleven waits of each are being armed: no record, no subscription, no zombie deadline."""
    process = scene.process("wide")
    process.start("s").parallel("fork").user_task("task").end()
    for n in range(5):
        process.at("fork").catch(f"nap{n}", timer="PT1H").end()
        process.at("fork").catch(f"hear{n}", message=scene.name("M"), key=f'="{n}"').end()
    process_id = scene.deploy(process)
    instances = [f"{scene.id}-{n}" for n in range(20)]

    def begin() -> None:
        for instance in instances:
            scene.engine.start(process_id, id=instance)

    def cancel() -> None:
        for instance in instances:
            wait_until(lambda one=instance: scene.store.status(one) is not None, "it has started")  # type: ignore[misc]
            scene.engine.cancel(instance)

    together(begin, cancel)
    scene.engine.wait_quiet()

    assert {scene.see(instance).state for instance in instances} == {"terminated"}
    top = scene.engine.top()
    assert (top.due, top.waiting, scene.engine.tasks()) == (0, 0, [])
    scene.later("PT2H")
    assert {scene.see(instance).state for instance in instances} == {"terminated"}


def test_an_instance_that_parks_between_a_cancels_check_and_its_act_still_terminates(scene: Scene) -> None:
    """R27, R26: a message moves each from one wait to the next as it is cancelled; resident or released, the cancel
    finds it, and a deadline that falls due meanwhile revives nobody."""
    process = scene.process("parking")
    process.start("s").catch("a", message=scene.name("A"), key="=k").user_task("task").end("e")
    process.boundary("task", "late", timer="PT1H", interrupting=False).end("reminded")
    process_id = scene.deploy(process)
    for _ in range(3):
        instances = [scene.begin(process_id, k=f"K{n}") for n in range(8)]
        later = scene.engine.now() + HOUR
        together(
            lambda: [scene.engine.publish(scene.name("A"), f"K{n}", ttl="PT30M") for n in range(8)],
            lambda these=instances: [scene.engine.cancel(one) for one in these],  # type: ignore[misc]
            lambda to=later: scene.store.set_clock(to),  # type: ignore[misc]
        )
        scene.engine.wait_quiet()
        assert {scene.see(instance).state for instance in instances} == {"terminated"}
        scene.later("PT2H")
        assert {scene.see(instance).state for instance in instances} == {"terminated"}
        assert scene.engine.top().due == 0
    # A message that found nobody any more has expired.
    wait_until(lambda: scene.engine.top().parked == 0, "the messages of nobody have expired")
    for letter in scene.engine.dead():
        scene.engine.drop(letter.id)


def test_an_operator_is_told_that_the_engine_is_closed(
    scene: Scene, virtual_engine: RunningEngine, store_url: str, home: Path
) -> None:
    """R28: an error, not a success; the instance is as it was, and the engine that others keep open goes on."""
    process = scene.process("held")
    process.start("s").user_task("task").end("e")
    process.boundary("task", "late", timer="P9D").end("overdue")
    instance = scene.begin(process)
    before = scene.see(instance)
    front = Engine.open(store_url, ray=None, settings=virtual_engine.settings, home=home)
    assert front.inspect(instance).state == "waiting"
    front.close()

    for act in (
        lambda: front.cancel(instance),
        lambda: front.suspend(instance),
        lambda: front.set(instance, {"n": 1}),
        lambda: front.complete("task"),
        lambda: front.publish("M"),
        lambda: front.signal("S"),
        lambda: front.start(process.build().id),
        lambda: front.retry(instance),
        lambda: front.deploy(process),
        lambda: front.list_instances(),
    ):
        with pytest.raises(EngineClosed):
            act()

    scene.engine.wait_quiet()
    assert scene.see(instance) == before
    scene.call_off(instance)


@pytest.mark.parametrize("rounds", [60, pytest.param(500, marks=pytest.mark.long)])
@pytest.mark.timeout(300)
def test_of_two_gateway_arms_fired_together_one_wins_in_every_round(scene: Scene, rounds: int) -> None:
    """R29, R22: nothing is left armed; where the timer won, the message went to who waited next, and was not lost."""
    process = scene.process("race")
    process.start("s").event_gateway("either").catch("reply", message=scene.name("R"), key="=k").end("answered")
    process.at("either").catch("timeout", timer="PT2H").catch("next", message=scene.name("R"), key="=k").end("late")
    process_id = scene.deploy(process)
    started = scene.engine.start_many(process_id, [{"k": n} for n in range(rounds)])
    scene.engine.wait_quiet()
    assert scene.engine.top().waiting == rounds
    later = scene.engine.now() + 2 * HOUR
    halfway = threading.Event()

    def publish() -> None:
        for n in range(rounds):
            if n == rounds // 2:
                halfway.set()
            scene.engine.publish(scene.name("R"), n)

    def fire() -> None:
        halfway.wait()
        scene.store.set_clock(later)

    together(publish, fire)
    scene.engine.wait_quiet()

    ways = Counter(scene.see(one.instance_id).trace for one in started)
    assert ways.keys() <= {("s", "either", "reply", "answered"), ("s", "either", "timeout", "next", "late")}
    assert ways.total() == rounds
    assert len(ways) == 2, "both have won"
    assert (scene.engine.top().due, scene.engine.top().parked) == (0, 0)


@pytest.mark.parametrize("rounds", [2, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.timeout(400)
def test_killed_as_it_wakes_again_and_again_a_corpse_never_writes(scene: Scene, rounds: int) -> None:
    """R30: each round wakes the instance and kills whoever hosts it (SIGKILL); every wake counts once."""
    scene.unclean = True
    process = scene.process("counter")
    process.start("s").user_task("task").end("done")
    process.boundary("task", "hear", message=scene.name("Go"), key="=k", interrupting=False).script_task(
        "count", "n + 1", result="n"
    ).end("counted")
    instance = scene.begin(process, k="A", n=0)

    for n in range(rounds):
        rows = [row for row in actor_rows(scene.store) if row.started]
        scene.engine.publish(scene.name("Go"), "A")
        for row in rows:
            with contextlib.suppress(ProcessLookupError):
                os.kill(row.pid, signal.SIGKILL)
        scene.engine.wait_quiet()
        assert scene.see(instance).variables["n"] == n + 1, "once, whoever did it"

    scene.released(instance)
    scene.complete("task")
    # The history keeps its newest entries.
    kept = min(rounds, 10)
    assert scene.completed(instance).trace[-3 * kept - 2 :] == (*("hear", "count", "counted") * kept, "task", "done")
