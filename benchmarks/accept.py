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

import time
from collections.abc import Sequence
from typing import Any

from benchmarks import harness
from benchmarks.harness import Number, Program, Result, latencies, say, spread
from benchmarks.probes import fdatasync_per_s
from gobpm_ray import Engine, ProcessBuilder
from gobpm_ray.engine.operations import Operations
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore
from gobpm_ray.store.redis_store import RedisStore

FEW = 100
IDLE_S = 10.0
OURS = ("info", "config|get")
"""What measuring itself costs."""


def measure_accept(client: Operations, listeners: Sequence[int], calls: int) -> dict[str, Result]:
    """One call of each in turn, and in an order that changes."""
    took: dict[int, list[float]] = {count: [] for count in listeners}
    for _ in range(20):
        client.signal("warming up")
    for number in range(calls):
        turn = number % len(listeners)
        for count in (*listeners[turn:], *listeners[:turn]):
            begin = time.perf_counter()
            client.signal(f"heard_by_{count}")
            took[count].append(time.perf_counter() - begin)
    return {str(count): latencies(each) for count, each in took.items()}


def commands(client: Any) -> dict[str, int]:
    return {
        name.removeprefix("cmdstat_"): int(stats["calls"])
        for name, stats in client.info("commandstats").items()
        if name.removeprefix("cmdstat_") not in OURS
    }


def measure_idle(engine: Engine, client: Any, instances: int) -> Result:
    say(f"idle: {instances} instances ...")
    harness.park(engine, "hears_nothing", instances)
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


def measure(instances: int, calls: int, most: int) -> Result:
    listeners = (0, FEW, most)
    with harness.one_ray(), harness.fresh_home() as home:
        server = EmbeddedStore(home)
        connection = open_client(server.ensure_running())
        chosen = harness.settings()
        client = Operations(RedisStore(connection, chosen), chosen)
        try:
            say("parking the listeners ...")
            with harness.real_engine(home=home, clock="real") as engine:
                for count in listeners[1:]:
                    engine.deploy(listener(f"hears_{count}", f"heard_by_{count}"))
                    harness.park(engine, f"hears_{count}", count)
            say("accepting ...")
            disk = [fdatasync_per_s(home)]
            accepted = measure_accept(client, listeners, calls)
            disk.append(fdatasync_per_s(home))
            say("folding what was accepted ...")
            with harness.real_engine(home=home, clock="real") as engine:
                engine.wait_quiet(1_200)
                counts = engine.store.population()
                if counts.ended != sum(listeners) or counts.waiting:
                    raise AssertionError(f"expected {sum(listeners)} ended: {counts}")
                engine.deploy(listener("hears_nothing", "never"))
                idle = measure_idle(engine, connection, instances)
        finally:
            client.close()
            connection.close()
        return {
            "appendfsync": "always",
            "accept": accepted,
            "p50_ratio": harness.ratio(accepted[str(most)]["p50_ms"], accepted["0"]["p50_ms"]),
            "idle_commands_per_s": idle["commands_per_s"],
            "idle": idle,
            "fdatasync_per_s": spread(disk),
        }


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "instances": Number(100_000, 2_000, 100, "waiting while the engine idles"),
        "most": Number(10_000, 2_000, 200, "listeners of the signal that the most wait for; others: 100, nobody"),
        "calls": Number(1_000, 200, 100, "acceptances for each number of listeners"),
    },
)

if __name__ == "__main__":
    PROGRAM.main()
