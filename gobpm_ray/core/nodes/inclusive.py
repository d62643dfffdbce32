"""Inclusive gateways: every flow whose condition holds is taken; a join waits for every token that can still come (BPMN
13.4.3).

A join opens when no token elsewhere in its scope can reach one of its flows that has no token yet, unless the same
token can as well reach a flow that has one. So it is asked when a token arrives, and again when all tokens of a step
have come to rest: another may have moved past the point where it could have come here, or died. What is needed of
the graph was computed when the process was compiled (`gobpm_ray.core.reachability`); a token inside a sub-process is
at the sub-process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.nodes.family import Family

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track


class Inclusive(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        if len(node.incoming) <= 1:
            self.split(run, track, node)
            return
        scope = run.state.scope(track.scope)
        if not track.flow:
            # A token that a deadlock revived came by no flow: all it can do is look again.
            raise run.stuck(scope, node.id)
        arrived = arrive(run, scope, node, track.flow)
        if arrived is scope.joins[node.id][0] and may_open(run, scope, node, arrived, track):
            take(run, scope, node)
            self.split(run, track, node)
        else:
            run.end(track)

    def ask_again(self, run: Run, scope: Scope, node: ProgramNode) -> bool:
        if not may_open(run, scope, node, scope.joins[node.id][0]):
            return False
        take(run, scope, node)
        track = run.new_track(scope, node.id)
        run.number_visit(track)
        self.split(run, track, node)
        return True

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        """A join opens as if the missing tokens had come; a split decides again, with the values as variables."""
        run.assign(track.scope, values)
        scope = run.state.scope(track.scope)
        if node.id in scope.joins and not track.flow:
            take(run, scope, node)
            self.split(run, track, node)
        else:
            run.revisit(track)

    def split(self, run: Run, track: Track, node: ProgramNode) -> None:
        """Recorded, then out by every flow whose condition holds, else by the default; none of them is an incident."""
        run.go_past(track, node)


def arrive(run: Run, scope: Scope, node: ProgramNode, flow: str) -> list[str]:
    """The activation that the token which came by `flow` belongs to: the oldest that has none from there."""
    activations = scope.joins.setdefault(node.id, [])
    arrived = next((flows for flows in activations if flow not in flows), None)
    if arrived is None:
        activations.append(arrived := [])
    arrived.append(flow)
    run.changed.add(f"s{scope.id}")
    return arrived


def take(run: Run, scope: Scope, node: ProgramNode) -> None:
    """The oldest activation is used up."""
    activations = scope.joins[node.id]
    del activations[0]
    if not activations:
        del scope.joins[node.id]
    run.changed.add(f"s{scope.id}")


def may_open(run: Run, scope: Scope, node: ProgramNode, arrived: list[str], arriving: Track | None = None) -> bool:
    """No token can still come by a flow that has none, except one that could come by a flow that has."""
    empty = [flow for flow in node.incoming if flow not in arrived]
    if not empty:
        return True
    filled = [flow for flow in node.incoming if flow in arrived]
    upstream = node.upstream
    places = [join for join in scope.joins if join != node.id]
    for track in run.state.tracks_in(scope.id):
        if track is arriving:
            continue
        if track.node != node.id:
            places.append(track.node)
        elif track.flow in empty:
            return False  # on its last flow already, and about to arrive
    return not any(
        any(place in upstream[flow] for flow in empty) and not any(place in upstream[flow] for flow in filled)
        for place in places
    )
