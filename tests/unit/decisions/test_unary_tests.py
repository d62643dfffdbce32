"""Unary tests (DMN 10.3.2): what a cell says about its input."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions import compile_expression, compile_unary_tests


@pytest.mark.parametrize(
    ("tests", "value", "holds"),
    [
        ("-", 1, True),
        ("", None, True),
        (" - ", "x", True),
        ("-5", -5, True),
        ("< 10", 5, True),
        ("< 10", 10, False),
        (">= 10", 10, True),
        ("!= 3", 4, True),
        ("5", 5, True),
        ("5", "5", False),
        ('"a", "b"', "b", True),
        ('"a", "b"', "c", False),
        ("[1..5]", 1, True),
        ("[1..5]", 5, True),
        ("(1..5)", 1, False),
        ("]1..5[", 1, False),
        ("]1..5[", 3, True),
        ("]1..5]", 5, True),
        ("[1..5[", 5, False),
        ("[1..5[, ]7..9[", 8, True),
        ("[1..5[, ]7..9[", 6, False),
        ('["a".."f"]', "c", True),
        ('not("a", "b")', "c", True),
        ('not("a", "b")', "a", False),
        ("not(< 5)", 7, True),
        ("not([1..5], 9)", 9, False),
        ("true", True, True),
        ("true", False, False),
        ("false", False, True),
        ("null", None, True),
        ("null", 0, False),
        ("not(null)", 0, True),
        ("not(null)", None, False),
        ("[1, 2, 3]", 2, True),
        ("? > 3 and ? < 5", 4, True),
        ("? > 3 and ? < 5", 6, False),
        ('starts with(?, "a")', "abc", True),
        ('not(starts with(?, "a"))', "abc", False),
        ("? + 0", 4, True),
        ('"?"', "?", True),
        ('"]..["', "]..[", True),
        ('date("2026-01-01")', datetime.date(2026, 1, 1), True),
        ('< date("2026-01-01")', datetime.date(2025, 1, 1), True),
        ("limit", 3, True),
        ("> limit", 4, True),
        ("allowed", "x", True),
        ("[low..limit]", 2, True),
    ],
)
def test_a_test_holds_or_not(tests: str, value: object, holds: bool) -> None:
    names = {"limit": 3, "low": 1, "allowed": ["x", "y"]}
    assert compile_unary_tests(tests).holds(value, names, 0) is holds


@pytest.mark.parametrize("tests", ["< 5", "not(< 5)", "[1..5]", "not([1..5])"])
def test_what_has_no_answer_does_not_hold_turned_round_either(tests: str) -> None:
    """Three-valued logic: null is not less than 5, and not not less."""
    assert compile_unary_tests(tests).holds(None, {}, 0) is False


@pytest.mark.parametrize(
    ("tests", "column"),
    [("<", 2), ("? >", 4), ("not(", 5), ("][", 1), ("a b ]", 5), ("]1..2[ 3", 9), ("1, ", 4)],
)
def test_a_cell_that_cannot_be_read_is_refused_by_text_and_position(tests: str, column: int) -> None:
    with pytest.raises(ExpressionError) as refusal:
        compile_unary_tests(tests)
    assert f"at column {column}" in str(refusal.value)
    assert f"FEEL expression {tests.strip() if tests != '1, ' else '1,'!r}" in str(refusal.value)


def test_outward_brackets_are_read_in_every_expression_and_filters_stay_filters() -> None:
    def value(text: str) -> object:
        return compile_expression(text, "feel").evaluate({"xs": [1, 2, 3]}, 0)

    assert value("5 in ]1..5[") is False
    assert value("xs[item in ]1..3[]") == [2]
    assert value("for i in 1..3 return xs[i]") == [1, 2, 3]
    assert value("[[], [1]]") == [[], [1]]
    assert value("xs[1] in [1..xs[3]]") is True


@given(st.integers(-20, 20), st.integers(-10, 10), st.integers(-10, 10))
def test_a_range_and_its_negation_never_agree(value: int, low: int, high: int) -> None:
    for opening in "[(]":
        for closing in "])[":
            interval = f"{opening}{low}..{high}{closing}"
            inside = compile_unary_tests(interval).holds(value, {}, 0)
            assert compile_unary_tests(f"not({interval})").holds(value, {}, 0) is not inside
            above = value >= low if opening == "[" else value > low
            below = value <= high if closing == "]" else value < high
            assert inside is (above and below)


@given(st.text('[]().,"?1a -<not', max_size=14))
def test_rubbish_is_refused_in_one_line_or_answers(tests: str) -> None:
    try:
        said = str(compile_unary_tests(tests).holds(1, {}, 0))
    except ExpressionError as refused:
        said = str(refused)
    assert said in ("True", "False") or (said.startswith("FEEL expression ") and "\n" not in said)
