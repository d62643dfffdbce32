"""Event-based gateways: the gateway is the wait, its arms are the events behind it, and the first one wins (D5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.arming import arm_definitions
from gobpm_ray.core.faults import NEVER_FIRES, Fault
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.state import TrackState

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track


class EventGateway(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        track.state = TrackState.WAITING
        group = f"{track.id}:{track.visit}"
        for flow in node.outgoing:
            if not arm_definitions(run, track, run.nodes[flow.target], group):
                raise Fault(NEVER_FIRES, f"the timer of '{flow.target}', an arm of '{node.id}', has no occurrence")

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        """No arm has won, so there is no way past: the values become variables, and the arms are armed again."""
        run.assign(track.scope, values)
        run.revisit(track)

    def dehydratable(self, park: Park) -> bool:
        return True
