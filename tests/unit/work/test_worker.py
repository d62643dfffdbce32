"""Workers over a store: fetched side by side, kept locked, reported once, stopped in peace (N11, A75, C68)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gobpm_ray import BpmnError, Escalation, ProcessBuilder
from gobpm_ray.engine.operations import Operations
from gobpm_ray.errors import InputError
from gobpm_ray.model.document import to_json
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.settings import Settings
from gobpm_ray.work.handlers import Handler, worker
from gobpm_ray.work.worker import JobContext, Worker
from tests.contract.test_store_jobs import job
from tests.support.stores import inbox, values_of, waiting

Start = Callable[..., Worker]


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore(Settings(engine_id="work"))
    process = ProcessBuilder("order", secrets=["password"])
    process.start().service_task("Bill", topic="bill").end("Done")
    made.deploy("order", b"json\n" + to_json(process.build()), ())
    return made


@pytest.fixture
def start(store: MemoryStore) -> Iterator[Start]:
    """A worker at work in a thread of its own, ended with the test."""
    running: list[tuple[Worker, threading.Thread]] = []

    def begin(work: Callable[..., Any], **more: Any) -> Worker:
        grace = more.pop("grace", "PT5S")
        made = Worker(Operations(store, store.settings), Handler("bill", work, **more), grace=grace)
        thread = threading.Thread(target=made.run)
        thread.start()
        running.append((made, thread))
        return made

    yield begin
    for made, thread in running:
        made.stop()
        thread.join(10)
        assert not thread.is_alive()


def until(done: Callable[[], object], within_s: float = 5.0) -> None:
    end = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def reported(store: MemoryStore, instance: str = "i1") -> list[tuple[str, dict[str, object]]]:
    record = store.instance(instance)
    assert record is not None
    return [(trigger.kind, values_of(trigger)) for trigger in record.inbox]


def test_a_job_is_done_and_its_outputs_are_reported(store: MemoryStore, start: Start) -> None:
    waiting(store, "i1", job(amount=5))
    start(lambda inputs: {"total": inputs["amount"] * 2})
    until(lambda: inbox(store, "i1"))
    assert reported(store) == [("job", {"total": 10})]


def test_an_asynchronous_function_and_a_single_value_are_as_good(store: MemoryStore, start: Start) -> None:
    waiting(store, "i1", job(amount=5))

    async def work(inputs: dict[str, Any]) -> object:
        await asyncio.sleep(0)
        return inputs["amount"]

    start(work)
    until(lambda: inbox(store, "i1"))
    assert reported(store) == [("job", {"result": 5})]


def test_as_many_run_at_once_as_the_concurrency_says(store: MemoryStore, start: Start) -> None:
    for number in range(7):
        waiting(store, f"i{number}", job())
    together, most, lock = [0], [0], threading.Lock()

    def work(_inputs: dict[str, Any]) -> None:
        with lock:
            together[0] += 1
            most[0] = max(most[0], together[0])
        time.sleep(0.03)
        with lock:
            together[0] -= 1

    made = start(work, concurrency=3)
    until(lambda: made.done == 7)
    assert most == [3]


def test_an_exception_fails_the_attempt_and_the_last_one_is_reported_with_its_cause(
    store: MemoryStore, start: Start
) -> None:
    waiting(store, "i1", job())
    attempts = []

    def work(_inputs: dict[str, Any], context: JobContext) -> None:
        attempts.append((context.attempt, context.idempotency_key))
        raise ValueError("no\npaper")

    start(work, retries=2)
    until(lambda: inbox(store, "i1"))
    assert attempts == [(n, "i1/1:Bill:0:1") for n in (1, 2, 3)]
    record = store.instance("i1")
    assert record is not None
    assert b'"cause":"ValueError: no paper"' in record.inbox[0].payload
    assert b"no_paper" not in record.inbox[0].payload
    assert [b"ValueError: no paper" in entry for entry in record.history[-2:]] == [True, True]


def test_a_cause_that_quotes_a_secret_does_not_tell_it(store: MemoryStore, start: Start) -> None:
    waiting(store, "i1", job(password="opensesame"))

    def work(inputs: dict[str, Any]) -> None:
        raise ValueError(f"refused: {inputs['password']}")

    start(work)
    until(lambda: inbox(store, "i1"))
    record = store.instance("i1")
    assert record is not None
    assert b"refused: ***" in record.inbox[0].payload
    assert b"opensesame" not in record.inbox[0].payload


def test_errors_and_escalations_are_outcomes_and_not_failures(store: MemoryStore, start: Start) -> None:
    waiting(store, "i1", job(kind="error"))
    waiting(store, "i2", job(kind="escalation"))
    waiting(store, "i3", job(kind="on the way"))

    def work(inputs: dict[str, Any], context: JobContext) -> dict[str, Any]:
        if inputs["kind"] == "error":
            raise BpmnError("E1", "no credit", missing=5)
        if inputs["kind"] == "escalation":
            raise Escalation("X1", late=True)
        context.escalate("X2")
        return {"done": True}

    made = start(work)
    until(lambda: made.done == 3)
    assert reported(store, "i1") == [("error", {"missing": 5})]
    assert reported(store, "i2") == [("escalation", {"late": True}), ("job", {"late": True})]
    assert reported(store, "i3") == [("escalation", {}), ("job", {"done": True})]
    record = store.instance("i1")
    assert record is not None
    assert b'"code":"E1"' in record.inbox[0].payload


def test_a_long_job_keeps_its_lock(store: MemoryStore, start: Start) -> None:
    """N11."""
    waiting(store, "i1", job())
    begun: list[int] = []

    def work(_inputs: dict[str, Any]) -> None:
        begun.append(1)
        time.sleep(0.5)

    made = start(work, lock="PT0.15S")
    until(lambda: made.done == 1)
    assert begun == [1]


def test_outputs_that_cannot_be_stored_fail_the_job_for_good(store: MemoryStore, start: Start) -> None:
    waiting(store, "i1", job())
    start(lambda _inputs: {"thing": object()}, retries=5)
    until(lambda: inbox(store, "i1"))
    assert [kind for kind, _ in reported(store)] == ["failed"]


def test_a_result_that_is_not_what_the_process_says_fails_the_job_for_good(store: MemoryStore, start: Start) -> None:
    """A repetition would give the same: the operator hears of it instead, with the path and what was expected."""
    process = ProcessBuilder("order")
    process.start().service_task("Bill", topic="bill").returns(total="xsd:decimal").end("Done")
    store.deploy("order", b"json\n" + to_json(process.build()), ())
    waiting(store, "i1", job("w1"))
    start(lambda inputs: {"total": "much"}, retries=3)
    until(lambda: inbox(store, "i1"))
    record = store.instance("i1")
    assert record is not None
    (trigger,) = record.inbox
    assert trigger.kind == "failed"
    assert b"result of 'Bill': total: expected a number (xsd:decimal)" in trigger.payload


def test_a_worker_that_stops_finishes_what_runs(store: MemoryStore, start: Start) -> None:
    """A75."""
    waiting(store, "i1", job())
    waiting(store, "i2", job())
    begun, go = threading.Event(), threading.Event()

    def work(_inputs: dict[str, Any]) -> None:
        begun.set()
        assert go.wait(5)

    made = start(work, concurrency=1)
    assert begun.wait(5)
    made.stop()
    go.set()
    until(lambda: made.done == 1)
    time.sleep(0.05)
    assert made.done == 1
    (left,) = store.tasks("job")
    assert left.owner == ""


def test_what_outlasts_the_grace_is_given_back_unfailed(store: MemoryStore, start: Start) -> None:
    """A75: abandoned, and done later by somebody else."""
    waiting(store, "i1", job())
    begun, go = threading.Event(), threading.Event()

    def work(_inputs: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        go.wait(5)
        return {"late": True}

    made = start(work, grace="PT0.1S")
    assert begun.wait(5)
    made.stop()
    until(lambda: made.given_back == 1)
    (again,) = store.fetch_jobs(["bill"], "other", 60_000, 5)
    assert again.failures == 0
    go.set()
    time.sleep(0.1)
    assert inbox(store, "i1") == []


def test_a_job_that_ended_under_the_worker_stops_its_asynchronous_function(store: MemoryStore, start: Start) -> None:
    waiting(store, "i1", job())
    ended: list[str] = []

    async def work(_inputs: dict[str, Any], context: JobContext) -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    made = start(work, lock="PT0.15S")
    until(lambda: made.running == 1)
    store.report_job("i1/1:Bill:0:1", "job", "", "operator", b"{}")
    until(lambda: ended == ["cancelled"])
    until(lambda: made.running == 0)
    assert made.done == 0
    assert inbox(store, "i1") == ["operator"]


def test_a_handler_that_could_never_work_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="concurrency 0"):
        worker("nothing", concurrency=0)(lambda inputs: None)
    with pytest.raises(InputError, match="ends before"):
        worker("nothing", lock="PT0S")(lambda inputs: None)

    @worker("one", concurrency=2)
    def one(inputs: dict[str, Any]) -> None: ...

    with pytest.raises(InputError, match="'one' has a handler already"):
        worker("one")(lambda inputs: None)


def test_a_process_and_its_worker_in_one_program() -> None:
    """N10: the engine in process, with a worker over it."""
    from gobpm_ray import Engine

    process = ProcessBuilder("order")
    process.start().service_task("Bill", topic="bill").end("Done")
    with Engine.open(store=None) as engine:
        engine.deploy(process)
        made = Worker(engine, Handler("bill", lambda inputs: {"total": inputs.get("amount", 0) + 1}))
        thread = threading.Thread(target=made.run)
        thread.start()
        started = engine.start("order", {"amount": 4})
        try:
            view = engine.wait(started.instance_id, 10)
        finally:
            made.stop()
            thread.join(10)
    assert (view.state, view.variables["total"]) == ("completed", 5)
