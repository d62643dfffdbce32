"""How long until everybody is served again after all of Ray was killed?

`python -m benchmarks.recovery --json`: 10,000 instances wait for a message each and 8 are claimed, in the middle of an
idempotent callable. Every Ray process dies by SIGKILL; while nothing lives, `woken` of the waiting get their messages,
which the store accepts. Then the engine is opened again on the same store. `served_s` is from the beginning of that
opening to the last commit of the 8 and of the woken; the limit is max(Ray's own start, lease TTL) plus three seconds.
`ray_start_s` is Ray's start alone, measured in the same run. At last everybody else gets a message as well, and all
must have ended once.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

from actors.power_failure import kill_local_cluster
from benchmarks import harness
from benchmarks.harness import Number, Program, Result, say, until
from benchmarks.wake import ACTORS
from gobpm_ray import Engine, ProcessBuilder
from gobpm_ray.engine.operations import Operations
from gobpm_ray.store.connection import URL_VARIABLE, open_client
from gobpm_ray.store.embedded import EmbeddedStore
from gobpm_ray.store.redis_store import RedisStore

LEFT_S = 3.0
"""Beyond Ray's own start or the lease's life, whichever is longer."""
HANGS_S = 3_600.0


def busy(variables: Mapping[str, str]) -> dict[str, object]:
    """Works until the gate's file is there, which outlives the first host."""
    end = time.monotonic() + HANGS_S
    while not Path(variables["gate"]).exists() and time.monotonic() < end:
        time.sleep(0.02)
    return {"served": True}


def processes() -> list[ProcessBuilder]:
    waiting = ProcessBuilder("waiting")
    waiting.start().catch("hear", message="Go", key="=k").end()
    working = ProcessBuilder("working")
    working.start().service_task("work", topic="bench-busy", idempotent=True).end()
    return [waiting, working]


def ray_start_s() -> float:
    import ray

    begin = time.perf_counter()
    ray.init("local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    took = time.perf_counter() - begin
    ray.shutdown()
    return took


def measure(instances: int, claimed: int, woken: int) -> Result:
    os.environ.pop(URL_VARIABLE, None)
    chosen = harness.settings(spares=ACTORS, max_resident=claimed + ACTORS)
    with harness.fresh_home() as home:
        client = open_client(EmbeddedStore(home).ensure_running())
        gate = home / "gate"
        say("starting Ray and parking ...")
        doomed = Engine.open(home=home, settings=chosen)
        doomed.register("bench-busy", busy)
        doomed.deploy(*processes())
        for first in range(0, instances, harness.CHUNK):
            some = range(first, min(first + harness.CHUNK, instances))
            doomed.start_many("waiting", [{"k": str(number)} for number in some])
        doomed.wait_quiet(1_200)
        doomed.start_many("working", [{"gate": str(gate)}] * claimed)
        until(lambda: doomed.store.population().resident >= claimed, 60, f"{claimed} claimed")
        time.sleep(1.0)
        say("killing Ray ...")
        kill_local_cluster()
        doomed.store.close()
        operations = Operations(RedisStore(client, chosen), chosen)
        for number in range(woken):
            operations.publish("Go", str(number))
        gate.touch()
        say("opening the engine again ...")
        begin = time.perf_counter()
        with Engine.open(home=home, settings=chosen) as engine:
            opened_s = time.perf_counter() - begin
            until(lambda: engine.store.population().ended >= claimed + woken, 300, "the claimed and the woken")
            served_s = time.perf_counter() - begin
            say("everybody else ...")
            for number in range(woken, instances):
                operations.publish("Go", str(number))
            everybody = claimed + instances
            until(lambda: engine.store.population().ended >= everybody, 600, "everybody")
            all_s = time.perf_counter() - begin
            engine.wait_quiet(60)
            counts = engine.store.population()
            if counts.ended != everybody or counts.waiting or counts.incidents:
                raise AssertionError(f"expected {everybody} ended and nobody else: {counts}")
        client.close()
        start_s = ray_start_s()
    limit_s = max(start_s, chosen.lease_ttl_ms / 1_000) + LEFT_S
    return {
        "appendfsync": "always",
        "lease_ttl_s": chosen.lease_ttl_ms / 1_000,
        "ray_start_s": round(start_s, 2),
        "opened_s": round(opened_s, 2),
        "served_s": round(served_s, 2),
        "limit_s": round(limit_s, 2),
        "within_limit": served_s <= limit_s,
        "everybody_s": round(all_s, 2),
    }


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "instances": Number(10_000, 1_000, 50, "waiting"),
        "claimed": Number(8, 4, 2, "in the middle of their work"),
        "woken": Number(100, 50, 10, "of the waiting, while nothing lives"),
    },
)

if __name__ == "__main__":
    PROGRAM.main()
