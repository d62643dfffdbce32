"""`AsyncEngine`: the same engine for asyncio programs. Every method is `Engine`'s, run in a thread, awaited."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from gobpm_ray.engine.amounts import Moment
from gobpm_ray.engine.engine import Clock, Engine
from gobpm_ray.errors import EngineClosed
from gobpm_ray.settings import Settings

if TYPE_CHECKING:
    from gobpm_ray.runtime.callables import Work

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 8
"""Calls of one engine that are under way at once; a `wait` occupies one of them."""


def _awaited(
    method: Callable[Concatenate[Engine, P], R],
) -> Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, R]]:
    @functools.wraps(method)
    async def call(self: AsyncEngine, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._call(functools.partial(method, self._engine, *args, **kwargs))

    return call


class AsyncEngine:
    """As `Engine`, with coroutines; an asynchronous context manager once it is opened."""

    def __init__(self, engine: Engine) -> None:
        """Around an engine that is open; `AsyncEngine.open` opens one."""
        self._engine = engine
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="gobpm-engine")

    @classmethod
    async def open(
        cls,
        store: str | None = "embedded",
        *,
        ray: str | None = "local",
        clock: Clock = "real",
        now: Moment | None = None,
        home: Path | str | None = None,
        settings: Settings | None = None,
        engine_id: str | None = None,
        callables: Mapping[str, Work | str] | None = None,
        dashboard: bool = False,
    ) -> AsyncEngine:
        """As `Engine.open`."""
        opening = functools.partial(
            Engine.open,
            store,
            ray=ray,
            clock=clock,
            now=now,
            home=home,
            settings=settings,
            engine_id=engine_id,
            callables=callables,
            dashboard=dashboard,
        )
        return cls(await asyncio.get_running_loop().run_in_executor(None, opening))

    async def _call(self, work: Callable[[], R]) -> R:
        if self.closed:
            raise EngineClosed("the engine is closed: open it again")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @property
    def ray_address(self) -> str:
        return self._engine.ray_address

    @property
    def dashboard_url(self) -> str:
        return self._engine.dashboard_url

    @property
    def closed(self) -> bool:
        return self._engine.closed

    async def close(self) -> None:
        """As `Engine.close`."""
        await asyncio.get_running_loop().run_in_executor(None, self._engine.close)
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    deploy = _awaited(Engine.deploy)
    register = _awaited(Engine.register)
    registered = _awaited(Engine.registered)
    start = _awaited(Engine.start)
    start_many = _awaited(Engine.start_many)
    publish = _awaited(Engine.publish)
    signal = _awaited(Engine.signal)
    tasks = _awaited(Engine.tasks)
    task = _awaited(Engine.task)
    claim = _awaited(Engine.claim)
    unclaim = _awaited(Engine.unclaim)
    reassign = _awaited(Engine.reassign)
    complete = _awaited(Engine.complete)
    jobs = _awaited(Engine.jobs)
    complete_job = _awaited(Engine.complete_job)
    bpmn_error = _awaited(Engine.bpmn_error)
    escalate = _awaited(Engine.escalate)
    fail_job = _awaited(Engine.fail_job)
    fetch_and_lock = _awaited(Engine.fetch_and_lock)
    extend = _awaited(Engine.extend)
    unlock = _awaited(Engine.unlock)
    incidents = _awaited(Engine.incidents)
    data_stores = _awaited(Engine.data_stores)
    data_store = _awaited(Engine.data_store)
    set_data_store = _awaited(Engine.set_data_store)
    drop_data_store = _awaited(Engine.drop_data_store)
    verify = _awaited(Engine.verify)
    dead = _awaited(Engine.dead)
    replay = _awaited(Engine.replay)
    drop = _awaited(Engine.drop)
    retry = _awaited(Engine.retry)
    repair = _awaited(Engine.repair)
    resolve = _awaited(Engine.resolve)
    set = _awaited(Engine.set)
    cancel = _awaited(Engine.cancel)
    suspend = _awaited(Engine.suspend)
    resume = _awaited(Engine.resume)
    suspend_all = _awaited(Engine.suspend_all)
    resume_all = _awaited(Engine.resume_all)
    cancel_all = _awaited(Engine.cancel_all)
    register_element = _awaited(Engine.register_element)
    inspect = _awaited(Engine.inspect)
    list_instances = _awaited(Engine.list_instances)
    status = _awaited(Engine.status)
    wait = _awaited(Engine.wait)
    facts = _awaited(Engine.facts)
    top = _awaited(Engine.top)
    processes = _awaited(Engine.processes)
    process = _awaited(Engine.process)
    now = _awaited(Engine.now)
    wait_quiet = _awaited(Engine.wait_quiet)
    advance = _awaited(Engine.advance)
    next_deadline = _awaited(Engine.next_deadline)
    supervised = _awaited(Engine.supervised)
    restart = _awaited(Engine.restart)
