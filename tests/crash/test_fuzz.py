"""The fuzzer as the test run has it: half a minute of kills and freezes; and that it can fail (promises 1 and 2)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def fuzz(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.fuzz", "--json", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_half_a_minute_of_kills_and_freezes_loses_nothing_and_repeats_nothing() -> None:
    """R20-R30, C59-C70, A75, E89-E91: hosts, holders, clients and the store die and freeze under hundreds of instances;
    afterwards every delivery is accounted for, order per key held, and `verify` finds no difference."""
    code, report = fuzz("--seconds", "30", "--seed", "1")
    counts = report["counts"]

    assert report["faults"] == []
    assert code == 0
    assert counts["instances"] > 100
    assert counts["accepted deliveries"] > 200
    assert counts["killed store"] > 0
    assert counts["frozen store"] > 0
    for role in ("actor", "message", "timer", "task", "client"):
        assert counts[f"killed {role}"] > 0
    assert counts["frozen leaseholder"] > 5, "zombies that held a lease"


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["dedup", "fence"])
def test_a_run_without_a_guard_is_red(guard: str) -> None:
    """With the delivery's dedup or the commit's fence taken out of the scripts it must fail. A zombie has to come back
    at the wrong moment for the fence to be missed, so a few short runs are given to chance."""
    how = ["--zombies"] if guard == "fence" else []
    for seed in range(6):
        code, report = fuzz("--seconds", "8", "--seed", str(seed), "--without", guard, *how)
        if code == 1:
            assert report["faults"]
            code, report = fuzz("--seconds", "8", "--seed", str(seed), *how)
            assert (code, report["faults"]) == (0, []), "with the guard the same torment does no harm"
            return
    pytest.fail(f"nobody missed the {guard}")


@pytest.mark.long
@pytest.mark.timeout(1_000)
def test_ten_minutes_of_it() -> None:
    code, report = fuzz("--seconds", "600", "--seed", "10")
    assert (code, report["faults"]) == (0, [])
