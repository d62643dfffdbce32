"""Typed item definitions at the engine's edges: who brings wrong data is refused, and what cannot be refused is an
incident and no loss (BPMN 8.4.10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from gobpm_ray import Engine, ProcessBuilder, Secret
from gobpm_ray.errors import Mistyped
from tests.unit.bpmn.documents import document


class Order(BaseModel):
    item: str
    amount: int


class Verdict(BaseModel):
    approved: bool
    note: str | None = None


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open(None, clock="virtual", callables={"price": lambda _inputs: {"price": "dear"}}) as opened:
        yield opened


def ordering() -> ProcessBuilder:
    order = ProcessBuilder("order", variables=Order)
    order.data("note", "xsd:string")
    order.start("s").user_task("approve").returns(Verdict).end("e")
    return order


# --- callers are refused ------------------------------------------------------------------------------------------


def test_a_start_with_wrong_variables_is_refused_and_nothing_is_started(engine: Engine) -> None:
    engine.deploy(ordering())
    for variables, why in (
        ({"item": "a"}, "start of order: expected 'amount', which is missing"),
        ({"item": "a", "amount": "two"}, "start of order: amount: expected integer"),
        ({"item": "a", "amount": 2, "note": 5}, r"start of order: note: expected a text \(xsd:string\)"),
        (None, "start of order: expected 'item', which is missing"),
    ):
        with pytest.raises(Mistyped, match=why):
            engine.start("order", variables)
    with pytest.raises(Mistyped):
        engine.start_many("order", [{"item": "a", "amount": 1}, {}])
    assert engine.list_instances() == []
    assert engine.start("order", {"item": "a", "amount": 2, "more": True}).instance_id


def test_a_task_is_not_completed_with_what_is_no_result_of_it(engine: Engine) -> None:
    engine.deploy(ordering())
    instance = engine.start("order", {"item": "a", "amount": 1}).instance_id
    with pytest.raises(Mistyped, match="result of 'approve': approved: expected boolean"):
        engine.complete("approve", {"approved": "yes"})
    with pytest.raises(Mistyped, match="result of 'approve': expected 'approved', which is missing"):
        engine.complete("approve")
    with pytest.raises(Mistyped, match="result of 'approve': note: expected a text"):
        engine.complete("approve", {"approved": True, "note": 7})
    assert [task.node for task in engine.tasks()] == ["approve"]
    engine.complete("approve", {"approved": True, "note": "fine"})
    assert engine.status(instance) == "completed"


def test_a_job_is_not_completed_with_what_is_no_result_of_it(engine: Engine) -> None:
    working = ProcessBuilder("working")
    working.start().service_task("work", topic="elsewhere", result="answer").returns({"required": ["sum"]}).end()
    engine.deploy(working)
    instance = engine.start("working").instance_id
    (job,) = engine.fetch_and_lock("elsewhere")
    with pytest.raises(Mistyped, match="result of 'work': expected 'sum', which is missing"):
        engine.complete_job(job, {"total": 3})
    with pytest.raises(Mistyped):
        engine.complete_job("work", {"total": 3})
    engine.complete_job(job, {"sum": 3})
    assert engine.wait(instance).variables["answer"] == {"sum": 3}


def test_an_operator_does_not_set_a_variable_to_what_it_cannot_be(engine: Engine) -> None:
    engine.deploy(ordering())
    instance = engine.start("order", {"item": "a", "amount": 1}).instance_id
    with pytest.raises(Mistyped, match="variables of 'order': note: expected a text"):
        engine.set(instance, {"note": 1})
    engine.set(instance, {"note": "ok", "free": 1})
    assert engine.inspect(instance).variables["note"] == "ok"


# --- what nobody can be refused is an incident ------------------------------------------------------------------------


def _paying() -> ProcessBuilder:
    paying = ProcessBuilder("paying")
    paying.start("s").receive_task("paid", message="paid", key="=ref").carries({"required": ["sum"]}).end("e")
    return paying


def test_a_message_with_a_wrong_payload_is_an_incident_that_keeps_it(engine: Engine) -> None:
    engine.deploy(_paying())
    instance = engine.start("paying", {"ref": "A"}).instance_id
    engine.publish("paid", "A", {"summe": 5})
    view = engine.inspect(instance)
    (incident,) = view.incidents
    assert (incident.node, incident.cause) == ("paid", "result of 'paid': expected 'sum', which is missing")
    assert incident.data["summe"] == 5
    assert "summe" not in view.variables
    engine.retry(instance)
    (incident,) = engine.inspect(instance).incidents
    assert incident.data["summe"] == 5, "a retry has what the message brought, and finds the same"
    engine.resolve(instance, outputs={"sum": 5})
    view = engine.inspect(instance)
    assert (view.state, view.variables["sum"]) == ("completed", 5)


def test_a_right_message_passes_and_a_catch_event_and_a_boundary_ask_too(engine: Engine) -> None:
    guarded = ProcessBuilder("guarded")
    guarded.start("s").user_task("u").end("e")
    guarded.boundary("u", "b", message="stop").carries("xsd:int").end("stopped")
    engine.deploy(_paying(), guarded)
    instance = engine.start("paying", {"ref": "A"}).instance_id
    engine.publish("paid", "A", {"sum": 5})
    assert engine.status(instance) == "completed"
    other = engine.start("guarded").instance_id
    engine.publish("stop", payload={"level": "high"})
    (incident,) = engine.inspect(other).incidents
    assert (incident.node, incident.cause[:21]) == ("b", "result of 'b': level:")


def test_a_process_begun_by_a_message_of_a_wrong_type_stands_in_an_incident(engine: Engine) -> None:
    begun = ProcessBuilder("begun")
    begun.start("came", message="came").carries({"required": ["ref"]}).end("e")
    engine.deploy(begun)
    engine.publish("came", payload={"no": 1})
    (view,) = engine.list_instances()
    assert [(one.node, one.code) for one in view.incidents] == [("came", "output")]
    engine.resolve(view.instance_id, outputs={"ref": "A"})
    assert engine.inspect(view.instance_id).variables == {"ref": "A"}


def test_a_called_process_that_is_given_wrong_variables_stands_in_an_incident_and_not_its_caller(
    engine: Engine,
) -> None:
    calling = ProcessBuilder("calling")
    calling.start().call("c", process="order", inputs={"item": "=5", "amount": "=1"}).end()
    engine.deploy(ordering(), calling)
    caller = engine.start("calling").instance_id
    child = next(view for view in engine.list_instances() if view.process_id == "order")
    assert [(one.node, one.code) for one in child.incidents] == [("s", "mistyped")]
    assert child.incidents[0].cause == "start of 'order': item: expected string"
    engine.set(child.instance_id, {"item": "a"})
    engine.retry(child.instance_id)
    engine.complete("approve", {"approved": True})
    assert engine.status(caller) == "completed"


def test_a_callables_wrong_result_is_an_incident_and_the_call_is_not_made_again(engine: Engine) -> None:
    calls: list[int] = []

    def price(_inputs: dict[str, object]) -> dict[str, object]:
        calls.append(1)
        return {"price": "dear"}

    engine.register("price", price)
    pricing = ProcessBuilder("pricing")
    pricing.start().service_task("price", topic="price").returns(price="xsd:decimal").end()
    engine.deploy(pricing)
    instance = engine.start("pricing").instance_id
    (incident,) = engine.wait(instance, until="waiting").incidents
    assert incident.cause == "result of 'price': price: expected a number (xsd:decimal)"
    engine.retry(instance)
    assert calls == [1]
    engine.resolve(instance, outputs={"price": 2})
    assert engine.wait(instance).variables["price"] == 2


def test_mapped_inputs_are_checked_before_the_activity_begins(engine: Engine) -> None:
    asking = ProcessBuilder("asking")
    asking.start().user_task("ask", inputs={"sum": "=amount"}).takes(sum="xsd:decimal").end()
    engine.deploy(asking)
    instance = engine.start("asking", {"amount": "much"}).instance_id
    (incident,) = engine.inspect(instance).incidents
    assert incident.cause == "input of 'ask': sum: expected a number (xsd:decimal)"
    assert engine.tasks() == []
    engine.set(instance, {"amount": 3})
    engine.retry(instance)
    assert engine.tasks()[0].inputs == {"sum": 3}


def test_a_value_that_is_handed_in_as_a_secret_is_checked_like_any_other(engine: Engine) -> None:
    keeping = ProcessBuilder("keeping")
    keeping.data("pin", "xsd:string")
    keeping.start().user_task("u", outputs={"pin": "=given"}).returns(given="xsd:string").end()
    engine.deploy(keeping)
    instance = engine.start("keeping", {"pin": Secret("hunter2-hunter2")}).instance_id
    with pytest.raises(Mistyped, match="given: expected a text"):
        engine.complete("u", {"given": Secret(5)})
    engine.set(instance, {"pin": Secret("swordfish")})
    engine.complete("u", {"given": Secret("other-secret")})
    assert engine.inspect(instance).variables["pin"] == "***"


def test_a_secret_is_not_quoted_by_a_refusal(engine: Engine) -> None:
    keeping = ProcessBuilder("keeping", secrets=["pin"])
    keeping.data("pin", "xsd:int")
    keeping.start().end()
    engine.deploy(keeping)
    with pytest.raises(Mistyped) as refused:
        engine.start("keeping", {"pin": "hunter2-hunter2"})
    assert "hunter2" not in str(refused.value)


# --- versions -----------------------------------------------------------------------------------------------------


def test_each_version_has_its_own_types_and_a_running_instance_keeps_its_own(engine: Engine) -> None:
    loose = ProcessBuilder("order")
    loose.start().user_task("approve").end()
    engine.deploy(loose)
    old = engine.start("order", {"amount": "any"}).instance_id
    engine.deploy(ordering())
    with pytest.raises(Mistyped):
        engine.start("order", {"amount": "any"})
    assert engine.start("order", {"amount": "any"}, version=1).instance_id
    (task, *_) = engine.tasks(instance_id=old)
    engine.complete(task.id, {"approved": "whatever"})
    assert engine.status(old) == "completed"


def test_what_another_engine_has_deployed_meanwhile_is_noticed_by_the_instance(engine: Engine) -> None:
    """The door knows what was the newest version when it looked; the core knows what it runs."""
    from gobpm_ray.engine.operations import Operations

    loose = ProcessBuilder("order")
    loose.start("s").end()
    engine.deploy(loose)
    engine.start("order", {})
    Operations(engine.store).deploy(ordering())
    view = engine.inspect(engine.start("order", {}).instance_id)
    assert [(one.node, one.code) for one in view.incidents] == [("s", "mistyped")]


# --- XML ----------------------------------------------------------------------------------------------------------

XSD = ' xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:o="urn:orders"'
BODY = (
    '<bpmn:dataObject id="d" name="order" itemSubjectRef="t"/>'
    '<bpmn:startEvent id="s"/><bpmn:endEvent id="e"/><bpmn:sequenceFlow id="f" sourceRef="s" targetRef="e"/>'
)


def test_a_json_schema_stands_in_the_file_itself(engine: Engine) -> None:
    schema = '{"type": "object", "required": ["id"]}'
    inside = f"<bpmn:extensionElements><ray:schema>{schema}</ray:schema></bpmn:extensionElements>"
    typed = f'<bpmn:itemDefinition id="t">{inside}</bpmn:itemDefinition>'
    engine.deploy(document(BODY, beside=typed))
    with pytest.raises(Mistyped, match="start of p: order: expected 'id', which is missing"):
        engine.start("p", {"order": {}})
    engine.start("p", {"order": {"id": 1}})


def test_or_in_a_file_beside_it_that_is_imported(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "orders.json").write_text('{"$defs": {"Order": {"type": "object", "required": ["id"]}}}')
    beside = (
        '<bpmn:import importType="https://json-schema.org/draft/2020-12/schema" location="orders.json"'
        ' namespace="urn:orders"/><bpmn:itemDefinition id="t" structureRef="o:Order" isCollection="true"/>'
    )
    (tmp_path / "p.bpmn").write_bytes(document(BODY, beside=beside, attributes=XSD))
    engine.deploy(tmp_path / "p.bpmn")
    with pytest.raises(Mistyped, match=r"start of p: order\[1\]: expected 'id', which is missing"):
        engine.start("p", {"order": [{"id": 1}, {}]})
    engine.start("p", {"order": [{"id": 1}]})


def test_a_document_in_utf_16_is_typed_too(engine: Engine) -> None:
    text = document(BODY, beside='<bpmn:itemDefinition id="t" structureRef="xsd:int"/>', attributes=XSD).decode()
    engine.deploy(text.replace('encoding="UTF-8"', 'encoding="UTF-16"').encode("utf-16"))
    with pytest.raises(Mistyped, match="order: expected a whole number"):
        engine.start("p", {"order": "x"})
