"""What the indexes must say of one accepted row, and of one remembered delivery id. Pure, as `expected`."""

from __future__ import annotations

from dataclasses import dataclass

from gobpm_ray.store.expected import Difference, Write, shown
from gobpm_ray.store.keys import Keys
from gobpm_ray.store.rows import RS, pending


@dataclass(frozen=True, slots=True)
class RowHolding:
    """An accepted row and where it stands, read at one moment."""

    seq: int
    row: bytes | None
    pend: bool
    progress: bool
    members: tuple[bytes, ...]
    """What it is parked under, one for each key: computed from the row if there is one, else what was found."""
    parked: tuple[bool, ...]
    parkx: tuple[float | None, ...]
    stray: bool = False
    """The member names a row that is parked by other keys: whatever becomes of it, this is none of its entries."""

    def guards(self, keys: Keys) -> tuple[Write, ...]:
        stands: list[Write] = []
        if not self.stray:
            stands += [
                ("HEXISTS", keys["in"], self.seq, int(self.row is not None)),
                ("ZSCORE", keys["pend"], self.seq, self.seq if self.pend else b"-"),
            ]
        for member, parked in zip(self.members, self.parked, strict=True):
            stands.append(("ZSCORE", keys["parked"], member, 0 if parked else b"-"))
        return tuple(stands)


def parked_members(seq: int, row: bytes) -> tuple[bytes, ...]:
    """As a message stands in `parked`: by each of its keys, then by its place in the order. By the first it expires."""
    if row.count(RS) < 3:
        return ()
    base, *named = row.split(RS, 3)[2].split(b"\x1d")
    head = b"\x1f".join(base.split(b"\x1f")[:2]) + b"\x1f="
    keys = (base, *(head + each.partition(b"=")[2] for each in named if each[:1] != b"!"))
    return tuple(dict.fromkeys(key + RS + b"%012d" % seq for key in keys))


def row_differences(holding: RowHolding, keys: Keys) -> list[Difference]:
    """Every accepted row is pending or parked, never both; nothing else is."""
    out: list[Difference] = []
    seq = str(holding.seq)

    def differs(kind: str, key: str, expected: str, found: str, *writes: Write) -> None:
        out.append(Difference(kind, key, expected, found, writes))

    def no_longer_parked(parked: str) -> None:
        for member, stands, expires in zip(holding.members, holding.parked, holding.parkx, strict=True):
            if stands:
                differs("parked", shown(member), "nothing", parked, ("ZREM", keys["parked"], member))
            if expires is not None:
                differs("parkx", shown(member), "nothing", f"{expires:.0f}", ("ZREM", keys["parkx"], member))

    if holding.row is None:
        if holding.pend:
            differs("pend", seq, "nothing", "a row that is not stored", ("ZREM", keys["pend"], holding.seq))
        no_longer_parked("a row that is not stored")
        if holding.progress:
            differs("progress", seq, "nothing", "progress of no row", ("HDEL", keys["progress"], holding.seq))
        return out
    try:
        row = pending(holding.seq, holding.row)
    except ValueError:
        # The MessageHolder sets it aside as soon as it is pending.
        if not holding.pend:
            differs("in", seq, "a row of eight fields", "damaged", ("ZADD", keys["pend"], holding.seq, holding.seq))
        return out
    message = row.kind == "message"
    parked = message and any(holding.parked)
    if not holding.pend and not parked:
        differs("pend", seq, f"{row.kind} {row.id}", "neither pending nor parked", ("ZADD", keys["pend"], seq, seq))
    if holding.pend or not parked:
        no_longer_parked(f"{row.kind} that is pending")
    else:
        expiries = (row.expires, *(None for _ in holding.members[1:]))
        places = zip(holding.members, holding.parked, holding.parkx, expiries, strict=True)
        for member, stands, found, wanted in places:
            if not stands:
                differs("parked", shown(member), "an entry", "nothing", ("ZADD", keys["parked"], 0, member))
            if found != wanted:
                right: Write = ("ZREM", keys["parkx"], member)
                if wanted is not None:
                    right = ("ZADD", keys["parkx"], wanted, member)
                differs("parkx", shown(member), _or_nothing(wanted), _or_nothing(found), right)
    # Of a message it says by which processes it was given back, wherever it stands.
    if holding.progress and not (holding.pend or message):
        differs("progress", seq, "nothing", f"progress of a {row.kind}", ("HDEL", keys["progress"], holding.seq))
    return out


def _or_nothing(score: float | None) -> str:
    return "nothing" if score is None else f"{score:.0f}"


def memory_differences(delivery: bytes, stored: bytes | None, score: float | None, keys: Keys) -> list[Difference]:
    """A delivery id is remembered in both tables, since the same moment."""
    name = shown(delivery)
    if stored is None:
        if score is None:
            return []
        return [Difference("dedupx", name, "nothing", f"{score:.0f}", (("ZREM", keys["dedupx"], delivery),))]
    accepted = stored.partition(RS)[0]
    if not accepted.isdigit():
        return [Difference("dedup", name, "when it was accepted", "damaged", (("HDEL", keys["dedup"], delivery),))]
    if score == int(accepted):
        return []
    found = "nothing" if score is None else f"{score:.0f}"
    right: Write = ("ZADD", keys["dedupx"], int(accepted), delivery)
    return [Difference("dedupx", name, accepted.decode(), found, (right,))]
