"""The page about data is true: its Python runs, and its XML is read as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gobpm_ray.bpmn.reader import read_bpmn
from gobpm_ray.model.data import DataStore, ItemType
from gobpm_ray.model.elements import Expression, Mapping
from tests.unit.bpmn.documents import document

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
XML = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)


SAYS = ["{'notes': []}\n", "10\n7\n", "start of order: amount: expected integer\n"]


@pytest.mark.parametrize(("snippet", "said"), list(zip(PYTHON, SAYS, strict=True)))
def test_the_python_of_the_page_runs_and_says_what_it_should(
    snippet: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(snippet, "data.md", "exec"), {"__name__": "data"})
    assert capsys.readouterr().out == said


def test_the_data_store_of_the_page_is_read_as_it_says() -> None:
    root, body = XML[0].split("...\n")
    number = '<bpmn:itemDefinition id="number" structureRef="xsd:int"/>'
    process = read_bpmn(document(body, beside=root + number)).processes[0]
    assert [(store.name, store.capacity, store.item) for store in process.stores] == [("Stock", 100, ItemType("int"))]
    assert process.nodes["take"].outputs == (Mapping("Stock", Expression("Stock - amount"), ("Stock",), True),)
    assert isinstance(process.stores[0], DataStore)


def test_the_schema_of_the_page_is_read_as_it_says() -> None:
    definition = XML[1].split("\n\n")[0]
    body = '<bpmn:dataObject id="d" name="d" itemSubjectRef="order"/><bpmn:task id="t"/>'
    (element,) = read_bpmn(document(body, beside=definition)).processes[0].data
    assert element.item == ItemType(schema='{"required": ["item"], "type": "object"}')
