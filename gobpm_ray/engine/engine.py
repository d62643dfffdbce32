"""`Engine`: the whole engine behind one object. Open it over a store or in this process, use it, close it.

Everything that it can be asked stands in `Operations`; this file knows only who does the work (actors on Ray, or this
very process), how that is opened, closed and restarted, and which clock it follows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self

from gobpm_ray.engine.amounts import Moment, moment
from gobpm_ray.engine.base import Base
from gobpm_ray.engine.operations import Operations
from gobpm_ray.errors import InputError, InvalidSetting
from gobpm_ray.runtime.ports import Store
from gobpm_ray.settings import Settings

if TYPE_CHECKING:
    from gobpm_ray.runtime.callables import Work

Clock = Literal["real", "virtual"]


class Workers(Protocol):
    """Who does what was accepted."""

    @property
    def ray_address(self) -> str:
        """Of the Ray cluster, as another driver may join it; '' without one."""

    @property
    def dashboard_url(self) -> str:
        """Of Ray's dashboard; '' without one."""

    def settle(self) -> None:
        """Something was accepted; return when it is done, or at once if others do it."""

    def register(self, topic: str, work: Work | str) -> bool:
        """Take a callable for this process only; False: it belongs into the store."""

    def registered(self) -> frozenset[str]: ...
    def restart(self) -> Store:
        """Every process of the engine is killed, and new ones stand on the same store: its new client."""

    def close(self) -> None: ...


class Engine(Operations):
    """An opened engine; a context manager. After `close` every call raises EngineClosed (R28).

    with Engine.open(store=None, clock="virtual") as engine:
        engine.deploy("order.bpmn")
        started = engine.start("order", {"amount": 5})
        print(engine.wait(started.instance_id).state)
    """

    def __init__(
        self, store: Store, settings: Settings, workers: Workers, clock: Clock, signing_key: bytes | None = None
    ) -> None:
        """Use `Engine.open`."""
        super().__init__(store, settings, signing_key=signing_key)
        self._workers = workers
        self.clock: Clock = clock

    @classmethod
    def open(
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
    ) -> Engine:
        """An engine that works.

        `store`: a redis://, rediss:// or unix:// URL; `embedded`: the one that GOBPM_REDIS_URL names, else a Valkey
        server of its own in `home` (GOBPM_HOME, ./.gobpm); None: in this process, and nothing outlives it (then `ray`
        does not count). `ray`: `local` starts Ray on this machine, `auto` attaches to the running cluster, or a
        cluster's address; None attaches no workers: others do the work. `clock`: `virtual` stands still until
        `advance` moves it, and begins at `now`. `engine_id` names this engine on its store and cluster. `callables`:
        topic -> function or `module:function`.

        What `local` started ends with `close`; with `auto` or an address the actors live on, and opening again finds
        them."""
        if clock not in ("real", "virtual"):
            raise InvalidSetting(f"clock {clock!r}: expected 'real' or 'virtual'")
        if now is not None and clock == "real":
            raise InvalidSetting("now: only a virtual clock begins where it is told; expected clock='virtual'")
        chosen = settings or Settings()
        if engine_id is not None:
            chosen = dataclasses.replace(chosen, engine_id=engine_id)
        begin = None if now is None else moment(now)
        if store is None:
            from gobpm_ray.engine.in_process import open_in_process

            engine = open_in_process(cls, chosen, clock, begin)
        else:
            from gobpm_ray.engine.on_ray import open_on_ray

            engine = open_on_ray(cls, store, ray, chosen, clock, begin, home, dashboard=dashboard)
        try:
            for topic, work in (callables or {}).items():
                engine.register(topic, work)
        except BaseException:
            engine.close()
            raise
        return engine

    @property
    def ray_address(self) -> str:
        """Of the Ray cluster, as another driver may join it; '' in process."""
        return self._workers.ray_address

    @property
    def dashboard_url(self) -> str:
        """Of Ray's dashboard; '' without one."""
        return self._workers.dashboard_url

    def register(self, topic: str, work: Work | str) -> None:
        """As `Operations.register`; an engine in this process takes any callable, as it is."""
        _ = self.store
        if not topic:
            raise InputError("register: a callable needs a topic (or, for a task without one, the node's id)")
        if not self._workers.register(topic, work):
            super().register(topic, work)

    def registered(self) -> frozenset[str]:
        return self._workers.registered() | super().registered()

    def restart(self) -> None:
        """Kill every process of the engine and open it again on the same store: nothing accepted is lost, nothing done
        twice.

        In this process there is nothing to kill: whatever is cached is forgotten, and only what is encoded counts."""
        _ = self.store
        self._store_or_none = self._workers.restart()
        self._forget()
        self._settle()

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._workers.close()
        finally:
            Base.close(self)

    def _settle(self) -> None:
        _ = self.store
        self._workers.settle()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
