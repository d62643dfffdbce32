"""What people see of an instance: tokens, waits, variables, incidents, computed from the state and never stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gobpm_ray.core.program import Program
from gobpm_ray.core.state import ROOT, InstanceState, TrackState, parse_wait_id

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


def tokens(program: Program, state: InstanceState) -> list[Token]:
    """Every token: one per track, and one per arrival that an open join has absorbed."""
    shown = [Token(track.node, _SHOWN[track.state], track.scope) for track in state.tracks.values()]
    for scope in state.scopes.values():
        for join, activations in scope.joins.items():
            shown.extend(Token(join, "joined", scope.id) for arrived in activations for _ in arrived)
    return shown


def waits(state: InstanceState) -> list[WaitView]:
    """Everything that the instance waits for: own waits, gateway arms, boundaries and incidents."""
    return [
        WaitView(wait, parse_wait_id(wait)[1], armed.kind, armed.deadline, armed.key)
        for track in state.tracks.values()
        for wait, armed in track.waits.items()
    ]


def variables(state: InstanceState) -> dict[str, object]:
    """The root scope's variables; none before the start."""
    return dict(state.scopes[ROOT].variables) if ROOT in state.scopes else {}


def open_incidents(state: InstanceState) -> list[IncidentView]:
    return [
        IncidentView(wait, track.node, track.incident.cause, track.incident.code, track.incident.at)
        for track in state.tracks.values()
        if track.incident is not None
        for wait, armed in track.waits.items()
        if armed.kind == "incident"
    ]
