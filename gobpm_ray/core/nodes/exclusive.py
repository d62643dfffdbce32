"""Exclusive gateways: every token passes on one flow, the first in order whose condition holds (BPMN 13.4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gobpm_ray.core.nodes.family import Family

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramFlow, ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track


class Exclusive(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        run.go_past(track, node, self._way(run, track, node))

    def _way(self, run: Run, track: Track, node: ProgramNode) -> Sequence[ProgramFlow]:
        for flow in node.outgoing:
            if not flow.default and (flow.condition is None or run.holds(track, flow, flow.condition)):
                return (flow,)
        return run.default_of(node) if node.outgoing else ()

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        """There is no way past a decision but to decide: the values become variables, and it is asked again."""
        run.assign(track.scope, values)
        run.revisit(track)
