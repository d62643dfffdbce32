"""`gobpm-ray data` on a real store, and what `verify` says of a data store that was damaged by hand."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gobpm_ray import Operations, ProcessBuilder, Settings, Stored
from gobpm_ray.cli.main import call as command_line
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import verify
from tests.support.stores import SERVERS

Command = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def store(server_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisStore]:
    url = server_url(next(iter(SERVERS)))
    engine_id = f"d{uuid.uuid4().hex[:10]}"
    monkeypatch.setenv("GOBPM_REDIS_URL", url)
    monkeypatch.setenv("GOBPM_ENGINE_ID", engine_id)
    made = RedisStore(open_client(url), Settings(engine_id=engine_id))
    order = ProcessBuilder("order")
    order.store("Stock", "xsd:int", capacity=3)
    order.start().script_task("take", outputs={Stored("Stock"): "=Stock - 1"}).end()
    Operations(made).deploy(order)
    yield made
    made.close()


@pytest.fixture
def command(store: RedisStore, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
        capsys.readouterr()
        code = command_line([*arguments, "--json"])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_an_operator_lists_sets_shows_and_drops(command: Command) -> None:
    code, (declared,) = command("data", "list")
    assert (code, declared["name"], declared["version"], declared["type"]) == (0, "Stock", 0, "xsd:int")
    assert (declared["declared_by"], declared["capacity"], declared["by"]) == ("order", 3, "")
    code, (written,) = command("data", "set", "Stock", "7")
    assert (code, written["by"]) == (0, "an operator")
    code, (shown,) = command("data", "show", "Stock")
    assert (code, shown["value"], shown["version"]) == (0, 7, written["version"])
    assert command("data", "drop", "Stock") == (0, [{"dropped": "Stock"}])
    code, (shown,) = command("data", "show", "Stock")
    assert (code, shown["value"]) == (0, None)


def test_what_is_wrong_is_one_line_and_exit_code_2(command: Command) -> None:
    for arguments, code, words in (
        (("data", "show", "Stokc"), "unknown_data_store", "known: Stock"),
        (("data", "drop", "Stock"), "unknown_data_store", "holds nothing"),
        (("data", "set", "Stock", "{"), "input", "not JSON"),
        (("data", "set", "Stock", '"x"'), "mistyped", "expected a whole number"),
    ):
        ended, (answer,) = command(*arguments)
        assert ended == 2
        assert answer["error"]["code"] == code
        assert words in answer["error"]["message"]


def test_of_two_operators_who_saw_the_same_version_one_is_refused(command: Command) -> None:
    _, (first,) = command("data", "set", "Stock", "1", "--version", "0")
    code, (answer,) = command("data", "set", "Stock", "2", "--version", "0")
    assert (code, answer["error"]["code"]) == (2, "data_store_changed")
    assert command("data", "set", "Stock", "2", "--version", str(first["version"]))[0] == 0


def test_people_see_a_table_and_the_value(store: RedisStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["data", "list"]) == 0
    assert "Stock" in capsys.readouterr().out
    assert command_line(["data", "set", "Stock", "2"]) == 0
    assert "Stock is written (version" in capsys.readouterr().out
    assert command_line(["data", "show", "Stock"]) == 0
    assert capsys.readouterr().out == "2\n"


def test_verify_knows_data_stores_and_names_a_damaged_one(store: RedisStore) -> None:
    """H12."""
    Operations(store).set_data_store("Stock", 3)
    assert verify(store).differences == []
    key = store.keys.table("data")
    for row, found in (
        (b"rubbish", "damaged"),
        (b"1\x1e2\x1e\x1e0\x1e{", "damaged"),
        (b"99999999\x1e2\x1e\x1e0\x1e{}", "after the last"),
    ):
        store.client.hset(key, "Stock", row)
        (difference,) = verify(store).differences
        assert (difference.kind, difference.key) == ("data", "Stock")
        assert found in difference.found
        assert verify(store, repair=True).left == 1, "what it held only a person knows"
    Operations(store).set_data_store("Stock", 3)
    assert verify(store).differences == []
