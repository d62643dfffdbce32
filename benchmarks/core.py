"""What does a wake cost without store, network or actor: restore, wake, run to the end, save?

`python -m benchmarks.core --json`: our checkpoint is decoded, its timer's trigger applied by the pure core, and the
step turned into all the bytes and rows of its commit; beside it SpiffWorkflow restores, wakes, ends and saves the same
process from JSON. Both in this process, in turns, so that a slow second falls on both. `ratio` is ours to theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks import harness
from benchmarks.harness import VARIABLES, Number, Program, Result, spread
from benchmarks.spiff import Spiff, version
from benchmarks.wake import storm_process
from gobpm_ray.checkpoint.parts import decode, encode_part
from gobpm_ray.core.advance import advance
from gobpm_ray.core.program import compile_process
from gobpm_ray.core.state import InstanceState
from gobpm_ray.core.step import Trigger
from gobpm_ray.runtime.commits import Working, draft

NOW = 1_767_225_600_000
ID = "0123456789abcdef"


class Ours:
    def __init__(self) -> None:
        self.program = compile_process(storm_process().build(), 1)
        self.parts, self.wait = self.start()

    def start(self) -> tuple[dict[str, bytes], str]:
        """A new instance, run until it waits, as it is saved."""
        state = InstanceState(ID, "storm", 1, "")
        step = advance(self.program, state, [Trigger("start:0", "start", values=dict(VARIABLES))], NOW)
        draft(step, Working(), (), 0)
        return {name: encode_part(state, name) for name in step.changed}, step.arms[0].wait

    def wake(self) -> None:
        state = decode(ID, "storm", 1, "", self.parts, True)
        step = advance(self.program, state, [Trigger("due:0", "timer", self.wait, 2)], NOW + 86_400_000)
        draft(step, Working(), (), 0)
        if step.outcome != "completed":
            raise AssertionError("the instance did not end")


def per_s(work: Callable[[], object], seconds: float) -> float:
    count, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < seconds:
        work()
        count += 1
    return count / passed


def compare(seconds: float, rounds: int) -> Result:
    ours, theirs = Ours(), Spiff(VARIABLES)
    rates: dict[str, list[float]] = {"wakes_per_s": [], "starts_per_s": []}
    peer: dict[str, list[float]] = {"wakes_per_s": [], "starts_per_s": []}
    for _ in range(rounds):
        for name in ("wake", "start"):
            rates[f"{name}s_per_s"].append(per_s(getattr(ours, name), seconds))
            peer[f"{name}s_per_s"].append(per_s(getattr(theirs, name), seconds))
    result: Result = {
        "ours": {name: spread(each) for name, each in rates.items()},
        "spiffworkflow": {name: spread(each) for name, each in peer.items()},
        "spiffworkflow_version": version(),
        "our_document_bytes": sum(map(len, ours.parts.values())),
        "their_document_bytes": len(theirs.document),
    }
    for name in rates:
        result[f"{name.removesuffix('_per_s')}_ratio"] = harness.ratio(
            result["ours"][name]["median"], result["spiffworkflow"][name]["median"], 1
        )
    return result


def measure(seconds: float, rounds: int) -> Result:
    compare(min(seconds, 0.2), 1)
    return compare(seconds, rounds)


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "seconds": Number(2, 0.5, 0.05, "of each, in each round"),
        "rounds": Number(5, 3, 1, "of both, in turns"),
    },
)

if __name__ == "__main__":
    PROGRAM.main()
