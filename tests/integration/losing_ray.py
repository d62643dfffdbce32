"""`python -m tests.integration.losing_ray VICTIM STORE_URL FOLDER`: a Ray of its own loses its raylet or its head."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray

from actors.power_failure import kill_local_cluster, ray_processes
from gobpm_ray.engine import cluster
from gobpm_ray.engine.operations import Operations
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from tests.integration.crash_workload import Workload

KEY = b"a key of this test's own: 32 byte"


def start_ray() -> None:
    ray.init("local", namespace="tests", num_cpus=2, include_dashboard=False, log_to_driver=False)


def main(victim: str, url: str, folder: Path) -> None:
    settings = Settings(engine_id="losing", linger_ms=1_000, lease_ttl_ms=4_000, lease_renew_ms=1_000)
    store = RedisStore(open_client(url), settings)
    start_ray()
    cluster.ensure(settings, url, signing_key=KEY)
    workload = Workload(Operations(store, settings, signing_key=KEY), folder / "effects")
    workload.begin()
    while not any(workload.folder.iterdir()):
        time.sleep(0.05)
    for pid in ray_processes(os.getpid()):
        if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(victim.encode()):
            os.kill(pid, signal.SIGKILL)
            print(f"killed {victim} {pid}", flush=True)
    workload.answer(workload.refs[:5])  # accepted while there is no cluster to fold it
    time.sleep(1.0)
    kill_local_cluster()

    start_ray()
    cluster.ensure(settings, url, signing_key=KEY)
    workload.answer(workload.refs[5:])
    workload.finish(within_s=120)
    print("all ended alike", flush=True)
    kill_local_cluster()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
