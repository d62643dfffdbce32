"""How many waiting instances a second wake, run to their end and are committed, when all their deadlines fall due at
once?

`python -m benchmarks.wake --json`: 10,000 instances wait for a timer on the real engine (embedded store with
`appendfsync always`, local Ray, two
warm spares); the clock jumps past their deadline; the time runs from there to the last commit. In the same run,
before and after: the bare
loop on the same store with as many processes, a bare Ray actor per wake, and the disk's fdatasync.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.probes import actor_per_wake_per_s, bare_loop_per_s, fdatasync_per_s
from gobpm_ray import Engine, ProcessBuilder, Settings
from gobpm_ray.store.embedded import EmbeddedStore

ACTORS = 2
VARIABLES = {"customer": "C-1001", "amount": 125, "region": "north"}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def storm(engine: Engine, instances: int) -> dict[str, float]:
    """Park `instances` on a one-day timer, let the day pass; rates a second of each phase."""
    begin = time.perf_counter()
    for first in range(0, instances, 1_000):
        engine.start_many("storm", [VARIABLES] * min(1_000, instances - first))
    accepted = time.perf_counter()
    engine.wait_quiet(600)
    parked = time.perf_counter()
    before = engine.store.population()
    if before.resident or before.waiting != instances:
        raise AssertionError(f"expected {instances} waiting and none resident: {before}")
    ended = before.ended
    deadline = engine.store.quiet().next_deadline
    if deadline is None:
        raise AssertionError("nothing is armed")
    time.sleep(0.5)
    due = time.perf_counter()
    engine.store.set_clock(deadline + 60_000)
    while engine.store.population().ended < ended + instances:
        if time.perf_counter() - due > 300:
            raise AssertionError(f"the storm does not end: {engine.store.population()}")
        time.sleep(0.005)
    return {
        "accepted_per_s": instances / (accepted - begin),
        "parked_per_s": instances / (parked - begin),
        "wakes_per_s": instances / (time.perf_counter() - due),
    }


def measure(instances: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="gobpm-bench-") as folder:
        home = Path(folder)
        process = ProcessBuilder("storm")
        process.start().catch("wait", timer="P1D").end("done")
        say("starting Ray and the store ...")
        settings = Settings(engine_id="bench", spares=ACTORS, max_resident=ACTORS, retention_count=1_000_000)
        with Engine.open(home=home, clock="virtual", settings=settings) as engine:
            engine.deploy(process)
            socket = str(EmbeddedStore(home).socket)
            say("warming up ...")
            storm(engine, max(instances // 10, 10))
            storms, bare, disk = [], [], []
            for number in range(rounds):
                say(f"round {number + 1} of {rounds} ...")
                disk.append(fdatasync_per_s(home))
                bare.append(bare_loop_per_s(socket, instances, ACTORS))
                storms.append(storm(engine, instances))
            bare.append(bare_loop_per_s(socket, instances, ACTORS))
            disk.append(fdatasync_per_s(home))
            say("bare Ray actors ...")
            actor_rate = actor_per_wake_per_s()
        wakes = [each["wakes_per_s"] for each in storms]
        result: dict[str, Any] = {
            "instances": instances,
            "rounds": rounds,
            "actors": ACTORS,
            "appendfsync": "always",
            "wakes_per_s": round(statistics.median(wakes), 1),
            "wakes_per_s_each": [round(rate, 1) for rate in wakes],
            "parked_per_s": round(statistics.median(each["parked_per_s"] for each in storms), 1),
            "accepted_per_s": round(statistics.median(each["accepted_per_s"] for each in storms), 1),
            "bare_loop_per_s": round(statistics.median(bare), 1),
            "bare_loop_per_s_each": [round(rate, 1) for rate in bare],
            "actor_per_wake_per_s": round(actor_rate, 2),
            "fdatasync_per_s": round(statistics.median(disk), 1),
            "fdatasync_per_s_each": [round(rate, 1) for rate in disk],
            "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()},
        }
        result["ratio_to_bare_loop"] = round(result["wakes_per_s"] / result["bare_loop_per_s"], 3)
        result["ratio_to_actor_per_wake"] = round(result["wakes_per_s"] / result["actor_per_wake_per_s"], 1)
        return result


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--instances", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    result = measure(options.instances, options.rounds)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:26} {value}")


if __name__ == "__main__":
    main()
