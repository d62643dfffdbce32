"""An operator's care in memory: dead letters, held instances, the slow walk, counts. The other half of the real store's
`housekeeping`."""

from __future__ import annotations

from collections.abc import Mapping

from gobpm_ray.errors import InputError, UnknownDelivery
from gobpm_ray.runtime.memory_leases import MemoryLeases
from gobpm_ray.runtime.memory_state import locked
from gobpm_ray.runtime.ports import Accepted, DeadRow


class MemoryCare(MemoryLeases):
    # --- dead letters
    @locked
    def fail(self, seq: int, reason: str) -> bool:
        pending = self._pending.get(seq)
        if pending is None:
            return False
        self._drop_pending(seq)
        self._only.pop(seq, None)
        self._bury(pending.row, " ".join(reason.split())[:500])
        return True

    @locked
    def dead(self, limit: int = 1_000) -> list[DeadRow]:
        return list(self._dead)[:limit]

    @locked
    def replay(self, delivery_id: str, new_id: str, ttl: int) -> Accepted:
        letter = self._letter(delivery_id)
        if self._seen(new_id) is not None:
            raise InputError(f"dead letter {delivery_id!r}: a delivery {new_id!r} was accepted before")
        self._check_room(f"dead letter {delivery_id!r}")
        self._dead.remove(letter)
        seq = self._accept(new_id, letter.kind, letter.key, letter.name, letter.payload, ttl)
        self._remember(new_id, "", seq)
        return Accepted(new_id, seq=seq)

    @locked
    def drop_dead(self, delivery_id: str) -> None:
        self._dead.remove(self._letter(delivery_id))

    def _letter(self, delivery_id: str) -> DeadRow:
        for letter in self._dead:
            if letter.id == delivery_id:
                return letter
        raise UnknownDelivery(f"dead letter {delivery_id!r}: there is none of this delivery id")

    # --- leases and wakes
    @locked
    def hold(self, instance_id: str, token: str, history: bytes, fact: bytes) -> None:
        instance, _ = self._ours(instance_id, token)
        instance.status = "suspended"
        instance.held_at = self._now()
        instance.held_seq = self._next_seq()
        self._hold_jobs(instance)
        instance.history.append(history)
        del instance.history[: max(0, len(instance.history) - self.settings.history_limit)]
        self._add_fact(fact)
        self._release(instance)

    @locked
    def reconcile(self, cursor: str, limit: int) -> tuple[str, int]:
        first = int(cursor or 0)
        page = list(self._instances.values())[first : first + limit]
        dropped = [
            instance
            for instance in page
            if instance.status == "active" and instance.lease is None and instance.inbox
            if instance.id not in self._ready_at
        ]
        for instance in dropped:
            self._make_ready(instance, self._live())
        return (str(first + limit) if len(page) == limit else ""), len(dropped)

    @locked
    def readiness(self) -> tuple[int, int]:
        return len(self._ready), max(0, self._live() - self._ready[0][0]) if self._ready else 0

    # --- counts
    @locked
    def count(self, signals: Mapping[str, int]) -> None:
        totals = self._values.setdefault("signals", {})
        for name, more in signals.items():
            totals[name] = str(int(totals.get(name, b"0")) + more).encode()
