"""The page of requirements names tests that exist and that cite what they are named for."""

from __future__ import annotations

import re

from tests.support.requirements import citations, claims, ids

UNTESTED = {"C1", "C2", "C3", "D1", "D3", "D19", "D23", "D25", "N4", "N6", "H4", "H5", "H9", "H10", "H11"}
"""Of the requirements those whose id no test cites: the shape of the tree, or said by many tests together."""


def test_every_requirement_and_scenario_stands_on_the_page() -> None:
    assert list(claims()) == ids()


def test_every_test_that_the_page_names_exists_and_cites_the_id() -> None:
    cited = citations()
    wrong = [
        f"{each}: {file}::{test}"
        for each, tests in claims().items()
        for file, test in tests
        if each not in cited.get(file, {}).get(test, set())
    ]
    assert wrong == []


def test_every_id_that_the_page_claims_has_a_test() -> None:
    """Issue 5: X1-X16 and the groups W, R, F, T, M, H without an exception."""
    without = {each for each, tests in claims().items() if not tests}
    assert not {each for each in without if each[0] in "XWRFTM"}
    assert without <= UNTESTED


def on_the_real_engine() -> dict[str, set[str]]:
    """Test -> the ids that it cites."""
    files = {file: tests for file, tests in citations().items() if file.startswith("tests/integration/")}
    return {test: cited for tests in files.values() for test, cited in tests.items()}


def test_every_scenario_of_waiting_and_waking_has_a_test_on_the_real_engine() -> None:
    """Issue 5: the groups W, R, F, T, M, H, each id."""
    cited = set().union(*on_the_real_engine().values())
    scenarios = {each for each in ids() if each[0] in "WRFTM" or each in {"H56", "H57", "H58"}}
    assert len(scenarios) == 58
    assert scenarios - cited == set()


def test_every_fault_of_the_original_has_a_test_that_is_named_after_it() -> None:
    """Issue 5: X1-X16."""
    named = {found[1] for test in on_the_real_engine() if (found := re.match(r"test_x(\d+)_", test))}
    assert {str(n) for n in range(1, 17)} - named == set()
