"""Compiled pieces of a FEEL expression that go over something: `for`, `some`, `every`, filters, `in`, functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from gobpm_ray.expressions.budget import Refused, Run, check_length
from gobpm_ray.expressions.feel.nodes import VARIABLE, Node, binds, node
from gobpm_ray.expressions.feel.operators import compare, within
from gobpm_ray.expressions.feel.values import (
    Evaluate,
    FeelFunction,
    Interval,
    Names,
    Scope,
    as_list,
    is_number,
)


@dataclass(frozen=True, slots=True)
class Over:
    """`name in domain`, or `name in domain..last`."""

    name: str
    domain: Node
    last: Node | None = None

    @property
    def parts(self) -> list[Node]:
        return [self.domain] if self.last is None else [self.domain, self.last]

    def items(self, names: Names, run: Run) -> Iterable[object] | None:
        first = self.domain.evaluate(names, run)
        if self.last is not None:
            return _count(first, self.last.evaluate(names, run))
        if isinstance(first, Interval):
            return _count(first.low, first.high)
        return as_list(first)


def _count(first: object, last: object) -> range | None:
    """Both ends are included, and it counts down where the last is the smaller."""
    if isinstance(first, bool) or isinstance(last, bool) or not isinstance(first, int) or not isinstance(last, int):
        return None
    return range(first, last + 1) if first <= last else range(first, last - 1, -1)


def _rounds(iterators: list[Over], names: Names, run: Run, weight: int) -> Iterator[Names | None]:
    """The names of each round, the last iterator fastest; a single None where something to go over is null."""
    first, *rest = iterators
    items = first.items(names, run)
    if items is None:
        yield None
        return
    for item in items:
        run.charge(weight)
        inner = Scope({first.name: item}, names)
        if rest:
            yield from _rounds(rest, inner, run, weight)
        else:
            yield inner


def _made(evaluate: Evaluate, iterators: list[Over], body: Node) -> Node:
    parts = [part for iterator in iterators for part in iterator.parts]
    body = binds(body, [iterator.name for iterator in iterators])
    return node(evaluate, [*parts, body, body], simple=False, builds=True)


def for_loop(iterators: list[Over], body: Node) -> Node:
    inner, weight = body.evaluate, 1 + body.weight // 4

    def evaluate(names: Names, run: Run) -> object:
        made: list[object] = []
        for scope in _rounds(iterators, names, run, weight):
            if scope is None:
                return None
            made.append(inner(scope, run))
        return made

    return _made(evaluate, iterators, body)


def quantified(iterators: list[Over], body: Node, every: bool) -> Node:
    """`some`: true as soon as one is; `every`: false as soon as one is; null if the rest leaves it open."""
    inner, weight, deciding = body.evaluate, 1 + body.weight, not every

    def evaluate(names: Names, run: Run) -> object:
        answer: bool | None = every
        for scope in _rounds(iterators, names, run, weight):
            value = None if scope is None else inner(scope, run)
            if value is deciding:
                return deciding
            if value is not every:
                answer = None
        return answer

    return _made(evaluate, iterators, body)


def filtered(base: Node, condition: Node) -> Node:
    """`list[3]`, `list[-1]`, or `list[item > 3]`, where the names of an element that is a context come first."""
    inner, asked, weight = base.evaluate, condition.evaluate, 1 + condition.weight // 4
    index = condition.constant
    if isinstance(index, int) and not isinstance(index, bool):
        return node(lambda names, run: _at(as_list(inner(names, run)), index), [base])

    def evaluate(names: Names, run: Run) -> object:
        items = as_list(inner(names, run))
        if items is None:
            return None
        kept: list[object] = []
        for position, item in enumerate(items):
            run.charge(weight)
            inside: Names = Scope({"item": item}, names)
            if isinstance(item, Mapping):
                inside = Scope(item, inside)
            answer = asked(inside, run)
            if answer is True:
                kept.append(item)
            elif position == 0 and is_number(answer):
                return _at(items, int(answer)) if answer == int(answer) else None
        return kept

    return node(evaluate, [base, condition, condition], simple=False, builds=True)


def _at(items: list[object] | None, index: int) -> object:
    if not items or not index or abs(index) > len(items):
        return None
    return items[index - 1 if index > 0 else index]


@dataclass(frozen=True, slots=True)
class UnaryTest:
    """One test of a value: an operator with its operand, or a value to be `in`."""

    symbol: str
    operand: Node

    def matches(self, value: object, names: Names, run: Run) -> bool | None:
        other = self.operand.evaluate(names, run)
        return compare(self.symbol, value, other, run) if self.symbol else within(value, other, run)


def membership(value: Node, tests: list[UnaryTest]) -> Node:
    """`value in ...`: true if one test holds, else null if one has no answer, else false."""
    inner = value.evaluate
    operands = [test.operand for test in tests]

    def evaluate(names: Names, run: Run) -> object:
        tested = inner(names, run)
        answer: bool | None = False
        for test in tests:
            found = test.matches(tested, names, run)
            if found is True:
                return True
            if found is None:
                answer = None
        return answer

    made = node(evaluate, [value, *operands])
    made.builds = value.builds  # the ranges and lists it tests against do not leave it
    return made


def interval(low: Node, high: Node, low_included: bool, high_included: bool) -> Node:
    if low.constant is not VARIABLE and high.constant is not VARIABLE:
        fixed = Interval(low.constant, high.constant, low_included, high_included)
        return Node(lambda names, run: fixed, depth=2, builds=True)
    first, second = low.evaluate, high.evaluate

    def evaluate(names: Names, run: Run) -> object:
        return Interval(first(names, run), second(names, run), low_included, high_included)

    return node(evaluate, [low, high], builds=True)


def function_literal(parameters: tuple[str, ...], body: Node) -> Node:
    inner, weight = body.evaluate, body.weight

    def paid(names: Names, run: Run) -> object:
        run.charge(weight)
        return inner(names, run)

    bound = binds(body, parameters)
    made = node(lambda names, run: FeelFunction(parameters, paid, names), [bound], simple=False, builds=True)
    made.function = True
    return made


def bound_call(name: str, position: int, arguments: list[Node], labels: tuple[str, ...] = ()) -> Node:
    """A call of a function that is bound to a name: an entry of a context, a parameter, a knowledge model. With labels
    the arguments are named."""
    closures = [argument.evaluate for argument in arguments]

    def evaluate(names: Names, run: Run) -> object:
        function = names.get(name)
        if not isinstance(function, FeelFunction):
            raise Refused(f"{name[:60]!r} is no function", position)
        values = [closure(names, run) for closure in closures]
        if labels:
            given = dict(zip(labels, values, strict=True))
            unknown = next((label for label in labels if label not in function.parameters), "")
            if unknown:
                raise Refused(f"function {name[:60]!r} has no parameter {unknown[:60]!r}", position)
            values = [given.get(parameter) for parameter in function.parameters]
        elif len(values) != len(function.parameters):
            takes = len(function.parameters)
            raise Refused(f"function {name[:60]!r} takes {takes} arguments and is given {len(values)}", position)
        return function.call(run, *values)

    made = node(evaluate, arguments, simple=False, builds=True)
    made.calls = (*made.calls, (name, position))
    return made


def invocation(
    function: Callable[..., object], arguments: list[Node], pay: Callable[[Run, list[object]], None], folds: bool
) -> Node:
    """A call of a built-in function; with constant arguments, and where that is sound, its value."""
    closures = [argument.evaluate for argument in arguments]

    def evaluate(names: Names, run: Run) -> object:
        values = [closure(names, run) for closure in closures]
        pay(run, values)
        value = function(run, *values)
        if type(value) is str or type(value) is list:
            check_length(len(value))
        return value

    made = node(evaluate, arguments, simple=False, builds=True)
    if folds and all(isinstance(argument.constant, str | int) for argument in arguments):
        try:
            value = evaluate({}, Run(0))
        except Refused:
            return made
        made.evaluate = lambda names, run: value
        made.constant, made.simple, made.builds = value, True, False
    return made
