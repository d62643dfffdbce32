"""The conformance suite on the real engine: store, holders and actors on Ray end every case as this process does.

A third of the cases, chosen for ever by their names; about a dozen of them each time the tests run. Each case has an
engine of its own, on the session's one Ray and one store.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from gobpm_ray.engine.engine import Engine
from gobpm_ray.engine.on_ray import open_on_ray
from tests.conformance.cases import Case, cases, differences, shape
from tests.conformance.ways import STRAIGHT, perform, straight

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

REAL = [
    pytest.param(case, id=case.id, marks=[] if case.everyday else [pytest.mark.long]) for case in cases() if case.real
]


@pytest.mark.parametrize("case", REAL)
def test_the_case_ends_on_the_real_engine_as_the_standard_says(
    case: Case, ray_cluster: str, store_url: str, home: Path
) -> None:
    if case.missing:
        pytest.skip(f"{case.missing[0].name} is not there")
    # Everything is released at once, however near its timer: what is real here is the way through the store.
    settings = replace(STRAIGHT, engine_id=f"c{uuid.uuid4().hex[:8]}", dehydration_threshold_ms=0)
    with open_on_ray(Engine, store_url, "local", settings, "virtual", case.scenario.now_ms, home) as engine:
        outcome = perform(engine, case, quiet_timeout=60.0)
    assert not differences(case.expected, outcome)
    assert shape(outcome) == shape(straight(case))
