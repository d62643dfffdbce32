"""Whatever is killed through Ray, actors, holders, supervisor, store, raylet or head: the work goes on (promise 1).

Crash points by name are tried in `tests/crash`; here a process dies wherever it is.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from actors.registry import actor_rows
from gobpm_ray.engine import cluster
from gobpm_ray.engine.operations import Operations
from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.store.embedded import EmbeddedStore
from tests.integration.conftest import OpenEngine, RunningEngine, wait_until
from tests.integration.crash_workload import Workload, patiently

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def kill_role(running: RunningEngine, role: str) -> None:
    """SIGKILL of one of the four long-lived actors; Ray has made another when this returns."""
    before = cluster.status(running.handle)[role]["pid"]
    os.kill(before, signal.SIGKILL)

    def another() -> bool:
        with contextlib.suppress(Exception):
            return bool(cluster.status(running.handle)[role]["pid"] != before)
        return False

    wait_until(another, f"another {role} lives", within_s=30)


def kill_actors(running: RunningEngine) -> int:
    rows = [row for row in actor_rows(running.store) if row.started]
    for row in rows:
        with contextlib.suppress(ProcessLookupError):
            os.kill(row.pid, signal.SIGKILL)
    return len(rows)


@pytest.mark.timeout(240)
def test_holders_supervisor_and_actors_die_one_after_the_other_and_the_work_ends_alike(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    """N8-N10, H2: each of the long-lived actors and every InstanceActor is killed while thirty instances work."""
    running = open_engine(lease_ttl_ms=4_000, lease_renew_ms=1_000)
    workload = Workload(running.operations, tmp_path / "effects")
    workload.begin()
    wait_until(lambda: any(workload.folder.iterdir()), "work has begun", within_s=30)

    assert kill_actors(running) > 0
    for position, role in enumerate(("MessageHolder", "TimerHolder", "TaskHolder", "ResidencySupervisor")):
        workload.answer(workload.refs[2 * position : 2 * position + 2])
        kill_role(running, role)
    kill_actors(running)
    workload.answer(workload.refs[8:])

    workload.finish()


@pytest.mark.timeout(240)
def test_the_store_dies_under_the_engine_and_what_was_accepted_goes_on(
    open_engine: OpenEngine, home: Path, tmp_path: Path
) -> None:
    """Promise 1, E89, E91: SIGKILL of the store, twice, with `appendfsync always`, while messages are answered and a
    client starts instance after instance; whatever had an answer is there when it is back, and whatever was asked again
    counted once."""
    running = open_engine(lease_ttl_ms=4_000, lease_renew_ms=1_000)
    embedded = EmbeddedStore(home)
    workload = Workload(running.operations, tmp_path / "effects")
    workload.begin()
    sleeping = ProcessBuilder("held")
    sleeping.start("s").user_task("hold").end("e")
    running.operations.deploy(sleeping)
    wait_until(lambda: any(workload.folder.iterdir()), "work has begun", within_s=30)

    with StartsWithoutPause(running.operations, "held") as load:
        for part in (workload.refs[:5], workload.refs[5:]):
            workload.answer(part)
            load.await_more(20)
            pid = embedded.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.5)
            embedded.ensure_running()
            load.await_more(20)

    assert load.failed or load.longest_s > 0.4, "a start was under way when the store died"
    workload.finish()
    held = running.operations.list_instances(process_id="held")
    assert {view.instance_id for view in held} >= set(load.acknowledged)
    assert len(held) == len({view.instance_id for view in held})
    # The one that got no answer may be there or not; asked again under its id, it is there once.
    for name in load.failed:
        patiently(lambda name=name: running.operations.start("held", id=name))  # type: ignore[misc]
    again = running.operations.list_instances(process_id="held")
    assert {view.instance_id for view in again} == {*load.acknowledged, *load.failed}
    for view in again:
        wait_until(lambda view=view: running.operations.inspect(view.instance_id).waits, "it waits")  # type: ignore[misc]
    assert len(running.operations.tasks(node="hold")) == len(again)


class StartsWithoutPause:
    """A client of its own that starts instances one after the other, each under an id of its own, as fast as it can."""

    def __init__(self, operations: Operations, process: str) -> None:
        self._operations = operations
        self._process = process
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: list[str] = []
        self.failed: list[str] = []
        """Nobody knows whether these were stored."""
        self.longest_s = 0.0

    def _run(self) -> None:
        while not self._over.is_set():
            name = f"load-{len(self.acknowledged)}-{len(self.failed)}"
            began = time.monotonic()
            try:
                self.acknowledged.append(self._operations.start(self._process, id=name).instance_id)
            except EnvironmentFailure:
                self.failed.append(name)
                time.sleep(0.05)
            self.longest_s = max(self.longest_s, time.monotonic() - began)

    def await_more(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= wanted, "the store answers", within_s=30)

    def __enter__(self) -> StartsWithoutPause:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("victim", ["raylet", "gcs_server"])
def test_raylet_and_head_die_and_the_engine_is_opened_again_on_the_same_store(victim: str, tmp_path: Path) -> None:
    """Promise 1, E92: the cluster is gone; the instances are in the store, and the next cluster goes on with them."""
    with tempfile.TemporaryDirectory(prefix="gobpm-") as folder:
        embedded = EmbeddedStore(Path(folder))
        try:
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "tests.integration.losing_ray",
                    victim,
                    embedded.ensure_running(),
                    str(tmp_path),
                ],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=380,
                check=False,
            )
        finally:
            embedded.stop()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "all ended alike"
