"""Stores to test against, and the few rows that every store test is made of.

A `StoreBed` makes stores of one kind, lets liveness time pass (the memory store's clock is set, a real store's runs),
and looks for what an ended instance left behind. Only that search knows a store's own tables.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Accepted, ArmRow, Claim, Commit, CommitResult, Routed, Store, TriggerRow
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore, found_on_path, shipped_binary
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import Verifier

MEMORY = "memory"
SERVERS = {binary.name: binary for binary in (shipped_binary(), *found_on_path())}
STORES = (MEMORY, *SERVERS)
"""Names of every store that this machine can test: the memory store, the shipped server, those found on PATH."""

DAY = 86_400_000
MAY_NAME_ENDED = ("instances", "ended", "dedup", "dedupx", "facts", "dead", "table:data")
"""Tables that outlive an instance on purpose: the list of all, retention, the dedup window, what happened, who wrote a
data store."""


@contextmanager
def running_server(binary: Path) -> Iterator[str]:
    """A real server of its own for a whole session, without the disk: the suite is about answers, not about fsync."""
    folder = Path(tempfile.mkdtemp(prefix="gobpm-"))  # short: a socket's path has a limit
    server = EmbeddedStore(folder, binary=binary, appendfsync="no")
    try:
        yield server.ensure_running()
    finally:
        server.stop()
        shutil.rmtree(folder)


class StoreBed:
    """Makes stores of one kind; every one has an engine id, and so a keyspace, of its own."""

    def __init__(self, url: str | None) -> None:
        """`url` None: the memory store."""
        self.real = url is not None
        self._url = url
        self._live_ms = 1_800_000_000_000
        self._closing = ExitStack()
        self._made: list[Store] = []

    def store(self, **changes: object) -> Store:
        settings = Settings(**({"engine_id": uuid.uuid4().hex[:12]} | changes))  # type: ignore[arg-type]
        if self._url is None:
            return self._kept(MemoryStore(settings, clock=lambda: self._live_ms))
        client = open_client(self._url)
        self._closing.callback(client.close)
        store = RedisStore(client, settings)
        self._closing.callback(store.close)
        return self._kept(store)

    def _kept(self, store: Store) -> Store:
        self._made.append(store)
        return store

    def leaks(self) -> list[str]:
        """What ended instances have left behind, in all stores that were made (D6). Not of those whose removal is still
        under way in batches, and not of an id that another one contains."""
        return [f"{ended}: {trace}" for store in self._made for ended, trace in leaks(self, store)]

    def elapse(self, ms: int) -> None:
        """Liveness time passes: the memory store's clock jumps, a real store's is its server's own."""
        if self.real:
            time.sleep((ms + 2) / 1000)
        self._live_ms += ms

    def traces(self, store: Store, instance_id: str) -> list[str]:
        """Where an ended instance is still named though nobody can need it there."""
        if isinstance(store, MemoryStore):
            return memory_traces(store, instance_id)
        assert isinstance(store, RedisStore)
        assert self._url is not None
        with open_client(self._url) as client:
            return redis_traces(client, store.settings.engine_id, instance_id)

    def close(self) -> None:
        self._closing.close()


def leaks(bed: StoreBed, store: Store) -> Iterator[tuple[str, str]]:
    every = [name for _, name in store.instances(limit=10_000)]
    leaving: set[str] = set()
    if isinstance(store, RedisStore):
        leaving = {member.decode() for member in store.client.zrange(store.keys["purge"], 0, -1)}
    for _, ended in store.instances(ended=True, limit=200):
        unmistakable = len(ended) > 1 and not any(ended in other and ended != other for other in every)
        if ended not in leaving and unmistakable:
            # What it sent to others is named by its sender.
            for trace in (one for one in bed.traces(store, ended) if not re.match(rf"i:(?!{re.escape(ended)}\b)", one)):
                yield ended, trace


def memory_traces(store: MemoryStore, instance_id: str) -> list[str]:
    """The memory store's indexes that name the instance."""
    indexes: dict[str, Iterator[str]] = {
        "ready": (name for _, name in store._ready),
        "leases": iter(store._leased),
        "due": (owner for _, owner, _ in store._due),
        "subs": (owner for subs in store._subs.values() for owner, _ in subs),
        "tasks": (task.wait.owner for task in store._tasks.values()),
        "bells": (bell.removeprefix("@") for bell in store._bells),
        "conversations": iter(store._conversations.values()),
        "tokens": (
            f"{name}" for name, each in store._instances.items() if each.ended and each.parts.keys() - {"h", "s0"}
        ),
    }
    found = [name for name, owners in indexes.items() if instance_id in owners]
    instance = store._instances.get(instance_id)
    return found + [name for name in ("waits", "inbox", "lease") if instance is not None and getattr(instance, name)]


def redis_traces(client: Any, engine_id: str, *instance_ids: str) -> list[str]:
    """`key: entry` of every key, field or member of the engine that names one of the instances, but records and
    histories."""
    found = []
    needles = [instance_id.encode() for instance_id in instance_ids]
    records = {f"i:{instance_id}" for instance_id in instance_ids}
    for key in client.scan_iter(match=f"*gobpm:{engine_id}:*", count=1_000):
        name = key.rpartition(b"}:")[2].decode()
        if name in MAY_NAME_ENDED or (name.startswith("i:") and name.endswith(":h")):
            continue
        if name in records:
            # The record stays; a wait, a race group, a part of a track or a lease in it may not.
            entries = _entries(client, key)
            entries = [entry for entry in entries if entry[:1] in (b"~", b"%") or entry[:2] == b".t" or entry == b"tk"]
            found += [f"{name}: {entry!r}" for entry in entries]
        elif any(needle in name.encode() for needle in needles):  # not in the engine id, which is random
            found.append(name)
        else:
            entries = _entries(client, key)
            found += [f"{name}: {entry!r}" for entry in entries if any(needle in entry for needle in needles)]
    return found


def left_behind(store: RedisStore, client: Any, *, at_most: int = 200) -> list[str]:
    """What ended instances have left in a real store beside their records and histories, and whatever `verify` finds.

    Not of those whose removal is still under way, nor of whose id a living one's is made; a message that nobody took
    keeps the name of who threw it."""
    living = [instance for _, instance in store.instances(ended=False, limit=100_000)]
    leaving = {member.decode() for member in client.zrange(store.keys["purge"], 0, -1)}
    ended = [instance for _, instance in store.instances(ended=True, limit=at_most) if instance not in leaving]
    chosen = [instance for instance in ended if not any(instance in other for other in living)]
    traces = redis_traces(client, store.settings.engine_id, *chosen)
    found = [trace for trace in traces if not trace.startswith(("in:", "parked:", "parkx:"))]
    return found + [str(difference) for difference in Verifier(store).verify().differences]


def _entries(client: Any, key: bytes) -> list[bytes]:
    kind = client.type(key)
    if kind == b"hash":
        return (
            [part for pair in client.hgetall(key).items() for part in pair] if b":i:" not in key else client.hkeys(key)
        )
    if kind == b"zset":
        return client.zrange(key, 0, -1)
    if kind == b"list":
        return client.lrange(key, 0, -1)
    return [client.get(key)] if kind == b"string" else []


# --------------------------------------------------------------------------------------------------------------- rows


def payload(**values: object) -> bytes:
    return json.dumps({"values": values}).encode()


def values_of(trigger: TriggerRow) -> dict[str, object]:
    values: dict[str, object] = json.loads(trigger.payload).get("values", {})
    return values


def message(wait: str, key: object = "A-1", name: str = "Reply", **more: object) -> ArmRow:
    arm = {"wait": wait, "kind": "message", "node": "Catch_1", "key": message_key(name, key), "touch": ("t1",)}
    return ArmRow(**(arm | more))  # type: ignore[arg-type]


def signal(wait: str, name: str = "Alarm", **more: object) -> ArmRow:
    arm = {"wait": wait, "kind": "signal", "node": "Catch_1", "key": signal_key(name), "touch": ("t1",)}
    return ArmRow(**(arm | more))  # type: ignore[arg-type]


def timer(wait: str, deadline: int, **more: object) -> ArmRow:
    arm = {"wait": wait, "kind": "timer", "node": "Timer_1", "deadline": deadline, "touch": ("t1",)}
    return ArmRow(**(arm | more))  # type: ignore[arg-type]


def human(wait: str, group: str = "", **row: object) -> ArmRow:
    """A human task; `row` is what its holder shows and the accepting script reads."""
    frozen = json.dumps({"node": "Task_1", "name": "Check"} | row).encode()
    return ArmRow(wait, "task", "Task_1", group=group, touch=("t1",), row=frozen)


def deploy(store: Store, process: str = "order", *starts: ArmRow, document: bytes = b"xml\n<a/>") -> int:
    version, _ = store.deploy(process, document, starts)
    return version


def start(store: Store, instance: str, process: str = "order", **values: object) -> Accepted:
    return store.start(process, 0, instance, f"start-{instance}", "", payload(**values))


def claimed(store: Store, token: str = "", instance: str = "") -> Claim:
    """The next ready instance, which must be there (and be `instance`)."""
    claim = store.claim(token or f"a:{uuid.uuid4().hex}")
    assert claim is not None, "nothing is ready"
    assert instance in ("", claim.instance_id)
    return claim


def commit_of(claim: Claim, **changes: object) -> Commit:
    """A commit that consumes what the claim handed out and releases."""
    commit = {
        "instance_id": claim.instance_id,
        "token": claim.token,
        "version": claim.version,
        "commit_id": uuid.uuid4().hex,
        "consumed": [trigger.id for trigger in claim.triggers],
    }
    return Commit(**(commit | changes))  # type: ignore[arg-type]


def dehydrate(store: Store, instance: str = "", *arms: ArmRow, **changes: object) -> CommitResult:
    """The next ready instance is claimed, arms its waits and is released."""
    claim = claimed(store, instance=instance)
    return store.commit(commit_of(claim, **({"arms": arms} | changes)))


def waiting(store: Store, instance: str, *arms: ArmRow, process: str = "order", **changes: object) -> None:
    """A dehydrated instance of a deployed process that holds these waits."""
    if store.definition(process) is None:
        deploy(store, process)
    start(store, instance, process)
    dehydrate(store, instance, *arms, **({"parts": {"h": b"head", "s0": b"scope", "t1": b"track"}} | changes))


def publish(
    store: Store, delivery: str, key: object = "A-1", name: str = "Reply", ttl: int = DAY, **values: object
) -> Accepted:
    return store.publish(delivery, "message", message_key(name, key), name, payload(**values), ttl)


def broadcast(store: Store, delivery: str, name: str = "Alarm", **values: object) -> Accepted:
    return store.publish(delivery, "signal", signal_key(name), name, payload(**values), 0)


def fold(store: Store, limit: int = 100) -> list[Routed]:
    """One pass over the pending rows, each folded to its end."""
    folded = []
    for row in store.pending(0, 1_000):
        while (routed := store.route(row.seq, limit)).result == "partial":
            folded.append(routed)
        folded.append(routed)
    return folded


def fire_due(store: Store) -> int:
    return store.fire(store.due(100).rows)


def woken(store: Store) -> dict[str, list[str]]:
    """Claims everything that is ready: instance -> delivery ids in its inbox."""
    return {
        claim.instance_id: [t.id for t in claim.triggers]
        for claim in iter(lambda: store.claim(f"w:{uuid.uuid4().hex}"), None)
    }


def armed(store: Store, instance: str) -> set[str]:
    record = store.instance(instance)
    assert record is not None
    return set(record.waits)


def inbox(store: Store, instance: str) -> list[str]:
    record = store.instance(instance)
    assert record is not None
    return [trigger.id for trigger in record.inbox]


def damage(store: Store, instance: str) -> Callable[[], object]:
    """The record cannot be read any more, until what this answers is called."""
    if isinstance(store, RedisStore):
        key = store.keys.instance(instance)
        definition = store.client.hget(key, "df")
        store.client.hdel(key, "df")
        return lambda: store.client.hset(key, "df", definition)
    # Its values cannot be damaged one by one: its record is lost as a whole.
    assert isinstance(store, MemoryStore)
    record = store._instances.pop(instance)
    return lambda: store._instances.__setitem__(instance, record)
