"""DMN files deployed: decisions stand beside processes, are found by tasks that ask for them, and are no process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gobpm_ray import Engine, ProcessBuilder
from gobpm_ray.errors import InvalidModel, UnknownProcess
from tests.unit.decisions.documents import decision, dmn, table, text


def rates(rate: int, decision_id: str = "rating") -> bytes:
    return dmn(decision(table(["amount"], ["rate"], [(["-"], [str(rate)])]), decision_id))


def rated(**binding: object) -> ProcessBuilder:
    builder = ProcessBuilder("p")
    builder.start("s").user_task("u").business_rule_task("r", decision="rating", result="x", **binding).end("e")  # type: ignore[arg-type]
    return builder


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open(None, clock="virtual") as opened:
        yield opened


def decided(engine: Engine, instance_id: str) -> object:
    engine.complete("u")
    return engine.inspect(instance_id).variables.get("x")


def test_a_dmn_file_deployed_with_a_process_or_before_it_is_found(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "rates.dmn"
    file.write_bytes(rates(1))
    # In whatever order they are named: decisions are stored first.
    assert [one.process_id for one in engine.deploy(rated(), file)] == ["p"]
    started = engine.start("p", {"amount": 5})
    assert decided(engine, started.instance_id) == 1


def test_a_task_sees_the_newest_decision_one_version_or_the_one_of_its_deployment(engine: Engine) -> None:
    engine.deploy(rates(1))
    for binding, expected in ({"binding": "latest"}, 2), ({"version": 1}, 1), ({"binding": "deployment"}, 1):
        engine.deploy(rates(1))
        engine.deploy(rated(**binding))
        engine.deploy(rates(2))
        instance_id = engine.start("p", {"amount": 5}).instance_id
        assert decided(engine, instance_id) == expected


def test_a_decision_that_is_deployed_later_heals_the_incident(engine: Engine) -> None:
    engine.deploy(rated())
    instance_id = engine.start("p", {"amount": 5}).instance_id
    assert decided(engine, instance_id) is None
    [incident] = engine.incidents()
    assert "decision 'rating', wanted by 'r', is not deployed" in incident.cause
    engine.deploy(rates(3))
    engine.retry(instance_id)
    assert engine.inspect(instance_id).variables["x"] == 3


def test_a_decision_is_no_process(engine: Engine) -> None:
    engine.deploy(rates(1), rated())
    assert engine.processes() == [("p", 1)]
    with pytest.raises(UnknownProcess, match="rating"):
        engine.start("rating")
    with pytest.raises(UnknownProcess, match=r"process rating: not deployed \(deployed: p\)"):
        engine.process("rating")
    assert engine.list_instances() == []


def test_an_id_is_a_process_or_a_decision_and_never_both(engine: Engine) -> None:
    with pytest.raises(InvalidModel, match="'p' is the id of a process and of a decision"):
        engine.deploy(rates(1, "p"), rated())
    assert engine.processes() == []
    engine.deploy(rated())
    with pytest.raises(InvalidModel, match="decision 'p': a process of this id is deployed"):
        engine.deploy(rates(1, "p"))
    engine.deploy(rates(1))
    other = ProcessBuilder("rating")
    other.start().end()
    with pytest.raises(InvalidModel, match="process 'rating': a decision of this id is deployed"):
        engine.deploy(other)


def test_a_call_activity_that_calls_a_decision_is_refused_by_its_id(engine: Engine) -> None:
    calls = ProcessBuilder("calls")
    calls.start().call("c", process="rating").end()
    words = "process calls: callActivity 'c' calls 'rating', which is a decision: a business rule task evaluates it"
    with pytest.raises(InvalidModel, match=words):
        engine.deploy(rates(1), calls)
    assert engine.processes() == []
    engine.deploy(rates(1))
    with pytest.raises(InvalidModel, match=words):
        engine.deploy(calls)


def test_a_dmn_file_that_cannot_be_evaluated_is_refused_whole(engine: Engine) -> None:
    broken = dmn(decision(table(["amount"], ["rate"], [(["< "], ["1 +"])]), "rating"))
    with pytest.raises(InvalidModel, match="rating"):
        engine.deploy(rated(), broken)
    assert engine.processes() == []


def test_a_decision_whose_value_cannot_be_stored_is_an_incident_of_its_task(engine: Engine) -> None:
    engine.deploy(dmn(decision(text("literalExpression", "{a: [1..3]}"), "rating")), rated())
    instance_id = engine.start("p").instance_id
    assert decided(engine, instance_id) is None
    [incident] = engine.incidents()
    assert (incident.node, incident.cause) == (
        "r",
        "decision 'rating': its value is, or holds, a range, which no variable can hold",
    )
    assert engine.inspect(instance_id).state == "incident"


def test_what_is_imported_from_another_file_is_stored_with_the_model(engine: Engine, tmp_path: Path) -> None:
    """The document alone does not hold it: another host, which has no such folder, must read the same process."""
    space = 'xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="t"'
    (tmp_path / "messages.bpmn").write_text(f'<definitions {space}><message id="m" name="Paid"/></definitions>')
    (tmp_path / "main.bpmn").write_text(
        f'<definitions {space} xmlns:m="t">'
        '<import importType="http://www.omg.org/spec/BPMN/20100524/MODEL" location="messages.bpmn" namespace="t"/>'
        '<process id="p" isExecutable="true"><startEvent id="s"/><receiveTask id="r" messageRef="m"/><endEvent id="e"/>'
        '<sequenceFlow id="f" sourceRef="s" targetRef="r"/><sequenceFlow id="g" sourceRef="r" targetRef="e"/></process>'
        "</definitions>"
    )
    engine.deploy(tmp_path / "main.bpmn")
    definition = engine.store.definition("p")
    assert definition is not None
    assert definition.document.startswith(b"json\n")
    instance_id = engine.start("p").instance_id
    engine.publish("Paid")
    assert engine.inspect(instance_id).state == "completed"
