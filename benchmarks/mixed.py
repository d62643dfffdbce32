"""Does the engine keep up with everything at once, and does its memory stay where it is?

`python -m benchmarks.mixed --json`: each instance is started, waits for a message of its own, then for a person's task,
then for a timer of one second, and ends: four kinds of trigger, four wakes. First the measured maximum: as many in
flight as `flight`, each step taken as soon as the one before it is committed. Then, open loop, half of that rate for
`--seconds`: starts come at their times whatever the engine does, messages and completions a while after the wait is
there. The latency of a trigger is from its acceptance (timers: from their deadline) to the commit of what it caused,
by the store's own time stamps, to the millisecond.

With `--overload` a third phase offers twice the maximum for a tenth of the time and then nothing: `overload` tells how
old the oldest ready row became, how far memory grew, and how long it took to recover.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import defaultdict
from typing import Any

from benchmarks import harness
from benchmarks.harness import Number, Program, Result, Sampler, say
from benchmarks.probes import fdatasync_per_s
from benchmarks.wake import ACTORS
from gobpm_ray import Engine, ProcessBuilder
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore

NAP_MS = 1_000
REST_S = 0.5
"""Between a wait's appearance and what ends it, in the open loop."""
KINDS = ("start", "message", "task", "timer")
PAGE = 5_000


def process() -> ProcessBuilder:
    mixed = ProcessBuilder("mixed")
    mixed.start().catch("hear", message="Go", key="=k").user_task("approve").catch("nap", timer="PT1S").end()
    return mixed


class Watcher:
    """Reads the engine's facts in a thread of its own: when which instance had done its next step."""

    def __init__(self, engine: Engine) -> None:
        self.done: dict[str, list[int]] = defaultdict(list)
        """Instance -> ms at which its steps were committed: the start, the message, the task, the timer."""
        self.ended = 0
        self.fresh: list[tuple[str, int]] = []
        """(instance, how many of its steps are done) since `take`."""
        self._engine = engine
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        newest = self._engine.store.facts("0", 1_000_000)
        after = newest[-1][0] if newest else "0"
        self.ready.set()
        while not self._stop.is_set():
            facts = self._engine.facts(after, PAGE)
            for fact in facts:
                after = fact.id
                if fact.fact in ("Started", "Hydrated"):
                    instance_id = str(fact.data["instance"])
                    with self._lock:
                        steps = self.done[instance_id]
                        steps.append(int(fact.id.partition("-")[0]))
                        self.fresh.append((instance_id, len(steps)))
                        self.ended += len(steps) == len(KINDS)
            if len(facts) < PAGE:
                self._stop.wait(0.01)

    def take(self) -> list[tuple[str, int]]:
        with self._lock:
            fresh, self.fresh = self.fresh, []
            return fresh

    def __enter__(self) -> Watcher:
        self.ready = threading.Event()
        self._thread.start()
        self.ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)


class Load:
    """One client: starts instances, publishes to them, completes their tasks, and remembers when."""

    def __init__(self, engine: Engine, series: str) -> None:
        self.engine = engine
        self.sent: dict[str, list[float]] = {}
        """Instance -> seconds since the epoch at which start, message and completion were sent."""
        self._names = (f"{series}{number}" for number in itertools.count())
        self._tasks: dict[str, str] = {}

    def start(self) -> str:
        name = next(self._names)
        begin = time.time()
        self.engine.start("mixed", {"k": name}, id=name)
        self.sent[name] = [begin]
        return name

    def step(self, name: str, done: int) -> None:
        """What the instance waits for now; the timer comes by itself."""
        if done == 1:
            self.sent[name].append(time.time())
            self.engine.publish("Go", name)
        elif done == 2:
            task = self.engine.inspect(name).waits[0].id
            self.sent[name].append(time.time())
            self.engine.complete(f"{name}/{task}")

    def latencies(self, watcher: Watcher) -> dict[str, list[float]]:
        took: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for name, sent in self.sent.items():
            done = watcher.done.get(name, [])
            for kind, begin, end in zip(KINDS, sent, done, strict=False):
                took[kind].append(max(0.0, end / 1_000 - begin))
            if len(done) == len(KINDS):
                # Armed by the commit before it, NAP_MS after that commit's own time.
                took["timer"].append(max(0.0, (done[3] - done[2] - NAP_MS) / 1_000))
        return took


def maximum(engine: Engine, seconds: float, flight: int) -> float:
    """Instances a second when each step follows at once and `flight` are on their way (napping ones not counted)."""
    with Watcher(engine) as watcher:
        load = Load(engine, f"max{time.time_ns()}-")
        flying = 0
        begin = time.perf_counter()
        steps = 0
        while time.perf_counter() - begin < seconds:
            while flying < flight:
                load.start()
                flying += 1
            fresh = watcher.take()
            for name, done in fresh:
                steps += name in load.sent
                if name in load.sent and done <= 2:
                    load.step(name, done)
                elif done == 3:
                    flying -= 1
            if not fresh:
                time.sleep(0.001)
        rate = steps / len(KINDS) / (time.perf_counter() - begin)
    engine.wait_quiet(120)
    time.sleep(2 * NAP_MS / 1_000)
    engine.wait_quiet(120)
    return rate


def offer(engine: Engine, rate: float, seconds: float) -> Result:
    """Open loop: `rate` instances a second begin, and each goes its way."""
    with Watcher(engine) as watcher:
        load = Load(engine, f"at{time.time_ns()}-")
        agenda: list[tuple[float, int, str, int]] = []
        order = itertools.count()
        begin = time.perf_counter()
        started, behind = 0, 0.0
        ending = begin + seconds
        while True:
            now = time.perf_counter()
            for name, done in watcher.take():
                if name in load.sent and done <= 2:
                    heapq.heappush(agenda, (now + REST_S, next(order), name, done))
            if now < ending and started < (now - begin) * rate:
                behind = max(behind, (now - begin) - started / rate)
                load.start()
                started += 1
            elif agenda and agenda[0][0] <= now:
                _, _, name, done = heapq.heappop(agenda)
                load.step(name, done)
            elif now >= ending and (watcher.ended >= started or now > ending + 120):
                break
            else:
                time.sleep(0.001)
        took = load.latencies(watcher)
        everything = [each for kind in KINDS for each in took[kind]]
        return {
            "instances_per_s": round(started / seconds, 1),
            "wakes_per_s": round(len(KINDS) * started / seconds, 1),
            "ended": watcher.ended,
            "started": started,
            "client_behind_s": round(behind, 3),
            "settled_after_s": round(time.perf_counter() - ending, 2),
            "all": harness.latencies(everything),
            **{kind: harness.latencies(took[kind]) for kind in KINDS if took[kind]},
        }


def measure(seconds: float, probe: float, flight: int, share: float, overload: bool) -> Result:
    with harness.fresh_home() as home:
        # Short lists, so that they are full before memory is looked at.
        limits: dict[str, Any] = {"facts_limit": 20_000, "retention_ms": 20_000, "dedup_window_ms": 20_000}
        changes: dict[str, Any] = {"dehydration_threshold_ms": 0, "spares": ACTORS, "max_resident": ACTORS, **limits}
        with (
            harness.real_engine(process(), home=home, clock="real", **changes) as engine,
            open_client(EmbeddedStore(home).url) as client,
        ):
            say("warming up ...")
            maximum(engine, min(3.0, probe), flight)
            say("the maximum ...")
            disk = [fdatasync_per_s(home)]
            most = maximum(engine, probe, flight)
            rate = most * share
            say(f"{rate:.0f} instances/s of at most {most:.0f} for {seconds:g} s ...")
            with Sampler(lambda: harness.memory(engine, client), max(0.25, min(5.0, seconds / 40))) as sampler:
                steady = offer(engine, rate, seconds)
            disk.append(fdatasync_per_s(home))
            result: Result = {
                "appendfsync": "always",
                "actors": ACTORS,
                "maximum_instances_per_s": round(most, 1),
                "maximum_wakes_per_s": round(most * len(KINDS), 1),
                "steady": steady,
                "memory": harness.flatness(sampler.samples),
            }
            if overload:
                result["overload"] = _overload(engine, client, most * 2, max(5.0, seconds / 10))
            result["fdatasync_per_s"] = harness.spread(disk)
            return result


def _overload(engine: Engine, client: Any, rate: float, seconds: float) -> Result:
    say(f"{rate:.0f} instances/s for {seconds:g} s ...")

    def look() -> dict[str, float]:
        counts = engine.store.population()
        return {"oldest_ready_ms": counts.oldest_ready_ms, "ready": counts.ready, **harness.memory(engine, client)}

    before = harness.memory(engine, client)
    with Sampler(look, 0.25) as sampler:
        begin = time.perf_counter()
        sent = 0
        while (passed := time.perf_counter() - begin) < seconds:
            # In bulk, for one client cannot offer twice what the engine can take one by one.
            due = int(passed * rate) - sent
            if due > 0:
                engine.start_many("mixed", [{"k": f"over{sent + number}"} for number in range(due)])
                sent += due
            time.sleep(0.02)
        begin = time.perf_counter()
        engine.wait_quiet(600)
        recovered = time.perf_counter() - begin
        time.sleep(1)
    return {
        "offered_starts_per_s": round(sent / seconds, 1),
        "oldest_ready_ms": max(sample["oldest_ready_ms"] for sample in sampler.samples),
        "most_ready": max(sample["ready"] for sample in sampler.samples),
        "recovered_after_s": round(recovered, 2),
        "oldest_ready_ms_after": sampler.samples[-1]["oldest_ready_ms"],
        "store_mb_before": round(before["store_mb"], 1),
        "store_mb_most": round(max(sample["store_mb"] for sample in sampler.samples), 1),
        "processes_mb_before": round(before["processes_mb"], 1),
        "processes_mb_most": round(max(sample["processes_mb"] for sample in sampler.samples), 1),
    }


PROGRAM = Program(
    __doc__ or "",
    measure,
    {
        "seconds": Number(300, 15, 2, "of the steady load"),
        "probe": Number(20, 5, 1.5, "seconds in which the maximum is looked for"),
        "flight": Number(64, 32, 8, "instances on their way while it is looked for"),
        "share": Number(0.5, 0.5, 0.5, "of the maximum that the steady load offers"),
    },
    {"overload": "then twice the maximum, in bulk, for a tenth of the time"},
)

if __name__ == "__main__":
    PROGRAM.main()
