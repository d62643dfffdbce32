"""Boxed expressions, compiled: contexts, lists, relations, invocations, functions, and those of control.

What a literal expression would say in one text, a boxed one says in parts; each part may again be anything, a decision
table included. A part sees the variables as a plain table, with what stands around it on top.
"""

from __future__ import annotations

from collections.abc import Iterator

from gobpm_ray.decisions import elements as e
from gobpm_ray.decisions.parts import Functions, Value, Variables, compiled, refuse_built_in
from gobpm_ray.decisions.tables import Table
from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions.budget import Run
from gobpm_ray.expressions.feel.values import FeelFunction, Interval, Names, as_list, is_number, kind
from gobpm_ray.model.elements import Expression


def boxed(body: e.Body, place: str, functions: Functions) -> Value:
    """The body's value. `functions` are the names of functions at this place. Raises ExpressionError, naming the place,
    for what does not compile."""
    match body:
        case Expression():
            return compiled(body, place, functions)
        case e.DecisionTable():
            return Table(place, body, functions).evaluate
        case e.Context():
            return _context(body, place, functions)
        case e.Sequence():
            return _listed([boxed(item, f"{place}, item {n}", functions) for n, item in enumerate(body.items, 1)])
        case e.Relation():
            return _relation(body, place, functions)
        case e.Invocation():
            return _invocation(body, place, functions)
        case e.Function():
            return _definition(body, place, functions)
        case e.Conditional():
            return _conditional(body, place, functions)
        case e.Iteration():
            return _iteration(body, place, functions)
        case e.Filter():
            return _filter(body, place, functions)


def function_of(function: e.Function, value: Value, around: Variables) -> FeelFunction:
    """The function, closed over what is around it."""
    parameters = function.parameters

    def call(names: Names, run: Run) -> object:
        run.charge(1 + len(around) // 16)
        return value({**around, **{name: names.get(name) for name in parameters}}, run)

    return FeelFunction(parameters, call, {})


def _context(context: e.Context, place: str, functions: Functions) -> Value:
    known = functions | {entry.name for entry in context.entries}
    for entry in context.entries:
        if isinstance(entry.body, e.Function):
            refuse_built_in(entry.name, place)
    entries = [(entry.name, boxed(entry.body, f"{place}, entry '{entry.name}'", known)) for entry in context.entries]
    result = None if context.result is None else boxed(context.result, f"{place}, result", known)

    def evaluate(variables: Variables, run: Run) -> object:
        made: dict[str, object] = {}
        seen = dict(variables)
        for name, value in entries:
            run.charge(1)
            made[name] = seen[name] = value(seen, run)
        return made if result is None else result(seen, run)

    return evaluate


def _listed(items: list[Value]) -> Value:
    def evaluate(variables: Variables, run: Run) -> object:
        run.charge(len(items))
        return [item(variables, run) for item in items]

    return evaluate


def _relation(relation: e.Relation, place: str, functions: Functions) -> Value:
    rows = [
        [(name, boxed(cell, f"{place}, row {number}, '{name}'", functions)) for name, cell in _cells(relation, row)]
        for number, row in enumerate(relation.rows, 1)
    ]

    def evaluate(variables: Variables, run: Run) -> object:
        run.charge(len(rows))
        return [{name: cell(variables, run) for name, cell in row} for row in rows]

    return evaluate


def _cells(relation: e.Relation, row: tuple[e.Body, ...]) -> Iterator[tuple[str, e.Body]]:
    return zip(relation.columns, row, strict=True)


def _invocation(invocation: e.Invocation, place: str, functions: Functions) -> Value:
    """As FEEL's own call with named arguments, so that built-in functions are called alike."""
    arguments = [
        (f"argument {number}", boxed(each.body, f"{place}, argument '{each.name}'", functions))
        for number, each in enumerate(invocation.arguments, 1)
    ]
    written = ", ".join(
        f"`{each.name}`: `{label}`" for each, (label, _) in zip(invocation.arguments, arguments, strict=True)
    )
    call = compiled(Expression(f"{invocation.function}({written})"), place, functions)

    def evaluate(variables: Variables, run: Run) -> object:
        run.charge(1)
        return call({**variables, **{label: value(variables, run) for label, value in arguments}}, run)

    return evaluate


def _definition(function: e.Function, place: str, functions: Functions) -> Value:
    value = boxed(function.body, f"{place}, function", functions | frozenset(function.parameters))

    def evaluate(variables: Variables, _run: Run) -> object:
        # The very table of the context around it: a function may call itself, and those that stand after it.
        return function_of(function, value, variables)

    return evaluate


def _conditional(conditional: e.Conditional, place: str, functions: Functions) -> Value:
    asked = boxed(conditional.condition, f"{place}, if", functions)
    yes, no = boxed(conditional.then, f"{place}, then", functions), boxed(conditional.otherwise, place, functions)

    def evaluate(variables: Variables, run: Run) -> object:
        run.charge(1)
        return yes(variables, run) if asked(variables, run) is True else no(variables, run)

    return evaluate


def _iteration(iteration: e.Iteration, place: str, functions: Functions) -> Value:
    domain = boxed(iteration.domain, f"{place}, in", functions)
    name, form = iteration.variable, iteration.kind
    body = boxed(iteration.body, f"{place}, {form} '{name}'", functions | {name})

    def evaluate(variables: Variables, run: Run) -> object:
        items = as_list(domain(variables, run))
        if items is None:
            return None
        made: list[object] = []
        for item in items:
            run.charge(1)
            made.append(body({**variables, name: item}, run))
            if form != "for" and made[-1] is (form == "some"):
                return form == "some"
        if form == "for":
            return made
        return (form == "every") if all(isinstance(answer, bool) for answer in made) else None

    return evaluate


def _filter(filtered: e.Filter, place: str, functions: Functions) -> Value:
    domain = boxed(filtered.domain, f"{place}, in", functions)
    condition = boxed(filtered.condition, f"{place}, match", functions)

    def evaluate(variables: Variables, run: Run) -> object:
        items = as_list(domain(variables, run))
        if items is None:
            return None
        kept: list[object] = []
        for position, item in enumerate(items):
            run.charge(1)
            own = item if isinstance(item, dict) else {}
            answer = condition({**variables, "item": item, **own}, run)
            if answer is True:
                kept.append(item)
            elif position == 0 and is_number(answer) and answer == int(answer):
                at = int(answer)
                return items[at - 1 if at > 0 else at] if at and abs(at) <= len(items) else None
        return kept

    return evaluate


def plain(value: object, place: str) -> object:
    """The value itself, if variables can hold it: no function and no range is in it."""
    level = [value]
    while level:
        below: list[object] = []
        for each in level:
            if isinstance(each, FeelFunction | Interval):
                raise ExpressionError(f"{place}: its value is, or holds, a {kind(each)}, which no variable can hold")
            if isinstance(each, list | tuple):
                below.extend(each)
            elif isinstance(each, dict):
                below.extend(each.values())
        level = below
    return value
