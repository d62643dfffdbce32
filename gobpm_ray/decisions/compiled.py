"""Decisions made ready to evaluate: compiled once, with everything they require evaluated before them.

`Decisions` is immutable and may be shared by threads. It knows one document; a requirement that leads out of it was
refused when it was read. Knowledge models and services are functions: the former see what they are given and what they
require, and nothing of who calls them; the latter evaluate decisions of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import chain

from gobpm_ray.decisions.boxed import boxed, function_of, plain
from gobpm_ray.decisions.elements import Decision, DecisionFile, DecisionTable, KnowledgeModel, Service
from gobpm_ray.decisions.errors import DecisionFailed
from gobpm_ray.decisions.parts import Value, Work, refuse_built_in
from gobpm_ray.errors import ExpressionError, InvalidModel
from gobpm_ray.expressions.budget import Refused, Run
from gobpm_ray.expressions.feel.values import FeelFunction, Names
from gobpm_ray.model.elements import Problem


class Decisions:
    """The decisions and services of one document. Raises InvalidModel, naming decision, rule and cell, for what does
    not compile, and for decisions that require each other in a circle."""

    def __init__(self, file: DecisionFile) -> None:
        self.file = file
        self._functions: dict[str, FeelFunction] = {}
        """Knowledge models and services, by id."""
        self._values: dict[str, Value] = {}
        self._problems: list[Problem] = []
        around: dict[str, dict[str, object]] = {model: {} for model in file.models}
        for model in file.models.values():
            self._try(model, partial(self._add_model, model, around[model.id]))
        for service in file.services.values():
            self._functions[service.id] = self._service_function(service)
        for model in file.models.values():
            # Filled when all exist: models may call each other, and themselves.
            around[model.id].update(self._known((*model.knows, model.id)))
        for decision in file.decisions.values():
            self._try(decision, partial(self._add_decision, decision))
        if self._problems:
            more = f" (and {len(self._problems) - 1} more)" if len(self._problems) > 1 else ""
            raise InvalidModel(f"{file.name}: {self._problems[0].message}{more}", tuple(self._problems))
        self._orders = {decision_id: self._order((decision_id,)) for decision_id in file.decisions}
        self._served = {each.id: self._order(each.outputs, each.given) for each in file.services.values()}

    def __contains__(self, decision_id: object) -> bool:
        return decision_id in self._values or decision_id in self.file.services

    def __iter__(self) -> Iterator[str]:
        return chain(self._values, self.file.services)

    def evaluate(self, decision_id: str, variables: Mapping[str, object], now_ms: int) -> object:
        """The decision's or service's value. Raises DecisionFailed: one line that names decision, rule and cell."""
        if decision_id not in self:
            raise DecisionFailed(f"decision '{decision_id}' does not exist in {self.file.name}")
        service = self.file.services.get(decision_id)
        kind = "decision" if service is None else "decision service"
        run = Work(now_ms)
        try:
            if service is None:
                value = self._last(self._orders[decision_id], variables, run)
            else:
                value = self._serve(service, variables, run)
            return plain(value, f"{kind} '{decision_id}'")
        except ExpressionError as error:
            raise DecisionFailed(str(error)) from None
        except (Refused, RecursionError) as error:
            reason = error.reason if isinstance(error, Refused) else "it is nested too deep"
            raise DecisionFailed(f"{kind} '{decision_id}': {reason}") from None

    def result_name(self, decision_id: str) -> str:
        """The variable that takes the decision's value where nobody says another."""
        declared = self.file.decisions.get(decision_id) or self.file.services[decision_id]
        return declared.variable or declared.id

    # --- evaluating --------------------------------------------------------------------------------------------------

    def _last(self, order: tuple[str, ...], variables: Mapping[str, object], run: Run) -> object:
        return next(reversed(self._all(order, variables, run).values()))

    def _all(self, order: tuple[str, ...], variables: Mapping[str, object], run: Run) -> dict[str, object]:
        """The values of the decisions, each evaluated when those that it requires are known."""
        if len(order) == 1:
            return {order[0]: self._one(order[0], variables, run)}
        known = dict(variables)
        values: dict[str, object] = {}
        for each in order:
            values[each] = self._one(each, known, run)
            self._announce(self.file.decisions[each], values[each], variables, known)
        return values

    def _one(self, decision_id: str, variables: Mapping[str, object], run: Run) -> object:
        decision = self.file.decisions[decision_id]
        if decision.knows:
            variables = {**variables, **self._known(decision.knows)}
        try:
            return self._values[decision_id](variables, run)
        except ExpressionError as error:
            named = str(error).startswith("decision '")
            raise DecisionFailed(str(error) if named else f"decision '{decision_id}': {error}") from None

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
        for name in _names(decision):
            known[name] = value

    def _serve(self, service: Service, given: Mapping[str, object], run: Run) -> object:
        """The value of the one output decision, or those of all by their names."""
        known = dict(given)
        for decision_id in service.given:
            decision = self.file.decisions[decision_id]
            found = next((given[name] for name in _names(decision) if name in given), None)
            known.update(dict.fromkeys(_names(decision), found))
        values = self._all(self._served[service.id], known, run)
        if len(service.outputs) == 1:
            return values[service.outputs[0]]
        decisions = [self.file.decisions[each] for each in service.outputs]
        return {each.variable or each.name or each.id: values[each.id] for each in decisions}

    # --- compiling ---------------------------------------------------------------------------------------------------

    def _try(self, declared: Decision | KnowledgeModel, add: Callable[[], None]) -> None:
        try:
            add()
        except ExpressionError as error:
            self._problems.append(Problem("expression", declared.id, str(error), declared.line))

    def _add_decision(self, decision: Decision) -> None:
        functions = frozenset(self._called(decision.knows)) | self._required_names(decision)
        self._values[decision.id] = boxed(decision.body, f"decision '{decision.id}'", functions)

    def _add_model(self, model: KnowledgeModel, around: Mapping[str, object]) -> None:
        place = f"knowledge model '{model.id}'"
        refuse_built_in(model.variable or model.name, place)
        functions = frozenset((*self._called((*model.knows, model.id)), *model.function.parameters))
        self._functions[model.id] = function_of(model.function, boxed(model.function.body, place, functions), around)

    def _service_function(self, service: Service) -> FeelFunction:
        def call(names: Names, run: Run) -> object:
            return self._serve(service, {name: names.get(name) for name in service.inputs}, run)

        return FeelFunction(service.inputs, call, {})

    def _known(self, ids: Collection[str]) -> dict[str, object]:
        """The functions under the names that they are called by."""
        return {
            name: self._functions[each] for each in ids for name in self._called((each,)) if each in self._functions
        }

    def _called(self, ids: Collection[str]) -> Iterator[str]:
        for each in ids:
            yield from _names(self.file.models.get(each) or self.file.services[each])

    def _required_names(self, decision: Decision) -> frozenset[str]:
        """A decision that is required may be a function too."""
        return frozenset(name for each in decision.requires for name in _names(self.file.decisions[each]))

    def _order(self, wanted: Collection[str], given: Collection[str] = ()) -> tuple[str, ...]:
        """The decisions behind everything they require, each once; what is given is not evaluated. Without recursion:
        chains may be long."""
        order: dict[str, None] = {}
        for decision_id in wanted:
            if decision_id in order:
                continue
            path: list[tuple[str, list[str]]] = [(decision_id, self._requires(decision_id, given))]
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
                    path.append((required, self._requires(required, given)))
        return tuple(order)

    def _requires(self, decision_id: str, given: Collection[str]) -> list[str]:
        return [each for each in self.file.decisions[decision_id].requires if each not in given]


def _names(declared: Decision | KnowledgeModel | Service) -> list[str]:
    """What files refer to it by: its id, name and variable."""
    return list(dict.fromkeys(filter(None, (declared.id, declared.name, declared.variable))))
