"""What do others need for the same, on this machine, in this run?

`python -m benchmarks.peers --json`: our storm and, before and after it, the bare claim-and-commit loop on the same
store; one bare Ray actor per wake; our core beside SpiffWorkflow, both without a store; and with `--dbos` DBOS on
SQLite, which takes its time. `ratios` are ours to each. The bare loop is the limit and not a peer: it keeps no promise
beyond its one hash. SpiffWorkflow keeps nothing at all, so it stands against our core; DBOS is durable, as we are.
"""

from __future__ import annotations

from benchmarks import core, dbos_peer, wake
from benchmarks.harness import Number, Program, Result, say


def measure(instances: int, rounds: int, core_seconds: float, dbos_waiting: int, dbos: bool) -> Result:
    theirs = None
    if dbos:
        say("DBOS ...")
        theirs = dbos_peer.measure(dbos_waiting)
    say("core ...")
    cores = core.measure(core_seconds, rounds)
    storm = wake.measure(instances, rounds)
    ours = storm["wakes_per_s"]
    result: Result = {
        "ours": {name: storm[name] for name in ("wakes_per_s", "parked_per_s", "cold_wakes_per_s")},
        "bare_loop_per_s": storm["bare_loop_per_s"],
        "bare_ray_actor_per_s": storm["actor_per_wake_per_s"],
        "our_core": cores["ours"],
        "spiffworkflow": {"version": cores["spiffworkflow_version"], **cores["spiffworkflow"]},
        "fdatasync_per_s": storm["fdatasync_per_s"],
        "appendfsync": "always",
    }
    ratios: Result = {
        "wakes_to_bare_loop": storm["ratio_to_bare_loop"],
        "wakes_to_bare_ray_actor": storm["ratio_to_actor_per_wake"],
        "core_wakes_to_spiffworkflow": cores["wakes_ratio"],
        "durable_wakes_to_spiffworkflow": round(ours / cores["spiffworkflow"]["wakes_per_s"]["median"], 2),
    }
    if theirs is not None:
        result["dbos"] = theirs
        ratios["wakes_to_dbos"] = round(ours / theirs["wakes_per_s"], 1)
        ratios["starts_to_dbos"] = round(storm["parked_per_s"] / theirs["starts_per_s"], 1)
    result["ratios"] = ratios
    return result


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "instances": Number(10_000, 2_000, 30, "of our storm and of the bare loop"),
        "rounds": Number(3, 2, 1, "of everything but DBOS"),
        "core_seconds": Number(2, 0.5, 0.05, "of our core and of SpiffWorkflow, in each round"),
        "dbos_waiting": Number(200, 50, 5, "DBOS workflows that wait, a thread each"),
    },
    {"dbos": "DBOS too"},
)

if __name__ == "__main__":
    PROGRAM.main()
