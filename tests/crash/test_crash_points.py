"""Every crash point against every case, in process: what the successor makes of it is what would have been (promise 1).

The crash raises past every handler; then the dead one's store answers nothing, its lease expires, and a successor boots
from the store alone. R20, C59-C66, A75: the end is the same trace, the same variables, the same effects.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from gobpm_ray.errors import BrokenInvariant
from gobpm_ray.runtime import crashpoints
from gobpm_ray.store import scripts
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import shipped_binary
from tests.crash.cases import CASES, Case
from tests.crash.one_process import World
from tests.crash.running import End, MakeWorld, RealWorlds, Recorder, memory_world, run
from tests.support.stores import running_server

THREADS = {"lease.renewing", "lease.renewed"}
"""Passed by a thread of its own while a callable runs: `test_self_kill` dies there."""
MOST = 4
"""Passings of one point that are tried in one run: the first ones and the last."""

case_by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))


@pytest.fixture(scope="module")
def real_world() -> Iterator[RealWorlds]:
    with running_server(shipped_binary()) as url, open_client(url) as client:
        yield RealWorlds(client)


@cache
def undisturbed(name: str) -> tuple[End, Counter[str]]:
    """How the case ends without a crash, and the points on its way."""
    hook = Recorder()
    end, world = run(_case(name), memory_world, hook)
    assert world.memo.get("sealed", 0) == 0
    return end, hook.passed


def _case(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def crash_everywhere(case: Case, make_world: MakeWorld, most: int) -> int:
    expected, passed = undisturbed(case.name)
    crashes = 0
    for point, times in sorted(passed.items()):
        for nth in sorted({*range(1, min(times, most) + 1), times} if most > 1 else {(times + 1) // 2}):
            hook = Recorder(point, nth)
            end, world = run(case, make_world, hook)
            where = f"{case.name}: crash at {point}, passing {nth}"
            if world.memo.get("sealed"):
                # Sealed, then retried by an operator: a new visit of the same node, and so a key of its own.
                assert _nodes(end) == _nodes(expected), where
                end = replace(end, effects=expected.effects)
            assert end == expected, where
            _effects_are_governed(case, world, where)
            crashes += 1
    return crashes


def _nodes(end: End) -> set[tuple[str, str]]:
    """(instance, node) of each effect."""
    return {(key.split(":")[0], key.split(":")[2]) for key in end.effects}


def _effects_are_governed(case: Case, world: World, where: str) -> None:
    """At most one repetition, by the crash between an intent and its result, of idempotent work alone (design 9)."""
    repeated = sum(times - 1 for times in world.effects.values())
    assert repeated <= (0 if case.name == "work" else 1), where


@case_by_case
def test_a_crash_at_any_point_changes_nothing_in_memory(case: Case) -> None:
    """Promise 1, N8, N9, N10: every passing of every point (the first four and the last), one crash each."""
    assert crash_everywhere(case, memory_world, MOST) > 20


@case_by_case
def test_a_crash_at_any_point_changes_nothing_in_the_real_store(case: Case, real_world: RealWorlds) -> None:
    """Promise 1 on the scripts themselves: every point once, at the middle one of its passings."""
    end, _ = run(case, real_world, Recorder())
    assert end == undisturbed(case.name)[0], "both stores end alike without a crash"
    assert crash_everywhere(case, real_world, 1) > 15


def test_every_point_is_reached() -> None:
    """A point that nothing passes protects nothing."""
    passed: set[str] = set()
    for case in CASES:
        passed |= undisturbed(case.name)[1].keys()
    for case in CASES:  # recovery has points of its own
        if case.topics:
            hook = Recorder("effect.done")
            run(case, memory_world, hook)
            passed |= hook.passed.keys()
    hook = Recorder("store.after.claim")
    run(CASES[0], memory_world, hook)
    passed |= hook.passed.keys()

    assert passed == set(crashpoints.POINTS) - THREADS


EXEMPT = {
    "order": "the order lease orders and fences nothing; `holder.ordered` stands behind it",
    "put": "a register of the engine, written again each second",
    "mend": "an operator's repair of an index, which is repeated",
}


def test_every_script_that_writes_has_a_point_on_either_side() -> None:
    """A new script is not forgotten: it is in the table, or its exemption is said."""
    folder = Path(scripts.__file__).parent / "lua"
    writing = {
        script.stem
        for script in folder.glob("*.lua")
        if script.stem != "prelude" and b"no-writes" not in script.read_bytes().partition(b"\n")[0]
    }
    assert writing - EXEMPT.keys() == set(crashpoints.SCRIPTS)


def test_points_cannot_be_armed_in_production() -> None:
    """An installed engine has no switch: arming is refused by name, and nothing is armed."""
    program = (
        "from gobpm_ray.runtime import crashpoints\n"
        "try:\n    crashpoints.arm(print)\n"
        "except Exception as refusal:\n    print(type(refusal).__name__)\n"
        "crashpoints.reached('host.claimed')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [BrokenInvariant.__name__]


def test_an_unarmed_point_costs_nearly_nothing() -> None:
    """One comparison: a wake passes about twenty."""
    import timeit

    reached = crashpoints.reached
    once = min(timeit.repeat(lambda: reached("host.claimed"), number=10_000, repeat=5)) / 10_000
    assert once < 5e-6
