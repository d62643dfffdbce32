"""Where a secret stands on a real store through a whole life: with the instance and its work, and nowhere else.

The reader of facts, histories and incidents is not the reader of instances (issue 6, secrets; docs/security.md)."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gobpm_ray import ProcessBuilder, Secret
from gobpm_ray.cli.main import call as command_line
from gobpm_ray.runtime.callables import Work
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import Verifier
from tests.support.plain_engine import PlainEngine
from tests.support.stores import SERVERS

WORDS = ("opensesame", "open-token")
MAY_HOLD = ("in", "tasks", "dead", "docs")
"""What was accepted and not folded, what is offered to people and workers, letters, definitions. And the instances."""


@pytest.fixture(params=SERVERS)
def url(request: pytest.FixtureRequest, server_url: Callable[[str], str]) -> str:
    return server_url(request.param)


@pytest.fixture
def engine(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlainEngine]:
    settings = Settings(engine_id=f"s{uuid.uuid4().hex[:10]}", release_jobs=True)
    monkeypatch.setenv("GOBPM_REDIS_URL", url)
    monkeypatch.setenv("GOBPM_ENGINE_ID", settings.engine_id)
    client = open_client(url)
    store = RedisStore(client, settings)
    store.manual_clock(1_767_225_600_000)

    def work(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        if context.attempt == 1:
            raise ConnectionError(f"refused {inputs['password']}")
        return {"token": Secret("open-token")}

    def fail(inputs: dict[str, Any]) -> None:
        raise ValueError(f"no {inputs['password']} {inputs['token']}")

    callables: dict[str, Work] = {"work": work, "fail": fail}
    for topic in callables:
        store.put_value("code", topic, b"known to this test's host")  # so that they are no jobs
    made = PlainEngine(store, callables)
    yield made
    made.close()
    store.close()
    client.close()


def contents(client: Any, key: bytes) -> list[bytes]:
    kind = client.type(key)
    match kind:
        case b"hash":
            return [part for pair in client.hgetall(key).items() for part in pair]
        case b"zset":
            return list(client.zrange(key, 0, -1))
        case b"list":
            return list(client.lrange(key, 0, -1))
        case b"stream":
            return [value for _, fields in client.xrange(key) for value in fields.values()]
        case b"set":
            return list(client.smembers(key))
    return [client.get(key)]


def places(engine: PlainEngine) -> set[str]:
    """Every key of the engine in which a secret is found; an instance's record and inbox as `instance`."""
    found = set()
    prefix = engine.store.keys.instances
    for key in engine.store.client.scan_iter(match=f"*gobpm:{engine.store.settings.engine_id}:*"):
        for entry in contents(engine.store.client, key):
            if any(word.encode() in entry for word in WORDS):
                history = key.startswith(prefix) and key.endswith(b":h")
                found.add("instance" if key.startswith(prefix) and not history else key.rpartition(b"}:")[2].decode())
    return found


def process() -> ProcessBuilder:
    built = ProcessBuilder("p")
    built.start().user_task("ask", inputs={"note": '="use " + password'}).service_task(
        "work", topic="work", retries="R1/PT1M"
    ).service_task("hand", topic="by hand").service_task("fail", topic="fail").end("done")
    return built


def test_a_secret_stands_with_its_instance_and_nowhere_else(
    engine: PlainEngine, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every key, every command's output and every log line, at each stage of a life with failures and an incident."""
    caplog.set_level(logging.DEBUG)
    operations = engine.operations
    said: list[str] = []

    def look(*expected: str) -> None:
        assert places(engine) - {"instance"} == set(expected)
        for words in (
            ["show", started.instance_id],
            ["list"],
            ["tasks"],
            ["jobs"],
            ["incidents"],
            ["dead", "list"],
            ["top"],
        ):
            for more in ([], ["--json"]):
                assert command_line([*words, *more]) in (0, 2, 4)
        shown = capsys.readouterr()
        said.append(shown.out + shown.err)

    operations.deploy(process())
    started = operations.start("p", {"password": Secret("opensesame")})
    look()
    engine.turn()
    look("tasks")
    operations.complete(operations.tasks()[0].id)
    engine.turn()
    look()
    engine.store.set_clock(engine.store.now() + 60_000)
    engine.turn()
    look("tasks")
    (job,) = operations.fetch_and_lock("by hand")
    assert (job.inputs["password"], job.inputs["token"]) == WORDS
    operations.fail_job(job, f"bad {job.inputs['token']}", retries=1)
    look("tasks")
    (job,) = operations.fetch_and_lock("by hand")
    operations.complete_job(job, {"copy": f"<{job.inputs['password']}>"})
    engine.turn()
    (incident,) = operations.incidents()
    assert incident.cause == "ValueError: no *** ***"
    assert incident.data["copy"] == "***"
    look()
    operations.publish("Nobody", "K", {"password": Secret("opensesame")}, ttl="PT1M")
    look("in")
    engine.turn()
    engine.store.set_clock(engine.store.now() + 60_000)
    engine.turn()
    look("dead")
    assert Verifier(engine.store).verify().differences == []
    operations.cancel(started.instance_id)
    engine.turn()
    look("dead")
    everything = "".join(said) + caplog.text
    assert "***" in everything
    for word in WORDS:
        assert word not in everything
