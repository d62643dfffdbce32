"""Event-based gateways: the gateway is the wait, its arms are the events behind it, and the first one wins (D5).

A parallel one needs all of its arms: each goes on when its event comes, and the gateway is passed with the last. As
the start of a process (BPMN 10.6.6) any arm begins the instance; behind a parallel one it then waits for the others.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, cast

from gobpm_ray.core.arming import arm_definitions
from gobpm_ray.core.faults import NEVER_FIRES, Fault
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.state import TrackState, parse_wait_id
from gobpm_ray.errors import BrokenInvariant, GobpmError
from gobpm_ray.model.elements import EventBasedGateway

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track


class EventGateway(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        # Tried again where it began its process: the arm that the instance began at has had its event.
        met = next((flow.target for flow in node.outgoing if flow.id == track.flow), "")
        _wait(run, track, node, {flow.target for flow in node.outgoing} - {met} if met else None)

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        """No arm has won, so there is no way past: the values become variables, and the arms are armed again."""
        run.assign(track.scope, values)
        run.revisit(track)

    def dehydratable(self, park: Park) -> bool:
        return True


def pass_gateway(run: Run, track: Track, gateway: ProgramNode, arm: ProgramNode, wait: str) -> Track:
    """The token that goes on at the arm whose event has come, standing there: the one that waited at the gateway, or,
    while a parallel one still waits for others, a new one."""
    flow = next(flow.id for flow in gateway.outgoing if flow.target == arm.id)
    others = [other for other in track.waits if parse_wait_id(other)[1] != arm.id]
    if not _parallel(gateway):
        run.record("node", gateway.id)
    elif others:
        met = [other for other in track.waits if other not in others]
        run.withdraw(track, met)
        fork = run.new_track(run.state.scope(track.scope), arm.id, track.id, flow)
        run.number_visit(fork)
        return fork
    else:
        run.record("node", gateway.id)
    run.place(track, arm.id, flow)
    return track


def instantiate(run: Run, root: Scope, gateway: ProgramNode, arm: ProgramNode, values: dict[str, object]) -> None:
    """The instance begins at this arm of its gateway."""
    flow = next(flow.id for flow in gateway.outgoing if flow.target == arm.id)
    others = {flow.target for flow in gateway.outgoing} - {arm.id}
    waiting = run.new_track(root, gateway.id, flow=flow) if _parallel(gateway) and others else None
    first = run.new_track(root, arm.id, "" if waiting is None else waiting.id, flow)
    if waiting is None:
        run.record("node", gateway.id)
    run.number_visit(first)
    run.complete(first, arm, values)
    if waiting is None:
        return
    # Armed after the first event's payload is bound: the keys of the others are read from it.
    run.number_visit(waiting)
    try:
        _wait(run, waiting, gateway, others)
    except BrokenInvariant:
        raise
    except GobpmError as error:
        run.abandon(waiting)
        run.incident(waiting, error)


def _wait(run: Run, track: Track, node: ProgramNode, arms: Collection[str] | None = None) -> None:
    """The token waits for the gateway's arms, or for those named."""
    track.state = TrackState.WAITING
    run.changed.add(f"t{track.id}")
    for flow in node.outgoing:
        if arms is not None and flow.target not in arms:
            continue
        arm = run.nodes[flow.target]
        races = f"{track.id}:{track.visit}"
        if _parallel(node):
            races = f"{races}:{arm.id}" if len(arm.definitions) > 1 else ""
        if not arm_definitions(run, track, arm, races):
            raise Fault(NEVER_FIRES, f"the timer of '{flow.target}', an arm of '{node.id}', has no occurrence")


def _parallel(gateway: ProgramNode) -> bool:
    return cast(EventBasedGateway, gateway.element).parallel
