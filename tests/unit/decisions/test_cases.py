"""Decisions as data: every file of `cases/` with what its decisions and services must give, for which variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gobpm_ray.bpmn.dmn import read_decisions
from gobpm_ray.decisions.compiled import Decisions
from gobpm_ray.decisions.errors import DecisionFailed

CASES = Path(__file__).parent / "cases"
FILES = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("*.yaml"))}
LISTED = [(name, case) for name, file in FILES.items() for case in file["cases"]]


@pytest.fixture(scope="module")
def read() -> dict[str, Decisions]:
    return {name: read_decisions((CASES / f"{name}.dmn").read_bytes(), f"{name}.dmn") for name in FILES}


@pytest.mark.parametrize(
    ("name", "case"), LISTED, ids=[f"{name}: {case['decision']} {case['given']}"[:70] for name, case in LISTED]
)
def test_the_decision_gives_what_dmn_says(read: dict[str, Decisions], name: str, case: dict[str, Any]) -> None:
    if "fails" in case:
        with pytest.raises(DecisionFailed) as failure:
            read[name].evaluate(case["decision"], case["given"], 0)
        assert case["fails"] in str(failure.value)
        assert "\n" not in str(failure.value)
        assert f"'{case['decision']}'" in str(failure.value)
    else:
        given = dict(case["given"])
        assert read[name].evaluate(case["decision"], given, 0) == case["value"]
        assert given == case["given"]


def test_every_decision_and_service_of_the_files_has_a_case(read: dict[str, Decisions]) -> None:
    asked = {(name, case["decision"]) for name, case in LISTED}
    required = {("boxed", "a_function"), ("services", "country"), ("services", "base")}
    assert {(name, each) for name, decisions in read.items() for each in decisions} <= asked | required
