"""Python's operators, methods and functions as the sandbox allows them: each measured and paid for before it works.

There are no tuples, sets, ranges or generators here: their literals and functions give lists (a set's without
duplicates, in order), so that every value is one that a variable can hold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Final, cast

from gobpm_ray.expressions.budget import (
    Refused,
    Run,
    check_bits,
    check_length,
    power,
)

Operation = Callable[[Run, object, object], object]

Items = list[object]
PLAIN_KEYS: Final = (str, int, float, type(None), date, time, timedelta, Decimal)


def name_of(value: object) -> str:
    """What people call such a value."""
    return _NAMES.get(type(value), type(value).__name__)


_NAMES: Final = {int: "number", float: "number", Decimal: "number", str: "text", bool: "boolean", type(None): "null"}


def checked(value: object) -> object:
    """The value itself, unless it is a number that no variable can hold."""
    if isinstance(value, int):
        return check_bits(value)
    if isinstance(value, float) and not isfinite(value):
        raise Refused("the result is no finite number")
    return value


def add(run: Run, left: object, right: object) -> object:
    if isinstance(left, str) and isinstance(right, str):
        check_length(len(left) + len(right))
        run.charge((len(left) + len(right)) >> 6)
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        check_length(len(left) + len(right))
        run.charge((len(left) + len(right)) >> 4)
        return left + right
    return checked(operator.add(left, right))


def subtract(run: Run, left: object, right: object) -> object:
    return checked(operator.sub(left, right))


def multiply(run: Run, left: object, right: object) -> object:
    if isinstance(left, int) and isinstance(right, str | list):
        left, right = right, left
    if isinstance(left, str | list) and isinstance(right, int):
        check_length(len(left) * max(0, right))
        run.charge(len(left) * max(0, right) >> (6 if isinstance(left, str) else 4))
        return left * right
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > 64:
        check_bits(1 << min(left.bit_length() + right.bit_length() - 2, 1 << 20))
    return checked(operator.mul(left, right))


def modulo(run: Run, left: object, right: object) -> object:
    if isinstance(left, str):
        raise Refused("% does not format texts here; use an f-string")
    return operator.mod(left, right)


def raise_to(run: Run, left: object, right: object) -> object:
    if isinstance(left, int) and isinstance(right, int) and right >= 0:
        return power(left, right)
    value = operator.pow(left, right)
    if isinstance(value, complex):
        raise Refused("a root of a negative number is no number here")
    return checked(value)


def divide(run: Run, left: object, right: object) -> object:
    return checked(operator.truediv(left, right))


def floor_divide(run: Run, left: object, right: object) -> object:
    return checked(operator.floordiv(left, right))


def _measured(operation: Callable[[object, object], object]) -> Operation:
    """A comparison: what it walks through is paid for, and a Decimal is never compared by a float's binary error."""

    def compare(run: Run, left: object, right: object) -> object:
        if isinstance(left, list | dict | str):
            run.charge_deep(left)
            run.charge_deep(right)
        elif isinstance(left, float) and isinstance(right, Decimal):
            left = Decimal(repr(left))
        elif isinstance(left, Decimal) and isinstance(right, float):
            right = Decimal(repr(right))
        return operation(left, right)

    return compare


def contains(run: Run, left: object, right: object) -> object:
    """`left in right`."""
    if isinstance(right, dict):
        return plain_key(left) in right
    if isinstance(right, str | list):
        run.charge_deep(right)
        run.charge_deep(left)
        return left in right
    raise Refused(f"a {name_of(right)} holds nothing: `in` needs a text, list or dict")


COMPARISONS: Final[dict[str, Operation]] = {
    "Eq": _measured(operator.eq),
    "NotEq": _measured(operator.ne),
    "Lt": _measured(cast("Callable[[object, object], object]", operator.lt)),
    "LtE": _measured(cast("Callable[[object, object], object]", operator.le)),
    "Gt": _measured(cast("Callable[[object, object], object]", operator.gt)),
    "GtE": _measured(cast("Callable[[object, object], object]", operator.ge)),
    "In": contains,
    "NotIn": lambda run, left, right: not contains(run, left, right),
}
BINARY: Final[dict[str, Operation]] = {
    "Add": add,
    "Sub": subtract,
    "Mult": multiply,
    "Div": divide,
    "FloorDiv": floor_divide,
    "Mod": modulo,
    "Pow": raise_to,
}


def negative(run: Run, value: object) -> object:
    return operator.neg(cast("int", value))


def positive(run: Run, value: object) -> object:
    return operator.pos(cast("int", value))


UNARY: Final[dict[str, Callable[[Run, object], object]]] = {"USub": negative, "UAdd": positive}


def plain_key(key: object) -> object:
    """A key of a dict: a text, number or date."""
    if not isinstance(key, PLAIN_KEYS):
        raise Refused(f"a {name_of(key)} cannot be a key of a dict")
    return key


def subscript(run: Run, value: object, key: object) -> object:
    """`value[key]`."""
    if isinstance(value, dict):
        plain_key(key)
        if key not in value:
            raise Refused(f"there is no key {str(key)[:40]!r}")
        return value[key]
    if isinstance(value, str | list):
        if isinstance(key, slice):
            run.charge_size(value)
        elif isinstance(key, bool) or not isinstance(key, int):
            raise Refused(f"an index must be a whole number, not a {name_of(key)}")
        elif not -len(value) <= key < len(value):
            raise Refused(f"index {str(key)[:20]} is out of range of {len(value)} elements")
        return value[key]
    raise Refused(f"a {name_of(value)} has no elements")


_PARTS: Final[dict[type, frozenset[str]]] = {
    datetime: frozenset(["year", "month", "day", "hour", "minute", "second", "microsecond"]),
    date: frozenset(["year", "month", "day"]),
    time: frozenset(["hour", "minute", "second", "microsecond"]),
    timedelta: frozenset(["days", "seconds"]),
}


def attribute(value: object, name: str) -> object:
    """`value.name`: a dict's entry or a date's part, and nothing of Python's own."""
    if isinstance(value, dict):
        if name not in value:
            raise Refused(f"there is no key {name[:40]!r}")
        return value[name]
    if name in _PARTS.get(type(value), ()):
        part: object = getattr(value, name)
        return part
    raise Refused(f"a {name_of(value)} has no attribute {name[:40]!r} here")


def items_of(run: Run, value: object) -> Items:
    """What a loop goes over, paid for as one pass."""
    if isinstance(value, str | dict):
        run.charge(1 + (len(value) >> 4))
        return list(value)
    if isinstance(value, list | tuple):
        run.charge(1 + (len(value) >> 4))
        return cast("Items", value) if isinstance(value, list) else list(value)
    raise Refused(f"a {name_of(value)} is nothing to go over")


def unique(run: Run, items: Iterable[object]) -> Items:
    """The items without duplicates, in order: what a set is here."""
    seen: set[object] = set()
    made: Items = []
    for item in items:
        run.charge(1)
        key = plain_key(item)
        if key not in seen:
            seen.add(key)
            made.append(item)
    return made


def text(run: Run, value: object) -> str:
    """`str(value)`."""
    if isinstance(value, str):
        return value
    run.charge_deep(value)
    made = str(value)
    check_length(len(made))
    return made


_SPEC: Final = re.compile(r"[<>=^]?[+ -]?0?\d{0,3}[,_]?(\.\d{1,2})?[bcdeEfFgGnosxX%]?", re.ASCII)


def formatted(run: Run, value: object, conversion: int, spec: str) -> str:
    """One field of an f-string; the format is of fixed size, and dates have none."""
    if conversion == ord("r"):
        run.charge_deep(value)
        value = repr(value)
    elif conversion == ord("s") or not isinstance(value, str | int | float | Decimal):
        value = text(run, value)
    if not spec:
        return text(run, value)
    if not _SPEC.fullmatch(spec):
        raise Refused(f"format {spec[:20]!r} is not allowed")
    return format(value, spec)


def pay_for_sorting(run: Run, value: Items) -> None:
    """A sort compares each element about as often as the number has bits."""
    run.charge_deep(value)
    run.charge(len(value) * len(value).bit_length() >> 4)
