"""Human tasks on the real engine (group H): owned, refused and completed while their instance is a record.

After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from gobpm_ray.engine.views import TaskInfo
from gobpm_ray.errors import GobpmError, TaskRefused, UnknownTask
from gobpm_ray.model.builder import ProcessBuilder
from tests.integration.scene import DAY, Scene

pytestmark = pytest.mark.slow


def approval(scene: Scene, **task: object) -> ProcessBuilder:
    """A task with daily reminders."""
    process = scene.process("approval")
    process.start("s").user_task("approve", **task).end("done")  # type: ignore[arg-type]
    process.boundary("approve", "daily", timer="R/P1D", interrupting=False).end("reminded")
    return process


def only_task(scene: Scene, instance: str) -> TaskInfo:
    (task,) = scene.engine.tasks(instance_id=instance)
    return task


def test_a_released_task_is_completed_directly_and_keeps_its_id_across_cycles(scene: Scene) -> None:
    """H56, D11: outputs are bound; only the completion wakes it, beside its reminders."""
    instance = scene.begin(approval(scene), amount=5)
    task = only_task(scene, instance)
    for _ in range(3):
        scene.later("P1D")
        assert only_task(scene, instance) == task
    scene.released(instance)
    assert scene.cycles(instance) == (4, 3)

    scene.complete(task.id, {"approved": True, "amount": 6}, user="ada")

    view = scene.completed(instance)
    assert view.variables == {"amount": 6, "approved": True}
    assert view.trace[-2:] == ("approve", "done")
    with pytest.raises(UnknownTask):
        scene.engine.complete(task.id)


def test_claiming_and_giving_back_wakes_nobody(scene: Scene) -> None:
    """H57, D11: claim, unclaim, reassign and claim again do not hydrate; of concurrent claims one wins; the owner is
    kept."""
    instance = scene.begin(approval(scene))
    task = only_task(scene, instance)
    before = scene.store.instance(instance)
    users = [scene.name(f"user{n}") for n in range(8)]

    def claims(user: str) -> bool:
        try:
            scene.engine.claim(task.id, user)
        except TaskRefused:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [user for user, took in zip(users, pool.map(claims, users), strict=True) if took]
    assert len(won) == 1
    assert only_task(scene, instance).owner == won[0]
    scene.engine.unclaim(task.id)
    assert only_task(scene, instance).owner == ""
    scene.engine.claim(task.id, "eve")
    scene.engine.reassign(task.id, "bob")
    assert only_task(scene, instance).owner == "bob"
    scene.engine.reassign(task.id, "ada")
    scene.engine.wait_quiet()
    assert scene.store.instance(instance) == before
    assert scene.cycles(instance) == (1, 0)

    scene.later("P1D")  # a release cycle over it
    assert only_task(scene, instance).owner == "ada"
    with pytest.raises(TaskRefused, match="claimed by another"):
        scene.engine.complete(task.id, user="bob")
    scene.complete(task.id, user="ada")
    scene.completed(instance)


def test_x8_owner_and_frozen_eligibility_survive_releases(scene: Scene) -> None:
    """X8, H58: eligibility is evaluated once, when the task is created, and outlives a change of what it came from."""
    process = approval(scene, candidate_users="=people", candidate_groups="=teams")
    instance = scene.begin(process, people=["ada"], teams=["legal"])
    scene.engine.set(instance, {"people": ["mallory"], "teams": ["finance"]})
    scene.engine.wait_quiet()
    scene.later("P2D")
    scene.released(instance)
    assert scene.cycles(instance) == (4, 3), "the variables and two reminders woke it"

    task = only_task(scene, instance)
    assert (task.users, task.groups) == (("ada",), ("legal",))
    with pytest.raises(TaskRefused, match="not eligible"):
        scene.engine.claim(task.id, "mallory", ["finance"])
    scene.engine.claim(task.id, "grace", ["legal"])
    scene.later("P1D")
    assert only_task(scene, instance).owner == "grace"
    assert [one.id for one in scene.engine.tasks(user="grace")] == [task.id]
    assert scene.engine.tasks(user="ada") == [], "it has an owner now"
    scene.complete(task.id, {"approved": True}, user="grace")

    assert scene.completed(instance).variables["approved"] is True


@pytest.mark.parametrize(
    ("completion", "says"),
    [
        (lambda do, task: do(task, {"approved": True}, "ada", strict=True), "must be claimed first"),
        (lambda do, task: do(task, {"approved": True}, "mallory"), "'mallory' is not eligible"),
        (lambda do, task: do(task, {"refused": True}, "ada"), "needs output 'approved'"),
    ],
    ids=["unclaimed when strict", "ineligible", "an output is missing"],
)
def test_a_completion_is_refused_and_nothing_has_changed(
    scene: Scene, completion: Callable[[Callable[..., object], str], object], says: str
) -> None:
    """H58: distinct refusals, given by the accepting script itself; the fourth, another owner's, stands below."""
    process = approval(scene, candidate_users=["ada", "bob"], required_outputs=["approved"])
    instance = scene.begin(process)
    task = only_task(scene, instance)
    before = scene.store.instance(instance)

    with pytest.raises(TaskRefused, match=says):
        completion(scene.engine.complete, task.id)

    scene.engine.wait_quiet()
    assert scene.store.instance(instance) == before
    assert only_task(scene, instance) == task
    scene.engine.claim(task.id, "bob")
    with pytest.raises(TaskRefused, match="claimed by another user than 'ada'"):
        scene.engine.complete(task.id, {"approved": True}, "ada")
    assert scene.store.instance(instance) == before
    scene.complete(task.id, {"approved": True}, user="bob")
    scene.completed(instance)


def test_a_completion_that_races_another_wake_counts_once_and_so_does_the_wake(scene: Scene) -> None:
    """R23: ten rounds of a completion beside a message that a second branch waits for."""
    process = scene.process("both")
    process.start("s").parallel("fork").user_task("task").parallel("join").end("e")
    process.at("fork").catch("told", message=scene.name("Tell"), key="=k").to("join")
    process_id = scene.deploy(process)
    with ThreadPoolExecutor(2) as pool:
        for n in range(10):
            instance = scene.begin(process_id, k=f"K{n}")
            task = only_task(scene, instance).id
            acts: list[Callable[[], object]] = [
                lambda task=task: scene.engine.complete(task, {"done": 1}),  # type: ignore[misc]
                lambda n=n: scene.engine.publish(scene.name("Tell"), f"K{n}", {"told": 1}),  # type: ignore[misc]
            ]
            for act in [pool.submit(act) for act in (acts if n % 2 else acts[::-1])]:
                act.result()
            scene.engine.wait_quiet()
            view = scene.completed(instance)
            assert sorted(view.trace) == sorted(("s", "fork", "task", "told", "join", "e"))
            assert view.variables == {"k": f"K{n}", "done": 1, "told": 1}


def test_the_same_completion_twice_is_one(scene: Scene) -> None:
    """N5, H56: the same delivery id is answered as a duplicate, also after the task has gone."""
    instance = scene.begin(approval(scene))
    task = only_task(scene, instance)
    assert scene.engine.complete(task.id, {"n": 1}, id=scene.name("c1")).duplicate is False
    scene.engine.wait_quiet()
    with pytest.raises(UnknownTask):
        # By the door the task is looked up first: it has ended, and says so.
        scene.engine.complete(task.id, {"n": 2}, id=scene.name("c1"))
    again = scene.store.complete_task(task.id, "", (), (), scene.name("c1"), b"{}")
    assert again.duplicate
    assert scene.completed(instance).variables == {"n": 1}


def test_refusals_name_the_task_and_are_input(scene: Scene) -> None:
    """D16: one line with the id."""
    with pytest.raises(UnknownTask, match="nobody/1:x:0:1") as refused:
        scene.engine.complete("nobody/1:x:0:1")
    assert isinstance(refused.value, GobpmError)
    assert "\n" not in str(refused.value)


def test_due_dates_are_computed_once_and_listed(scene: Scene) -> None:
    """H57 of issue 5, promise 6: due and follow-up are moments, not expressions, and no later wake moves them."""
    instance = scene.begin(approval(scene, due="P3D", follow_up="P1D", priority=80))
    began = scene.engine.now()
    task = only_task(scene, instance)
    assert (task.due_ms, task.follow_up_ms, task.priority) == (began + 3 * DAY, began + DAY, 80)
    scene.later("P2D")
    assert only_task(scene, instance) == task
    scene.complete("approve")
    scene.completed(instance)
