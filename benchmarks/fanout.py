"""What does a called child's completion cost its parent, when there are many?

`python -m benchmarks.fanout --json`: one parent calls 1,000 children, one for each item of a list; each child waits for
a message of its own. One message after the other is published: the child wakes and ends, its result reaches the parent,
the parent wakes. On a real store in one process; each such step is timed, and the first tenth compared with the last.
"""

from __future__ import annotations

import time

from benchmarks import harness
from benchmarks.harness import Number, Program, Result, deciles
from gobpm_ray import ProcessBuilder


def processes() -> list[ProcessBuilder]:
    child = ProcessBuilder("child")
    child.start().catch("hear", message="Part", key="=part").end("done")
    parent = ProcessBuilder("parent")
    parent.start().call(
        "each", process="child", inherit=False, propagate=False, inputs={"part": "=part"}
    ).multi_instance(collection="parts", item="part").end("all_done")
    return [child, parent]


def measure(children: int) -> Result:
    with harness.one_process(*processes()) as bench:
        begin = time.perf_counter()
        started = bench.operations.start("parent", {"parts": [str(number) for number in range(children)]})
        bench.turn()
        called_s = time.perf_counter() - begin
        if (waiting := bench.store.population().waiting) != children + 1:
            raise AssertionError(f"expected {children} children and their parent waiting, found {waiting}")
        took = []
        for number in range(children):
            begin = time.perf_counter()
            bench.operations.publish("Part", str(number))
            bench.wake()
            took.append(time.perf_counter() - begin)
        if (status := bench.operations.status(started.instance_id)) != "completed":
            raise AssertionError(f"the parent is {status} after {children} messages")
        return {"appendfsync": "always", "called_per_s": round(children / called_s, 1), **deciles(took[:-1])}


PROGRAM = Program(__doc__ or "", measure, {"children": Number(1_000, 300, 20, "called by the one parent")})

if __name__ == "__main__":
    PROGRAM.main()
