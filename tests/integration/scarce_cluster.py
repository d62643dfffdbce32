"""A cluster that lacks what a task asks for, and then has it: run as a program, which tells what happened.

A program of its own, because the cluster is not the session's, and grows by a node.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from gobpm_ray import Operations, ProcessBuilder, Settings
from tests.integration.two_nodes import wait


def note(inputs: dict[str, Any]) -> dict[str, Any]:
    with Path(inputs["file"]).open("a") as file:
        file.write(inputs["who"] + "\n")
    return {"done": True}


def process() -> ProcessBuilder:
    built = ProcessBuilder("p")
    built.start().service_task(
        "work", topic="note", retries="R2/PT0S", ray={"resources": {"far": 1}, "num_cpus": 0}
    ).end()
    return built


def main(url: str, folder: Path, key: bytes) -> None:
    import ray
    from ray.cluster_utils import Cluster

    from gobpm_ray.engine import cluster
    from gobpm_ray.store.connection import open_client
    from gobpm_ray.store.redis_store import RedisStore

    told: dict[str, Any] = {}
    file = folder / "runs"
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    ray.init(address=nodes.address, logging_level=logging.ERROR, log_to_driver=False)
    engines, handles = [], []
    for name, patience in (("patient", 120_000), ("hasty", 1_500)):
        settings = Settings(engine_id=f"{name}{os.getpid()}", resource_patience_ms=patience)
        handles.append(cluster.ensure(settings, url, signing_key=key))
        engines.append(Operations(RedisStore(open_client(url), settings), settings, signing_key=key))
    patient, hasty = engines
    try:
        for engine, name in zip(engines, ("patient", "hasty"), strict=True):
            engine.register("note", note)
            engine.deploy(process())
            engine.start("p", {"file": str(file), "who": name}, id=name)
        began = time.monotonic()
        wait(lambda: any(e.event == "lacking" for e in patient.inspect("patient").history), "it is said")
        told["said_after"] = time.monotonic() - began
        told["said"] = [e.detail for e in patient.inspect("patient").history if e.event == "lacking"]
        told["fact"] = [fact.data["what"] for fact in patient.facts() if fact.fact == "Lacking"]
        wait(lambda: hasty.inspect("hasty").state == "incident", "patience ends")
        (incident,) = hasty.incidents()
        told["incident"] = [incident.node, incident.code, incident.cause]
        told["meanwhile"] = [patient.inspect("patient").state, file.exists()]
        # The node comes: who still waits is done, and what was given up is not.
        nodes.add_node(num_cpus=1, resources={"far": 1}, include_dashboard=False)
        told["patient"] = patient.wait("patient", 60).state
        time.sleep(1.0)
        told["runs"] = file.read_text().split()
        hasty.retry("hasty")
        told["retried"] = hasty.wait("hasty", 60).state
        told["runs_at_last"] = file.read_text().split()
        wait(lambda: patient.top().signals.get("lacking", 0) == 1, "the signal is told")
    finally:
        for handle in handles:
            cluster.stop(handle, grace_ms=1_000)
        ray.shutdown()
        nodes.shutdown()
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), bytes.fromhex(sys.argv[3]))
