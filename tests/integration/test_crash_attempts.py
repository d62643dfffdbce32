"""A crash at every point around an attempt, through Ray: its outcome is the policy's, and its effect counts as it says.

Work in an instance's actor, as a Ray task, and as a worker's job; idempotent and not. A first step of each process arms
the crash in the very actor that goes on with the second one, so the death is where the test wants it; everything else
is the engine as it runs. After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.engine.views import InstanceView
from tests.integration.conftest import wait_until
from tests.integration.dying_work import Work, arming, calls, died, noting
from tests.integration.dying_workers import INSIDE
from tests.integration.scene import Scene

SETTINGS = {"lease_ttl_ms": 4_000, "lease_renew_ms": 1_000, "spares": 1}

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Stage:
    """Where the host of an attempt dies: at this passing of this point after the crash was armed (the first passing of
    most is the arming step's own)."""

    point: str
    nth: int
    begun: bool
    """The callable had been called."""
    durable: bool = False
    """Its result was committed."""


STAGES = {
    "intent committed": Stage("hosting.intent_committed", 1, begun=False),
    "about to be called": Stage("effect.begun", 1, begun=False),
    "ended, unreported": Stage("effect.done", 2, begun=True),
    "reported, undrafted": Stage("hosting.reported", 2, begun=True),
    "commit not sent": Stage("store.before.commit", 2, begun=True),
    "committed, lease held": Stage("store.after.commit", 2, begun=True, durable=True),
}
FAR = {"num_cpus": 0.1}

by_policy = pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
mostly_by_policy = pytest.mark.parametrize(
    "idempotent",
    [pytest.param(True, marks=pytest.mark.long, id="idempotent"), pytest.param(False, id="not idempotent")],
)
"""Each takes an actor's life: the ordinary run has one of each pair."""


def attempt(scene: Scene, arm: Work, work: Work, *, idempotent: bool, far: bool) -> str:
    """The id of an instance that has armed the crash, come to it in `work`, and gone as far as it could after it."""
    scene.unclean = True
    for topic, callable_ in (("arm", arm), ("work", work), ("after", work)):
        scene.engine.register(scene.name(topic), callable_)
    process = scene.process("attempt")
    more: dict[str, Any] = {"ray": FAR} if far else {}
    process.start("s").service_task("arm", topic=scene.name("arm"), idempotent=True).service_task(
        "work", topic=scene.name("work"), idempotent=idempotent, **more
    ).service_task("after", topic=scene.name("after"), idempotent=True).end("e")
    return scene.begin(process)


def ends_by_policy(scene: Scene, instance: str, log: Path, *, idempotent: bool, begun: bool, durable: bool) -> None:
    """Handed out again under the same key, or sealed until a person has it done once more; never anything else."""
    made = [call for call in calls(log) if call.node == "work"]
    if not (idempotent or durable):
        view = scene.see(instance)
        assert view.state == "incident"
        (incident,) = view.incidents
        assert (incident.node, incident.code) == ("work", "sealed")
        assert marks(view) == ["sealed", "incident"]
        assert len(made) == begun, "nobody calls it again by itself"
        scene.engine.retry(instance, "work")
        scene.engine.wait_quiet()
        again = [call for call in calls(log) if call.node == "work"][begun:]
        assert [call.attempt for call in again] == [1]
        assert not {call.key for call in again} & {call.key for call in made}, (
            "a person's retry is an attempt of its own"
        )
    else:
        expected = [1] if durable else [1, 2] if begun else [2]
        assert [call.attempt for call in made] == expected
        assert len({call.key for call in made}) == 1
        assert marks(scene.see(instance)) == ([] if durable else ["sealed"])
    scene.completed(instance, "s", "arm", "work", "after", "e")
    after = [call for call in calls(log) if call.node == "after"]
    assert [call.attempt for call in after] == [2 if durable else 1], "it was not begun before"
    assert scene.engine.verify().differences == []


def marks(view: InstanceView) -> list[str]:
    """Of the attempt's own node."""
    return [entry.event for entry in view.history if entry.node == "work" and entry.event in ("sealed", "incident")]


@mostly_by_policy
@pytest.mark.parametrize("stage", STAGES)
def test_a_crash_around_work_in_its_actor_has_the_policys_outcome(
    scene: Scene, tmp_path: Path, stage: str, idempotent: bool
) -> None:
    """A71, A72, N10, issue 6."""
    at, log = STAGES[stage], tmp_path / "calls"
    instance = attempt(scene, arming(tmp_path, at.point, at.nth), noting(log), idempotent=idempotent, far=False)
    wait_until(lambda: died(tmp_path), "its host is dead")
    scene.engine.wait_quiet()
    ends_by_policy(scene, instance, log, idempotent=idempotent, begun=at.begun, durable=at.durable)


@by_policy
def test_a_crash_inside_work_in_its_actor_has_the_policys_outcome(
    scene: Scene, tmp_path: Path, idempotent: bool
) -> None:
    """A71, A72, N10, issue 6."""
    log = tmp_path / "calls"
    instance = attempt(scene, noting(log), noting_and_dying_in("work", log), idempotent=idempotent, far=False)
    ends_by_policy(scene, instance, log, idempotent=idempotent, begun=True, durable=False)


@pytest.mark.long
@by_policy
@pytest.mark.parametrize("stage", STAGES)
def test_a_crash_around_a_ray_task_has_the_policys_outcome(
    scene: Scene, tmp_path: Path, stage: str, idempotent: bool
) -> None:
    """A71, A72, N10, issue 6: what died is the instance's actor, and its Ray task with it."""
    at, log = STAGES[stage], tmp_path / "calls"
    instance = attempt(scene, arming(tmp_path, at.point, at.nth), noting(log), idempotent=idempotent, far=True)
    wait_until(lambda: died(tmp_path), "its host is dead")
    scene.engine.wait_quiet()
    ends_by_policy(scene, instance, log, idempotent=idempotent, begun=at.begun, durable=at.durable)


@mostly_by_policy
@pytest.mark.parametrize("who", ["its own process", "the actor that waits for it"])
def test_a_crash_inside_a_ray_task_has_the_policys_outcome(
    scene: Scene, tmp_path: Path, who: str, idempotent: bool
) -> None:
    """A71, A72, N10, issue 6: the process that does the work dies, or the one that sent it."""
    log, host = tmp_path / "calls", tmp_path / "host"
    victim = None if who == "its own process" else host
    instance = attempt(
        scene, telling_its_process(host), noting_and_dying_in("work", log, victim), idempotent=idempotent, far=True
    )
    ends_by_policy(scene, instance, log, idempotent=idempotent, begun=True, durable=False)


def telling_its_process(told: Path) -> Work:
    name = str(told)

    def tell(inputs):
        import os

        with open(name, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        return {}

    return tell


def noting_and_dying_in(node: str, log: Path, victim: Path | None = None) -> Work:
    """As `noting`; the first call of this node kills the process that does it, or the one that a file names."""
    note = noting(log)
    other = "" if victim is None else str(victim)
    name = str(log)

    def work(inputs, context):
        import os
        import signal
        import time

        outcome = note(inputs, context)
        with open(name, encoding="ascii") as file:
            made = sum(f'"node": "{node}"' in line for line in file)
        if context.node == node and made == 1:
            if other:
                with open(other, encoding="ascii") as file:
                    os.kill(int(file.read()), signal.SIGKILL)
                time.sleep(60)  # and is ended with the one that waited for it
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome

    return work


# ------------------------------------------------------------------------------------------------------ a worker's job

WORKER_STAGES = ("store.after.job_fetch", INSIDE, "store.before.job_report", "store.after.job_report")


def test_a_job_whose_worker_dies_around_it_is_handed_out_again_under_its_key(
    scene: Scene, store_url: str, tmp_path: Path
) -> None:
    """C68, issue 6: whoever dies before its report is accepted has lost the job with its lock, and the next one gets
    the same key, idempotent or not: a job is at least once, and its key is there for that. Accepted, it is done."""
    kinds = {f"{stage} {safe} {scene.id}": (stage, safe) for stage in WORKER_STAGES for safe in ("safe", "unsafe")}
    instances: dict[str, str] = {}
    for number, (topic, (_, safe)) in enumerate(kinds.items()):
        process = scene.process(f"job{number}")
        process.start("s").service_task("work", topic=topic, idempotent=safe == "safe").end("e")
        instances[topic] = scene.begin(process)
    program = [sys.executable, "-m", "tests.integration.dying_workers", store_url, scene.store.settings.engine_id]
    workers = subprocess.Popen([*program, str(tmp_path), *kinds])
    try:
        wait_until((tmp_path / "all died").exists, "each worker has died at its point", within_s=30)
        for topic, instance in instances.items():
            view = scene.engine.wait(instance, 20)
            assert (view.state, view.trace) == ("completed", ("s", "work", "e")), topic
            assert not [entry for entry in view.history if entry.event in ("sealed", "incident", "overtaken")]
    finally:
        workers.terminate()
        assert workers.wait(20) == 0
    made = Counter(call.node for call in calls(tmp_path / "calls"))
    once = {"store.after.job_fetch", "store.after.job_report"}
    assert made == {topic: 1 if stage in once else 2 for topic, (stage, _) in kinds.items()}
    for topic, instance in instances.items():
        mine = [call for call in calls(tmp_path / "calls") if call.node == topic]
        assert {call.key.partition("/")[0] for call in mine} == {instance}
        assert len({call.key for call in mine}) == 1, "the same key each time"
    scene.engine.wait_quiet()
    assert scene.engine.jobs() == []
    assert scene.engine.verify().differences == []


@mostly_by_policy
@pytest.mark.parametrize("point", ["hosting.fetched", "store.before.commit", "store.after.commit"])
def test_a_job_that_was_reported_is_done_once_whatever_its_instances_actor_dies_of(
    scene: Scene, tmp_path: Path, point: str, idempotent: bool
) -> None:
    """A71, N4, issue 6: the report is a trigger in the store; no worker gets the job again."""
    scene.unclean = True
    log = tmp_path / "calls"
    topic = scene.name("job")
    scene.engine.register(scene.name("arm"), arming(tmp_path, point, 1 if point == "hosting.fetched" else 2))
    scene.engine.register(scene.name("after"), noting(log))
    process = scene.process("reported")
    process.start("s").service_task("arm", topic=scene.name("arm"), idempotent=True).service_task(
        "work", topic=topic, idempotent=idempotent
    ).service_task("after", topic=scene.name("after"), idempotent=True).end("e")
    instance = scene.begin(process)
    (job,) = scene.engine.fetch_and_lock(topic, "w", wait=5)
    assert scene.see(instance).resident, "its actor waits for the report"

    scene.engine.complete_job(job, {"printed": 1}, id=scene.name("report"))

    assert scene.engine.wait(instance, 15).variables == {"printed": 1, "by_after": 1}
    wait_until(lambda: died(tmp_path), "its host is dead")
    scene.engine.wait_quiet()
    view = scene.completed(instance, "s", "arm", "work", "after", "e")
    assert marks(view) == []
    assert [call.attempt for call in calls(log)] == [2 if point == "store.after.commit" else 1]
    scene.engine.wait_quiet()
    assert scene.engine.fetch_and_lock(topic, "w") == []
    assert scene.engine.verify().differences == []
