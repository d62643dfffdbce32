"""Start events: a token begins here and passes at once.

The start event of an event sub-process that could not be armed is the exception: a token stands for it in the scope
that should listen (`gobpm_ray.core.listening`), and a retry arms it. So is a parallel multiple one that begins a
process: the instance begins with the first of its events, and the token waits here for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.arming import arm_definitions, occurred
from gobpm_ray.core.faults import NEVER_FIRES, Fault
from gobpm_ray.core.listening import listen_for, stands_outside
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.state import TrackState
from gobpm_ray.errors import BrokenInvariant, GobpmError

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track
    from gobpm_ray.core.step import Trigger


class Start(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        if stands_outside(run, track, node):
            listen_for(run, run.state.scope(track.scope), node)
            run.end(track)
        elif _collects(track, node):
            _await_others(run, track, node, dict(track.local or {}))
        else:
            run.complete(track, node, {})

    def fire(self, run: Run, track: Track, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        track.wakes += 1
        values = occurred(run, track, node, wait, trigger.values)
        run.changed.add(f"t{track.id}")
        if values is not None:
            run.complete(track, node, values)

    def retry(self, run: Run, track: Track, node: ProgramNode) -> None:
        if _collects(track, node):
            run.enqueue(track)  # what its first event brought stays
        else:
            run.revisit(track)

    def dehydratable(self, park: Park) -> bool:
        return park.far()

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        if stands_outside(run, track, node):
            run.assign(track.scope, values)
            run.end(track)
        else:
            run.complete(track, node, {**(track.local or {}), **values})


def collect(run: Run, root: Scope, node: ProgramNode, first: int, values: dict[str, object]) -> None:
    """The instance begins with the first event of this parallel multiple start event; the token awaits the others."""
    track = run.new_track(root, node.id, flow=str(first))
    run.number_visit(track)
    _await_others(run, track, node, values)


def _await_others(run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
    # The keys of the others are read from what the first one brought, which is bound with the last one's.
    track.local = values
    track.state = TrackState.WAITING
    run.changed.add(f"t{track.id}")
    try:
        if not arm_definitions(run, track, node, met=int(track.flow)):
            raise Fault(NEVER_FIRES, f"the timer of '{node.id}' has no occurrence: the token would wait for ever")
    except BrokenInvariant:
        raise
    except GobpmError as error:
        run.abandon(track)
        track.local = values
        run.incident(track, error)
        return
    for armed in track.waits.values():
        armed.gathered = values


def _collects(track: Track, node: ProgramNode) -> bool:
    return node.gathers and track.flow.isdecimal()
