"""Everything dies while instances are released (X5, X6): store and actors by SIGKILL, on a store of their own.

One crash for all of the module: what each kind of instance is afterwards is told by a test of its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from actors.registry import actor_rows
from gobpm_ray.engine import cluster
from gobpm_ray.engine.in_process import START_OF_TIME_MS
from gobpm_ray.engine.views import moment_text
from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore
from gobpm_ray.store.signing_key import signing_key
from tests.integration.conftest import opened, wait_until
from tests.integration.scene import HOUR, Scene

pytestmark = pytest.mark.slow


@dataclass
class Aftermath:
    """A scene after the crash, and the instances that were released before it."""

    scene: Scene
    began: int
    duration: str
    overdue: str
    asked: str
    claimed: str


@pytest.fixture(scope="module")
def aftermath(ray_cluster: str) -> Iterator[Aftermath]:
    folder = Path(tempfile.mkdtemp(prefix="gobpm-"))
    server = EmbeddedStore(folder)
    url = server.ensure_running()
    try:
        with (
            opened(url, signing_key(folder), clock_begins=START_OF_TIME_MS, linger_ms=60_000) as running,
            open_client(url) as client,
        ):
            scene = Scene(running.operations, client)
            found = before_the_crash(scene)
            pids = [answer["pid"] for answer in cluster.status(running.handle).values()]
            pids += [row.pid for row in actor_rows(running.store)]
            assert server.pid is not None
            for pid in (*pids, server.pid):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not server.status().running, "the store is dead")
            assert server.ensure_running() == url
            after_the_crash(scene, pids, running.handle)
            yield found
            scene.leaves_nothing()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def before_the_crash(scene: Scene) -> Aftermath:
    began = scene.engine.now()
    nap = scene.process("nap")
    nap.start("s").catch("nap", timer="PT2H").end("e")
    date = scene.process("date")
    date.start("s").catch("nap", timer=str(moment_text(began + HOUR // 2))).end("e")
    asked = scene.process("asked")
    asked.start("s").user_task("task").catch("told", message=scene.name("Tell"), key="=k").end("e")
    found = Aftermath(scene, began, scene.begin(nap), scene.begin(date), scene.begin(asked, k="A"), "")
    scene.complete("task", {"n": 1}, user="ada")
    claimed = scene.process("claimed")
    claimed.start("s").user_task("mine", candidate_users=["grace"]).end("e")
    found.claimed = scene.begin(claimed)
    scene.engine.claim("mine", "grace")
    scene.released(found.duration, found.overdue, found.asked, found.claimed)
    return found


def after_the_crash(scene: Scene, dead: list[int], handle: cluster.ClusterHandle) -> None:
    def back() -> bool:
        with suppress(EnvironmentFailure):
            scene.engine.now()
            pids = [answer.get("pid") for answer in cluster.status(handle).values()]
            return all(pids) and not set(pids) & set(dead)
        return False

    wait_until(back, "Ray has restarted holders and supervisor", within_s=40)
    # What the clock does while nobody is there: past the date, not past the duration.
    scene.store.set_clock(scene.engine.now() + HOUR)
    scene.engine.wait_quiet()


def test_x5_a_duration_fires_at_its_time_and_an_overdue_date_at_once(aftermath: Aftermath) -> None:
    """X5, promise 6: crashed while released, 2 h are still 2 h from when the timer was armed."""
    scene = aftermath.scene
    view = scene.completed(aftermath.overdue, "s", "nap", "e")
    assert view.history[-1].at_ms == aftermath.began + HOUR
    scene.released(aftermath.duration)
    scene.later("PT59M")
    scene.released(aftermath.duration)

    scene.later("PT2M")

    view = scene.completed(aftermath.duration, "s", "nap", "e")
    assert view.history[-1].at_ms == aftermath.began + 2 * HOUR
    assert scene.cycles(aftermath.duration) == scene.cycles(aftermath.overdue) == (1, 1)


def test_x6_a_task_done_then_another_wait_then_a_crash_recovers(aftermath: Aftermath) -> None:
    """X6: it stands at its second wait with the task's outputs, and goes on from there."""
    scene = aftermath.scene
    scene.released(aftermath.asked)
    assert scene.waits(aftermath.asked) == [("told", "message")]
    assert scene.see(aftermath.asked).trace == ("s", "task")

    scene.publish(scene.name("Tell"), "A", m=2)

    view = scene.completed(aftermath.asked, "s", "task", "told", "e")
    assert view.variables == {"k": "A", "n": 1, "m": 2}
    assert scene.cycles(aftermath.asked) == (2, 2)


def test_x8_owner_and_eligibility_survive_the_crash(aftermath: Aftermath) -> None:
    """X8."""
    scene = aftermath.scene
    (task,) = scene.engine.tasks(instance_id=aftermath.claimed)
    assert (task.owner, task.users) == ("grace", ("grace",))
    scene.complete(task.id, user="grace")
    scene.completed(aftermath.claimed, "s", "mine", "e")
