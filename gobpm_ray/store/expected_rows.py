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
    member: bytes
    """What it is parked under: computed from the row if there is one, else what was found."""
    parked: bool
    parkx: float | None

    def guards(self, keys: Keys) -> tuple[Write, ...]:
        stands: list[Write] = [
            ("HEXISTS", keys["in"], self.seq, int(self.row is not None)),
            ("ZSCORE", keys["pend"], self.seq, self.seq if self.pend else b"-"),
        ]
        if self.member:
            stands.append(("ZSCORE", keys["parked"], self.member, 0 if self.parked else b"-"))
        return tuple(stands)


def parked_member(seq: int, row: bytes) -> bytes:
    """As a message stands in `parked`: by its key, then by its place in the order."""
    return row.split(RS, 3)[2].split(b"\x1d")[0] + RS + b"%012d" % seq


def row_differences(holding: RowHolding, keys: Keys) -> list[Difference]:
    """Every accepted row is pending or parked, never both; nothing else is."""
    out: list[Difference] = []
    seq, member = str(holding.seq), shown(holding.member)

    def differs(kind: str, key: str, expected: str, found: str, *writes: Write) -> None:
        out.append(Difference(kind, key, expected, found, writes))

    drop_parked: Write = ("ZREM", keys["parked"], holding.member)
    drop_parkx: Write = ("ZREM", keys["parkx"], holding.member)
    if holding.row is None:
        if holding.pend:
            differs("pend", seq, "nothing", "a row that is not stored", ("ZREM", keys["pend"], holding.seq))
        if holding.parked:
            differs("parked", member, "nothing", "a row that is not stored", drop_parked)
        if holding.parkx is not None:
            differs("parkx", member, "nothing", f"{holding.parkx:.0f}", drop_parkx)
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
    if not holding.pend and not (holding.parked and message):
        differs("pend", seq, f"{row.kind} {row.id}", "neither pending nor parked", ("ZADD", keys["pend"], seq, seq))
    in_place = holding.parked and message and not holding.pend
    if holding.parked and not in_place:
        differs("parked", member, "nothing", f"{row.kind} that is pending", drop_parked)
    if in_place and holding.parkx != row.expires:
        found = "nothing" if holding.parkx is None else f"{holding.parkx:.0f}"
        differs("parkx", member, str(row.expires), found, ("ZADD", keys["parkx"], row.expires, holding.member))
    if not in_place and holding.parkx is not None:
        differs("parkx", member, "nothing", f"{holding.parkx:.0f}", drop_parkx)
    # Of a message it says by which processes it was given back, wherever it stands.
    if holding.progress and not (holding.pend or message):
        differs("progress", seq, "nothing", f"progress of a {row.kind}", ("HDEL", keys["progress"], holding.seq))
    return out


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
