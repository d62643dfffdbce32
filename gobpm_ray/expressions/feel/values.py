"""FEEL's kinds of values as Python values, and how they are told apart, compared and written.

Numbers are int and float (Decimal where a variable is one): whole results are int, and a float computes as the decimal
that it is written as, so `0.1 + 0.2 = 0.3`. Contexts are dicts, dates and times are `datetime`'s with UTC where no
zone was given, durations are timedelta and `YearsMonths`. Null is None, and what has no answer is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final, TypeGuard

from gobpm_ray.calendar.durations import YearsMonths
from gobpm_ray.expressions.budget import Refused, Run, check_bits, exact
from gobpm_ray.expressions.feel.iso import format_duration, format_moment, format_time

Number = int | float | Decimal

_SMALL: Final = 1 << 62
_EXACT_FLOAT: Final = 1 << 53


class Scope:
    """Names of an iteration, a filter or a function in front of those outside; it looks like a read-only mapping."""

    __slots__ = ("outer", "own")

    def __init__(self, own: Mapping[str, object], outer: Names) -> None:
        self.own = own
        self.outer = outer

    def get(self, name: str) -> object:
        own = self.own
        return own[name] if name in own else self.outer.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self.own or name in self.outer


Names = Mapping[str, object] | Scope
Evaluate = Callable[[Names, Run], object]


@dataclass(frozen=True, slots=True)
class Interval:
    """A range; None as a bound is open-ended."""

    low: object
    high: object
    low_included: bool = True
    high_included: bool = True


@dataclass(frozen=True, slots=True)
class FeelFunction:
    """A function literal, closed over the names at its place."""

    parameters: tuple[str, ...]
    body: Evaluate
    names: Names

    def call(self, run: Run, *arguments: object) -> object:
        run.charge(1 + len(arguments))
        return self.body(Scope(dict(zip(self.parameters, arguments, strict=False)), self.names), run)


def is_number(value: object) -> TypeGuard[Number]:
    """A FEEL number; a boolean is none."""
    return isinstance(value, int | float | Decimal) and value is not True and value is not False


def kind(value: object) -> str:
    """FEEL's name of the value's type."""
    for types, name in _KINDS:
        if isinstance(value, types):
            return name
    return type(value).__name__


_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (type(None), "null"),
    (bool, "boolean"),
    ((int, float, Decimal), "number"),
    (str, "string"),
    (datetime, "date and time"),  # before date, which it inherits from
    (date, "date"),
    (time, "time"),
    (timedelta, "days and time duration"),
    (YearsMonths, "years and months duration"),
    ((list, tuple), "list"),
    (Mapping, "context"),
    (Interval, "range"),
    (FeelFunction, "function"),
)


def number(value: Decimal) -> int | float | None:
    """The plain number for a computed decimal: whole ones are int; null if it is not finite."""
    if not value.is_finite():
        return None
    # Far outside a float's precision an integral decimal is only a rounded one: 1e300 must not become 300 digits.
    if value == value.to_integral_value() and abs(value) < _EXACT_FLOAT:
        return int(value)
    result = float(value)
    return result if abs(result) != float("inf") else None


def whole(value: int) -> int:
    """The whole number itself, if it is of a sane size."""
    return value if -_SMALL < value < _SMALL else check_bits(value)


def decimal(value: Number) -> Decimal:
    """Any FEEL number as the decimal that it is written as."""
    if isinstance(value, float):
        return exact(value)
    return value if isinstance(value, Decimal) else Decimal(value)


def instant(value: datetime) -> datetime:
    """An aware datetime: one that a variable gave without zone is UTC."""
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def comparable(left: object, right: object) -> tuple[object, object] | None:
    """The pair in a form that Python compares rightly by `<`; None if FEEL has no order between them."""
    if is_number(left) and is_number(right):
        if isinstance(left, Decimal) or isinstance(right, Decimal):
            return decimal(left), decimal(right)
        return left, right
    of = kind(left)
    if of != kind(right):
        return None
    if isinstance(left, datetime) and isinstance(right, datetime):
        return instant(left), instant(right)
    if isinstance(left, time) and isinstance(right, time):
        return _seconds_of_day(left), _seconds_of_day(right)
    return (left, right) if of in ("string", "date", *_DURATIONS) else None


_DURATIONS: Final = ("days and time duration", "years and months duration")


def _seconds_of_day(value: time) -> float:
    offset = value.utcoffset() or timedelta()
    return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6 - offset.total_seconds()


def equal(left: object, right: object, run: Run) -> bool | None:
    """FEEL's `=`: null where the kinds differ, and a plain answer where one side is null."""
    if left is None or right is None:
        return left is right
    of = kind(left)
    if of != kind(right):
        return None
    if of in ("list", "context"):
        run.charge_deep(left)
        run.charge_deep(right)
        return same(left, right)
    pair = comparable(left, right)
    return pair[0] == pair[1] if pair is not None else left == right


def same(left: object, right: object) -> bool:
    """Equality inside lists and contexts: different kinds are simply not the same. The caller has paid for the walk."""
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(item, right[key]) for key, item in left.items())
    if kind(left) != kind(right):
        return False
    pair = comparable(left, right)
    return bool(pair[0] == pair[1]) if pair is not None else bool(left == right)


def contains(interval: Interval, value: object) -> bool | None:
    """Whether the value lies in the range; null if there is no order between them."""
    answer = True
    for bound, included, below in (
        (interval.low, interval.low_included, True),
        (interval.high, interval.high_included, False),
    ):
        if bound is None:
            continue
        pair = comparable(bound, value) if below else comparable(value, bound)
        if pair is None:
            return None
        smaller, larger = pair
        answer = answer and (smaller < larger or (included and smaller == larger))  # type: ignore[operator]
    return answer


def as_list(value: object) -> list[object] | None:
    """A list as it is, null as null, and anything else as a list of one."""
    if value is None or isinstance(value, list):
        return value
    return list(value) if isinstance(value, tuple) else [value]


def to_text(value: object) -> str | None:
    """What `string(value)` gives. The caller has paid for walking a list or context."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    return _written(value)


def _written(value: object) -> str:
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if is_number(value):
        return _digits(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}:{_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, datetime):
        return format_moment(instant(value))
    if isinstance(value, time):
        return format_time(value)
    if isinstance(value, date | YearsMonths):
        return str(value)
    raise Refused(f"a {kind(value)} has no text form")


def _digits(value: Number) -> str:
    if isinstance(value, int):
        return str(value)
    plain = format(decimal(value), "f") if 1e-20 < abs(float(value)) < 1e30 or not value else str(value)
    return plain.rstrip("0").rstrip(".") if "." in plain and "E" not in plain.upper() else plain
