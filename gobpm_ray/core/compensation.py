"""Compensation: the ledger of what was completed, and the sweep that undoes it in reverse order (BPMN 13.5.5).

An activity that has a compensation handler is entered into its scope's ledger each time it completes, with what was
visible then; a completed sub-process keeps the ledger of its inside. A throw moves what it is about from the ledger
into the throwing token's own queue (`Track.sweep`), so each completion is undone once and what completes later is not
part of it. The token then hosts one handler after the other, each in a scope of its own whose variables are the
frozen snapshot. Queue and host are durable parts like any other: a crash in the middle goes on with the handler that
it cut off (A78).

How a completed sub-process is undone: by the handler at its border; else by its compensation event sub-process, for
whose throws its ledger is there; else by undoing what was completed inside, last first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.core.listening import begin
from gobpm_ray.core.operands import Cancel, Compensate
from gobpm_ray.core.state import Completion, Scope, Track, TrackState
from gobpm_ray.core.variables import merged
from gobpm_ray.model.elements import BoundaryEvent, SubProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run


def book(run: Run, track: Track, node: ProgramNode) -> None:
    """The activity that the token has just completed is in the ledger, if there is anything to undo."""
    inside = list(run.state.scope(track.child).ledger) if track.child else []
    if not (node.compensation or inside or node.id in run.program.undoers):
        return
    scope = run.state.scope(track.scope)
    if track.round:
        scope = run.state.scope(scope.parent)  # a round's scope ends with it
    values: dict[str, object] = {}
    if node.compensation:
        values = merged(run.state, track)
    elif track.child:
        values = dict(run.state.scope(track.child).variables)
    scope.ledger.append(Completion(node.id, node.compensation, values, inside))
    run.changed.add(f"s{scope.id}")


def collect(run: Run, track: Track, activity: str) -> list[Completion]:
    """What a throw by this token is about, taken out of the ledgers: of its scope, and, inside an event sub-process, of
    the scope that this one belongs to. `activity` '': everything there."""
    found: list[Completion] = []
    for scope in _reachable(run, run.state.scope(track.scope)):
        taken = [entry for entry in scope.ledger if not activity or entry.activity == activity]
        if taken:
            scope.ledger = [entry for entry in scope.ledger if activity and entry.activity != activity]
            run.changed.add(f"s{scope.id}")
            found = taken + found
    return found


def start_sweep(run: Run, track: Track, completions: list[Completion]) -> bool:
    """The token undoes these, the last first. False: there is nothing to undo."""
    track.sweep = completions
    run.changed.add(f"t{track.id}")
    return next_handler(run, track)


def next_handler(run: Run, track: Track) -> bool:
    """The token hosts the next handler of its sweep. False: the sweep is done."""
    run.close_inside(track)
    while track.sweep:
        entry = track.sweep.pop()
        run.changed.add(f"t{track.id}")
        if entry.boundary:
            boundary = run.nodes[entry.boundary]
            run.record("node", boundary.id)
            scope = _host(run, track, track.node, entry.values)
            scope.frozen = True
            run.enqueue(run.new_track(scope, cast(BoundaryEvent, boundary.element).handler))
            return True
        if (start := run.program.undoers.get(entry.activity)) is not None:
            # The sub-process's scope once more, for its handler alone.
            scope = _host(run, track, entry.activity, entry.values)
            scope.interrupted = True
            scope.ledger = entry.inside
            begin(run, scope, run.nodes[start], {})
            return True
        track.sweep.extend(entry.inside)
    return False


def thrown(node: ProgramNode) -> Compensate | None:
    """The compensation that the event throws; a cancel undoes everything as it is."""
    if any(isinstance(definition, Cancel) for definition in node.definitions):
        return None
    return next((definition for definition in node.definitions if isinstance(definition, Compensate)), None)


def _host(run: Run, track: Track, node: str, values: dict[str, object]) -> Scope:
    scope = run.open_scope(track, node, dict(values))
    track.child = scope.id
    track.state = TrackState.HOSTING
    return scope


def _reachable(run: Run, scope: Scope) -> Iterator[Scope]:
    yield scope
    while scope.parent:
        node = run.nodes.get(scope.node)
        if node is None or not isinstance(node.element, SubProcess) or node.element.kind != "event":
            return
        scope = run.state.scope(scope.parent)
        yield scope
