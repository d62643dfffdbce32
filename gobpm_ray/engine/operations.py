"""All that a caller may do to an engine, with nothing but its store: what the command line uses, and what `Engine`
adds Ray to.

Every call that changes something is one accepted row (or several that say so), deduplicated by a delivery id that the
caller may give; when it returns, the store keeps it. This module knows requests and refusals; it does not know who
carries them out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.engine.amounts import Span, after
from gobpm_ray.engine.base import checked_instance_id, encoded, new_id
from gobpm_ray.engine.clockwork import Clockwork
from gobpm_ray.engine.dead_letters import DeadLetter, dead_letter, replayed_id
from gobpm_ray.engine.deployment import deploy_packages
from gobpm_ray.engine.instance_views import incident_waits
from gobpm_ray.engine.reading import unknown_process
from gobpm_ray.engine.sources import Source, packages
from gobpm_ray.engine.views import Deployed, Started
from gobpm_ray.errors import InputError, UnknownInstance, UnknownProcess
from gobpm_ray.runtime.callables import Work, callable_row
from gobpm_ray.runtime.ports import Accepted

if TYPE_CHECKING:
    from gobpm_ray.store.verify import Report


class Operations(Clockwork):
    """The engine's whole door, over any store."""

    # --- processes
    def deploy(self, *sources: Source, job_nodes: Collection[str] = ()) -> list[Deployed]:
        """Store every executable process of files, documents, models or builders, and arm their start events.

        All of them are read, validated and compiled before the first write. The newest version that already has the
        same document stays as it is. `job_nodes`: service and send tasks that wait for a worker whatever is
        registered."""
        _ = self.store
        found = [package for source in sources for package in packages(source)[0]]
        deployed = deploy_packages(self.store, self.settings, found, self.registered(), frozenset(job_nodes))
        self._settle()
        return deployed

    def register(self, topic: str, work: Work | str) -> None:
        """From now on `work` does the service and send tasks of this topic (or, without topics, of this node id).

        `module:function` of what every node can import, or a function, which is stored by value and signed when it
        comes from this program or its folder. UnregisteredCallable names a module that no node could load."""
        row = callable_row(work, self._signing_key)
        self.store.put_value("code", topic, row)

    def registered(self) -> frozenset[str]:
        """Topics that a callable is registered for."""
        return frozenset(self.store.values("code"))

    def start(
        self,
        process_id: str,
        variables: Mapping[str, Any] | None = None,
        *,
        version: int = 0,
        business_key: str = "",
        id: str | None = None,
        delivery_id: str | None = None,
    ) -> Started:
        """Accept the start of an instance at its plain start event; `version` 0: the newest, `id`: its id, if it shall
        be yours.

        UnknownProcess; InputError for an id that is taken. The same `delivery_id` (or, without one, the same `id`)
        again is answered as a duplicate with the first one's instance."""
        row = self._start_row(process_id, variables, version, business_key, id, delivery_id)
        try:
            accepted = self.store.start(*row)
        except UnknownProcess:
            known = [name for name, _ in self.store.definitions()]
            raise unknown_process(process_id, version, known) from None
        self._settle()
        return _receipt(accepted)

    def start_many(
        self, process_id: str, each: Iterable[Mapping[str, Any] | None], *, version: int = 0
    ) -> list[Started]:
        """One instance for each set of variables, pipelined; each is accepted for itself."""
        rows = [self._start_row(process_id, variables, version, "", None, None) for variables in each]
        accepted = self.store.start_many(rows)
        self._settle()
        return [_receipt(answer) for answer in accepted]

    def _start_row(
        self,
        process_id: str,
        variables: Mapping[str, Any] | None,
        version: int,
        business_key: str,
        instance_id: str | None,
        delivery_id: str | None,
    ) -> tuple[str, int, str, str, str, bytes]:
        if not isinstance(version, int) or version < 0:
            raise InputError(f"process {process_id}: version {version!r}: expected a whole number, 0 for the newest")
        chosen = new_id() if instance_id is None else checked_instance_id(instance_id)
        delivery = f"start:{chosen}" if delivery_id is None else _checked_delivery(delivery_id)
        values = encoded(variables, f"start of {process_id}")
        return process_id, version, chosen, delivery, business_key, values

    # --- messages and signals
    def publish(
        self,
        name: str,
        key: object = None,
        payload: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        ttl: Span | None = None,
    ) -> Started:
        """Accept a message for whoever waits for its name and key, or starts by it; nobody: it is kept until its `ttl`
        is over.

        `key` None: correlated by name alone. `payload` becomes variables of the receiver."""
        canonical = message_key(name, key)
        now = self.now() if isinstance(ttl, str) else 0
        lasting = self.settings.message_ttl_ms if ttl is None else after(now, ttl) - now
        return self._accept("message", canonical, name, payload, id, lasting)

    def signal(
        self,
        name: str,
        payload: Mapping[str, Any] | None = None,
        id: str | None = None,
    ) -> Started:
        """Accept a signal for everyone who waits for it now; it is never kept."""
        return self._accept("signal", signal_key(name), name, payload, id, 0)

    def _accept(
        self,
        kind: str,
        key: str,
        name: str,
        values: Mapping[str, Any] | None,
        delivery_id: str | None,
        ttl: int,
    ) -> Started:
        accepted = self.store.publish(_delivery(delivery_id), kind, key, name, encoded(values, f"{kind} {name}"), ttl)
        self._settle()
        return _receipt(accepted)

    # --- human tasks and jobs
    def claim(self, task: str, user: str, groups: Sequence[str] = ()) -> None:
        """Reserve a task (exact id, or the oldest open one of a node id) for a user; UnknownTask, TaskRefused."""
        self.store.claim_task(self.task(task).id, user, tuple(groups))
        self._settle()

    def unclaim(self, task: str) -> None:
        """Give the reservation back; UnknownTask."""
        self.store.unclaim_task(self.task(task).id)
        self._settle()

    def complete(
        self,
        task: str,
        outputs: Mapping[str, Any] | None = None,
        user: str = "",
        groups: Sequence[str] = (),
        *,
        strict: bool = False,
        id: str | None = None,
    ) -> Started:
        """Complete a task (exact id, or the oldest open one of a node id); `outputs` become variables.

        `user` '' acts as an operator. `strict`: it must have been claimed. UnknownTask, or one of four TaskRefused
        (H58), by which nothing changes."""
        task_id = self.task(task).id
        values = encoded(outputs, f"task {task}")
        accepted = self.store.complete_task(
            task_id, user, tuple(groups), tuple(outputs or ()), _delivery(id), values, strict=strict
        )
        self._settle()
        return _receipt(accepted)

    def complete_job(
        self,
        job: str,
        outputs: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
    ) -> Started:
        """Report a job (exact id, or the oldest open one of a node id) as done; UnknownTask."""
        info = self.task(job, "job")
        values = encoded(outputs, f"job {job}")
        accepted = self.store.complete_task(info.id, "", (), tuple(outputs or ()), _delivery(id), values)
        self._settle()
        return _receipt(accepted)

    def fail_job(self, job: str, cause: str, *, id: str | None = None) -> Started:
        """Report a job as failed for good: an incident at its element, which an operator retries or resolves;
        UnknownTask."""
        info = self.task(job, "job")
        if not cause.strip():
            raise InputError(f"job {job}: a failure needs a cause that a person can read")
        values = encoded(None, f"job {job}", cause=cause)
        accepted = self.store.deliver(info.instance_id, "failed", info.id.partition("/")[2], _delivery(id), values)
        self._settle()
        return _receipt(accepted)

    # --- care
    def verify(self, *, repair: bool = False) -> Report:
        """Rebuild every index from the instances and the accepted rows and compare, beside an engine at work (H12).

        InputError for an engine without a store of its own."""
        from gobpm_ray.store.verify import verify

        return verify(self.store, repair=repair)

    # --- dead letters
    def dead(self, limit: int = 1_000) -> list[DeadLetter]:
        """Messages and signals that were accepted and set aside, newest first: expired, or not to be folded."""
        return [dead_letter(row) for row in self.store.dead(limit)]

    def replay(self, letter: str, *, ttl: Span | None = None) -> Started:
        """Accept a dead letter again, under a delivery id of its own that is derived from the old one; UnknownDelivery.

        Its `ttl` begins anew."""
        now = self.now() if isinstance(ttl, str) else 0
        lasting = self.settings.message_ttl_ms if ttl is None else after(now, ttl) - now
        accepted = self.store.replay(letter, replayed_id(letter), lasting)
        self._settle()
        return _receipt(accepted)

    def drop(self, letter: str) -> None:
        """A dead letter is gone for good; UnknownDelivery."""
        self.store.drop_dead(letter)

    # --- operators
    def retry(self, instance_id: str, node: str = "") -> Started:
        """Try the failed element again (the oldest open incident, of that node if named); InputError when none is
        open."""
        return self._repair("retry", instance_id, node, None)

    def resolve(self, instance_id: str, node: str = "", outputs: Mapping[str, Any] | None = None) -> Started:
        """Go past the failed element with these outputs in place of its result; InputError when no incident is open."""
        return self._repair("resolve", instance_id, node, outputs)

    def _repair(self, kind: str, instance_id: str, node: str, outputs: Mapping[str, Any] | None) -> Started:
        record = self.store.instance(instance_id)
        if record is None:
            raise UnknownInstance(f"instance {instance_id}: unknown, or ended and past its retention")
        if record.held_at and not node:
            if kind == "resolve":
                raise InputError(
                    f"instance {instance_id}: held for its hosts' deaths, which nobody can resolve; retry it"
                )
            self._hold(instance_id, False)
            return Started(new_id(), False, instance_id)
        waits = incident_waits(record, node)
        if not waits:
            where = f" at {node}" if node else ""
            raise InputError(f"instance {instance_id}: no open incident{where} to {kind}")
        return self._deliver(instance_id, kind, waits[0], outputs)

    def set(self, instance_id: str, values: Mapping[str, Any]) -> Started:
        """Write variables of the instance's root scope; UnknownInstance, InputError when it has ended."""
        return self._deliver(instance_id, "set", "", values)

    def cancel(self, instance_id: str) -> Started:
        """Terminate the instance, whatever it waits for; UnknownInstance, InputError when it has ended."""
        return self._deliver(instance_id, "cancel", "", None)

    def _deliver(self, instance_id: str, kind: str, wait: str, values: Mapping[str, Any] | None) -> Started:
        content = encoded(values, f"{kind} of instance {instance_id}")
        accepted = self.store.deliver(instance_id, kind, wait, new_id(), content)
        self._settle()
        return _receipt(accepted)

    def suspend(self, instance_id: str) -> bool:
        """Hold the instance: it keeps its triggers and runs none. False: it was held already. UnknownInstance."""
        return self._hold(instance_id, True)

    def resume(self, instance_id: str) -> bool:
        """Let a held instance go on with all that came meanwhile. False: it was not held. UnknownInstance."""
        return self._hold(instance_id, False)

    def _hold(self, instance_id: str, suspended: bool) -> bool:
        changed = self.store.suspend(instance_id, suspended)
        self._settle()
        return changed


def _receipt(accepted: Accepted) -> Started:
    return Started(accepted.id, accepted.duplicate, accepted.instance_id)


def _delivery(delivery_id: str | None) -> str:
    return new_id() if delivery_id is None else _checked_delivery(delivery_id)


def _checked_delivery(delivery_id: str) -> str:
    if not isinstance(delivery_id, str) or not 1 <= len(delivery_id) <= 400 or any(ord(c) < 32 for c in delivery_id):
        raise InputError(
            f"delivery id {str(delivery_id)[:80]!r}: expected 1 to 400 characters without control characters"
        )
    return delivery_id
