"""A custom element that kills whoever enters it, until a file says that it is cured."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from gobpm_ray.core.nodes.family import Family
from gobpm_ray.core.variables import visible

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track


class Deadly(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        folder = Path(str(run.evaluate(node.operands["folder"], visible(run.state, track), f"folder of '{node.id}'")))
        if not (folder / "cured").exists():
            with (folder / "deaths").open("a") as deaths:
                deaths.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        run.complete(track, node, {})
