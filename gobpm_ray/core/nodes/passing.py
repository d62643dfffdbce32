"""Nodes that the engine has no part in: start events, tasks without a type, manual tasks. They pass at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.nodes.family import Family

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track


class Passing(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        run.complete(track, node, {})
