"""The store's own clock steps back under an engine at work (T47), without Ray, on every real server.

The server's clock is not ours to set: the key `liveness` stands for it here, as in the simulation.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from tests.support.plain_engine import PlainEngine, until
from tests.support.stores import SERVERS

HOUR = 3_600_000

pytestmark = pytest.mark.slow


@pytest.fixture(params=SERVERS)
def engine(request: pytest.FixtureRequest, server_url: Callable[[str], str]) -> Iterator[PlainEngine]:
    """At work, by the server's own clock."""
    client = open_client(server_url(request.param))
    settings = Settings(engine_id=f"k{uuid.uuid4().hex[:10]}", holder_tick_ms=50)
    engine = PlainEngine(RedisStore(client, settings))
    engine.work_beside(hosts=2)
    yield engine
    engine.close()
    engine.store.close()
    client.close()


def processes() -> list[ProcessBuilder]:
    nap = ProcessBuilder("sleeper")
    nap.start("s").catch("nap", timer="=span").end("e")
    listening = ProcessBuilder("listening")
    listening.start("s").catch("one", message="Reply", key="=k", outputs={"first": "=text"}).catch(
        "two", message="Reply", key="=k", outputs={"second": "=text"}
    ).end("e")
    working = ProcessBuilder("working")
    working.start("s").service_task("work", topic="work").end("e")
    return [nap, listening, working]


def test_deadlines_wait_order_holds_and_no_lease_is_lost_early(engine: PlainEngine) -> None:
    """T47: an hour back, while one instance works and others wait; then it runs on, and every deadline is met."""
    operations, store = engine.operations, engine.store
    gate, visits = threading.Event(), []

    def work(_inputs: object) -> dict[str, object]:
        visits.append(threading.get_ident())
        gate.wait(30)
        return {}

    def ended(instance: str) -> bool:
        return operations.inspect(instance).ended

    def all_ended(these: list[str]) -> bool:
        return all(map(ended, these))

    store.put_value("code", "work", b"known to every host of this test")
    engine.callables.local["work"] = work
    begin = operations.now()
    client = store.client
    client.set(store.keys["liveness"], begin)
    operations.deploy(*processes())
    hour, two = (operations.start("sleeper", {"span": span}).instance_id for span in ("PT1H", "PT2H"))
    listener = operations.start("listening", {"k": "A"}).instance_id
    until(lambda: store.population().waiting == 3)
    working = operations.start("working").instance_id
    until(lambda: visits)
    ((instance, token, _),) = store.leases()
    assert instance == working

    client.set(store.keys["liveness"], begin - HOUR)
    for text in ("older", "younger"):
        operations.publish("Reply", "A", {"text": text})
    until(lambda: ended(listener))
    assert operations.inspect(listener).variables == {"k": "A", "first": "older", "second": "younger"}
    assert store.sweep() == 0
    assert [row[:2] for row in store.leases()] == [(instance, token)]
    gate.set()
    until(lambda: ended(working))
    assert len(visits) == 1

    for moved, expected in ((begin + HOUR - 1, []), (begin + HOUR, [hour]), (begin + 2 * HOUR, [hour, two])):
        until(lambda: store.quiet().quiet)
        client.set(store.keys["liveness"], moved)
        until(partial(all_ended, expected))
        until(lambda: store.quiet().quiet)
        assert [one for one in (hour, two) if ended(one)] == expected
    assert operations.verify().differences == []
