"""Data stores of the engine through its public door: read at activation, written with the step, seen by operators."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray import Engine, ProcessBuilder, Secret, Settings, Stored
from gobpm_ray.errors import DataStoreChanged, InputError, LimitReached, Mistyped, UnknownDataStore, UnstorableValue

BEGIN = 1_767_225_600_000


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open(None, clock="virtual", now="2026-01-01T00:00:00Z") as opened:
        yield opened


def taking(amount: str = "amount") -> ProcessBuilder:
    order = ProcessBuilder("order")
    order.store("Stock", "xsd:int")
    order.start("s").script_task("take", outputs={Stored("Stock"): f"=Stock - {amount}", "left": Stored("Stock")}).end()
    return order


def test_what_one_instance_writes_the_next_one_reads(engine: Engine) -> None:
    engine.deploy(taking())
    engine.set_data_store("Stock", 10)
    for amount in (3, 4):
        view = engine.wait(engine.start("order", {"amount": amount}).instance_id)
        assert view.state == "completed"
    assert engine.data_store("Stock").value == 3
    assert view.variables["left"] == 3, "a later mapping of the same step reads what an earlier one has written"


def test_a_store_that_nobody_has_written_is_null(engine: Engine) -> None:
    counting = ProcessBuilder("counting")
    counting.start().script_task("count", outputs={Stored("Visits"): "=if Visits = null then 1 else Visits + 1"}).end()
    engine.deploy(counting)
    for _ in range(3):
        engine.wait(engine.start("counting").instance_id)
    assert engine.data_store("Visits").value == 3


def test_an_input_is_read_when_the_activity_begins_and_not_again(engine: Engine) -> None:
    asking = ProcessBuilder("asking")
    asking.start().user_task("ask", inputs={"left": Stored("Stock"), "double": Stored("Stock", "Stock * 2")}).end()
    engine.deploy(asking)
    engine.set_data_store("Stock", 4)
    engine.start("asking")
    engine.set_data_store("Stock", 5)
    (task,) = engine.tasks()
    assert task.inputs == {"left": 4, "double": 8}


def test_a_step_that_fails_in_a_later_mapping_writes_nothing(engine: Engine) -> None:
    broken = ProcessBuilder("broken")
    broken.data("failed", "xsd:boolean")
    outputs = {Stored("Stock"): "=Stock - 1", "failed": "=5"}
    broken.start().script_task("take", outputs=outputs).end()
    engine.deploy(broken)
    engine.set_data_store("Stock", 4)
    instance = engine.start("broken").instance_id
    (incident,) = engine.inspect(instance).incidents
    assert incident.code == "output"
    assert incident.cause == "output mapping of 'take': failed: expected true or false (xsd:boolean)"
    assert engine.data_store("Stock").value == 4
    engine.resolve(instance, outputs={"failed": False})
    assert engine.status(instance) == "completed"


def test_the_history_and_a_fact_say_when_it_was_written_and_by_whom_and_not_what(engine: Engine) -> None:
    engine.deploy(taking())
    engine.set_data_store("Stock", 987_654)
    instance = engine.start("order", {"amount": 1}).instance_id
    (line,) = [entry for entry in engine.inspect(instance).history if entry.event == "stored"]
    assert (line.node, line.detail, line.at_ms) == ("take", "Stock", BEGIN)
    (fact,) = [fact for fact in engine.facts() if fact.fact == "Stored"]
    assert (fact.data["instance"], fact.data["node"], fact.data["store"]) == (instance, "take", "Stock")
    assert "987653" not in str(fact)
    view = engine.data_store("Stock")
    assert (view.written_by, view.written_ms, view.value) == (instance, BEGIN, 987_653)


def test_an_operator_lists_reads_sets_and_drops(engine: Engine) -> None:
    engine.deploy(taking())
    (declared,) = engine.data_stores()
    assert (declared.name, declared.version, declared.type, declared.declared_by) == ("Stock", 0, "xsd:int", "order")
    assert engine.data_store("Stock").value is None
    written = engine.set_data_store("Stock", 7)
    assert (written.value, written.written_by) == (7, "")
    engine.set_data_store("Prices", {"a": [1.5, None]})
    assert [view.name for view in engine.data_stores()] == ["Prices", "Stock"]
    assert engine.data_stores()[0].value is None, "a list shows no values"
    engine.drop_data_store("Stock")
    assert engine.data_store("Stock").value is None
    with pytest.raises(UnknownDataStore, match="holds nothing"):
        engine.drop_data_store("Stock")


def test_an_unknown_data_store_is_refused_by_name_with_the_known_ones(engine: Engine) -> None:
    with pytest.raises(UnknownDataStore, match=r"'Stokc'.*there is none"):
        engine.data_store("Stokc")
    engine.set_data_store("Stock", 1)
    with pytest.raises(UnknownDataStore, match=r"'Stokc'.*known: Stock"):
        engine.data_store("Stokc")
    with pytest.raises(InputError, match="control characters"):
        engine.set_data_store("a\nb", 1)


def test_an_operators_write_is_held_to_the_declared_type_and_capacity(engine: Engine) -> None:
    order = ProcessBuilder("order")
    order.store("Queue", "xsd:string", capacity=2, collection=True)
    order.start().script_task("add", outputs={Stored("Queue"): "=append(Queue, who)"}).end()
    engine.deploy(order)
    with pytest.raises(Mistyped, match=r"data store 'Queue'\[1\]: expected a text"):
        engine.set_data_store("Queue", ["a", 1])
    with pytest.raises(LimitReached, match="holds 2 entries, not 3"):
        engine.set_data_store("Queue", ["a", "b", "c"])
    engine.set_data_store("Queue", ["a"])
    assert engine.wait(engine.start("order", {"who": "b"}).instance_id).state == "completed"
    full = engine.inspect(engine.start("order", {"who": "c"}).instance_id)
    assert [incident.cause for incident in full.incidents] == [
        "data store 'Queue': it holds 2 entries, not 3 (capacity)"
    ]
    wrong = engine.inspect(engine.start("order", {"who": 5}).instance_id)
    assert "[2]: expected a text" in wrong.incidents[0].cause
    assert engine.data_store("Queue").value == ["a", "b"]


def test_of_two_operators_one_is_refused(engine: Engine) -> None:
    seen = engine.set_data_store("Stock", 1)
    engine.set_data_store("Stock", 2, version=seen.version)
    with pytest.raises(DataStoreChanged, match="'Stock'"):
        engine.set_data_store("Stock", 3, version=seen.version)
    assert engine.data_store("Stock").value == 2


def test_a_value_that_is_too_large_or_has_no_durable_form_is_refused() -> None:
    with Engine.open(None, clock="virtual", settings=Settings(max_variable=40)) as engine:
        with pytest.raises(LimitReached, match=r"'Stock'.*max_variable"):
            engine.set_data_store("Stock", "x" * 100)
        with pytest.raises(UnstorableValue, match="data store 'Stock'"):
            engine.set_data_store("Stock", object())
        growing = ProcessBuilder("growing")
        growing.start().script_task("grow", outputs={Stored("Stock"): '=string join(for i in 1..30 return "xx")'}).end()
        engine.deploy(growing)
        (incident,) = engine.inspect(engine.start("growing").instance_id).incidents
        assert "data store 'Stock': it has" in incident.cause
        assert "max_variable" in incident.cause


def test_a_secret_is_shown_to_nobody_under_whatever_name_it_is_stored() -> None:
    with Engine.open(None, clock="virtual") as engine:
        keeping = ProcessBuilder("keeping", secrets=["pin"])
        keeping.start().script_task("keep", outputs={Stored("Vault"): "={code: pin}", Stored("pin"): "=1"}).end()
        engine.deploy(keeping)
        engine.wait(engine.start("keeping", {"pin": "4711-0815"}).instance_id)
        vault = engine.data_store("Vault")
        assert (vault.value, vault.hidden) == ("***", True)
        assert engine.data_store("pin").hidden
        reading = ProcessBuilder("reading")
        reading.start().script_task("read", outputs={"got": Stored("Vault")}).end()
        engine.deploy(reading)
        reader = engine.start("reading").instance_id
        assert engine.wait(reader).variables["got"] == "***"
        record = engine.store.instance(reader)
        assert record is not None
        assert b'"got":{"code":"4711-0815"}' in record.parts["s0"], "it is computed with like any other"


def test_an_operators_secret_is_one_wherever_it_is_read(engine: Engine) -> None:
    asking = ProcessBuilder("asking")
    asking.start().user_task("ask", inputs={"key": Stored("Key"), "shown": Stored("Key", '"key " + Key')}).script_task(
        "fail", outputs={"n": Stored("Key", "Key")}
    ).end()
    asking.data("n", "xsd:int")
    engine.deploy(asking)
    view = engine.set_data_store("Key", Secret("hunter2-hunter2"))
    assert (view.value, view.hidden) == ("***", True)
    instance = engine.start("asking").instance_id
    assert engine.tasks()[0].inputs == {"key": "***", "shown": "***"}
    engine.complete("ask")
    shown = engine.inspect(instance)
    assert shown.incidents
    assert "hunter2" not in repr(shown)


def test_the_values_of_the_engine_come_back_as_they_were(engine: Engine) -> None:
    dated = ProcessBuilder("dated")
    dated.start().script_task("note", outputs={Stored("Last"): '=date("2026-03-01")'}).script_task(
        "use", outputs={"next": Stored("Last", 'Last + duration("P1D")')}
    ).end()
    engine.deploy(dated)
    view = engine.wait(engine.start("dated").instance_id)
    assert str(view.variables["next"]) == "2026-03-02"


def test_parallel_tokens_of_one_step_count_one_after_the_other(engine: Engine) -> None:
    wide = ProcessBuilder("wide")
    fork = wide.start().parallel("fork")
    for number in range(3):
        fork.script_task(f"t{number}", outputs={Stored("Count"): "=Count + 1"}).to("join")
    wide.first.parallel("join").end()
    engine.deploy(wide)
    engine.set_data_store("Count", 0)
    assert engine.wait(engine.start("wide").instance_id).state == "completed"
    assert engine.data_store("Count").value == 3


def test_rounds_of_an_iteration_write_too(engine: Engine) -> None:
    adding = ProcessBuilder("adding")
    adding.start().script_task("add", outputs={Stored("Sum"): "=Sum + n"}).multi_instance(
        collection="[1, 2, 3]", item="n", sequential=True
    ).end()
    engine.deploy(adding)
    engine.set_data_store("Sum", 0)
    engine.wait(engine.start("adding").instance_id)
    assert engine.data_store("Sum").value == 6
