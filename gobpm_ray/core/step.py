"""What goes into a step of the core and what comes out: triggers in; arms, withdrawals, sends, effects, history out.

Frozen values; the runtime turns a `Step` into one commit of the store. Nothing here knows a store's row format.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gobpm_ray.core.state import InstanceState

TriggerKind = Literal[
    "start",
    "timer",
    "message",
    "signal",
    "task",
    "job",
    "error",
    "escalation",
    "child",
    "done",
    "failed",
    "lacking",
    "retry",
    "resolve",
    "cancel",
    "set",
    "conditional",
]
"""`task` and `job`: completions from outside. `done` and `failed`: the report of an effect that this host ran itself,
`lacking` that it cannot begin yet; they never pass the store's inbox. `retry` and `resolve` are addressed to an
incident's wait; `cancel` and `set` to the instance. `conditional` is made by the core itself, when a change of
data has made a condition true."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """One thing that happened to an instance. Matching has been done: `wait` names what it is for."""

    id: str
    """Delivery id; unique."""
    kind: TriggerKind
    wait: str = ""
    """The wait it satisfied; '' when addressed to the instance (start, cancel, set); for done and failed the
    track's effect key `track:node:visit`."""
    seq: int = 0
    values: dict[str, object] = field(default_factory=dict)
    """start: variables; message, signal, task, job, done, resolve: outputs; set: variables."""
    node: str = ""
    """start: the start event, '' for the none start; of one that collects several events `event#index`. failed:
    unused."""
    code: str = ""
    """error, escalation: the code, of a job (`wait` is the job's) or of a callable. child: the error code that left the
    called instance, '' when it completed; `cause` "terminated" when it was cancelled."""
    cause: str = ""
    """failed: one line that a person can read."""
    key: str = ""
    """message, and a start by one: its key as it was sent."""
    secrets: tuple[str, ...] = ()
    """Names of values that are marked secret."""


@dataclass(frozen=True, slots=True)
class Arm:
    """A new wait to be held durably. Only new waits are armed; a kept one is never touched (promise 6)."""

    wait: str
    kind: str
    """timer | message | signal | task | job | child | conditional | incident | unkeyed"""
    node: str
    """The element that waits, for people: the catch event, boundary event, task or gateway arm."""
    track: str
    """Who holds it: a track's id, `@<scope>` for an event sub-process's start event."""
    scope: str
    depth: int
    """Nesting depth of the scope: the innermost wait of an instance wins (design section 7, route)."""
    key: str = ""
    """Canonical key (`gobpm_ray.core.keys`) of a message or signal."""
    deadline: int | None = None
    group: str = ""
    """Race group: a trigger for one withdraws all waits of the group at delivery; '' races with nobody."""
    repeat: bool = False
    """A match leaves it armed (non-interrupting message and signal boundaries). Timers never repeat: the core arms
    the next occurrence as a wait of its own."""
    task: TaskRow | None = None
    joins: str = ""
    """A wait that is held already: this one is in the same race as it (`group` if it was in none), and takes the place
    of an unkeyed one."""
    together: tuple[str, ...] = ()
    """Of a process's start by one of several messages that must all come: the names of the others. A key that begins
    the conversation begins it for them too, so that the second message starts no instance of its own."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """What the task holder and the accepting script need of a human task or a job: frozen when it is created."""

    node: str
    name: str = ""
    assignee: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    due: int | None = None
    follow_up: int | None = None
    priority: int = 50
    form: str = ""
    topic: str = ""
    """Jobs only."""
    retries: str = ""
    """Jobs only: the policy, evaluated when the job is created (`gobpm_ray.calendar.retries`)."""
    secrets: tuple[str, ...] = ()
    """Names of inputs that lists do not show."""
    inputs: dict[str, object] = field(default_factory=dict)
    """Mapped inputs, as they were when it was created. Without mappings a person is shown nothing, and a worker gets
    what the task's token saw."""


@dataclass(frozen=True, slots=True)
class Send:
    """Something accepted inside the commit: a throw is an accept (promise 3).

    message, signal: to whoever waits. start: a called instance `to` of `process`; if there is no such process, or the
    calls nest too deep, the caller's `wait` gets a `failed` trigger instead. child: this instance's end, to the wait of
    its caller (`to`, `wait`). escalation: as child, but the called instance goes on. cancel: ends the instance `to`."""

    id: str
    """`instance:track:node:visit[:n]`; of a start, also the new instance's id."""
    kind: Literal["message", "signal", "start", "child", "escalation", "cancel"]
    name: str = ""
    key: str = ""
    """Canonical key of a message or signal."""
    values: dict[str, object] = field(default_factory=dict)
    ttl: int | None = None
    """Milliseconds; None: the engine's default."""
    to: str = ""
    wait: str = ""
    process: str = ""
    version: int = 0
    """0: the newest. `deployment` bindings are resolved when the caller is compiled."""
    business_key: str = ""
    code: str = ""
    """child, escalation: the error or escalation code."""
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """An effect: call what is registered under `topic` with `inputs`, and report `done` or `failed` with `effect_key`
    as the trigger's wait. The idempotency key handed to the callable is `instance:` + effect_key."""

    effect_key: str
    """`track:node:visit`"""
    track: str
    node: str
    topic: str
    inputs: dict[str, object]
    idempotent: bool
    attempt: int = 1
    timeout: int | None = None
    """Milliseconds that the report is waited for; what comes later does not count."""
    ray: tuple[tuple[str, str], ...] = ()
    """Options of the Ray task that it runs as; empty: it runs in the host."""
    mapped: bool = False
    """Only what output mappings take of the result becomes variables: the rest need not be storable."""


HistoryEvent = Literal[
    "started",
    "woken",
    "node",
    "incident",
    "retried",
    "resolved",
    "set",
    "overtaken",
    "sealed",
    "failed",
    "lacking",
    "uncaught",
    "unreadable",
    "stored",
    "ended",
]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One line of an instance's compact history, newest last."""

    event: HistoryEvent
    at: int
    node: str = ""
    """node: the flow node that completed, once per completion: this is what `trace` lists."""
    detail: str = ""
    """started: the delivery that did it (a throw's names its instance); woken: the trigger's kind; incident: the cause;
    failed: why an attempt failed that is to be repeated; lacking: what it cannot begin for want of;
    uncaught: the escalation that nobody caught; unreadable: why a boundary's or event sub-process's condition could not
    be evaluated after a change of data; stored: the data store that the node wrote; ended: the outcome. Never a
    payload."""


@dataclass(slots=True)
class Step:
    """The outcome of one `advance`: all of it goes into one commit, or none."""

    state: InstanceState
    changed: set[str] = field(default_factory=set)
    """Names of parts to write: `h`, `t<track>`, `s<scope>`."""
    removed: set[str] = field(default_factory=set)
    arms: list[Arm] = field(default_factory=list)
    withdrawals: list[str] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    """Effect keys whose result no longer matters; the host discards (and where it can, stops) them."""
    history: list[HistoryEntry] = field(default_factory=list)
    overtaken: list[Trigger] = field(default_factory=list)
    """Triggers whose wait an earlier one had ended: messages go back to routing, the rest end visibly."""
    reads: set[str] = field(default_factory=set)
    """Data stores whose values something in the step was computed from."""
    writes: dict[str, object] = field(default_factory=dict)
    """Data store -> its new value."""
    learnt: bool = False
    """The instance knows more correlation properties than before (`Head.keys`)."""
    outcome: Literal["", "completed", "terminated"] = ""
    """Set when the instance ended: `terminated` only by cancel (a terminate end completes)."""
