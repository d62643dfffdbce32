"""The checkpoint document, in parts: `h` the head, `t<track>` and `s<scope>`; each a small versioned JSON object.

Field names are one letter and defaults are left out, because a waiting instance is nothing but these bytes. Every part
may carry its schema version `v`; left out it is 1, and the head always says it. Readers accept every older schema and
refuse newer ones loudly (D20). It knows the document's shape; it refuses to know who stores it, and when.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gobpm_ray.checkpoint.codec import restored, storable, write
from gobpm_ray.core.state import (
    ArmedWait,
    Attempt,
    Completion,
    Head,
    Incident,
    InstanceState,
    Rounds,
    Scope,
    Track,
    TrackState,
)
from gobpm_ray.errors import BrokenInvariant, CorruptCheckpoint, InvalidPayload, NewerSchema

SCHEMA = 1
"""What this release writes. A change of meaning raises it; a new field with a default does not."""

_WAITING = "w"
_STATES = {
    TrackState.READY: "r",
    TrackState.WAITING: _WAITING,
    TrackState.HOSTING: "h",
    TrackState.WORKING: "e",
    TrackState.FAILED: "i",
}
_STATE_OF = {letter: state for state, letter in _STATES.items()}

Wait = Annotated[list[Any], Field(min_length=1, max_length=7)]
"""[kind, deadline, key, cycle, anchor, index, gathered], trailing defaults left out."""
_WAIT_DEFAULTS: tuple[Any, ...] = (None, "", "", 0, 0, None)

Entry = Annotated[list[Any], Field(min_length=4, max_length=4)]
"""One completion of a ledger or a sweep: [activity, boundary, values, inside]."""


class _Document(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore", frozen=True)
    v: int = 1


class HeadDocument(_Document):
    t: int = 0
    """tracks ever made"""
    s: int = 0
    """scopes ever made"""
    i: int = 0
    """visits"""
    b: int = 0
    """begun, ms"""
    n: int = 0
    """open incidents"""
    w: int = 0
    """Tracks whose effect is handed out: a claim of some parts sees by it that others need recovery."""
    c: int = 0
    """armed conditions"""
    k: dict[str, str] = Field(default_factory=dict)
    """learnt correlation properties"""
    x: list[str] = Field(default_factory=list)
    """secret variables"""


class ScopeDocument(_Document):
    n: str
    """node"""
    p: str = ""
    """parent scope"""
    h: str = ""
    """host track"""
    d: int = 0
    """depth"""
    l: int = 0  # noqa: E741
    """live tracks"""
    x: dict[str, Any] = Field(default_factory=dict)
    """variables"""
    j: dict[str, list[list[str]]] = Field(default_factory=dict)
    """joins"""
    w: dict[str, Wait] = Field(default_factory=dict)
    """waits of its event sub-processes"""
    k: list[Entry] = Field(default_factory=list)
    """ledger"""
    f: int = 0
    """1: interrupted, 2: frozen, 3: both"""


class TrackDocument(_Document):
    s: str = "0"
    """scope"""
    n: str
    """node"""
    a: str = _WAITING
    """state"""
    i: int = 0
    """visit"""
    f: str = ""
    """flow"""
    p: str = ""
    """parent track"""
    k: int = 0
    """wakes"""
    w: dict[str, Wait] = Field(default_factory=dict)
    """waits"""
    x: dict[str, Any] | None = None
    """local variables"""
    c: str = ""
    """child scope"""
    e: tuple[int, int, int, int] | None = None
    """attempt: number, started, seals, epoch"""
    o: tuple[str, int, str] | None = None
    """incident: cause, at, code"""
    b: str = ""
    """incident: stack"""
    r: int = 0
    """round"""
    m: tuple[int, int, int, int] | None = None
    """rounds: total, started, completed, first scope"""
    q: list[Entry] = Field(default_factory=list)
    """sweep"""


def encode_part(state: InstanceState, name: str, working: int = 0) -> bytes:
    """One part of the state as bytes. `working`: open effects of the whole instance, kept in the head.

    Raises UnstorableValue, naming scope and variable."""
    if name == "h":
        return _head(state.head, working)
    if name[:1] == "t" and (track := state.tracks.get(name[1:])) is not None:
        return _track(state.id, track)
    if name[:1] == "s" and (scope := state.scopes.get(name[1:])) is not None:
        return _scope(state.id, scope)
    raise BrokenInvariant(f"instance {state.id}: the step names a part {name!r} that the state does not have")


def decode(
    instance_id: str,
    process_id: str,
    version: int,
    business_key: str,
    parts: Mapping[str, bytes],
    complete: bool,
) -> InstanceState:
    """The state that the parts describe; without any part, an instance that has not begun.

    Raises CorruptCheckpoint naming instance and part (A79), NewerSchema naming both versions (D20)."""
    return decode_with_working(instance_id, process_id, version, business_key, parts, complete)[0]


def decode_with_working(
    instance_id: str,
    process_id: str,
    version: int,
    business_key: str,
    parts: Mapping[str, bytes],
    complete: bool,
) -> tuple[InstanceState, int]:
    """`decode`, and how many effects of the whole instance were handed out and not reported."""
    state = InstanceState(instance_id, process_id, version, business_key, complete=complete)
    if not parts:
        return state, 0
    if "h" not in parts:
        raise CorruptCheckpoint(f"instance {instance_id}: its checkpoint has no part 'h'")
    working = 0
    for name, data in parts.items():
        if name == "h":
            head = _read(HeadDocument, instance_id, name, data)
            state.head = Head(head.t, head.s, head.i, head.b, head.n, head.c, head.k, head.x)
            working = head.w
        elif name[:1] == "t":
            state.tracks[name[1:]] = _track_of(instance_id, name, data)
        elif name[:1] == "s":
            state.scopes[name[1:]] = _scope_of(instance_id, name, data)
        else:
            raise CorruptCheckpoint(f"instance {instance_id}: its checkpoint has an unknown part {name!r}")
    if len(state.tracks) > 1:
        # Parts come in no order; tracks are asked for oldest first.
        state.tracks = dict(sorted(state.tracks.items(), key=lambda item: _age(item[0])))
    return state, working


def _age(track_id: str) -> tuple[int, str]:
    return (int(track_id), "") if track_id.isdigit() else (0, track_id)


# --- writing: defaults are left out by hand, because this is done for every part of every wake


def _head(head: Head, working: int) -> bytes:
    document: dict[str, Any] = {"v": SCHEMA, "t": head.tracks, "i": head.visits, "b": head.started}
    if head.scopes:
        document["s"] = head.scopes
    if head.incidents:
        document["n"] = head.incidents
    if working:
        document["w"] = working
    if head.conditions:
        document["c"] = head.conditions
    if head.keys:
        document["k"] = head.keys
    if head.secrets:
        document["x"] = head.secrets
    return write(document)


def _scope(instance_id: str, scope: Scope) -> bytes:
    where = f"instance {instance_id}: scope '{scope.node}' variable"
    document: dict[str, Any] = {"n": scope.node}
    if scope.parent:
        document["p"] = scope.parent
    if scope.host:
        document["h"] = scope.host
    if scope.depth:
        document["d"] = scope.depth
    if scope.live:
        document["l"] = scope.live
    if scope.variables:
        document["x"] = storable(scope.variables, where)
    if scope.joins:
        document["j"] = scope.joins
    if scope.waits:
        document["w"] = {wait: _wait(armed, where) for wait, armed in scope.waits.items()}
    if scope.ledger:
        document["k"] = _entries(scope.ledger, where)
    if scope.interrupted or scope.frozen:
        document["f"] = scope.interrupted + 2 * scope.frozen
    return write(document, where)


def _track(instance_id: str, track: Track) -> bytes:
    where = f"instance {instance_id}: scope of '{track.node}' variable"
    document: dict[str, Any] = {"n": track.node}
    if track.scope != "0":
        document["s"] = track.scope
    state = _STATES[track.state]
    if state != _WAITING:
        document["a"] = state
    if track.visit:
        document["i"] = track.visit
    if track.flow:
        document["f"] = track.flow
    if track.parent:
        document["p"] = track.parent
    if track.wakes:
        document["k"] = track.wakes
    if track.waits:
        document["w"] = {wait: _wait(armed, where) for wait, armed in track.waits.items()}
    if track.local is not None:
        document["x"] = storable(track.local, where)
    if track.child:
        document["c"] = track.child
    if (attempt := track.attempt) is not None:
        document["e"] = (attempt.number, attempt.started, attempt.seals, attempt.epoch)
    if (incident := track.incident) is not None:
        document["o"] = (_encodable(incident.cause), incident.at, incident.code)
        if incident.stack:
            document["b"] = _encodable(incident.stack)
    if track.round:
        document["r"] = track.round
    if (rounds := track.rounds) is not None:
        document["m"] = (rounds.total, rounds.started, rounds.completed, rounds.first)
    if track.sweep:
        document["q"] = _entries(track.sweep, where)
    return write(document, where)


def _entries(completions: list[Completion], where: str) -> list[object]:
    return [
        [entry.activity, entry.boundary, storable(entry.values, where), _entries(entry.inside, where)]
        for entry in completions
    ]


def _wait(wait: ArmedWait, where: str) -> list[object]:
    gathered = None if wait.gathered is None else storable(wait.gathered, where)
    fields: list[object] = [wait.kind, wait.deadline, wait.key, wait.cycle, wait.anchor, wait.index, gathered]
    while len(fields) > 1 and fields[-1] == _WAIT_DEFAULTS[len(fields) - 2]:
        fields.pop()
    return fields


def _encodable(text: str) -> str:
    """A cause may quote the very text that cannot be stored; it must be storable itself."""
    return text.encode(errors="replace").decode()


# --- reading

D = TypeVar("D", bound=_Document)


def _read(document: type[D], instance_id: str, name: str, data: bytes) -> D:
    try:
        found = document.model_validate_json(data)
    except ValidationError as error:
        # A newer release may have changed the shape as well: its number is the better answer.
        _refuse_newer(instance_id, name, _version_of(data))
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        what = f"{where}: {first['msg']}" if where else first["msg"]
        raise _damaged(instance_id, name, what) from error
    if found.v != SCHEMA:
        _refuse_newer(instance_id, name, found.v)
    return found


def _damaged(instance_id: str, name: str, what: str) -> CorruptCheckpoint:
    return CorruptCheckpoint(f"instance {instance_id}: part '{name}' of its checkpoint is damaged: {what}")


def _refuse_newer(instance_id: str, name: str, version: int) -> None:
    if version > SCHEMA:
        raise NewerSchema(
            f"instance {instance_id}: part '{name}' of its checkpoint has schema {version}, this release reads up to "
            f"{SCHEMA}; upgrade this node"
        )


def _version_of(data: bytes) -> int:
    try:
        return _Document.model_validate_json(data).v
    except ValidationError:
        return 0


def _track_of(instance_id: str, name: str, data: bytes) -> Track:
    document = _read(TrackDocument, instance_id, name, data)
    state = _STATE_OF.get(document.a)
    if state is None:
        raise _damaged(instance_id, name, f"unknown state {document.a!r}")
    try:
        waits = {wait: _wait_of(fields, data) for wait, fields in document.w.items()}
        sweep = _entries_of(document.q, data)
        local = None if document.x is None else restored(document.x, data, "local variables")
    except (ValueError, TypeError, InvalidPayload) as error:
        raise _damaged(instance_id, name, str(error)) from error
    return Track(
        id=name[1:],
        scope=document.s,
        node=document.n,
        state=state,
        visit=document.i,
        flow=document.f,
        parent=document.p,
        wakes=document.k,
        waits=waits,
        local=local,
        child=document.c,
        attempt=None if document.e is None else Attempt(*document.e),
        incident=None if document.o is None else Incident(*document.o, document.b),
        round=document.r,
        rounds=None if document.m is None else Rounds(*document.m),
        sweep=sweep,
    )


def _scope_of(instance_id: str, name: str, data: bytes) -> Scope:
    document = _read(ScopeDocument, instance_id, name, data)
    try:
        variables = restored(document.x, data, "variables")
        waits = {wait: _wait_of(fields, data) for wait, fields in document.w.items()}
        ledger = _entries_of(document.k, data)
    except (ValueError, TypeError, InvalidPayload) as error:
        raise _damaged(instance_id, name, str(error)) from error
    return Scope(
        id=name[1:],
        node=document.n,
        parent=document.p,
        host=document.h,
        depth=document.d,
        live=document.l,
        variables=variables,
        joins=document.j,
        waits=waits,
        interrupted=bool(document.f & 1),
        frozen=bool(document.f & 2),
        ledger=ledger,
    )


def _entries_of(entries: list[list[Any]], data: bytes) -> list[Completion]:
    found = []
    for activity, boundary, values, inside in entries:
        if [type(field) for field in (activity, boundary, values, inside)] != [str, str, dict, list]:
            raise ValueError(f"a completion reads {activity!r:.80}")
        restored_values = restored(values, data, "values at completion")
        found.append(Completion(activity, boundary, restored_values, _entries_of(inside, data)))
    return found


def _wait_of(fields: list[Any], data: bytes) -> ArmedWait:
    kind, deadline, key, cycle, anchor, index, gathered = (*fields, *_WAIT_DEFAULTS[len(fields) - 1 :])
    if type(kind) is not str or type(deadline) not in (int, NoneType) or type(gathered) not in (dict, NoneType):
        raise ValueError(f"a wait reads {fields!r:.80}")
    if gathered is not None:
        gathered = restored(gathered, data, "gathered values")
    return ArmedWait(kind, deadline, cycle, anchor, index, key, gathered)
