"""Definitions become programs once; what is not deployed is asked for again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gobpm_ray.engine.engine import Engine
from gobpm_ray.errors import InvalidModel, UnknownProcess
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.document import to_json
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import Settings

XML = b"""<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="t">
<process id="x" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="e"/>
<endEvent id="e"/>
</process></definitions>"""


def document(process_id: str, node: str = "end") -> bytes:
    builder = ProcessBuilder(process_id)
    builder.start().end(node)
    return b"json\n" + to_json(builder.build())


def test_both_document_forms_become_programs_and_versions_stay_apart() -> None:
    store = MemoryStore(Settings())
    store.deploy("p", document("p"), ())
    store.deploy("p", document("p", "other"), ())
    store.deploy("x", b"xml\n" + XML, ())
    programs = Programs(store)
    assert "end" in programs.get("p", 1).nodes
    assert "other" in programs.get("p", 2).nodes
    assert programs.get("x", 1).starts["x"] == ("s",)
    assert programs.get("p", 2).version == 2
    assert programs.get("p", 1) is programs.get("p", 1)


def test_a_missing_definition_is_not_remembered_as_missing() -> None:
    """D18: it heals when it is deployed."""
    store = MemoryStore(Settings())
    programs = Programs(store)
    with pytest.raises(UnknownProcess, match="process p version 1 is not deployed"):
        programs.get("p", 1)
    store.deploy("p", document("p"), ())
    assert programs.get("p", 1).id == "p"


def test_the_least_recently_used_program_goes_first() -> None:
    store = MemoryStore(Settings())
    for name in ("a", "b", "c"):
        store.deploy(name, document(name), ())
    programs = Programs(store, kept=2)
    first, second = programs.get("a", 1), programs.get("b", 1)
    assert programs.get("a", 1) is first
    programs.get("c", 1)
    assert programs.get("a", 1) is first
    assert programs.get("b", 1) is not second


@pytest.mark.parametrize("stored", [b"yaml\nprocess: p", b"xml\n" + XML])
def test_a_document_that_does_not_hold_the_process_is_refused_by_name(stored: bytes) -> None:
    store = MemoryStore(Settings())
    store.deploy("p", stored, ())
    with pytest.raises(InvalidModel, match="process p"):
        Programs(store).get("p", 1)


DEEP = "x = []\nfor i in range(180):\n    x = [x]\n"


def _rounds() -> ProcessBuilder:
    builder = ProcessBuilder("rounds")
    builder.start().script_task("t", DEEP, language="python").multi_instance(cardinality="2").end()
    return builder


def _looped() -> ProcessBuilder:
    builder = ProcessBuilder("looped")
    task = builder.start().script_task("t", DEEP + "y = x\n", language="python", outputs={"kept": "=y"})
    task.loop(maximum=2).end()
    return builder


@pytest.mark.parametrize("make", [_rounds, _looped])
def test_a_value_that_cannot_be_stored_is_an_incident_of_the_round_that_computed_it(
    make: Callable[[], ProcessBuilder],
) -> None:
    """Not a wake that fails again and again: the commit would have found it only after everything else."""
    with Engine.open(None, clock="virtual") as engine:
        builder = make()
        engine.deploy(builder)
        instance_id = engine.start(builder.build().id).instance_id
        assert {incident.node for incident in engine.incidents()} == {"t"}
        assert "nested deeper than" in engine.incidents()[0].cause
        engine.cancel(instance_id)
        assert engine.inspect(instance_id).state == "terminated"
