"""`verify`: every index rebuilt from the instances' records and the accepted rows, and compared (H12).

It reads in pages by cursor beside an engine at work. What looks wrong in a page is looked at once more, alone, in one
transaction, before it is said: a difference that is reported was there at one moment. A repair is a script that does
nothing if the owner has changed since. What must be where is computed in `expected` and `expected_rows`; here is only
how it is read and written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from gobpm_ray.checkpoint.parts import decode_with_working
from gobpm_ray.core.advance import touched
from gobpm_ray.core.keys import together_text
from gobpm_ray.core.starts import start_arms
from gobpm_ray.core.state import InstanceState, parse_wait_id
from gobpm_ray.errors import GobpmError, InputError
from gobpm_ray.runtime.ports import BellName
from gobpm_ray.runtime.programs import Programs, is_decision
from gobpm_ray.store.calls import store_call
from gobpm_ray.store.expected import (
    HASHES,
    JOB_PLACES,
    PLACES,
    PROCESS,
    Armed,
    Difference,
    Entry,
    Holding,
    Meaning,
    Owner,
    Write,
    owner_of,
    shown,
    wait_of,
)
from gobpm_ray.store.housekeeping import escaped
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.rows import RS
from gobpm_ray.store.verify_rows import PAGE, Guarded, RowReader, pages

GS = b"\x1d"
"""Between the keys of a conversation."""
LOOKS = 50
"""How often an owner that changes under the eyes is read again before it is left as busy: it changes by commits."""
ROUNDS = 4
"""A repaired row may show that an entry is missing."""
INDEXES = ("due", "subs", "tasks", "owners", "topen", "jobs", *JOB_PLACES, "incidents", *PLACES)
BELLS: tuple[BellName, ...] = ("message", "timer", "task", "ready", "supervisor")


@dataclass(slots=True)
class Report:
    """What was compared, what differed, and how much of it was put right."""

    differences: list[Difference] = field(default_factory=list)
    owners: int = 0
    rows: int = 0
    repaired: int = 0
    left: int = 0
    """Differences that stand after the repair."""


class Verifier:
    """`meaning` False: checkpoints and definitions are not read, only rows and indexes are compared."""

    def __init__(self, store: RedisStore, *, meaning: bool = True) -> None:
        self._store = store
        self._keys = store.keys
        self._client: Any = store.client
        self._programs = Programs(store)
        self._with_meaning = meaning
        self._live = 0
        self._now = 0

    @store_call
    def verify(self, *, repair: bool = False) -> Report:
        """Compare everything; with `repair`, until nothing differs that can be put right."""
        report = self._once(repair)
        if not repair or not report.differences:
            report.left = len(report.differences)
            return report
        for _ in range(ROUNDS - 1):
            again = self._once(repair=True)
            report.left = len(again.differences) - again.repaired
            if not again.differences:
                break
            known = {(one.kind, one.key) for one in report.differences}
            report.differences += [one for one in again.differences if (one.kind, one.key) not in known]
            report.repaired += again.repaired
        for bell in BELLS:
            self._store.ring(bell)
        return report

    def _once(self, repair: bool) -> Report:
        seconds, micros = self._client.time()
        self._live = seconds * 1000 + micros // 1000
        self._now = self._store.now()
        report, rows = Report(), RowReader(self._client, self._keys)
        for difference, guards in chain(
            self._definitions(),
            self._owners(report),
            self._conversations(),
            rows.data(),
            rows.differences(),
            rows.memory(),
        ):
            report.differences.append(difference)
            if repair and difference.writes:
                report.repaired += self._mend(difference.writes, guards)
        report.rows = rows.count
        return report

    def _mend(self, writes: Sequence[Write], guards: Sequence[Write]) -> bool:
        arguments: list[str | bytes | int] = [len(guards)]
        for guard in guards:
            arguments += guard
        for write in writes:
            arguments += (len(write), *write)
        return bool(self._store.run_script("mend", *arguments) == 1)

    # --- owners: instances, and processes with their start events

    def _owners(self, report: Report) -> Iterator[Guarded]:
        """Each owner against the indexes, then each index against the owners."""
        seen: set[tuple[str, str]] = set()
        suspects: Iterable[tuple[str, set[Entry]]] = self._doubtful_owners(report)
        for source in (suspects, self._doubtful_entries()):
            for owner_id, entries in source:
                for difference, guards in self._exactly(owner_id, entries):
                    if (difference.kind, difference.key) not in seen:
                        seen.add((difference.kind, difference.key))
                        yield difference, guards

    def _doubtful_owners(self, report: Report) -> Iterator[tuple[str, set[Entry]]]:
        for page in pages(self._owner_ids(), PAGE):
            owners = [self._account(holding) for holding in self._holdings(page)]
            report.owners += len(owners)
            found = self._look_up({entry for owner, _ in owners for entry in owner.looked_for})
            for owner, readable in owners:
                there = {entry: found[entry] for entry in owner.looked_for if entry in found}
                if readable or owner.differences(there):
                    yield owner.id, set()

    def _owner_ids(self) -> Iterator[str]:
        """Everybody that has a record, listed or not."""
        prefix = self._keys.instances
        pattern = escaped(prefix) + b"*"
        for key in self._client.scan_iter(match=pattern, count=1_000, _type="hash"):
            yield key[len(prefix) :].decode()
        for key in self._client.scan_iter(match=pattern + b":q", count=1_000, _type="list"):
            if not self._client.exists(key[:-2]):
                yield key[len(prefix) : -2].decode()

    def _holdings(self, ids: Sequence[str]) -> list[Holding]:
        pipe = self._client.pipeline(transaction=False)
        for owner_id in ids:
            key = self._keys.instance(owner_id)
            pipe.hgetall(key)
            pipe.lrange(key + b":q", 0, -1)
        replies = pipe.execute()
        pairs = zip(ids, replies[::2], replies[1::2], strict=True)
        return [Holding(owner_id, fields, tuple(inbox)) for owner_id, fields, inbox in pairs]

    def _exactly(self, owner_id: str, entries: set[Entry]) -> list[Guarded]:
        """What differs of this owner (and these entries that name it) at one moment."""
        for _ in range(LOOKS):
            (holding,) = self._holdings([owner_id])
            owner, trouble = self._account(holding)
            wanted = _by_index(owner.looked_for | entries)
            key = self._keys.instance(owner_id)
            pipe = self._client.pipeline(transaction=True)
            pipe.hgetall(key)
            pipe.lrange(key + b":q", 0, -1)
            self._ask(pipe, wanted)
            fields, inbox, *replies = pipe.execute()
            if Holding(owner_id, fields, tuple(inbox)) != holding:
                continue
            guards = holding.guards(self._keys)
            there = _answers(wanted, replies)
            return [(one, guards) for one in (*trouble, *owner.differences(there))]
        return []

    def _doubtful_entries(self) -> Iterator[tuple[str, set[Entry]]]:
        """Entries that their owner does not account for, as far as one look tells."""
        for index in INDEXES:
            for page in pages(self._members(index), PAGE):
                entries: list[Entry] = [(index, member) for member in page]
                pipe = self._client.pipeline(transaction=False)
                for entry in entries:
                    wait = wait_of(entry)
                    pipe.hmget(self._keys.instance(owner_of(entry)), b"~" + wait, b"st", b"tk", b"pk")
                for entry, fields in zip(entries, pipe.execute(), strict=True):
                    if not _accounted(entry, *fields):
                        yield owner_of(entry), {entry}

    def _members(self, index: str) -> Iterator[bytes]:
        key = self._keys[index]
        scan = self._client.hscan_iter if index in HASHES else self._client.zscan_iter
        for member, _ in scan(key, count=1_000):
            yield member

    def _look_up(self, entries: Iterable[Entry]) -> dict[Entry, float]:
        wanted = _by_index(entries)
        pipe = self._client.pipeline(transaction=False)
        self._ask(pipe, wanted)
        return _answers(wanted, pipe.execute())

    def _ask(self, pipe: Any, wanted: Mapping[str, list[bytes]]) -> None:
        for index, members in wanted.items():
            ask = pipe.hmget if index in HASHES else pipe.zmscore
            ask(self._keys[index], members)

    # --- what owners mean

    def _account(self, holding: Holding) -> tuple[_Named, list[Difference]]:
        """The owner's accounts, and what keeps its checkpoint or definition from being read."""
        trouble: list[Difference] = []
        meaning: Meaning | None = None
        if self._with_meaning and holding.exists and not holding.ended:
            try:
                meaning = self._of_process(holding) if holding.is_process else self._of_instance(holding)
            except GobpmError as failure:
                kind = "definition" if holding.is_process else "checkpoint"
                trouble.append(Difference(kind, holding.id, "readable", str(failure)))
        if holding.inbox and not holding.exists:
            writes: tuple[Write, ...] = (("DEL", self._keys.instance(holding.id) + b":q"),)
            found = f"{len(holding.inbox)} triggers of nobody"
            trouble.append(Difference("inbox", holding.id, "nothing", found, writes))
        return _Named(holding, self._keys, self._live, self._now, meaning), trouble

    def _of_instance(self, holding: Holding) -> Meaning:
        process, version = holding.fields[b"df"].split(RS)
        parts = {name[1:].decode(): raw for name, raw in holding.fields.items() if name[:1] == b"."}
        key = holding.fields[b"bk"].decode()
        state, working = decode_with_working(holding.id, process.decode(), int(version), key, parts, True)
        program = self._programs.get(process.decode(), int(version))

        def repeats(node: str, kind: str) -> bool:
            element = program.nodes[node].element if node in program.nodes else None
            return kind in ("message", "signal", "unkeyed") and not getattr(element, "interrupting", True)

        return Meaning(dict(_armed(state, repeats)), working)

    def _of_process(self, holding: Holding) -> Meaning:
        process, version = holding.fields[b"df"].split(RS)
        definition = self._store.definition(process.decode(), int(version))
        if definition is not None and is_decision(definition.document):
            return Meaning({})  # stands where a process does, and nothing begins by it
        program = self._programs.get(process.decode(), int(version))
        armed = {
            arm.wait: Armed(
                arm.kind,
                arm.node,
                arm.key,
                arm.deadline,
                arm.repeat,
                required=arm.kind != "timer",
                row=together_text(arm.together),
            )
            for arm, _ in start_arms(program, self._now)
        }
        return Meaning(armed)

    def _definitions(self) -> Iterator[Guarded]:
        """Every version has its document, and a process waits by its newest one."""
        table = self._client.hgetall(self._keys["defs"])
        for name, digest in table.items():
            process, _, version = name.partition(RS)
            if version and not self._client.hexists(self._keys["docs"], digest):
                where = f"{process.decode()} version {version.decode()}"
                yield Difference("definition", where, "its document", "nothing"), ()
            elif not version:
                stands = self._client.hget(self._keys.instance(PROCESS + process.decode()), "df")
                newest = process + RS + digest
                # Deployed meanwhile, if the table says something else by now.
                if stands != newest and self._client.hget(self._keys["defs"], process) == digest:
                    key = self._keys.instance(PROCESS + process.decode())
                    writes: tuple[Write, ...] = (("HSET", key, "df", newest, "sq", "~"),)
                    guards: tuple[Write, ...] = (("HGET", self._keys["defs"], process, digest),)
                    found = (stands or b"nothing").decode().replace("\x1e", " version ")
                    yield Difference("starts", process.decode(), f"version {digest.decode()}", found, writes), guards

    def _conversations(self) -> Iterator[Guarded]:
        """Each conversation names the living instance that its first message began, and each such instance is named."""
        conv = self._keys["conv"]
        for entry, instance in self._client.hscan_iter(conv, count=1_000):
            ikey, key = self._keys.instance(instance.decode()), entry.partition(RS)[2]
            status, began = self._client.hmget(ikey, "st", "cv")
            if status in (b"a", b"s") and key in (began or b"").split(GS):
                continue
            if self._client.hget(conv, entry) == instance:
                guards: tuple[Write, ...] = (("HGET", conv, entry, instance), ("HGET", ikey, "cv", began or b"-"))
                drop: tuple[Write, ...] = (("HDEL", conv, entry),)
                yield Difference("conv", shown(entry), "nothing", instance.decode(), drop), guards
        for page in pages(self._owner_ids(), PAGE):
            pipe = self._client.pipeline(transaction=False)
            for owner_id in page:
                pipe.hmget(self._keys.instance(owner_id), "st", "cv", "df")
            for owner_id, (status, began, definition) in zip(page, pipe.execute(), strict=True):
                if status not in (b"a", b"s") or not began:
                    continue
                for key in began.split(GS):
                    entry = definition.split(RS)[0] + RS + key
                    if self._client.hget(conv, entry) is None:
                        ikey = self._keys.instance(owner_id)
                        if self._client.hmget(ikey, "st", "cv") != [status, began]:
                            continue  # it has ended meanwhile
                        guards = (("HGET", ikey, "st", status), ("HGET", ikey, "cv", began))
                        right: tuple[Write, ...] = (("HSET", conv, entry, owner_id),)
                        yield Difference("conv", shown(entry), owner_id, "nothing", right), guards


class _Named(Owner):
    @property
    def id(self) -> str:
        return self._holding.id


def _armed(state: InstanceState, repeats: Callable[[str, str], bool]) -> Iterator[tuple[str, Armed]]:
    """Every wait of the checkpoint, whoever holds it."""
    for track in state.tracks.values():
        for wait, armed in track.waits.items():
            node = parse_wait_id(wait)[1]
            depth = state.scope(track.scope).depth
            repeat = repeats(node, armed.kind)
            touch = touched(state, track)
            yield wait, Armed(armed.kind, node, armed.key, armed.deadline, repeat, depth, touch)
    for scope in state.scopes.values():
        # Event sub-processes wait without a token.
        for wait, armed in getattr(scope, "waits", {}).items():
            node = parse_wait_id(wait)[1]
            yield wait, Armed(armed.kind, node, armed.key, armed.deadline, repeats(node, armed.kind), scope.depth)


def _accounted(entry: Entry, row: bytes | None, status: bytes | None, token: bytes | None, held: bytes | None) -> bool:
    index = entry[0]
    kind = (row or b"").partition(RS)[0]
    match index:
        case "due":
            return kind == b"T"
        case "subs":
            return kind in (b"M", b"S") and row is not None and row.split(RS)[2] == entry[1].partition(RS)[0]
        case "tasks" | "topen":
            return kind in (b"U", b"J")
        case "owners":
            return kind in (b"U", b"J")
        case "jobs" | "joblocks" | "jobwait":
            return kind == b"J"
        case "jobq":
            offered = kind == b"J" and row is not None and row.split(RS)[2] == entry[1].partition(RS)[0]
            return offered and status != b"s"
        case "incidents":
            return kind == b"I" or (held is not None and not wait_of(entry))
        case "ready":
            return status == b"a" and token is None
        case "leases" | "idle":
            return status in (b"a", b"s") and token is not None
        case "ended" | "purge":
            return status in (b"c", b"t")
    return status is not None


def _by_index(entries: Iterable[Entry]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for index, member in entries:
        found.setdefault(index, []).append(member)
    return found


def _answers(wanted: Mapping[str, list[bytes]], replies: Sequence[Any]) -> dict[Entry, float]:
    """The entries that are there, with their scores; 0 for those of a hash."""
    return {
        (index, member): 0.0 if index in HASHES else float(score)
        for (index, members), scores in zip(wanted.items(), replies, strict=True)
        for member, score in zip(members, scores, strict=True)
        if score is not None
    }


def verify(store: object, *, repair: bool = False) -> Report:
    """As `Verifier.verify`; an engine without a store of its own has no indexes that could be told apart from it."""
    if not isinstance(store, RedisStore):
        raise InputError("verify compares the indexes of a store; this engine keeps everything in its process")
    return Verifier(store).verify(repair=repair)
