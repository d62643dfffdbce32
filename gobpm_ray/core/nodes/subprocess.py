"""Sub-processes: the token hosts a scope of its own and goes on when nothing lives in there any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.listening import listen
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.shapes import opened
from gobpm_ray.core.state import TrackState

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track


class EmbeddedSubProcess(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        scope = self.open_inside(run, track, node)
        for start in run.program.starts.get(node.id, ()):
            run.enqueue(run.new_track(scope, start))
        listen(run, scope)
        if not scope.live:
            run.complete(track, node, {})

    def open_inside(self, run: Run, track: Track, node: ProgramNode) -> Scope:
        """The token hosts the scope of its inside, in which nothing has begun."""
        # Mapped inputs become the inner scope's variables; the token itself reads them from there.
        scope = run.open_scope(track, node.id, opened(run.program.declared.get(node.id), track.local or {}))
        track.local = None
        track.child = scope.id
        track.state = TrackState.HOSTING
        return scope

    def inside_done(self, run: Run, track: Track, node: ProgramNode, scope: Scope) -> None:
        # Before the outputs are bound: an incident there must not leave the scope listening.
        run.withdraw(scope)
        run.complete(track, node, {})

    def interrupt(self, run: Run, track: Track, node: ProgramNode) -> None:
        if track.child:
            scope = run.state.scope(track.child)
            run.clear(scope)
            run.remove_scope(scope.id)
            track.child = ""

    def dehydratable(self, park: Park) -> bool:
        """What is inside answers for itself; here only the boundary timers over it count."""
        return park.far()
