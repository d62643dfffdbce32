"""Boundary events: waits over an activity, held by the token that stands in it.

`enter` is called by the run when that token has parked: it arms the boundary. For the guarded activity a boundary's
trigger is absent (promise 4): interrupting, the token leaves the activity without a result and goes on here; otherwise
a new token starts here and the activity does not notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.calendar.timers import rearm
from gobpm_ray.core.arming import arm_definitions, timer_wait
from gobpm_ray.core.nodes.family import Family
from gobpm_ray.core.state import parse_wait_id, wait_id
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
        if cast(BoundaryEvent, node.element).interrupting:
            run.abandon(track)
            track.wakes += 1
            run.place(track, node.id)
            run.complete(track, node, trigger.values)
            return
        if trigger.kind == "timer":
            self._next_occurrence(run, track, node, wait)
        fork = run.new_track(run.state.scope(track.scope), node.id, parent=track.id)
        run.number_visit(fork)
        run.complete(fork, node, trigger.values)

    def _next_occurrence(self, run: Run, track: Track, node: ProgramNode, wait: str) -> None:
        """A cycle goes on as a new wait in the same step; a duration or date never repeats (T41)."""
        fired = track.waits[wait]
        run.withdraw(track, (wait,))
        following = rearm(fired.cycle, fired.anchor, fired.index, run.now) if fired.cycle else None
        if following is not None:
            _, _, index, visit = parse_wait_id(wait)
            armed_in = int(visit.partition("#")[0])
            again = wait_id(track.id, node.id, index, armed_in, following.index)
            run.arm(track, node.id, again, timer_wait(following))
