"""Rows of the store as bytes and back: the one place that knows the field order that `lua/prelude.lua` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from gobpm_ray.runtime.ports import (
    ArmRow,
    Claim,
    Commit,
    DataRow,
    DeadRow,
    ParkedStart,
    PendingRow,
    TriggerRow,
)

RS: Final = b"\x1e"
KINDS: Final = {
    "timer": "T",
    "message": "M",
    "signal": "S",
    "task": "U",
    "job": "J",
    "child": "C",
    "conditional": "K",
    "unkeyed": "N",
    "incident": "I",
}
KIND_NAMES: Final = {code: kind for kind, code in KINDS.items()}
STATUS: Final = {b"a": "active", b"s": "suspended", b"c": "completed", b"t": "terminated"}


def trigger(row: bytes) -> TriggerRow:
    """id kind wait seq key expires touch payload."""
    delivery, kind, wait, seq, key, expires, _touch, payload = row.split(RS, 7)
    return TriggerRow(delivery.decode(), kind.decode(), wait.decode(), int(seq), key.decode(), payload, int(expires))


def pending(seq: int, row: bytes) -> PendingRow:
    """id kind key name expires accepted accepted_live payload."""
    delivery, kind, key, name, expires, accepted, accepted_live, payload = row.split(RS, 7)
    word: Literal["message", "signal"] = "message" if kind == b"M" else "signal"
    return PendingRow(
        seq,
        delivery.decode(),
        word,
        key.decode(),
        name.decode(),
        payload,
        int(expires),
        int(accepted),
        int(accepted_live),
    )


def dead(letter: bytes) -> DeadRow:
    """now reason row. A row too damaged to be read is shown as far as it goes, under no id."""
    at, reason, row = letter.split(RS, 2)
    try:
        read = pending(0, row)
    except ValueError:
        return DeadRow("", "message", "", "", row, reason.decode(errors="replace"), int(at))
    return DeadRow(read.id, read.kind, read.key, read.name, read.payload, reason.decode(), int(at), read.accepted)


def job_state(row: bytes | None) -> tuple[int, str]:
    """(attempts that failed, the cause of the last of them) of `failures lock cause`; None: it was never fetched."""
    if row is None:
        return 0, ""
    failures, _lock, cause = row.split(RS, 2)
    return int(failures), cause.decode(errors="replace")


def data(name: str, row: bytes) -> DataRow:
    """version at by secret value."""
    version, at, by, secret, value = row.split(RS, 4)
    return DataRow(name, int(version), int(at), by.decode(), secret == b"1", value)


def wait(row: bytes) -> tuple[str, ...]:
    """(kind, node, key, deadline, group, mode, depth, seq): `InstanceRecord.waits`."""
    kind, node, key, deadline, group, mode, depth, seq, _touch = row.decode().split("\x1e", 8)
    return KIND_NAMES[kind], node, key, deadline, group, "once" if mode == "o" else "repeat", depth, seq


def claim(reply: Sequence[Any], token: str) -> Claim:
    """A reply of prelude's `reply_claim`."""
    instance_id, epoch, now, inbox, complete, count = reply[:6]
    fields = reply[6 : 6 + count]
    parts: dict[str, bytes] = {}
    meta: dict[bytes, bytes] = {}
    for name, value in zip(fields[::2], fields[1::2], strict=True):
        first = name[:1]
        if first == b".":
            parts[name[1:].decode()] = value
        elif first not in b"~%":
            meta[name] = value
    process, version = meta[b"df"].split(RS)
    return Claim(
        instance_id.decode(),
        token,
        epoch,
        int(meta[b"v"]),
        process.decode(),
        int(version),
        meta[b"bk"].decode(),
        parts,
        complete == 1,
        tuple(map(trigger, reply[6 + count :])),
        inbox,
        now,
        int(meta.get(b"dc", 0)),
        b"dc" in meta,
        meta.get(b"pa", b"").decode(),
    )


def commit_arguments(
    commit: Commit, max_resident: int, whole: int, limit: int, max_depth: int, *, born: bool = False
) -> list[bytes | str | int]:
    """The arguments of `commit.lua`: a header, then counted sections. `born`: as they follow those of `birth.lua`."""
    out: list[bytes | str | int] = [
        commit.instance_id,
        commit.token,
        commit.version,
        commit.commit_id,
        commit.residency,
        commit.outcome,
        commit.next_token,
        max_resident,
        whole,
        limit,
        max_depth,
        commit.learnt,
    ]
    if commit.data:
        out += ("data", len(commit.data))
        for use in commit.data:
            out += (use.name, use.seen, int(use.value is not None), int(use.secret), use.value or b"")
    out.append(len(commit.parts))
    for name, value in commit.parts.items():
        out += (name, value)
    out.append(len(commit.removed))
    out += commit.removed
    if born:
        out.append(0)  # its start trigger has never been in an inbox
    else:
        out.append(len(commit.consumed))
        out += commit.consumed
    out.append(len(commit.returned))
    for row in commit.returned:
        out += (row.seq, row.id, row.key, row.key.split("\x1f")[1], row.expires, row.payload)
    out.append(len(commit.withdrawals))
    out += commit.withdrawals
    out.append(len(commit.arms))
    for arm in commit.arms:
        out += (
            arm.wait,
            KINDS[arm.kind],
            arm.node,
            arm.key,
            arm.deadline,
            f"{arm.group}\x1d{arm.joins}" if arm.joins else arm.group,
            "r" if arm.repeat else "o",
            arm.depth,
            ",".join(arm.touch),
            arm.row,
        )
    accepted = [send for send in commit.sends if not send.addressed]
    out.append(len(accepted))
    for send in accepted:
        out += (send.id, "M" if send.kind == "message" else "S", send.key, send.name, send.ttl, send.payload)
    out.append(len(commit.sends) - len(accepted))
    if len(accepted) < len(commit.sends):
        for send in commit.sends:
            if send.addressed:
                out += (send.id, send.kind, send.to, send.wait, send.process, send.version)
                out += (send.business_key, send.payload)
    out.append(len(commit.history))
    out += commit.history
    out.append(len(commit.facts))
    out += commit.facts
    out.append(len(commit.release_facts))
    out += commit.release_facts
    return out


def birth_arguments(
    start: ParkedStart, most: int, max_resident: int, whole: int, limit: int, max_depth: int
) -> list[bytes | str | int]:
    """The arguments of `birth.lua`, and behind them those of the commit."""
    own: list[bytes | str | int] = [
        most,
        start.process_id,
        start.version,
        int(start.newest),
        start.delivery_id,
        start.business_key,
        start.now,
    ]
    return own + commit_arguments(start.commit, max_resident, whole, limit, max_depth, born=True)


def start_arguments(arms: Sequence[ArmRow]) -> list[bytes | str | int]:
    """The starts of `deploy.lua`."""
    out: list[bytes | str | int] = []
    for arm in arms:
        out += (arm.wait, KINDS[arm.kind], arm.node, arm.key, arm.deadline, arm.row)
    return out
