"""Ad-hoc sub-processes: everything inside that nothing leads to is started, at once or one after the other, until the
completion condition holds (BPMN 13.3.5).

The condition is asked whenever an activity inside is done. Once it holds nothing more is started, and what still
runs is cancelled or awaited. Without a condition, or if it never holds, the sub-process is done when nothing is left
to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.core.listening import listen
from gobpm_ray.core.nodes.subprocess import EmbeddedSubProcess
from gobpm_ray.core.state import Rounds
from gobpm_ray.core.variables import visible
from gobpm_ray.errors import BrokenInvariant
from gobpm_ray.model.elements import SubProcess

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track


class AdHoc(EmbeddedSubProcess):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        starts = run.program.starts.get(node.id, ())
        scope = self.open_inside(run, track, node)
        if not starts:
            run.complete(track, node, {})
            return
        track.rounds = Rounds(total=len(starts))
        at_once = 1 if cast(SubProcess, node.element).ordering == "sequential" else len(starts)
        for _ in range(at_once):
            self._start(run, track, node, scope)
        listen(run, scope)

    def inner_done(self, run: Run, track: Track, node: ProgramNode) -> bool:
        host = run.state.track(run.state.scope(track.scope).host)
        if host is None or host.rounds is None:
            raise BrokenInvariant(f"instance {run.state.id}: '{node.id}' has lost its ad-hoc sub-process")
        around = run.node(host)
        condition = around.operands.get("completion")
        use = f"completion condition of '{around.id}'"
        if condition is None or not run.truth(condition, visible(run.state, track), use):
            return False
        cancels = cast(SubProcess, around.element).cancel_remaining
        host.rounds.started = host.rounds.total
        run.changed.add(f"t{host.id}")
        if cancels:
            run.close_inside(track)
            run.terminate(track)
        return cancels

    def inside_done(self, run: Run, track: Track, node: ProgramNode, scope: Scope) -> None:
        rounds = track.rounds
        if rounds is not None and rounds.started < rounds.total and not scope.interrupted:
            self._start(run, track, node, scope)
            return
        track.rounds = None
        super().inside_done(run, track, node, scope)

    def interrupt(self, run: Run, track: Track, node: ProgramNode) -> None:
        super().interrupt(run, track, node)
        track.rounds = None

    def _start(self, run: Run, track: Track, node: ProgramNode, scope: Scope) -> None:
        """The next activity begins. The counters are written before it does: it is never begun twice."""
        rounds = cast(Rounds, track.rounds)
        start = run.program.starts[node.id][rounds.started]
        rounds.started += 1
        run.changed.add(f"t{track.id}")
        run.enqueue(run.new_track(scope, start))
