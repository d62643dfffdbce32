"""What must be true of a store when everything has come to rest: the oracle of the simulation and of the fuzzer.

`index_faults` rebuilds every index from the instances' own rows and the accepted rows and compares; `ledger_faults`
follows every delivery to its one effect. Both give sentences, none when all is well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gobpm_ray.checkpoint import rows
from gobpm_ray.checkpoint.parts import decode
from gobpm_ray.core.state import TrackState
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.store.keys import Keys
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import Verifier
from tests.crash.workload import ONCE, STRICT, TAKES, Delivery, Ledger, strict_instance

RS = "\x1e"


@dataclass
class Row:
    """One instance (or, with an @, one process's starts) as it is stored."""

    id: str
    fields: dict[str, bytes]
    inbox: list[list[str]] = field(default_factory=list)
    history: list[bytes] = field(default_factory=list)

    @property
    def status(self) -> str:
        return self.fields.get("st", b"").decode()

    @property
    def process(self) -> str:
        return self.fields["df"].decode().split(RS)[0]

    @property
    def ended(self) -> bool:
        return self.status in ("c", "t")

    @property
    def waits(self) -> dict[str, list[str]]:
        return {name[1:]: value.decode().split(RS) for name, value in self.fields.items() if name[0] == "~"}

    @property
    def trace(self) -> list[str]:
        entries = map(rows.read_history_entry, self.history)
        return [entry.node for entry in entries if entry.event == "node"]

    def state(self) -> Any:
        process, version = self.fields["df"].decode().split(RS)
        parts = {name[1:]: value for name, value in self.fields.items() if name[0] == "."}
        return decode(self.id, process, int(version), "", parts, not self.ended)


@dataclass
class Image:
    """Everything of one engine, read while nothing moves."""

    rows: dict[str, Row]
    sets: dict[str, dict[str, float]]
    hashes: dict[str, dict[str, str]]
    dead: list[str]
    facts: list[dict[str, Any]]
    now: int


SETS = [
    "ready",
    "leases",
    "idle",
    "due",
    "subs",
    "pend",
    "dedupx",
    "parked",
    "parkx",
    "topen",
    "incidents",
    "instances",
    "ended",
    "purge",
]
HASHES = ["in", "progress", "dedup", "tasks", "owners"]


def image(client: Any, keys: Keys) -> Image:
    names = list(client.scan_iter(match=keys.instances + b"*", count=1_000))
    pipe = client.pipeline(transaction=False)
    instances = [name for name in names if name[-2:] not in (b":q", b":h", b":b")]
    for name in instances:
        pipe.hgetall(name)
        pipe.lrange(name + b":q", 0, -1)
        pipe.lrange(name + b":h", 0, -1)
    for name in SETS:
        pipe.zrange(keys[name], 0, -1, withscores=True)
    for name in HASHES:
        pipe.hgetall(keys[name])
    pipe.lrange(keys["dead"], 0, -1)
    pipe.xrange(keys["facts"])
    pipe.get(keys["clock"])
    pipe.time()
    answers = iter(pipe.execute())
    found = {}
    for name in instances:
        id_ = name[len(keys.instances) :].decode()
        fields, inbox, history = next(answers), next(answers), next(answers)
        found[id_] = Row(
            id_,
            {field_.decode(): value for field_, value in fields.items()},
            [trigger.decode().split(RS, 7) for trigger in inbox],
            history,
        )
    sets = {name: {member.decode(): score for member, score in next(answers)} for name in SETS}
    hashes = {name: {k.decode(): v.decode() for k, v in next(answers).items()} for name in HASHES}
    dead = [letter.decode() for letter in next(answers)]
    facts = [rows.read_fact(fields[b"f"]) for _, fields in next(answers)]
    clock, (seconds, micros) = next(answers), next(answers)
    left = {name[len(keys.instances) : -2].decode() for name in names if name[-2:] in (b":q", b":b")}
    for orphan in left - found.keys():
        found[orphan] = Row(orphan, {})
    for row in found.values():
        row.fields |= {"left": b"1"} if row.id in left else {}
    return Image(found, sets, hashes, dead, facts, int(clock) if clock else seconds * 1000 + micros // 1000)


# ------------------------------------------------------------------------------------------------------------- indexes


def verified(store: RedisStore, programs: Programs) -> list[str]:
    """The engine's own oracle, with programs that are compiled already: what `gobpm-ray verify` would say."""
    verifier = Verifier(store)
    verifier._programs = programs
    return [f"verify: {difference}" for difference in verifier.verify().differences]


def index_faults(seen: Image) -> Iterator[str]:
    expected: dict[str, set[str]] = defaultdict(set)
    for row in seen.rows.values():
        if "df" not in row.fields:
            yield f"{row.id}: keys without a record"
            continue
        starts = row.id.startswith("@")
        if row.ended and (row.waits or "left" in row.fields):
            yield f"{row.id}: ended, and still holds {sorted(row.waits) or 'an inbox or a bell'}"
        for wait, f in row.waits.items():
            for name, member in _entries(row, wait, f):
                expected[name].add(member)
        if starts:
            continue
        if "pk" in row.fields:  # held after too many silent deaths: an incident of the whole instance
            expected["incidents"].add(f"{row.id}{RS}")
        leased = "tk" in row.fields
        if leased != (row.id in seen.sets["leases"]):
            yield f"{row.id}: token and lease disagree"
        if row.status == "a" and row.inbox and not leased and row.id not in seen.sets["ready"]:
            yield f"{row.id}: has unread triggers, and nobody will come for it"
        if row.id in seen.sets["ready"] and (row.status != "a" or leased):
            yield f"{row.id}: ready, but its status is {row.status}, leased {leased}"
        if (row.id in seen.sets["ended"]) != row.ended:
            yield f"{row.id}: its status {row.status} and the list of the ended disagree"
        if row.id not in seen.sets["instances"]:
            yield f"{row.id}: not in the list of instances"
        if not row.ended and row.fields.get("v", b"0") != b"0":
            armed = {wait for track in row.state().tracks.values() for wait in track.waits}
            stored = set(row.waits)
            working = any(track.state is TrackState.WORKING for track in row.state().tracks.values())
            if working and row.status == "a" and not leased and row.id not in seen.sets["ready"]:
                yield f"{row.id}: an effect of a dead host is open, and nobody will come for it"
            if not stored <= armed or (armed != stored and not row.inbox):
                more, less = sorted(armed - stored), sorted(stored - armed)
                yield f"{row.id}: the checkpoint waits for {more} that the store does not hold, and not for {less}"
    actual = {name: set(seen.sets[name]) for name in ("due", "subs", "topen", "incidents")}
    actual["tasks"] = set(seen.hashes["tasks"])
    for name, members in actual.items():
        if members != expected[name]:
            much, missing = sorted(members - expected[name]), sorted(expected[name] - members)
            yield f"index {name}: too much {much}, missing {missing}"
    if not set(seen.hashes["owners"]) <= actual["tasks"]:
        yield "index owners: names tasks that are not there"
    parked = {str(int(member.rpartition(RS)[2])) for member in seen.sets["parked"]}
    if set(seen.hashes["in"]) != parked | set(seen.sets["pend"]):
        yield f"accepted rows {sorted(seen.hashes['in'])} are not the parked {sorted(parked)} and the pending"
    waiting = {member.split(RS, 1)[0] for member in seen.sets["subs"]}
    expiries = {member.rsplit(RS, 1)[1]: at for member, at in seen.sets["parkx"].items()}
    for member in seen.sets["parked"]:
        key, seq = member.rsplit(RS, 1)
        # With a progress of its own it came back from somebody who had taken it, and is not for everybody any more.
        free = str(int(seq)) not in seen.hashes["progress"] and expiries.get(seq, 0) > seen.now
        if key in waiting and free:
            yield f"a message is parked although somebody waits for it: {member!r}"
    if parked != {str(int(seq)) for seq in expiries} or not set(seen.sets["parkx"]) <= set(seen.sets["parked"]):
        yield "parked messages and their expiries disagree"
    if set(seen.hashes["dedup"]) != set(seen.sets["dedupx"]):
        yield "tombstones and their expiries disagree"
    if not set(seen.hashes["progress"]) <= set(seen.hashes["in"]):
        yield f"progress of rows that are over: {seen.hashes['progress']}"


def _entries(row: Row, wait: str, f: list[str]) -> Iterator[tuple[str, str]]:
    kind, key, depth, seq = f[0], f[2], int(f[6]), int(f[7])
    if kind == "T":
        yield "due", f"{row.id}{RS}{wait}"
    elif kind == "S":
        yield "subs", RS.join((key, f"{seq:012d}", row.id, wait, row.process))
    elif kind == "M":
        iseq = row.fields["sq"].decode()
        at = iseq if iseq == "~" else f"{int(iseq):012d}"
        yield "subs", RS.join((key, row.process, at, f"{99 - depth:02d}", f"{seq:012d}", row.id, wait))
    elif kind in "UJ":
        yield "tasks", f"{row.id}/{wait}"
        yield "topen", f"{row.id}/{wait}"
    elif kind == "I":
        yield "incidents", f"{row.id}{RS}{wait}"


# -------------------------------------------------------------------------------------------------------------- ledger


def ledger_faults(seen: Image, ledger: Ledger) -> Iterator[str]:
    logs: dict[str, list[str]] = {}
    for row in seen.rows.values():
        if row.id.startswith("@") or "df" not in row.fields:
            continue
        if row.fields.get("v", b"0") == b"0":
            continue
        logs[row.id] = row.state().scopes["0"].variables.get("log", [])
        yield from _trace_faults(row, logs[row.id])
    logged = Counter(mid for log in logs.values() for mid in log)
    visible = _visible(seen)
    for delivery in ledger.deliveries.values():
        yield from _delivery_faults(delivery, seen, logged, logs, visible)
    yield from _order_faults(seen, ledger, logs)


def _trace_faults(row: Row, log: list[str]) -> Iterator[str]:
    counts = Counter(row.trace)
    for node in ONCE[row.process]:
        if counts[node] > 1:
            yield f"{row.id}: completed {node} {counts[node]} times: {row.trace}"
    taken = sum(counts[node] for node in TAKES.get(row.process, ()))
    if taken != len(log):
        yield f"{row.id}: {taken} deliveries in its trace {row.trace}, {len(log)} in its variables {log}"
    entries = [rows.read_history_entry(entry) for entry in row.history]
    stopped: set[str] = set()
    for entry in entries:
        if entry.event == "incident":
            stopped.add(entry.node)
        elif entry.event in ("retried", "resolved"):
            stopped.discard(entry.node)
        elif entry.event == "node" and entry.node in stopped:
            yield f"{row.id}: {entry.node} went on from its incident though nobody retried it"
    started = sum(entry.event == "started" for entry in entries)
    if started != 1:
        yield f"{row.id}: started {started} times"


@dataclass
class Visible:
    """Where a delivery is seen that had no effect."""

    parked: Counter[str]
    unread: Counter[tuple[str, str]]
    """(delivery, instance)"""
    overtaken: Counter[tuple[str, str]]
    """(instance, wait)"""
    started: Counter[str]


def _visible(seen: Image) -> Visible:
    parked = Counter(row.split(RS, 1)[0] for row in seen.hashes["in"].values())
    parked.update(letter.split(RS)[2] for letter in seen.dead)
    started = Counter(
        entry.detail
        for row in seen.rows.values()
        for entry in map(rows.read_history_entry, row.history)
        if entry.event == "started"
    )
    started.update(trigger[0] for row in seen.rows.values() for trigger in row.inbox if trigger[1] == "start")
    return Visible(
        parked,
        Counter((trigger[0], row.id) for row in seen.rows.values() for trigger in row.inbox if trigger[1] != "start"),
        Counter((fact["instance"], fact.get("wait", "")) for fact in seen.facts if fact["fact"] == "Overtaken"),
        started,
    )


def _delivery_faults(
    delivery: Delivery, seen: Image, logged: Counter[str], logs: dict[str, list[str]], visible: Visible
) -> Iterator[str]:
    id_ = delivery.id
    unread = sum(count for (name, _), count in visible.unread.items() if name == id_)
    if delivery.kind == "message":
        effects = visible.started[id_] if delivery.name == "Order" else logged[id_]
        places = effects + visible.parked[id_] + unread
        if places > 1 or (places == 0 and delivery.state == "accepted"):
            yield (
                f"message {id_} ({delivery.name}, {delivery.state}): {effects} effects, "
                f"{visible.parked[id_]} parked or dead, {unread} unread"
            )
    elif delivery.kind == "signal":
        for instance, log in logs.items():
            if log.count(id_) > 1:
                yield f"signal {id_}: {log.count(id_)} effects in {instance}"
        for instance, wait in delivery.listeners:
            row = seen.rows.get(instance)
            if row is not None and wait in row.waits:
                yield f"signal {id_}: {instance} still waits at {wait}, armed before it was accepted"
    elif delivery.kind == "start":
        if visible.started[id_] != 1 and (visible.started[id_] or delivery.state == "accepted"):
            yield f"start {id_} ({delivery.state}): {visible.started[id_]} instances"
    elif delivery.kind == "task":
        log = logs.get(delivery.instance, [])
        row = seen.rows[delivery.instance]
        if row.process == "sub":
            return
        overtaken = visible.overtaken[delivery.instance, delivery.wait]
        if log.count(id_) > 1 or (delivery.state == "accepted" and log.count(id_) + overtaken + unread == 0):
            yield (
                f"completion {id_} of {delivery.instance}/{delivery.wait} ({delivery.state}): "
                f"{log.count(id_)} effects, {overtaken} overtaken, {unread} unread"
            )


def _order_faults(seen: Image, ledger: Ledger, logs: dict[str, list[str]]) -> Iterator[str]:
    """Messages of one key reach their collector in the order of their acceptance: nothing there ever overtakes them."""
    strict = {strict_instance(key) for key in STRICT}
    for instance, log in logs.items():
        if instance in strict:
            # A thrown one carries its thrower's id, and has a place of its own in the order.
            sent = [ledger.deliveries[mid] for mid in log if mid in ledger.deliveries]
            seqs = [delivery.seq for delivery in sent if delivery.kind == "message"]
            known = [seq for seq in seqs if seq]
            if known != sorted(known):
                yield f"{instance}: took messages of one key out of order: {log} were accepted as {seqs}"
