"""How long from a message's publication to its committed effect, on an engine that idles?

`python -m benchmarks.latency --json`: a client publishes to one waiting instance after the other, with pauses, and
looks until the store says so. `continued`: the message makes the instance end, one commit. `called`: it makes a
service task run its Python function, and the result is committed, which is two commits (the intent, then the result).
Both on an engine with one warm spare. `cold` is an engine without spares whose last actor has ended, `bare_actor` the
creation of an empty Ray actor and its first call; they are taken in turns, and `cold_to_bare` is the ratio of their
medians.
`--idle-s` waits before the first of each, for whoever wants to see an hour's idleness.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from benchmarks import harness
from benchmarks.harness import Number, Program, Result, latencies, say, spread
from benchmarks.probes import create_and_call_s, fdatasync_per_s
from gobpm_ray import Engine, ProcessBuilder

PAUSE_S = 0.02
LOOK_S = 0.0002


def effect(variables: Mapping[str, object]) -> dict[str, object]:
    return {"paid": variables["amount"]}


def processes() -> list[ProcessBuilder]:
    continued = ProcessBuilder("continued")
    continued.start().catch("hear", message="Continue", key="=k").end()
    called = ProcessBuilder("called")
    called.start().catch("hear", message="Call", key="=k").service_task("pay", topic="bench-effect").end()
    return [continued, called]


MESSAGE = {"continued": "Continue", "called": "Call"}


def wait_ready(engine: Engine, process: str, count: int, series: str) -> list[str]:
    """So many instances wait, each for a key of its own; their ids in the keys' order."""
    started = engine.start_many(process, [{"k": f"{series}{number}", "amount": 5} for number in range(count)])
    engine.wait_quiet(600)
    return [each.instance_id for each in started]


def publish_s(engine: Engine, process: str, key: str, instance_id: str) -> float:
    """From the call to the instance's recorded end."""
    store = engine.store
    begin = time.perf_counter()
    engine.publish(MESSAGE[process], key, {"seen": True})
    while store.status(instance_id) == "active":
        if time.perf_counter() - begin > 60:
            raise AssertionError(f"instance {instance_id} did not end: {engine.inspect(instance_id)}")
        time.sleep(LOOK_S)
    return time.perf_counter() - begin


def warm(engine: Engine, process: str, wakes: int, idle_s: float) -> tuple[list[float], float]:
    """Each wake by itself, and the first one after `idle_s`."""
    ids = wait_ready(engine, process, wakes + 5, "w")
    time.sleep(idle_s)
    first = publish_s(engine, process, "w0", ids[0])
    took = []
    for number, instance_id in enumerate(ids[1:], 1):
        time.sleep(PAUSE_S)
        each = publish_s(engine, process, f"w{number}", instance_id)
        if number > 4:
            took.append(each)
    return took, first


def cold(engine: Engine, count: int, idle_s: float) -> tuple[list[float], list[float]]:
    """(first wakes of an engine without an actor, bare actors), in turns."""
    ids = wait_ready(engine, "continued", count + 1, "c")
    wakes, bare = [], []
    for number, instance_id in enumerate(ids):
        harness.until(lambda: engine.top().actors == 0, 60, "the last free actor's end")
        time.sleep(idle_s if number == 0 else 0.5)
        woken = publish_s(engine, "continued", f"c{number}", instance_id)
        time.sleep(0.5)
        created = create_and_call_s()
        if number:
            wakes.append(woken)
            bare.append(created)
    return wakes, bare


def measure(wakes: int, colds: int, idle_s: float) -> Result:
    with harness.one_ray(), harness.fresh_home() as home:
        result: Result = {"appendfsync": "always"}
        disk = [fdatasync_per_s(home)]
        with harness.real_engine(home=home, clock="real", spares=1) as engine:
            # Before its process: a topic that nobody serves at the deployment becomes a worker's job.
            engine.register("bench-effect", effect)
            engine.deploy(*processes())
            for process in MESSAGE:
                say(f"warm: {process} ...")
                took, first = warm(engine, process, wakes, idle_s)
                result[process] = latencies(took) | {"first_ms": round(first * 1_000, 3)}
        disk.append(fdatasync_per_s(home))
        with harness.real_engine(home=home, clock="real", spares=0) as engine:
            say("cold ...")
            woken, bare = cold(engine, colds, idle_s)
        disk.append(fdatasync_per_s(home))
    result["cold"] = spread([each * 1_000 for each in woken])
    result["bare_actor"] = spread([each * 1_000 for each in bare])
    result["cold_to_bare"] = harness.ratio(result["cold"]["median"], result["bare_actor"]["median"])
    result["fdatasync_per_s"] = spread(disk)
    return result


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "wakes": Number(500, 100, 10, "of each kind on the warm engine"),
        "colds": Number(9, 3, 1, "first wakes without an actor, and bare actors"),
        "idle_s": Number(0, 0, 0, "seconds without any work before the first of each"),
    },
)

if __name__ == "__main__":
    PROGRAM.main()
