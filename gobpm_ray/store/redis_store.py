"""The store on Redis or Valkey: each method of the port is one script, or one read. Redis is known here and nowhere
else."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Literal

import redis

from gobpm_ray.errors import (
    BrokenInvariant,
    DataStoreChanged,
    InputError,
    LeaseLost,
    TaskRefused,
    UnknownInstance,
    UnknownProcess,
    UnknownTask,
)
from gobpm_ray.runtime.limits import checked_payload, full
from gobpm_ray.runtime.ports import (
    Accepted,
    ArmRow,
    BellName,
    Claim,
    Commit,
    CommitResult,
    Definition,
    DueList,
    DueRow,
    InstanceRecord,
    ParkedStart,
    PendingRow,
    Population,
    Quiet,
    Routed,
    SentCommit,
    SentStarts,
    StartRow,
    TaskView,
    TriggerRow,
)
from gobpm_ray.settings import Settings
from gobpm_ray.store import rows
from gobpm_ray.store.calls import store_call
from gobpm_ray.store.connection import ANSWER_TIMEOUT_S
from gobpm_ray.store.job_calls import JobCalls
from gobpm_ray.store.keys import Keys
from gobpm_ray.store.scripts import Argument, Scripts, Sent

log = logging.getLogger("gobpm_ray.store")

_FIRED = 20
"""Due timers in one call of the script: under half a millisecond of the store."""


class _Sent:
    """A commit whose answer stands, or will stand, in the thread's connection."""

    def __init__(self, commit: Commit, sent: Sent, read: Callable[[Commit, Any], CommitResult]) -> None:
        self._commit, self._sent, self._read = commit, sent, read

    @store_call
    def result(self) -> CommitResult:
        return self._read(self._commit, self._sent.reply())


class _SentStarts:
    """Starts whose answers stand, or will stand, in the thread's connection."""

    def __init__(self, starts: Sequence[ParkedStart | None], sent: Sequence[Sent]) -> None:
        self._starts, self._sent = starts, sent

    @store_call
    def result(self) -> list[Accepted | None]:
        sent = iter(self._sent)
        return [None if start is None else _born(start, next(sent).reply()) for start in self._starts]


def _born(start: ParkedStart, reply: Any) -> Accepted | None:
    if reply[0] == b"plainly":
        return None
    return Accepted(start.delivery_id, reply[1] == 1, reply[0].decode(), reply[2])


class RedisStore(JobCalls):
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
    def send_parked(self, starts: Sequence[ParkedStart]) -> SentStarts:
        settings = self.settings
        fit = [start if len(start.payload) <= settings.max_payload else None for start in starts]
        limits = (settings.max_pending, settings.max_resident, settings.whole_parts, settings.claim_triggers)
        calls = [rows.birth_arguments(start, *limits, settings.max_call_depth) for start in fit if start is not None]
        return _SentStarts(fit, self._scripts.send_many("birth", calls) if calls else [])

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

    # --- the wake path

    @store_call
    def claim(self, token: str) -> Claim | None:
        reply = self._run("claim", token, self.settings.whole_parts, self.settings.claim_triggers)
        return rows.claim(reply, token) if reply else None

    @store_call
    def load(self, instance_id: str, token: str) -> Claim:
        reply = self._run("load", instance_id, token, self.settings.claim_triggers)
        if reply[0] == b"lost":
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")
        return rows.claim(reply, token)

    @store_call
    def fetch(self, instance_id: str, token: str) -> tuple[tuple[TriggerRow, ...], int]:
        reply = self._run("fetch", instance_id, token, self.settings.claim_triggers)
        if reply[0] == b"lost":
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")
        return tuple(map(rows.trigger, reply[1:])), reply[0]

    @store_call
    def commit(self, commit: Commit) -> CommitResult:
        return self._committed(commit, self._run("commit", *self._commit_arguments(commit)))

    @store_call
    def send_commit(self, commit: Commit) -> SentCommit:
        return _Sent(commit, self._scripts.send("commit", *self._commit_arguments(commit)), self._committed)

    def _commit_arguments(self, commit: Commit) -> Sequence[Argument]:
        settings = self.settings
        return rows.commit_arguments(
            commit,
            settings.max_resident,
            settings.whole_parts,
            settings.claim_triggers,
            settings.max_call_depth,
        )

    @staticmethod
    def _committed(commit: Commit, reply: Any) -> CommitResult:
        if reply[0] == b"lost":
            raise LeaseLost(f"instance {commit.instance_id!r}: commit refused, {reply[1].decode()}")
        if reply[0] == b"changed":
            raise DataStoreChanged(f"instance {commit.instance_id!r}: data store {reply[1].decode()!r} has changed")
        if reply[0] == b"inbox":
            raise BrokenInvariant(f"instance {commit.instance_id!r}: the commit names triggers that are not there")
        following = rows.claim(reply[5:], commit.next_token) if len(reply) > 5 else None
        return CommitResult(reply[0] == 1, reply[1], reply[2], reply[3], following, reply[4])

    @store_call
    def renew(self, instance_id: str, token: str) -> tuple[int, int]:
        reply = self._run("renew", instance_id, token)
        if reply[0] == b"lost":
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")
        return reply[0], reply[1]

    @store_call
    def abandon(self, instance_id: str, token: str, backoff_ms: int) -> None:
        if self._run("abandon", instance_id, token, backoff_ms) == 0:
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")

    @store_call
    def unclaim(self, instance_id: str, token: str) -> None:
        if self._run("unclaim", instance_id, token) == 0:
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")

    @store_call
    def release_dead(self, actor: str) -> int:
        return int(self._run("release_dead", actor))

    @store_call
    def sweep(self, limit: int = 100) -> int:
        # Nearly always nothing is leased, or nothing for long: a look at the head costs a third of the script.
        return int(self._run("sweep", limit)) if self._client.exists(self.keys["leases"]) else 0

    @store_call
    def wait_instance_bell(self, instance_id: str, timeout_s: float) -> bool:
        return self._pop_bell(self.keys.instance(instance_id) + b":b", timeout_s)

    def _pop_bell(self, key: bytes, timeout_s: float) -> bool:
        """The bit, if it was set or is set within the time. Longer waits than a connection's own patience end early: a
        bell is only a hint, so its sleeper looks again."""
        if timeout_s <= 0:
            return self._client.lpop(key) is not None
        return self._client.blpop(key, timeout=min(timeout_s, ANSWER_TIMEOUT_S / 2)) is not None

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

    # --- human tasks and jobs

    @store_call
    def tasks(
        self, kind: str = "task", instance_id: str = "", limit: int = 1_000, after_seq: int = 0
    ) -> list[TaskView]:
        out: list[TaskView] = []
        while len(out) < limit:
            page = self._client.zrangebyscore(
                self.keys["topen"], f"({after_seq}", "+inf", start=0, num=limit, withscores=True
            )
            if not page:
                break
            after_seq = int(page[-1][1])
            ids = [task_id for task_id, _ in page if not instance_id or task_id.startswith(f"{instance_id}/".encode())]
            out += [view for view in self._task_views(ids) if view.kind == kind]
        return out[:limit]

    @store_call
    def task(self, task_id: str) -> TaskView | None:
        return next(iter(self._task_views([task_id.encode()])), None)

    def _task_views(self, ids: Sequence[bytes]) -> list[TaskView]:
        if not ids:
            return []
        instances = sorted({task_id.partition(b"/")[0].decode() for task_id in ids})
        pipe = self._client.pipeline(transaction=False)
        pipe.hmget(self.keys["tasks"], ids)
        pipe.hmget(self.keys["owners"], ids)
        pipe.hmget(self.keys["jobs"], ids)
        pipe.zmscore(self.keys["topen"], ids)
        for instance_id in instances:
            pipe.hget(self.keys.instance(instance_id), "df")
        stored, owners, states, seqs, *definitions = pipe.execute()
        process_of = dict(zip(instances, definitions, strict=True))
        out = []
        for task_id, value, owner, state, seq in zip(ids, stored, owners, states, seqs, strict=True):
            instance_id, _, wait = task_id.decode().partition("/")
            definition = process_of[instance_id]
            if value is None or definition is None:
                continue
            created, kind, row = value.split(rows.RS, 2)
            word: Literal["task", "job"] = "task" if kind == b"U" else "job"
            process_id, version = definition.decode().split("\x1e")
            user = owner.decode() if owner else ""
            failures, cause = rows.job_state(state)
            view = (task_id.decode(), instance_id, process_id, wait, word, user, int(created), row)
            out.append(TaskView(*view, failures, cause, int(version), int(seq or 0)))
        return out

    @store_call
    def claim_task(self, task_id: str, user: str, groups: Sequence[str]) -> None:
        if not user:
            raise TaskRefused(f"task {task_id!r}: a claim needs a user")
        self._refuse(task_id, user, [self._run("task_owner", task_id, user, "\x1e".join(groups), "1")])

    @store_call
    def unclaim_task(self, task_id: str) -> None:
        self._refuse(task_id, "", [self._run("task_owner", task_id, "", "", "0")])

    @store_call
    def reassign_task(self, task_id: str, user: str) -> None:
        if not user:
            raise TaskRefused(f"task {task_id!r}: it is given to a user; unclaim it to give it back")
        self._refuse(task_id, user, [self._run("task_owner", task_id, user, "", "2")])

    @store_call
    def complete_task(
        self,
        task_id: str,
        user: str,
        groups: Sequence[str],
        outputs: Iterable[str],
        delivery_id: str,
        payload: bytes,
        *,
        strict: bool = False,
    ) -> Accepted:
        instance_id, _, wait = task_id.partition("/")
        checked_payload(payload, self.settings, f"completion of {task_id!r}")
        reply = self._run(
            "task_complete",
            task_id,
            instance_id,
            wait,
            user,
            "\x1e".join(groups),
            "\x1e".join(outputs),
            delivery_id,
            payload,
            "1" if strict else "0",
        )
        if reply[0] == b"duplicate":
            return Accepted(delivery_id, True, instance_id)
        self._refuse(task_id, user, reply)
        return Accepted(delivery_id, False, instance_id, reply[1])

    @staticmethod
    def _refuse(task_id: str, user: str, reply: Sequence[Any]) -> None:
        match reply[0]:
            case b"unknown":
                raise UnknownTask(f"task {task_id!r} is unknown or has already ended")
            case b"owned":
                raise TaskRefused(f"task {task_id!r} is claimed by another user than {user!r}")
            case b"ineligible":
                raise TaskRefused(f"user {user!r} is not eligible for task {task_id!r}")
            case b"missing":
                raise TaskRefused(f"task {task_id!r} needs output {reply[1].decode()!r}")
            case b"unclaimed":
                raise TaskRefused(f"task {task_id!r} must be claimed first")

    # --- reading

    @store_call
    def instance(self, instance_id: str) -> InstanceRecord | None:
        key = self.keys.instance(instance_id)
        pipe = self._client.pipeline(transaction=True)
        pipe.hgetall(key)
        pipe.lrange(key + b":q", 0, -1)
        pipe.lrange(key + b":h", 0, -1)
        fields, inbox, history = pipe.execute()
        if b"st" not in fields:
            return None
        process, version = fields[b"df"].split(rows.RS)
        named = {name.decode(): value for name, value in fields.items()}
        return InstanceRecord(
            instance_id,
            process.decode(),
            int(version),
            named["bk"].decode(),
            rows.STATUS[named["st"]],
            int(named["v"]),
            int(named["ep"]),
            "tk" in named,
            int(named["cr"]),
            {name[1:]: value for name, value in named.items() if name[0] == "."},
            {name[1:]: rows.wait(value) for name, value in named.items() if name[0] == "~"},
            tuple(map(rows.trigger, inbox)),
            tuple(history),
            int(named.get("pk", 0)),
            named.get("pa", b"").decode(),
        )

    @store_call
    def status(self, instance_id: str) -> str | None:
        value = self._client.hget(self.keys.instance(instance_id), "st")
        return None if value is None else rows.STATUS[value]

    @store_call
    def instances(self, *, ended: bool | None = None, after_seq: int = 0, limit: int = 1_000) -> list[tuple[int, str]]:
        out: list[tuple[int, str]] = []
        while len(out) < limit:
            page = self._client.zrangebyscore(
                self.keys["instances"], f"({after_seq}", "+inf", start=0, num=limit, withscores=True
            )
            if not page:
                break
            after_seq = int(page[-1][1])
            pipe = self._client.pipeline(transaction=False)
            for member, _ in page:
                pipe.hget(self.keys.instance(member.decode()), "st")
            for (member, score), status in zip(page, pipe.execute(), strict=True):
                if ended is None or (status in (b"c", b"t")) == ended:
                    out.append((int(score), member.decode()))
        return out[:limit]

    @store_call
    def facts(self, after: str = "0", limit: int = 1_000) -> list[tuple[str, bytes]]:
        page = self._client.xrange(self.keys["facts"], f"({after}" if after != "0" else "-", "+", count=limit)
        return [(entry.decode(), fields[b"f"]) for entry, fields in page]

    @store_call
    def population(self) -> Population:
        counts = self._run("population")
        resident, ready, oldest, waiting, due, pending, parked, incidents, ended, dead, _idle = counts
        return Population(
            resident,
            ready,
            oldest,
            max(waiting - resident - ready, 0),
            due,
            {"message": pending},
            parked,
            incidents,
            ended,
            dead,
        )

    @store_call
    def leases(self) -> list[tuple[str, str, int]]:
        members = self._client.zrange(self.keys["leases"], 0, -1, withscores=True)
        if not members:
            return []
        seconds, micros = self._client.time()
        live = seconds * 1000 + micros // 1000
        pipe = self._client.pipeline(transaction=False)
        for member, _ in members:
            pipe.hget(self.keys.instance(member.decode()), "tk")
        return [
            (member.decode(), (token or b"").decode(), int(expiry) - live)
            for (member, expiry), token in zip(members, pipe.execute(), strict=True)
        ]

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
