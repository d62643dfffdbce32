"""The everyday texts are read without the grammar, and mean what they mean to the grammar."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions.budget import FREE
from gobpm_ray.expressions.feel.nodes import Node
from gobpm_ray.expressions.feel.parsing import parse
from gobpm_ray.expressions.feel.plain import plain

WORDS = ("a", "b", "Überweisung", "not", "true", "null", "for", "some", "in", "instance", "list", "a1", "_x", "٣")
NUMBERS = ("0", "007", "12", "1.5", "-1")
TEXTS = ('"t"', '""', '"a\nb"', r'"\n"')
OPERANDS = (*WORDS, *NUMBERS, *TEXTS, "a.b", "a . b.c", "a.for", "a b", "a[1]")
SYMBOLS = ("=", "!=", "<", "<=", ">", ">=", "==", "+", "and")
NAMES: tuple[dict[str, object], ...] = (
    {},
    {"a": 12, "b": 7, "not": 1, "Überweisung": "t", "٣": 3},
    {"a": {"b": {"c": "t"}}, "b": "t", "a1": True, "_x": None},
    {"a": [{"b": 1}], "b": 1.5, "list": 12},
)


def same(text: str) -> bool:
    """Whether it is plain; if it is, the grammar makes the same of it."""
    mine = plain(text)
    if mine is None:
        return False
    theirs = parse(text, "start")
    assert isinstance(theirs, Node)
    for fact in ("depth", "weight", "simple", "builds", "name", "calls"):
        assert getattr(mine, fact) == getattr(theirs, fact), (text, fact)
    assert type(mine.constant) is type(theirs.constant)
    for names in NAMES:
        assert _value(mine, names) == _value(theirs, names), (text, names)
        assert (mine.defined is None) == (theirs.defined is None)
        if mine.defined is not None and theirs.defined is not None:
            assert mine.defined(names, FREE) == theirs.defined(names, FREE)
    return True


def _value(node: Node, names: dict[str, object]) -> object:
    value = node.evaluate(names, FREE)
    return type(value), value


def test_every_plain_text_is_read_as_the_grammar_reads_it() -> None:
    texts = list(OPERANDS)
    for left, symbol, right in product(OPERANDS, SYMBOLS, OPERANDS):
        texts += [f"{left} {symbol} {right}", f" {left}{symbol}{right}\n"]
    assert sum(map(same, texts)) > 1_000


@given(st.text(alphabet='ab1 ."=<>!\n\\-tnf', max_size=12))
def test_no_text_at_all_is_read_otherwise(text: str) -> None:
    """Nor is one plain that the grammar refuses."""
    try:
        same(text)
    except ExpressionError as refusal:
        pytest.fail(f"plain, and refused by the grammar: {text!r}: {refusal}")


def test_a_program_of_plain_expressions_loads_no_parser() -> None:
    """It is most of what an actor's creation would cost."""
    program = (
        "import sys\n"
        "from gobpm_ray.expressions import compile_expression\n"
        "print(compile_expression('order.amount > 100', 'feel').evaluate({'order': {'amount': 101}}, 0))\n"
        "print('lark' in sys.modules)\n"
        "print(compile_expression('1 + 1', 'feel').evaluate({}, 0))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True", "False", "2"]
