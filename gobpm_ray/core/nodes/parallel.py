"""Parallel gateways: a token on every outgoing flow, when one has come by every incoming flow (BPMN 13.4.1).

A join counts distinct flows per activation: a second token by the same flow belongs to the next activation. An arriving
token is absorbed into `Scope.joins`; the one that completes an activation is the one that goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.nodes.family import Family

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track


class Parallel(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        if len(node.incoming) <= 1:
            run.go_past(track, node)
            return
        scope = run.state.scope(track.scope)
        if not track.flow:
            # A token that a deadlock revived came by no flow: all it can do is look again.
            raise run.stuck(scope, node.id)
        activations = scope.joins.setdefault(node.id, [])
        arrived = next((flows for flows in activations if track.flow not in flows), None)
        if arrived is None:
            activations.append(arrived := [])
        arrived.append(track.flow)
        run.changed.add(f"s{scope.id}")
        if len(arrived) < len(node.incoming):
            run.end(track)
        else:
            # Flows arrive in an activation in order of activations, so the first to be full is the oldest.
            self._open(run, track, node, scope)

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        """The join opens as if the missing tokens had come."""
        run.assign(track.scope, values)
        scope = run.state.scope(track.scope)
        if node.id in scope.joins and not track.flow:
            self._open(run, track, node, scope)
        else:
            run.revisit(track)

    def _open(self, run: Run, track: Track, node: ProgramNode, scope: Scope) -> None:
        activations = scope.joins[node.id]
        del activations[0]
        if not activations:
            del scope.joins[node.id]
        run.changed.add(f"s{scope.id}")
        run.go_past(track, node)
