"""Many jobs, many workers, and random kills of workers: every job is done once as far as its instance sees (C68)."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from actors.handles import living_instance_actors
from gobpm_ray.engine.operations import Operations
from gobpm_ray.model.builder import ProcessBuilder
from tests.integration.conftest import OpenEngine, RunningEngine, wait_until

pytestmark = pytest.mark.slow

MAX_RESIDENT = 20


class Fleet:
    """Workers as operating-system processes, kept at their number however many are killed."""

    def __init__(self, url: str, engine: Operations, size: int, seed: int) -> None:
        self._command = [sys.executable, "-m", "tests.integration.job_worker", url, engine.settings.engine_id]
        self._engine = engine
        self._random = random.Random(seed)
        self._workers = [subprocess.Popen(self._command) for _ in range(size)]
        self.killed = 0
        """Workers that died with jobs of theirs locked."""
        self.lost = 0
        """Jobs that were locked by the dead at that moment."""

    def kill_one(self, within_s: float = 10.0) -> None:
        """One that has a job locked dies, surely: it is stopped first (SIGSTOP), and killed only if it holds a lock
        while it stands still. A report that was under way is accepted or not by then, so a lock that is seen stays."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            holding = self._holding()
            working = [place for place, worker in enumerate(self._workers) if worker.pid in holding]
            if not working:
                time.sleep(0.01)
                continue
            place = self._random.choice(working)
            worker = self._workers[place]
            worker.send_signal(signal.SIGSTOP)
            time.sleep(0.02)  # what it had sent is with the store
            if not self._holding()[worker.pid]:
                worker.send_signal(signal.SIGCONT)
                continue
            self.lost += self._holding()[worker.pid]
            worker.kill()
            worker.wait()
            self.killed += 1
            self._workers[place] = subprocess.Popen(self._command)
            return
        pytest.fail(f"no worker held a job for {within_s:g} s")

    def _holding(self) -> Counter[int]:
        """Process id -> how many jobs it has locked. A worker's name has its process's number between the machine's and
        a random part."""
        return Counter(int(job.owner.split("-")[-2]) for job in self._engine.jobs(limit=1_000) if job.owner)

    def end(self) -> list[int]:
        """SIGTERM to each; their exit codes: how many jobs they had to give back, or that they had not begun yet."""
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        return [worker.wait(15) for worker in self._workers]


def play(running: RunningEngine, url: str, jobs: int, workers: int, kills: int, within_s: float) -> None:
    engine = running.operations
    process = ProcessBuilder("fleet")
    process.start().service_task("work", topic="fleet").end("done")
    engine.deploy(process)
    ids = [started.instance_id for started in engine.start_many("fleet", [{"number": n} for n in range(jobs)])]
    most = 0

    def watched() -> int:
        nonlocal most
        most = max(most, len(living_instance_actors(running.settings.engine_id)))
        return running.store.population().ended

    wait_until(lambda: watched() == 0 and len(engine.jobs(limit=jobs)) == jobs, "every job is offered", 60)
    began = time.monotonic()
    fleet = Fleet(url, engine, workers, seed=jobs)
    try:
        until = began + within_s
        while (ended := watched()) < jobs:
            assert time.monotonic() < until, f"{ended} of {jobs} done after {within_s} s"
            # Spread over the run; all of them long before its end, for it takes a worker at work to kill one.
            if fleet.killed < kills and ended >= fleet.killed * jobs * 0.8 / kills:
                fleet.kill_one()
            time.sleep(0.05)
        took = time.monotonic() - began
    finally:
        codes = fleet.end()
    assert fleet.killed == kills
    assert fleet.lost >= kills
    assert set(codes) <= {0, -signal.SIGTERM}
    assert most <= MAX_RESIDENT
    for number, instance_id in enumerate(ids):
        view = engine.inspect(instance_id)
        assert (view.state, view.variables["double"]) == ("completed", 2 * number)
        assert Counter(view.trace) == {"start": 1, "work": 1, "done": 1}, view.history
        assert not [entry for entry in view.history if entry.event in ("incident", "overtaken")]
    assert engine.jobs() == []
    report = engine.verify()
    assert report.differences == []
    print(
        f"{jobs} jobs, {workers} workers in {took:.1f} s; {fleet.killed} killed with {fleet.lost} jobs locked; "
        f"at most {most} InstanceActors"
    )


def test_a_hundred_jobs_three_workers_and_five_kills(open_engine: OpenEngine, store_url: str) -> None:
    play(open_engine(max_resident=MAX_RESIDENT), store_url, jobs=100, workers=3, kills=5, within_s=60)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_thousand_jobs_eight_workers_and_thirty_kills(open_engine: OpenEngine, store_url: str) -> None:
    """Issue 6: `verify` clean, InstanceActors never above `max_resident`."""
    play(open_engine(max_resident=MAX_RESIDENT), store_url, jobs=1_000, workers=8, kills=30, within_s=240)
