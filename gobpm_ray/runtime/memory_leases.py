"""The wake path in memory: claim, commit, and every way a lease ends. It knows fencing and not what parts mean."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from gobpm_ray.checkpoint import rows
from gobpm_ray.core.keys import PROPERTY, properties_of
from gobpm_ray.core.step import HistoryEntry
from gobpm_ray.errors import BrokenInvariant, LeaseLost
from gobpm_ray.runtime.memory_data import MemoryData
from gobpm_ray.runtime.memory_state import Instance, Lease, locked
from gobpm_ray.runtime.ports import Answer, ArmRow, Claim, Commit, CommitResult, ParkedStart, TriggerRow
from gobpm_ray.runtime.sending import CarriedOut

LASTING_PARTS = ("h", "s0")
"""What is left of an ended instance: its head and the root scope's variables."""


class MemoryLeases(MemoryData):
    @locked
    def claim(self, token: str) -> Claim | None:
        claim = self._claim(token)
        if claim is not None and self._ready:
            self._ring("ready")  # one bit for many: each claim wakes the next free actor
        return claim

    @locked
    def load(self, instance_id: str, token: str) -> Claim:
        instance, _ = self._ours(instance_id, token)
        return self._claimed(instance, whole=True)

    @locked
    def fetch(self, instance_id: str, token: str) -> tuple[tuple[TriggerRow, ...], int]:
        instance, _ = self._ours(instance_id, token)
        return self._handed_out(instance), self._now()

    @locked
    def renew(self, instance_id: str, token: str) -> tuple[int, int]:
        instance, lease = self._ours(instance_id, token)
        lease.expiry = self._live() + self.settings.lease_ttl_ms
        instance.worked = True
        return len(instance.inbox), bisect_right(self._ready, self._live(), key=lambda ready: ready[0])

    @locked
    def abandon(self, instance_id: str, token: str, backoff_ms: int) -> None:
        instance = self._instances.get(instance_id)
        # Expired and unswept is no obstacle: giving a lease back does what the sweep would do.
        if instance is None or instance.lease is None or instance.lease.token != token:
            raise LeaseLost(f"instance {instance_id}: lease {token!r} is not the live one")
        instance.deaths = None
        self._release(instance)
        self._make_ready(instance, self._live() + backoff_ms)

    @locked
    def unclaim(self, instance_id: str, token: str) -> None:
        instance = self._instances.get(instance_id)
        if instance is None or instance.lease is None or instance.lease.token != token:
            raise LeaseLost(f"instance {instance_id}: lease {token!r} is not the live one")
        self._release(instance)
        live = self._live()
        self._make_ready(instance, min(live, self._ready[0][0]) if self._ready else live)

    @locked
    def release_dead(self, actor: str) -> int:
        dead = [
            instance
            for instance in self._leased.values()
            if instance.lease is not None and instance.lease.token.startswith(actor + ":")
        ]
        return self._release_to_ready(dead)

    @locked
    def sweep(self, limit: int = 100) -> int:
        now = self._live()
        expired = [i for i in self._leased.values() if i.lease is not None and i.lease.expiry <= now]
        expired.sort(key=lambda i: i.lease.expiry if i.lease is not None else 0)
        return self._release_to_ready(expired[:limit])

    @locked
    def leases(self) -> list[tuple[str, str, int]]:
        now = self._live()
        return [
            (i.id, i.lease.token, i.lease.expiry - now)
            for i in sorted(self._leased.values(), key=lambda i: i.seq)
            if i.lease is not None
        ]

    def wait_instance_bell(self, instance_id: str, timeout_s: float) -> bool:
        return self._pop_bell("@" + instance_id, timeout_s)

    # --- the commit
    @locked
    def commit(self, commit: Commit) -> CommitResult:
        instance = self._instances.get(commit.instance_id)
        if instance is not None and instance.last_commit is not None and instance.last_commit[0] == commit.commit_id:
            return instance.last_commit[1]
        if (answer := self._answered_before(instance, commit)) is not None:
            return answer
        instance, lease = self._ours(commit.instance_id, commit.token)
        if instance.version != commit.version:
            raise LeaseLost(
                f"instance {instance.id}: commit {commit.commit_id} started from version {commit.version}, "
                f"the stored version is {instance.version}"
            )
        self._check_data(commit)
        consumed = list(commit.consumed)
        if [d.row.id for d in instance.inbox[: len(consumed)]] != consumed:
            raise BrokenInvariant(
                f"instance {instance.id}: commit {commit.commit_id} names triggers that are not there: {consumed!r}"
            )
        # Everything has been checked; from here on nothing may refuse.
        del instance.inbox[: len(consumed)]
        self._carry_out(instance, commit)
        kept = not commit.outcome and self._keeps(instance, commit.residency)
        if kept:
            lease.expiry = self._live() + self.settings.lease_ttl_ms
            lease.busy = instance.worked = commit.residency == "keep" or bool(instance.inbox)
        elif not commit.outcome:
            self._park(instance, commit)
        instance.deaths = None
        inbox = len(instance.inbox)
        following = self._claim(commit.next_token) if commit.next_token and not kept else None
        ready = len(self._ready) if following is not None else 0
        result = CommitResult(kept, instance.version, inbox, self._now(), following, ready)
        instance.last_commit = (commit.commit_id, result)
        return result

    def _bear(self, start: ParkedStart, seq: int) -> None:
        """A new instance as its first leg leaves it, without a lease."""
        given, commit = (start.process_id, start.version, start.business_key, start.now), start.commit
        instance = Instance(start.instance_id, seq, *given, epoch=1)
        self._instances[instance.id] = instance
        self._carry_out(instance, commit)
        if not commit.outcome:
            self._park(instance, commit)
        result = CommitResult(False, instance.version, len(instance.inbox), self._now())
        instance.last_commit = (commit.commit_id, result)

    def _carry_out(self, instance: Instance, commit: Commit) -> None:
        """All that the step wants, but what becomes of the lease."""
        self._write(instance, commit)
        self._commit_data(commit)
        for trigger in commit.returned:
            self._return_message(trigger, instance.process_id)
        if commit.outcome:
            self._end(instance, commit)
        else:
            for arm in commit.arms:
                if arm.kind == "message" and arm.wait in instance.waits:
                    self._drain_parked(instance, instance.waits[arm.wait])
        for send in commit.sends:
            # No dedup: a send's id is unique by construction, and this commit happens once.
            if not send.addressed:
                self._accept(send.id, send.kind, send.key, send.name, send.payload, send.ttl)
        for send in commit.sends:
            if send.addressed:
                self._hand_on(instance, send)

    def _park(self, instance: Instance, commit: Commit) -> None:
        """It is a record and nothing else, unless something has come for it."""
        self._release(instance)
        for fact in commit.release_facts:
            self._add_fact(fact)
        if instance.inbox:
            self._make_ready(instance, self._live())

    def send_commit(self, commit: Commit) -> Answer[CommitResult]:
        return CarriedOut(self.commit, commit)

    def _answered_before(self, instance: Instance | None, commit: Commit) -> CommitResult | None:
        """A retry after somebody else's commit is known by the lease that only its first call can have taken."""
        if instance is None or not commit.next_token:
            return None
        if instance.lease is not None and instance.lease.token == commit.token:
            return None
        for other in self._leased.values():
            if other.lease is not None and other.lease.token == commit.next_token:
                following = self._claimed(other)
                return CommitResult(False, commit.version + 1, len(instance.inbox), self._now(), following)
        return None

    def _write(self, instance: Instance, commit: Commit) -> None:
        instance.version += 1
        instance.parts.update(commit.parts)
        for name in commit.removed:
            instance.parts.pop(name, None)
        if commit.learnt and not commit.outcome:
            instance.learnt = properties_of(commit.learnt.removesuffix(PROPERTY))
        for wait in commit.withdrawals:
            self._withdraw(instance.id, wait)
        if not commit.outcome:
            for arm in commit.arms:
                self._arm(instance.id, self._joined(instance, arm, commit.arms) if arm.joins else arm)
        instance.history.extend(commit.history)
        del instance.history[: max(0, len(instance.history) - self.settings.history_limit)]
        for fact in commit.facts:
            self._add_fact(fact)

    def _joined(self, instance: Instance, arm: ArmRow, arms: Sequence[ArmRow]) -> ArmRow:
        """In the race of a wait that is armed already. If it was in none, it is in this one now; an unkeyed wait goes
        with the last that takes its place."""
        partner = instance.waits.get(arm.joins)
        if partner is None:
            return arm
        group = partner.arm.group or arm.group
        last = [other for other in arms if other.joins == arm.joins][-1] is arm
        if partner.arm.kind != "unkeyed":
            partner.arm = replace(partner.arm, group=group)
        elif last:
            self._withdraw(instance.id, arm.joins)
        return replace(arm, group=group)

    def _end(self, instance: Instance, commit: Commit) -> None:
        """Nothing can reach the instance any more; messages that it leaves unread are for others."""
        instance.status = commit.outcome
        instance.ended_live = self._live()
        for wait in list(instance.waits):
            self._withdraw(instance.id, wait)
        for delivered in instance.inbox:
            self._return_message(delivered.row, instance.process_id)
            if delivered.row.kind != "message":
                self._overtaken(instance, delivered.row)
        instance.inbox.clear()
        instance.parts = {name: part for name, part in instance.parts.items() if name in LASTING_PARTS}
        self._release(instance)
        self._end_conversations(instance)
        self._ended[instance.id] = instance.ended_live

    def _overtaken(self, instance: Instance, trigger: TriggerRow) -> None:
        """It came while the last step ran: its sender was told "accepted", so its end must be seen as well."""
        node = trigger.wait.partition(":")[2].rpartition(":")[0].rpartition(":")[0]
        instance.history.append(rows.history_entry(HistoryEntry("overtaken", self._now(), node, trigger.kind)))
        del instance.history[: max(0, len(instance.history) - self.settings.history_limit)]
        told = {"trigger": trigger.kind, "wait": trigger.wait}
        self._add_fact(rows.fact("Overtaken", instance.id, instance.process_id, self._now(), **told))

    def _keeps(self, instance: Instance, residency: str) -> bool:
        if residency == "either":
            crowded = self._something_ready() or len(self._leased) > self.settings.max_resident
            return instance.status == "active" and (bool(instance.inbox) or not crowded)
        return residency == "keep"

    # --- leases
    def _ours(self, instance_id: str, token: str) -> tuple[Instance, Lease]:
        """The instance under our live lease: an expired one is lost even before it is swept (N8)."""
        instance = self._instances.get(instance_id)
        lease = instance.lease if instance is not None else None
        if instance is None or lease is None or lease.token != token:
            raise LeaseLost(f"instance {instance_id}: lease {token!r} is not the live one")
        if lease.expiry <= self._live():
            raise LeaseLost(f"instance {instance_id}: lease {token!r} has expired")
        return instance, lease

    def _claim(self, token: str) -> Claim | None:
        if not self._something_ready():
            return None
        instance = self._instances[self._ready[0][1]]
        self._unready(instance.id)
        instance.epoch += 1
        instance.lease = Lease(token, self._live() + self.settings.lease_ttl_ms)
        self._leased[instance.id] = instance
        return self._claimed(instance)

    def _claimed(self, instance: Instance, *, whole: bool = False) -> Claim:
        handed = instance.inbox[: self.settings.claim_triggers]
        touches = [delivered.touch for delivered in handed]
        complete = whole or len(instance.parts) <= self.settings.whole_parts or not touches or not all(touches)
        names = instance.parts.keys() if complete else {"h", *(name for touch in touches for name in touch)}
        assert instance.lease is not None  # noqa: S101 - both callers hold it
        return Claim(
            instance_id=instance.id,
            token=instance.lease.token,
            epoch=instance.epoch,
            version=instance.version,
            process_id=instance.process_id,
            process_version=instance.process_version,
            business_key=instance.business_key,
            parts={name: part for name, part in instance.parts.items() if name in names},
            complete=complete,
            triggers=tuple(delivered.row for delivered in handed),
            inbox=len(instance.inbox),
            now=self._now(),
            deaths=instance.deaths or 0,
            suspect=instance.deaths is not None,
            caller=instance.caller,
        )

    def _handed_out(self, instance: Instance) -> tuple[TriggerRow, ...]:
        return tuple(delivered.row for delivered in instance.inbox[: self.settings.claim_triggers])

    def _release(self, instance: Instance) -> None:
        instance.lease = None
        instance.worked = False
        self._leased.pop(instance.id, None)
        self._bells.discard("@" + instance.id)

    def _release_to_ready(self, instances: list[Instance]) -> int:
        """Ready even with an empty inbox: their actor may have died inside an effect whose intent is open (N10)."""
        for instance in instances:
            if instance.lease is not None and instance.lease.busy:  # who merely waits kills nobody
                instance.deaths = (instance.deaths or 0) + instance.worked
            self._release(instance)
            self._make_ready(instance, self._live())
        return len(instances)
