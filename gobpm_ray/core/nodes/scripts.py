"""Script tasks: statements, whose assigned variables are the outputs, or one expression, whose value is the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.core.nodes.family import Family
from gobpm_ray.core.variables import visible
from gobpm_ray.model.elements import ScriptTask

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track


class Script(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        task = cast(ScriptTask, node.element)
        seen = visible(run.state, track)
        if node.script is not None:
            values = run.guarded(node.script, seen, f"script of '{node.id}'")
        else:
            # Evaluated even if the result is dropped: a script that fails must not look as if it had not.
            result = run.evaluate(node.operands["script"], seen, f"script of '{node.id}'")
            values = {task.result_variable: result} if task.result_variable else {}
        run.complete(track, node, values)
