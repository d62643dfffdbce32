"""The tutorial's one fixture: an engine in this process, on a clock that stands still until it is moved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray import Engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open(store=None, clock="virtual", now="2026-01-01T00:00:00Z") as opened:
        yield opened
