"""What every benchmark stands on: sizes, the command line, statistics, and an engine or a store that is thrown away.

A program is a function from numbers to a result; `Program` gives it a command line, says on which machine and with
which numbers it ran, and lets the suite and the smoke test call it with fewer. This module knows no question that a
benchmark asks.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gobpm_ray import Engine, Settings
from gobpm_ray.engine.on_ray import LOCAL, SharedRay, open_on_ray
from gobpm_ray.engine.opening import EMBEDDED
from gobpm_ray.engine.operations import Operations
from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.store.connection import URL_VARIABLE, open_client
from gobpm_ray.store.embedded import EmbeddedStore
from gobpm_ray.store.redis_store import RedisStore
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder

Size = Literal["full", "quick", "tiny"]
SIZES: tuple[Size, ...] = ("full", "quick", "tiny")
Result = dict[str, Any]

VARIABLES: dict[str, object] = {"customer": "C-1001", "amount": 125, "region": "north"}
"""Three small variables, as most waiting instances have a few."""
NEVER_ENDED = 1_000_000
"""Ended instances that a benchmark's engine keeps: removing them would be measured as well."""
CHUNK = 1_000
"""Starts in one call."""


@dataclass(frozen=True, slots=True)
class Number:
    """One number that a program takes: for the real run, for a look, and for the smoke test."""

    full: float
    quick: float
    tiny: float
    help: str


@dataclass(frozen=True, slots=True)
class Program:
    """One question. `measure` takes the numbers by their names; whole ones come as int."""

    doc: str
    measure: Callable[..., Result]
    numbers: Mapping[str, Number]
    flags: Mapping[str, str] | None = None
    """Switches that are off unless they are named: name -> help."""

    def run(self, size: Size = "full", **chosen: Any) -> Result:
        """Measure; the result with what it was measured with and on."""
        values: dict[str, Any] = {name: getattr(number, size) for name, number in self.numbers.items()}
        values |= dict.fromkeys(self.flags or (), False)
        values |= chosen
        values = {name: int(value) if value == int(value) else value for name, value in values.items()}
        values |= {name: bool(values[name]) for name in self.flags or ()}
        begin = time.perf_counter()
        result = self.measure(**values)
        took = round(time.perf_counter() - begin, 1)
        return {"numbers": values, **result, "took_s": took, "machine": machine()}

    def main(self) -> None:
        parser = argparse.ArgumentParser(description=self.doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--size", choices=SIZES, default="full", help="which set of numbers (default: full)")
        for name, number in self.numbers.items():
            shown = f"{number.help} (full {number.full:g}, quick {number.quick:g}, tiny {number.tiny:g})"
            parser.add_argument(_option(name), dest=name, type=float, default=None, metavar="N", help=shown)
        for name, described in (self.flags or {}).items():
            parser.add_argument(_option(name), dest=name, action="store_true", default=None, help=described)
        parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
        options = vars(parser.parse_args())
        end_in_order()
        as_json, size = options.pop("json"), options.pop("size")
        result = self.run(size, **{name: value for name, value in options.items() if value is not None})
        if as_json:
            print(json.dumps(result))
        else:
            show(result)


def end_in_order() -> None:
    """Asked to end, this program still stops the stores and the Ray that it started."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def show(result: Mapping[str, Any], indent: str = "") -> None:
    for name, value in result.items():
        if isinstance(value, Mapping):
            print(f"{indent}{name}:")
            show(value, indent + "  ")
        else:
            print(f"{indent}{name:32} {value}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def machine() -> Result:
    """What a figure means nothing without; `load` is the machine's own load average when the run ended."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "load": [round(each, 2) for each in os.getloadavg()],
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


# ---------------------------------------------------------------------------------------------------------- statistics


def spread(values: Sequence[float], digits: int = 1) -> Result:
    """Median, extremes and each of several measurements of the same thing, in the order in which they were taken."""
    return {
        "median": round(statistics.median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
        "each": [round(value, digits) for value in values],
    }


def latencies(seconds: Sequence[float]) -> Result:
    """p50, p90, p99 and the worst of many, in milliseconds."""
    ordered = sorted(each * 1_000 for each in seconds)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return {"count": len(ordered), "p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99), "max_ms": at(1.0)}


def ratio(one: float, other: float, digits: int = 3) -> float:
    return round(one / other, digits) if other else float("inf")


def until(true: Callable[[], object], seconds: float, what: str, pause_s: float = 0.005) -> None:
    """Return when it is; AssertionError names `what` was waited for."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds:g} s")
        time.sleep(pause_s)


# --------------------------------------------------------------------------------------------------- engines and stores


@contextlib.contextmanager
def fresh_home() -> Iterator[Path]:
    """A folder for an embedded store, gone afterwards; its name is short, for a socket's path has a limit."""
    with tempfile.TemporaryDirectory(prefix="gobpm-bench-") as folder:
        try:
            yield Path(folder)
        finally:
            EmbeddedStore(Path(folder)).stop()


_ray: SharedRay | None = None
"""While `one_ray` runs."""


@contextlib.contextmanager
def one_ray() -> Iterator[SharedRay]:
    """Engines opened inside share one local Ray, which takes seconds to start; one that runs already is used."""
    global _ray
    if _ray is not None:
        yield _ray
        return
    _ray = SharedRay()
    try:
        yield _ray
    finally:
        shared, _ray = _ray, None
        shared.close()


def settings(**changes: Any) -> Settings:
    chosen: dict[str, Any] = {"engine_id": "bench", "retention_count": NEVER_ENDED} | changes
    return Settings(**chosen)


@contextlib.contextmanager
def real_engine(
    *sources: Any, clock: Literal["real", "virtual"] = "virtual", home: Path | None = None, **changes: Any
) -> Iterator[Engine]:
    """The real engine (embedded store with `appendfsync always`, actors on local Ray) with these processes deployed.

    `changes`: of the settings. Without `home` the store goes when the block ends."""
    with contextlib.ExitStack() as stack:
        shared = stack.enter_context(one_ray())
        where = home if home is not None else stack.enter_context(fresh_home())
        # Never a store that the environment names: a benchmark fills it, and jumps with its clock.
        os.environ.pop(URL_VARIABLE, None)
        EmbeddedStore(where).ensure_running()
        engine = stack.enter_context(
            open_on_ray(Engine, EMBEDDED, LOCAL, settings(**changes), clock, None, where, shared=shared)
        )
        engine.deploy(*sources)
        spares = engine.settings.spares
        until(lambda: engine.top().spares >= spares, 60, f"{spares} spares")
        yield engine


class OneProcess:
    """Front door, holders and a host over a real store, each moved by its caller: a wake without Ray and without a
    second process, so that what is measured is the path itself."""

    def __init__(self, home: Path, **changes: Any) -> None:
        self.server = EmbeddedStore(home)
        self.url = self.server.ensure_running()
        self.client = open_client(self.url)
        self.store = RedisStore(self.client, settings(**changes))
        self.operations = Operations(self.store, self.store.settings)
        self.holders = [kind(self.store, self.store.settings) for kind in (MessageHolder, TimerHolder, TaskHolder)]
        callables = Callables(lambda topic: self.store.get_value("code", topic))
        self.host = Host(self.store, self.store.settings, Programs(self.store, self.store.settings), callables, "bench")
        self.store.manual_clock(1_767_225_600_000)

    def wake(self) -> None:
        """What was accepted or fell due is folded once, and whoever became ready is hosted until nobody is."""
        for holder in self.holders:
            holder.pass_once()
        self.host.serve_once()

    def fold(self) -> bool:
        moved = False
        for holder in self.holders:
            moved = holder.pass_once().moved or moved
        return moved

    def turn(self) -> None:
        """Until nothing moves."""
        while self.fold() or self.host.serve_once():
            pass

    def park(self, process_id: str, count: int, variables: Mapping[str, object] | None = None) -> None:
        for first in range(0, count, CHUNK):
            self.operations.start_many(process_id, [variables or VARIABLES] * min(CHUNK, count - first))
            self.turn()

    def close(self) -> None:
        self.host.close()
        self.operations.close()
        self.client.close()
        self.server.stop()


@contextlib.contextmanager
def one_process(*sources: Any, **changes: Any) -> Iterator[OneProcess]:
    with fresh_home() as home:
        plain = OneProcess(home, **changes)
        try:
            plain.operations.deploy(*sources)
            yield plain
        finally:
            plain.close()


# ------------------------------------------------------------------------------------------------------- phases of work


def accept(engine: Engine, process_id: str, count: int, variables: Mapping[str, object] | None = None) -> None:
    for first in range(0, count, CHUNK):
        engine.start_many(process_id, [variables or VARIABLES] * min(CHUNK, count - first))


def park(engine: Engine, process_id: str, count: int, variables: Mapping[str, object] | None = None) -> Result:
    """So many more instances wait and nothing is resident; rates a second of acceptance, and of all of it."""
    before = engine.store.population().waiting
    begin = time.perf_counter()
    accept(engine, process_id, count, variables)
    accepted = time.perf_counter()
    engine.wait_quiet(1_200)
    parked = time.perf_counter()
    counts = engine.store.population()
    if counts.resident or counts.waiting != before + count:
        raise AssertionError(f"expected {before + count} waiting and none resident: {counts}")
    return {"accepted_per_s": count / (accepted - begin), "parked_per_s": count / (parked - begin)}


def release(engine: Engine, count: int, ahead_ms: int = 60_000, seconds: float = 600.0) -> float:
    """The manual clock jumps past the next deadline and `count` instances end; ended a second, from the jump on."""
    deadline = engine.store.quiet().next_deadline
    if deadline is None:
        raise AssertionError("nothing is armed")
    return ended_per_s(engine, count, lambda: engine.store.set_clock(deadline + ahead_ms), seconds)


def ended_per_s(engine: Engine, count: int, cause: Callable[[], object], seconds: float = 600.0) -> float:
    """From the cause to the last commit."""
    ended = engine.store.population().ended
    begin = time.perf_counter()
    cause()
    until(lambda: engine.store.population().ended >= ended + count, seconds, f"{count} ends")
    return count / (time.perf_counter() - begin)


# -------------------------------------------------------------------------------------------------------------- memory


def resident_bytes(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def descendants(root: int) -> list[int]:
    """Every process under `root`; empty where the system does not tell."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, open_ends = [], [root]
    while open_ends:
        below = children.get(open_ends.pop(), [])
        found += below
        open_ends += below
    return found


def memory(engine: Engine, client: Any) -> dict[str, float]:
    """MB of the store's data, and resident in all processes under this one: Ray's own, holders, supervisor, actors.

    Pages that several processes share count once for each; it is the change that tells."""
    pids = descendants(os.getpid())
    return {
        "store_mb": int(client.info("memory")["used_memory"]) / 1e6,
        "processes_mb": sum(map(resident_bytes, pids)) / 1e6,
        "processes": len(pids),
    }


def flatness(samples: Sequence[Mapping[str, float]]) -> Result:
    """For each series, the median of its last quarter over that of its second: 1 is flat. The first is warm-up."""
    result: Result = {"samples": len(samples)}
    if len(samples) < 4:
        return result
    quarter = len(samples) // 4
    for name in samples[0]:
        series = [sample[name] for sample in samples]
        second, last = series[quarter : 2 * quarter], series[-quarter:]
        result[name] = {
            "first": round(series[0], 1),
            "settled": round(statistics.median(second), 1),
            "last": round(statistics.median(last), 1),
            "max": round(max(series), 1),
            "last_to_settled": ratio(statistics.median(last), statistics.median(second)),
        }
    return result


def deciles(seconds: Sequence[float]) -> Result:
    """Of a long series of equal steps: the median of its first and of its last tenth, and their ratio."""
    tenth = max(1, len(seconds) // 10)
    first, last = statistics.median(seconds[:tenth]), statistics.median(seconds[-tenth:])
    return {
        "steps": len(seconds),
        "first_ms": round(first * 1_000, 3),
        "median_ms": round(statistics.median(seconds) * 1_000, 3),
        "last_ms": round(last * 1_000, 3),
        "last_to_first": ratio(last, first),
    }


class Sampler:
    """Reads something every so often in a thread of its own while a block runs."""

    def __init__(self, read: Callable[[], dict[str, float]], every_s: float) -> None:
        self.samples: list[dict[str, float]] = []
        self._read, self._every_s = read, every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self.samples.append(self._read())

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
