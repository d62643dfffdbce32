"""What every test stands on: Ray says nothing to the outside, and the unit tests reach neither Ray nor Redis."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

# Said outright before anything imports Ray: left unset, Ray decides by whether it happens to find a token (D 12).
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

# A shared machine is no clock: hypothesis would call a slow second a failure. CI repeats the same examples each time.
hypothesis_settings.register_profile("local", deadline=None, print_blob=True)
hypothesis_settings.register_profile("ci", parent=hypothesis_settings.get_profile("local"), derandomize=True)
hypothesis_settings.load_profile("ci" if os.environ.get("CI") else "local")

UNIT = Path(__file__).parent / "unit"


@pytest.fixture(autouse=True)
def _unit_tests_reach_neither_ray_nor_redis(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A unit test that starts Ray or opens a connection fails, and says why."""
    if not request.path.is_relative_to(UNIT):
        yield
        return

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError(f"{request.node.nodeid} is a unit test, and it reached for Ray or Redis")

    # Modules that another test imported are patched; importing them only to patch them would cost each run a second.
    if (ray := sys.modules.get("ray")) is not None:
        monkeypatch.setattr(ray, "init", refuse)
    if (connection := sys.modules.get("redis.connection")) is not None:
        monkeypatch.setattr(connection.AbstractConnection, "connect", refuse)
    yield
    if ray is None and "ray" in sys.modules:
        assert not sys.modules["ray"].is_initialized(), f"{request.node.nodeid} is a unit test, and it started Ray"


@pytest.fixture(autouse=True)
def _a_test_leaves_the_log_as_it_was() -> Iterator[None]:
    """The command line quietens the engine's log for its process; tests that run it in theirs must not quieten the
    next."""
    log = logging.getLogger("gobpm_ray")
    level = log.level
    yield
    log.setLevel(level)
