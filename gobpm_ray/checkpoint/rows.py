"""Between the core's values and the store's rows: payloads in, arms, sends, history and facts out.

It knows the JSON inside the ports' opaque bytes; it refuses to know how a row is stored or matched.
Rows come and go as plain fields, because this layer lies below the ports.
"""

from __future__ import annotations

import json
from typing import Any, get_args

from gobpm_ray.checkpoint.codec import SECRET, dump, load, parse, restored, storable, write
from gobpm_ray.core.step import HistoryEntry, TaskRow, Trigger, TriggerKind
from gobpm_ray.errors import CorruptCheckpoint, InvalidPayload
from gobpm_ray.secret import hidden, revealed

_KINDS = frozenset(get_args(TriggerKind))
_NOTHING = b"{}"
_MARKED = f'{{"{SECRET}":'.encode()


# --- payloads of triggers, messages and signals


def payload(
    values: dict[str, Any], *, node: str = "", cause: str = "", code: str = "", where: str = "payload"
) -> bytes:
    """What an accepted delivery carries. UnstorableValue names `where` and the path in it."""
    document: dict[str, Any] = {}
    if values:
        document["values"] = storable(values, where)
    if node:
        document["node"] = node
    if cause:
        document["cause"] = cause
    if code:
        document["code"] = code
    return write(document, where) if document else _NOTHING


def trigger(id: str, kind: str, wait: str, seq: int, data: bytes, key: str = "") -> Trigger:
    """The core's trigger of an inbox row. InvalidPayload when its bytes say nothing."""
    if kind not in _KINDS:
        raise InvalidPayload(f"trigger '{id}': unknown kind {kind!r}")
    values, node, cause, code = ({}, "", "", "") if data == _NOTHING else read_payload(data, f"trigger '{id}'")
    if kind == "start" and wait:
        # Started by a start event: the row's wait is that event's id, and names no wait of the instance.
        node, wait = wait, ""
    secrets: tuple[str, ...] = ()
    if _MARKED in data:
        values, secrets = revealed(values)
    return Trigger(id, kind, wait, seq, values, node, code, cause, key, secrets)  # type: ignore[arg-type]


def read_payload(data: bytes, where: str = "payload") -> tuple[dict[str, Any], str, str, str]:
    """(values, node, cause, code) of a payload."""
    document = parse(data, where)
    values, node = document.get("values", {}), document.get("node", "")
    cause, code = document.get("cause", ""), document.get("code", "")
    if not (isinstance(values, dict) and all(isinstance(text, str) for text in (node, cause, code))):
        raise InvalidPayload(f"{where}: expected an object of values, node, cause and code")
    return restored(values, data, where), node, cause, code


def shown_payload(data: bytes) -> str:
    """As people read it who may not know what is secret; bytes that say nothing as they are."""
    if _MARKED not in data:
        return data.decode(errors="replace")
    document = parse(data)
    document["values"] = storable(hidden(restored(document.get("values", {}), data)))  # type: ignore[arg-type]
    return write(document).decode()


# --- tasks and jobs


def task_row(row: TaskRow, where: str = "task") -> bytes:
    """The JSON row that lists show and the accepting script reads; absent fields are their defaults."""
    document: dict[str, Any] = {"node": row.node}
    for name in ("name", "assignee", "due", "follow_up", "form", "topic", "retries"):
        if (value := getattr(row, name)) not in ("", None):
            document[name] = value
    for name in ("users", "groups", "required", "secrets"):
        if value := getattr(row, name):
            document[name] = list(value)
    if row.priority != 50:
        document["priority"] = row.priority
    if row.inputs:
        document["inputs"] = storable(row.inputs, f"{where}: input")
    return write(document, where)


def read_task_row(data: bytes, where: str = "task") -> TaskRow:
    document = parse(data, where)
    try:
        return TaskRow(
            node=document["node"],
            name=document.get("name", ""),
            assignee=document.get("assignee", ""),
            users=tuple(document.get("users", ())),
            groups=tuple(document.get("groups", ())),
            required=tuple(document.get("required", ())),
            due=document.get("due"),
            follow_up=document.get("follow_up"),
            priority=document.get("priority", 50),
            form=document.get("form", ""),
            topic=document.get("topic", ""),
            retries=document.get("retries", ""),
            secrets=tuple(document.get("secrets", ())),
            inputs=restored(document.get("inputs", {}), data, where),
        )
    except (LookupError, TypeError, AttributeError) as error:
        raise CorruptCheckpoint(f"{where}: its row is damaged: {error!r}") from error


# --- start timers of a process


def start_timer_row(cycle: str, anchor: int, index: int) -> bytes:
    """How a process's start timer goes on; `cycle` '' for a date or a duration."""
    return dump({"cycle": cycle, "anchor": anchor, "index": index})


def read_start_timer(data: bytes, where: str = "start timer") -> tuple[str, int, int]:
    """(cycle, anchor, index)."""
    document = load(data, where) if data else {}
    cycle, anchor, index = document.get("cycle") or "", document.get("anchor", 0), document.get("index", 0)
    if not (isinstance(cycle, str) and isinstance(anchor, int) and isinstance(index, int)):
        raise CorruptCheckpoint(f"{where}: its row is damaged: {data[:80]!r}")
    return cycle, anchor, index


# --- history and facts


def history_entry(entry: HistoryEntry) -> bytes:
    document: dict[str, Any] = {"e": entry.event, "t": entry.at}
    if entry.node:
        document["n"] = entry.node
    if entry.detail:
        # A cause may quote text that no encoding has.
        document["d"] = entry.detail.encode(errors="replace").decode()
    return write(document)


def read_history_entry(data: bytes) -> HistoryEntry:
    try:
        document = json.loads(data)
        return HistoryEntry(document["e"], document["t"], document.get("n", ""), document.get("d", ""))
    except (ValueError, LookupError, TypeError) as error:
        raise CorruptCheckpoint(f"a history entry is damaged: {data[:80]!r}") from error


def fact(name: str, instance_id: str, process_id: str, at: int, **counts: str | int | list[str]) -> bytes:
    """One line of what happened: names and counts only, never a payload (D14)."""
    return write({"fact": name, "instance": instance_id, "process": process_id, "at": at, **counts})


def read_fact(data: bytes) -> dict[str, Any]:
    found = json.loads(data)
    if not isinstance(found, dict):
        raise CorruptCheckpoint(f"a fact is damaged: {data[:80]!r}")
    return found
