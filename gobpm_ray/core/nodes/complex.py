"""Complex gateways: the activation condition says when the join opens, and once it has, the rest is awaited and
swallowed (BPMN 13.4.5).

The condition is asked as each token arrives; it sees `activationCount`, the tokens that wait, and for each incoming
flow their number under the flow's id. None: the first token opens it. An opened activation stays in `Scope.joins`,
marked, until a token has come by each of its flows or none can come any more; these belong to it and open nothing
(the reset). Conditions of outgoing flows may ask for `waitingForStart`: it is true as the gateway opens and false at
the reset, when only flows that ask for it can be taken, so a flow without a condition carries one token a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gobpm_ray.core.faults import FLOW
from gobpm_ray.core.nodes.inclusive import Inclusive, arrive, may_open, take
from gobpm_ray.core.state import OPENED
from gobpm_ray.core.variables import merged, visible_in
from gobpm_ray.errors import GobpmError

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track

START = "waitingForStart"
COUNT = "activationCount"


class Complex(Inclusive):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        if len(node.incoming) <= 1:
            self.split(run, track, node)
            return
        scope = run.state.scope(track.scope)
        if not track.flow:
            raise run.stuck(scope, node.id)
        # Asked before the token is counted: a condition that cannot be told leaves it where it was.
        counts = _counts(scope, node)
        counts[track.flow] += 1
        opens = not _opened(scope, node) and self._activates(run, node, merged(run.state, track), counts)
        arrive(run, scope, node, track.flow)
        if opens:
            self._open(run, scope, node, track, counts)
        else:
            run.end(track)

    def ask_again(self, run: Run, scope: Scope, node: ProgramNode) -> bool:
        """Only an opened activation is asked: whether what is missing can still come."""
        if not _opened(scope, node) or not may_open(run, scope, node, scope.joins[node.id][0]):
            return False
        take(run, scope, node)
        self._reset(run, scope, node)
        if node.id in scope.joins:
            self._next(run, scope, node)
        return True

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        run.assign(track.scope, values)
        scope = run.state.scope(track.scope)
        if node.id in scope.joins and not track.flow and not _opened(scope, node):
            self._open(run, scope, node, track, _counts(scope, node))
        else:
            run.revisit(track)

    def split(self, run: Run, track: Track, node: ProgramNode) -> None:
        track.local = {START: True, **(track.local or {})}
        run.go_past(track, node)

    # --- the cycle of a join

    def _activates(self, run: Run, node: ProgramNode, seen: Mapping[str, object], counts: Mapping[str, int]) -> bool:
        condition = node.operands.get("activation")
        if condition is None:
            return True
        variables = {**seen, **counts, COUNT: sum(counts.values())}
        return run.truth(condition, variables, f"activation condition of '{node.id}'")

    def _open(self, run: Run, scope: Scope, node: ProgramNode, track: Track, counts: Mapping[str, int]) -> None:
        opened = scope.joins[node.id][0]
        if len(opened) == len(node.incoming):
            take(run, scope, node)
        else:
            opened.insert(0, OPENED)
        run.changed.add(f"s{scope.id}")
        track.local = {COUNT: sum(counts.values())}
        self.split(run, track, node)

    def _reset(self, run: Run, scope: Scope, node: ProgramNode) -> None:
        """Usually nothing leaves; a token does for each flow that asks for the reset and whose condition then holds."""
        asking = [flow for flow in node.outgoing if flow.condition is not None and START in flow.condition.text]
        if not asking:
            return
        track = run.new_track(scope, node.id)
        run.number_visit(track)
        track.local = {START: False, COUNT: 0}
        try:
            flows = [flow for flow in asking if flow.condition is not None and run.holds(track, flow, flow.condition)]
        except GobpmError as error:
            run.incident(track, error, FLOW)
            return
        if flows:
            run.go_past(track, node, flows)
        else:
            run.drop(track)
            scope.live -= 1

    def _next(self, run: Run, scope: Scope, node: ProgramNode) -> None:
        """Tokens that came while the last cycle was not over may open the next one at once."""
        counts = _counts(scope, node)
        try:
            opens = self._activates(run, node, visible_in(run.state, scope.id), counts)
        except GobpmError as error:
            track = run.new_track(scope, node.id)
            run.number_visit(track)
            run.incident(track, error)
            return
        if opens:
            track = run.new_track(scope, node.id)
            run.number_visit(track)
            self._open(run, scope, node, track, counts)


def _opened(scope: Scope, node: ProgramNode) -> bool:
    activations = scope.joins.get(node.id)
    return activations is not None and activations[0][0] == OPENED


def _counts(scope: Scope, node: ProgramNode) -> dict[str, int]:
    """Tokens that wait, by flow; those of an opened activation have been used."""
    counts = dict.fromkeys(node.incoming, 0)
    for arrived in scope.joins.get(node.id, ()):
        if arrived[0] != OPENED:
            for flow in arrived:
                counts[flow] += 1
    return counts
