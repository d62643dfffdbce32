"""Messages, signals and deadlines in memory: publish, fold, park, expire, fire.

It compares keys and deadlines; it never looks into a payload. The trigger of a start that an event caused carries the
start event's node as its wait.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast

from gobpm_ray.core.keys import PROPERTY, SEPARATOR, began_by, canonical_key, routes
from gobpm_ray.runtime.limits import checked_payload, full
from gobpm_ray.runtime.memory_state import Instance, MemoryState, Pending, Wait, locked
from gobpm_ray.runtime.ports import (
    Accepted,
    ArmRow,
    DueList,
    DueRow,
    PendingRow,
    Routed,
    TriggerRow,
)


class MemoryRouting(MemoryState):
    # --- acceptance
    @locked
    def publish(self, delivery_id: str, kind: str, key: str, name: str, payload: bytes, ttl: int) -> Accepted:
        if (seen := self._seen(delivery_id)) is not None:
            return Accepted(delivery_id, duplicate=True, instance_id=seen.instance_id, seq=seen.seq)
        checked_payload(payload, self.settings, f"{kind} {name!r}")
        self._check_room(f"{kind} {name!r}")
        seq = self._accept(delivery_id, kind, key, name, payload, ttl)
        self._remember(delivery_id, "", seq)
        return Accepted(delivery_id, seq=seq)

    def _accept(self, delivery_id: str, kind: str, key: str, name: str, payload: bytes, ttl: int) -> int:
        seq, now = self._next_seq(), self._now()
        expires = now + ttl if kind == "message" else 0
        checked = cast(Literal["message", "signal"], kind)
        self._put_pending(PendingRow(seq, delivery_id, checked, key, name, payload, expires, now, self._live()))
        return seq

    # --- folding
    @locked
    def order_lease(self, holder: str, token: str, ttl_ms: int) -> bool:
        now = self._live()
        held_by, until = self._orders.get(holder, (token, 0))
        if held_by != token and until > now:
            return False
        self._orders[holder] = (token, now + ttl_ms)
        return True

    @locked
    def pending(self, after_seq: int, limit: int) -> list[PendingRow]:
        later = (seq for seq in self._pending_order if seq > after_seq)
        return [self._pending[seq].row for seq, _ in zip(later, range(limit), strict=False)]

    @locked
    def route(self, seq: int, limit: int, key: str = "") -> Routed:
        pending = self._pending.get(seq)
        if pending is None:
            return Routed("gone")
        row = pending.row
        if row.kind == "message" and key:
            pending.row = replace(row, key=key)
        elif row.kind == "message" and row.expires > self._now() and self._values.get(f"correlates:{row.name}"):
            return Routed("unread")
        if pending.row.kind == "signal":
            return self._broadcast(pending, limit)
        if self._expects_room(pending.row):
            return Routed("full")
        self._drop_pending(seq)
        return self._correlate(pending.row)

    def _check_room(self, what: str) -> None:
        if len(self._pending) >= self.settings.max_pending:
            raise full(what, "max_pending", f"{len(self._pending)} accepted rows are not folded")

    def _expects_room(self, row: PendingRow) -> bool:
        """Who would take it first can hold no more: it stays pending, and blocks its key."""
        if row.expires <= self._now():
            return False
        takers = self._takers(row)
        if not takers:
            return False
        _, instance, _ = takers[min(takers)]
        base = routes(row.key)[0]
        starters = [owner[1:] for (owner, _), wait in self._subs.get(("message", base), {}).items() if wait.starts]
        # As the real store walks them: by process, and a start before it has made the row a taken one.
        first = not any(process_id < min(takers) and process_id not in takers for process_id in starters)
        return first and len(instance.inbox) >= self.settings.max_inbox

    def _takers(self, row: PendingRow) -> dict[str, tuple[tuple[int, int, int], Instance, Wait]]:
        """By process; of several keys the earlier one decides."""
        takers: dict[str, tuple[tuple[int, int, int], Instance, Wait]] = {}
        for key in routes(row.key):
            of_key: dict[str, tuple[tuple[int, int, int], Instance, Wait]] = {}
            for (owner, _), wait in self._subs.get(("message", key), {}).items():
                if wait.starts:
                    continue
                instance = self._instances[owner]
                if not self._may_have(instance.process_id, row.seq) or self._contradicts(instance, row.key):
                    continue
                rank = (instance.seq, -wait.arm.depth, wait.seq)
                best = of_key.get(instance.process_id)
                if best is None or rank < best[0]:
                    of_key[instance.process_id] = (rank, instance, wait)
            takers = of_key | takers
        return takers

    def _correlate(self, row: PendingRow) -> Routed:
        """One wait per process id; where nobody waits, a matching start event starts an instance."""
        if row.expires <= self._now():
            self._only.pop(row.seq, None)
            self._bury(row, "expired")
            return Routed("expired")
        takers = self._takers(row)
        starters: dict[str, Wait] = {}
        for key in dict.fromkeys((*routes(row.key), canonical_key(row.name))):
            found = self._subs.get(("message", key), {})
            # In order of process ids, of one process the oldest: as the real store's index has them.
            for (owner, _), wait in sorted(found.items(), key=lambda item: (item[0][0], item[1].seq)):
                if wait.starts and owner[1:] not in takers and self._may_start(owner[1:], row):
                    starters.setdefault(owner[1:], wait)
        for _, instance, wait in takers.values():
            self._deliver_row(instance, wait, row)
        started = sum(self._start_by(process_id, wait, row) for process_id, wait in starters.items())
        if takers or started:
            self._only.pop(row.seq, None)
            return Routed("delivered", len(takers), started)
        self._park_message(row)
        return Routed("parked")

    def _may_start(self, process_id: str, row: PendingRow) -> bool:
        """Not while a living instance of the process holds the conversation: then it is for that one to take (M50)."""
        begun = any((process_id, key) in self._conversations for key in began_by(row.name, row.key))
        return not begun and self._may_have(process_id, row.seq)

    def _broadcast(self, pending: Pending, limit: int) -> Routed:
        row = pending.row
        armed_before = (
            wait for wait in self._subs.get(("signal", row.key), {}).values() if pending.progress < wait.seq < row.seq
        )
        batch = heapq.nsmallest(limit + 1, armed_before, key=lambda wait: wait.seq)
        woken = started = 0
        for wait in batch[:limit]:
            pending.progress = wait.seq
            if wait.starts:
                started += self._start_by(wait.owner[1:], wait, row)
                continue
            instance = self._instances[wait.owner]
            if instance.waits.get(wait.arm.wait) is wait:  # else an earlier one of its race group has just won
                self._deliver_row(instance, wait, row)
                woken += 1
        pending.hits += woken + started
        if len(batch) > limit:
            return Routed("partial", woken, started)
        self._drop_pending(row.seq)
        return Routed("delivered" if pending.hits else "dropped", woken, started)

    def _deliver_row(self, instance: Instance, wait: Wait, row: PendingRow) -> None:
        trigger = TriggerRow(row.id, row.kind, wait.arm.wait, row.seq, row.key, row.payload, row.expires)
        self._deliver(instance, wait, trigger)

    def _start_by(self, process_id: str, wait: Wait, row: PendingRow) -> int:
        """One instance per process and row, whatever number of its start events match."""
        instance_id = f"{process_id}-{row.seq}"
        if instance_id in self._instances:
            return 0
        named = row.key if PROPERTY in row.key else ""
        trigger = TriggerRow(row.id, "start", wait.arm.node, self._next_seq(), named, payload=row.payload)
        instance = self._new_instance(process_id, len(self._definitions[process_id]), instance_id, "", trigger)
        together = wait.arm.row.decode() if row.kind == "message" else ""
        instance.began = began_by(row.name, row.key, together) if row.kind == "message" else ()
        for key in instance.began:
            self._conversations[process_id, key] = instance_id
        return 1

    def _end_conversations(self, instance: Instance) -> None:
        """The next message of such a key begins another one."""
        for key in instance.began:
            if self._conversations.get((instance.process_id, key)) == instance.id:
                del self._conversations[instance.process_id, key]
            self._reroute(self._parked.get(key, ())[:256])
        instance.began, instance.learnt = (), {}

    def _reroute_started(self, arm: ArmRow) -> None:
        """What came before its start was deployed begins an instance now."""
        by_name = arm.key.endswith(SEPARATOR)
        keys = sorted(key for key in self._parked if key == arm.key or (by_name and key.startswith(arm.key)))
        found = {row.seq: row for key in keys for row in self._parked[key]}
        self._reroute(list(found.values())[:1000])

    def _reroute(self, rows: Sequence[PendingRow]) -> None:
        """Parked messages are looked at once more, each at its place."""
        for row in list(rows):
            self._unpark(row)
            self._put_pending(replace(row, accepted_live=self._live()))

    # --- parked messages
    def _park_message(self, row: PendingRow) -> None:
        """Under every key that it is looked for by."""
        self._parked_rows[row.seq] = row
        for key in routes(row.key):
            insort(self._parked.setdefault(key, []), row, key=lambda parked: parked.seq)
        heapq.heappush(self._parked_by_expiry, (row.expires, row.seq))

    def _unpark_row(self, trigger: TriggerRow) -> None:
        if (row := self._parked_rows.get(trigger.seq)) is not None:
            self._unpark(row)

    def _unpark(self, row: PendingRow) -> None:
        """All its entries go together: whoever finds it by one key has it."""
        del self._parked_rows[row.seq]
        for key in routes(row.key):
            rows = self._parked[key]
            rows.remove(row)
            if not rows:
                del self._parked[key]

    def _drain_parked(self, instance: Instance, wait: Wait) -> None:
        """First in, first out; the TTL is judged here, at match time (M51). A `repeat` wait takes them all.

        An older one that its taker gave back goes first and is still pending: then they queue up behind it (M53)."""
        key, process_id = wait.arm.key, instance.process_id
        passed = 0
        while len(self._parked.get(key, ())) > passed and passed < 256:
            row = self._parked[key][passed]
            late = row.expires <= self._now()
            if not late and (not self._may_have(process_id, row.seq) or self._contradicts(instance, row.key)):
                passed += 1  # not for this one: it stays where it is
                continue
            self._unpark(row)
            if late:
                self._only.pop(row.seq, None)
                self._bury(row, "expired")
                continue
            if any(
                older.row.seq < row.seq
                and older.row.kind == "message"
                and key in routes(older.row.key)
                and self._may_have(process_id, older.row.seq)
                for older in self._pending.values()
            ):
                self._put_pending(replace(row, accepted_live=self._live()))
            else:
                self._only.pop(row.seq, None)
                self._deliver_row(instance, wait, row)
            if not wait.arm.repeat:
                return

    @locked
    def expire(self, limit: int) -> int:
        done = 0
        while done < limit and self._parked_by_expiry and self._parked_by_expiry[0][0] <= self._now():
            expires, seq = heapq.heappop(self._parked_by_expiry)
            row = self._parked_rows.get(seq)
            if row is not None and row.expires == expires:  # else somebody took it in time
                self._only.pop(seq, None)
                self._unpark(row)
                self._bury(row, "expired")
                done += 1
        live = self._live()
        while done < limit and self._ended:
            oldest, ended = next(iter(self._ended.items()))
            if ended + self.settings.retention_ms > live and len(self._ended) <= self.settings.retention_count:
                break
            del self._ended[oldest], self._instances[oldest]
            done += 1
        while done < limit and self._dedup:
            delivery_id, tombstone = next(iter(self._dedup.items()))
            if tombstone.until > live:
                break
            del self._dedup[delivery_id]
            done += 1
        return done

    # --- deadlines
    @locked
    def due(self, limit: int) -> DueList:
        now = self._now()
        rows: list[DueRow] = []
        for deadline, owner, wait in self._due:
            if deadline > now or len(rows) == limit:
                break
            rows.append(DueRow(owner, wait, deadline))
        return DueList(now, tuple(rows), self._next_deadline())

    def _next_deadline(self) -> int | None:
        now = self._now()
        return next((deadline for deadline, _, _ in self._due if deadline > now), None)

    @locked
    def fire(self, rows: Sequence[DueRow]) -> int:
        fired = 0
        for row in rows:
            instance = self._instances.get(row.instance_id)
            wait = instance.waits.get(row.wait) if instance is not None else None
            if instance is None or wait is None or not self._is_due(wait, row):
                continue
            seq = self._next_seq()
            self._deliver(instance, wait, TriggerRow(f"{row.instance_id}/{row.wait}", "timer", row.wait, seq))
            fired += 1
        return fired

    def _is_due(self, wait: Wait, row: DueRow) -> bool:
        """Re-checked at the act: the row may have been read before a rival won or the deadline was armed anew."""
        return wait.arm.kind == "timer" and wait.arm.deadline == row.deadline and row.deadline <= self._now()

    @locked
    def start_timer_row(self, process: str, wait: str) -> bytes | None:
        armed = self._starts.get(process[1:], {}).get(wait)
        return armed.arm.row if armed is not None and armed.arm.kind == "timer" else None

    @locked
    def fire_start(self, row: DueRow, next_wait: str, next_deadline: int, next_row: bytes) -> bool:
        process_id = row.instance_id[1:]
        wait = self._starts.get(process_id, {}).get(row.wait)
        if wait is None or not self._is_due(wait, row):
            return False
        self._withdraw(row.instance_id, row.wait)
        seq = self._next_seq()
        trigger = TriggerRow(f"{row.instance_id}/{row.wait}", "start", wait.arm.node, seq)
        self._new_instance(process_id, len(self._definitions[process_id]), f"{process_id}-{seq}", "", trigger)
        if next_wait:
            arm = ArmRow(next_wait, "timer", wait.arm.node, key=wait.arm.key, deadline=next_deadline, row=next_row)
            self._arm(row.instance_id, arm)
        return True
