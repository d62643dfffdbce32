"""`python -m tests.integration.restarted_case CASE FOLDER`: one conformance case whose engine is killed and opened
again on the way. It needs a Ray and a store of its own: it kills both.

Prints one JSON object: what is not as the case expects, and whether it came to the same as in one process.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from gobpm_ray.engine.engine import Engine
from tests.conformance.cases import cases, differences, shape
from tests.conformance.ways import STRAIGHT, perform, straight


def main(case_id: str, folder: Path) -> None:
    case = next(case for case in cases() if case.id == case_id)
    settings = replace(STRAIGHT, engine_id="restarted", dehydration_threshold_ms=0)
    with Engine.open("embedded", clock="virtual", now=case.scenario.now_ms, home=folder, settings=settings) as engine:
        outcome = perform(engine, case, quiet_timeout=90.0)
        left = [str(one) for one in engine.verify().differences]
    alike = shape(outcome, case.open) == shape(straight(case), case.open)
    print(json.dumps({"differences": differences(case.expected, outcome) + left, "alike": alike}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
