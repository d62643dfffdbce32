"""One Ray and one real store for the whole session; engines with ids of their own, stopped by whoever opened them.

Ray takes seconds to start, so it starts once. Every engine gets an unused id: tests share the store and never a key.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.engine import cluster
from gobpm_ray.engine.in_process import START_OF_TIME_MS
from gobpm_ray.engine.operations import Operations
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.signing_key import signing_key
from tests.integration.scene import Scene
from tests.support.stores import left_behind


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[str]:
    """The address of the session's local Ray, with its dashboard: the state API is served there."""
    import ray

    started_here = not ray.is_initialized()
    if started_here:
        ray.init(
            "local",
            namespace="tests",  # not ours on purpose: the engine's actors live in `gobpm` whatever the driver chose
            num_cpus=2,
            include_dashboard=True,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    yield ray.get_runtime_context().gcs_address
    if started_here:
        ray.shutdown()


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """A folder with an embedded store in it that runs as users run it: every accepted change is on disk."""
    folder = Path(tempfile.mkdtemp(prefix="gobpm-"))  # short: a socket's path has a limit
    yield folder
    EmbeddedStore(folder).stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def store_url(home: Path) -> str:
    return EmbeddedStore(home).ensure_running()


@dataclass
class RunningEngine:
    """An engine on the session's Ray, and what a test wants to look at beside its front door."""

    operations: Operations
    store: RedisStore
    settings: Settings
    handle: cluster.ClusterHandle


OpenEngine = Callable[..., RunningEngine]


@contextmanager
def opened(url: str, key: bytes, *, clock_begins: int | None = None, **changes: object) -> Iterator[RunningEngine]:
    """An engine of its own id whose actors live while the block runs; `clock_begins`: on a manual clock."""
    settings = Settings(**({"engine_id": f"t{uuid.uuid4().hex[:8]}", "linger_ms": 1_000} | changes))  # type: ignore[arg-type]
    with open_client(url) as client:
        store = RedisStore(client, settings)
        if clock_begins is not None:
            # Before the holders live: they would fire by the wrong clock.
            store.manual_clock(clock_begins)
        handle = cluster.ensure(settings, url, signing_key=key)
        try:
            yield RunningEngine(Operations(store, settings, signing_key=key), store, settings, handle)
        finally:
            cluster.stop(handle, grace_ms=2_000)
        assert left_behind(store, client) == [], "no key of an ended instance is left except its history"


@pytest.fixture
def open_engine(ray_cluster: str, store_url: str, home: Path) -> Iterator[OpenEngine]:
    """Opens an engine with the settings that are given; it is stopped when the test ends."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(opened(store_url, signing_key(home), **changes))


@pytest.fixture(scope="module")
def engine(ray_cluster: str, store_url: str, home: Path) -> Iterator[RunningEngine]:
    """One engine for the tests of a module that leave it as they found it."""
    with opened(store_url, signing_key(home)) as running:
        yield running


# Its first actor lingers for the next scenario: creating one costs a second, and none of these counts actors.
LINGERS = {"linger_ms": 60_000}


@pytest.fixture(scope="session")
def shared_engine(ray_cluster: str, store_url: str, home: Path) -> Iterator[RunningEngine]:
    """One engine on a manual clock for the scenarios of every module that names no settings of its own."""
    with opened(store_url, signing_key(home), clock_begins=START_OF_TIME_MS, **LINGERS) as running:
        yield running


@pytest.fixture(scope="module")
def virtual_engine(
    request: pytest.FixtureRequest, ray_cluster: str, store_url: str, home: Path
) -> Iterator[RunningEngine]:
    """The engine of a module's scenarios, on a manual clock: one with the `SETTINGS` that the module names, else the
    shared one."""
    settings = getattr(request.module, "SETTINGS", None)
    if settings is None:
        yield request.getfixturevalue("shared_engine")
        return
    with opened(store_url, signing_key(home), clock_begins=START_OF_TIME_MS, **(LINGERS | settings)) as running:
        yield running


@pytest.fixture
def scene(virtual_engine: RunningEngine, store_url: str) -> Iterator[Scene]:
    """One scenario on the module's engine; when it is over, nothing of it may be left."""
    with open_client(store_url) as client:
        scene = Scene(virtual_engine.operations, client)
        yield scene
        scene.leaves_nothing()


def wait_until(condition: Callable[[], object], what: str, within_s: float = 15.0) -> float:
    """Seconds until the condition held; fails, naming `what`, if it does not in time."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > within_s:
            pytest.fail(f"{what}: not within {within_s:g} s")
        time.sleep(0.02)
    return time.monotonic() - began


def told_by(program: str, store_url: str, folder: Path, key: bytes, *, timeout_s: float) -> dict[str, Any]:
    """What a program with a Ray cluster of its own found out: its last line."""
    done = subprocess.run(
        [sys.executable, "-m", program, store_url, str(folder), key.hex()],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env={**os.environ, "RAY_AUTH_MODE": "disabled"},
    )
    assert done.returncode == 0, done.stderr[-3_000:] + done.stdout[-1_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
