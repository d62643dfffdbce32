"""A Ray task that asks for what no node has, on a real cluster that gets such a node later (issue 6, N10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.store.signing_key import signing_key
from tests.integration.conftest import told_by

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def told(home: Path, store_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("scarce")
    return told_by("tests.integration.scarce_cluster", store_url, folder, signing_key(home), timeout_s=180)


def test_what_no_node_has_is_said_at_once_in_history_and_facts(told: dict[str, Any]) -> None:
    assert told["said"] == told["fact"] == ["far 1 (the most that a node has: 0)"]
    assert told["said_after"] < 20


def test_when_patience_ends_it_is_an_incident_that_names_the_resource_whatever_the_retries(
    told: dict[str, Any],
) -> None:
    node, code, cause = told["incident"]
    assert (node, code) == ("work", "unavailable")
    assert "far 1" in cause
    assert "1.5 s" in cause
    assert told["meanwhile"] == ["running", False]


def test_a_node_that_comes_in_time_does_the_work_and_not_what_was_given_up(told: dict[str, Any]) -> None:
    assert (told["patient"], told["runs"]) == ("completed", ["patient"])


def test_a_retry_does_it_when_the_node_is_there(told: dict[str, Any]) -> None:
    assert (told["retried"], told["runs_at_last"]) == ("completed", ["patient", "hasty"])
