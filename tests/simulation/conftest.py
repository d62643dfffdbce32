"""One real server for the simulation, in memory and without the disk, and the processes on it ready to run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray.store.embedded import shipped_binary
from tests.simulation.bench import Bench, bench
from tests.simulation.world import silence
from tests.support.stores import running_server


@pytest.fixture(scope="session")
def simulation() -> Iterator[Bench]:
    with running_server(shipped_binary()) as url, bench(url) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _nobody_reports_the_dying() -> Iterator[None]:
    with silence():
        yield
