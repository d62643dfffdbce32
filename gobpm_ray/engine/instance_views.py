"""From a stored record to what a caller sees of an instance."""

from __future__ import annotations

from gobpm_ray.checkpoint.parts import decode
from gobpm_ray.checkpoint.rows import read_history_entry
from gobpm_ray.core import projection
from gobpm_ray.core.program import Program
from gobpm_ray.core.secrets import Veil, veil_of_state
from gobpm_ray.core.state import InstanceState
from gobpm_ray.engine.views import HistoryView, IncidentView, InstanceStatus, InstanceView, TokenView, WaitView
from gobpm_ray.runtime.ports import InstanceRecord

_ENDED = ("completed", "terminated")
_AT_WORK = ("working",)


def instance_view(record: InstanceRecord, program: Program) -> InstanceView:
    """Everything about the instance; an ended one keeps its variables and history, and stands nowhere."""
    state = state_of(record)
    ended = record.status in _ENDED
    tokens = () if ended else tuple(TokenView(t.node, t.state) for t in projection.tokens(program, state))
    history = history_of(record)
    veil = veil_of_state(program.process, state)
    incidents = () if ended else (*_held(record, history), *_incidents(record, state, history, veil))
    moving = not ended and (bool(record.inbox) or any(token.state in _AT_WORK for token in tokens) or not state.scopes)
    return InstanceView(
        instance_id=record.instance_id,
        process_id=record.process_id,
        version=record.process_version,
        state="incident" if record.held_at else _status(record.status, bool(incidents), moving),
        business_key=record.business_key,
        resident=record.resident,
        created_ms=record.created,
        tokens=tokens,
        variables=veil.values(projection.variables(state)),
        waits=() if ended else _waits(record),
        incidents=incidents,
        history=history,
        moving=moving,
        started_by=next((entry.detail for entry in history if entry.event == "started"), ""),
        caller=record.caller.partition("\x1e")[0],
    )


def history_of(record: InstanceRecord) -> tuple[HistoryView, ...]:
    return tuple(HistoryView(e.event, e.at, e.node, e.detail) for e in map(read_history_entry, record.history))


def _held(record: InstanceRecord, history: tuple[HistoryView, ...]) -> tuple[IncidentView, ...]:
    """The incident of the whole instance, whose hosts died silently (N9) or which grew too large: it has no node."""
    if not record.held_at:
        return ()
    told = (entry.detail for entry in reversed(history) if entry.event == "incident" and not entry.node)
    cause = next(told, "its hosts died without a word")
    code = "too_large" if "(max_instance)" in cause else "silent_deaths"
    return (IncidentView(record.instance_id, "", cause, code, record.held_at, process_id=record.process_id),)


def state_of(record: InstanceRecord) -> InstanceState:
    state = decode(
        record.instance_id, record.process_id, record.process_version, record.business_key, record.parts, True
    )
    state.caller = record.caller
    return state


def incident_waits(record: InstanceRecord, node: str = "") -> list[str]:
    """Wait ids of the open incidents (at one node, if named), oldest first: what a retry or resolve is addressed to."""
    if record.status in _ENDED:
        return []
    found = [i for i in projection.open_incidents(state_of(record)) if not node or i.node == node]
    return [incident.wait for incident in sorted(found, key=lambda i: i.at)]


def _status(stored: str, failed: bool, moving: bool) -> InstanceStatus:
    match stored:
        case "completed" | "terminated" | "suspended":
            return stored
    if failed:
        return "incident"
    return "running" if moving else "waiting"


def _incidents(
    record: InstanceRecord, state: InstanceState, history: tuple[HistoryView, ...], veil: Veil
) -> tuple[IncidentView, ...]:
    return tuple(
        IncidentView(
            record.instance_id,
            incident.node,
            veil.text(incident.cause),
            incident.code,
            incident.at,
            process_id=record.process_id,
            wait=incident.wait,
            stack=veil.text(incident.stack),
            attempts=tuple(e for e in history if e.node == incident.node and e.event in ("failed", "sealed")),
            data=veil.values(incident.data),
        )
        for incident in projection.open_incidents(state)
    )


def _waits(record: InstanceRecord) -> tuple[WaitView, ...]:
    """As the store holds them, oldest first: what a trigger can be for."""
    found = []
    for wait, (kind, node, key, deadline, *_, seq) in record.waits.items():
        # A timer always has a deadline, if only the epoch; of other waits 0 says that there is none.
        due = int(deadline or 0)
        found.append((int(seq), WaitView(wait, node, kind, due if kind == "timer" else due or None, key)))
    return tuple(view for _, view in sorted(found, key=lambda pair: pair[0]))
