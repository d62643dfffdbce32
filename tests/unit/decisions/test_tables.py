"""Decision tables (DMN 8): hit policies, cells, defaults, and errors that name rule and cell."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from gobpm_ray.bpmn.dmn import read_decisions
from gobpm_ray.decisions.errors import DecisionFailed
from gobpm_ray.errors import InvalidModel
from tests.unit.decisions.documents import decision, dmn, table

Rules = Sequence[tuple[Sequence[str], Sequence[str]]]


def _value(rules: Rules, variables: dict[str, object], **more: Any) -> object:
    inputs = more.pop("inputs", ["amount"])
    outputs = more.pop("outputs", ["rate"])
    return read_decisions(dmn(decision(table(inputs, outputs, rules, **more)))).evaluate("d", variables, 0)


OVERLAPPING: Rules = [(["< 10"], ['"low"']), (["< 100"], ['"middle"']), (["-"], ['"high"'])]
ORDER = '"high","middle","low"'


@pytest.mark.parametrize(
    ("policy", "amount", "expected"),
    [
        ("FIRST", 5, "low"),
        ("FIRST", 50, "middle"),
        ("FIRST", 500, "high"),
        ("RULE ORDER", 5, ["low", "middle", "high"]),
        ("COLLECT", 50, ["middle", "high"]),
        ("PRIORITY", 5, "high"),
        ("OUTPUT ORDER", 5, ["high", "middle", "low"]),
        ("ANY", 500, "high"),
        ("UNIQUE", 500, "high"),
        ("", 500, "high"),
    ],
)
def test_a_hit_policy_makes_one_value_of_the_rules_that_match(policy: str, amount: int, expected: object) -> None:
    assert _value(OVERLAPPING, {"amount": amount}, policy=policy, values=ORDER) == expected


def test_unique_refuses_two_rules_that_match_by_their_numbers() -> None:
    with pytest.raises(DecisionFailed, match=r"^decision 'd', rules 2, 3: all match, and the hit policy UNIQUE"):
        _value(OVERLAPPING, {"amount": 50}, policy="UNIQUE")


def test_any_allows_rules_that_agree_and_refuses_those_that_differ() -> None:
    agreeing: Rules = [(["< 10"], ["1 + 1"]), (["< 100"], ["2"])]
    assert _value(agreeing, {"amount": 5}, policy="ANY") == 2
    with pytest.raises(DecisionFailed, match=r"^decision 'd', rules 1, 2, 3: match with different outputs"):
        _value(OVERLAPPING, {"amount": 5}, policy="ANY")


NUMBERS: Rules = [(["< 10"], ["3"]), (["< 100"], ["5"]), (["-"], ["4"])]


@pytest.mark.parametrize(
    ("aggregation", "amount", "expected"),
    [("SUM", 5, 12), ("MIN", 5, 3), ("MAX", 5, 5), ("COUNT", 5, 3), ("SUM", 50, 9), ("COUNT", 500, 1)],
)
def test_collect_aggregates_what_matches(aggregation: str, amount: int, expected: int) -> None:
    assert _value(NUMBERS, {"amount": amount}, policy="COLLECT", aggregation=aggregation) == expected


def test_decimals_are_summed_as_decimals_and_texts_are_refused() -> None:
    assert _value([(["-"], ["amount"])], {"amount": Decimal("0.1")}, policy="COLLECT", aggregation="SUM") == Decimal(
        "0.1"
    )
    with pytest.raises(DecisionFailed, match="aggregation SUM: an output that matches is no number"):
        _value([(["-"], ['"x"'])], {"amount": 1}, policy="COLLECT", aggregation="SUM")


@pytest.mark.parametrize(
    ("policy", "aggregation", "expected"),
    [
        ("UNIQUE", "", None),
        ("FIRST", "", None),
        ("COLLECT", "", []),
        ("RULE ORDER", "", []),
        ("COLLECT", "SUM", None),
        ("COLLECT", "MIN", None),
        ("COLLECT", "COUNT", 0),
    ],
)
def test_when_no_rule_matches_there_is_null_an_empty_list_or_nought(
    policy: str, aggregation: str, expected: object
) -> None:
    assert _value([(["< 0"], ["1"])], {"amount": 5}, policy=policy, aggregation=aggregation) == expected


def test_a_default_output_counts_when_no_rule_matches() -> None:
    for policy in ("UNIQUE", "FIRST", "PRIORITY"):
        assert _value([(["< 0"], ["1"])], {"amount": 5}, policy=policy, default="amount * 2", values="1,2") == 10


def test_several_outputs_are_a_context_and_a_list_of_contexts() -> None:
    rules: Rules = [(["< 10"], ['"a"', "1"]), (["< 100"], ['"b"', ""])]
    first = _value(rules, {"amount": 50}, outputs=["kind", "rank"])
    assert first == {"kind": "b", "rank": None}
    both = _value(rules, {"amount": 5}, outputs=["kind", "rank"], policy="COLLECT")
    assert both == [{"kind": "a", "rank": 1}, {"kind": "b", "rank": None}]


def test_the_first_output_counts_most_for_priority() -> None:
    body = table(["amount"], ["kind", "rank"], [(["-"], ['"a"', "2"]), (["-"], ['"b"', "1"])], policy="PRIORITY")
    body = body.replace('<output name="kind">', '<output name="kind"><outputValues><text>"b","a"</text></outputValues>')
    assert read_decisions(dmn(decision(body))).evaluate("d", {"amount": 1}, 0) == {"kind": "b", "rank": 1}


def test_several_inputs_must_all_hold_and_cells_see_the_other_variables() -> None:
    rules: Rules = [(["> limit", '"vip"'], ["1"]), (["-", "-"], ["2"])]
    known: dict[str, object] = {"limit": 10, "amount": 20, "customer": {"kind": "vip"}}
    assert _value(rules, known, inputs=["amount", "customer.kind"], policy="FIRST") == 1
    assert _value(rules, {**known, "amount": 5}, inputs=["amount", "customer.kind"], policy="FIRST") == 2


def test_the_clock_is_the_one_that_is_handed_in() -> None:
    body = table(["today()"], ["late"], [(['> date("2026-01-01")'], ["true"]), (["-"], ["false"])], policy="FIRST")
    decisions = read_decisions(dmn(decision(body)))
    assert decisions.evaluate("d", {}, 0) is False
    assert decisions.evaluate("d", {}, 1_800_000_000_000) is True


# --- errors ------------------------------------------------------------------------------------------------------

ENDLESS = "for i in 1..1000000 return i"


@pytest.mark.parametrize(
    ("inputs", "rules", "place"),
    [
        ([ENDLESS], [(["-"], ["1"])], "decision 'd', input 1 "),
        (["amount"], [(["1"], ["1"]), ([f"count({ENDLESS})"], ["1"])], "decision 'd', rule 2, input 1: "),
        (["amount"], [(["-"], [f"count({ENDLESS})"])], "decision 'd', rule 1, output 1 'rate': "),
    ],
)
def test_what_fails_while_it_is_evaluated_names_decision_rule_and_cell(
    inputs: list[str], rules: Rules, place: str
) -> None:
    with pytest.raises(DecisionFailed) as failure:
        _value(rules, {"amount": 5}, inputs=inputs)
    assert str(failure.value).startswith(place)
    assert "100,000 steps" in str(failure.value)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("inputs", "rules", "place"),
    [
        (["a +"], [(["-"], ["1"])], "decision 'd', input 1: FEEL expression 'a +'"),
        (["amount"], [(["-"], ["1"]), (["<"], ["1"])], "decision 'd', rule 2, input 1: FEEL expression '<'"),
        (["amount"], [(["-"], ["1 +"])], "decision 'd', rule 1, output 1 'rate': FEEL expression '1 +'"),
    ],
)
def test_what_cannot_be_read_is_refused_at_once_and_names_decision_rule_and_cell(
    inputs: list[str], rules: Rules, place: str
) -> None:
    with pytest.raises(InvalidModel) as refusal:
        _value(rules, {}, inputs=inputs)
    assert place in str(refusal.value)
