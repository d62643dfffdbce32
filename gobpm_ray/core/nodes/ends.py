"""End events: the token ends here, after throwing what it has to; a terminate end takes its whole scope with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.nodes.family import Family
from gobpm_ray.core.nodes.throws import throw

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track


class End(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        if node.definitions:
            throw(run, track, node)
        self._over(run, track, node)

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        run.assign(track.scope, values)
        self._over(run, track, node)

    def _over(self, run: Run, track: Track, node: ProgramNode) -> None:
        run.record("node", node.id)
        run.withdraw(track)
        if node.terminates:
            run.terminate(track)
        else:
            run.end(track)
