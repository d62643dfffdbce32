"""Two writers of one data store: no update is lost, and a process that names none asks for none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gobpm_ray.model.builder import ProcessBuilder, Stored
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Commit, CommitResult, DataRow
from gobpm_ray.runtime.stored_data import decoded_data, encoded_data
from tests.unit.runtime.desk import Desk


class Overtaken(MemoryStore):
    """Somebody else writes the store between a step's read and its commit, as often as it is told."""

    rivals = 0
    reads = 0

    def commit(self, commit: Commit) -> CommitResult:
        if commit.data and self.rivals:
            self.rivals -= 1
            row = self.read_data(["Stock"])["Stock"]
            value: Any = decoded_data(row)
            self.write_data("Stock", encoded_data(value - 1, "Stock"))
        return super().commit(commit)

    def read_data(self, names: Sequence[str]) -> dict[str, DataRow]:
        self.reads += 1
        return super().read_data(names)


def _desk() -> tuple[Desk, Overtaken]:
    desk = Desk(store_class=Overtaken)
    assert isinstance(desk.store, Overtaken)
    return desk, desk.store


def test_a_step_that_was_overtaken_is_made_again_on_what_is_there() -> None:
    """The lost update, and a history that tells each thing once."""
    desk, store = _desk()
    order = ProcessBuilder("p")
    order.start("s").script_task("take", outputs={"before": Stored("Stock"), Stored("Stock"): "=Stock - 3"}).end("e")
    desk.deploy(order)
    store.write_data("Stock", encoded_data(10, "Stock"))
    store.rivals = 3
    desk.start()
    while desk.host.serve_once():
        pass
    row = store._data["Stock"]
    assert decoded_data(row) == 4
    record = store.instance("i")
    assert record is not None
    assert record.status == "completed"
    assert record.version == 1
    events = [line for line in record.history if b'"stored"' in line]
    assert len(events) == 1
    assert b'"before":7' in record.parts["s0"]
    desk.close()


def test_an_effects_report_survives_that_its_step_is_made_again() -> None:
    """The report is in the host's hand and nowhere else: it must not be lost with the refused commit, and the effect
    must not happen twice."""
    calls: list[int] = []

    def work(inputs: dict[str, Any]) -> dict[str, Any]:
        calls.append(1)
        return {"amount": 5}

    desk = Desk(callables={"work": work}, store_class=Overtaken)
    store = desk.store
    assert isinstance(store, Overtaken)
    order = ProcessBuilder("p")
    order.start("s").service_task("work", topic="work", outputs={Stored("Stock"): "=Stock - amount"}).end("e")
    desk.deploy(order)
    store.write_data("Stock", encoded_data(10, "Stock"))
    store.rivals = 1
    desk.start()
    while desk.host.serve_once():
        pass
    assert calls == [1]
    assert decoded_data(store._data["Stock"]) == 4
    assert store.status("i") == "completed"
    desk.close()


def test_a_process_that_names_no_data_store_asks_for_none() -> None:
    desk, store = _desk()
    plain = ProcessBuilder("p")
    plain.start("s").script_task("x", outputs={"y": "=1"}).end("e")
    desk.deploy(plain)
    desk.start()
    while desk.host.serve_once():
        pass
    assert store.reads == 0
    assert store.status("i") == "completed"
    desk.close()


def test_a_step_that_only_reads_is_never_made_again() -> None:
    desk, store = _desk()
    reading = ProcessBuilder("p")
    reading.start("s").script_task("x", outputs={"y": Stored("Stock")}).end("e")
    desk.deploy(reading)
    store.write_data("Stock", encoded_data(10, "Stock"))
    store.rivals = 5
    desk.start()
    while desk.host.serve_once():
        pass
    assert (store.reads, store.rivals, store.status("i")) == (1, 5, "completed")
    desk.close()
