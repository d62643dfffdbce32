"""FEEL's functions on numbers and on lists of numbers."""

from __future__ import annotations

import math
from collections import Counter
from datetime import timedelta
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_DOWN,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Decimal,
)

from gobpm_ray.calendar.durations import YearsMonths
from gobpm_ray.expressions.budget import Run
from gobpm_ray.expressions.feel.builtins import builtin, numbers, spread
from gobpm_ray.expressions.feel.operators import DECIMAL128, add, arithmetic, multiply
from gobpm_ray.expressions.feel.values import Number, comparable, decimal, number

_LONGEST = 100


@builtin("number(from: s, grouping separator: s?, decimal separator: s?)")
def to_number(run: Run, text: str, grouping: str | None = None, point: str | None = None) -> object:
    if len(text) > _LONGEST or (grouping and grouping not in (" ", ",", ".")) or (point and point not in (",", ".")):
        return None
    if grouping:
        text = text.replace(grouping, "")
    if point:
        text = text.replace(point, ".")
    text = text.strip()
    if "_" in text or not text.isascii():
        return None
    return int(text) if text.lstrip("+-").isdigit() else number(Decimal(text))


@builtin("number(from: n)")
def same_number(run: Run, value: Number) -> object:
    return value


def _round(value: Number, scale: int, rounding: str) -> object:
    if abs(scale) > 6_176:
        return None
    exact = decimal(value)
    if scale >= -int(exact.as_tuple().exponent):
        return value  # it has no more digits than asked for
    rounded = exact.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=DECIMAL128)
    return rounded if isinstance(value, Decimal) else number(rounded)


@builtin("decimal(n: n, scale: i)")
def to_scale(run: Run, value: Number, scale: int) -> object:
    return _round(value, scale, ROUND_HALF_EVEN)


@builtin("floor(n: n, scale: i?)")
def floor(run: Run, value: Number, scale: int | None = None) -> object:
    return _round(value, scale or 0, ROUND_FLOOR)


@builtin("ceiling(n: n, scale: i?)")
def ceiling(run: Run, value: Number, scale: int | None = None) -> object:
    return _round(value, scale or 0, ROUND_CEILING)


@builtin("round up(n: n, scale: i?)")
def round_up(run: Run, value: Number, scale: int | None = None) -> object:
    return _round(value, scale or 0, ROUND_UP)


@builtin("round down(n: n, scale: i?)")
def round_down(run: Run, value: Number, scale: int | None = None) -> object:
    return _round(value, scale or 0, ROUND_DOWN)


@builtin("round half up(n: n, scale: i?)")
def round_half_up(run: Run, value: Number, scale: int | None = None) -> object:
    return _round(value, scale or 0, ROUND_HALF_UP)


@builtin("round half down(n: n, scale: i?)")
def round_half_down(run: Run, value: Number, scale: int | None = None) -> object:
    return _round(value, scale or 0, ROUND_HALF_DOWN)


@builtin("abs(n: x)")
def absolute(run: Run, value: object) -> object:
    if isinstance(value, YearsMonths):
        return YearsMonths(abs(value.months))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | timedelta):
        return None
    return abs(value)


@builtin("modulo(dividend: n, divisor: n)")
def modulo(run: Run, dividend: Number, divisor: Number) -> object:
    """The sign is the divisor's, as DMN says."""
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend % divisor
    one, two = decimal(dividend), decimal(divisor)
    rest = DECIMAL128.remainder(one, two)
    return number(DECIMAL128.add(rest, two) if rest and (rest < 0) != (two < 0) else rest)


@builtin("sqrt(number: n)")
def square_root(run: Run, value: Number) -> object:
    return number(DECIMAL128.sqrt(decimal(value)))


@builtin("log(number: n)")
def natural_logarithm(run: Run, value: Number) -> object:
    return number(Decimal(repr(math.log(value))))


@builtin("exp(number: n)")
def exponential(run: Run, value: Number) -> object:
    return number(Decimal(repr(math.exp(value))))


@builtin("odd(number: n)")
def odd(run: Run, value: Number) -> object:
    return decimal(value) % 2 in (1, -1)


@builtin("even(number: n)")
def even(run: Run, value: Number) -> object:
    return decimal(value) % 2 == 0


def _extreme(values: tuple[object, ...], largest: bool) -> object:
    listed = spread(values)
    if not listed:
        return None
    best = listed[0]
    for value in listed[1:]:
        pair = comparable(value, best)
        if pair is None:
            return None
        one, two = pair
        if (one > two) if largest else (one < two):  # type: ignore[operator]
            best = value
    return best


@builtin("min(list: x*)")
def minimum(run: Run, *values: object) -> object:
    return _extreme(values, largest=False)


@builtin("max(list: x*)")
def maximum(run: Run, *values: object) -> object:
    return _extreme(values, largest=True)


@builtin("sum(list: x*)")
def total(run: Run, *values: object) -> object:
    listed = spread(values)
    if not listed:
        return None
    run.charge(len(listed) >> 2)
    if not any(numbers(values) or all(isinstance(v, of) for v in listed) for of in (timedelta, YearsMonths)):
        return None
    result = listed[0]
    for value in listed[1:]:
        result = add(result, value)
    return result


@builtin("product(list: x*)")
def product(run: Run, *values: object) -> object:
    listed = numbers(values)
    if not listed:
        return None
    run.charge(len(listed))
    result: object = 1
    for value in listed:
        result = multiply(result, value)
    return result


@builtin("mean(list: x*)")
def mean(run: Run, *values: object) -> object:
    listed = numbers(values)
    return arithmetic("/", total(run, list(listed)), len(listed)) if listed else None


@builtin("median(list: x*)")
def median(run: Run, *values: object) -> object:
    listed = sorted(numbers(values) or [])
    run.charge(len(listed))
    if not listed:
        return None
    middle = len(listed) // 2
    if len(listed) % 2:
        return listed[middle]
    return arithmetic("/", add(listed[middle - 1], listed[middle]), 2)


@builtin("stddev(list: x*)")
def standard_deviation(run: Run, *values: object) -> object:
    listed = [decimal(value) for value in numbers(values) or []]
    run.charge(len(listed))
    if len(listed) < 2:
        return None
    average = sum(listed, Decimal(0)) / len(listed)
    squares = sum(((value - average) ** 2 for value in listed), Decimal(0))
    return number(DECIMAL128.sqrt(squares / (len(listed) - 1)))


@builtin("mode(list: x*)")
def mode(run: Run, *values: object) -> object:
    listed = numbers(values)
    if listed is None:
        return None
    counted = Counter(listed)
    run.charge(len(listed))
    most = max(counted.values(), default=0)
    return sorted(value for value, count in counted.items() if count == most)
