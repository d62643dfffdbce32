"""How many waiting instances a second wake, run to their end and are committed, when all their deadlines fall due at
once?

`python -m benchmarks.wake --json`: 10,000 instances wait for a timer on the real engine (embedded store with
`appendfsync always`, local Ray, two warm spares); the clock jumps past their deadline; the time runs from there to the
last commit. In the same run, before and after: the bare loop on the same store with as many processes, a bare Ray
actor per wake, and the disk's fdatasync. `cold_wakes_per_s` is one such storm on an engine without spares, whose actors
are created when the first deadlines fall due.
"""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks import harness
from benchmarks.harness import Number, Program, Result, say, spread
from benchmarks.probes import actor_per_wake_per_s, bare_loop_per_s, fdatasync_per_s
from gobpm_ray import Engine, ProcessBuilder
from gobpm_ray.store.embedded import EmbeddedStore

ACTORS = 2


def storm_process() -> ProcessBuilder:
    process = ProcessBuilder("storm")
    process.start().catch("wait", timer="P1D").end("done")
    return process


def storm(engine: Engine, instances: int) -> dict[str, float]:
    """Park `instances` on a one-day timer, let the day pass; rates a second of each phase."""
    rates = harness.park(engine, "storm", instances)
    time.sleep(0.5)
    rates["wakes_per_s"] = harness.release(engine, instances)
    return rates


def cold_storm(home: Path, instances: int) -> float:
    with harness.real_engine(storm_process(), home=home, spares=0, max_resident=ACTORS) as engine:
        harness.park(engine, "storm", instances)
        harness.until(lambda: engine.top().actors == 0, 60, "the last free actor's end")
        return harness.release(engine, instances)


def measure(instances: int, rounds: int) -> Result:
    with harness.one_ray(), harness.fresh_home() as home:
        socket = str(EmbeddedStore(home).socket)
        with harness.real_engine(storm_process(), home=home, spares=ACTORS, max_resident=ACTORS) as engine:
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
        say("without spares ...")
        cold = cold_storm(home, instances)
        say("bare Ray actors ...")
        actor_rate = actor_per_wake_per_s()
    result: Result = {"actors": ACTORS, "appendfsync": "always"}
    measured = {name: [each[name] for each in storms] for name in ("wakes_per_s", "parked_per_s", "accepted_per_s")}
    measured |= {"bare_loop_per_s": bare, "fdatasync_per_s": disk}
    # The medians are plain numbers, for programs that read them; how much they vary stands beside them.
    result |= {name: spread(values)["median"] for name, values in measured.items()}
    result["cold_wakes_per_s"] = round(cold, 1)
    result["actor_per_wake_per_s"] = round(actor_rate, 2)
    result["ratio_to_bare_loop"] = harness.ratio(result["wakes_per_s"], result["bare_loop_per_s"])
    result["ratio_to_actor_per_wake"] = harness.ratio(result["wakes_per_s"], actor_rate, 1)
    result["spread"] = {name: spread(values) for name, values in measured.items()}
    return result


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "instances": Number(10_000, 2_000, 60, "waiting, and due at once"),
        "rounds": Number(3, 2, 1, "storms; the median counts"),
    },
)

if __name__ == "__main__":
    PROGRAM.main()
