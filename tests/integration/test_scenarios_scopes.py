"""Event sub-processes, conditions and called instances on the real engine: waits that belong to a scope, to the data,
or to another instance (W13, W16, X7, X14).

After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

import pytest

from gobpm_ray.engine.views import InstanceView
from gobpm_ray.model.builder import ProcessBuilder
from tests.integration.scene import DAY, HOUR, Scene

pytestmark = pytest.mark.slow


def only(scene: Scene, process_id: str) -> InstanceView:
    (view,) = scene.of_process(process_id)
    return view


# ------------------------------------------------------------------------------------------------ event sub-processes


def watched(scene: Scene, *, interrupting: bool, **begun: object) -> ProcessBuilder:
    """A human task, and a handler that waits for whatever begins it; the handler has a task of its own."""
    process = scene.process("watched")
    process.start("s").user_task("task").end("done")
    with process.event_sub_process("handler") as inside:
        inside.start("begun", interrupting=interrupting, **begun).user_task("answer").end("handled")  # type: ignore[arg-type]
    return process


@pytest.mark.parametrize("interrupting", [True, False], ids=["interrupting", "beside it"])
@pytest.mark.parametrize("by", ["timer", "message", "signal", "conditional"])
def test_x7_the_handler_of_a_released_instance_runs_when_its_start_comes(
    scene: Scene, by: str, interrupting: bool
) -> None:
    """W13, X7: the main flow waits for a person, the instance is a record, and the start of its event sub-process finds
    it; interrupting, the person's task is withdrawn, else it survives under its id."""
    begun = {
        "timer": {"timer": "PT24H"},
        "message": {"message": scene.name("Complaint"), "key": "=k"},
        "signal": {"signal": scene.name("Alarm")},
        "conditional": {"conditional": "n > 5"},
    }[by]
    instance = scene.begin(watched(scene, interrupting=interrupting, **begun), k="A", n=0)
    began = scene.engine.now()
    scene.released(instance)
    assert scene.waits(instance) == [("begun", by), ("task", "task")]
    (task,) = scene.engine.tasks(instance_id=instance)

    if by == "timer":
        scene.later("PT25H")
    elif by == "message":
        scene.publish(scene.name("Complaint"), "A", why="broken")
    elif by == "signal":
        scene.signal(scene.name("Alarm"), why="broken")
    else:
        scene.engine.set(instance, {"n": 6, "why": "broken"})
        scene.engine.wait_quiet()

    scene.released(instance)
    view = scene.see(instance)
    assert view.trace == ("s", "begun")
    assert view.history[-1].at_ms == began + (24 * HOUR if by == "timer" else 0), "it ran at its time"
    assert scene.cycles(instance) == (2, 1)
    open_tasks = {one.node: one.id for one in scene.engine.tasks(instance_id=instance)}
    scene.complete("answer", {"heard": True})
    if interrupting:
        assert set(open_tasks) == {"answer"}
        scene.completed(instance, "s", "begun", "answer", "handled", "handler")
    else:
        assert open_tasks.keys() == {"answer", "task"}
        assert open_tasks["task"] == task.id
        scene.released(instance)
        scene.complete(task.id)
        scene.completed(instance, "s", "begun", "answer", "handled", "handler", "task", "done")
    variables = scene.see(instance).variables
    assert variables["heard"] is True
    assert variables.get("why") == (None if by == "timer" else "broken")


def test_x7_a_handler_inside_a_sub_process_ends_with_it_and_its_start_is_withdrawn(scene: Scene) -> None:
    """W13, D6: what begins it counts while its scope lives, however often, and not a moment longer."""
    process = scene.process("nested")
    with process.start("s").sub_process("scope") as scope:
        scope.start("si").user_task("task").end("ei")
        with scope.event_sub_process("handler") as inside:
            inside.start("heard", message=scene.name("News"), key="=k", interrupting=False).end("noted")
    process.at("scope").user_task("after").end("e")
    instance = scene.begin(process, k="A")
    scene.publish(scene.name("News"), "A")
    scene.publish(scene.name("News"), "A")
    scene.released(instance)
    assert scene.see(instance).trace == ("s", "si", *("heard", "noted", "handler") * 2)

    scene.complete("task")
    assert scene.waits(instance) == [("after", "task")]
    scene.publish(scene.name("News"), "A", text="too late")
    assert scene.engine.top().parked == 1, "nobody waits for it any more"
    scene.complete("after")

    scene.completed(instance, "s", "si", *("heard", "noted", "handler") * 2, "task", "ei", "scope", "after", "e")
    taker = scene.process("taker")
    taker.start("s").catch("news", message=scene.name("News"), key="=k").end("e")
    assert scene.completed(scene.begin(taker, k="A")).variables["text"] == "too late"


# --------------------------------------------------------------------------------------------------------- conditions


def test_x14_a_conditional_catch_is_released_and_fires_when_the_data_make_it_true(scene: Scene) -> None:
    """W16, X14: an operator's `set`, or what another branch commits; what leaves it false wakes it for nothing."""
    process = scene.process("cond")
    process.start("s").parallel("fork").catch("enough", conditional="n > 5").end("e1")
    process.at("fork").catch("told", message=scene.name("Tell"), key="=k").end("e2")
    process_id = scene.deploy(process)
    by_operator, by_branch = scene.begin(process_id, n=0, k="A"), scene.begin(process_id, n=0, k="B")
    scene.released(by_operator, by_branch)
    assert ("enough", "conditional") in scene.waits(by_operator)

    scene.engine.set(by_operator, {"n": 5})
    scene.engine.wait_quiet()
    scene.released(by_operator)
    assert ("enough", "conditional") in scene.waits(by_operator)
    scene.engine.set(by_operator, {"n": 6})
    scene.publish(scene.name("Tell"), "B", n=7)

    assert scene.waits(by_operator) == [("told", "message")]
    assert scene.see(by_operator).trace == ("s", "fork", "enough", "e1")
    assert sorted(scene.completed(by_branch).trace) == sorted(("s", "fork", "told", "e2", "enough", "e1"))
    assert scene.cycles(by_branch) == (1, 1), "the commit that made it true was its wake as well"
    scene.publish(scene.name("Tell"), "A")
    scene.completed(by_operator)


def test_a_condition_that_stays_true_does_not_fire_again(scene: Scene) -> None:
    """W16: a non-interrupting boundary fires as the data become true, not on every commit while they stay so."""
    process = scene.process("edge")
    process.start("s").user_task("task").end("done")
    process.boundary("task", "edge", conditional="n > 5", interrupting=False).end("noted")
    instance = scene.begin(process, n=0)
    scene.released(instance)

    seen = []
    for n in (6, 7, 8, 1, 9):
        scene.engine.set(instance, {"n": n})
        scene.engine.wait_quiet()
        scene.released(instance)
        seen.append(scene.see(instance).trace.count("edge"))

    assert seen == [1, 1, 1, 1, 2]
    scene.complete("task")
    scene.completed(instance, "s", *("edge", "noted") * 2, "task", "done")


def test_an_interrupting_conditional_boundary_withdraws_its_task_and_timer(scene: Scene) -> None:
    """W16, D6: beside a timer boundary on the same released task."""
    process = scene.process("edge")
    process.start("s").user_task("task").end("done")
    process.boundary("task", "edge", conditional="stock < 3").end("aside")
    process.boundary("task", "late", timer="P9D").end("overdue")
    instance = scene.begin(process, stock=10)
    scene.engine.set(instance, {"stock": 3})
    scene.engine.wait_quiet()
    scene.released(instance)

    scene.engine.set(instance, {"stock": 2})
    scene.engine.wait_quiet()

    scene.completed(instance, "s", "edge", "aside")
    assert scene.engine.tasks(instance_id=instance) == []
    assert scene.engine.top().due == 0


# --------------------------------------------------------------------------------------------------- called instances


def asking(scene: Scene) -> str:
    """A process that waits for a message of its own conversation."""
    child = scene.process("child")
    child.start("s").catch("reply", message=scene.name("Reply"), key="=who").end("e")
    return scene.deploy(child)


def test_x14_a_parent_that_waits_only_for_a_called_child_is_released(scene: Scene) -> None:
    """X14, D2: both are records; the child's end wakes its parent."""
    child_id = asking(scene)
    parent = scene.process("parent")
    parent.start("s").call("call", process=child_id).user_task("look").end("e")
    instance = scene.begin(parent, who="ann")
    child = only(scene, child_id).instance_id
    scene.released(instance, child)
    assert [kind for _, kind in scene.waits(instance)] == ["child"]
    assert scene.cycles(instance) == scene.cycles(child) == (1, 0)

    scene.publish(scene.name("Reply"), "ann", answer=42)

    scene.completed(child, "s", "reply", "e")
    scene.released(instance)
    assert scene.see(instance).trace == ("s", "call")
    assert scene.see(instance).variables["answer"] == 42
    assert scene.cycles(instance) == (2, 1)
    scene.complete("look")
    scene.completed(instance, "s", "call", "look", "e")


def test_x14_a_group_of_called_children_is_one_wait_of_a_released_parent(scene: Scene) -> None:
    """X14, issue 5.2: each child's end counts, in any order, and the last one lets the parent go on."""
    child_id = asking(scene)
    parent = scene.process("parent")
    parent.start("s").call("each", process=child_id, outputs={"answer": "=answer"}).multi_instance(
        collection="people", item="who", output="answers", output_item="answer"
    ).end("e")
    instance = scene.begin(parent, people=["ann", "bob", "cleo"])
    children = [view.instance_id for view in scene.of_process(child_id)]
    assert len(children) == 3
    scene.released(instance, *children)

    for n, who in enumerate(("cleo", "ann", "bob")):
        scene.released(instance)
        scene.publish(scene.name("Reply"), who, answer=n)

    assert scene.completed(instance).variables["answers"] == [1, 2, 0]
    for child in children:
        scene.completed(child, "s", "reply", "e")


def test_a_boundary_over_a_call_ends_the_released_child(scene: Scene) -> None:
    """X14, D6: the deadline is the parent's, and everything that its child waits for goes with it."""
    child_id = asking(scene)
    parent = scene.process("parent")
    parent.start("s").call("call", process=child_id).end("e")
    parent.boundary("call", "late", timer="P2D").end("gave up")
    instance = scene.begin(parent, who="ann")
    child = only(scene, child_id).instance_id
    scene.released(instance, child)
    began = scene.engine.now()

    scene.later("P3D")

    view = scene.completed(instance, "s", "late", "gave up")
    assert view.history[-1].at_ms == began + 2 * DAY
    assert scene.see(child).state == "terminated"
    scene.publish(scene.name("Reply"), "ann")
    assert scene.engine.top().parked == 1, "nobody waits for it any more"
    scene.completed(scene.begin(child_id, who="ann"), "s", "reply", "e")


@pytest.mark.parametrize("cycle", ["R3/P1D", "R/P1D"])
def test_x14_a_cyclic_timer_is_released_between_its_fires(scene: Scene, cycle: str) -> None:
    """X14: of an event sub-process, so that the scope lives on; three days, three fires, three release cycles (T37)."""
    instance = scene.begin(watched_daily(scene, cycle))
    began = scene.engine.now()
    for n in range(3):
        scene.released(instance)
        assert scene.cycles(instance) == (n + 1, n)
        scene.later("P1D")

    ticks = [entry.at_ms for entry in scene.see(instance).history if (entry.event, entry.node) == ("node", "tick")]
    assert ticks == [began + n * DAY for n in (1, 2, 3)]
    scene.later("P1D")
    assert scene.see(instance).trace.count("tick") == (4 if cycle == "R/P1D" else 3)
    scene.complete("task")
    scene.completed(instance)


def watched_daily(scene: Scene, cycle: str) -> ProcessBuilder:
    process = scene.process("daily")
    process.start("s").user_task("task").end("done")
    with process.event_sub_process("handler") as inside:
        inside.start("tick", timer=cycle, interrupting=False).end("ticked")
    return process
