"""What a thousand waiting instances hold (W4, X9, issue 2): records in the store, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from actors.handles import living_instance_actors
from gobpm_ray.engine import cluster
from gobpm_ray.engine.in_process import START_OF_TIME_MS
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.signing_key import signing_key
from tests.integration.conftest import OpenEngine, RunningEngine, opened, wait_until

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def waits_in_every_way() -> ProcessBuilder:
    """A human task under a timer boundary beside a message, as the spine's instances wait."""
    process = ProcessBuilder("waiting")
    process.start().parallel("fork").user_task("task").end()
    process.at("fork").catch("told", message="Tell", key="=k").end()
    process.boundary("task", "late", timer="P9D").end()
    return process


def live_in_ray(running: RunningEngine, class_name: str) -> list[str]:
    """By Ray's own state API, asked of the cluster that the engine runs on."""
    from ray.util.state import list_actors

    return [
        str(actor.name)
        for actor in list_actors(running.handle.dashboard_url, limit=10_000)
        if actor.class_name == class_name
        and actor.state != "DEAD"
        and (actor.name or "").startswith(f"gobpm:{running.settings.engine_id}:")
    ]


def test_while_a_thousand_instances_wait_no_instance_actor_lives(open_engine: OpenEngine, home: Path) -> None:
    """W4, issue 2, promise 7: `top --json` says 0 resident, and Ray's own state API lists no live InstanceActor."""
    running = open_engine(linger_ms=500)
    running.operations.deploy(waits_in_every_way())
    began = time.monotonic()
    running.operations.start_many("waiting", [{"k": n} for n in range(1_000)])
    wait_until(lambda: running.store.population().waiting == 1_000, "a thousand wait", within_s=60)
    print(f"a thousand instances started and waiting after {time.monotonic() - began:.1f} s")
    wait_until(lambda: not living_instance_actors(running.settings.engine_id), "no InstanceActor lives", within_s=30)

    done = subprocess.run(
        [sys.executable, "-m", "gobpm_ray.cli.main", "top", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
        env={**environment(), "GOBPM_HOME": str(home), "GOBPM_ENGINE_ID": running.settings.engine_id},
    )
    top = json.loads(done.stdout)

    wanted = {"resident": 0, "free": 0, "spares": 0, "actors": 0, "ready": 0, "waiting": 1_000, "due": 1_000}
    assert {name: top[name] for name in wanted} == wanted
    assert done.stderr == "", "the engine is there, so nothing is warned about"
    wait_until(lambda: live_in_ray(running, "InstanceActor") == [], "Ray's state API lists none")
    assert len(live_in_ray(running, "TimerHolder")) == 1, "it does list who lives"


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("GOBPM_REDIS_URL", "GOBPM_ENGINE_ID")}


# ------------------------------------------------------------------------------------------------------ what they hold


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def held(running: RunningEngine, client: Any) -> dict[str, int]:
    """What the engine holds outside its store's memory: threads of its processes and of this one, actors, and
    connections."""
    pids = [answer["pid"] for answer in cluster.status(running.handle).values()]
    return {
        "actors": len(living_instance_actors(running.settings.engine_id)),
        "threads": sum(threads_of(pid) for pid in pids),
        "threads here": threading.active_count(),
        "connections": len(client.client_list()),
    }


def memory_of(running: RunningEngine, client: Any) -> int:
    """Bytes that the engine's keys take in the store."""
    keys = list(client.scan_iter(match=f"{running.store.keys.tag}:*", count=1_000))
    pipe = client.pipeline(transaction=False)
    for key in keys:
        pipe.memory_usage(key, samples=0)
    return sum(size or 0 for size in pipe.execute())


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads of other processes are counted in /proc")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("count", "cycles"), [(30, 4), pytest.param(200, 10, marks=pytest.mark.long)])
def test_x9_released_tasks_with_timer_boundaries_hold_nothing(
    ray_cluster: str, store_url: str, home: Path, count: int, cycles: int
) -> None:
    """X9, W4, D8: no actor, no thread and no connection beyond the engine's own; and release cycles later the store's
    memory is the same within 2 %, with histories and facts at their bounds from the beginning."""
    process = ProcessBuilder("tasks")
    process.start().user_task("task").end("done")
    process.boundary("task", "daily", timer="R/P1D", interrupting=False).end("reminded")
    process.boundary("task", "late", timer="P900D").end("escalated")
    bounds = {"history_limit": 6, "facts_limit": 100, "linger_ms": 1_500}
    with (
        opened(store_url, signing_key(home), clock_begins=START_OF_TIME_MS, **bounds) as running,
        open_client(store_url) as client,
    ):
        engine = running.operations
        engine.deploy(process)
        # Threads and connections that the engine itself opens at its first wakes are its own.
        for one in engine.start_many("tasks", [None] * 40):
            engine.cancel(one.instance_id)
        engine.wait_quiet()
        before = steady(running, client)

        started = engine.start_many("tasks", [None] * count)
        engine.wait_quiet()
        assert engine.top().waiting == count
        holds_no_more(running, client, before)

        engine.advance("P3D")
        memory = memory_of(running, client)
        for _ in range(cycles):
            engine.advance("P1D")
        later = memory_of(running, client)
        print(f"{count} tasks, {cycles} cycles: {memory} bytes, then {later}: {(later / memory - 1):+.2%}")

        assert later == pytest.approx(memory, rel=0.02)
        holds_no_more(running, client, before)
        assert engine.top().due == 2 * count
        for one in started:
            engine.cancel(one.instance_id)
        engine.wait_quiet()
        assert (engine.top().due, engine.tasks()) == (0, [])


RAYS_OWN_THREADS = 5
"""By so many do Ray's pools of threads grow with the actors that come and go, whatever waits."""


def holds_no_more(running: RunningEngine, client: Any, before: dict[str, int]) -> None:
    """Not one actor or connection more than before, once the last actors' processes are gone, and no threads of
    ours."""
    last: dict[str, int] = {}

    def no_more() -> bool:
        last.update(held(running, client))
        allowed = before | {"threads": before["threads"] + RAYS_OWN_THREADS}
        return all(last[what] <= allowed[what] for what in last)

    wait_until(no_more, f"as little is held as before: {before}, now {last}", within_s=20)


def steady(running: RunningEngine, client: Any) -> dict[str, int]:
    """What is held when the last actor has gone, as soon as it is the same twice."""
    wait_until(lambda: not living_instance_actors(running.settings.engine_id), "no InstanceActor lives", within_s=30)
    last: dict[str, int] = {}

    def same() -> bool:
        nonlocal last
        time.sleep(0.2)
        last, former = held(running, client), last
        return last == former

    wait_until(same, "threads and connections stay the same")
    return last
