"""Decision tables, compiled: inputs evaluated once, rules asked in order, one value made of it by the hit policy.

A rule's outputs are evaluated only if it matches. Rules count from 1, as a table shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gobpm_ray.decisions.elements import DecisionTable, Output
from gobpm_ray.decisions.errors import DecisionFailed
from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions import Compiled, CompiledTests, compile_expression, compile_unary_tests
from gobpm_ray.expressions.feel.values import is_number, same
from gobpm_ray.model.elements import Expression

Variables = Mapping[str, object]
Value = Callable[[Variables, int], object]
_AGGREGATORS: Final = {"SUM": "sum(hits)", "MIN": "min(hits)", "MAX": "max(hits)", "COUNT": "count(hits)"}


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that matched, with its outputs."""

    rule: int
    outputs: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Cells:
    tests: tuple[tuple[int, CompiledTests], ...]
    """(input's index, its tests); cells that hold for everything are left out"""
    entries: tuple[Compiled | None, ...]


class Table:
    """One table, ready to evaluate. Raises ExpressionError, naming rule and cell, for what does not compile."""

    def __init__(self, decision: str, table: DecisionTable) -> None:
        self._decision = decision
        self._table = table
        self._inputs = tuple(
            (each.label or each.expression.text, _compiled(each.expression, f"decision '{decision}', input {number}"))
            for number, each in enumerate(table.inputs, 1)
        )
        self._rules = tuple(self._cells(number) for number in range(1, len(table.rules) + 1))
        self._defaults = tuple(
            None
            if output.default is None
            else _compiled(output.default, f"decision '{decision}', default of {_column(output, number)}")
            for number, output in enumerate(table.outputs, 1)
        )
        self._orders = tuple(self._order(output, number) for number, output in enumerate(table.outputs, 1))

    def evaluate(self, variables: Variables, now_ms: int) -> object:
        """The table's value: what its hit policy makes of the rules that match."""
        policy = self._table.hit_policy
        hits = self._hits(variables, now_ms)
        if policy == "FIRST":
            first = next(hits, None)
            return self._default(variables, now_ms) if first is None else self._shaped(first)
        found = list(hits)
        if policy in ("COLLECT", "RULE ORDER", "OUTPUT ORDER"):
            if policy == "OUTPUT ORDER":
                found.sort(key=self._priority)
            return self._collected([self._shaped(hit) for hit in found], now_ms)
        if not found:
            return self._default(variables, now_ms)
        if policy == "PRIORITY":
            return self._shaped(min(found, key=self._priority))
        if len(found) > 1:
            self._refuse_several(found)
        return self._shaped(found[0])

    # --- rules -------------------------------------------------------------------------------------------------------

    def _hits(self, variables: Variables, now_ms: int) -> Iterator[Hit]:
        values = [
            self._guarded(f"input {number} '{label}'", each.evaluate, variables, now_ms)
            for number, (label, each) in enumerate(self._inputs, 1)
        ]
        for number, cells in enumerate(self._rules, 1):
            if all(self._holds(number, column, test, values, variables, now_ms) for column, test in cells.tests):
                yield Hit(number, self._outputs(number, cells, variables, now_ms))

    def _holds(
        self, rule: int, column: int, tests: CompiledTests, values: list[object], variables: Variables, now_ms: int
    ) -> bool:
        try:
            return tests.holds(values[column], variables, now_ms)
        except ExpressionError as error:
            raise self._failed(f"rule {rule}, input {column + 1}", error) from None

    def _outputs(self, rule: int, cells: _Cells, variables: Variables, now_ms: int) -> tuple[object, ...]:
        return tuple(
            None
            if entry is None
            else self._guarded(f"rule {rule}, {_column(output, column)}", entry.evaluate, variables, now_ms)
            for column, (entry, output) in enumerate(zip(cells.entries, self._table.outputs, strict=True), 1)
        )

    def _guarded(self, place: str, evaluate: Value, variables: Variables, now_ms: int) -> object:
        try:
            return evaluate(variables, now_ms)
        except ExpressionError as error:
            raise self._failed(place, error) from None

    def _failed(self, place: str, reason: object) -> DecisionFailed:
        return DecisionFailed(f"decision '{self._decision}', {place}: {reason}")

    # --- values ------------------------------------------------------------------------------------------------------

    def _shaped(self, hit: Hit) -> object:
        """One output is its value, several are a context."""
        if len(hit.outputs) == 1:
            return hit.outputs[0]
        return {output.name: value for output, value in zip(self._table.outputs, hit.outputs, strict=True)}

    def _default(self, variables: Variables, now_ms: int) -> object:
        """What the table says when no rule matches; null where it says nothing."""
        if all(default is None for default in self._defaults):
            return None
        outputs = tuple(
            None
            if default is None
            else self._guarded(f"default of {_column(output, column)}", default.evaluate, variables, now_ms)
            for column, (default, output) in enumerate(zip(self._defaults, self._table.outputs, strict=True), 1)
        )
        return self._shaped(Hit(0, outputs))

    def _collected(self, values: list[object], now_ms: int) -> object:
        aggregation = self._table.aggregation
        if not aggregation:
            return values
        if not values and aggregation != "COUNT":
            return None
        if aggregation == "SUM" and not all(map(is_number, values)):
            raise self._failed("aggregation SUM", "an output that matches is no number")
        total = compile_expression(_AGGREGATORS[aggregation], "feel")
        return self._guarded(f"aggregation {aggregation}", total.evaluate, {"hits": values}, now_ms)

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
            try:
                compiled = compile_unary_tests(text)
            except ExpressionError as error:
                place = f"decision '{self._decision}', rule {number}, input {column + 1}"
                raise ExpressionError(f"{place}: {error}") from None
            if not compiled.always:
                tests.append((column, compiled))
        entries = tuple(
            _compiled(entry, f"decision '{self._decision}', rule {number}, {_column(output, column)}")
            if entry.text
            else None
            for column, (entry, output) in enumerate(zip(rule.entries, self._table.outputs, strict=True), 1)
        )
        return _Cells(tuple(tests), entries)

    def _order(self, output: Output, number: int) -> tuple[object, ...]:
        if self._table.hit_policy not in ("PRIORITY", "OUTPUT ORDER") or not output.values.strip():
            return ()
        place = f"decision '{self._decision}', allowed values of {_column(output, number)}"
        values = _compiled(Expression(f"[{output.values}]"), place).evaluate({}, 0)
        return tuple(values) if isinstance(values, list) else ()


def _column(output: Output, number: int) -> str:
    return f"output {number}" + (f" '{output.name}'" if output.name else "")


def _compiled(expression: Expression, place: str) -> Compiled:
    try:
        return compile_expression(expression.text, expression.language)
    except ExpressionError as error:
        raise ExpressionError(f"{place}: {error}") from None
