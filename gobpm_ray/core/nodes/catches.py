"""Intermediate catch events and receive tasks: the token parks until one of its definitions is met.

As arms of an event-based gateway the same nodes are waited for by a token that stands at the gateway; when one is met,
the token passes the gateway and completes here, without ever having entered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.arming import arm_definitions, occurred
from gobpm_ray.core.faults import NEVER_FIRES, Fault
from gobpm_ray.core.nodes.event_gateway import pass_gateway
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.state import TrackState

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track
    from gobpm_ray.core.step import Trigger


class Catch(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        if node.linked:
            # What leads here is the throw of the same name, and nothing is waited for.
            run.complete(track, node, {})
            return
        track.state = TrackState.WAITING
        races = f"{track.id}:{track.visit}" if len(node.definitions) > 1 else run.race_group(track, node)
        if not arm_definitions(run, track, node, races):
            raise Fault(NEVER_FIRES, f"the timer of '{node.id}' has no occurrence: the token would wait for ever")

    def fire(self, run: Run, track: Track, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        values = occurred(run, track, node, wait, trigger.values)
        if values is None:
            return
        track.wakes += 1
        if track.node != node.id:
            track = pass_gateway(run, track, run.node(track), node, wait)
        run.complete(track, node, values)

    def dehydratable(self, park: Park) -> bool:
        return park.far()
