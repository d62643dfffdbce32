"""Every store of this machine in turn: what one answers, the others answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from gobpm_ray.runtime.ports import Store
from tests.support.stores import MEMORY, SERVERS, STORES, StoreBed, running_server


@pytest.fixture(scope="session")
def server_url() -> Iterator[Callable[[str], str]]:
    """One real server per program and session, started when the first test needs it."""
    urls: dict[str, str] = {}
    with ExitStack() as running:

        def of(name: str) -> str:
            if name not in urls:
                urls[name] = running.enter_context(running_server(SERVERS[name]))
            return urls[name]

        yield of


@pytest.fixture(params=STORES)
def bed(request: pytest.FixtureRequest, server_url: Callable[[str], str]) -> Iterator[StoreBed]:
    made = StoreBed(None if request.param == MEMORY else server_url(request.param))
    yield made
    # Total withdrawal (D6): whatever the test did, an ended instance is its record and its history.
    found = [] if request.module.__name__.endswith("test_verify") else made.leaks()
    made.close()
    assert not found, f"ended instances left something behind: {found}"


@pytest.fixture
def store(bed: StoreBed) -> Store:
    return bed.store()
