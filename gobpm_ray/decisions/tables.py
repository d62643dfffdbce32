"""Decision tables, compiled: inputs evaluated once, rules asked in order, one value made of it by the hit policy.

A rule's outputs are evaluated only if it matches. Rules count from 1, as a table shows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gobpm_ray.decisions.elements import DecisionTable, Output
from gobpm_ray.decisions.errors import DecisionFailed
from gobpm_ray.decisions.parts import Functions, Tests, Value, Variables, Work, compiled, compiled_tests
from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions.budget import Run
from gobpm_ray.expressions.feel.values import is_number, same
from gobpm_ray.model.elements import Expression

_AGGREGATORS: Final = {"SUM": "sum(hits)", "MIN": "min(hits)", "MAX": "max(hits)", "COUNT": "count(hits)"}


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that matched, with its outputs."""

    rule: int
    outputs: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Cells:
    tests: tuple[tuple[int, Tests], ...]
    """(input's index, its tests); cells that hold for everything are left out"""
    entries: tuple[Value | None, ...]


class Table:
    """One table, ready to evaluate. `place` names it, `functions` are the names of functions at it. Raises
    ExpressionError, naming rule and cell, for what does not compile."""

    def __init__(self, place: str, table: DecisionTable, functions: Functions = frozenset()) -> None:
        self._place = place
        self._functions = functions
        self._table = table
        self._inputs = tuple(
            (each.label or each.expression.text, self._compiled(each.expression, f"input {number}"))
            for number, each in enumerate(table.inputs, 1)
        )
        self._rules = tuple(self._cells(number) for number in range(1, len(table.rules) + 1))
        self._defaults = tuple(
            None if output.default is None else self._compiled(output.default, f"default of {_column(output, number)}")
            for number, output in enumerate(table.outputs, 1)
        )
        self._orders = tuple(self._order(output, number) for number, output in enumerate(table.outputs, 1))

    def evaluate(self, variables: Variables, run: Run) -> object:
        """The table's value: what its hit policy makes of the rules that match."""
        policy = self._table.hit_policy
        hits = self._hits(variables, run)
        if policy == "FIRST":
            first = next(hits, None)
            return self._default(variables, run) if first is None else self._shaped(first)
        found = list(hits)
        if policy in ("COLLECT", "RULE ORDER", "OUTPUT ORDER"):
            if policy == "OUTPUT ORDER":
                found.sort(key=self._priority)
            return self._collected([self._shaped(hit) for hit in found], run)
        if not found:
            return self._default(variables, run)
        if policy == "PRIORITY":
            return self._shaped(min(found, key=self._priority))
        if len(found) > 1:
            self._refuse_several(found)
        return self._shaped(found[0])

    # --- rules -------------------------------------------------------------------------------------------------------

    def _hits(self, variables: Variables, run: Run) -> Iterator[Hit]:
        values = [
            self._guarded(f"input {number} '{label}'", each, variables, run)
            for number, (label, each) in enumerate(self._inputs, 1)
        ]
        for number, cells in enumerate(self._rules, 1):
            if all(self._holds(number, column, test, values, variables, run) for column, test in cells.tests):
                yield Hit(number, self._outputs(number, cells, variables, run))

    def _holds(
        self, rule: int, column: int, tests: Tests, values: list[object], variables: Variables, run: Run
    ) -> bool:
        try:
            return tests.hold(values[column], variables, run)
        except ExpressionError as error:
            raise self._failed(f"rule {rule}, input {column + 1}", error) from None

    def _outputs(self, rule: int, cells: _Cells, variables: Variables, run: Run) -> tuple[object, ...]:
        return tuple(
            None if entry is None else self._guarded(f"rule {rule}, {_column(output, column)}", entry, variables, run)
            for column, (entry, output) in enumerate(zip(cells.entries, self._table.outputs, strict=True), 1)
        )

    def _guarded(self, place: str, evaluate: Value, variables: Variables, run: Run) -> object:
        try:
            return evaluate(variables, run)
        except ExpressionError as error:
            raise self._failed(place, error) from None

    def _failed(self, place: str, reason: object) -> DecisionFailed:
        return DecisionFailed(f"{self._place}, {place}: {reason}")

    # --- values ------------------------------------------------------------------------------------------------------

    def _shaped(self, hit: Hit) -> object:
        """One output is its value, several are a context."""
        if len(hit.outputs) == 1:
            return hit.outputs[0]
        return {output.name: value for output, value in zip(self._table.outputs, hit.outputs, strict=True)}

    def _default(self, variables: Variables, run: Run) -> object:
        """What the table says when no rule matches; null where it says nothing."""
        if all(default is None for default in self._defaults):
            return None
        outputs = tuple(
            None if default is None else self._guarded(f"default of {_column(output, column)}", default, variables, run)
            for column, (default, output) in enumerate(zip(self._defaults, self._table.outputs, strict=True), 1)
        )
        return self._shaped(Hit(0, outputs))

    def _collected(self, values: list[object], run: Run) -> object:
        aggregation = self._table.aggregation
        if not aggregation:
            return values
        if not values and aggregation != "COUNT":
            return None
        if aggregation == "SUM" and not all(map(is_number, values)):
            raise self._failed("aggregation SUM", "an output that matches is no number")
        total = compiled(Expression(_AGGREGATORS[aggregation]), self._place, frozenset())
        return self._guarded(f"aggregation {aggregation}", total, {"hits": values}, run)

    def _refuse_several(self, hits: list[Hit]) -> None:
        rules = ", ".join(str(hit.rule) for hit in hits)
        if self._table.hit_policy == "UNIQUE":
            raise self._failed(f"rules {rules}", "all match, and the hit policy UNIQUE allows one")
        if any(not same(hits[0].outputs, hit.outputs) for hit in hits[1:]):
            raise self._failed(f"rules {rules}", "match with different outputs, and the hit policy is ANY")

    def _priority(self, hit: Hit) -> tuple[int, ...]:
        """The places of the outputs among the allowed values, the first column counting most."""
        places = []
        for order, value in zip(self._orders, hit.outputs, strict=True):
            places.append(next((place for place, known in enumerate(order) if same(known, value)), len(order)))
        return tuple(places)

    # --- compiling ---------------------------------------------------------------------------------------------------

    def _cells(self, number: int) -> _Cells:
        rule = self._table.rules[number - 1]
        tests = []
        for column, text in enumerate(rule.tests):
            cell = compiled_tests(text, f"{self._place}, rule {number}, input {column + 1}", self._functions)
            if not cell.always:
                tests.append((column, cell))
        entries = tuple(
            self._compiled(entry, f"rule {number}, {_column(output, column)}") if entry.text else None
            for column, (entry, output) in enumerate(zip(rule.entries, self._table.outputs, strict=True), 1)
        )
        return _Cells(tuple(tests), entries)

    def _order(self, output: Output, number: int) -> tuple[object, ...]:
        if self._table.hit_policy not in ("PRIORITY", "OUTPUT ORDER") or not output.values.strip():
            return ()
        listed = self._compiled(Expression(f"[{output.values}]"), f"allowed values of {_column(output, number)}")
        values = listed({}, Work(0))
        return tuple(values) if isinstance(values, list) else ()

    def _compiled(self, expression: Expression, place: str) -> Value:
        return compiled(expression, f"{self._place}, {place}", self._functions)


def _column(output: Output, number: int) -> str:
    return f"output {number}" + (f" '{output.name}'" if output.name else "")
