"""Does anything grow when the same instances are released and woken again and again?

`python -m benchmarks.soak --json --seconds 3600`: a fixed population loops on a one-day timer; the clock jumps from day
to day as fast as the engine follows. Histories, facts and tombstones are kept short, so that what they hold is full
before the first figure counts. Memory of the store and of all processes is sampled throughout: the last quarter
against the second one.
"""

from __future__ import annotations

import time

from benchmarks import harness
from benchmarks.harness import Number, Program, Result, Sampler, say
from benchmarks.wake import ACTORS
from gobpm_ray import ProcessBuilder
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore

DAY_MS = 86_400_000


def looping() -> ProcessBuilder:
    process = ProcessBuilder("looping")
    process.start().exclusive("again").catch("night", timer="P1D").to("again")
    return process


def measure(seconds: float, instances: int) -> Result:
    with (
        harness.fresh_home() as home,
        harness.real_engine(
            looping(), home=home, spares=ACTORS, max_resident=ACTORS, history_limit=20, facts_limit=2_000
        ) as engine,
        open_client(EmbeddedStore(home).url) as client,
    ):
        harness.park(engine, "looping", instances)
        say(f"cycles for {seconds:g} s ...")
        nights = 0
        begin = time.perf_counter()
        with Sampler(lambda: harness.memory(engine, client), max(0.25, min(10.0, seconds / 40))) as sampler:
            while time.perf_counter() - begin < seconds:
                engine.advance("P1D", timeout=600)
                nights += 1
        took = time.perf_counter() - begin
        counts = engine.store.population()
        if counts.waiting != instances or counts.ended or counts.incidents:
            raise AssertionError(f"expected {instances} still waiting: {counts}")
        report = engine.verify()
        if report.differences:
            raise AssertionError(f"the indexes do not agree with the instances: {report.differences[:3]}")
    return {
        "appendfsync": "always",
        "actors": ACTORS,
        "nights": nights,
        "wakes": nights * instances,
        "wakes_per_s": round(nights * instances / took, 1),
        "memory": harness.flatness(sampler.samples),
    }


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "seconds": Number(3_600, 20, 2, "of release cycles"),
        "instances": Number(1_000, 200, 20, "that loop"),
    },
)

if __name__ == "__main__":
    PROGRAM.main()
