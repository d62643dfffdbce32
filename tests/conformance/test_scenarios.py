"""The conformance suite: every case of `scenarios/`, run three ways, ends as BPMN says it must, and each time alike."""

from __future__ import annotations

from functools import cache

import pytest

from gobpm_ray.engine.outcome import Outcome
from tests.conformance.cases import Case, cases, differences, shape
from tests.conformance.ways import WAYS, straight

CASES = cases()


@cache
def _straight(case_id: str) -> Outcome:
    return straight(next(case for case in CASES if case.id == case_id))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_case_ends_as_the_standard_says(case: Case, way: str) -> None:
    if case.missing:
        pytest.skip(f"{case.missing[0].name} is not there")
    outcome = _straight(case.id) if way == "straight" else WAYS[way](case)
    assert not differences(case.expected, outcome)
    if way != "straight":
        assert shape(outcome, case.open) == shape(_straight(case.id), case.open)


def test_there_are_cases_of_every_part_of_the_standard_and_names_that_differ() -> None:
    assert len(CASES) >= 150
    assert len({case.id for case in CASES}) == len(CASES)
    assert len({case.number for case in CASES}) == len(CASES)
