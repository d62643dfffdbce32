"""Business rule tasks that evaluate a decision: at once, over what the token sees, into a variable."""

from __future__ import annotations

from typing import Any

import pytest

from gobpm_ray.bpmn.dmn import read_decisions
from gobpm_ray.core.program import compile_process
from gobpm_ray.decisions.compiled import Decisions
from gobpm_ray.model.builder import ProcessBuilder
from tests.unit.core.driving import Bench
from tests.unit.decisions.documents import decision, dmn, table, text

RATES = read_decisions(
    dmn(
        decision(
            table(["amount"], ["rate"], [(["< 100"], ["1"]), (["< 200"], ["2"])], policy="FIRST"),
            "rating",
            variable="the rate",
        )
        + decision(table(["amount"], ["a", "b"], [(["-"], ["amount", "amount * 2"])]), "pair")
        + decision(text("literalExpression", "count(for i in 1..1000000 return i)"), "endless")
    )
)


def _bench(builder: ProcessBuilder, asked: list[tuple[str, str, int]] | None = None) -> Bench:
    def source(decision_id: str, binding: str, version: int) -> Decisions | None:
        if asked is not None:
            asked.append((decision_id, binding, version))
        return RATES if decision_id in RATES else None

    bench = Bench(builder)
    bench.program = compile_process(builder.build(), decisions=source)
    return bench


def _rated(**task: Any) -> ProcessBuilder:
    order = ProcessBuilder("p")
    order.start().business_rule_task("rate", **{"decision": "rating", **task}).user_task("look").end("e")
    return order


def test_the_value_becomes_the_result_variable() -> None:
    bench = _bench(_rated(result="found"))
    bench.start(amount=150)
    assert bench.variables["found"] == 2


def test_without_a_result_variable_the_value_has_the_decisions_name_and_several_outputs_their_own() -> None:
    bench = _bench(_rated())
    bench.start(amount=50)
    assert bench.variables["the rate"] == 1
    bench = _bench(_rated(decision="pair"))
    bench.start(amount=5)
    assert (bench.variables["a"], bench.variables["b"]) == (5, 10)


def test_mapped_inputs_are_what_the_decision_sees_and_outputs_read_its_result() -> None:
    bench = _bench(_rated(result="found", inputs={"amount": "=basket * 10"}, outputs={"class": "=found + 100"}))
    bench.start(basket=15)
    assert bench.variables["class"] == 102
    assert "found" not in bench.variables


def test_the_decision_may_be_computed_and_its_binding_is_handed_on() -> None:
    asked: list[tuple[str, str, int]] = []
    bench = _bench(_rated(decision="=which", version=3, result="found"), asked)
    bench.start(which="rating", amount=1)
    assert bench.variables["found"] == 1
    assert asked == [("rating", "version", 3)]


def test_a_decision_that_is_not_deployed_is_an_incident_and_a_retry_asks_again() -> None:
    known: list[Decisions] = []
    builder = _rated(result="found")
    bench = Bench(builder)
    bench.program = compile_process(builder.build(), decisions=lambda *_: known[0] if known else None)
    bench.start(amount=1)
    assert bench.cause == "decision 'rating', wanted by 'rate', is not deployed"
    known.append(RATES)
    bench.retry()
    assert bench.variables["found"] == 1


@pytest.mark.parametrize(
    ("which", "cause"),
    [("endless", "decision 'endless': FEEL expression"), (None, "decision of 'rate': expected an id, got 'None'")],
)
def test_a_decision_that_fails_is_an_incident_that_names_it(which: str | None, cause: str) -> None:
    bench = _bench(_rated(decision="=which"))
    bench.start(which=which)
    assert bench.cause.startswith(cause)
