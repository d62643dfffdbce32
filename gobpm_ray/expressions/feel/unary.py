"""Unary tests of FEEL: what a cell of a decision table says about its input (DMN 1.4, 10.3.2.7 to 10.3.2.9).

`-` and an empty cell hold for everything. Otherwise one of the tests must hold: a comparison (`< 10`), a value or list
or range that the input is in, or an expression over `?`, the input itself. `not(...)` turns them round.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions.budget import Refused, Run, failure, surprise
from gobpm_ray.expressions.feel.brackets import inward
from gobpm_ray.expressions.feel.compiled import refuse_unknown
from gobpm_ray.expressions.feel.iteration import UnaryTest
from gobpm_ray.expressions.feel.parsing import parse
from gobpm_ray.expressions.feel.values import Scope

_INPUT = "\u0294"
"""A letter that looks like `?` and stands for it: to the grammar the input is a variable like any other."""
_LITERALS = re.compile(r'"(?:[^"\\]|\\.)*"|\?', re.DOTALL)
_NOT = re.compile(r"\s*not\s*\(")


class UnaryTests:
    """Compiled tests: ask them as often as needed, from any thread."""

    __slots__ = ("_asks", "_negated", "_tests", "_text")

    def __init__(self, text: str, tests: tuple[UnaryTest, ...], *, negated: bool, asks: bool) -> None:
        self._text = text
        self._tests = tests
        self._negated = negated
        self._asks = asks

    @property
    def always(self) -> bool:
        """It holds for every input."""
        return not self._tests

    def holds(self, value: object, variables: Mapping[str, object], now_ms: int) -> bool:
        """Whether the input passes; what has no answer does not. ExpressionError as for any expression."""
        return self.holds_within(value, variables, Run(now_ms))

    def holds_within(self, value: object, variables: Mapping[str, object], run: Run) -> bool:
        """The same as a part of something larger, on its budget."""
        if not self._tests:
            return True
        names = Scope({_INPUT: value}, variables)
        try:
            answers = [self._answer(test, value, names, run) for test in self._tests]
        except Refused as error:
            raise failure("FEEL", self._text, error) from None
        except ExpressionError:
            raise
        except Exception as error:
            raise surprise("FEEL", self._text, error) from error
        if True in answers:
            return not self._negated
        # Not(null) is null: a test without an answer does not hold turned round either.
        return self._negated and None not in answers

    def _answer(self, test: UnaryTest, value: object, names: Scope, run: Run) -> bool | None:
        if not test.symbol and self._asks:
            answer = test.operand.evaluate(names, run)
            # With the input in it the expression is the whole test, unless it only computes what to compare with.
            if answer is True or answer is False:
                return answer
        return test.matches(value, names, run)


def compile_unary_tests(text: str, functions: Collection[str] = ()) -> UnaryTests:
    """The tests as closures; ExpressionError names text, position and reason. `functions` as for `compile_feel`."""
    bare = text.strip()
    if bare in ("", "-"):
        return UnaryTests(text, (), negated=False, asks=False)
    marked = _LITERALS.sub(lambda found: _INPUT if found[0] == "?" else found[0], inward(text))
    negated = _negated(marked)
    if negated is not None:
        marked = negated
    tests = parse(marked, "tests", text)
    if not isinstance(tests, tuple):
        raise TypeError(type(tests).__name__)
    for test in tests:
        refuse_unknown(text, test.operand, functions)
    return UnaryTests(text, tests, negated=negated is not None, asks=_INPUT in marked)


def _negated(text: str) -> str | None:
    """What stands in `not(...)`, blanks around it, when that is the whole text."""
    begun = _NOT.match(text)
    if begun is None or not text.rstrip().endswith(")"):
        return None
    depth, end = 1, len(text.rstrip()) - 1
    bare = _LITERALS.sub(lambda found: "x" * len(found[0]), text)
    for place in range(begun.end(), end):
        # A range may open with one kind and close with another.
        depth += (bare[place] in "([{") - (bare[place] in ")]}")
        if depth == 0:
            return None
    return " " * begun.end() + text[begun.end() : end] + " " * (len(text) - end)
