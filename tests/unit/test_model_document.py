"""The durable form of a process: what is written is read back whole, and nothing else is accepted."""

from __future__ import annotations

import json

import pytest

from gobpm_ray.errors import InvalidModel, NewerSchema
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.document import SCHEMA, from_json, to_json
from gobpm_ray.model.elements import Process


def _everything() -> Process:
    process = ProcessBuilder("all", name="Älles")
    process.start("s").service_task("w", "t", inputs={"a": "=b"}).script_task("x", "1").event_gateway("g")
    process.at("g").catch("c", timer="R3/PT1H").exclusive("d").when("a > 1").end("e1", terminate=True)
    process.at("d").otherwise().user_task(
        "u", assignee="=boss", due="2026-01-01T00:00:00Z", required_outputs=["o"]
    ).end("e2")
    process.at("g").receive_task("r", message="M", key="=k").parallel("p").manual_task("h").throw("th", signal="S").end(
        "e3"
    )
    process.boundary("u", "b", message="N", key="=k", interrupting=False).send_task("st", message="O").end(
        "e4", message="P"
    )
    with process.at("p").sub_process("sub") as inside:
        inside.start("i").task("it").end("ie")
    return process.build()


def test_what_is_written_is_read_back_equal_and_in_order() -> None:
    process = _everything()
    again = from_json(to_json(process))
    assert again == process
    assert list(again.nodes) == list(process.nodes)
    assert list(again.flows) == list(process.flows)
    assert [type(node) for node in again.nodes.values()] == [type(node) for node in process.nodes.values()]


def test_equal_processes_give_equal_bytes() -> None:
    assert to_json(_everything()) == to_json(_everything())


def test_a_document_of_a_later_release_is_refused_loudly() -> None:
    document = json.loads(to_json(_everything()))
    document["schema"] = SCHEMA + 1
    document["something"] = "new"
    with pytest.raises(NewerSchema, match=f"schema {SCHEMA + 1}"):
        from_json(json.dumps(document).encode())


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"nonsense",
        b"[]",
        b"{}",
        b'{"format": "other", "schema": 1, "process": {"id": "p"}}',
        b'{"format": "gobpm_ray.process", "schema": 1, "process": {"id": "p", "nodes": {"a": {"type": "no"}}}}',
        b'{"format": "gobpm_ray.process", "schema": 1}',
    ],
)
def test_anything_else_is_refused_in_one_line(document: bytes) -> None:
    with pytest.raises(InvalidModel, match=r"^stored process: ") as refusal:
        from_json(document)
    assert "\n" not in str(refusal.value)
