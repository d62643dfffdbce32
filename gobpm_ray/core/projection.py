"""What people see of an instance: tokens, waits, variables, incidents, computed from the state and never stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gobpm_ray.core.program import Program
from gobpm_ray.core.state import OPENED, ROOT, InstanceState, TrackState, parse_wait_id
from gobpm_ray.core.variables import merged

TokenState = Literal["waiting", "working", "incident", "hosting", "joined"]

_SHOWN: dict[TrackState, TokenState] = {
    TrackState.READY: "working",
    TrackState.WAITING: "waiting",
    TrackState.WORKING: "working",
    TrackState.HOSTING: "hosting",
    TrackState.FAILED: "incident",
}


@dataclass(frozen=True, slots=True)
class Token:
    node: str
    state: TokenState
    scope: str


@dataclass(frozen=True, slots=True)
class WaitView:
    wait: str
    node: str
    kind: str
    deadline: int | None
    key: str


@dataclass(frozen=True, slots=True)
class IncidentView:
    wait: str
    """What a retry or resolve is addressed to."""
    node: str
    cause: str
    code: str
    at: int
    stack: str
    data: dict[str, object]
    """What the failed element was given: mapped inputs as they were, without a mapping what it sees."""


def tokens(program: Program, state: InstanceState) -> list[Token]:
    """Every token: one per track, and one per arrival that an open join has absorbed."""
    shown = [Token(track.node, _SHOWN[track.state], track.scope) for track in state.tracks.values()]
    for scope in state.scopes.values():
        for join, activations in scope.joins.items():
            waiting = [flow for arrived in activations if arrived[0] != OPENED for flow in arrived]
            shown.extend(Token(join, "joined", scope.id) for _ in waiting)
    return shown


def waits(state: InstanceState) -> list[WaitView]:
    """All that the instance waits for: own waits, gateway arms, boundaries, event sub-processes and incidents."""
    return [
        WaitView(wait, parse_wait_id(wait)[1], armed.kind, armed.deadline, armed.key)
        for holder in state.holders()
        for wait, armed in holder.waits.items()
    ]


def variables(state: InstanceState) -> dict[str, object]:
    """The root scope's variables; none before the start."""
    return dict(state.scopes[ROOT].variables) if ROOT in state.scopes else {}


def open_incidents(state: InstanceState) -> list[IncidentView]:
    return [
        IncidentView(
            wait,
            track.node,
            track.incident.cause,
            track.incident.code,
            track.incident.at,
            track.incident.stack,
            dict(track.local) if track.local is not None else merged(state, track),
        )
        for track in state.tracks.values()
        if track.incident is not None
        for wait, armed in track.waits.items()
        if armed.kind == "incident"
    ]
