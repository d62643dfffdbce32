"""Attempts of work on the real engine (issue 6): what their code throws, what comes too late, how they are repeated,
and what becomes of those that nothing repeats any more; in an instance's actor, as a Ray task, or as a worker's job.

After each scenario its fixture looks that nothing of it is left; see `scene.py`. Crashes around attempts are in
`test_crash_attempts.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.registry import actor_rows
from gobpm_ray import BpmnError, Escalation
from gobpm_ray.engine.views import InstanceView
from gobpm_ray.errors import LockLost, UnknownTask
from tests.integration.conftest import wait_until
from tests.integration.dying_work import calls, noting
from tests.integration.scene import HOUR, Scene

SETTINGS = {"lease_ttl_ms": 4_000, "lease_renew_ms": 1_000, "spares": 1}

pytestmark = pytest.mark.slow

A_SHARE = {"num_cpus": 0.1}
"""Options of a Ray task that finds room beside anything."""


def events(view: InstanceView, *wanted: str) -> list[tuple[str, str]]:
    return [(entry.event, entry.node) for entry in view.history if entry.event in wanted]


# -------------------------------------------------------------------------------------------------- errors, time, races


def test_an_error_and_an_escalation_of_code_are_caught_after_releases(scene: Scene) -> None:
    """A76: escalation thrown by code, a release, then an error thrown by code in the same sub-process: both handlers
    run with what was thrown, and what ran beside them goes on."""

    def escalates(inputs):
        raise Escalation("X1", amount=5)

    def errs(inputs):
        raise BpmnError("E1", "no credit", missing=7)

    for topic, work in (("escalates", escalates), ("errs", errs)):
        scene.engine.register(scene.name(topic), work)
    process = scene.process("thrown")
    sub = process.start("s").sub_process("sub")
    with sub as inside:
        inside.start("is").service_task("warn", topic=scene.name("escalates")).user_task("between").service_task(
            "charge", topic=scene.name("errs"), retries="5"
        ).end("ie")
    sub.end("e")
    process.boundary("sub", "warned", escalation="X1", interrupting=False, outputs={"seen": "=amount"}).user_task(
        "look"
    ).end("we")
    process.boundary("sub", "refused", error="E1", outputs={"short_of": "=missing"}).end("re")

    instance = scene.begin(process)
    scene.released(instance)
    assert scene.waits(instance) == [("between", "task"), ("look", "task")]
    scene.complete(f"{instance}/{wait_of(scene, instance, 'between')}")
    scene.released(instance)
    assert scene.waits(instance) == [("look", "task")]
    scene.complete("look")

    view = scene.completed(instance)
    assert (view.variables["seen"], view.variables["short_of"]) == (5, 7)
    assert {"warn", "warned", "between", "refused", "re", "look", "we"} <= set(view.trace)
    assert "charge" not in view.trace
    assert events(view, "failed", "incident") == [], "an error is an outcome and no failed attempt"


def wait_of(scene: Scene, instance: str, node: str) -> str:
    return next(wait.id for wait in scene.see(instance).waits if wait.node == node)


def test_what_an_interrupted_attempt_hands_back_is_discarded(scene: Scene, tmp_path: Path) -> None:
    """Issue 6: a message boundary, and a time-out, end the wait for work that runs on; its late result changes
    nothing, and its actor hosts nobody before it has ended."""
    log, gate = tmp_path / "calls", tmp_path / "gate"
    scene.engine.register(scene.name("slow"), noting(log, until=gate))
    interrupted = scene.process("interrupted")
    interrupted.start("s").service_task("work", topic=scene.name("slow")).end("e")
    interrupted.boundary("work", "stop", message=scene.name("Stop"), key="=k").user_task("after").end("se")
    timed = scene.process("timed")
    timed.start("s").service_task("work", topic=scene.name("slow"), timeout="PT0.4S").end("e")

    stopped = scene.engine.start(scene.deploy(interrupted), {"k": "A"}).instance_id
    late = scene.engine.start(scene.deploy(timed)).instance_id
    wait_until(lambda: len(calls(log)) == 2, "both work")
    scene.publish(scene.name("Stop"), "A", why="enough")
    wait_until(lambda: scene.see(late).state == "incident", "the time is over")
    scene.engine.wait_quiet()

    scene.released(stopped)
    assert scene.see(late).incidents[0].cause == "no result within 0.4 s"
    busy = {call.pid for call in calls(log)}
    gate.touch()
    wait_until(
        lambda: not busy & {row.pid for row in actor_rows(scene.store)}, "an actor with foreign work in it ends", 20
    )
    assert scene.see(stopped).variables == {"k": "A", "why": "enough"}
    assert scene.see(late).variables == {}
    scene.complete("after")
    scene.completed(stopped, "s", "stop", "after", "se")
    scene.engine.repair("resolve", process_id=f"timed_{scene.id}", outputs={"by": "hand"})
    scene.engine.wait_quiet()
    assert scene.completed(late).variables == {"by": "hand"}


# -------------------------------------------------------------------------------------------------- retries, incidents


def failing(healthy: Path):
    """Work that fails until the file is there."""
    name = str(healthy)

    def work(inputs):
        import os

        if not os.path.exists(name):
            raise ConnectionError(f"away: {inputs['n']}")
        return {"well": True}

    return work


def test_a_retry_that_waits_an_hour_is_dehydrated_like_any_wait(scene: Scene, tmp_path: Path) -> None:
    """Issue 6, retries; promise 6: each pause is a deadline in the store, and its instance a record."""
    healthy = tmp_path / "healthy"
    process = scene.process("retried")
    process.start("s").service_task("call", topic=scene.name("call"), retries="PT5M,PT1H").end("e")
    scene.engine.register(scene.name("call"), failing(healthy))
    instance = scene.begin(process, n=1)
    began = scene.engine.now()

    for pause in (5 * 60_000, HOUR):
        scene.released(instance)
        (wait,) = scene.see(instance).waits
        assert (wait.node, wait.kind, wait.deadline_ms) == ("call", "timer", scene.engine.now() + pause)
        if pause == HOUR:
            healthy.touch()
        scene.later(f"PT{pause // 1_000}S")

    view = scene.completed(instance, "s", "call", "e")
    assert scene.engine.now() == began + HOUR + 5 * 60_000
    assert events(view, "failed", "incident") == [("failed", "call")] * 2
    assert scene.cycles(instance) == (2, 2)


def test_exhausted_retries_are_incidents_that_are_repaired_singly_and_in_bulk(scene: Scene, tmp_path: Path) -> None:
    """Issue 6, D24: siblings go on; the record has cause, stack, attempts and data; retry, resolve, drop."""
    healthy = tmp_path / "healthy"
    process = scene.process("billed")
    fork = process.start("s").parallel("fork")
    fork.service_task("bill", topic=scene.name("bill"), retries="R1/PT1M", inputs={"n": "=n"}).to("join")
    fork.user_task("check").to("join")
    process.first.parallel("join").end("e")
    process.boundary("bill", "late", timer="P1D", interrupting=False).end("le")
    scene.engine.register(scene.name("bill"), failing(healthy))
    process_id = scene.deploy(process)
    several = [scene.begin(process_id, n=n) for n in range(6)]
    scene.later("PT1M")

    incidents = scene.engine.incidents(process_id=process_id)
    assert sorted(incident.instance_id for incident in incidents) == sorted(several)
    (first,) = (incident for incident in incidents if incident.instance_id == several[0])
    assert (first.node, first.code, first.cause) == ("bill", "failure", "ConnectionError: away: 0")
    assert [(entry.event, entry.detail) for entry in first.attempts] == [("failed", "ConnectionError: away: 0")]
    assert first.data == {"n": 0}
    assert first.stack.rstrip().endswith("ConnectionError: away: 0")
    assert not any(scene.see(one).resident for one in several), "an open incident is a wait for an operator"

    # Siblings and boundaries go on beside it.
    for task in scene.engine.tasks():
        scene.engine.complete(task.id)
    scene.later("P1D")
    assert all("late" in scene.see(one).trace and "check" in scene.see(one).trace for one in several)

    scene.engine.resolve(several[0], "bill", {"by": "hand"})
    healthy.touch()
    scene.engine.retry(several[1])
    scene.engine.wait_quiet()
    left = [incident.instance_id for incident in scene.engine.incidents(process_id=process_id)]
    retried = scene.engine.repair("retry", process_id=process_id, node="bill", limit=2).done
    assert (sorted(left), list(retried)) == (sorted(several[2:]), left[:2]), "the oldest first"
    dropped = scene.engine.repair("drop", process_id=process_id, code="failure", instance_id=left[2])
    assert dropped.done == (left[2],)
    scene.engine.wait_quiet()
    assert scene.engine.repair("resolve", process_id=process_id, outputs={"by": "many"}).done == (left[3],)
    scene.engine.wait_quiet()

    ends = {one: (scene.see(one).state, scene.see(one).variables.get("by")) for one in several}
    assert ends == {
        several[0]: ("completed", "hand"),
        **dict.fromkeys((several[1], *left[:2]), ("completed", None)),
        left[2]: ("terminated", None),
        left[3]: ("completed", "many"),
    }
    assert all(scene.see(one).variables["well"] for one in (several[1], *left[:2]))


def test_a_job_is_fetched_kept_failed_and_repeated_after_a_pause_that_is_held(scene: Scene) -> None:
    """Issue 6, external jobs; C68: a lock that ended reports nothing, and the job is fetched again, once."""
    topic = scene.name("print")
    process = scene.process("printed")
    process.start("s").service_task("print", topic=topic, retries="R2/PT1H").end("e")
    process.boundary("print", "jam", error="E1").end("je")
    process.boundary("print", "told", escalation="X1", interrupting=False).end("te")
    process_id = scene.deploy(process)
    printed, jammed = scene.begin(process_id, page=5), scene.begin(process_id, page=6)
    engine = scene.engine

    slept, second = engine.fetch_and_lock(topic, "slow", "PT0.3S", 2)
    assert {slept.instance_id, second.instance_id} == {printed, jammed}
    engine.extend(second, "PT1M")
    (again,) = engine.fetch_and_lock(topic, "quick", wait=5)
    assert (again.id, again.attempt) == (slept.id, 1)
    with pytest.raises(LockLost):
        engine.complete_job(slept, {"late": True})
    assert engine.fetch_and_lock(topic, "third") == []
    engine.unlock(second)
    (second,) = engine.fetch_and_lock(topic, "third")

    engine.escalate(second, "X1")
    engine.bpmn_error(second, "E1", "no paper", {"missing": 3})
    engine.fail_job(again, "no ink")
    engine.wait_quiet()
    view = scene.completed(second.instance_id)
    assert {"told", "jam"} <= set(view.trace)
    assert view.variables["missing"] == 3
    assert engine.fetch_and_lock(topic, "quick") == [], "the pause is an hour of business time"
    scene.later("PT1H")
    (again,) = engine.fetch_and_lock(topic, "quick")
    assert (again.attempt, again.cause) == (2, "no ink")
    engine.complete_job(again, {"printed": True})
    engine.wait_quiet()
    assert scene.completed(again.instance_id).variables["printed"] is True
    with pytest.raises(UnknownTask):
        engine.complete_job(again)


# ------------------------------------------------------------------------------------------------------------ Ray tasks


@pytest.mark.long
def test_a_ray_task_is_ended_by_its_time_out_and_by_an_interruption(scene: Scene, tmp_path: Path) -> None:
    """Issue 6: the function is stopped where it runs, which is no actor of the engine; nothing of it counts."""
    log, gate = tmp_path / "calls", tmp_path / "gate"
    scene.engine.register(scene.name("far"), noting(log, until=gate))
    timed = scene.process("timed")
    timed.start("s").service_task("far", topic=scene.name("far"), ray=A_SHARE, timeout="PT4S").end("e")
    stopped = scene.process("stopped")
    stopped.start("s").service_task("far", topic=scene.name("far"), ray=A_SHARE).end("e")
    stopped.boundary("far", "stop", message=scene.name("Stop"), key="=k").end("se")

    late = scene.engine.start(scene.deploy(timed)).instance_id
    ended = scene.engine.start(scene.deploy(stopped), {"k": "A"}).instance_id
    wait_until(lambda: len(calls(log)) == 2, "both run", within_s=30)
    processes = {call.key.partition(":")[0]: call.pid for call in calls(log)}
    actors = {row.pid for row in actor_rows(scene.store)}
    assert not actors & set(processes.values()), "they run in processes of their own"
    scene.engine.publish(scene.name("Stop"), "A")

    wait_until(lambda: scene.see(late).state == "incident", "the time is over", within_s=30)
    assert scene.see(late).incidents[0].cause == "no result within 4 s"
    assert scene.engine.wait(ended, 15).trace == ("s", "stop", "se")
    wait_until(lambda: not ray_tasks_that_run("far of "), "Ray runs neither of them any more", within_s=20)
    gate.touch()
    scene.engine.resolve(late)
    scene.engine.wait_quiet()
    assert scene.completed(late).variables == {}


def ray_tasks_that_run(name: str) -> list[str]:
    from ray.util.state import list_tasks

    from actors.handles import dashboard_url

    return [
        task.name
        for task in list_tasks(dashboard_url(), limit=10_000)
        if (task.name or "").startswith(name) and task.state == "RUNNING"
    ]


def test_errors_failures_and_deaths_of_a_ray_task_are_told_apart(scene: Scene, tmp_path: Path) -> None:
    """A72, issue 6: a BPMN error is caught by the model, an exception is repeated by its policy, and a process that
    died is a sealed attempt: repeated if it may be, else an incident."""
    log, healthy = tmp_path / "calls", tmp_path / "healthy"

    def errs(inputs):
        raise BpmnError("E1", "no credit", missing=inputs["n"])

    far: dict[str, Any] = {"ray": A_SHARE}
    process = scene.process("far")
    fork = process.start("s").parallel("fork")
    fork.service_task("errs", topic=scene.name("errs"), **far).exclusive("one_way").to("join")
    fork.service_task("fails", topic=scene.name("fails"), retries="R1/PT1H", **far).to("join")
    fork.service_task("dies", topic=scene.name("dies"), **far).to("join")
    fork.service_task("dies_safely", topic=scene.name("dies"), idempotent=True, **far).to("join")
    process.first.parallel("join").end("e")
    process.boundary("errs", "refused", error="E1", outputs={"missing": "=missing"}).to("one_way")
    scene.engine.register(scene.name("errs"), errs)
    scene.engine.register(scene.name("fails"), failing(healthy))
    scene.engine.register(scene.name("dies"), noting(log, dies=1))

    instance = scene.begin(process, n=4)

    view = scene.see(instance)
    assert view.variables["missing"] == 4
    assert view.variables["by_dies_safely"] == 2
    (incident,) = view.incidents
    assert (incident.node, incident.code) == ("dies", "sealed")
    assert scene.waits(instance) == [("dies", "incident"), ("fails", "timer")]
    assert [(call.attempt) for call in calls(log) if call.node == "dies"] == [1]
    assert not view.resident
    healthy.touch()
    scene.engine.retry(instance, "dies")
    scene.later("PT1H")
    view = scene.completed(instance)
    assert (view.variables["well"], view.variables["by_dies"]) == (True, 2)
