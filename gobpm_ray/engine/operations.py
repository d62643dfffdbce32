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
from gobpm_ray.core.nodes.custom import imported, register
from gobpm_ray.engine.amounts import Span, after
from gobpm_ray.engine.base import checked_delivery, checked_instance_id, encoded, new_id
from gobpm_ray.engine.data_stores import DataStores
from gobpm_ray.engine.dead_letters import DeadLetter, dead_letter, replayed_id
from gobpm_ray.engine.deployment import deploy_packages
from gobpm_ray.engine.populations import Populations
from gobpm_ray.engine.reading import unknown_process
from gobpm_ray.engine.sources import Package, Rules, Source, decisions, packages
from gobpm_ray.engine.views import Deployed, Started
from gobpm_ray.errors import InputError, UnknownProcess
from gobpm_ray.runtime.callables import Work, callable_row
from gobpm_ray.runtime.ports import Accepted, StartRow
from gobpm_ray.runtime.programs import ELEMENTS, is_decision

if TYPE_CHECKING:
    from gobpm_ray.runtime.first_leg import FirstLegs
    from gobpm_ray.store.verify import Report

PARKED_FROM = 8
"""Fewer starts in one call are not worth the compilation of their process."""


class Operations(Populations, DataStores):
    """The engine's whole door, over any store."""

    _first_legs: FirstLegs | None = None

    # --- processes
    def deploy(
        self, *sources: Source, job_nodes: Collection[str] = (), secrets: Collection[str] = ()
    ) -> list[Deployed]:
        """Store every executable process of files, documents, models or builders, and arm their start events; and
        before them, every decision of DMN files.

        All of them are read, validated and compiled before the first write. The newest version that already has the
        same document stays as it is. `job_nodes`: service and send tasks that wait for a worker whatever is
        registered. `secrets`: variables that nobody is shown, beside those that the models name; they stay secret in
        later versions."""
        if isinstance(secrets, str):
            raise InputError(f"deploy: secrets={secrets!r}: expected several names, such as [{secrets!r}]")
        _ = self.store
        found: list[Package] = []
        rules: list[Rules] = []
        for source in sources:
            decided = decisions(source)
            if decided is None:
                found += packages(source)[0]
            else:
                rules += decided
        topics, jobs = self.registered(), frozenset(job_nodes)
        deployed = deploy_packages(self.store, self.settings, found, topics, jobs, rules, secrets)
        self._untyped.difference_update((each.process_id, 0) for each in deployed)
        self._first_legs = None
        self._settle()
        return deployed

    def register(self, topic: str, work: Work | str) -> None:
        """From now on `work` does the service and send tasks of this topic (or, without topics, of this node id).

        `module:function` of what every node can import, or a function, which is stored by value and signed when it
        comes from this program or its folder. UnregisteredCallable names a module that no node could load."""
        row = callable_row(work, self._signing_key)
        self.store.put_value("code", topic, row)

    def register_element(self, element: str, family: str) -> None:
        """From now on elements of this name are executed by the family `module:Class` (docs/custom-elements.md), which
        every node can import. InvalidModel says what is wrong with it."""
        made = imported(family)
        self.store.put_value(ELEMENTS, element, family.encode())
        register(element, made)

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

        UnknownProcess; Mistyped for variables that are not of the types that the process declares; InputError for an id
        that is taken. The same `delivery_id` (or, without one, the same `id`)
        again is answered as a duplicate with the first one's instance."""
        row = self._start_row(process_id, variables, version, business_key, id, delivery_id)
        try:
            self._refuse_decision(process_id)
            self._check_start(process_id, version, variables)
            accepted = self._surely(lambda: self.store.start(*row), ours=id is None and delivery_id is None)
        except UnknownProcess:
            known = [name for name, _ in self.processes()]
            raise unknown_process(process_id, version, known) from None
        self._settle()
        return _receipt(accepted)

    def start_many(
        self, process_id: str, each: Iterable[Mapping[str, Any] | None], *, version: int = 0
    ) -> list[Started]:
        """One instance for each set of variables, pipelined; each is accepted for itself. Those that wait after their
        first leg are written as waiting at once (`Settings.park_at_start`)."""
        each = list(each)
        rows = [self._start_row(process_id, variables, version, "", None, None) for variables in each]
        self._refuse_decision(process_id)
        self._check_start(process_id, version, *each)
        accepted = self._started(rows)
        self._settle()
        return [_receipt(answer) for answer in accepted]

    def _started(self, rows: Sequence[StartRow]) -> list[Accepted]:
        store = self.store
        if len(rows) < PARKED_FROM or not (self.settings.park_at_start and store.durable):
            return store.start_many(rows)
        legs = self._first_legs
        if legs is None:
            # What makes commits is no part of a client that starts none in bulk.
            from gobpm_ray.runtime.first_leg import FirstLegs

            legs = self._first_legs = FirstLegs(store, self.settings, self._programs)
        return legs.start_many(rows)

    def _forget(self) -> None:
        super()._forget()
        self._first_legs = None

    def _refuse_decision(self, process_id: str) -> None:
        """UnknownProcess: the id is a decision's. An id never changes from one to the other, so it is asked once."""
        if process_id in self._startable:
            return
        definition = self.store.definition(process_id)
        if definition is not None:
            if is_decision(definition.document):
                raise UnknownProcess(f"process {process_id}: a decision of this id is deployed, and no process")
            self._startable.add(process_id)

    def _start_row(
        self,
        process_id: str,
        variables: Mapping[str, Any] | None,
        version: int,
        business_key: str,
        instance_id: str | None,
        delivery_id: str | None,
    ) -> StartRow:
        if not isinstance(version, int) or version < 0:
            raise InputError(f"process {process_id}: version {version!r}: expected a whole number, 0 for the newest")
        chosen = new_id() if instance_id is None else checked_instance_id(instance_id)
        delivery = f"start:{chosen}" if delivery_id is None else checked_delivery(delivery_id)
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

        `key` None: correlated by name alone; a table of correlation properties: looked for by each of them, and not
        given to who knows another value of one. `payload` becomes variables of the receiver."""
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
        delivery, payload = _delivery(delivery_id), encoded(values, f"{kind} {name}")
        accepted = self._surely(
            lambda: self.store.publish(delivery, kind, key, name, payload, ttl), ours=delivery_id is None
        )
        self._settle()
        return _receipt(accepted)

    # --- human tasks; jobs are `gobpm_ray.engine.jobs`
    def claim(self, task: str, user: str, groups: Sequence[str] = ()) -> None:
        """Reserve a task (exact id, or the oldest open one of a node id) for a user; UnknownTask, TaskRefused."""
        self.store.claim_task(self.task(task).id, user, tuple(groups))
        self._settle()

    def unclaim(self, task: str) -> None:
        """Give the reservation back; UnknownTask."""
        self.store.unclaim_task(self.task(task).id)
        self._settle()

    def reassign(self, task: str, user: str) -> None:
        """An operator gives the task to a user, whoever has it and whoever may claim it; UnknownTask."""
        self.store.reassign_task(self.task(task).id, user)
        self._settle()

    def complete(
        self,
        task: str,
        outputs: Mapping[str, Any] | None = None,
        user: str = "",
        groups: Sequence[str] = (),
        *,
        strict: bool | None = None,
        id: str | None = None,
    ) -> Started:
        """Complete a task (exact id, or the oldest open one of a node id); `outputs` become variables.

        `user` '' acts as an operator. `strict`: it must have been claimed; None: as the engine's
        `strict_tasks` says. UnknownTask, Mistyped, or one of four TaskRefused
        (H58), by which nothing changes."""
        found = self.task(task)
        task_id = found.id
        self._check_result(found.process_id, found.process_version, found.node, outputs)
        strictly = self.settings.strict_tasks if strict is None else strict
        values = encoded(outputs, f"task {task}")
        delivery = _delivery(id)
        accepted = self._surely(
            lambda: self.store.complete_task(
                task_id, user, tuple(groups), tuple(outputs or ()), delivery, values, strict=strictly
            ),
            ours=id is None,
        )
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


def _receipt(accepted: Accepted) -> Started:
    return Started(accepted.id, accepted.duplicate, accepted.instance_id)


def _delivery(delivery_id: str | None) -> str:
    return new_id() if delivery_id is None else checked_delivery(delivery_id)
