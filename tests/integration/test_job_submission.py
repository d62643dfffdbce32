"""`ray job submit` against a running cluster, Ray's token authentication on and off: the example leaves and comes back.

Each cluster here is a process of the test's own, on free ports, in a folder of its own, which is also its users' home.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from actors.power_failure import ray_processes
from gobpm_ray.store.embedded import EmbeddedStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
RAY = [sys.executable, "-m", "ray.scripts.scripts"]
START_WITHIN_S = 60.0
JOB_WITHIN_S = 120.0


@dataclass
class LocalCluster:
    """A cluster that was started by hand, as `ray start` does it, and the environment its users have."""

    dashboard: str
    gcs: str
    client: str
    """Where a Ray client connects to (`ray://`)."""
    environment: dict[str, str]
    token: str
    store: EmbeddedStore

    def submit(self, *arguments: str) -> str:
        """The output of `ray job submit --working-dir . -- python examples/driver.py ...`; fails if the job failed."""
        command = [*RAY, "job", "submit", "--address", self.dashboard, "--working-dir", str(ROOT), "--"]
        done = subprocess.run(
            [*command, "python", "examples/driver.py", *arguments],
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=JOB_WITHIN_S,
        )
        assert done.returncode == 0, f"{done.stdout[-4_000:]}\n{done.stderr[-4_000:]}"
        return done.stdout

    def actors(self) -> dict[str, str]:
        """Ray's own state API: state by actor name, of the engine's actors that are not dead."""
        request = urllib.request.Request(f"{self.dashboard}/api/v0/actors?limit=10000")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            listed = json.load(answer)["data"]["result"]["result"]
        return {
            actor["name"]: actor["state"]
            for actor in listed
            if (actor["name"] or "").startswith("gobpm:") and actor["state"] != "DEAD"
        }


@contextmanager
def local_cluster(auth: str, **more: str) -> Iterator[LocalCluster]:
    """`ray start --head` as a child of this test; it and all it started are gone afterwards. `more`: of the environment
    that it and its users have."""
    home = Path(tempfile.mkdtemp(prefix="gobpm-"))  # short: Ray's sockets have a path limit
    token = secrets.token_hex(32) if auth == "token" else ""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RAY_", "GOBPM_")) and name not in ("PYTHONPATH", "COVERAGE_PROCESS_START")
    } | {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RAY_AUTH_MODE": auth,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_enable_worker_prestart": "0",
        **more,
    }
    if token:
        (home / ".ray").mkdir()
        (home / ".ray" / "auth_token").write_text(token, encoding="ascii")
    gcs, dashboard, client, agent, metrics, runtime_env = free_ports(6)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        log = stack.enter_context((home / "ray.log").open("w+", encoding="utf-8"))
        head = subprocess.Popen(
            [
                *RAY, "start", "--head", "--block", "--num-cpus=2", f"--temp-dir={home}/r",
                f"--port={gcs}", f"--dashboard-port={dashboard}", f"--ray-client-server-port={client}",
                f"--dashboard-agent-listen-port={agent}", f"--metrics-export-port={metrics}",
                f"--runtime-env-agent-port={runtime_env}", "--object-store-memory=100000000",
                "--node-ip-address=127.0.0.1",
            ],
            env=environment, cwd=home, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        stack.callback(end_session, head)
        store = EmbeddedStore(home / ".gobpm")
        stack.callback(store.stop)
        addresses = (f"http://127.0.0.1:{dashboard}", f"127.0.0.1:{gcs}", f"ray://127.0.0.1:{client}")
        cluster = LocalCluster(*addresses, environment, token, store)
        await_dashboard(cluster, head, home / "ray.log")
        yield cluster


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def await_dashboard(cluster: LocalCluster, head: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_WITHIN_S
    while True:
        try:
            cluster.actors()
            return
        except (OSError, urllib.error.URLError, KeyError, ValueError):
            if head.poll() is not None or time.monotonic() > until:
                pytest.fail(f"the cluster did not start: {log.read_text(encoding='utf-8')[-4_000:]}")
            time.sleep(0.2)


def end_session(head: subprocess.Popen[bytes]) -> None:
    """Ray's own processes are asked to end, and whoever of them is left is killed: they are all our own descendants."""
    ours = ray_processes(head.pid)
    head.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        # A raylet with living actors takes its time.
        head.wait(2)
    for pid in (head.pid, *ours):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    head.wait(5)


def orders(output: str) -> dict[str, str]:
    """The summary's table: state by order."""
    return dict(re.findall(r"(order-[0-9a-f]+-\d+)\s+│\s+(\w+)", output))


@pytest.fixture(scope="module", params=["disabled", "token"])
def cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    with local_cluster(request.param) as cluster:
        yield cluster


def test_a_submitted_driver_leaves_and_a_second_one_comes_back_to_the_same_instances(cluster: LocalCluster) -> None:
    """C5, issue 2 (8): job submission with token authentication on and off; the actors outlive the driver."""
    first = orders(cluster.submit())
    assert sorted(first.values()) == ["completed", "completed", "waiting", "waiting"]

    # The driver is gone, its actors are not: three holders and a supervisor, and nobody for those who wait.
    until = time.monotonic() + 20
    while any("InstanceActor" in name for name in cluster.actors()) and time.monotonic() < until:
        time.sleep(0.2)
    alive = cluster.actors()
    assert sorted(name.rpartition(":")[2] for name in alive) == [
        "MessageHolder",
        "ResidencySupervisor",
        "TaskHolder",
        "TimerHolder",
    ]
    assert set(alive.values()) == {"ALIVE"}
    assert cluster.store.status().running, "the actors' store outlives the driver that started it"

    output = cluster.submit("--attach")

    assert "came back to 2 waiting orders" in output
    second = orders(output)
    assert set(second) == set(first)
    assert set(second.values()) == {"completed"}


@pytest.mark.parametrize("cluster", ["token"], indirect=True)
def test_without_the_token_a_cluster_that_wants_one_is_a_named_failure(cluster: LocalCluster) -> None:
    """D16: one clear line and no traceback, when the driver may not join."""
    stranger = cluster.environment | {"HOME": cluster.environment["HOME"] + "/nobody"}
    refused = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "driver.py"), "--address", cluster.gcs],
        env=stranger | {"PYTHONPATH": str(ROOT)},
        cwd=cluster.environment["HOME"],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr
    assert f"Ray at {cluster.gcs}" in refused.stderr
