"""Service tasks as Ray tasks with resources of their own, on a cluster of two nodes of which one dies (A72, N10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.store.signing_key import signing_key
from tests.integration.conftest import told_by

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def told(home: Path, store_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("two")
    return told_by("tests.integration.two_nodes", store_url, folder, signing_key(home), timeout_s=115)


def test_a_task_runs_where_the_resource_is_that_it_asks_for(told: dict[str, Any]) -> None:
    assert told["first"] == {"state": "completed", "size": 3_000_000, "ran_on": told["far"]}


def test_a_large_result_never_goes_through_the_checkpoint(told: dict[str, Any]) -> None:
    assert told["kept"] < 10_000


def test_a_time_out_bounds_the_wait(told: dict[str, Any]) -> None:
    assert told["late"] == "no result within 1 s"


def test_a_node_that_dies_in_the_middle_leaves_the_policys_outcome_once(told: dict[str, Any]) -> None:
    """A72, N10: not idempotent is an incident, which a retry runs elsewhere; idempotent is done again without one."""
    ((node, code, cause),) = told["sealed"]
    assert (node, code) == ("work", "sealed")
    assert "perhaps done" in cause
    assert (told["retried"], told["driven"]) == ("completed", "completed")
    runs = {
        name: [(run["attempt"], run["node"]) for run in told["runs"] if run["key"].startswith(f"{name}:")]
        for name in ("sealed", "driven")
    }
    assert runs["sealed"] == [(1, told["far"]), (1, told["other"])]
    assert runs["driven"] == [(1, told["far"]), (2, told["other"])]
    assert told["histories"]["sealed"].count("incident") == 1
    assert told["histories"]["driven"].count("incident") == 0
