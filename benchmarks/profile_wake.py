"""Where does a wake's time go?

`python -m benchmarks.profile_wake --json`: one host in this process over a real store, `instances` due timers; holders
and host run by themselves, with a stopwatch around each phase. Microseconds a wake:

- `fire_due`: the timer holder's share (listing and delivering, 200 to a batch);
- `request`: rows to bytes and the command's rendering; `script`: the store's own time in the script, by its
  `commandstats`; `network`: the round trip's rest: socket, scheduling, the reply's parsing and the disk's fsync;
- `reply`: the claim's row read; `decode`: the checkpoint; `fire`: the pure core; `encode`: the step's bytes and rows;
- `rest`: what is left of the whole (the host's loop, facts, locks);
- `host_cpu`, `store_cpu`: processor time of this process and of the server for all but `fire_due`, and
  `fire_due_host_cpu`, `fire_due_store_cpu` for that: on a busy machine they tell more than the clock.

`everysec` in place of `always` shows what the disk takes; the stopwatches themselves cost about a microsecond each.
"""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from benchmarks import harness
from benchmarks.harness import Number, OneProcess, Program, Result, say
from benchmarks.probes import fdatasync_per_s
from benchmarks.wake import storm_process
from gobpm_ray.runtime import hosting
from gobpm_ray.store import rows
from gobpm_ray.store.scripts import Scripts

PHASES = ("request", "round_trip", "reply", "decode", "fire", "encode")


class Stopwatch:
    """Seconds by phase; a phase inside another counts for both."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def around(self, phase: str, work: Callable[..., Any]) -> Callable[..., Any]:
        seconds, clock = self.seconds, time.perf_counter

        @functools.wraps(work)
        def timed(*arguments: Any, **named: Any) -> Any:
            begin = clock()
            try:
                return work(*arguments, **named)
            finally:
                seconds[phase] += clock() - begin

        return timed


@contextmanager
def timed(watch: Stopwatch) -> Iterator[None]:
    places: list[tuple[Any, str, str]] = [
        (rows, "commit_arguments", "request"),
        (rows, "claim", "reply"),
        (Scripts, "_command", "request"),
        (Scripts, "_exchange", "round_trip"),
        (Scripts, "read_sent", "round_trip"),
        (hosting, "decode_with_working", "decode"),
        (hosting, "advance", "fire"),
        (hosting, "draft", "encode"),
    ]
    with ExitStack() as stack:
        for owner, name, phase in places:
            stack.enter_context(mock.patch.object(owner, name, watch.around(phase, getattr(owner, name))))
        yield


def scripts_s(bench: OneProcess) -> float:
    stats: Any = bench.client.info("commandstats")
    return float(stats.get("cmdstat_evalsha", {}).get("usec", 0)) / 1e6


class Cpu:
    """Processor seconds of this process and of the store since it was made or read."""

    def __init__(self, bench: OneProcess) -> None:
        self._bench = bench
        self._last = self._now()

    def _now(self) -> tuple[float, float]:
        said: Any = self._bench.client.info("cpu")
        return time.process_time(), float(said["used_cpu_user"]) + float(said["used_cpu_sys"])

    def read(self) -> tuple[float, float]:
        before, self._last = self._last, self._now()
        return self._last[0] - before[0], self._last[1] - before[1]


def storm(bench: OneProcess, instances: int) -> Result:
    """One storm; microseconds a wake by phase."""
    bench.park("storm", instances)
    deadline = bench.store.quiet().next_deadline
    assert deadline is not None
    bench.store.set_clock(deadline + 60_000)
    timers = bench.holders[1]
    cpu = Cpu(bench)
    begin = time.perf_counter()
    while timers.pass_once().more:
        pass
    fired_s = time.perf_counter() - begin
    fired_cpu = cpu.read()
    watch = Stopwatch()
    before = scripts_s(bench)
    with timed(watch):
        begin = time.perf_counter()
        bench.host.serve_once()
        whole_s = time.perf_counter() - begin
    host_cpu = cpu.read()
    script_s = scripts_s(bench) - before
    if bench.store.population().waiting:
        raise AssertionError(f"expected all to have ended: {bench.store.population()}")
    seconds = {phase: watch.seconds[phase] for phase in PHASES}
    seconds["script"] = script_s
    seconds["network"] = seconds.pop("round_trip") - script_s
    seconds["rest"] = whole_s - sum(seconds.values())
    seconds["whole"] = whole_s
    seconds["fire_due"] = fired_s
    seconds["host_cpu"], seconds["store_cpu"] = host_cpu
    seconds["fire_due_host_cpu"], seconds["fire_due_store_cpu"] = fired_cpu
    return {phase: round(each / instances * 1e6, 1) for phase, each in seconds.items()}


def measure(instances: int, rounds: int) -> Result:
    result: Result = {}
    for appendfsync in ("always", "everysec"):
        with harness.one_process(storm_process()) as bench:
            bench.client.config_set("appendfsync", appendfsync)
            say(f"{appendfsync}: warming up ...")
            storm(bench, max(10, instances // 5))
            disk = fdatasync_per_s(bench.server.home)
            each = [storm(bench, instances) for _ in range(rounds)]
        result[f"{appendfsync}_us_per_wake"] = {
            phase: harness.spread([one[phase] for one in each])["median"] for phase in each[0]
        }
        result[f"{appendfsync}_wakes_per_s"] = round(1e6 / result[f"{appendfsync}_us_per_wake"]["whole"], 1)
        result[f"{appendfsync}_fdatasync_per_s"] = round(disk, 1)
    return result


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "instances": Number(5_000, 1_000, 20, "woken in each round"),
        "rounds": Number(5, 3, 1, "of which the median counts, phase by phase"),
    },
)

if __name__ == "__main__":
    PROGRAM.main()
