"""What the engine answers: frozen values that a caller reads and prints; they know no store, and cannot be written
back.

Every time is an int of milliseconds since the epoch (UTC) on the business clock, and its name ends in `_ms`.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Literal
from uuid import UUID

InstanceStatus = Literal["running", "waiting", "incident", "suspended", "completed", "terminated"]
"""running: something is ready, delivered or in work; waiting: only an outside trigger or a deadline moves it on;
incident: an open incident waits for an operator; suspended: an operator holds it; the last two: it has ended."""

ENDED: frozenset[str] = frozenset({"completed", "terminated"})


@dataclass(frozen=True, slots=True)
class Deployed:
    """One process that is now stored; `created` is False when its newest version already was this very document."""

    process_id: str
    version: int
    created: bool
    starts: tuple[WaitView, ...] = ()
    """Start events that wait for a message, a signal or a deadline."""
    plain_start: bool = True
    """It has a start event without a trigger: `start` begins it."""


@dataclass(frozen=True, slots=True)
class Started:
    """The engine's answer "stored": what was accepted outlives any crash. Also the receipt of messages and signals."""

    id: str
    """The delivery id; accepting the same one again within the dedup window changes nothing."""
    duplicate: bool
    """It had been accepted before."""
    instance_id: str = ""
    """The instance that it started or was addressed to; '' for messages and signals."""


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """An open human task or job."""

    id: str
    """`instance id/wait id`: names this task and no other, for ever."""
    instance_id: str
    process_id: str
    node: str
    kind: Literal["task", "job"]
    name: str = ""
    owner: str = ""
    """Who claimed it."""
    assignee: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    """Outputs without which a completion is refused."""
    created_ms: int = 0
    due_ms: int | None = None
    follow_up_ms: int | None = None
    priority: int = 50
    form: str = ""
    topic: str = ""
    inputs: Mapping[str, object] = field(default_factory=dict)
    retries: str = ""
    """Jobs: the element's policy (`gobpm_ray.calendar.retries`)."""
    failures: int = 0
    """Jobs: attempts that failed and are to be repeated."""
    cause: str = ""
    """Jobs: of the last of these."""
    process_version: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A job that a worker has fetched and locked; every report of it names the lock."""

    id: str
    """`instance id/wait id`: the same for every attempt, so it serves as an idempotency key."""
    instance_id: str
    process_id: str
    process_version: int
    node: str
    topic: str
    lock: str
    until_ms: int
    """When the lock ends unless it is extended, by the store's own clock."""
    created_ms: int = 0
    failures: int = 0
    """Attempts before this one that failed."""
    cause: str = ""
    """Of the last of these."""
    name: str = ""
    retries: str = ""
    inputs: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Secrets included: whoever logs a job does not log them."""
    secrets: tuple[str, ...] = ()
    """Names of inputs that are secret."""

    @property
    def attempt(self) -> int:
        return self.failures + 1


@dataclass(frozen=True, slots=True)
class TokenView:
    """Where an instance stands: a node, and why it is there (ready, waiting, working, incident, joining ...)."""

    node: str
    state: str


@dataclass(frozen=True, slots=True)
class WaitView:
    """One armed wait."""

    id: str
    node: str
    kind: str
    """timer | message | signal | task | job | incident; unkeyed: for a message whose correlation is not known yet"""
    deadline_ms: int | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class IncidentView:
    """A track that cannot go on by itself; `retry` or `resolve` it by instance and node."""

    instance_id: str
    node: str
    cause: str
    code: str = "failure"
    at_ms: int = 0
    process_id: str = ""
    wait: str = ""
    """Names this incident and no other, for ever; '' for one of the whole instance."""
    stack: str = ""
    """Where in the code it happened, if that is known."""
    attempts: tuple[HistoryView, ...] = ()
    """Those that failed or were cut off at this element, as long as the history keeps them."""
    data: Mapping[str, object] = field(default_factory=dict)
    """What the failed element was given: mapped inputs as they were, without a mapping what it sees now."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What became of many incidents."""

    matched: int
    done: tuple[str, ...] = ()
    """Instances, once for each incident."""
    refused: tuple[tuple[str, str], ...] = ()
    """(instance, why)"""


@dataclass(frozen=True, slots=True)
class HistoryView:
    """One line of an instance's history; `event` as in `gobpm_ray.core.step.HistoryEntry`."""

    event: str
    at_ms: int
    node: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DataStoreView:
    """What a data store of the engine holds, and what is declared of it."""

    name: str
    version: int
    """Another one for every write; 0: nobody has written it."""
    written_ms: int
    """Business time."""
    written_by: str
    """The instance; '' : an operator, or nobody."""
    bytes: int
    hidden: bool
    """There is a secret in it: `value` is never shown."""
    capacity: int
    type: str
    declared_by: str
    """The process that declares it, of several the one deployed last; '' : none."""
    value: object = None
    """Of `data_store` alone."""


@dataclass(frozen=True, slots=True)
class InstanceView:
    """Everything about one instance at one moment."""

    instance_id: str
    process_id: str
    version: int
    state: InstanceStatus
    business_key: str = ""
    resident: bool = False
    """An actor hosts it now; False: it is a record in the store and nothing else."""
    created_ms: int = 0
    tokens: tuple[TokenView, ...] = ()
    variables: Mapping[str, object] = field(default_factory=dict)
    """Of the root scope."""
    waits: tuple[WaitView, ...] = ()
    incidents: tuple[IncidentView, ...] = ()
    history: tuple[HistoryView, ...] = ()
    moving: bool = False
    """Something of it is ready, delivered or in work; False: only an outside trigger or a deadline moves it on."""
    started_by: str = ""
    """The delivery that started it; `instance:track:node:visit` when another instance's throw or call did."""
    caller: str = ""
    """The instance whose call activity called it."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def trace(self) -> tuple[str, ...]:
        """Flow nodes, once per completion, in order; as long as the history keeps them."""
        return tuple(entry.node for entry in self.history if entry.event == "node")


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the engine's bounded stream of what happened: names and counts, never a payload (D14)."""

    id: str
    """Its place in the stream: ask for what comes `after` it."""
    fact: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Top:
    """The engine at a glance. Living InstanceActors = those that host a resident + free + spares (promise 7)."""

    resident: int
    free: int
    spares: int
    ready: int
    oldest_ready_ms: int
    waiting: int
    due: int
    pending: Mapping[str, int]
    parked: int
    incidents: int
    actors: int
    dead: int = 0
    """Dead letters: accepted, and set aside."""
    signals: Mapping[str, int] = field(default_factory=dict)
    """Reliability signals (N12): what the engine's processes have counted since it was first started."""


def plain(value: object) -> object:
    """The value as ordinary JSON, for people and programs that read it: what JSON lacks becomes ISO or plain text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # JSON has no infinity, and many of its readers stop at one.
        return value if isfinite(value) else str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return _scalar(value)


def _scalar(value: object) -> object:
    match value:
        case Enum():
            return plain(value.value)
        case Decimal():
            return int(value) if value == value.to_integral_value() and abs(value) < 2**53 else plain(float(value))
        case datetime() | date() | time():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return _duration_text(value)
        case bytes():
            return base64.b64encode(value).decode()
        case UUID():
            return str(value)
        case _:
            return str(value)


def _duration_text(value: timedelta) -> str:
    seconds = value.seconds + value.microseconds / 1_000_000
    clock = f"T{seconds:g}S" if seconds else ""
    return f"P{value.days}D{clock}" if value.days else f"P{clock or 'T0S'}"


def moment_text(ms: int | None) -> str | None:
    """`2026-01-08T00:00:00Z`, with a fraction only where there is one."""
    if ms is None:
        return None
    seconds, rest = divmod(ms, 1_000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:03d}Z" if rest else f"{text}Z"
