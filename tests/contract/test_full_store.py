"""A store that is full: new work is refused by name, what was accepted is finished (E90)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.errors import StoreRefused
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.draft import every
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import Verifier
from tests.support.plain_engine import PlainEngine, until
from tests.support.stores import SERVERS

T0 = 1_767_225_600_000
HOUR = 3_600_000


@pytest.fixture(params=SERVERS)
def engine(request: pytest.FixtureRequest) -> Iterator[PlainEngine]:
    """An engine on a server of its own, for it will be full."""
    folder = Path(tempfile.mkdtemp(prefix="gobpm-"))
    server = EmbeddedStore(folder, binary=SERVERS[request.param], appendfsync="no")
    client = open_client(server.ensure_running())
    store = RedisStore(client, Settings(engine_id="full"))
    store.manual_clock(T0)
    engine = PlainEngine(store)
    yield engine
    engine.close()
    store.close()
    client.close()
    server.stop()
    shutil.rmtree(folder)


def waiting_in_every_way() -> list[ProcessBuilder]:
    approval = ProcessBuilder("approval")
    approval.start().user_task("approve").script_task("count", "=1 + 1", result="n").end()
    nap = ProcessBuilder("nap")
    nap.start().catch("sleep", timer="PT1H").throw("tell", message="Told", key="=k").end()
    listen = ProcessBuilder("listen")
    listen.start().catch("hear", message="Told", key="=k").end()
    tick = ProcessBuilder("tick")
    tick.start("ticks", timer=every("R/PT30M")).end()
    return [approval, nap, listen, tick]


def another() -> ProcessBuilder:
    other = ProcessBuilder("other")
    other.start().end()
    return other


def fill(engine: PlainEngine) -> None:
    """Not one byte more, by the server's own reckoning."""
    client: Any = engine.store.client
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", 1)


@pytest.mark.slow
def test_starts_are_refused_and_running_instances_finish(engine: PlainEngine) -> None:
    """E90: by name, on every way in; then deadlines, throws, messages, completions and holders go on to the end."""
    operations, store = engine.operations, engine.store
    operations.deploy(*waiting_in_every_way())
    ids = []
    for number in range(10):
        ids.append(operations.start("approval", id=f"a{number}").instance_id)
        ids.append(operations.start("nap", {"k": number}, id=f"n{number}").instance_id)
        ids.append(operations.start("listen", {"k": number}, id=f"l{number}").instance_id)
    engine.turn()
    fill(engine)
    for refused in (
        lambda: operations.start("approval", id="one-more"),
        lambda: operations.start_many("approval", [{}, {}]),
        lambda: operations.start_many("approval", [{}] * 10),
        lambda: operations.publish("Told", 3),
        lambda: operations.signal("Alarm"),
        lambda: operations.deploy(another()),
    ):
        with pytest.raises(StoreRefused, match="memory is full"):
            refused()
    assert store.instance("one-more") is None
    # The whole engine works on in the full store: loops with their order leases, hosts with their renewals.
    engine.work_beside()
    store.put_value("engine", "supervisor", b"alive")
    for task in operations.tasks():
        operations.complete(task.id)
    store.set_clock(T0 + HOUR)
    until(lambda: all(operations.status(instance) == "completed" for instance in ids))
    assert {view.process_id for view in operations.list_instances()} == {"approval", "nap", "listen"}, (
        "no start timer has started anything"
    )
    assert Verifier(store).verify().differences == []
    client: Any = store.client
    client.config_set("maxmemory", 0)
    until(lambda: any(view.process_id == "tick" for view in operations.list_instances()))
    assert not operations.start("approval", id="one-more").duplicate
