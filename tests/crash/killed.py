"""`python -m tests.crash.killed --url URL`: an os_process SIGKILLs itself at each crash point, another goes on.

Every life is a fork of this process, which holds no connection and no thread. What the client remembers and what the
effects did to the world outside stands in files, for no memory survives. One JSON object a point goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gobpm_ray.runtime import crashpoints
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from tests.crash.cases import CASES, Case
from tests.crash.one_process import World
from tests.crash.running import QUICK, End, Recorder, end_of, live, memory_world, run

LEASE: dict[str, Any] = {"lease_ttl_ms": 600, "lease_renew_ms": 50}
SLOW_S = 0.2
"""An effect in whose time a lease is renewed."""
AFTERMATH = {
    "hosting.recovering": "effect.done",
    "hosting.recovered": "effect.done",
    "task.swept": "host.claimed",
    "store.before.sweep": "host.claimed",
    "store.after.sweep": "host.claimed",
    "supervisor.released": "host.claimed",
    "supervisor.buried": "host.claimed",
    "store.before.release_dead": "host.claimed",
    "store.after.release_dead": "host.claimed",
}
"""Points that only a successor of a crash passes -> where its predecessor dies."""
RENEWING = ("lease.renewing", "lease.renewed", "store.before.renew", "store.after.renew")


class FileMemory(MutableMapping[str, Any]):
    """A small table that outlives its os_process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._table: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def __getitem__(self, name: str) -> Any:
        return self._table[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._table[name] = value
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(self._table))
        draft.replace(self._path)

    def __delitem__(self, name: str) -> None:
        del self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


class LastingWorld(World):
    """A world on the real store and its real time, whose memory is files."""

    def __init__(self, url: str, folder: Path, settings: Settings) -> None:
        super().__init__(
            RedisStore(open_client(url), settings),
            lambda ms: time.sleep(ms / 1_000),
            lambda: time.time_ns() // 1_000_000,
            settings,
            points=False,
        )
        self.memo = FileMemory(folder / "memory.json")  # type: ignore[assignment]
        self._done = folder / "effects"
        self.effects = Counter(self._done.read_text().split()) if self._done.exists() else Counter()

    def happened(self, key: str) -> None:
        super().happened(key)
        with self._done.open("a") as done:
            done.write(f"{key}\n")


def suicide(point: str) -> crashpoints.Hook:
    def hook(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


class Grave:
    """One point: who dies there, who goes on, and what became of it all."""

    def __init__(self, point: str, case: Case, url: str, folder: Path, plan: tuple[str, ...]) -> None:
        self.point = point
        self.case = case
        self.plan = plan
        self._url = url
        self._folder = folder
        self._settings = replace(QUICK, engine_id=f"k{point.replace('.', '-')}", **LEASE, **case.settings)
        folder.mkdir()

    def live(self, die_at: str) -> int:
        """One life in a fork; its status as `waitpid` gives it."""

        def life() -> None:
            world = LastingWorld(self._url, self._folder, self._settings)
            world.pause_s = SLOW_S if self.point in RENEWING else 0.0
            live(self.case, world, suicide(die_at))

        return _forked(life)

    def end(self) -> End:
        return end_of(LastingWorld(self._url, self._folder, self._settings))


def _forked(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitpid(pid, 0)[1]


def cases_by_point() -> dict[str, Case]:
    """For each point a case that passes it."""
    found: dict[str, Case] = {}
    for case in CASES:
        hook = Recorder()
        run(case, memory_world, hook)
        for point in hook.passed:
            found.setdefault(point, case)
    named = {case.name: case for case in CASES}
    # The real store asks for some things only where there is something to be found.
    found |= {point: named["suspend and set"] for point in found if point.endswith(".reconcile")}
    found |= {point: named["job"] for point in found if point.endswith(".job_wake")}
    return found | dict.fromkeys((*RENEWING, *AFTERMATH), named["idempotent work"])


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--url", required=True)
    options.add_argument("--point", default="")
    asked = options.parse_args()
    cases = cases_by_point()
    expected = {case.name: run(case, memory_world, Recorder())[0] for case in CASES}
    with tempfile.TemporaryDirectory(prefix="gobpm-") as top:
        graves = []
        for number, point in enumerate(sorted(crashpoints.POINTS)):
            if asked.point in ("", point):
                plan = (AFTERMATH[point], point) if point in AFTERMATH else (point,)
                graves.append(Grave(point, cases[point], asked.url, Path(top) / str(number), plan))
        killed = {grave.point: True for grave in graves}
        # All die before the first is followed: one lease's life is waited for, not one for each point.
        for round_ in range(max(len(grave.plan) for grave in graves)):
            for grave in graves:
                if round_ < len(grave.plan):
                    status = grave.live(grave.plan[round_])
                    killed[grave.point] &= os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            time.sleep(LEASE["lease_ttl_ms"] / 1_000)
        for grave in graves:
            status = grave.live("")
            end = grave.end() if status == 0 else None
            same = end is not None and replace(end, effects=frozenset()) == replace(
                expected[grave.case.name], effects=frozenset()
            )
            report = {"point": grave.point, "case": grave.case.name, "killed": killed[grave.point], "same": same}
            print(json.dumps(report | ({} if same else {"end": repr(end)})), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
