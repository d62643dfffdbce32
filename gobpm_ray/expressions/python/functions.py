"""The functions that the Python sandbox knows by name; each pays for what it walks through."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final, cast

from gobpm_ray.calendar.durations import YearsMonths, from_ms, parse_duration
from gobpm_ray.calendar.moments import parse_moment
from gobpm_ray.expressions.budget import MAX_ITEMS, Refused, Run, check_bits, check_length
from gobpm_ray.expressions.python.operators import (
    add,
    checked,
    items_of,
    name_of,
    pay_for_sorting,
    plain_key,
    text,
    unique,
)

_LONGEST_NUMBER = 1_300


def _len(run: Run, value: object) -> object:
    if not isinstance(value, str | list | dict):
        raise Refused(f"a {name_of(value)} has no length")
    return len(value)


def _numeric(value: object) -> object:
    if isinstance(value, str):
        if len(value) > _LONGEST_NUMBER:
            raise Refused("a number has too many digits")
    elif isinstance(value, Decimal):
        if value.is_finite() and value.adjusted() > _LONGEST_NUMBER:
            raise Refused("a number has too many digits")
    elif not isinstance(value, int | float):
        raise Refused(f"a {name_of(value)} is no number")
    return value


def _int(run: Run, value: object = 0) -> object:
    return check_bits(int(cast("str", _numeric(value))))


def _float(run: Run, value: object = 0.0) -> object:
    return checked(float(cast("str", _numeric(value))))


def _abs(run: Run, value: object) -> object:
    return abs(value) if isinstance(value, timedelta) else abs(cast("int", _numeric(value)))


def _round(run: Run, value: object, digits: object = None) -> object:
    if isinstance(value, str) or not isinstance(digits, int | None) or abs(digits or 0) > 400:
        raise Refused("round takes a number and a number of digits")
    return round(cast("float", _numeric(value)), digits)


def _bool(run: Run, value: object = False) -> object:
    return bool(value)


def _str(run: Run, value: object = "") -> object:
    return text(run, value)


def _range(run: Run, first: object, last: object = None, step: object = 1) -> object:
    start, stop = (0, first) if last is None else (first, last)
    if not isinstance(start, int) or not isinstance(stop, int) or not isinstance(step, int):
        raise Refused("range takes whole numbers")
    span = range(start, stop, step)
    # len() of a range fails beyond a machine word, so ask by its ends.
    count = max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
    check_length(min(count, MAX_ITEMS + 1))
    run.charge(count >> 4)
    return list(span)


def _list(run: Run, value: object = ()) -> object:
    return list(items_of(run, value))


def _set(run: Run, value: object = ()) -> object:
    return unique(run, items_of(run, value))


def _dict(run: Run, value: object = (), /, **entries: object) -> object:
    made: dict[object, object] = {}
    if isinstance(value, dict):
        run.charge_size(value)
        made.update(value)
        made.update(entries)
        return made
    for pair in items_of(run, value):
        run.charge(1)
        if not isinstance(pair, list) or len(pair) != 2:
            raise Refused("dict takes a dict or pairs of key and value")
        made[plain_key(pair[0])] = pair[1]
    made.update(entries)
    return made


def _sorted(run: Run, value: object, *, reverse: bool = False) -> object:
    items = list(items_of(run, value))
    pay_for_sorting(run, items)
    return sorted(items, reverse=reverse)  # type: ignore[type-var]


def _reversed(run: Run, value: object) -> object:
    return items_of(run, value)[::-1]


def _enumerate(run: Run, value: object, start: int = 0) -> object:
    items = items_of(run, value)
    run.charge(len(items) >> 2)
    return [[position, item] for position, item in enumerate(items, start)]


def _zip(run: Run, *values: object) -> object:
    columns = [items_of(run, value) for value in values]
    run.charge(min(map(len, columns), default=0) * len(columns) >> 2)
    return [list(row) for row in zip(*columns, strict=False)]


_NOTHING: Final = object()


def _extreme(pick: Callable[..., object]) -> Callable[..., object]:
    def choose(run: Run, *values: object, default: object = _NOTHING) -> object:
        items = items_of(run, values[0]) if len(values) == 1 else list(values)
        run.charge_deep(items)
        if not items:
            if default is _NOTHING:
                raise Refused("there is nothing to choose from")
            return default
        return pick(items)

    return choose


def _sum(run: Run, value: object, start: object = 0) -> object:
    result = start
    for item in items_of(run, value):
        run.charge(1)
        result = add(run, result, item)
    return result


def _any(run: Run, value: object) -> object:
    return any(items_of(run, value))


def _all(run: Run, value: object) -> object:
    return all(items_of(run, value))


def _now(run: Run) -> object:
    return from_ms(run.now_ms)


def _today(run: Run) -> object:
    return from_ms(run.now_ms).date()


def _date(run: Run, value: object, month: int = 0, day: int = 0) -> object:
    if isinstance(value, str):
        return date.fromisoformat(value)
    if isinstance(value, datetime):
        return value.date()
    return date(cast("int", value), month, day)


def _datetime(run: Run, value: object, *parts: int) -> object:
    if isinstance(value, str):
        return parse_moment(value)
    return datetime(cast("int", value), *parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def _duration(run: Run, value: str) -> object:
    found = parse_duration(value)
    if found.months and not (found.days or found.ms):
        return YearsMonths(found.months)
    if found.months:
        raise Refused("a duration of months cannot be mixed with days or time here")
    return timedelta(days=found.days, milliseconds=found.ms)


def _divmod(run: Run, left: object, right: object) -> object:
    return list(divmod(cast("int", _numeric(left)), cast("int", _numeric(right))))


FUNCTIONS: Final[dict[str, Callable[..., object]]] = {
    "abs": _abs,
    "all": _all,
    "any": _any,
    "bool": _bool,
    "date": _date,
    "datetime": _datetime,
    "dict": _dict,
    "divmod": _divmod,
    "duration": _duration,
    "enumerate": _enumerate,
    "float": _float,
    "int": _int,
    "len": _len,
    "list": _list,
    "max": _extreme(max),
    "min": _extreme(min),
    "now": _now,
    "range": _range,
    "reversed": _reversed,
    "round": _round,
    "set": _set,
    "sorted": _sorted,
    "str": _str,
    "sum": _sum,
    "today": _today,
    "tuple": _list,
    "zip": _zip,
}
