"""Two Ray nodes on one machine, the second with a resource of its own: run as a program, which tells what happened.

A program of its own, because the cluster is not the session's, and one of its nodes dies.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gobpm_ray import Operations, ProcessBuilder, Settings


def slow(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Says where it runs, and does not end before it may."""
    import ray

    folder = Path(inputs["folder"])
    line = {
        "key": context.idempotency_key,
        "attempt": context.attempt,
        "node": ray.get_runtime_context().get_node_id(),
        "pid": os.getpid(),
    }
    with (folder / "runs").open("a") as runs:
        runs.write(json.dumps(line) + "\n")
    until = time.monotonic() + 60
    while not (folder / "go").exists() and time.monotonic() < until:
        time.sleep(0.05)
    # Far beyond what a variable may be, but only its length is mapped to one.
    return {"document": "x" * 3_000_000, "node": line["node"]}


def process(name: str, *, idempotent: bool, **more: Any) -> ProcessBuilder:
    built = ProcessBuilder(name)
    built.start().service_task(
        "work",
        topic="slow",
        idempotent=idempotent,
        ray={"resources": {"far": 1}, "num_cpus": 0.1},
        outputs={"size": "=string length(document)", "ran_on": "=node"},
        **more,
    ).end()
    return built


def main(url: str, folder: Path, key: bytes) -> None:
    import ray
    from ray.cluster_utils import Cluster

    from gobpm_ray.engine import cluster
    from gobpm_ray.store.connection import open_client
    from gobpm_ray.store.redis_store import RedisStore

    told: dict[str, Any] = {}
    quick = {"health_check_initial_delay_ms": 1_000, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
    nodes = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "include_dashboard": False, "_system_config": quick},
    )
    far = nodes.add_node(num_cpus=1, resources={"far": 3}, include_dashboard=False)
    ray.init(address=nodes.address, logging_level=logging.ERROR, log_to_driver=False)
    settings = Settings(engine_id=f"far{os.getpid()}", linger_ms=1_000)
    store = RedisStore(open_client(url), settings)
    handle = cluster.ensure(settings, url, signing_key=key)
    try:
        engine = Operations(store, settings, signing_key=key)
        engine.register("slow", slow)
        engine.deploy(
            process("once", idempotent=False),
            process("again", idempotent=True),
            process("timed", idempotent=False, timeout="PT1S"),
        )
        runs = lambda: [json.loads(line) for line in (folder / "runs").read_text().splitlines()]  # noqa: E731

        # It runs where the resource is, and a large result is no variable.
        (folder / "go").touch()
        first = engine.start("once", {"folder": str(folder)}, id="first")
        view = engine.wait(first.instance_id, 30)
        told["far"] = far.node_id
        told["first"] = {"state": view.state, "size": view.variables["size"], "ran_on": view.variables["ran_on"]}
        record = store.instance("first")
        assert record is not None
        told["kept"] = sum(map(len, record.parts.values()))
        (folder / "go").unlink()

        # Its time is over: the task is cancelled, by force if need be.
        engine.start("timed", {"folder": str(folder)}, id="late")
        wait(lambda: engine.inspect("late").state == "incident", "the time is over")
        told["late"] = engine.inspect("late").incidents[0].cause

        # Its node dies in the middle.
        engine.start("once", {"folder": str(folder)}, id="sealed")
        engine.start("again", {"folder": str(folder)}, id="driven")
        wait(lambda: {"sealed", "driven"} <= {run["key"].partition(":")[0] for run in runs()}, "both run")
        nodes.remove_node(far, allow_graceful=False)
        wait(lambda: engine.inspect("sealed").state == "incident", "the incident", 60)
        told["sealed"] = [(i.node, i.code, i.cause) for i in engine.incidents() if i.instance_id == "sealed"]
        told["driven_meanwhile"] = engine.inspect("driven").state
        other = nodes.add_node(num_cpus=1, resources={"far": 3}, include_dashboard=False)
        told["other"] = other.node_id
        (folder / "go").touch()
        told["driven"] = engine.wait("driven", 60).state
        engine.retry("sealed")
        told["retried"] = engine.wait("sealed", 30).state
        told["runs"] = runs()
        told["histories"] = {name: [e.event for e in engine.inspect(name).history] for name in ("sealed", "driven")}
    finally:
        cluster.stop(handle, grace_ms=1_000)
        ray.shutdown()
        nodes.shutdown()
    print(json.dumps(told))


def wait(done: Callable[[], bool], what: str, within_s: float = 30) -> None:
    until = time.monotonic() + within_s
    while not done():
        if time.monotonic() > until:
            raise SystemExit(f"not within {within_s} s: {what}")
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), bytes.fromhex(sys.argv[3]))
