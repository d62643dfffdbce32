"""What two runs must agree in, as plain values, and where they differ, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gobpm_ray.checkpoint import rows
from gobpm_ray.core.state import parse_wait_id
from gobpm_ray.engine.instance_views import state_of
from gobpm_ray.runtime.ports import InstanceRecord, Store

FACTS = ("Started", "Overtaken", "Completed", "Terminated")
"""What happened to instances, however often they were released meanwhile."""


@dataclass
class Picture:
    instances: dict[str, dict[str, Any]] = field(default_factory=dict)
    parked: int = 0
    dead: int = 0
    effects: frozenset[str] = frozenset()
    facts: tuple[tuple[str, int], ...] = ()


def picture(store: Store, effects: Counter[str], *, sealed: bool = False) -> Picture:
    """`sealed`: an attempt that was cut off went on under a new visit, so visits are told from nothing, and the seal
    itself is not told."""
    found = Picture()
    for _, instance_id in store.instances():
        record = store.instance(instance_id)
        assert record is not None
        found.instances[instance_id] = _instance(record, sealed)
    population = store.population()
    found.parked, found.dead = population.parked, population.dead
    found.effects = frozenset(key.rpartition(":")[0] if sealed else key for key in effects)
    counted = Counter(rows.read_fact(fact)["fact"] for _, fact in store.facts(limit=10_000))
    found.facts = tuple((name, counted[name]) for name in FACTS)
    return found


def _instance(record: InstanceRecord, sealed: bool) -> dict[str, Any]:
    state = state_of(record)
    found: dict[str, Any] = {
        "process": record.process_id,
        "status": record.status,
        "history": _history(record, sealed),
        "waits": sorted(_wait(wait, row, sealed) for wait, row in record.waits.items()),
        "inbox": [(trigger.kind, unvisited(trigger.wait)) for trigger in record.inbox],
        "variables": {scope.id: scope.variables for scope in state.scopes.values()},
        "tokens": sorted((track.scope, track.node, track.state.value) for track in state.tracks.values()),
        "caller": record.caller,
    }
    if not sealed:
        # Everything that an instance is, down to its counters; but an attempt knows how often it was cut off.
        for track in state.tracks.values():
            track.attempt = None
        found |= {"scopes": state.scopes, "tracks": state.tracks, "head": state.head}
    return found


def _wait(wait: str, row: tuple[str, ...], sealed: bool) -> tuple[str, ...]:
    """All of its row but the number that orders it; a race group is named after a visit, too."""
    kind, node, key, deadline, group, mode, depth, _ = row
    if sealed:
        wait, group = unvisited(wait), group.partition(":")[0]
    return wait, kind, node, key, deadline, group, mode, depth


def _history(record: InstanceRecord, sealed: bool) -> list[tuple[int, str, str, str]]:
    found: list[tuple[int, str, str, str]] = []
    repaired: list[str] = []
    """Nodes whose seal was an incident, until it is retried."""
    for entry in map(rows.read_history_entry, record.history):
        if entry.event == "sealed":
            continue
        if sealed and entry.event == "incident" and "cut off by a crash" in entry.detail:
            repaired.append(entry.node)
            continue
        if sealed and entry.event == "retried" and entry.node in repaired:
            repaired.remove(entry.node)
            continue
        found.append((entry.at, entry.event, entry.node, entry.detail))
    return found


def unvisited(wait: str) -> str:
    """A wait's id without the number of its visit."""
    return ":".join(parse_wait_id(wait)[:3])


def differences(straight: Picture, other: Picture) -> Iterator[str]:
    for name in sorted(straight.instances.keys() | other.instances.keys()):
        wanted, have = straight.instances.get(name), other.instances.get(name)
        if wanted is None or have is None:
            yield f"{name}: {'nobody knows it straight' if wanted is None else 'it was never started'}"
            continue
        for what, value in wanted.items():
            if value != have[what]:
                yield f"{name} {what}:\n    straight {value!r}\n    it is    {have[what]!r}"
    for what in ("parked", "dead", "effects", "facts"):
        if getattr(straight, what) != getattr(other, what):
            yield f"{what}: straight {getattr(straight, what)!r}, it is {getattr(other, what)!r}"


def remains(record: InstanceRecord) -> list[str]:
    """What an ended instance may not have: anything but its record's last parts and its history."""
    found = [f"wait {wait}" for wait in record.waits] + [f"trigger {trigger.id}" for trigger in record.inbox]
    found += [f"part {name}" for name in record.parts if name not in ("h", "s0")]
    return [
        f"{record.instance_id}, ended, still has {what}" for what in (*found, *(["a lease"] if record.resident else []))
    ]
