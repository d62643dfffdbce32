"""What an instance is between two steps: plain values, no behaviour beyond finding each other.

The state is kept in *parts*, so that a wake of one of a thousand parallel waits reads and writes only its own: one
`head`, one part per track, one per scope. A state may therefore be *partial*: it holds the head and the parts that
its triggers touch. Asking for anything else raises `PartsMissing`; the runtime then loads the whole instance and
calls the core again, which is safe because the core is pure.

Tokens are a projection of tracks and joins and never stored. Who sets what: only `gobpm_ray.core.advance` writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

ROOT = "0"
"""Id of the root scope; its node is the process itself."""

OPENED = ""
"""Stands where a flow's id would in `Scope.joins`; no flow is called so."""

SCOPE_OWNER = "@"
"""Stands before a scope's id in the ids of the waits that the scope itself holds; other ids begin with a track's."""


class PartsMissing(Exception):
    """The step needs parts that were not loaded; load the whole instance and call `advance` again."""


class TrackState(StrEnum):
    READY = "ready"
    """It can go on; between two commits no track stays ready."""
    WAITING = "waiting"
    """Everything it waits for stands in `Track.waits`."""
    HOSTING = "hosting"
    """It sits on a sub-process and ends when scope `Track.child` completes."""
    WORKING = "working"
    """An effect was handed out (`Track.attempt`) and has not been reported."""
    FAILED = "incident"
    """`Track.incident` says why; an operator retries or resolves."""


@dataclass(slots=True)
class ArmedWait:
    """One armed wait as the core needs it later: what ends with the track, and how a cycle goes on."""

    kind: str
    """timer | message | signal | task | job | child | conditional | incident; unkeyed: a message that will be waited
    for as soon as one of its correlation properties is known"""
    deadline: int | None = None
    """Absolute, business clock; computed once when armed."""
    cycle: str = ""
    """The cycle's text as evaluated when armed; '' for a date or a duration."""
    anchor: int = 0
    index: int = 0
    """Which occurrence of the cycle this is; its grid is computed from `anchor` (gobpm_ray.calendar.timers). Of a
    conditional wait: 1 while its condition holds, so that it fires only on false -> true."""
    key: str = ""
    """Canonical key of a message or signal wait, for people and for checks."""
    gathered: dict[str, object] | None = None
    """Parallel multiple events: what the definitions that have occurred already brought."""


@dataclass(slots=True)
class Attempt:
    """An effect whose intent is (being) committed: the baseline that recovery reads (N10)."""

    number: int = 1
    started: int = 0
    seals: int = 0
    epoch: int = 0
    """Lease epoch in which it was handed out: a later claimer that finds it open knows that its host died."""


@dataclass(slots=True)
class Rounds:
    """How far an iterating activity, or an ad-hoc sub-process, has come: counters only, kept by the token that sits on
    it, so that its part stays small whatever the number of rounds."""

    total: int
    """Rounds to do; -1: as many as its condition asks for."""
    started: int = 0
    completed: int = 0
    first: int = 0
    """Id of the first round's scope, those of the others follow one by one; 0: each is made when its round begins."""


@dataclass(slots=True)
class Incident:
    cause: str
    at: int
    code: str = "failure"
    stack: str = ""
    """Where in the code it happened, if that is known."""


@dataclass(slots=True)
class Completion:
    """A completed activity that can be compensated: one entry of a scope's ledger."""

    activity: str
    boundary: str = ""
    """The compensation boundary whose handler undoes it; '' for a sub-process that is undone from inside."""
    values: dict[str, object] = field(default_factory=dict)
    """What was visible when it completed; the handler reads this, not what the variables have become since."""
    inside: list[Completion] = field(default_factory=list)
    """A completed sub-process's own ledger."""


@dataclass(slots=True)
class Track:
    id: str
    scope: str
    node: str
    state: TrackState = TrackState.READY
    visit: int = 0
    """Number of this visit of a node, from `Head.visits`: unique in the instance, so wait ids are never reused."""
    flow: str = ""
    """The sequence flow it arrived by. Where a process waits for the rest of the events that begin it: which came
    first (a parallel event-based gateway's flow, the index of a start event's definition)."""
    parent: str = ""
    """The track that forked it; one step of lineage, never a chain (D7)."""
    wakes: int = 0
    """How many triggers have continued it."""
    waits: dict[str, ArmedWait] = field(default_factory=dict)
    """Wait id -> wait: its own, every arm of a gateway, every boundary over it."""
    local: dict[str, object] | None = None
    """Mapped inputs of the activity it is in; None when there is no mapping."""
    child: str = ""
    """The scope it hosts."""
    round: int = 0
    """Which round of its node's iteration it executes, from 1; 0: it is no body of an iteration."""
    rounds: Rounds | None = None
    """Of the token that sits on an iterating activity or an ad-hoc sub-process."""
    attempt: Attempt | None = None
    incident: Incident | None = None
    sweep: list[Completion] = field(default_factory=list)
    """What the compensation that it threw has still to undo, in order of completion: the last is next."""


@dataclass(slots=True)
class Scope:
    id: str
    node: str
    """Process id or sub-process id."""
    parent: str = ""
    host: str = ""
    """The track in the parent scope that sits on the sub-process."""
    depth: int = 0
    live: int = 0
    """Tracks in this scope, those that host a child scope included; it completes at 0 with no join open."""
    variables: dict[str, object] = field(default_factory=dict)
    joins: dict[str, list[list[str]]] = field(default_factory=dict)
    """Join id -> activations, oldest first; each lists the distinct flows that have arrived. A complex gateway's first
    begins with `OPENED` while the rest of an activation that has opened is awaited."""
    waits: dict[str, ArmedWait] = field(default_factory=dict)
    """What its event sub-processes wait for; no token stands there."""
    interrupted: bool = False
    """An interrupting event sub-process, a cancel or a compensation has taken it over: it catches nothing more."""
    frozen: bool = False
    """Its variables are a snapshot: read inside, never written."""
    ledger: list[Completion] = field(default_factory=list)
    """What was completed in it and can be compensated, in order of completion."""


@dataclass(slots=True)
class Head:
    tracks: int = 0
    """Tracks ever made; the last id."""
    scopes: int = 0
    visits: int = 0
    started: int = 0
    incidents: int = 0
    """Open incidents."""
    conditions: int = 0
    """Armed conditional waits. None: a change of data costs nothing. More than are loaded: it needs the rest."""
    keys: dict[str, str] = field(default_factory=dict)
    """Correlation properties that messages have taught it, each set once (M49)."""
    secrets: list[str] = field(default_factory=list)
    """Variables that are secret in this instance, beside those that its process names."""


@dataclass(slots=True)
class InstanceState:
    id: str
    process_id: str
    version: int
    """Of the definition that this instance is pinned to."""
    business_key: str = ""
    caller: str = ""
    """`instance RS wait` of the call activity that called it; '' when nobody did. Set when it is created."""
    head: Head = field(default_factory=Head)
    tracks: dict[str, Track] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    complete: bool = True
    """Every part is here; False: only head, the touched tracks and their scopes up to the root."""

    def track(self, track_id: str) -> Track | None:
        """The track, None if it has ended; PartsMissing if it may exist but was not loaded."""
        track = self.tracks.get(track_id)
        if track is None and not self.complete:
            raise PartsMissing(f"t{track_id}")
        return track

    def scope(self, scope_id: str) -> Scope:
        scope = self.scopes.get(scope_id)
        if scope is None:
            if not self.complete:
                raise PartsMissing(f"s{scope_id}")
            raise KeyError(scope_id)
        return scope

    def holder(self, owner: str) -> Track | Scope | None:
        """Who holds the waits whose ids begin with `owner`: a track, or for `@<id>` a scope; None if it has ended."""
        if not owner.startswith(SCOPE_OWNER):
            return self.track(owner)
        scope = self.scopes.get(owner[1:])
        if scope is None and not self.complete:
            raise PartsMissing(f"s{owner[1:]}")
        return scope

    def tracks_by_scope(self) -> dict[str, list[Track]]:
        """The live tracks of every scope, oldest first; needs the whole instance."""
        if not self.complete:
            raise PartsMissing("tracks")
        found: dict[str, list[Track]] = {}
        for track in self.tracks.values():
            found.setdefault(track.scope, []).append(track)
        return found

    def holders(self) -> list[Track | Scope]:
        """All that can hold waits, of what is loaded: the scopes, outermost first, then the tracks, oldest first."""
        return [*sorted(self.scopes.values(), key=lambda scope: int(scope.id)), *self.tracks.values()]

    def tracks_in(self, scope_id: str) -> list[Track]:
        """The live tracks directly in a scope, oldest first; needs the whole instance."""
        if not self.complete:
            raise PartsMissing(f"tracks of s{scope_id}")
        return [track for track in self.tracks.values() if track.scope == scope_id]

    def chain(self, scope_id: str) -> Iterator[Scope]:
        """The scope and its ancestors, innermost first."""
        while scope_id:
            scope = self.scope(scope_id)
            yield scope
            scope_id = scope.parent


def wait_id(track: str, node: str, index: int | str, visit: int, occurrence: int = 0) -> str:
    """`track:node:index:visit[#occurrence]`: a stable model path, never an object's id, never reused."""
    suffix = f"#{occurrence}" if occurrence else ""
    return f"{track}:{node}:{index}:{visit}{suffix}"


def parse_wait_id(wait: str) -> tuple[str, str, str, str]:
    """(track, node, index, visit) of a wait id; a node id may itself contain colons."""
    track, _, rest = wait.partition(":")
    rest, _, visit = rest.rpartition(":")
    node, _, index = rest.rpartition(":")
    return track, node, index, visit
