"""Compiled pieces of a FEEL expression: closures, and what is known about each before it ever runs.

A piece that can neither loop, nor call, nor build is *simple*: an expression of simple pieces runs on the shared
budget `FREE`, so that a condition such as `amount > 100` costs a dictionary look-up and a comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from gobpm_ray.expressions.budget import MAX_DEPTH, Refused, Run
from gobpm_ray.expressions.feel.operators import ORDERS, arithmetic, compare, has, prop
from gobpm_ray.expressions.feel.values import Evaluate, Names, Scope, whole

_POWER: Final = 25
"""Steps of a power: with a fraction as exponent it takes a hundred times longer than a sum."""


class _Variable:
    """Not a constant."""


VARIABLE: Final = _Variable()


@dataclass(slots=True)
class Node:
    """One compiled piece."""

    evaluate: Evaluate
    depth: int = 1
    weight: int = 1
    """How many pieces one evaluation passes: what a loop pays for each round."""
    simple: bool = True
    builds: bool = False
    """Its value may be new and large or not plain: the result is measured."""
    constant: object = VARIABLE
    name: str = ""
    """The variable that it is, if it is just one."""
    defined: Callable[[Names, Run], bool] | None = None
    """Whether what it names exists, null or not; for variables and paths."""
    function: bool = False
    """Its value is a function that is written here."""
    calls: tuple[tuple[str, int], ...] = ()
    """Functions that it calls by a name which nothing inside it binds, and where: the text around must know them."""


def node(evaluate: Evaluate, parts: Iterable[Node], *, simple: bool = True, builds: bool = False) -> Node:
    """A piece made of other pieces; Refused when it is nested too deep."""
    depth, weight = 1, 1
    calls: tuple[tuple[str, int], ...] = ()
    for part in parts:
        depth = max(depth, part.depth + 1)
        weight += part.weight
        simple = simple and part.simple
        builds = builds or part.builds
        if part.calls:
            calls = (*calls, *part.calls)
    if depth > MAX_DEPTH:
        raise Refused(f"operations are nested more than {MAX_DEPTH} deep")
    return Node(evaluate, depth, weight, simple, builds, calls=calls)


def binds(part: Node, names: Collection[str]) -> Node:
    """The piece, where these names are bound around it: calls of them are answered there."""
    if not part.calls:
        return part
    return replace(part, calls=tuple(call for call in part.calls if call[0] not in names))


def constant(value: object) -> Node:
    return Node(lambda names, run: value, constant=value)


def variable(name: str) -> Node:
    return Node(lambda names, run: names.get(name), name=name, defined=lambda names, run: name in names)


def path(base: Node, name: str) -> Node:
    inner = base.evaluate

    def evaluate(names: Names, run: Run) -> object:
        value = inner(names, run)
        if type(value) is dict:
            return value.get(name)
        return prop(value, name, run)

    made = node(evaluate, [base])
    made.defined = lambda names, run: has(inner(names, run), name)
    return made


def comparison(symbol: str, left: Node, right: Node) -> Node:
    """`=` and the orders; the closures handle the everyday pairs at once and leave the rest to `compare`."""
    operate = ORDERS[symbol]
    first, second = left.evaluate, right.evaluate
    fixed, name = right.constant, left.name
    # Equality of booleans is not among them: Python thinks that True is 1.
    if isinstance(fixed, str) and name:

        def evaluate(names: Names, run: Run) -> object:
            value = names.get(name)
            return operate(value, fixed) if type(value) is str else compare(symbol, value, fixed, run)

    elif type(fixed) in (int, float) and name:

        def evaluate(names: Names, run: Run) -> object:
            value = names.get(name)
            of = type(value)
            return operate(value, fixed) if of is int or of is float else compare(symbol, value, fixed, run)

    else:

        def evaluate(names: Names, run: Run) -> object:
            one, two = first(names, run), second(names, run)
            of = type(one)
            if of is type(two) and (of is int or of is float or of is str):
                return operate(one, two)
            return compare(symbol, one, two, run)

    return node(evaluate, [left, right])


def calculation(symbol: str, left: Node, right: Node) -> Node:
    first, second = left.evaluate, right.evaluate
    if symbol == "+":

        def evaluate(names: Names, run: Run) -> object:
            one, two = first(names, run), second(names, run)
            if type(one) is int and type(two) is int:
                return whole(one + two)
            value = arithmetic("+", one, two)
            if type(value) is str:
                run.charge(len(value) >> 6)
            return value

    else:
        price = _POWER if symbol == "**" else 0

        def evaluate(names: Names, run: Run) -> object:
            run.charge(price)
            return arithmetic(symbol, first(names, run), second(names, run))

    return node(evaluate, [left, right])


def conjunction(parts: list[Node]) -> Node:
    """`and` with three values: false decides, else null, else true; what is no boolean counts as null."""
    return _junction(parts, deciding=False)


def disjunction(parts: list[Node]) -> Node:
    """`or` with three values: true decides, else null, else false."""
    return _junction(parts, deciding=True)


def _junction(parts: list[Node], deciding: bool) -> Node:
    closures = [part.evaluate for part in parts]
    other = not deciding
    if len(closures) == 2:
        first, second = closures

        def evaluate(names: Names, run: Run) -> object:
            one = first(names, run)
            if one is deciding:
                return deciding
            two = second(names, run)
            if two is deciding:
                return deciding
            return other if one is other and two is other else None

    else:

        def evaluate(names: Names, run: Run) -> object:
            answer: object = other
            for closure in closures:
                value = closure(names, run)
                if value is deciding:
                    return deciding
                if value is not other:
                    answer = None
            return answer

    return node(evaluate, parts)


def negation(part: Node) -> Node:
    """`not(x)`: null for what is no boolean."""
    inner = part.evaluate

    def evaluate(names: Names, run: Run) -> object:
        value = inner(names, run)
        return (not value) if value is True or value is False else None

    return node(evaluate, [part])


def choice(condition: Node, then: Node, otherwise: Node) -> Node:
    asked, yes, no = condition.evaluate, then.evaluate, otherwise.evaluate

    def evaluate(names: Names, run: Run) -> object:
        return yes(names, run) if asked(names, run) is True else no(names, run)

    return node(evaluate, [condition, then, otherwise])


def list_literal(parts: list[Node]) -> Node:
    if all(part.constant is not VARIABLE for part in parts):
        values = [part.constant for part in parts]
        return Node(lambda names, run: list(values), depth=2, weight=1 + len(parts) // 16)
    closures = [part.evaluate for part in parts]
    return node(lambda names, run: [closure(names, run) for closure in closures], parts, builds=True)


def context_literal(entries: list[tuple[str, Node]]) -> Node:
    """Each entry sees those before it."""
    pairs = [(key, part.evaluate) for key, part in entries]

    def evaluate(names: Names, run: Run) -> object:
        made: dict[str, object] = {}
        inner = Scope(made, names)
        for key, closure in pairs:
            made[key] = closure(inner, run)
        return made

    keys = [key for key, _ in entries]
    parts = [binds(part, keys[: number + 1]) for number, (_, part) in enumerate(entries)]
    return node(evaluate, parts, builds=True)


def chain(first: Node, rest: list[tuple[str, Node]]) -> Node:
    """Operators of one precedence, from the left; a long chain is one piece and not a deep one."""
    if len(rest) == 1:
        return calculation(rest[0][0], first, rest[0][1])
    start = first.evaluate
    steps = [(symbol, part.evaluate) for symbol, part in rest]

    def evaluate(names: Names, run: Run) -> object:
        value = start(names, run)
        for symbol, closure in steps:
            if symbol == "**":
                run.charge(_POWER)
            value = arithmetic(symbol, value, closure(names, run))
            if type(value) is str:
                run.charge(len(value) >> 6)
        return value

    return node(evaluate, [first, *(part for _, part in rest)])
