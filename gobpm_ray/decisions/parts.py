"""The pieces that every boxed expression is made of: one expression or one cell, compiled, and the budget of it all.

A `Value` is evaluated over variables and on a budget: of the whole decision, from which each expression gets what any
expression has. A function pays from its caller's, so that functions which call each other cannot go round it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions import CompiledTests, budget, compile_expression, compile_unary_tests
from gobpm_ray.expressions.budget import Refused, Run
from gobpm_ray.model.elements import Expression

MAX_STEPS: Final = 2_000_000

Variables = Mapping[str, object]
Value = Callable[[Variables, Run], object]
Functions = frozenset[str]
"""Names that stand for functions at a place."""


class Tests:
    """A cell's unary tests."""

    __slots__ = ("_tests", "always")

    def __init__(self, tests: CompiledTests) -> None:
        self._tests = tests
        self.always = tests.always

    def hold(self, value: object, variables: Variables, run: Run) -> bool:
        if not isinstance(run, Work):
            return self._tests.holds_within(value, variables, run)
        share = run.share()
        holds = self._tests.holds_within(value, variables, share)
        run.settle(share)
        return holds


class Work(Run):
    """The budget of one decision, with all that it requires."""

    __slots__ = ()

    def __init__(self, now_ms: int) -> None:
        super().__init__(now_ms, MAX_STEPS)

    def charge(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Refused(f"the decision takes more than {MAX_STEPS:,} steps")

    def share(self) -> Run:
        """What one of its expressions may take."""
        return Run(self.now_ms)

    def settle(self, share: Run) -> None:
        self.charge(budget.MAX_STEPS - share.left)


def compiled(expression: Expression, place: str, functions: Functions) -> Value:
    """The expression at a place that is named in what goes wrong. Raises ExpressionError."""
    try:
        return _compiled(expression.text, expression.language, functions)
    except ExpressionError as error:
        raise ExpressionError(f"{place}: {error}") from None


def compiled_tests(text: str, place: str, functions: Functions) -> Tests:
    """A cell of unary tests. Raises ExpressionError."""
    try:
        return Tests(compile_unary_tests(text, functions))
    except ExpressionError as error:
        raise ExpressionError(f"{place}: {error}") from None


def refuse_built_in(name: str, place: str) -> None:
    """ExpressionError for a function whose name FEEL has a function of its own for, which every call would mean."""
    import gobpm_ray.expressions.feel.builder  # noqa: F401 - it fills the table; loaded when it is needed, as below
    from gobpm_ray.expressions.feel.builtins import BUILTINS

    if name in BUILTINS:
        raise ExpressionError(f"{place}: '{name}' is a function of FEEL itself; give this one another name")


@lru_cache(maxsize=8_192)
def _compiled(text: str, language: str, functions: Functions) -> Value:
    if language == "feel":
        from gobpm_ray.expressions.feel.compiled import compile_feel  # the parser is loaded when it is needed

        within = compile_feel(text, functions).within

        def value(variables: Variables, run: Run) -> object:
            if not isinstance(run, Work):
                return within(variables, run)
            share = run.share()
            made = within(variables, share)
            run.settle(share)
            return made

        return value
    evaluate = compile_expression(text, language).evaluate
    return lambda variables, run: evaluate(variables, run.now_ms)
