"""What the indexes must say of one owner, computed from the owner alone; and how that differs from what they say.

An owner is an instance, or `@<process>` for the start events of a process's newest version. Pure: it is given what was
read at one moment and answers with differences, each with the writes that would put it right. The checkpoint is the
truth about waits, the waits are the truth about indexes. It knows the rows that `lua/prelude.lua` writes, written down
a second time on purpose: an oracle that used the writer's code would agree with its mistakes. It refuses to read or
write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gobpm_ray.core.state import parse_wait_id
from gobpm_ray.store.keys import Keys
from gobpm_ray.store.rows import KIND_NAMES, KINDS, RS

Entry = tuple[str, bytes]
"""(index, member)"""
Write = tuple[str | bytes | int, ...]
"""A command of the store."""

PROCESS = "@"
HASHES = frozenset({"tasks", "owners", "jobs"})
JOB_PLACES = ("joblocks", "jobwait", "jobq")
"""An open job stands in exactly one of them; if in several, in the first. Of an instance that is held none stands in
the last."""
PLACES = ("instances", "ready", "leases", "idle", "ended", "purge")
"""Indexes in which an instance stands by its id alone."""
LASTING = (b".h", b".s0")
_ROW_FIELDS = 9


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it must be; without `writes` nobody but a person can repair it."""

    kind: str
    key: str
    expected: str
    found: str
    writes: tuple[Write, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Armed:
    """A wait as its holder has it: what the store's row of it must be."""

    kind: str
    node: str
    key: str = ""
    deadline: int | None = None
    repeat: bool = False
    depth: int = 0
    touch: tuple[str, ...] = ()
    required: bool = True
    """False: it may be there, and need not (a start timer that has no further occurrence)."""
    row: bytes = b""
    """Of a process's start: what stands in the place of `touch`."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the checkpoint (or, of a process, its definition) says."""

    armed: Mapping[str, Armed]
    working: int = 0
    """Effects that were handed out and not reported: somebody must come for them."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Everything stored under one owner, read at one moment."""

    id: str
    fields: Mapping[bytes, bytes]
    inbox: tuple[bytes, ...] = ()

    @property
    def is_process(self) -> bool:
        return self.id.startswith(PROCESS)

    @property
    def exists(self) -> bool:
        return (b"df" if self.is_process else b"st") in self.fields

    @property
    def ended(self) -> bool:
        return self.fields.get(b"st") in (b"c", b"t")

    @property
    def process(self) -> bytes:
        return self.fields[b"df"].split(RS)[0]

    def guards(self, keys: Keys) -> tuple[Write, ...]:
        """(command, key, argument, expected): as long as all hold, nothing was written under this owner since."""
        key = keys.instance(self.id)
        same: list[Write] = [
            ("HGET", key, name, self.fields.get(name, b"-")) for name in (b"st", b"v", b"ep", b"tk", b"df")
        ]
        return (*same, ("HLEN", key, b"", len(self.fields)), ("LLEN", key + b":q", b"", len(self.inbox)))


@dataclass(slots=True)
class _Row:
    """A wait's row."""

    kind: bytes
    node: bytes
    key: bytes
    deadline: bytes
    group: bytes
    mode: bytes
    depth: bytes
    seq: bytes
    touch: bytes
    raw: bytes = field(default=b"", compare=False)

    @classmethod
    def read(cls, raw: bytes) -> _Row | None:
        fields = raw.split(RS, _ROW_FIELDS - 1)
        if len(fields) < _ROW_FIELDS or not fields[7].isdigit() or not fields[6].lstrip(b"-").isdigit():
            return None
        kind, node, key, deadline, group, mode, depth, seq, touch = fields
        return cls(kind, node, key, deadline, group, mode, depth, seq, touch, raw)

    @classmethod
    def of(cls, armed: Armed, seq: bytes) -> _Row:
        fields = [
            KINDS[armed.kind].encode(),
            armed.node.encode(),
            armed.key.encode(),
            str(armed.deadline or 0).encode(),
            # In no race: whatever a rival's trigger would have withdrawn is overtaken in the step instead.
            b"",
            b"r" if armed.repeat else b"o",
            str(armed.depth).encode(),
            seq,
            armed.row or ",".join(armed.touch).encode(),
        ]
        kind, node, key, deadline, group, mode, level, place, touch = fields
        return cls(kind, node, key, deadline, group, mode, level, place, touch, RS.join(fields))


Found = Mapping[Entry, float]
"""The entries that are there, of those that were looked for; of a hash, 0."""


class Owner:
    """One owner's accounts. `meaning` None: only rows and indexes are compared with each other."""

    def __init__(self, holding: Holding, keys: Keys, live: int, now: int, meaning: Meaning | None = None) -> None:
        self._holding = holding
        self._keys = keys
        self._live = live
        self._now = now
        self._meaning = meaning
        self._key = keys.instance(holding.id)
        self._early: list[Difference] = []
        self.must: dict[Entry, int | None] = {}
        """Entries that must be there, with their score; None: any."""
        self.jobs: list[tuple[Entry, ...]] = []
        """Of each open job its entries in `JOB_PLACES`."""
        self.may: set[Entry] = set()
        self._rows = self._right_rows() if holding.exists else {}
        if not holding.exists:
            return
        for wait, row in self._rows.items():
            self._index(wait, row)
        self._check_groups()
        if not holding.is_process:
            self._place()

    # --- what must be there

    @property
    def looked_for(self) -> set[Entry]:
        """Entries to be looked up before `differences` is asked."""
        at = self._holding.id.encode()
        places = set() if self._holding.is_process else {(name, at) for name in PLACES} | {("incidents", at + RS)}
        return places | set(self.must) | self.may

    def differences(self, found: Found) -> list[Difference]:
        """All of them, given the entries that were found among those looked for (and any others that name this
        owner)."""
        out = list(self._early)
        for entry, score in self.must.items():
            there = found.get(entry)
            if there is None:
                out.append(self._missing(entry, score))
            elif score is not None and there != score:
                out.append(self._said(entry, f"{score}", f"{there:.0f}", self._add(entry, score)))
        for places in self.jobs:
            stands = [entry for entry in places if entry in found]
            if not stands and self._offers:
                out.append(self._said(places[-1], "0", "nothing", self._add(places[-1], 0)))
            twice = "a job that stands elsewhere"
            out.extend(self._said(entry, "nothing", twice, self._remove(entry)) for entry in stands[1:])
        for entry, there in found.items():
            if entry not in self.must and entry not in self.may:
                out.append(self._said(entry, "nothing", f"{there:.0f}", self._remove(entry)))
        return out

    @property
    def _held(self) -> bool:
        return self._holding.fields.get(b"st") == b"s"

    @property
    def _offers(self) -> bool:
        """Its jobs may be fetched. One whose hold has just been ended by a cancel offers nothing more."""
        return not self._held and not any(trigger.split(RS, 2)[1] == b"cancel" for trigger in self._holding.inbox)

    def _place(self) -> None:
        holding, at = self._holding, self._holding.id.encode()
        fields = holding.fields
        self.must["instances", at] = int(fields.get(b"sq", b"0"))
        if holding.ended:
            self.must["ended", at] = None
            if self._remains():
                self.must["purge", at] = None
            else:
                self.may.add(("purge", at))
            return
        if b"pk" in fields:
            self.must["incidents", at + RS] = None
        if b"tk" in fields:
            self.must["leases", at] = None
            self.may.add(("idle", at))
        elif fields[b"st"] == b"a":
            working = self._meaning.working if self._meaning is not None else 0
            if holding.inbox or working:
                self.must["ready", at] = None
            else:
                # Swept or given back: somebody looks whether there is something to do (N7).
                self.may.add(("ready", at))

    def _remains(self) -> bool:
        """Something of an ended instance is left that must go: it goes in batches, while it stands in `purge`."""
        return bool(self._holding.inbox) or any(
            name[:1] in (b"~", b"%") or (name[:1] == b"." and name not in LASTING) for name in self._holding.fields
        )

    def _index(self, wait: str, row: _Row) -> None:
        at, name = self._holding.id.encode(), wait.encode()
        expected: dict[Entry, int | None] = {}
        match row.kind:
            case b"T":
                expected["due", at + RS + name] = int(row.deadline)
            case b"M" | b"S":
                expected["subs", self._subscription(name, row)] = 0
            case b"U" | b"J":
                expected["topen", at + b"/" + name] = int(row.seq)
                expected["tasks", at + b"/" + name] = None
                self.may.add(("owners", at + b"/" + name))
                if row.kind == b"J":
                    self._job(at + b"/" + name, row)
            case b"I":
                expected["incidents", at + RS + name] = int(row.seq)
        if self._holding.ended:
            # On its way out: its entries go with its rows.
            self.may.update(expected)
        else:
            self.must.update(expected)

    def _job(self, task: bytes, row: _Row) -> None:
        member = RS.join((row.key, b"%012d" % int(row.seq), task))
        places = (("joblocks", task), ("jobwait", task), *((("jobq", member),) if not self._held else ()))
        self.may.update(places, {("jobs", task)})
        if not self._holding.ended:
            self.jobs.append(places)

    def _subscription(self, wait: bytes, row: _Row) -> bytes:
        holding, seq = self._holding, b"%012d" % int(row.seq)
        if row.kind == b"S":
            return RS.join((row.key, seq, holding.id.encode(), wait, holding.process))
        began = holding.fields.get(b"sq", b"0")
        at = b"~" if began == b"~" else b"%012d" % int(began)
        depth = b"%02d" % (99 - int(row.depth))
        return RS.join((row.key, holding.process, at, depth, seq, holding.id.encode(), wait))

    # --- rows against the checkpoint

    def _right_rows(self) -> dict[str, _Row]:
        """The waits' rows as they must be; what is wrong with those that are there is noted."""
        rows: dict[str, _Row] = {}
        for name, raw in self._holding.fields.items():
            if name[:1] != b"~":
                continue
            row = _Row.read(raw)
            if row is None:
                self._note(name[1:].decode(), "a row of nine fields", repr(raw[:60]), (("HDEL", self._key, name),))
            else:
                rows[name[1:].decode()] = row
        if self._meaning is None or self._holding.ended:
            return rows
        armed = self._meaning.armed
        for wait in [wait for wait in rows if not self._backed(wait, rows[wait])]:
            row = rows.pop(wait)
            gone: list[Write] = [("HDEL", self._key, f"~{wait}")]
            gone += [self._remove(entry)[0] for entry in self._entries(wait, row)]
            self._note(wait, "nothing (not in the checkpoint)", _shown(row), tuple(gone))
        delivered = self._delivered()
        for wait, one in armed.items():
            if one.kind not in KINDS or not one.required or wait.partition(":")[0] in delivered:
                continue
            if wait not in rows and not self._same_start(one, rows):
                row = _Row.of(one, self._began())
                rows[wait] = row
                self._note(wait, _shown(row), "nothing", (("HSET", self._key, f"~{wait}", row.raw),))
        return rows

    def _backed(self, wait: str, row: _Row) -> bool:
        """The checkpoint has this wait, for the same thing. A process's start may have another id: it is kept from one
        version to the next."""
        assert self._meaning is not None  # noqa: S101 - asked only with one
        kind = KIND_NAMES.get(row.kind.decode(), "")
        armed = self._meaning.armed.get(wait)
        if self._holding.is_process:
            alike = (one for one in self._meaning.armed.values() if one.kind == kind and one.node == row.node.decode())
            return any(kind == "timer" or one.key == row.key.decode() for one in alike)
        if armed is None or armed.kind != kind or armed.key != row.key.decode():
            return False
        return kind != "timer" or (armed.deadline or 0) == int(row.deadline)

    def _same_start(self, one: Armed, rows: Mapping[str, _Row]) -> bool:
        return self._holding.is_process and any(
            row.node.decode() == one.node and row.key.decode() == one.key and KIND_NAMES[row.kind.decode()] == one.kind
            for row in rows.values()
        )

    def _delivered(self) -> set[str]:
        """Holders of waits (tracks and scopes) that a trigger in the inbox is for: it, or a rival, ended the wait."""
        return {trigger.split(RS, 3)[2].decode().partition(":")[0] for trigger in self._holding.inbox} - {""}

    def _began(self) -> bytes:
        """A place in the order that is early enough: what is put back was there all the while."""
        began = self._holding.fields.get(b"sq", b"0")
        return began if began.isdigit() else b"0"

    def _entries(self, wait: str, row: _Row) -> Iterator[Entry]:
        aside = Owner.__new__(Owner)
        aside._holding, aside.must, aside.may, aside.jobs = self._holding, {}, set(), []
        aside._index(wait, row)
        yield from (*aside.must, *aside.may)

    # --- race groups

    def _check_groups(self) -> None:
        if self._holding.ended:
            return
        groups: dict[bytes, set[bytes]] = {}
        for wait, row in self._rows.items():
            if row.group:
                groups.setdefault(row.group, set()).add(wait.encode())
        listed = {name[1:]: set(raw.split(RS)) for name, raw in self._holding.fields.items() if name[:1] == b"%"}
        for group in sorted(groups.keys() | listed.keys()):
            members, said = groups.get(group, set()), listed.get(group)
            if members == said or (said is None and len(members) < 2):
                continue
            name = b"%" + group
            right: Write = ("HSET", self._key, name, RS.join(sorted(members))) if members else ("HDEL", self._key, name)
            self._early.append(
                Difference(
                    "groups",
                    f"{self._holding.id}/{group.decode()}",
                    _listed(members),
                    _listed(said) if said is not None else "nothing",
                    (right,),
                )
            )

    # --- saying it

    def _note(self, wait: str, expected: str, found: str, writes: tuple[Write, ...]) -> None:
        kind = "starts" if self._holding.is_process else "waits"
        self._early.append(Difference(kind, f"{self._holding.id}/{wait}", expected, found, writes))

    def _missing(self, entry: Entry, score: int | None) -> Difference:
        expected = f"{score}" if score is not None else "an entry"
        if entry == ("purge", self._holding.id.encode()):
            return self._said(entry, expected, "remains of an ended instance", self._add(entry, score))
        return self._said(entry, expected, "nothing", self._add(entry, score))

    def _said(self, entry: Entry, expected: str, found: str, writes: tuple[Write, ...]) -> Difference:
        index, member = entry
        return Difference(index, shown(member), expected, found, writes)

    def _add(self, entry: Entry, score: int | None) -> tuple[Write, ...]:
        index, member = entry
        key = self._keys[index]
        if index == "tasks":
            # Who might do it is forgotten: nobody but an operator may, which is the safe side.
            wait = member.partition(b"/")[2].decode()
            row = b'{"node":"%b","users":[""]}' % parse_wait_id(wait)[1].encode()
            return (("HSET", key, member, b"%d" % self._now + RS + self._rows[wait].kind + RS + row),)
        # A lease that nobody knows the end of has ended; whatever is entered late is entered now.
        return (("ZADD", key, self._live if score is None else score, member),)

    def _remove(self, entry: Entry) -> tuple[Write, ...]:
        index, member = entry
        return (("HDEL" if index in HASHES else "ZREM", self._keys[index], member),)


def owner_of(entry: Entry) -> str:
    """The instance (or `@process`) that an entry of an index names."""
    index, member = entry
    match index:
        case "due" | "incidents":
            return member.partition(RS)[0].decode()
        case "tasks" | "owners" | "topen" | "jobs" | "joblocks" | "jobwait":
            return member.partition(b"/")[0].decode()
        case "jobq":
            return member.rpartition(RS)[2].partition(b"/")[0].decode()
        case "subs":
            fields = member.split(RS)
            place = 2 if member[:1] == b"s" else 5
            return fields[place].decode() if len(fields) > place else ""
    return member.decode()


def wait_of(entry: Entry) -> bytes:
    """The wait that an entry names; b'' for a place."""
    index, member = entry
    match index:
        case "due" | "incidents":
            return member.partition(RS)[2]
        case "tasks" | "owners" | "topen" | "jobs" | "joblocks" | "jobwait":
            return member.partition(b"/")[2]
        case "jobq":
            return member.rpartition(RS)[2].partition(b"/")[2]
        case "subs":
            fields = member.split(RS)
            place = 3 if member[:1] == b"s" else 6
            return fields[place] if len(fields) > place else b""
    return b""


def shown(member: bytes) -> str:
    """A member as people and programs read it."""
    return member.decode(errors="replace").replace("\x1e", " | ").replace("\x1f", " ")


def _shown(row: _Row) -> str:
    kind = KIND_NAMES.get(row.kind.decode(errors="replace"), "unknown")
    what = f" {shown(row.key)}" if row.key else ""
    when = f" until {row.deadline.decode()}" if row.kind == b"T" else ""
    return f"{kind} at {row.node.decode()}{what}{when}"


def _listed(members: set[bytes]) -> str:
    return ", ".join(sorted(member.decode() for member in members)) or "nothing"
