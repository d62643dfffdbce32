"""Does a wake of an instance cost more because the same instance waits for much else, or because much of it is done?

`python -m benchmarks.wide --json`: one instance with 1,000 parallel waits for messages, in two shapes: as branches of a
parallel gateway (`branches`, joined at the end) and as a parallel multi-instance receive task (`rounds`). One message
after the other is published, folded, and wakes its branch, on a real store in one process; each step is timed. The
figures compare the first tenth of the steps with the last.
"""

from __future__ import annotations

import time

from benchmarks import harness
from benchmarks.harness import Number, Program, Result, deciles, say
from gobpm_ray import ProcessBuilder


def branches(waits: int) -> ProcessBuilder:
    """Joined: the tokens that have arrived wait for those that have not."""
    process = ProcessBuilder("branches")
    process.start().parallel("fork")
    process.at("fork").catch("hear0", message="Part", key="0").parallel("join").end("done")
    for number in range(1, waits):
        process.at("fork").catch(f"hear{number}", message="Part", key=str(number)).to("join")
    return process


def rounds() -> ProcessBuilder:
    process = ProcessBuilder("rounds")
    process.start().receive_task("hear", message="Part", key="=part").multi_instance(
        collection="parts", item="part"
    ).end("done")
    return process


def steps(shape: str, waits: int) -> Result:
    source = branches(waits) if shape == "branches" else rounds()
    with harness.one_process(source) as bench:
        begin = time.perf_counter()
        started = bench.operations.start(shape, {"parts": [str(number) for number in range(waits)]})
        bench.turn()
        fork_s = time.perf_counter() - begin
        took = []
        for number in range(waits):
            begin = time.perf_counter()
            bench.operations.publish("Part", str(number))
            bench.wake()
            took.append(time.perf_counter() - begin)
        if (status := bench.operations.status(started.instance_id)) != "completed":
            raise AssertionError(f"{shape}: the instance is {status} after {waits} messages")
        # The last message also ends the instance, which is no wake like the others.
        return {"fork_s": round(fork_s, 3), **deciles(took[:-1])}


def measure(waits: int) -> Result:
    result: Result = {"appendfsync": "always"}
    for shape in ("branches", "rounds"):
        say(f"{shape} ...")
        result[shape] = steps(shape, waits)
    return result


PROGRAM = Program(__doc__ or "", measure, {"waits": Number(1_000, 300, 30, "of the one instance")})

if __name__ == "__main__":
    PROGRAM.main()
