"""An environment that does not do what it should, under an engine on Ray with a store of its own (group E)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.engine.in_process import START_OF_TIME_MS
from gobpm_ray.errors import StoreRefused
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore
from gobpm_ray.store.signing_key import signing_key
from tests.integration.conftest import opened
from tests.integration.dying_work import calls, noting
from tests.integration.scene import Scene

pytestmark = pytest.mark.slow


@pytest.fixture
def own_scene(ray_cluster: str) -> Iterator[Scene]:
    """A scene on a store that it may ruin."""
    folder = Path(tempfile.mkdtemp(prefix="gobpm-"))
    server = EmbeddedStore(folder)
    url = server.ensure_running()
    try:
        with (
            opened(url, signing_key(folder), clock_begins=START_OF_TIME_MS, linger_ms=60_000) as running,
            open_client(url) as client,
        ):
            scene = Scene(running.operations, client)
            yield scene
            scene.leaves_nothing()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_full_store_refuses_new_work_and_running_instances_finish(own_scene: Scene, tmp_path: Path) -> None:
    """E90: starts, messages and definitions are refused by name; a task's completion, a deadline, work in an actor, and
    what an instance throws to another go on to their ends. There is room again: so is new work."""
    scene, log = own_scene, tmp_path / "calls"
    scene.engine.register(scene.name("work"), noting(log))
    approval = scene.process("approval")
    approval.start("s").user_task("approve").service_task("work", topic=scene.name("work")).throw(
        "tell", message=scene.name("Told"), key="=k"
    ).end("e")
    listening = scene.process("listening")
    listening.start("s").catch("hear", message=scene.name("Told"), key="=k").catch("nap", timer="PT1H").end("e")
    approved, heard = scene.begin(approval, k="A"), scene.begin(listening, k="A")
    fresh = scene.process("fresh")
    fresh.start("s").end("e")
    limit(scene, 1)

    for accept in (
        lambda: scene.engine.start(f"approval_{scene.id}"),
        lambda: scene.engine.publish(scene.name("Told"), "B"),
        lambda: scene.engine.deploy(fresh),
    ):
        with pytest.raises(StoreRefused, match="memory is full"):
            accept()
    scene.complete("approve", {"yes": True})
    scene.later("PT1H")

    assert scene.completed(approved, "s", "approve", "work", "tell", "e").variables["yes"] is True
    assert [call.attempt for call in calls(log)] == [1]
    scene.completed(heard, "s", "hear", "nap", "e")
    assert len(scene.of_process(f"approval_{scene.id}")) == 1
    limit(scene, 0)
    scene.completed(scene.begin(fresh), "s", "e")


def limit(scene: Scene, size: int) -> None:
    """Bytes that the server may use; 0: any number."""
    client: Any = scene.client
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", size)
