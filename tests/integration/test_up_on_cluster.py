"""`gobpm-ray up --ray`: an engine on a cluster that was started by hand, as a user would try it.

The cluster can import the project, as one has on whose nodes it is installed. `up` joins it and leaves, the engine's
actors stay, and `down` takes them away again without harm to the cluster.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.store.embedded import EmbeddedStore
from tests.integration.test_job_submission import LocalCluster, free_ports, local_cluster

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "document_request.bpmn"
ROLES = ("MessageHolder", "ResidencySupervisor", "TaskHolder", "TimerHolder")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster("disabled", PYTHONPATH=str(ROOT)) as running:
        yield running


@dataclass
class User:
    """Somebody with a home of their own and a shell, in a folder that is not the project's."""

    cluster: LocalCluster
    folder: Path

    def types(self, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gobpm_ray.cli.main", *map(str, words), "--json"],
            cwd=self.folder,
            env={**self.cluster.environment, "GOBPM_HOME": str(self.folder / "home"), **more},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def sees(self, *words: object, **more: str) -> dict[str, Any]:
        """The last row of a command that went well."""
        done = self.types(*words, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return row

    def engine_of_cluster(self) -> list[str]:
        return sorted(name.rpartition(":")[2] for name in self.cluster.actors() if "InstanceActor" not in name)


@pytest.fixture
def user(cluster: LocalCluster) -> Iterator[User]:
    with tempfile.TemporaryDirectory(prefix="gobpm-") as folder:
        user = User(cluster, Path(folder))
        yield user
        user.types("down")
        EmbeddedStore(user.folder / "home").stop()


@pytest.mark.parametrize("way", ["address", "auto", "client"])
def test_an_engine_joins_a_running_cluster_works_there_and_leaves_it(user: User, way: str) -> None:
    """C5, design 11: by address, by `auto`, and through a Ray client."""
    addresses = {"address": user.cluster.gcs, "auto": "auto", "client": user.cluster.client}
    more = {"RAY_ADDRESS": user.cluster.gcs} if way == "auto" else {}

    up = user.sees("up", "--ray", addresses[way], **more)

    assert (up["up"], up["supervisor"]["alive"]) == (True, True)
    assert user.engine_of_cluster() == list(ROLES), "the command has ended, its actors live on"
    assert "already" in user.types("up", "--ray", addresses[way], **more).stderr
    user.sees("deploy", EXAMPLE)
    started = user.sees("start", "document-request", "--var", 'reference="R-1"')["instance_id"]
    answered(user, "send-request")
    assert waits_at(user, started, "wait-for-answer")
    user.sees("publish", "document received", "--key", "R-1")
    wait_for(lambda: user.sees("show", started)["state"] == "completed", "it is completed")

    assert user.sees("down") == {"engine": True, "store": True}

    assert user.cluster.actors() == {}, "nothing of the engine is left there"
    assert user.types("status").returncode == 5
    assert user.sees("list")["state"] == "completed", "and the store has kept everything"


def answered(user: User, node: str) -> None:
    """Nobody registered its work: it is a job, reported here by hand."""
    wait_for(lambda: user.types("complete", node).returncode == 0, f"the job of {node} is there")


def waits_at(user: User, instance: str, node: str) -> bool:
    wait_for(lambda: user.sees("show", instance)["tokens"] == [{"node": node, "state": "waiting"}], "it waits")
    return True


def wait_for(done: Any, what: str, within_s: float = 20) -> None:
    until = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < until, f"{what}: not within {within_s} s"
        time.sleep(0.1)


def test_an_address_without_a_cluster_is_one_clear_line_and_leaves_nothing_behind(user: User) -> None:
    """D16."""
    (port,) = free_ports(1)
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        up = user.types("up", "--ray", address)
        assert up.returncode == 5
        assert json.loads(up.stdout)["error"]["code"] == "ray_unavailable"
        (line,) = up.stderr.splitlines()
        assert f"Ray at {address}: nobody listens there" in line
        assert user.types("status").returncode == 5
        assert not EmbeddedStore(user.folder / "home").status().running, "the store that it had started is stopped"
    assert user.cluster.actors() == {}
