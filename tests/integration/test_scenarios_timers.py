"""Timers on the real engine (group T): cycles, gateways, start events, and what a clock may do while nobody looks.

After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gobpm_ray.engine.amounts import moment
from gobpm_ray.engine.views import InstanceView
from gobpm_ray.model.builder import ProcessBuilder, ScopeBuilder
from tests.integration.conftest import wait_until
from tests.integration.scene import DAY, HOUR, Scene, work_until

MINUTE = 60_000

pytestmark = pytest.mark.slow


def fired_at(view: InstanceView, node: str) -> list[int]:
    return [entry.at_ms for entry in view.history if entry.event == "node" and entry.node == node]


def test_two_instances_on_one_modelled_timer_are_each_resumed_by_their_own(scene: Scene) -> None:
    """T36: armed an hour apart, fired an hour apart."""
    process = scene.process()
    process.start("s").catch("nap", timer="PT5H").end("e")
    process_id = scene.deploy(process)
    first = scene.begin(process_id)
    began = scene.engine.now()
    scene.later("PT1H")
    second = scene.begin(process_id)
    scene.released(first, second)

    scene.later("PT4H")
    scene.completed(first)
    scene.released(second)
    scene.later("PT1H")

    assert fired_at(scene.completed(first), "nap") == [began + 5 * HOUR]
    assert fired_at(scene.completed(second), "nap") == [began + 6 * HOUR]
    assert scene.cycles(first) == scene.cycles(second) == (1, 1)


@pytest.mark.parametrize("place", ["top level", "in a sub-process", "event sub-process"])
@pytest.mark.parametrize(("cycle", "fires"), [("R3/P1D", 3), ("R1/P1D", 1), ("R0/P1D", 0), ("R/P1D", 10)])
def test_a_cycle_of_n_fires_exactly_n_times(scene: Scene, cycle: str, fires: int, place: str) -> None:
    """T37, X14 for cyclic timers: ten days over a released task; `R` fires until the task ends it."""

    def body(scope: ScopeBuilder) -> None:
        scope.start("s").user_task("task").end("done")
        if place == "event sub-process":
            with scope.event_sub_process("handler") as handler:
                handler.start("daily", timer=cycle, interrupting=False).end("reminded")
        else:
            scope.boundary("task", "daily", timer=cycle, interrupting=False).end("reminded")

    process = scene.process()
    if place == "in a sub-process":
        process.start().sub_process("inside", body).end()
    else:
        body(process)
    instance = scene.begin(process)
    began = scene.engine.now()

    scene.later("P10D")

    scene.released(instance)
    assert fired_at(scene.see(instance), "reminded") == [began + n * DAY for n in range(1, fires + 1)]
    assert scene.cycles(instance) == (fires + 1, fires), "each fire is a release cycle"
    scene.complete("task")
    scene.later("P3D")
    assert len(fired_at(scene.completed(instance), "daily")) == fires


def race(scene: Scene) -> ProcessBuilder:
    process = scene.process("race")
    process.start("s").event_gateway("either").catch("two", timer="PT2H").end("soon")
    process.at("either").catch("five", timer="PT5H").end("late")
    return process


def test_x3_the_nearer_timer_arm_wins_after_a_release_and_the_other_never_fires(scene: Scene) -> None:
    """T38, X3, D5: both deadlines are held; the 2 h arm wins at 2 h."""
    instance = scene.begin(race(scene))
    began = scene.engine.now()
    scene.released(instance)
    assert sorted(wait.deadline_ms or 0 for wait in scene.see(instance).waits) == [began + 2 * HOUR, began + 5 * HOUR]

    scene.later("P1D")

    view = scene.completed(instance, "s", "either", "two", "soon")
    assert fired_at(view, "two") == [began + 2 * HOUR]
    assert scene.cycles(instance) == (1, 1)


def test_the_nearer_timer_arm_wins_while_resident_too(scene: Scene, tmp_path: Path) -> None:
    """T38: work beside the gateway keeps the instance resident all the while."""
    gate, visits = tmp_path / "gate", tmp_path / "visits"
    process = scene.process("race")
    process.start("s").parallel("fork").event_gateway("either").catch("two", timer="PT2H").end("soon")
    process.at("either").catch("five", timer="PT5H").end("late")
    process.at("fork").service_task("work", topic=scene.name("work")).end("worked")
    scene.engine.register(scene.name("work"), work_until(gate, visits))
    instance = scene.engine.start(scene.deploy(process)).instance_id
    wait_until(visits.exists, "the work has begun")

    began = scene.engine.now()
    scene.store.set_clock(began + 2 * HOUR)
    wait_until(lambda: not scene.see(instance).waits, "an arm has won")
    assert scene.see(instance).resident
    scene.store.set_clock(began + 6 * HOUR)
    gate.touch()
    scene.engine.wait_quiet()

    view = scene.completed(instance)
    assert set(view.trace) == {"s", "fork", "either", "two", "soon", "work", "worked"}
    assert scene.cycles(instance) == (0, 0)


def test_after_a_day_down_a_cycle_catches_up_once_and_then_keeps_its_grid(scene: Scene) -> None:
    """T39, D9: the clock jumps a day in one go, as it does for an engine that was not there."""
    process = scene.process()
    process.start("s").user_task("task").end("done")
    process.boundary("task", "tick", timer="R/PT5M", interrupting=False).end("ticked")
    instance = scene.begin(process)
    began = scene.engine.now()
    scene.later("PT5M")
    assert fired_at(scene.see(instance), "ticked") == [began + 5 * MINUTE]

    scene.store.set_clock(began + DAY + 7 * MINUTE)
    scene.engine.wait_quiet()
    assert fired_at(scene.see(instance), "ticked")[1:] == [began + DAY + 7 * MINUTE], "one fire for all that was missed"
    scene.later("PT8M")

    assert fired_at(scene.see(instance), "ticked")[2:] == [began + DAY + 10 * MINUTE, began + DAY + 15 * MINUTE]
    scene.call_off(instance)


def test_x12_timer_start_events_create_instances(scene: Scene) -> None:
    """X12: a date once, a duration once, a cycle of three three times; each waits and is woken like any other."""
    now = scene.engine.now()
    hour = {"date": at(now + HOUR), "duration": "PT1H", "cycle": "R3/PT1H"}
    processes = {}
    for kind, timer in hour.items():
        process = scene.process(kind)
        process.start("s", timer=timer).catch("nap", timer="PT30M").end("e")
        processes[kind] = scene.deploy(process)

    scene.later("P1D")

    for kind, count in (("date", 1), ("duration", 1), ("cycle", 3)):
        started = scene.of_process(processes[kind])
        assert [view.created_ms for view in started] == [now + n * HOUR for n in range(1, count + 1)], kind
        assert {view.trace for view in started} == {("s", "nap", "e")}
        assert [scene.cycles(view.instance_id) for view in started] == [(1, 1)] * count


def at(ms: int) -> str:
    from gobpm_ray.engine.views import moment_text

    text = moment_text(ms)
    assert text is not None
    return text


def test_an_anchor_in_the_past_only_fixes_the_grid(scene: Scene) -> None:
    """T40: deployed ten minutes past, started at the quarter, not a quarter of an hour later."""
    hour = -(-scene.engine.now() // HOUR) * HOUR
    scene.engine.advance(to=hour + 10 * MINUTE)
    process = scene.process()
    process.start("s", timer="R/2023-07-01T00:00:00+02:00/PT15M").end("e")
    process_id = scene.deploy(process)

    scene.later("PT30M")

    started = [view.created_ms for view in scene.of_process(process_id)]
    assert started == [hour + 15 * MINUTE, hour + 30 * MINUTE]
    assert moment("2023-07-01T00:00:00+02:00") % (15 * MINUTE) == hour % (15 * MINUTE)


def test_a_duration_boundary_does_not_repeat_through_ten_release_rounds(scene: Scene) -> None:
    """T41, D13: and ten cycles do not move its deadline."""
    process = scene.process()
    process.start("s").user_task("task").end("done")
    process.boundary("task", "once", timer="P5D", interrupting=False).end("reminded")
    process.boundary("task", "news", message=scene.name("News"), key="=k", interrupting=False).end("noted")
    instance = scene.begin(process, k="A")
    began = scene.engine.now()

    for _ in range(10):
        scene.publish(scene.name("News"), "A")
        scene.later("P1D")

    view = scene.see(instance)
    assert fired_at(view, "once") == [began + 5 * DAY]
    assert len(fired_at(view, "news")) == 10
    assert scene.cycles(instance) == (12, 11)
    scene.complete("task")
    scene.completed(instance)


def test_running_timers_keep_their_deadlines_when_the_same_file_is_deployed_again(scene: Scene) -> None:
    """T44: those of instances and those of start events; a new version with the same timer keeps it as well."""
    process = scene.process()
    process.start("s", timer="R/PT10H").catch("nap", timer="PT4H").end("e")
    process_id = scene.deploy(process)
    began = scene.engine.now()
    scene.later("PT10H")
    (running,) = scene.of_process(process_id)

    scene.later("PT1H")
    assert [one.created for one in scene.engine.deploy(process)] == [False]
    process.at("nap").task("more")
    assert [(one.version, one.created) for one in scene.engine.deploy(process)] == [(2, True)]
    scene.later("PT20H")

    views = scene.of_process(process_id)
    assert [(view.version, view.created_ms - began) for view in views] == [
        (1, 10 * HOUR),
        (2, 20 * HOUR),
        (2, 30 * HOUR),
    ]
    assert fired_at(views[0], "nap") == [began + 14 * HOUR]
    assert views[0].instance_id == running.instance_id
    scene.call_off(*(view.instance_id for view in views if not view.ended))


def test_four_clocks_that_pass_one_deadline_together_are_one_wake(scene: Scene) -> None:
    """R21, D7: one hydration, one run, in ten rounds."""
    from concurrent.futures import ThreadPoolExecutor

    process = scene.process()
    process.start("s").catch("nap", timer="PT2H").end("e")
    process_id = scene.deploy(process)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            instance = scene.begin(process_id)
            target = scene.engine.now() + 3 * HOUR
            reached = list(pool.map(lambda to: scene.store.set_clock(to), [target, target - 1, target + 1, target]))
            scene.engine.wait_quiet()
            assert max(reached) == target + 1
            scene.completed(instance, "s", "nap", "e")
            assert scene.cycles(instance) == (1, 1)


def test_timer_and_message_of_one_gateway_have_one_winner_and_the_loser_is_not_handled(scene: Scene) -> None:
    """R22, D5: fired together while released, twenty rounds; a message that lost is kept for whoever waits next."""
    from concurrent.futures import ThreadPoolExecutor

    process = scene.process()
    process.start("s").event_gateway("either").catch("reply", message=scene.name("Reply"), key="=k").end("answered")
    process.at("either").catch("timeout", timer="PT2H").catch("next", message=scene.name("Reply"), key="=k").end("late")
    process_id = scene.deploy(process)
    won = []
    with ThreadPoolExecutor(2) as pool:
        for n in range(20):
            key = f"K{n}"
            instance = scene.begin(process_id, k=key)
            scene.released(instance)
            later = scene.engine.now() + 2 * HOUR
            # Each begins first as often as the other: both orders are seen.
            acts = [lambda: scene.engine.publish(scene.name("Reply"), key), lambda: scene.store.set_clock(later)]  # noqa: B023
            for act in [pool.submit(act) for act in (acts if n % 2 else acts[::-1])]:
                act.result()
            scene.engine.wait_quiet()
            view = scene.completed(instance)
            won.append(view.trace[2])
            assert view.trace in (
                ("s", "either", "reply", "answered"),
                ("s", "either", "timeout", "next", "late"),
            ), "whichever lost, its message reached somebody once"
    assert set(won) <= {"reply", "timeout"}


@pytest.mark.parametrize("first", ["message", "timer"])
def test_whichever_arm_was_delivered_first_has_won(scene: Scene, first: str) -> None:
    """R22: decided at the delivery, while the instance is held; the loser stays what it was."""
    process = scene.process()
    process.start("s").event_gateway("either").catch("reply", message=scene.name("Reply"), key="=k").end("answered")
    process.at("either").catch("timeout", timer="PT2H").end("late")
    instance = scene.begin(process, k="A")
    scene.engine.suspend(instance)

    for act in ("message", "timer") if first == "message" else ("timer", "message"):
        if act == "message":
            scene.publish(scene.name("Reply"), "A")
        else:
            scene.later("PT3H")
    assert scene.engine.top().due == 0
    assert scene.engine.top().parked == (first == "timer")
    scene.engine.resume(instance)
    scene.engine.wait_quiet()

    assert scene.completed(instance).trace[2] == ("reply" if first == "message" else "timeout")
    if first == "timer":
        taker = scene.process("taker")
        taker.start("s").catch("reply", message=scene.name("Reply"), key="=k").end("e")
        scene.completed(scene.begin(taker, k="A"), "s", "reply", "e")


def test_a_cancelled_instance_is_not_revived_by_its_timer(scene: Scene) -> None:
    """R26, D6: cancelled while released, it is terminated and its deadline is gone."""
    instance = scene.begin(race(scene))
    scene.released(instance)
    scene.engine.cancel(instance)
    scene.engine.wait_quiet()
    assert scene.see(instance).state == "terminated"
    assert scene.engine.top().due == 0
    ended = scene.see(instance)

    scene.later("P1D")

    assert scene.see(instance) == ended
    assert scene.cycles(instance) == (1, 1)
