"""What the actors' layer keeps to itself: remote calls in one file, and no Ray for who only looks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_only_one_file_calls_other_actors() -> None:
    """Design 10: `handles` is the only file that calls `.remote`."""
    callers = [
        str(path.relative_to(ROOT))
        for package in ("actors", "holders", "gobpm_ray")
        for path in sorted((ROOT / package).rglob("*.py"))
        if ".remote(" in path.read_text(encoding="utf-8")
    ]

    assert callers == ["actors/handles.py"]


def test_looking_at_actors_costs_no_ray() -> None:
    """Design 11: operations talk to the store only and never import Ray."""
    looks = "import sys, actors.registry, actors.supervisor, actors.life, actors.spec, gobpm_ray.engine.cluster"
    check = "found = [name for name in ('ray', 'redis') if name in sys.modules]; sys.exit(', '.join(found) or 0)"

    done = subprocess.run(
        [sys.executable, "-c", f"{looks}; {check}"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stderr
