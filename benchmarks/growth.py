"""Does a wake, or a start, cost more because many others wait?

`python -m benchmarks.growth --json`: three engines, each on a store of its own, with 1,000, 10,000 and 100,000
instances waiting for years. On top of them the same batch is started, parked and released by the clock, and then
single messages are published to an idle engine, on one engine after the other and round after round, so that a slow
minute of the machine falls on all three alike. `wakes_ratio` and `starts_ratio` are the largest population's rate over
the smallest one's.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from benchmarks import harness
from benchmarks.harness import Number, Program, Result, say, spread
from benchmarks.latency import PAUSE_S, processes, publish_s, wait_ready
from benchmarks.probes import fdatasync_per_s
from benchmarks.wake import ACTORS, storm_process
from gobpm_ray import Engine, ProcessBuilder


def sleeper() -> ProcessBuilder:
    process = ProcessBuilder("sleeper")
    process.start().catch("long", timer="P3650D").end()
    return process


def single_wakes_s(engine: Engine, count: int, series: str) -> list[float]:
    """From a message's publication to its committed effect, one after the other."""
    took = []
    for number, instance_id in enumerate(wait_ready(engine, "continued", count, series)):
        time.sleep(PAUSE_S)
        took.append(publish_s(engine, "continued", f"{series}{number}", instance_id))
    return took


def measure(smallest: int, largest: int, batch: int, rounds: int, singles: int) -> Result:
    populations = [smallest]
    while populations[-1] * 10 < largest:
        populations.append(populations[-1] * 10)
    populations.append(largest)
    with ExitStack() as stack:
        stack.enter_context(harness.one_ray())
        engines: dict[int, Engine] = {}
        parked: dict[int, float] = {}
        for population in populations:
            home = stack.enter_context(harness.fresh_home())
            changes: dict[str, Any] = {"engine_id": f"bench{population}", "spares": ACTORS, "max_resident": ACTORS}
            opened = harness.real_engine(storm_process(), sleeper(), processes()[0], home=home, **changes)
            engine = stack.enter_context(opened)
            say(f"{population} waiting ...")
            parked[population] = harness.park(engine, "sleeper", population)["parked_per_s"]
            engines[population] = engine
        starts: dict[int, list[float]] = {population: [] for population in populations}
        wakes: dict[int, list[float]] = {population: [] for population in populations}
        latencies: dict[int, list[float]] = {population: [] for population in populations}
        disk = []
        for number in range(rounds + 1):
            say("warming up ..." if number == 0 else f"round {number} of {rounds} ...")
            disk.append(fdatasync_per_s(home))
            turn = number % len(populations)
            for population in (*populations[turn:], *populations[:turn]):
                engine = engines[population]
                started = harness.park(engine, "storm", batch)["parked_per_s"]
                woken = harness.release(engine, batch)
                alone = single_wakes_s(engine, singles, f"r{number}-")
                if number:
                    starts[population].append(started)
                    wakes[population].append(woken)
                    latencies[population] += alone
    by_population: Result = {
        str(population): {
            "starts_per_s": spread(starts[population]),
            "wakes_per_s": spread(wakes[population]),
            "latency": harness.latencies(latencies[population]),
            "filled_at_per_s": round(parked[population], 1),
        }
        for population in populations
    }
    first, last = by_population[str(smallest)], by_population[str(largest)]
    return {
        "appendfsync": "always",
        "actors": ACTORS,
        "by_population": by_population,
        "wakes_ratio": harness.ratio(last["wakes_per_s"]["median"], first["wakes_per_s"]["median"]),
        "starts_ratio": harness.ratio(last["starts_per_s"]["median"], first["starts_per_s"]["median"]),
        "fdatasync_per_s": spread(disk),
    }


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "smallest": Number(1_000, 1_000, 20, "waiting on the first engine"),
        "largest": Number(100_000, 10_000, 200, "waiting on the last engine; between them tenfold steps"),
        "batch": Number(4_000, 1_000, 20, "started, parked and woken on top of them"),
        "rounds": Number(5, 2, 1, "on each engine, in turns"),
        "singles": Number(50, 20, 3, "messages to an idle engine in each round"),
    },
)

if __name__ == "__main__":
    PROGRAM.main()
