"""Standard loops: one round after the other, while the condition holds and the maximum is not reached (BPMN 13.3.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.core.faults import INVALID_LOOP, Fault
from gobpm_ray.core.nodes.iteration import COUNTER, Iteration
from gobpm_ray.core.operands import whole_number
from gobpm_ray.core.state import Rounds, TrackState
from gobpm_ray.core.variables import merged, visible
from gobpm_ray.model.elements import Activity, StandardLoop

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track


class Looping(Iteration):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        rounds = Rounds(total=self._maximum(run, track, node))
        tested = cast(StandardLoop, cast(Activity, node.element).loop).test_before
        if rounds.total == 0 or (tested and not self._again(run, track, node, 0)):
            self.leave(run, track)
            return
        track.rounds = rounds
        track.state = TrackState.HOSTING
        self._next(run, track, rounds)

    def inner_done(self, run: Run, track: Track, node: ProgramNode) -> bool:
        scope, host, rounds = self.host(run, track)
        completed = rounds.completed + 1
        more = completed != rounds.total and self._again(run, track, run.node(host), completed)
        rounds.completed = completed
        run.changed.add(f"t{host.id}")
        self.close_round(run, track, scope, None)
        if more:
            self._next(run, host, rounds)
        else:
            self.leave(run, host)
        return True

    def _next(self, run: Run, host: Track, rounds: Rounds) -> None:
        self.begin(run, host, rounds, self.open_round(run, host, {COUNTER: rounds.started + 1}))

    def _again(self, run: Run, track: Track, node: ProgramNode, completed: int) -> bool:
        """Another round? Asked where the last one ended, so that what it computed for itself counts."""
        condition = node.operands.get("condition")
        if condition is None:
            return True
        return run.truth(condition, merged(run.state, track, {COUNTER: completed}), f"loop condition of '{node.id}'")

    def _maximum(self, run: Run, track: Track, node: ProgramNode) -> int:
        maximum = node.operands.get("maximum")
        if maximum is None:
            return -1
        value = run.evaluate(maximum, visible(run.state, track), f"loop maximum of '{node.id}'")
        number = whole_number(value)
        if number is None or number < 0:
            raise Fault(INVALID_LOOP, f"loop maximum of '{node.id}': expected a whole number, got {str(value)[:80]!r}")
        return number
