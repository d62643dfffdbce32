"""Running effects: callables in threads, on an event loop, or as Ray tasks, any number at once, each with one report.

It knows how a callable is called and what its result becomes. It refuses to know the store, the state, or what a report
changes: reports go to whoever started the effect. A synchronous callable cannot be stopped; when its result no longer
matters it runs on, and `busy` says so until its thread ends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import threading
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from typing import Any

from gobpm_ray.checkpoint.codec import dump
from gobpm_ray.core.step import Call
from gobpm_ray.errors import GobpmError
from gobpm_ray.runtime.callables import Callables, EffectContext, Work, is_async, takes_context
from gobpm_ray.runtime.crashpoints import reached
from gobpm_ray.runtime.elsewhere import Elsewhere, Errand, Told, told_of, values_of
from gobpm_ray.runtime.leasing import Lacking, Report
from gobpm_ray.runtime.limits import checked_result
from gobpm_ray.secret import revealed
from gobpm_ray.settings import SECOND, Settings

log = logging.getLogger("gobpm_ray.runtime")

THREADS = 32
"""Synchronous callables of one instance that run at once; more of them queue."""

Reporter = Callable[[Report | Lacking], None]
Warn = Callable[[str], None]
Concealed = Callable[[str], str]


def _nothing_concealed(text: str) -> str:
    return text


class Effects:
    """The effects of one host. `inline`: each runs to its end before `start` returns, without a thread."""

    def __init__(
        self,
        callables: Callables,
        settings: Settings,
        *,
        inline: bool = False,
        on_warning: Warn | None = None,
        on_work: Callable[[], None] = lambda: None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        """`on_work` is called before a callable begins, `on_warning` with what people should read. `elsewhere` does
        what has options of a Ray task; None: it is done here like the rest."""
        self._callables = callables
        self._settings = settings
        self._inline = inline
        self._on_warning = on_warning or (lambda text: log.warning("%s", text))
        self._on_work = on_work
        self._elsewhere = elsewhere
        self._warned: set[str] = set()
        self._threads = _Threads(THREADS)
        self._loop = _Loop()
        self._lock = threading.Lock()
        self._busy = 0
        self._running: dict[tuple[str, str], _Running] = {}

    @property
    def busy(self) -> int:
        """Callables that have not ended, wanted or not."""
        return self._busy

    def start(self, instance_id: str, call: Call, report: Reporter, concealed: Concealed = _nothing_concealed) -> None:
        """The effect runs, and `report` is called once, from whatever thread, when it has ended or its time is over.

        `concealed` takes the values of secrets out of what the callable says of its failure."""
        running = _Running(instance_id, call, report, concealed)
        if call.ray and self._elsewhere is not None:
            self._send(running, self._elsewhere)
            return
        if call.ray:
            self._warn_once(
                f"ray {call.topic}",
                f"task '{call.node}' has options of a Ray task; without Ray it runs in this process",
            )
        try:
            work = self._callables.resolve(call.topic)
        except GobpmError as error:
            running.report(Report(call.effect_key, False, {}, str(error)))
            return
        if work is None:
            running.report(self._unregistered(call))
            return
        context = running.context
        arguments = (dict(call.inputs), context) if takes_context(work) else (dict(call.inputs),)
        self._begin(running)
        if is_async(work):
            self._begin_async(running, self._loop.submit(_awaited(work, arguments)))
        elif self._inline:
            self._run(running, work, arguments)
        else:
            self._threads.submit(lambda: self._run(running, work, arguments))

    def cancel(self, instance_id: str, effect_key: str) -> None:
        """Its result no longer matters: an asynchronous one is stopped, and one that runs elsewhere."""
        running = self._running.pop((instance_id, effect_key), None)
        if running is not None:
            running.stop()

    def close(self) -> None:
        for running in list(self._running.values()):
            running.stop()
        self._threads.close()
        self._loop.close()

    # --- one effect

    def _begin(self, running: _Running) -> None:
        """Counted, and its time runs."""
        self._on_work()
        reached("effect.begun")
        with self._lock:
            self._busy += 1
            running.counted = True
        self._running[running.name] = running
        if running.call.timeout is not None:
            running.timer = threading.Timer(running.call.timeout / SECOND, self._time_over, (running,))
            running.timer.daemon = True
            running.timer.start()

    def _time_over(self, running: _Running) -> None:
        call = running.call
        cause = f"no result within {(call.timeout or 0) / SECOND:g} s"
        if running.report(Report(call.effect_key, False, {}, cause)):
            log.info("task '%s', topic '%s', attempt %d: %s", call.node, call.topic, call.attempt, cause)
            running.stop()

    def _run(self, running: _Running, work: Work, arguments: tuple[Any, ...]) -> None:
        try:
            result = work(*arguments)
            if asyncio.iscoroutine(result):  # a plain function that hands back a coroutine
                result = self._loop.submit(result).result()
        except Exception as error:
            self._ended(running, self._failed(running, error))
        else:
            self._ended(running, self._done(running.call, result))

    def _begin_async(self, running: _Running, future: concurrent.futures.Future[object]) -> None:
        call = running.call
        running.stopping = future.cancel

        def ended(future: concurrent.futures.Future[object]) -> None:
            if future.cancelled():
                self._ended(running, Report(call.effect_key, False, {}, "cancelled"))
            elif (error := future.exception()) is not None:
                self._ended(running, self._failed(running, error))
            else:
                self._ended(running, self._done(call, future.result()))

        future.add_done_callback(ended)
        if self._inline:
            concurrent.futures.wait([future])

    def _send(self, running: _Running, elsewhere: Elsewhere) -> None:
        """The callable is not even loaded here: it may need what only the other node has."""
        call, context = running.call, running.context
        try:
            row = self._callables.row(call.topic)
            if row is None:
                running.report(self._unregistered(call))
                return
            self._begin(running)
            most = 0 if call.mapped else self._settings.max_variable
            errand = Errand(call.topic, row, dict(call.inputs), context, most)
            options = {name: json.loads(text) for name, text in call.ray}
            name = f"{call.node} of {running.instance_id}"
            running.stopping = elsewhere.send(
                errand, options, name, lambda told: self._told(running, told), lambda what: self._lacks(running, what)
            )
        except GobpmError as error:
            self._ended(running, Report(call.effect_key, False, {}, str(error)))

    def _told(self, running: _Running, told: Told) -> None:
        self._ended(running, self._report_of(running, told))

    def _lacks(self, running: _Running, what: str) -> None:
        call = running.call
        if what:
            log.warning("task '%s' of %s waits for what no node has: %s", call.node, running.instance_id, what)
            running.tell(Lacking(call.effect_key, what))
        else:
            log.info("task '%s' of %s: what it waited for is there", call.node, running.instance_id)

    def _ended(self, running: _Running, outcome: Report) -> None:
        reached("effect.done")
        with self._lock:
            if running.counted:
                running.counted = False
                self._busy -= 1
        # The name may by now be that of a later attempt of the same effect.
        if self._running.get(running.name) is running:
            self._running.pop(running.name, None)
        running.report(outcome)

    def _done(self, call: Call, result: object) -> Report:
        values = values_of(result)
        if not call.mapped:
            try:
                # Refused here, where it is one task's incident, and not in the commit, where it would be all's.
                checked_result(dump(values, f"result of '{call.node}'"), self._settings.max_variable, call.node)
            except GobpmError as error:
                return Report(call.effect_key, False, {}, str(error))
        values, secrets = revealed(values)
        return Report(call.effect_key, True, values, secrets=secrets)

    def _failed(self, running: _Running, error: BaseException) -> Report:
        return self._report_of(running, told_of(error))

    def _report_of(self, running: _Running, told: Told) -> Report:
        call, concealed = running.call, running.concealed
        cause = concealed(told.cause)
        values, secrets = revealed(told.values)
        match told.kind:
            case "done":
                return Report(call.effect_key, True, values, secrets=secrets)
            case "error":
                return Report(call.effect_key, False, values, cause, told.code, secrets=secrets)
            case "escalation":
                return Report(call.effect_key, True, values, cause, told.code, secrets=secrets)
        stack = concealed(told.stack)
        detail = f"\n{stack}" if stack else ""
        log.info("task '%s', topic '%s', attempt %d failed: %s%s", call.node, call.topic, call.attempt, cause, detail)
        kept = stack if self._settings.incident_stacks else ""
        lost, unavailable = told.kind == "lost", told.kind == "unavailable"
        return Report(call.effect_key, False, {}, cause, stack=kept, lost=lost, unavailable=unavailable)

    def _unregistered(self, call: Call) -> Report:
        if not self._settings.auto_complete:
            return Report(
                call.effect_key,
                False,
                {},
                f"no callable is registered for topic '{call.topic}' of task '{call.node}'; deploy one and retry",
            )
        self._warn_once(
            call.topic,
            f"no callable is registered for topic '{call.topic}' (task '{call.node}'): "
            f"completed at once without a result",
        )
        return Report(call.effect_key, True, {})

    def _warn_once(self, about: str, text: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            self._on_warning(text)


class _Running:
    """One effect under way: its report is given once, whoever comes first, its result or the end of its time."""

    def __init__(self, instance_id: str, call: Call, report: Reporter, concealed: Concealed) -> None:
        self.instance_id = instance_id
        self.call = call
        self.concealed = concealed
        self.timer: threading.Timer | None = None
        self.stopping: Callable[[], object] | None = None
        self.counted = False
        self._report: Reporter | None = report
        self._lock = threading.Lock()

    @property
    def name(self) -> tuple[str, str]:
        return self.instance_id, self.call.effect_key

    @property
    def context(self) -> EffectContext:
        call = self.call
        return EffectContext(self.instance_id, call.node, f"{self.instance_id}:{call.effect_key}", call.attempt)

    def tell(self, news: Lacking) -> None:
        """Not the end of it; nothing when that has been reported."""
        with self._lock:
            report = self._report
        if report is not None:
            report(news)

    def report(self, outcome: Report) -> bool:
        """False: it had been reported before."""
        with self._lock:
            report, self._report = self._report, None
        if report is None:
            return False
        if self.timer is not None:
            self.timer.cancel()
        report(outcome)
        return True

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.stopping is not None:
            self.stopping()


async def _awaited(work: Work, arguments: tuple[Any, ...]) -> object:
    return await work(*arguments)  # type: ignore[misc]


class _Threads:
    """Daemon threads made on demand: a callable that never returns must not keep the process from ending."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._alive = 0
        self._idle = 0

    def submit(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._alive < self._limit:
                self._alive += 1
                threading.Thread(target=self._serve, name="gobpm-effect", daemon=True).start()
            else:
                self._idle -= 1  # owed: the next thread that ends its work takes this one
        self._work.put(work)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            with self._lock:
                self._idle += 1

    def close(self) -> None:
        for _ in range(self._alive):
            self._work.put(None)


class _Loop:
    """An event loop in a thread of its own, started by its first coroutine."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def submit(self, work: Coroutine[Any, Any, object]) -> concurrent.futures.Future[object]:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_serve_loop, args=(self._loop,), name="gobpm-async", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)


def _serve_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        for aio_task in asyncio.all_tasks(loop):
            aio_task.cancel()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
