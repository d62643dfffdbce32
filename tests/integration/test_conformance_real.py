"""The conformance suite on the real engine: store, holders and actors on Ray end every case as this process does.

A third of the cases, chosen for ever by their names; about a dozen of them each time the tests run. Each case has an
engine of its own, on the session's one Ray and one store.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from gobpm_ray.engine import steps
from gobpm_ray.engine.engine import Engine
from gobpm_ray.engine.on_ray import open_on_ray
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from tests.conformance.cases import Case, cases, differences, shape
from tests.conformance.ways import STRAIGHT, perform, straight
from tests.support.stores import left_behind

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
REAL = [case for case in cases() if case.real]


def restarts(case: Case) -> bool:
    return any(isinstance(step.body, steps.Restart) for step in case.scenario.steps)


def params(chosen: list[Case]) -> list[object]:
    return [pytest.param(case, id=case.id, marks=[] if case.everyday else [pytest.mark.long]) for case in chosen]


@pytest.mark.parametrize("case", params([case for case in REAL if not restarts(case)]))
def test_the_case_ends_on_the_real_engine_as_the_standard_says(
    case: Case, ray_cluster: str, store_url: str, home: Path
) -> None:
    if case.missing:
        pytest.skip(f"{case.missing[0].name} is not there")
    # Everything is released at once, however near its timer: what is real here is the way through the store.
    settings = replace(STRAIGHT, engine_id=f"c{uuid.uuid4().hex[:8]}", dehydration_threshold_ms=0)
    with open_on_ray(Engine, store_url, "local", settings, "virtual", case.scenario.now_ms, home) as engine:
        outcome = perform(engine, case, quiet_timeout=60.0)
        nothing_else_is_left(engine, store_url)
    assert not differences(case.expected, outcome)
    assert shape(outcome, case.open) == shape(straight(case), case.open)


@pytest.mark.long
@pytest.mark.parametrize("case", params([case for case in REAL if restarts(case)]))
def test_a_case_in_which_the_engine_is_killed_ends_alike_on_a_ray_of_its_own(case: Case) -> None:
    """The session's Ray is not this case's to kill."""
    with tempfile.TemporaryDirectory(prefix="gobpm-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.integration.restarted_case", case.id, folder],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"differences": [], "alike": True}


def nothing_else_is_left(engine: Engine, store_url: str) -> None:
    """Issue 5.4: what still waits is ended; then no key names an instance but its record and history."""
    for view in engine.list_instances(ended=False, limit=100_000):
        if not engine.inspect(view.instance_id).ended:  # with its caller, perhaps
            engine.cancel(view.instance_id)
            engine.wait_quiet()
    with open_client(store_url) as client:
        assert isinstance(engine.store, RedisStore)
        assert left_behind(engine.store, client) == []
