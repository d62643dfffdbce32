"""Boundary events: waits over an activity, held by the token that stands in it.

`enter` is called by the run when that token has parked: it arms the boundary. For the guarded activity a boundary's
trigger is absent (promise 4): interrupting, the token leaves the activity without a result and goes on here; otherwise
a new token starts here and the activity does not notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.core.arming import arm_definitions, arm_next, occurred
from gobpm_ray.core.nodes.family import Family
from gobpm_ray.model.elements import BoundaryEvent

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track
    from gobpm_ray.core.step import Trigger


class Boundary(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        interrupting = cast(BoundaryEvent, node.element).interrupting
        # A cycle without an occurrence (R0) arms nothing: the activity waits on without this boundary.
        arm_definitions(run, track, node, f"{track.id}:{track.visit}" if interrupting else "", repeat=not interrupting)

    def fire(self, run: Run, track: Track, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        values = occurred(run, track, node, wait, trigger.values)
        if values is None:
            return
        if cast(BoundaryEvent, node.element).interrupting:
            run.leave_by(track, node, values)
            return
        if node.gathers:
            # Its waits were armed on the token's own visit; an occurrence of its own keeps the new ones apart.
            run.state.head.visits += 1
            arm_definitions(run, track, node, occurrence=run.state.head.visits)
        elif trigger.kind == "timer":
            arm_next(run, track, node, wait)
        run.fork_at(track, node, values)
