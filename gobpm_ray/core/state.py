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
    """timer | message | signal | task | job | incident"""
    deadline: int | None = None
    """Absolute, business clock; computed once when armed."""
    cycle: str = ""
    """The cycle's text as evaluated when armed; '' for a date or a duration."""
    anchor: int = 0
    index: int = 0
    """Which occurrence of the cycle this is; its grid is computed from `anchor` (gobpm_ray.calendar.timers)."""
    key: str = ""
    """Canonical key of a message or signal wait, for people and for checks."""


@dataclass(slots=True)
class Attempt:
    """An effect whose intent is (being) committed: the baseline that recovery reads (N10)."""

    number: int = 1
    started: int = 0
    seals: int = 0
    epoch: int = 0
    """Lease epoch in which it was handed out: a later claimer that finds it open knows that its host died."""


@dataclass(slots=True)
class Incident:
    cause: str
    at: int
    code: str = "failure"


@dataclass(slots=True)
class Track:
    id: str
    scope: str
    node: str
    state: TrackState = TrackState.READY
    visit: int = 0
    """Number of this visit of a node, from `Head.visits`: unique in the instance, so wait ids are never reused."""
    flow: str = ""
    """The sequence flow it arrived by."""
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
    attempt: Attempt | None = None
    incident: Incident | None = None


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
    """Parallel join id -> activations, oldest first; each lists the distinct flows that have arrived."""


@dataclass(slots=True)
class Head:
    tracks: int = 0
    """Tracks ever made; the last id."""
    scopes: int = 0
    visits: int = 0
    started: int = 0
    incidents: int = 0
    """Open incidents."""


@dataclass(slots=True)
class InstanceState:
    id: str
    process_id: str
    version: int
    """Of the definition that this instance is pinned to."""
    business_key: str = ""
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
