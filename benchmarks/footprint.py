"""What does one waiting instance cost in the store, and what does a wake append to the store's file?

`python -m benchmarks.footprint --json`: instances with three small variables wait for a timer. Their bytes are the
store's `used_memory` with them less the same without them, after history, facts and the tombstones of deliveries are
removed (those have limits of their own and are reported apart). `further_*`: the same for instances with ten more
waits, a tenth of the difference; as boundary timers of one task, and as parallel branches, which also have a track
each. The append-only file's growth is taken around parking and around waking the same instances.

No actor exists meanwhile: nobody but this process hosts anything.
"""

from __future__ import annotations

import gc
from typing import Any

from benchmarks import harness
from benchmarks.harness import Number, OneProcess, Program, Result
from gobpm_ray import ProcessBuilder

MORE = 10


def processes() -> list[ProcessBuilder]:
    single = ProcessBuilder("single")
    single.start().catch("wait", timer="P1D").end("done")
    guarded = ProcessBuilder("guarded")
    guarded.start().user_task("approve").end()
    more = ProcessBuilder("more")
    more.start().user_task("approve").end()
    for number in range(MORE):
        more.boundary("approve", f"late{number}", timer="P1D", interrupting=False).end(f"reminded{number}")
    parallel = ProcessBuilder("parallel")
    parallel.start().parallel("fork").catch("wait", timer="P1D").end("done")
    for number in range(MORE):
        parallel.at("fork").catch(f"wait{number}", timer="P1D").end(f"done{number}")
    return [single, guarded, more, parallel]


def used(client: Any) -> int:
    gc.collect()
    return int(client.info("memory")["used_memory"])


def appended(client: Any) -> int:
    return int(client.info("persistence")["aof_current_size"])


def forget(bench: OneProcess) -> None:
    """History, facts and tombstones go."""
    keys = bench.store.keys
    ids: Any = bench.client.zrange(keys["instances"], 0, -1)
    for first in range(0, len(ids), 1_000):
        bench.client.unlink(*(keys.instances + each + b":h" for each in ids[first : first + 1_000]))
    bench.client.delete(keys["facts"], keys["dedup"], keys["dedupx"])


def cost(process_id: str, instances: int) -> Result:
    """One kind of instance, on a store of its own."""
    with harness.one_process(*processes()) as bench:
        client = bench.client
        # The file shall only grow: a rewrite in between would make it shorter.
        client.config_set("auto-aof-rewrite-percentage", 0)
        # Scripts, connections and the bells' keys are there before the first figure is taken.
        bench.park("single", 1)
        forget(bench)
        begin, file = used(client), appended(client)
        bench.park(process_id, instances)
        parked, parked_file = used(client), appended(client)
        forget(bench)
        kept = used(client)
        result: Result = {
            "bytes": round((kept - begin) / instances, 1),
            "with_history_facts_tombstones": round((parked - begin) / instances, 1),
            "file_bytes_to_start_and_park": round((parked_file - file) / instances, 1),
        }
        if process_id == "single":
            deadline = bench.store.quiet().next_deadline
            assert deadline is not None
            file = appended(client)
            bench.store.set_clock(deadline + 60_000)
            bench.turn()
            if bench.store.population().ended < instances:
                raise AssertionError(f"expected {instances} ended: {bench.store.population()}")
            result["file_bytes_to_wake_and_end"] = round((appended(client) - file) / instances, 1)
        return result


def measure(instances: int) -> Result:
    costs = {each: cost(each, instances) for each in ("single", "guarded", "more", "parallel")}
    return {
        "timer_wait_bytes": costs["single"]["bytes"],
        "further_boundary_bytes": round((costs["more"]["bytes"] - costs["guarded"]["bytes"]) / MORE, 1),
        "further_branch_bytes": round((costs["parallel"]["bytes"] - costs["single"]["bytes"]) / MORE, 1),
        "file_bytes_per_wake": costs["single"]["file_bytes_to_wake_and_end"],
        "actors": 0,
        "each": costs,
    }


PROGRAM = Program(
    __doc__ or "", measure, {"instances": Number(10_000, 1_000, 100, "of each kind; few measure the store's own keys")}
)

if __name__ == "__main__":
    PROGRAM.main()
