"""Intermediate catch events and receive tasks: the token parks until one of its definitions is met.

As arms of an event-based gateway the same nodes are waited for by a token that stands at the gateway; when one is met,
the token passes the gateway and completes here, without ever having entered.
"""

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
    from gobpm_ray.core.step import Trigger


class Catch(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        track.state = TrackState.WAITING
        races = f"{track.id}:{track.visit}" if len(node.definitions) > 1 else run.race_group(track, node)
        if not arm_definitions(run, track, node, races):
            raise Fault(NEVER_FIRES, f"the timer of '{node.id}' has no occurrence: the token would wait for ever")

    def fire(self, run: Run, track: Track, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        track.wakes += 1
        if track.node != node.id:
            gateway = run.node(track)
            run.record("node", gateway.id)
            run.place(track, node.id, next(flow.id for flow in gateway.outgoing if flow.target == node.id))
        run.complete(track, node, trigger.values)

    def dehydratable(self, park: Park) -> bool:
        return park.far()
