"""How fast does one signal reach everyone who waits for it?

`python -m benchmarks.broadcast --json`: 10,000 instances wait for a signal; from its acceptance to the last one's end,
wakes a second. Storms of as many timers on the same engine stand before and after each broadcast: `ratio` is the
broadcast's rate to theirs.
"""

from __future__ import annotations

from benchmarks import harness
from benchmarks.harness import Number, Program, Result, say, spread
from benchmarks.probes import fdatasync_per_s
from benchmarks.wake import ACTORS, storm, storm_process
from gobpm_ray import Engine, ProcessBuilder


def broadcast(engine: Engine, instances: int) -> float:
    harness.park(engine, "listener", instances)
    return harness.ended_per_s(engine, instances, lambda: engine.signal("all"))


def measure(instances: int, rounds: int) -> Result:
    listener = ProcessBuilder("listener")
    listener.start().catch("hear", signal="all").end("heard")
    with (
        harness.fresh_home() as home,
        harness.real_engine(storm_process(), listener, home=home, spares=ACTORS, max_resident=ACTORS) as engine,
    ):
        say("warming up ...")
        storm(engine, max(instances // 10, 10))
        broadcast(engine, max(instances // 10, 10))
        disk = [fdatasync_per_s(home)]
        storms, broadcasts = [storm(engine, instances)["wakes_per_s"]], []
        for number in range(rounds):
            say(f"round {number + 1} of {rounds} ...")
            broadcasts.append(broadcast(engine, instances))
            storms.append(storm(engine, instances)["wakes_per_s"])
            disk.append(fdatasync_per_s(home))
    result: Result = {"appendfsync": "always", "actors": ACTORS}
    result |= {"wakes_per_s": spread(broadcasts), "storm_wakes_per_s": spread(storms), "fdatasync_per_s": spread(disk)}
    result["ratio"] = harness.ratio(result["wakes_per_s"]["median"], result["storm_wakes_per_s"]["median"])
    return result


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "instances": Number(10_000, 2_000, 30, "listening"),
        "rounds": Number(3, 1, 1, "broadcasts, each between two storms"),
    },
)

if __name__ == "__main__":
    PROGRAM.main()
