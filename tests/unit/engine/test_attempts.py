"""Attempts of work: repeated by policy, bounded in time, ended by errors and escalations, and told in incidents.

N10, N11, D24; the engine in process on a virtual clock, so that an hour's pause takes no time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from gobpm_ray import BpmnError, Engine, Escalation, ProcessBuilder, Settings
from gobpm_ray.engine.views import InstanceView, plain
from gobpm_ray.errors import InputError, InvalidModel, LockLost, UnknownTask

HOUR = 3_600_000
Work = Callable[..., Any]


def opened(work: Work | None = None, **settings: Any) -> Engine:
    callables = {} if work is None else {"work": work}
    return Engine.open(store=None, clock="virtual", settings=Settings(**settings), callables=callables)


def process(**task: Any) -> ProcessBuilder:
    built = ProcessBuilder("p")
    built.start().service_task("work", topic="work", **task).end("done")
    return built


def failing(times: int) -> tuple[Work, list[tuple[int, str]]]:
    """Work that fails so often, and what it was told each time."""
    seen: list[tuple[int, str]] = []

    def work(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        seen.append((context.attempt, context.idempotency_key))
        if len(seen) <= times:
            raise ConnectionError(f"away, {len(seen)}")
        return {"tries": len(seen)}

    return work, seen


def events(view: InstanceView, *wanted: str) -> list[tuple[str, str]]:
    return [(entry.event, entry.detail) for entry in view.history if entry.event in wanted]


# -------------------------------------------------------------------------------------------------------------- retries


def test_a_failed_attempt_is_repeated_after_the_pauses_of_its_policy() -> None:
    work, seen = failing(2)
    with opened(work) as engine:
        engine.deploy(process(retries="PT5M,PT1H"))
        began = engine.now()
        started = engine.start("p")
        view = engine.inspect(started.instance_id)
        (wait,) = view.waits
        assert (view.state, wait.kind, wait.node, wait.deadline_ms) == ("waiting", "timer", "work", began + 300_000)
        engine.advance("PT4M59S")
        assert len(seen) == 1
        engine.advance("PT1S")
        assert len(seen) == 2
        assert engine.next_deadline() == began + 300_000 + HOUR
        engine.advance("PT1H")
        view = engine.inspect(started.instance_id)
    assert (view.state, view.variables["tries"]) == ("completed", 3)
    assert [attempt for attempt, _ in seen] == [1, 2, 3]
    assert len({key for _, key in seen}) == 1
    assert [detail for _, detail in events(view, "failed")] == [f"ConnectionError: away, {n}" for n in (1, 2)]


def test_the_last_failure_is_an_incident_with_its_cause_stack_attempts_and_data() -> None:
    """D24."""
    work, seen = failing(3)
    with opened(work) as engine:
        engine.deploy(process(retries="2", inputs={"order": "=number"}))
        started = engine.start("p", {"number": 7})
        (incident,) = engine.incidents()
        assert len(seen) == 3
        assert (incident.instance_id, incident.process_id, incident.node) == (started.instance_id, "p", "work")
        assert (incident.cause, incident.code) == ("ConnectionError: away, 3", "failure")
        assert [(entry.event, entry.detail[-1]) for entry in incident.attempts] == [("failed", "1"), ("failed", "2")]
        assert incident.data == {"order": 7}
        assert 'raise ConnectionError(f"away' in incident.stack
        engine.retry(started.instance_id)
        assert engine.inspect(started.instance_id).state == "completed"


def test_without_a_policy_the_engines_own_counts_and_none_is_the_default() -> None:
    work, seen = failing(1)
    with opened(work) as engine:
        engine.deploy(process())
        engine.start("p")
        assert len(engine.incidents()) == 1
    work, seen = failing(1)
    with opened(work, retries="fixed(1, PT1H)") as engine:
        engine.deploy(process())
        started = engine.start("p")
        engine.advance("PT1H")
        assert (engine.inspect(started.instance_id).state, len(seen)) == ("completed", 2)


def test_a_policy_may_be_an_expression_and_a_wrong_one_is_the_incidents_cause() -> None:
    work, _ = failing(9)
    with opened(work) as engine:
        engine.deploy(process(retries="=policy"))
        started = engine.start("p", {"policy": "R1/PT1M"})
        assert engine.inspect(started.instance_id).state == "waiting"
        engine.start("p", {"policy": "often"})
        (incident,) = engine.incidents()
        assert incident.cause.startswith("ConnectionError: away, 2; and retries 'often': ")


def test_a_boundary_over_a_pause_interrupts_it() -> None:
    work, seen = failing(9)
    built = process(retries="R3/PT1H")
    built.boundary("work", timer="PT10M").end("late")
    with opened(work) as engine:
        engine.deploy(built)
        started = engine.start("p")
        engine.advance("PT10M")
        view = engine.inspect(started.instance_id)
        engine.advance("PT5H")
    assert (view.state, view.trace[-1], len(seen)) == ("completed", "late", 1)


def test_a_boundary_survives_the_end_of_a_pause() -> None:
    work, seen = failing(9)
    built = process(retries="R9/PT10M")
    built.boundary("work", timer="PT35M").end("late")
    with opened(work) as engine:
        engine.deploy(built)
        started = engine.start("p")
        engine.advance("PT35M")
        view = engine.inspect(started.instance_id)
    assert (view.state, view.trace[-1], len(seen)) == ("completed", "late", 4)


def test_a_pause_survives_a_restart() -> None:
    """A71: only what is encoded counts."""
    work, seen = failing(1)
    with opened(work) as engine:
        engine.deploy(process(retries="R1/PT1H"))
        started = engine.start("p")
        engine.restart()
        engine.advance("PT1H")
        assert engine.inspect(started.instance_id).state == "completed"
    assert [attempt for attempt, _ in seen] == [1, 2]


# -------------------------------------------------------------------------------------------- time, errors, escalations


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
def test_a_time_out_bounds_the_wait_and_what_comes_later_does_not_count(kind: str) -> None:
    cancelled: list[bool] = []

    async def waits(inputs: dict[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return {"late": True}

    def sleeps(inputs: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.3)
        return {"late": True}

    with Engine.open(store=None, callables={"work": waits if kind == "asynchronous" else sleeps}) as engine:
        engine.deploy(process(timeout="PT0.05S"))
        started = engine.start("p")
        until = time.monotonic() + 5
        while engine.inspect(started.instance_id).state != "incident" and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.35)
        view = engine.inspect(started.instance_id)
    assert [incident.cause for incident in view.incidents] == ["no result within 0.05 s"]
    assert "late" not in view.variables
    assert cancelled == ([True] if kind == "asynchronous" else [])


def test_an_error_of_a_callable_is_caught_by_the_model_and_not_repeated() -> None:
    seen: list[int] = []

    def work(inputs: dict[str, Any]) -> None:
        seen.append(1)
        raise BpmnError("E1", "no credit", missing=5)

    built = process(retries="5")
    built.boundary("work", error="E1").end("refused")
    with opened(work) as engine:
        engine.deploy(built)
        view = engine.inspect(engine.start("p").instance_id)
    assert (view.state, view.trace[-1], view.variables, seen) == ("completed", "refused", {"missing": 5}, [1])


def test_an_escalation_of_a_callable_goes_its_way_and_the_task_is_done() -> None:
    """A76: nothing vanishes."""

    def work(inputs: dict[str, Any]) -> None:
        raise Escalation("X1", amount=5)

    built = process()
    built.boundary("work", escalation="X1", interrupting=False).end("told")
    with opened(work) as engine:
        engine.deploy(built)
        view = engine.inspect(engine.start("p").instance_id)
    assert view.state == "completed"
    assert {"told", "work", "done"} <= set(view.trace)
    assert view.variables["amount"] == 5


# ----------------------------------------------------------------------------------------------------------------- jobs


def test_a_job_goes_through_its_attempts_to_an_incident_and_back() -> None:
    with opened() as engine:
        engine.deploy(process(retries="R1/PT1H"))
        started = engine.start("p", {"number": 7})
        (job,) = engine.fetch_and_lock("work", "w1")
        assert (job.inputs, job.attempt, job.instance_id) == ({"number": 7}, 1, started.instance_id)
        engine.fail_job(job, "no paper")
        assert engine.fetch_and_lock("work", "w1") == []
        engine.advance("PT1H")
        (job,) = engine.fetch_and_lock("work", "w1")
        assert (job.attempt, job.cause) == (2, "no paper")
        engine.fail_job(job, "no ink", stack="line 1")
        (incident,) = engine.incidents()
        assert (incident.cause, incident.stack) == ("no ink", "line 1")
        assert [entry.detail for entry in incident.attempts] == ["no paper"]
        with pytest.raises(UnknownTask):
            engine.complete_job(job)
        engine.retry(started.instance_id)
        (job,) = engine.fetch_and_lock(["work", "other"], "w2")
        engine.complete_job(job, {"printed": True})
        assert engine.inspect(started.instance_id).variables["printed"] is True


def test_a_worker_may_say_how_many_retries_are_left_and_when() -> None:
    with opened() as engine:
        engine.deploy(process())
        started = engine.start("p")
        (job,) = engine.fetch_and_lock("work")
        engine.fail_job(job, "later", retries=1, backoff="PT10M")
        assert engine.next_deadline() == engine.now() + 600_000
        engine.advance("PT10M")
        (job,) = engine.fetch_and_lock("work")
        engine.fail_job(job, "never", retries=0)
        assert engine.inspect(started.instance_id).state == "incident"


def test_errors_and_escalations_of_a_worker_are_caught_by_the_model() -> None:
    built = process()
    built.boundary("work", error="E1").end("refused")
    built.boundary("work", escalation="X1", interrupting=False).end("told")
    with opened() as engine:
        engine.deploy(built)
        started = engine.start("p")
        (job,) = engine.fetch_and_lock("work")
        engine.escalate(job, "X1")
        assert "told" in engine.inspect(started.instance_id).trace
        engine.extend(job, "PT2M")
        engine.bpmn_error(job, "E1", "no credit", {"missing": 5})
        view = engine.inspect(started.instance_id)
    assert (view.state, view.trace[-1], view.variables["missing"]) == ("completed", "refused", 5)


def test_a_job_that_is_interrupted_is_nobodys_any_more() -> None:
    built = process()
    built.boundary("work", timer="PT1H").end("late")
    with opened() as engine:
        engine.deploy(built)
        started = engine.start("p")
        (job,) = engine.fetch_and_lock("work", duration="PT5H")
        engine.advance("PT1H")
        with pytest.raises(UnknownTask):
            engine.complete_job(job)
        assert engine.inspect(started.instance_id).trace[-1] == "late"


def test_requests_that_make_no_sense_are_refused_by_name() -> None:
    with opened() as engine:
        engine.deploy(process())
        engine.start("p")
        with pytest.raises(InputError, match="at least one topic"):
            engine.fetch_and_lock([])
        with pytest.raises(InputError, match="max_jobs 0"):
            engine.fetch_and_lock("work", max_jobs=0)
        with pytest.raises(InputError, match="a lock of 'PT0S'"):
            engine.fetch_and_lock("work", duration="PT0S")
        (job,) = engine.fetch_and_lock("work")
        with pytest.raises(InputError, match="needs a cause"):
            engine.fail_job(job, " ")
        with pytest.raises(InputError, match="expected a code"):
            engine.bpmn_error(job, "")
        engine.unlock(job)
        with pytest.raises(LockLost):
            engine.complete_job(job)


# ------------------------------------------------------------------------------------------------------- many incidents


def test_incidents_are_repaired_in_bulk_by_what_they_have_in_common() -> None:
    healthy: list[bool] = []

    def work(inputs: dict[str, Any]) -> dict[str, Any]:
        if not healthy:
            raise ConnectionError("away")
        return {"well": True}

    other = ProcessBuilder("q")
    other.start().service_task("else", topic="work").end("done")
    with opened(work) as engine:
        engine.deploy(process(), other)
        ours = [engine.start("p").instance_id for _ in range(3)]
        theirs = engine.start("q").instance_id
        assert [i.instance_id for i in engine.incidents()] == [*ours, theirs]
        assert len(engine.incidents(process_id="p", node="work", code="failure")) == 3
        assert engine.incidents(code="sealed") == []
        with pytest.raises(InputError, match="at least one of"):
            engine.repair("drop")
        healthy.append(True)
        retried = engine.repair("retry", process_id="p", limit=2)
        assert (retried.matched, list(retried.done), retried.refused) == (2, ours[:2], ())
        resolved = engine.repair("resolve", process_id="p", outputs={"by": "hand"})
        assert list(resolved.done) == ours[2:]
        assert engine.inspect(ours[2]).variables == {"by": "hand"}
        dropped = engine.repair("drop", node="else")
        assert list(dropped.done) == [theirs]
        assert engine.inspect(theirs).state == "terminated"
        assert engine.incidents() == []


# --------------------------------------------------------------------------------------------------- secrets and limits


def test_a_secret_is_seen_by_the_work_and_by_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []

    def work(inputs: dict[str, Any]) -> dict[str, Any]:
        seen.append(inputs["auth"]["token"])
        raise ValueError(f"refused {inputs['auth']['token']}")

    built = ProcessBuilder("p", secrets=["password"])
    built.start().service_task(
        "work", topic="work", retries="1", inputs={"auth": '={"token": password, "user": user}'}
    ).service_task("hand", topic="by hand").end("done")
    with opened(work) as engine:
        engine.deploy(built)
        started = engine.start("p", {"password": "opensesame", "user": "ann", "copy": "opensesame!"})
        view = engine.inspect(started.instance_id)
        (incident,) = engine.incidents()
        engine.resolve(started.instance_id, outputs={"result": 1})
        (listed,) = engine.jobs()
        (job,) = engine.fetch_and_lock("by hand")
        everything = repr((view, incident, listed, engine.facts(), engine.inspect(started.instance_id)))
    assert seen == ["opensesame"] * 2
    assert view.variables == {"password": "***", "user": "ann", "copy": "***"}
    assert (incident.cause, incident.data) == ("ValueError: refused ***", {"auth": {"token": "***", "user": "ann"}})
    assert "refused ***" in incident.stack
    assert plain(listed.inputs)["password"] == "***"  # type: ignore[index]
    assert job.inputs["password"] == "opensesame"
    assert "opensesame" not in everything
    assert "opensesame" not in caplog.text


def test_a_secret_that_an_expression_quotes_is_not_told_by_its_incident() -> None:
    built = ProcessBuilder("p", secrets=["password"])
    built.start().script_task("s", "date(password)", language="feel").exclusive("x")
    built.at("x").when("password + 1 > 3").end("a")
    built.at("x").otherwise().end("b")
    with opened() as engine:
        engine.deploy(built)
        started = engine.start("p", {"password": "opensesame"})
        assert "opensesame" not in repr(engine.inspect(started.instance_id))
        record = engine.store.instance(started.instance_id)
        assert record is not None
        assert not any(b"opensesame" in entry for entry in record.history)


def test_a_result_that_is_too_large_is_its_tasks_incident_unless_what_is_needed_is_mapped() -> None:
    def work(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"document": "x" * 50_000}

    with opened(work, max_variable=10_000) as engine:
        engine.deploy(process())
        started = engine.start("p")
        (incident,) = engine.incidents()
        assert "the limit is 10000 (max_variable)" in incident.cause
        engine.deploy(process(outputs={"size": "=string length(document)"}))
        view = engine.inspect(engine.start("p").instance_id)
        assert (view.state, view.variables) == ("completed", {"size": 50_000})
        assert engine.inspect(started.instance_id).state == "incident"


def test_a_value_that_an_expression_makes_too_large_is_an_incident() -> None:
    built = ProcessBuilder("p")
    built.start().script_task("s", "[text, text, text]", language="feel", result="all").end()
    with opened(max_variable=10_000) as engine:
        engine.deploy(built)
        engine.start("p", {"text": "x" * 5_000})
        (incident,) = engine.incidents()
        assert incident.node == "s"
        assert "max_variable" in incident.cause


def test_an_instance_that_would_grow_too_large_is_held_with_what_made_it_grow() -> None:
    built = ProcessBuilder("p")
    built.start().receive_task("more", message="more").user_task("look").end("done")
    with opened(max_instance=20_000) as engine:
        engine.deploy(built)
        started = engine.start("p", {"text": "x" * 15_000})
        engine.publish("more", payload={"further": "y" * 15_000})
        (incident,) = engine.incidents()
        assert (incident.instance_id, incident.node, incident.code) == (started.instance_id, "", "too_large")
        assert "the limit is 20000 (max_instance)" in incident.cause
        record = engine.store.instance(started.instance_id)
        assert record is not None
        assert [trigger.kind for trigger in record.inbox] == ["message"]
        engine.cancel(started.instance_id)
        assert engine.inspect(started.instance_id).state == "terminated"


def test_wrong_options_of_a_ray_task_are_refused_when_it_is_built() -> None:
    with pytest.raises(InvalidModel, match="service task 'work': num_cpus='two': expected a number"):
        process(ray={"num_cpus": "two"})
    with pytest.raises(InvalidModel, match="no option 'cpus' here"):
        process(ray={"cpus": 2})


def test_without_ray_a_task_with_options_of_one_runs_in_this_process(caplog: pytest.LogCaptureFixture) -> None:
    with opened(lambda inputs: {"here": True}) as engine:
        engine.deploy(process(ray={"num_cpus": 2}))
        view = engine.inspect(engine.start("p").instance_id)
    assert view.variables == {"here": True}
    assert "without Ray it runs in this process" in caplog.text
