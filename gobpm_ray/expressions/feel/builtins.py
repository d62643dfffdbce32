"""The table of FEEL's built-in functions: declared by signature, checked and paid for at every call.

A signature is written as FEEL's own documentation does: `substring(string: s, start position: i, length: i?)`. The
letters are kinds; `?` marks an optional parameter, `*` the rest. An argument of another kind makes the answer null, as
does one that is null itself unless its kind is `x` or it is optional.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Final

from gobpm_ray.calendar.durations import YearsMonths
from gobpm_ray.errors import InvalidTimer
from gobpm_ray.expressions.budget import Run
from gobpm_ray.expressions.feel.operators import NO_ANSWER
from gobpm_ray.expressions.feel.values import FeelFunction, as_list, is_number, whole

Function = Callable[..., object]
_MISFIT: Final = object()


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    kind: str
    optional: bool = False
    rest: bool = False


@dataclass(frozen=True, slots=True)
class Builtin:
    """One function with one or more signatures; the first that takes the number of arguments is used."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Function
    deep: bool
    """It walks through everything in its arguments, and pays for that; else it pays for one pass over each."""
    folds: bool
    """With constant arguments its value is a constant."""

    def takes(self, count: int) -> bool:
        most = 1_000 if self.parameters and self.parameters[-1].rest else len(self.parameters)
        return sum(not p.optional and not p.rest for p in self.parameters) <= count <= most

    def order(self, names: list[str]) -> list[int] | None:
        """For each parameter the position of the named argument, -1 where it is left out; None if they do not fit."""
        if any(name not in {p.name for p in self.parameters} for name in names) or len(set(names)) < len(names):
            return None
        positions = [names.index(p.name) if p.name in names else -1 for p in self.parameters]
        fits = all(position >= 0 or p.optional for position, p in zip(positions, self.parameters, strict=True))
        return positions if fits else None

    def pay(self, run: Run, values: list[object]) -> None:
        run.charge(1)
        for value in values:
            if self.deep:
                run.charge_deep(value)
            else:
                run.charge_size(value)

    def call(self, run: Run, *values: object) -> object:
        given: list[object] = []
        for position, value in enumerate(values):
            parameter = self.parameters[min(position, len(self.parameters) - 1)]
            if value is None and parameter.optional:
                given.append(None)
                continue
            fitted = _FIT[parameter.kind](value)
            if fitted is _MISFIT:
                return None
            given.append(fitted)
        try:
            return self.body(run, *given)
        except (*NO_ANSWER, InvalidTimer, TypeError):
            # FEEL has no exceptions: what cannot be computed, and what has no order to sort by, is null.
            return None


def _only(*types: type) -> Callable[[object], object]:
    return lambda value: value if isinstance(value, types) else _MISFIT


def _integer(value: object) -> object:
    if not is_number(value) or value != value // 1:
        return _MISFIT
    return whole(int(value))


def _present_list(value: object) -> object:
    items = as_list(value)
    return _MISFIT if items is None else items


_FIT: Final[Mapping[str, Callable[[object], object]]] = {
    "s": _only(str),
    "n": lambda value: value if is_number(value) else _MISFIT,
    "i": _integer,
    "b": _only(bool),
    "l": _present_list,
    "c": _only(dict),
    "f": _only(FeelFunction),
    "d": _only(date, datetime),
    "t": _only(date, datetime, time),
    "u": _only(timedelta, YearsMonths),
    "x": lambda value: value,
}

BUILTINS: Final[dict[str, list[Builtin]]] = {}

_SIGNATURE = re.compile(r"([a-z ]+)\((.*)\)")


def builtin(signature: str, *, deep: bool = False, folds: bool = False) -> Callable[[Function], Function]:
    """Make the decorated `function(run, ...)` the body of a built-in function."""
    found = _SIGNATURE.fullmatch(signature)
    if found is None:
        raise ValueError(signature)
    name, listed = found.groups()
    parameters = []
    for declared in filter(None, listed.split(", ")):
        label, _, of = declared.partition(": ")
        parameters.append(Parameter(label, of[0], "?" in of, "*" in of))

    def add(body: Function) -> Function:
        BUILTINS.setdefault(name, []).append(Builtin(name, tuple(parameters), body, deep, folds))
        return body

    return add


def spread(values: tuple[object, ...]) -> list[object] | None:
    """The arguments of a function that takes a list or its elements one by one."""
    return as_list(values[0]) if len(values) == 1 else list(values)


def numbers(values: tuple[object, ...]) -> list[int | float | Decimal] | None:
    """The same where all must be numbers."""
    found = [value for value in spread(values) or [] if is_number(value)]
    listed = spread(values)
    return found if listed is not None and len(found) == len(listed) else None
