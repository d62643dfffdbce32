"""Every semantic test runs three ways: resident, rebuilt before every step, and from the touched parts only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.core.driving import Bench


@pytest.fixture(params=["resident", "whole", "partial"])
def bench(request: pytest.FixtureRequest) -> Callable[..., Bench]:
    def make(process: object, **options: object) -> Bench:
        return Bench(process, request.param, **options)  # type: ignore[arg-type]

    return make
