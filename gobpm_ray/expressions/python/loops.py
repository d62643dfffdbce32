"""How the Python sandbox goes over something: a comprehension's rounds, a loop's target, unpacking."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from gobpm_ray.expressions.budget import Refused, Run
from gobpm_ray.expressions.python.operators import Items, items_of
from gobpm_ray.expressions.python.syntax import Evaluate, Local, Names, refuse


@dataclass(frozen=True, slots=True)
class Round:
    """One `for ... in ... if ...` of a comprehension."""

    assign: Callable[[dict[str, object], Run, object], None]
    domain: Evaluate
    tests: list[Evaluate]


def go(rounds: list[Round], names: Local, run: Run, weight: int, keep: Callable[[Names], None]) -> None:
    """Call `keep` for every round that passes its tests, the last `for` fastest."""
    first, *rest = rounds
    for item in items_of(run, first.domain(names, run)):
        run.charge(weight)
        first.assign(names, run, item)
        if all(test(names, run) for test in first.tests):
            if rest:
                go(rest, names, run, weight, keep)
            else:
                keep(names)


def target(node: ast.expr) -> Callable[[dict[str, object], Run, object], None]:
    """How a loop's target takes an item: a name, or several names for an item that is a list."""
    if isinstance(node, ast.Name):
        name = node.id
        if name.startswith("__"):
            raise refuse(node, f"{name[:40]!r} cannot be a variable's name here")

        def assign(names: dict[str, object], run: Run, value: object) -> None:
            names[name] = value

        return assign
    if not isinstance(node, ast.Tuple | ast.List):
        raise refuse(node, "a loop's variable must be a name, or names")
    parts = [target(part) for part in node.elts]

    def unpack(names: dict[str, object], run: Run, value: object) -> None:
        for part, item in zip(parts, unpacked(run, value, len(parts)), strict=True):
            part(names, run, item)

    return unpack


def unpacked(run: Run, value: object, count: int) -> Items:
    """The elements of a value that is unpacked into `count` names."""
    items = items_of(run, value)
    if len(items) != count:
        raise Refused(f"{count} names cannot take {len(items)} elements")
    return items
