"""How many instances a second are started, in bulk and one by one, until each waits as a record and nothing more?

`python -m benchmarks.starts --json`: the public API, one client, two warm spares, `appendfsync always`; bulk and single
starts in turns, and between them bulks whose first legs are left to the actors (`park_at_start=False`). `accepted`
counts to the last answer, `parked` to the moment at which nothing is ready or resident.
"""

from __future__ import annotations

import time
from dataclasses import replace

from benchmarks import harness
from benchmarks.harness import VARIABLES, Number, Program, Result, say, spread
from benchmarks.probes import fdatasync_per_s
from benchmarks.wake import ACTORS, storm_process
from gobpm_ray import Engine


def one_by_one(engine: Engine, count: int) -> Result:
    took = []
    begin = time.perf_counter()
    for _ in range(count):
        before = time.perf_counter()
        engine.start("storm", VARIABLES)
        took.append(time.perf_counter() - before)
    accepted = time.perf_counter()
    engine.wait_quiet(600)
    parked = time.perf_counter()
    return {"accepted_per_s": count / (accepted - begin), "parked_per_s": count / (parked - begin), "took": took}


def parked_by_actors(engine: Engine, count: int) -> Result:
    before = engine.settings
    engine.settings = replace(before, park_at_start=False)
    try:
        return harness.park(engine, "storm", count)
    finally:
        engine.settings = before


def measure(bulk: int, single: int, rounds: int) -> Result:
    with (
        harness.fresh_home() as home,
        harness.real_engine(storm_process(), home=home, spares=ACTORS, max_resident=ACTORS) as engine,
    ):
        say("warming up ...")
        harness.park(engine, "storm", max(bulk // 10, 10))
        one_by_one(engine, max(single // 10, 10))
        parked_by_actors(engine, max(bulk // 10, 10))
        bulks, plain, singles, disk = [], [], [], []
        for number in range(rounds):
            say(f"round {number + 1} of {rounds} ...")
            disk.append(fdatasync_per_s(home))
            bulks.append(harness.park(engine, "storm", bulk))
            plain.append(parked_by_actors(engine, bulk))
            singles.append(one_by_one(engine, single))
    calls = [took for each in singles for took in each["took"]]
    return {
        "appendfsync": "always",
        "actors": ACTORS,
        "bulk": {name: spread([each[name] for each in bulks]) for name in ("accepted_per_s", "parked_per_s")},
        "bulk_by_actors": {name: spread([each[name] for each in plain]) for name in ("accepted_per_s", "parked_per_s")},
        "one_by_one": {name: spread([each[name] for each in singles]) for name in ("accepted_per_s", "parked_per_s")},
        "one_call": harness.latencies(calls),
        "fdatasync_per_s": spread(disk),
    }


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "bulk": Number(10_000, 2_000, 40, "started in bulk in each round"),
        "single": Number(3_000, 500, 20, "started one by one in each round"),
        "rounds": Number(5, 2, 1, "of both, in turns"),
    },
)

if __name__ == "__main__":
    PROGRAM.main()
