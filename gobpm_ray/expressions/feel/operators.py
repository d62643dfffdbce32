"""FEEL's operators on values: what they answer for every pair of kinds, null where there is no answer."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, DecimalException
from typing import Final, cast

from gobpm_ray.calendar.durations import YearsMonths, add_months
from gobpm_ray.expressions.budget import Run, check_length, power
from gobpm_ray.expressions.feel.values import (
    Interval,
    Number,
    comparable,
    contains,
    decimal,
    equal,
    instant,
    is_number,
    kind,
    number,
    whole,
)

DECIMAL128: Final = Context(prec=34)
"""The precision that DMN prescribes for every computation with fractions."""

Order = Callable[[object, object], bool]
ORDERS: Final[dict[str, Order]] = {
    "<": cast("Order", operator.lt),
    "<=": cast("Order", operator.le),
    ">": cast("Order", operator.gt),
    ">=": cast("Order", operator.ge),
    "=": operator.eq,
    "!=": operator.ne,
}


def compare(symbol: str, left: object, right: object, run: Run) -> bool | None:
    """Any of `= != < <= > >=`."""
    if symbol == "=":
        return equal(left, right, run)
    if symbol == "!=":
        answer = equal(left, right, run)
        return None if answer is None else not answer
    pair = comparable(left, right)
    return None if pair is None else ORDERS[symbol](*pair)


def within(value: object, test: object, run: Run) -> bool | None:
    """`value in test`: a range holds it, a list holds it (or a range in it that does), or they are equal."""
    if isinstance(test, Interval):
        return contains(test, value)
    if isinstance(test, list | tuple):
        run.charge(len(test))
        answers = [contains(item, value) if isinstance(item, Interval) else equal(value, item, run) for item in test]
        # Two equal lists: DMN lets a value be "in" itself.
        itself = isinstance(value, list) and equal(value, test, run) is True
        return itself or any(answer is True for answer in answers)
    return equal(value, test, run)


def add(left: object, right: object) -> object:
    if is_number(left) and is_number(right):
        if isinstance(left, int) and isinstance(right, int):
            return whole(left + right)
        return _result(DECIMAL128.add(decimal(left), decimal(right)), left, right)
    if isinstance(left, str) and isinstance(right, str):
        check_length(len(left) + len(right))
        return left + right
    if isinstance(left, timedelta | YearsMonths) and isinstance(right, date | time):
        left, right = right, left
    return _shift(left, right, 1)


def subtract(left: object, right: object) -> object:
    if is_number(left) and is_number(right):
        if isinstance(left, int) and isinstance(right, int):
            return whole(left - right)
        return _result(DECIMAL128.subtract(decimal(left), decimal(right)), left, right)
    if isinstance(left, datetime) or isinstance(right, datetime):
        if isinstance(left, date) and isinstance(right, date):
            return midnight(left) - midnight(right)
    elif isinstance(left, date) and isinstance(right, date):
        return left - right
    elif isinstance(left, time) and isinstance(right, time):
        return _on_a_day(left) - _on_a_day(right)
    return _shift(left, right, -1)


def multiply(left: object, right: object) -> object:
    if is_number(left) and is_number(right):
        if isinstance(left, int) and isinstance(right, int):
            if left.bit_length() + right.bit_length() < 60:
                return left * right
            return whole(left * right)
        return _result(DECIMAL128.multiply(decimal(left), decimal(right)), left, right)
    if is_number(left):
        left, right = right, left
    if isinstance(left, timedelta) and is_number(right):
        return _scaled(left, decimal(right))
    if isinstance(left, YearsMonths) and is_number(right):
        return YearsMonths(int(left.months * decimal(right)))
    return None


def divide(left: object, right: object) -> object:
    if is_number(left) and is_number(right):
        if not right:
            return None
        if isinstance(left, int) and isinstance(right, int) and left % right == 0:
            return left // right
        return _result(DECIMAL128.divide(decimal(left), decimal(right)), left, right)
    if isinstance(left, timedelta):
        if isinstance(right, timedelta) and right:
            return number(DECIMAL128.divide(Decimal(_micros(left)), Decimal(_micros(right))))
        if is_number(right) and right:
            return _scaled(left, DECIMAL128.divide(Decimal(1), decimal(right)))
    if isinstance(left, YearsMonths):
        if isinstance(right, YearsMonths) and right.months:
            return number(DECIMAL128.divide(Decimal(left.months), Decimal(right.months)))
        if is_number(right) and right:
            return YearsMonths(int(left.months / decimal(right)))
    return None


def raise_to(left: object, right: object) -> object:
    if not (is_number(left) and is_number(right)):
        return None
    if isinstance(left, int) and isinstance(right, int) and right >= 0:
        return power(left, right)
    return _result(DECIMAL128.power(decimal(left), decimal(right)), left, right)


def negate(value: object) -> object:
    if is_number(value):
        return -value
    if isinstance(value, timedelta):
        return -value
    return YearsMonths(-value.months) if isinstance(value, YearsMonths) else None


ARITHMETIC: Final[dict[str, Callable[[object, object], object]]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "**": raise_to,
}
NO_ANSWER: Final = (DecimalException, OverflowError, ValueError, ZeroDivisionError)
"""What Python raises where FEEL says null."""


def arithmetic(symbol: str, left: object, right: object) -> object:
    """Any of `+ - * / **`; null for kinds that have no such operation and results outside every calendar."""
    try:
        return ARITHMETIC[symbol](left, right)
    except NO_ANSWER:
        return None


def midnight(value: date) -> datetime:
    """The instant of a date and time, or the first of a date in UTC."""
    return instant(value) if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)


def _result(value: Decimal, left: Number, right: Number) -> Number | None:
    # A variable that is a Decimal asks for decimals: its sums stay ones.
    return value if isinstance(left, Decimal) or isinstance(right, Decimal) else number(value)


def _shift(left: object, right: object, sign: int) -> object:
    """A point in time, or a duration, plus or minus a duration."""
    if isinstance(right, timedelta):
        if isinstance(left, timedelta):
            return left + sign * right
        if isinstance(left, datetime):
            # Through UTC: Python adds on the wall clock, which loses an hour over daylight saving.
            return (instant(left).astimezone(UTC) + sign * right).astimezone(instant(left).tzinfo)
        if isinstance(left, date):
            return (midnight(left) + sign * right).date()
        if isinstance(left, time):
            return (datetime.combine(date(2000, 1, 2), left) + (sign * right) % timedelta(days=1)).timetz()
    if isinstance(right, YearsMonths):
        if isinstance(left, YearsMonths):
            return YearsMonths(left.months + sign * right.months)
        if isinstance(left, datetime):
            return add_months(instant(left), sign * right.months)
        if isinstance(left, date):
            return add_months(midnight(left), sign * right.months).date()
    return None


def _on_a_day(value: time) -> datetime:
    moment = datetime.combine(date(2000, 1, 1), value)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _micros(value: timedelta) -> int:
    return value // timedelta(microseconds=1)


def _scaled(value: timedelta, factor: Decimal) -> timedelta:
    return timedelta(microseconds=int(DECIMAL128.multiply(Decimal(_micros(value)), factor)))


def prop(value: object, name: str, run: Run) -> object:
    """`value.name`: a context's entry, a date's part, and for a list that of each element."""
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, list | tuple):
        run.charge(len(value))
        return [prop(item, name, run) for item in value]
    part = _PARTS.get(kind(value), {}).get(name)
    return None if part is None else part(value)


def has(value: object, name: str) -> bool:
    """Whether `value.name` stands for something, even for null."""
    return name in value if isinstance(value, Mapping) else name in _PARTS.get(kind(value), {})


def _zone_of(value: datetime | time) -> str | None:
    return getattr(value.tzinfo, "key", None) or ("Z" if value.tzinfo is UTC else None)


_DATE_PARTS = {
    "year": lambda value: value.year,
    "month": lambda value: value.month,
    "day": lambda value: value.day,
    "weekday": lambda value: value.isoweekday(),
}
_TIME_PARTS = {
    "hour": lambda value: value.hour,
    "minute": lambda value: value.minute,
    "second": lambda value: value.second,
    "time offset": lambda value: value.utcoffset(),
    "timezone": _zone_of,
}


def _unsigned(value: timedelta, unit: int, of: int) -> int:
    """A duration's component, with the duration's sign: the parts of -PT90M are -1 hour and -30 minutes."""
    seconds = abs(value) // timedelta(seconds=1) // unit
    part = seconds % of if of else seconds
    return -part if value < timedelta() else part


def _months(value: YearsMonths, years: bool) -> int:
    part = abs(value.months) // 12 if years else abs(value.months) % 12
    return -part if value.months < 0 else part


_PARTS: Final[dict[str, Mapping[str, Callable[..., object]]]] = {
    "date": _DATE_PARTS,
    "time": _TIME_PARTS,
    "date and time": {**_DATE_PARTS, **_TIME_PARTS},
    "days and time duration": {
        "days": lambda value: _unsigned(value, 86_400, 0),
        "hours": lambda value: _unsigned(value, 3_600, 24),
        "minutes": lambda value: _unsigned(value, 60, 60),
        "seconds": lambda value: _unsigned(value, 1, 60),
    },
    "years and months duration": {
        "years": lambda value: _months(value, True),
        "months": lambda value: _months(value, False),
    },
    "range": {
        "start": lambda value: value.low,
        "end": lambda value: value.high,
        "start included": lambda value: value.low_included,
        "end included": lambda value: value.high_included,
    },
}
