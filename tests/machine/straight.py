"""The straight run: every instance stays with the host that began it, from its start to its end, and is never rebuilt.

It is what the others are measured by, so nothing of a release is in it: the state is the one object that the core
changes, no lease is ever given back before the end, nothing is read from a checkpoint. Each instance has a host of its
own, in a greenlet that rests until there is something in its inbox. Who moves next is the oldest name among those that
can, as the store's order of the ready has it while liveness stands still.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from gobpm_ray.core.step import Step, Trigger
from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.hosting import Hosting
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.memory_state import Instance, Wait
from gobpm_ray.runtime.ports import Claim, Residency, TriggerRow
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder
from tests.machine.deploying import BEGIN, LIVE, SETTINGS, Effects, Model


class StraightStore(MemoryStore):
    """A cancel of a held instance goes before what waits unread, unless somebody may have that in hand; a lease says
    so. Here everybody has one, and who rests has nothing in hand."""

    def _deliver(self, instance: Instance, wait: Wait | None, trigger: TriggerRow, *, stay: bool = False) -> None:
        ends_hold = instance.status == "suspended" and trigger.kind == "cancel"
        super()._deliver(instance, wait, trigger, stay=stay)
        if ends_hold and instance.lease is not None:
            instance.inbox.insert(0, instance.inbox.pop())


class ResidentHosting(Hosting):
    def _residency(self, step: Step | None, more: bool) -> Residency:
        return "release" if step is not None and step.outcome else "keep"

    def _next(self, inbox: int) -> tuple[Sequence[TriggerRow], list[Trigger], int]:
        if not self.running:
            cast(ResidentHost, self.host).rest(self.id)
            inbox = 1
        return super()._next(inbox)


class ResidentHost(Host):
    world: Straight

    def rest(self, instance_id: str) -> None:
        self.world.hub.switch()

    def _host(self, claim: Claim) -> Claim | None:
        self._hosted += 1
        return ResidentHosting(self, claim).run()


class Straight:
    def __init__(self, model: Model) -> None:
        self.store = StraightStore(SETTINGS, lambda: LIVE)
        self.store.manual_clock(BEGIN)
        self.effects = Effects()
        model.deploy(self.store)
        self.programs = model.programs(self.store)
        self.hub = getcurrent()
        self._holders = [kind(self.store, SETTINGS) for kind in (MessageHolder, TimerHolder, TaskHolder)]
        self._residents: dict[str, Any] = {}
        self._hosts: list[ResidentHost] = []

    def settle(self) -> None:
        """Until nothing moves: what was accepted is folded, then whoever has something in its inbox goes on."""
        moved = True
        while moved:
            moved = False
            for holder in self._holders:
                moved = holder.pass_once().moved or moved
            moved = self._serve() or moved

    def _serve(self) -> bool:
        moved = False
        while (chosen := self._chosen()) is not None:
            moved = True
            resident = self._residents.pop(chosen, None)
            if resident is None:
                resident = greenlet(self._new_host().serve_once, self.hub)
            resident.switch()
            if not resident.dead:
                self._residents[chosen] = resident
        return moved

    def _chosen(self) -> str | None:
        instances = self.store._instances
        able = [name for name in self._residents if instances[name].inbox and instances[name].status == "active"]
        return min([*able, *(name for at, name in self.store._ready[:1] if at <= LIVE)], default=None)

    def _new_host(self) -> ResidentHost:
        host = ResidentHost(
            self.store,
            SETTINGS,
            self.programs,
            Callables(lambda _topic: None, local=self.effects.topics()),
            f"resident{len(self._hosts)}",
            in_process=True,
            inline_effects=True,
        )
        host._renewer = host._listener = Nobody()  # type: ignore[assignment]
        host.world = self
        self._hosts.append(host)
        return host

    @property
    def failures(self) -> list[str]:
        """Wakes that failed: none may."""
        return [repr(host.last_failure) for host in self._hosts if host.last_failure is not None]

    def close(self) -> None:
        for resident in self._residents.values():
            resident.throw()


class Nobody:
    """Renewer and listener of a host whose lease cannot end, or that never sleeps: no threads."""

    def watch(self, _watched: object) -> None: ...
    def rest(self) -> None: ...
    def close(self) -> None: ...
