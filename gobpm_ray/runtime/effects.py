"""Running effects: callables in threads or on an event loop, any number at once, each with exactly one report.

It knows how a callable is called and what its result becomes. It refuses to know the store, the state, or what a report
changes: reports go to whoever started the effect. A synchronous callable cannot be stopped; when its result no longer
matters it runs on, and `busy` says so until its thread ends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
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
from gobpm_ray.runtime.leasing import Report
from gobpm_ray.settings import Settings

log = logging.getLogger("gobpm_ray.runtime")

THREADS = 32
"""Synchronous callables of one instance that run at once; more of them queue."""
RESULT = "result"
"""The variable of a result that is no table of values."""

Reporter = Callable[[Report], None]
Warn = Callable[[str], None]


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
    ) -> None:
        """`on_work` is called before a callable begins, `on_warning` with what people should read."""
        self._callables = callables
        self._settings = settings
        self._inline = inline
        self._on_warning = on_warning or (lambda text: log.warning("%s", text))
        self._on_work = on_work
        self._warned: set[str] = set()
        self._threads = _Threads(THREADS)
        self._loop = _Loop()
        self._lock = threading.Lock()
        self._busy = 0
        self._futures: dict[tuple[str, str], concurrent.futures.Future[object]] = {}

    @property
    def busy(self) -> int:
        """Callables that have not ended, wanted or not."""
        return self._busy

    def start(self, instance_id: str, call: Call, report: Reporter) -> None:
        """The effect runs, and `report` is called once, from whatever thread, when it has ended."""
        try:
            work = self._callables.resolve(call.topic)
        except GobpmError as error:
            report(Report(call.effect_key, False, {}, str(error)))
            return
        if work is None:
            report(self._unregistered(call))
            return
        context = EffectContext(instance_id, call.node, f"{instance_id}:{call.effect_key}", call.attempt)
        arguments = (dict(call.inputs), context) if takes_context(work) else (dict(call.inputs),)
        self._on_work()
        reached("effect.begun")
        with self._lock:
            self._busy += 1
        if is_async(work):
            self._begin(instance_id, call, self._loop.submit(_awaited(work, arguments)), report)
        elif self._inline:
            self._run(call, work, arguments, report)
        else:
            self._threads.submit(lambda: self._run(call, work, arguments, report))

    def cancel(self, instance_id: str, effect_key: str) -> None:
        """Its result no longer matters; an asynchronous one is stopped."""
        future = self._futures.pop((instance_id, effect_key), None)
        if future is not None:
            future.cancel()

    def close(self) -> None:
        self._threads.close()
        self._loop.close()

    # --- one effect

    def _run(self, call: Call, work: Work, arguments: tuple[Any, ...], report: Reporter) -> None:
        try:
            result = work(*arguments)
            if asyncio.iscoroutine(result):  # a plain function that hands back a coroutine
                result = self._loop.submit(result).result()
        except Exception as error:
            self._ended(report, self._failed(call, error))
        else:
            self._ended(report, self._done(call, result))

    def _begin(self, instance_id: str, call: Call, future: concurrent.futures.Future[object], report: Reporter) -> None:
        name = (instance_id, call.effect_key)
        self._futures[name] = future

        def ended(future: concurrent.futures.Future[object]) -> None:
            # The name may by now be that of a later attempt of the same effect.
            if self._futures.get(name) is future:
                self._futures.pop(name, None)
            if future.cancelled():
                self._ended(report, Report(call.effect_key, False, {}, "cancelled"))
            elif (error := future.exception()) is not None:
                self._ended(report, self._failed(call, error))
            else:
                self._ended(report, self._done(call, future.result()))

        future.add_done_callback(ended)
        if self._inline:
            concurrent.futures.wait([future])

    def _ended(self, report: Reporter, outcome: Report) -> None:
        reached("effect.done")
        with self._lock:
            self._busy -= 1
        report(outcome)

    def _done(self, call: Call, result: object) -> Report:
        values = {} if result is None else dict(result) if isinstance(result, dict) else {RESULT: result}
        try:
            # Refused here, where it is one task's incident, and not in the commit, where it would be the instance's.
            dump(values, f"result of '{call.node}'")
        except GobpmError as error:
            return Report(call.effect_key, False, {}, str(error))
        return Report(call.effect_key, True, values)

    def _failed(self, call: Call, error: BaseException) -> Report:
        log.info("task '%s', topic '%s', attempt %d failed", call.node, call.topic, call.attempt, exc_info=error)
        return Report(call.effect_key, False, {}, " ".join(f"{type(error).__name__}: {error}".split()))

    def _unregistered(self, call: Call) -> Report:
        if not self._settings.auto_complete:
            return Report(
                call.effect_key,
                False,
                {},
                f"no callable is registered for topic '{call.topic}' of task '{call.node}'; deploy one and retry",
            )
        if call.topic not in self._warned:
            self._warned.add(call.topic)
            self._on_warning(
                f"no callable is registered for topic '{call.topic}' (task '{call.node}'): "
                f"completed at once without a result"
            )
        return Report(call.effect_key, True, {})


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
