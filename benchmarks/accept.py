"""What acceptance costs, whoever waits, and what an engine costs that has nothing to do.

`python -m benchmarks.accept --json`: on an embedded store with `appendfsync always`, a signal is accepted that nobody,
100 and 10,000 instances wait for: p50 and p99 of the accepting call, from another program's connection, in turns, so
that a slow second of the disk falls on all three alike. `p50_ratio` is 10,000 to nobody. The listeners were parked by
the real engine (`Engine.open` on local Ray), which is closed meanwhile, so that they all still wait for the last call;
opened again it folds what was accepted, and every listener must have woken once.

Then 100,000 instances wait on the running engine, nothing happens, and the store's own statistics are read ten seconds
apart. `idle_commands_per_s` counts every command that the store executed, those inside its scripts included.
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

from benchmarks.probes import fdatasync_per_s
from gobpm_ray import Engine, ProcessBuilder, Settings
from gobpm_ray.engine.operations import Operations
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore
from gobpm_ray.store.redis_store import RedisStore

LISTENERS = (0, 100, 10_000)
IDLE_S = 10.0
OURS = ("info", "config|get")
"""What measuring itself costs."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def park(engine: Engine, process: str, instances: int) -> None:
    """So many more instances wait, and nothing is resident."""
    before = engine.store.population().waiting
    for first in range(0, instances, 1_000):
        engine.start_many(process, [{"customer": "C-1001"}] * min(1_000, instances - first))
    engine.wait_quiet(1_200)
    counts = engine.store.population()
    if counts.resident or counts.waiting != before + instances:
        raise AssertionError(f"expected {before + instances} waiting and none resident: {counts}")


def measure_accept(client: Operations, calls: int) -> dict[str, dict[str, float]]:
    """One call of each in turn, and in an order that changes."""
    took: dict[int, list[float]] = {count: [] for count in LISTENERS}
    for _ in range(20):
        client.signal("warming up")
    for number in range(calls):
        turn = number % len(LISTENERS)
        for count in (*LISTENERS[turn:], *LISTENERS[:turn]):
            begin = time.perf_counter()
            client.signal(f"heard_by_{count}")
            took[count].append((time.perf_counter() - begin) * 1_000)
    return {
        str(count): {
            "p50_ms": round(statistics.median(each), 3),
            "p99_ms": round(statistics.quantiles(each, n=100)[98], 3),
            "calls": len(each),
        }
        for count, each in took.items()
    }


def commands(client: Any) -> dict[str, int]:
    return {
        name.removeprefix("cmdstat_"): int(stats["calls"])
        for name, stats in client.info("commandstats").items()
        if name.removeprefix("cmdstat_") not in OURS
    }


def measure_idle(engine: Engine, client: Any, instances: int) -> dict[str, Any]:
    say(f"idle: {instances} instances ...")
    park(engine, "hears_nothing", instances)
    # Free actors linger for two seconds; then only holders and supervisor are left.
    time.sleep(6.0)
    counts = engine.top()
    if counts.actors or counts.waiting != instances:
        raise AssertionError(f"expected {instances} waiting and no actor: {counts}")
    say(f"idle: {IDLE_S:g} s of nothing ...")
    before, begin = commands(client), time.perf_counter()
    time.sleep(IDLE_S)
    after, seconds = commands(client), time.perf_counter() - begin
    more = {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}
    return {
        "waiting": instances,
        "seconds": round(seconds, 1),
        "commands_per_s": round(sum(more.values()) / seconds, 1),
        "by_command": {name: round(count / seconds, 2) for name, count in sorted(more.items(), key=lambda m: -m[1])},
    }


def listener(process_id: str, signal: str) -> ProcessBuilder:
    process = ProcessBuilder(process_id)
    process.start().catch("hear", signal=signal).end()
    return process


def measure(instances: int, calls: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="gobpm-bench-") as folder:
        home = Path(folder)
        server = EmbeddedStore(home)
        connection = open_client(server.ensure_running())
        settings = Settings(engine_id="bench", retention_count=1_000_000)
        client = Operations(RedisStore(connection, settings), settings)
        try:
            say("parking the listeners ...")
            with Engine.open(home=home, settings=settings) as engine:
                for count in LISTENERS[1:]:
                    engine.deploy(listener(f"hears_{count}", f"heard_by_{count}"))
                    park(engine, f"hears_{count}", count)
            say("accepting ...")
            disk = [fdatasync_per_s(home)]
            accepted = measure_accept(client, calls)
            disk.append(fdatasync_per_s(home))
            say("folding what was accepted ...")
            with Engine.open(home=home, settings=settings) as engine:
                engine.wait_quiet(1_200)
                counts = engine.store.population()
                if counts.ended != sum(LISTENERS) or counts.waiting:
                    raise AssertionError(f"expected {sum(LISTENERS)} ended: {counts}")
                engine.deploy(listener("hears_nothing", "never"))
                idle = measure_idle(engine, connection, instances)
        finally:
            client.close()
            connection.close()
            server.stop()
        return {
            "appendfsync": "always",
            "accept": accepted,
            "p50_ratio": round(accepted["10000"]["p50_ms"] / accepted["0"]["p50_ms"], 3),
            "idle_commands_per_s": idle["commands_per_s"],
            "idle": idle,
            "fdatasync_per_s": round(statistics.median(disk), 1),
            "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()},
        }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--instances", type=int, default=100_000, help="waiting while the engine idles")
    arguments.add_argument("--calls", type=int, default=1_000, help="acceptances for each number of listeners")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    result = measure(options.instances, options.calls)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
