"""The store on Redis or Valkey: each method of the port is one script, or one read. Redis is known here and nowhere
else."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Sequence
from itertools import chain
from typing import Any

import redis

from gobpm_ray.errors import (
    InputError,
    UnknownInstance,
    UnknownProcess,
)
from gobpm_ray.runtime.limits import checked_payload, full
from gobpm_ray.runtime.ports import (
    Accepted,
    Answer,
    ArmRow,
    BellName,
    Definition,
    DueList,
    DueRow,
    ParkedStart,
    PendingRow,
    Quiet,
    Routed,
    StartRow,
)
from gobpm_ray.settings import Settings
from gobpm_ray.store import rows
from gobpm_ray.store.calls import Later, store_call
from gobpm_ray.store.keys import Keys
from gobpm_ray.store.reading_calls import ReadingCalls
from gobpm_ray.store.scripts import Scripts

log = logging.getLogger("gobpm_ray.store")

_FIRED = 20
"""Due timers in one call of the script: under half a millisecond of the store."""


def _born(start: ParkedStart, reply: Any) -> Accepted | None:
    if reply[0] == b"plainly":
        return None
    return Accepted(start.delivery_id, reply[1] == 1, reply[0].decode(), reply[2])


class RedisStore(ReadingCalls):
    """Implements `gobpm_ray.runtime.ports.Store`; threads may share it."""

    durable = True

    def __init__(self, client: redis.Redis, settings: Settings) -> None:
        keys = Keys(settings.engine_id)
        super().__init__(client, keys, settings, Scripts(client, keys, settings))
        self._damaged: set[DueRow] = set()
        """Deadlines whose instances cannot take them."""

    # --- definitions

    @store_call
    def deploy(self, process_id: str, document: bytes, starts: Sequence[ArmRow]) -> tuple[int, bool]:
        digest = hashlib.sha256(document).hexdigest()
        version, created = self._run("deploy", process_id, digest, document, *rows.start_arguments(starts))
        return version, created == 1

    @store_call
    def definition(self, process_id: str, version: int = 0) -> Definition | None:
        defs = self.keys["defs"]
        number = version or int(self._client.hget(defs, process_id) or 0)
        digest = self._client.hget(defs, f"{process_id}\x1e{number}")
        document = digest and self._client.hget(self.keys["docs"], digest)
        return Definition(process_id, number, document) if document else None

    @store_call
    def definitions(self) -> list[tuple[str, int]]:
        table = self._client.hgetall(self.keys["defs"])
        return sorted((name.decode(), int(value)) for name, value in table.items() if rows.RS not in name)

    # --- acceptance

    def start(
        self, process_id: str, version: int, instance_id: str, delivery_id: str, business_key: str, payload: bytes
    ) -> Accepted:
        return self.start_many([(process_id, version, instance_id, delivery_id, business_key, payload)])[0]

    @store_call
    def start_many(self, starts: Sequence[StartRow], before: int = 0) -> list[Accepted]:
        most = self.settings.max_pending
        out: list[Accepted] = []
        for row in starts:
            checked_payload(row[5], self.settings, f"start of {row[0]}")
        calls = [(most, *row) for row in starts]
        for row, reply in zip(starts, self._scripts.run_many("start", calls), strict=True):
            if reply[0] == b"full":
                several = before + len(starts)
                stored = f"; {before + len(out)} of these {several} starts are stored" if several > 1 else ""
                why = f"{reply[1]} instances are ready and not claimed{stored}"
                raise full(f"start of {row[0]}", "max_pending", why)
            if reply[0] == b"unknown":
                version = f" version {row[1]}" if row[1] else ""
                raise UnknownProcess(f"process {row[0]!r}{version} is not deployed; deploy it first")
            if reply[0] == b"exists":
                raise InputError(f"instance {row[2]!r} exists already; choose another id")
            out.append(Accepted(row[3], reply[1] == 1, reply[0].decode(), reply[2]))
        return out

    @store_call
    def start_parked(self, starts: Sequence[ParkedStart]) -> list[Accepted | None]:
        return self.send_parked(starts).result()

    @store_call
    def send_parked(self, starts: Sequence[ParkedStart]) -> Answer[list[Accepted | None]]:
        settings = self.settings
        fit = [start if len(start.payload) <= settings.max_payload else None for start in starts]
        limits = (settings.max_pending, settings.max_resident, settings.whole_parts, settings.claim_triggers)
        calls = [rows.birth_arguments(start, *limits, settings.max_call_depth) for start in fit if start is not None]
        sent = iter(self._scripts.send_many("birth", calls) if calls else ())
        return Later(lambda: [None if start is None else _born(start, next(sent).reply()) for start in fit])

    @store_call
    def publish(self, delivery_id: str, kind: str, key: str, name: str, payload: bytes, ttl: int) -> Accepted:
        checked_payload(payload, self.settings, f"{kind} {name!r}")
        most = self.settings.max_pending
        duplicate, seq = self._run("publish", delivery_id, rows.KINDS[kind], key, name, payload, ttl, most)
        if duplicate == b"full":
            raise full(f"{kind} {name!r}", "max_pending", f"{seq} accepted rows are not folded")
        return Accepted(delivery_id, duplicate == 1, "", seq)

    @store_call
    def deliver(self, instance_id: str, kind: str, wait: str, delivery_id: str, payload: bytes) -> Accepted:
        checked_payload(payload, self.settings, f"{kind} of instance {instance_id!r}")
        reply = self._run("deliver", instance_id, kind, wait, delivery_id, payload, self.settings.max_inbox)
        match reply[0]:
            case b"full":
                held = f"{reply[1]} triggers wait in its inbox"
                raise full(f"{kind} of instance {instance_id!r}", "max_inbox", held)
            case b"unknown":
                raise UnknownInstance(f"instance {instance_id!r} is unknown")
            case b"ended":
                raise InputError(f"instance {instance_id!r} has ended; nothing was delivered")
            case b"stale":
                raise InputError(f"instance {instance_id!r} does not wait at {wait!r} (any more)")
        return Accepted(delivery_id, reply[0] == 1, instance_id, reply[1])

    @store_call
    def suspend(self, instance_id: str, suspended: bool) -> bool:
        reply = self._run("suspend", instance_id, "1" if suspended else "0")
        if reply == -1:
            raise UnknownInstance(f"instance {instance_id!r} is unknown")
        if reply == -2:
            raise InputError(f"instance {instance_id!r} has ended")
        return bool(reply == 1)

    # --- holders

    @store_call
    def order_lease(self, holder: str, token: str, ttl_ms: int) -> bool:
        key = self.keys.order(holder)
        held = self._client.get(key)
        if held == token.encode() and self._client.pexpire(key, ttl_ms):
            # Another may have taken it in between, after an expiry; the order lease only orders, it fences nothing.
            return True
        return held in (None, token.encode()) and bool(self._run("order", holder, token, ttl_ms) == 1)

    @store_call
    def pending(self, after_seq: int, limit: int) -> list[PendingRow]:
        seqs = self._client.zrangebyscore(self.keys["pend"], f"({after_seq}", "+inf", start=0, num=limit)
        if not seqs:
            return []
        found = []
        for seq, value in zip(seqs, self._client.hmget(self.keys["in"], seqs), strict=True):
            try:
                if value is not None:
                    found.append(rows.pending(int(seq), value))
            except ValueError as damage:
                # One such row would end every pass before it began.
                self.fail(int(seq), f"its stored row is damaged: {damage}")
        return found

    @store_call
    def route(self, seq: int, limit: int, key: str = "") -> Routed:
        result, woken, started, *damaged = self._run("route", seq, limit, self.settings.max_inbox, key)
        for instance, wait, fault in zip(damaged[::3], damaged[1::3], damaged[2::3], strict=True):
            log.error(
                "signal %d passes by wait %s of instance %s, whose record is damaged: %s; mend or erase the record",
                seq,
                wait.decode(),
                instance.decode(),
                _in_words(fault),
            )
        return Routed(result.decode(), woken, started)

    @store_call
    def expire(self, limit: int) -> int:
        return int(self._run("expire", limit, self.settings.retention_ms, self.settings.retention_count))

    @store_call
    def due(self, limit: int) -> DueList:
        if (quiet := self._nothing_due()) is not None:
            return quiet
        now, ahead, *pairs = self._run("due", limit)
        due = []
        for member, deadline in zip(pairs[::2], pairs[1::2], strict=True):
            instance_id, _, wait = member.decode().partition("\x1e")
            due.append(DueRow(instance_id, wait, int(deadline)))
        return DueList(now, tuple(due), int(ahead) if ahead else None)

    @store_call
    def fire(self, due: Sequence[DueRow]) -> int:
        several = [due[first : first + _FIRED] for first in range(0, len(due), _FIRED)]
        replies = self._scripts.run_many(
            "fire", [tuple(chain.from_iterable((row.instance_id, row.wait) for row in some)) for some in several]
        )
        for some, reply in zip(several, replies, strict=True):
            for number, fault in zip(reply[1::2], reply[2::2], strict=True):
                self._note_damaged(some[number], fault)
        return sum(reply[0] for reply in replies)

    def _note_damaged(self, row: DueRow, fault: bytes) -> None:
        """Said once; it stays due, so it fires when its instance has been mended."""
        if row not in self._damaged:
            self._damaged.add(row)
            log.error(
                "timer %s of instance %s cannot fire, for the instance's record is damaged: %s; mend or erase the "
                "record, the deadline stays due",
                row.wait,
                row.instance_id,
                _in_words(fault),
            )

    @store_call
    def start_timer_row(self, process: str, wait: str) -> bytes | None:
        row = self._client.hget(self.keys.instance(process), f"~{wait}")
        return None if row is None else row.split(rows.RS, 8)[8]

    @store_call
    def fire_start(self, row: DueRow, next_wait: str, next_deadline: int, next_row: bytes) -> bool:
        reply = self._run("fire_start", row.instance_id, row.wait, row.deadline, next_wait, next_deadline, next_row)
        return bool(reply == 1)

    # --- clocks and bells

    @store_call
    def now(self) -> int:
        pipe = self._client.pipeline(transaction=False)
        pipe.get(self.keys["clock"])
        pipe.time()
        manual, (seconds, micros) = pipe.execute()
        return int(manual) if manual is not None else seconds * 1000 + micros // 1000

    @store_call
    def manual_clock(self, start_ms: int) -> int:
        return int(self._run("clock", "start", start_ms))

    @store_call
    def set_clock(self, now_ms: int) -> int:
        now = int(self._run("clock", "set", now_ms))
        if now < 0:
            raise InputError("this engine runs on the real clock; open it with clock='virtual' to advance time")
        return now

    @store_call
    def quiet(self) -> Quiet:
        quiet, now, ahead = self._run("quiet")
        return Quiet(quiet == 1, now, None if ahead == b"" else int(ahead))

    @store_call
    def wait_bell(self, bell: BellName, timeout_s: float) -> bool:
        return self._pop_bell(self.keys[f"bell:{bell}"], timeout_s)

    @store_call
    def ring(self, bell: BellName) -> None:
        key = self.keys[f"bell:{bell}"]
        # A full store takes no bell; whoever sleeps on it wakes by its tick.
        with contextlib.suppress(redis.exceptions.OutOfMemoryError):
            if self._client.llen(key) == 0:
                self._client.lpush(key, b"1")

    # --- the engine's own registry

    @store_call
    def get_value(self, table: str, name: str) -> bytes | None:
        value: bytes | None = self._client.hget(self.keys.table(table), name)
        return value

    @store_call
    def values(self, table: str) -> dict[str, bytes]:
        return {name.decode(): value for name, value in self._client.hgetall(self.keys.table(table)).items()}

    @store_call
    def drop_value(self, table: str, name: str) -> None:
        self._client.hdel(self.keys.table(table), name)

    def close(self) -> None:
        self._client.close()
        self._client.connection_pool.disconnect()


def _in_words(fault: bytes) -> str:
    return " ".join(fault.decode(errors="replace").split())
