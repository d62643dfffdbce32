"""`MemoryStore`: the `Store` of an engine opened without one: the answers of the scripts, in process, under one lock.

It knows what the real store's scripts know and keeps nothing when the process ends. This file holds definitions,
acceptance, reading and the clocks; the wake path, routing and tasks stand in `memory_leases`, `memory_routing` and
`memory_tasks`. It refuses to know Ray, Redis and what a checkpoint says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gobpm_ray.errors import InputError, UnknownInstance, UnknownProcess
from gobpm_ray.runtime.limits import checked_payload, full
from gobpm_ray.runtime.memory_care import MemoryCare
from gobpm_ray.runtime.memory_jobs import MemoryJobs
from gobpm_ray.runtime.memory_state import Instance, Wait, locked
from gobpm_ray.runtime.ports import (
    Accepted,
    Answer,
    ArmRow,
    BellName,
    Definition,
    InstanceRecord,
    ParkedStart,
    Population,
    Quiet,
    StartRow,
    TriggerRow,
)
from gobpm_ray.runtime.sending import CarriedOut
from gobpm_ray.settings import SECOND


class MemoryStore(MemoryJobs, MemoryCare):
    """`clock` gives the liveness time in milliseconds (default: the machine's); the business clock follows it until
    `manual_clock` is called."""

    durable = False

    # --- definitions
    @locked
    def deploy(self, process_id: str, document: bytes, starts: Sequence[ArmRow]) -> tuple[int, bool]:
        versions = self._definitions.setdefault(process_id, [])
        if versions and versions[-1].document == document:
            return len(versions), False
        versions.append(Definition(process_id, len(versions) + 1, document))
        owner = f"@{process_id}"
        older = dict(self._waits_of(owner))
        for wait in older:
            self._withdraw(owner, wait)
        for arm in starts:
            was = next((was for was in older.values() if _same_start(was.arm, arm)), None)
            if was is not None:
                # A running timer keeps its deadline (T44), and what was accepted before this deploy finds its start.
                self._arm(owner, was.arm, was.seq)
            else:
                self._arm(owner, arm if arm.kind == "timer" else replace(arm, repeat=True))
                if arm.kind == "message":
                    self._reroute_started(arm)
        return len(versions), True

    @locked
    def definition(self, process_id: str, version: int = 0) -> Definition | None:
        versions = self._definitions.get(process_id, [])
        return versions[version - 1] if versions and 0 <= version <= len(versions) else None

    @locked
    def definitions(self) -> list[tuple[str, int]]:
        return sorted((process_id, len(versions)) for process_id, versions in self._definitions.items())

    # --- acceptance
    @locked
    def start(
        self,
        process_id: str,
        version: int,
        instance_id: str,
        delivery_id: str,
        business_key: str,
        payload: bytes,
    ) -> Accepted:
        checked_payload(payload, self.settings, f"start of {process_id}")
        definition = self.definition(process_id, version)
        if definition is None:
            which = f" version {version}" if version else ""
            raise UnknownProcess(f"process {process_id}{which} is not deployed; deploy it first")
        if (seen := self._seen(delivery_id)) is not None:
            return Accepted(delivery_id, duplicate=True, instance_id=seen.instance_id, seq=seen.seq)
        self._check_ready(f"start of {process_id}")
        if instance_id in self._instances:
            raise InputError(f"instance {instance_id} exists already; choose another id")
        seq = self._next_seq()
        trigger = TriggerRow(delivery_id, "start", "", seq, payload=payload)
        self._new_instance(process_id, definition.version, instance_id, business_key, trigger)
        self._remember(delivery_id, instance_id, seq)
        return Accepted(delivery_id, instance_id=instance_id, seq=seq)

    def _check_ready(self, what: str) -> None:
        if len(self._ready) >= self.settings.max_pending:
            raise full(what, "max_pending", f"{len(self._ready)} instances are ready and not claimed")

    def start_many(self, rows: Sequence[StartRow], before: int = 0) -> list[Accepted]:
        return [self.start(*row) for row in rows]

    def start_parked(self, starts: Sequence[ParkedStart]) -> list[Accepted | None]:
        return [self._start_parked(start) for start in starts]

    def send_parked(self, starts: Sequence[ParkedStart]) -> Answer[list[Accepted | None]]:
        return CarriedOut(self.start_parked, starts)

    @locked
    def _start_parked(self, start: ParkedStart) -> Accepted | None:
        known = self.definition(start.process_id, 0 if start.newest else start.version)
        if known is None or len(start.payload) > self.settings.max_payload:
            return None
        if (seen := self._seen(start.delivery_id)) is not None:
            return Accepted(start.delivery_id, duplicate=True, instance_id=seen.instance_id, seq=seen.seq)
        if known.version != start.version or abs(self._now() - start.now) > SECOND:
            return None
        if start.instance_id in self._instances or len(self._ready) >= self.settings.max_pending:
            return None
        seq = self._next_seq()
        self._bear(start, seq)
        self._remember(start.delivery_id, start.instance_id, seq)
        return Accepted(start.delivery_id, instance_id=start.instance_id, seq=seq)

    @locked
    def deliver(self, instance_id: str, kind: str, wait: str, delivery_id: str, payload: bytes) -> Accepted:
        checked_payload(payload, self.settings, f"{kind} of instance {instance_id}")
        if (seen := self._seen(delivery_id)) is not None:
            return Accepted(delivery_id, duplicate=True, instance_id=seen.instance_id, seq=seen.seq)
        instance = self._live_instance(instance_id)
        armed = instance.waits.get(wait) if wait else None
        if wait and armed is None:
            raise InputError(f"instance {instance_id}: wait {wait} is not armed")
        if len(instance.inbox) >= self.settings.max_inbox and kind != "cancel":
            held = f"{len(instance.inbox)} triggers wait in its inbox"
            raise full(f"{kind} of instance {instance_id}", "max_inbox", held)
        seq = self._next_seq()
        trigger = TriggerRow(delivery_id, kind, wait, seq, payload=payload)
        self._deliver(instance, armed, trigger, stay=kind == "escalation")
        self._remember(delivery_id, instance_id, seq)
        return Accepted(delivery_id, instance_id=instance_id, seq=seq)

    @locked
    def suspend(self, instance_id: str, suspended: bool) -> bool:
        instance = self._live_instance(instance_id)
        status = "suspended" if suspended else "active"
        if instance.status == status:
            return False
        instance.status = status
        self._hold_jobs(instance)
        if not suspended and instance.held_at:
            # A new beginning, which looks for open effects even if nothing has come.
            instance.held_at, instance.deaths = 0, None
            self._make_ready(instance, self._live())
        if suspended:
            instance.unwoken = instance.unwoken or instance_id in self._ready_at
            self._unready(instance_id)
            self._ring_instance(instance_id)
            return True
        wanted, instance.unwoken = instance.unwoken or bool(instance.inbox), False
        if wanted and instance.lease is None:
            self._make_ready(instance, self._live())
        elif instance.inbox:
            self._ring_instance(instance_id)
        return True

    def _live_instance(self, instance_id: str) -> Instance:
        instance = self._instances.get(instance_id)
        if instance is None:
            raise UnknownInstance(f"instance {instance_id} is unknown")
        if instance.ended:
            raise InputError(f"instance {instance_id} has ended ({instance.status})")
        return instance

    # --- reading
    @locked
    def instance(self, instance_id: str) -> InstanceRecord | None:
        instance = self._instances.get(instance_id)
        if instance is None:
            return None
        return InstanceRecord(
            instance_id=instance.id,
            process_id=instance.process_id,
            process_version=instance.process_version,
            business_key=instance.business_key,
            status=instance.status,
            version=instance.version,
            epoch=instance.epoch,
            resident=instance.lease is not None,
            created=instance.created,
            parts=dict(instance.parts),
            waits={wait_id: _described(wait) for wait_id, wait in instance.waits.items()},
            inbox=tuple(delivered.row for delivered in instance.inbox),
            history=tuple(instance.history),
            held_at=instance.held_at,
            caller=instance.caller,
        )

    @locked
    def status(self, instance_id: str) -> str | None:
        instance = self._instances.get(instance_id)
        return instance.status if instance is not None else None

    @locked
    def instances(self, *, ended: bool | None = None, after_seq: int = 0, limit: int = 1_000) -> list[tuple[int, str]]:
        found = (
            (instance.seq, instance.id)
            for instance in self._instances.values()  # insertion order is order of seq
            if instance.seq > after_seq and ended in (None, instance.ended)
        )
        return [row for row, _ in zip(found, range(limit), strict=False)]

    @locked
    def facts(self, after: str = "0", limit: int = 1_000) -> list[tuple[str, bytes]]:
        stamp, _, number = after.partition("-")
        # As in a stream: an id without a number means the first of its millisecond.
        last = (int(stamp), int(number or 0))
        later = ((f"{id_[0]}-{id_[1]}", fact) for id_, fact in self._facts if id_ > last)
        return [row for row, _ in zip(later, range(limit), strict=False)]

    @locked
    def population(self) -> Population:
        live = self._live()
        pending = {"message": 0, "signal": 0}
        for row in self._pending.values():
            pending[row.row.kind] += 1
        ready = sum(1 for at, *_ in self._ready if at <= live)  # one that backs off may not be claimed yet
        return Population(
            resident=len(self._leased),
            ready=ready,
            oldest_ready_ms=max(0, live - self._ready[0][0]) if self._ready else 0,
            waiting=len(self._instances) - len(self._ended) - len(self._leased) - ready,
            due=len(self._due),
            pending=pending,
            parked=len(self._parked_rows),
            incidents=sum(
                sum(wait.arm.kind == "incident" for wait in i.waits.values()) + bool(i.held_at)
                for i in self._instances.values()
            ),
            ended=len(self._ended),
            dead=len(self._dead),
        )

    # --- clocks and bells
    @locked
    def now(self) -> int:
        return self._now()

    @locked
    def manual_clock(self, start_ms: int) -> int:
        if self._manual is None:
            self._manual = start_ms
        return self._manual

    @locked
    def set_clock(self, now_ms: int) -> int:
        if self._manual is None:
            raise InputError("the clock is not a manual one: open the engine with a manual clock to move it")
        self._manual = max(self._manual, now_ms)
        self._ring("timer", "message", "task")
        return self._manual

    @locked
    def quiet(self) -> Quiet:
        now = self._now()
        # An unleased instance with something in its inbox is ready or suspended, so only the leased ones are asked.
        moving = (
            bool(self._pending)
            or bool(self._ready)
            or (bool(self._due) and self._due[0][0] <= now)
            or any(at <= now for at in self._backoffs.values())
            or any(i.lease is not None and i.lease.busy for i in self._leased.values())
            or any(i.inbox and i.status == "active" for i in self._leased.values())
        )
        ahead = min((*(due[0] for due in self._due[:1]), *self._backoffs.values()), default=None)
        return Quiet(not moving, now, ahead)

    def wait_bell(self, bell: BellName, timeout_s: float) -> bool:
        return self._pop_bell(bell, timeout_s)

    @locked
    def ring(self, bell: BellName) -> None:
        self._ring(bell)

    # --- the engine's own registry
    @locked
    def put_value(self, table: str, name: str, value: bytes) -> None:
        self._values.setdefault(table, {})[name] = value

    @locked
    def get_value(self, table: str, name: str) -> bytes | None:
        return self._values.get(table, {}).get(name)

    @locked
    def values(self, table: str) -> dict[str, bytes]:
        return dict(self._values.get(table, {}))

    @locked
    def drop_value(self, table: str, name: str) -> None:
        self._values.get(table, {}).pop(name, None)

    def close(self) -> None:
        """Nothing to give back."""


def _same_start(was: ArmRow, arm: ArmRow) -> bool:
    """The same start event, waiting for the same thing: a timer's `key` is its text, its row moves on as it fires."""
    alike = (was.kind, was.node, was.key) == (arm.kind, arm.node, arm.key)
    return alike and (arm.kind == "timer" or was.row == arm.row)


def _described(wait: Wait) -> tuple[str, ...]:
    arm = wait.arm
    mode = "repeat" if arm.repeat else "once"
    return (arm.kind, arm.node, arm.key, str(arm.deadline), arm.group, mode, str(arm.depth), str(wait.seq))
