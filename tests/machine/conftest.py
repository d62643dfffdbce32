"""One real server for the machine, in memory and without the disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import shipped_binary
from tests.machine.examples import Stage
from tests.simulation.world import silence
from tests.support.stores import running_server


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with running_server(shipped_binary()) as url:
        yield url


@pytest.fixture(scope="session")
def stage(server: str) -> Iterator[Stage]:
    with open_client(server) as client:
        yield Stage(client)


@pytest.fixture(autouse=True)
def _nobody_reports_the_dying() -> Iterator[None]:
    with silence():
        yield
