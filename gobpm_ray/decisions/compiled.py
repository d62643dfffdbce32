"""Decisions made ready to evaluate: compiled once, with everything they require evaluated before them.

`Decisions` is immutable and may be shared by threads. It knows one document; a requirement that leads out of it was
refused when it was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gobpm_ray.decisions.elements import Decision, DecisionFile, DecisionTable
from gobpm_ray.decisions.errors import DecisionFailed
from gobpm_ray.decisions.tables import Table, Value
from gobpm_ray.errors import ExpressionError, InvalidModel
from gobpm_ray.expressions import compile_expression
from gobpm_ray.model.elements import Problem


class Decisions:
    """The decisions of one document. Raises InvalidModel, naming decision, rule and cell, for what does not compile,
    and for decisions that require each other in a circle."""

    def __init__(self, file: DecisionFile) -> None:
        self.file = file
        self._values: dict[str, Value] = {}
        problems: list[Problem] = []
        for decision in file.decisions.values():
            try:
                self._values[decision.id] = _value(decision)
            except ExpressionError as error:
                problems.append(Problem("expression", decision.id, str(error), decision.line))
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise InvalidModel(f"{file.name}: {problems[0].message}{more}", tuple(problems))
        self._orders = {decision_id: self._order(decision_id) for decision_id in file.decisions}

    def __contains__(self, decision_id: object) -> bool:
        return decision_id in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def evaluate(self, decision_id: str, variables: Mapping[str, object], now_ms: int) -> object:
        """The decision's value. Raises DecisionFailed: one line that names decision, rule and cell."""
        if decision_id not in self._orders:
            raise DecisionFailed(f"decision '{decision_id}' does not exist in {self.file.name}")
        order = self._orders[decision_id]
        if len(order) == 1:
            return self._one(decision_id, variables, now_ms)
        known = dict(variables)
        value: object = None
        for each in order:
            value = self._one(each, known, now_ms)
            self._announce(self.file.decisions[each], value, variables, known)
        return value

    def result_name(self, decision_id: str) -> str:
        """The variable that takes the decision's value where nobody says another."""
        decision = self.file.decisions[decision_id]
        return decision.variable or decision.id

    def _one(self, decision_id: str, variables: Mapping[str, object], now_ms: int) -> object:
        try:
            return self._values[decision_id](variables, now_ms)
        except ExpressionError as error:
            raise DecisionFailed(f"decision '{decision_id}': {error}") from None

    def _announce(
        self, decision: Decision, value: object, given: Mapping[str, object], known: dict[str, object]
    ) -> None:
        """The value under the decision's id, name and variable, which are what files refer to it by; a table's outputs
        also under their own names, as older engines have it, unless a variable of that name was given."""
        if isinstance(decision.body, DecisionTable):
            outputs = decision.body.outputs
            for output in outputs:
                if output.name and output.name not in given:
                    known[output.name] = value.get(output.name) if isinstance(value, dict) else value
        for name in (decision.id, decision.name, decision.variable):
            if name:
                known[name] = value

    def _order(self, decision_id: str) -> tuple[str, ...]:
        """The decision behind everything it requires, each once. Without recursion: chains may be long."""
        order: dict[str, None] = {}
        path: list[tuple[str, list[str]]] = [(decision_id, list(self.file.decisions[decision_id].requires))]
        entered = {decision_id}
        while path:
            current, left = path[-1]
            if not left:
                order[current] = None
                entered.discard(current)
                path.pop()
                continue
            required = left.pop(0)
            if required in entered:
                raise InvalidModel(f"{self.file.name}: decision '{required}' requires itself, through '{current}'")
            if required not in order:
                entered.add(required)
                path.append((required, list(self.file.decisions[required].requires)))
        return tuple(order)


def _value(decision: Decision) -> Value:
    if isinstance(decision.body, DecisionTable):
        return Table(decision.id, decision.body).evaluate
    try:
        return compile_expression(decision.body.text, decision.body.language).evaluate
    except ExpressionError as error:
        raise ExpressionError(f"decision '{decision.id}': {error}") from None
