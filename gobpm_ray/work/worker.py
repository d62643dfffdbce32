"""`Worker`: fetches jobs of its topics, runs their functions side by side, and reports what became of each, once.

Theory of operation. One thread for each topic fetches as many jobs as it has room for and sleeps on the topic's bell
when there are none. Each job runs in a thread of its own (an asynchronous one on the worker's event loop). A heartbeat
extends the locks of all that run at a third of their length. A job whose lock was lost all the same is somebody else's
by now: what its function still does is not reported, and an asynchronous one is stopped.

An exception fails the attempt, by the element's policy; `BpmnError` throws an error that the model catches;
`Escalation` throws an escalation and the job is done. Stopped, a worker fetches nothing more, lets what runs finish
within the grace, and gives the rest back unfailed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import secrets
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from gobpm_ray.engine.amounts import Span, after
from gobpm_ray.engine.operations import Operations
from gobpm_ray.engine.views import Job
from gobpm_ray.errors import BpmnError, EnvironmentFailure, Escalation, GobpmError, InputError, LockLost, UnknownTask
from gobpm_ray.settings import SECOND, Settings
from gobpm_ray.work.handlers import HANDLERS, Handler, checked

log = logging.getLogger("gobpm_ray.work")

GRACE = "PT30S"
FETCH_S = 1.0
"""One sleep of a fetcher: how late it notices that the worker is to stop."""
RETRY_S = 0.5
RESULT = "result"


@dataclass(slots=True, eq=False)
class JobContext:
    """What a function may know of its job and do beside returning, if it takes a second parameter."""

    job: Job
    _worker: Worker = field(repr=False)
    lost: bool = False
    """The job is not ours any more: what the function returns will not be reported."""
    _aio_task: concurrent.futures.Future[object] | None = field(default=None, repr=False)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this job."""
        return self.job.id

    @property
    def attempt(self) -> int:
        return self.job.attempt

    @property
    def stopping(self) -> bool:
        """The worker is asked to stop: a long function may end early, by raising."""
        return self._worker.stopping

    def escalate(self, code: str, outputs: Mapping[str, Any] | None = None) -> None:
        """Throw an escalation and go on with the work."""
        self._worker.engine.escalate(self.job, code, outputs)


class Worker:
    """`engine`: an opened engine, or where its store is (a URL; None: as the command line finds it).

    Without `handlers`, everything decorated with `@worker` in this program."""

    def __init__(
        self,
        engine: Operations | str | None = None,
        *handlers: Handler,
        name: str | None = None,
        grace: Span = GRACE,
        settings: Settings | None = None,
    ) -> None:
        chosen = handlers or tuple(HANDLERS.values())
        if not chosen:
            raise InputError("worker: nothing to do: decorate a function with @worker, or name handlers")
        self.handlers = tuple(checked(handler) for handler in chosen)
        self.name = name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self._grace_s = after(0, grace) / SECOND
        self._own = not isinstance(engine, Operations)
        self.engine = engine if isinstance(engine, Operations) else _opened(engine, settings)
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._running: dict[str, tuple[Handler, JobContext]] = {}
        """Lock and job -> what runs."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looping = threading.Thread()
        self.done = 0
        """Jobs that were reported, whatever the report said."""
        self.given_back = 0

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def running(self) -> int:
        return len(self._running)

    def stop(self) -> None:
        """From any thread: `run` returns as soon as what runs has ended or had its grace."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()

    def run(self) -> int:
        """Work until `stop`, SIGTERM or SIGINT; how many jobs were given back because the grace was over."""
        threads = [
            threading.Thread(target=self._fetch, args=(handler,), name=f"fetch-{handler.topic}", daemon=True)
            for handler in self.handlers
        ]
        beat = threading.Thread(target=self._beat, name="job-locks", daemon=True)
        with self._signals():
            for thread in (*threads, beat):
                thread.start()
            try:
                while not self._stop.wait(0.2):
                    pass
            finally:
                self.stop()
                for thread in threads:
                    thread.join(FETCH_S + RETRY_S + 5)
                self._drain()
                if self._loop is not None:
                    self._loop.call_soon_threadsafe(self._loop.stop)
                    self._looping.join(FETCH_S)
                if self._own:
                    self.engine.close()
        return self.given_back

    # --- fetching

    def _fetch(self, handler: Handler) -> None:
        failing = False
        while not self.stopping:
            free = self._free(handler)
            if free <= 0:
                continue
            try:
                jobs = self.engine.fetch_and_lock(handler.topic, self.name, handler.lock, min(free, 100), wait=FETCH_S)
                failing = False
            except EnvironmentFailure as failure:
                log.log(logging.DEBUG if failing else logging.WARNING, "worker %s: no jobs: %s", self.name, failure)
                failing = True
                self._stop.wait(RETRY_S)
                continue
            except GobpmError as failure:
                if not self.stopping:
                    log.error("worker %s: topic '%s': %s", self.name, handler.topic, failure)
                    self._stop.wait(RETRY_S)
                continue
            for job in jobs:
                if self._stop.is_set():
                    self._give_back(job)
                else:
                    self._begin(handler, job)

    def _free(self, handler: Handler) -> int:
        """Room for jobs of this topic; sleeps a little while there is none."""
        with self._changed:
            busy = sum(one is handler for one, _ in self._running.values())
            if busy >= handler.concurrency:
                self._changed.wait(RETRY_S)
                return 0
            return handler.concurrency - busy

    def _begin(self, handler: Handler, job: Job) -> None:
        context = JobContext(job, self)
        with self._changed:
            self._running[_key(job)] = (handler, context)
        threading.Thread(target=self._do, args=(handler, context), name=f"job-{handler.topic}", daemon=True).start()

    # --- one job

    def _do(self, handler: Handler, context: JobContext) -> None:
        job = context.job
        delivery = secrets.token_hex(8)
        report: Callable[[], object]
        try:
            result = self._call(handler, context)
        except Escalation as escalation:
            raised = escalation

            def report() -> object:
                self.engine.escalate(job, raised.code, raised.values, id=f"{delivery}:1")
                return self._completed(job, raised.values, delivery)

        except BpmnError as error:
            thrown = error

            def report() -> object:
                return self.engine.bpmn_error(job, thrown.code, str(thrown), thrown.values, id=delivery)

        except concurrent.futures.CancelledError:
            self._ended(job)
            return
        except Exception as error:
            cause = " ".join(f"{type(error).__name__}: {error}".split())
            stack = "".join(traceback.format_exception(error))
            left = None if handler.retries is None else max(0, handler.retries - job.failures)
            log.info(
                "job %s of topic '%s', attempt %d failed: %s", job.id, job.topic, job.attempt, type(error).__name__
            )

            def report() -> object:
                return self.engine.fail_job(
                    job, cause, retries=left, backoff=handler.backoff if left else None, stack=stack, id=delivery
                )
        else:
            values = {} if result is None else dict(result) if isinstance(result, Mapping) else {RESULT: result}

            def report() -> object:
                return self._completed(job, values, delivery)

        try:
            if not context.lost:
                self._report(context, report)
        finally:
            self._ended(job)

    def _completed(self, job: Job, values: Mapping[str, object], delivery: str) -> object:
        try:
            return self.engine.complete_job(job, values, id=delivery)
        except (LockLost, UnknownTask):
            raise
        except InputError as refused:
            # Its outputs cannot be stored, or are not what the process says, and would not be the next time.
            return self.engine.fail_job(job, str(refused), retries=0, id=delivery)

    def _call(self, handler: Handler, context: JobContext) -> object:
        arguments: tuple[Any, ...] = (dict(context.job.inputs),)
        if handler.takes_context:
            arguments += (context,)
        if handler.is_async:
            context._aio_task = self._submit(handler.work(*arguments))  # type: ignore[arg-type]
            return context._aio_task.result()
        return handler.work(*arguments)

    def _report(self, context: JobContext, report: Callable[[], object]) -> None:
        """Until the store has answered, or the lock is surely gone; the same delivery id each time."""
        job = context.job
        while not context.lost:
            try:
                report()
                self.done += 1
                return
            except (LockLost, UnknownTask) as late:
                log.warning("job %s of topic '%s': its report came too late: %s", job.id, job.topic, late)
                return
            except EnvironmentFailure as failure:
                log.warning("job %s: the store does not answer, reported again: %s", job.id, failure)
                time.sleep(RETRY_S)
            except GobpmError as refused:
                log.error("job %s of topic '%s': its report is refused: %s", job.id, job.topic, refused)
                self._give_back(job)
                return

    def _ended(self, job: Job) -> None:
        with self._changed:
            self._running.pop(_key(job), None)
            self._changed.notify_all()

    # --- locks

    def _beat(self) -> None:
        """Every lock is extended at a third of its length, until nothing runs any more."""
        pause = min(handler.lock_ms for handler in self.handlers) / SECOND / 3
        ended = threading.Event()
        while not (self.stopping and not self._running):
            ended.wait(min(pause, 1.0) if self.stopping else pause)
            for handler, context in list(self._running.values()):
                if context.lost:
                    continue
                try:
                    self.engine.extend(context.job, handler.lock)
                except (LockLost, UnknownTask):
                    if _key(context.job) in self._running:
                        log.warning("job %s of topic '%s' is not ours any more", context.job.id, context.job.topic)
                        self._lose(context)
                except GobpmError as failure:
                    log.debug("job %s: its lock could not be extended: %s", context.job.id, failure)

    def _lose(self, context: JobContext) -> None:
        context.lost = True
        if context._aio_task is not None:
            context._aio_task.cancel()

    # --- the end

    def _drain(self) -> None:
        """What runs has ended, or its grace is over and its jobs are given back."""
        until = time.monotonic() + self._grace_s
        with self._changed:
            self._changed.wait_for(lambda: not self._running, max(0.0, until - time.monotonic()))
            left = [context for _, context in self._running.values()]
        for context in left:
            self._lose(context)
            self._give_back(context.job)
            self._ended(context.job)

    def _give_back(self, job: Job) -> None:
        with contextlib.suppress(GobpmError):
            self.engine.unlock(job)
            self.given_back += 1

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def asked(_number: int, _frame: FrameType | None) -> None:
            self._stop.set()

        before = {number: signal.signal(number, asked) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _submit(self, work: Coroutine[Any, Any, object]) -> concurrent.futures.Future[object]:
        with self._changed:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._looping = threading.Thread(target=_serve, args=(self._loop,), name="job-loop", daemon=True)
                self._looping.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        for aio_task in asyncio.all_tasks(loop):
            aio_task.cancel()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _key(job: Job) -> str:
    return f"{job.lock} {job.id}"


def _opened(where: str | None, settings: Settings | None) -> Operations:
    from gobpm_ray.engine.opening import open_store

    chosen = settings or Settings()
    opened = open_store(where, chosen)
    return Operations(opened.store, chosen, signing_key=opened.signing_key)
