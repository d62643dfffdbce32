"""Start events: a token begins here and passes at once.

The start event of an event sub-process that could not be armed is the exception: a token stands for it in the scope
that should listen (`gobpm_ray.core.listening`), and a retry arms it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.listening import listen_for, stands_outside
from gobpm_ray.core.nodes.family import Family

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track


class Start(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        if stands_outside(run, track, node):
            listen_for(run, run.state.scope(track.scope), node)
            run.end(track)
        else:
            run.complete(track, node, {})

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        if stands_outside(run, track, node):
            run.assign(track.scope, values)
            run.end(track)
        else:
            run.complete(track, node, values)
