"""Business rule tasks with a decision: evaluated at once, over what the token sees; the value is the task's result."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.core.faults import Fault
from gobpm_ray.core.nodes.family import Family
from gobpm_ray.core.variables import visible
from gobpm_ray.model.elements import DecisionTask

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track

UNKNOWN_DECISION = "unknown_decision"
"""Nobody deployed it. Retry asks again: by then it may be there."""


class Decision(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        task = cast(DecisionTask, node.element)
        seen = visible(run.state, track)
        wanted = run.evaluate(node.operands["decision"], seen, f"decision of '{node.id}'")
        if not isinstance(wanted, str) or not wanted:
            raise Fault(UNKNOWN_DECISION, f"decision of '{node.id}': expected an id, got {str(wanted)[:80]!r}")
        decisions = run.program.decisions(wanted, task.binding, task.version)
        if decisions is None or wanted not in decisions:
            version = f" version {task.version}" if task.binding == "version" else ""
            raise Fault(UNKNOWN_DECISION, f"decision '{wanted}'{version}, wanted by '{node.id}', is not deployed")
        value = decisions.evaluate(wanted, seen, run.now)
        run.complete(track, node, _results(task, decisions.result_name(wanted), value))


def _results(task: DecisionTask, name: str, value: object) -> dict[str, object]:
    """The value under the task's result variable; without one, several outputs under their own names, and a single
    value under the decision's variable."""
    if not task.result_variable and isinstance(value, dict):
        return dict(value)
    return {task.result_variable or name: value}
