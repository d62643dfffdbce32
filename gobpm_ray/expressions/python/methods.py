"""The methods that the Python sandbox knows for each type; each pays for what it walks through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Final, cast

from gobpm_ray.expressions.budget import Refused, Run, check_length, join
from gobpm_ray.expressions.python.operators import Items, items_of, name_of, pay_for_sorting, plain_key

Method = Callable[..., object]


def _replace(run: Run, value: str, old: str, new: str) -> str:
    check_length(len(value) + value.count(old) * max(0, len(new) - len(old)))
    made = value.replace(old, new)
    run.charge(len(made) >> 6)
    return made


def _joined(run: Run, separator: str, parts: object) -> str:
    listed = items_of(run, parts)
    if not all(isinstance(part, str) for part in listed):
        raise Refused("join takes a list of texts")
    return join(run, separator, cast("list[str]", listed))


def _padded(method: Callable[..., str]) -> Method:
    def pad(run: Run, value: str, width: int, *fill: str) -> str:
        check_length(width)
        run.charge(max(0, width) >> 6)
        return method(value, width, *fill)

    return pad


def _same(method: Callable[..., object]) -> Method:
    """A method that reads its value once and gives something no larger."""

    def call(run: Run, value: object, *arguments: object) -> object:
        run.charge_size(value)
        for argument in arguments:
            run.charge_deep(argument)
        return method(value, *arguments)

    return call


def _listed(method: Callable[..., Iterable[object]]) -> Method:
    def call(run: Run, value: object, *arguments: object) -> object:
        run.charge_size(value)
        return [list(item) if isinstance(item, tuple) else item for item in method(value, *arguments)]

    return call


def _deep(method: Callable[..., object]) -> Method:
    def call(run: Run, value: object, *arguments: object) -> object:
        run.charge_deep(value)
        run.charge_deep(list(arguments))
        return method(value, *arguments)

    return call


def _get(run: Run, value: dict[object, object], key: object, default: object = None) -> object:
    return value.get(plain_key(key), default)


_TEXT: Final[dict[str, Method]] = {
    **{
        name: _same(getattr(str, name))
        for name in (
            *("upper", "lower", "title", "capitalize", "casefold", "swapcase", "strip", "lstrip", "rstrip"),
            *("startswith", "endswith", "find", "rfind", "index", "count", "removeprefix", "removesuffix"),
            *("isdigit", "isalpha", "isalnum", "isspace", "isupper", "islower", "isnumeric"),
        )
    },
    **{name: _listed(getattr(str, name)) for name in ("split", "rsplit", "splitlines", "partition", "rpartition")},
    **{name: _padded(getattr(str, name)) for name in ("zfill", "ljust", "rjust", "center")},
    "replace": _replace,
    "join": _joined,
}
_MOMENT: Final = ("isoformat", "weekday", "isoweekday")
METHODS: Final[dict[type, dict[str, Method]]] = {
    str: _TEXT,
    list: {"index": _deep(list.index), "count": _deep(list.count), "copy": _listed(list.copy)},
    dict: {
        "get": _get,
        "keys": _listed(dict.keys),
        "values": _listed(dict.values),
        "items": _listed(dict.items),
        "copy": _same(dict.copy),
    },
    datetime: {name: _same(getattr(datetime, name)) for name in (*_MOMENT, "date", "time", "timestamp")},
    date: {name: _same(getattr(date, name)) for name in _MOMENT},
    time: {"isoformat": _same(time.isoformat)},
    timedelta: {"total_seconds": _same(timedelta.total_seconds)},
}


def _extend(run: Run, value: Items, more: object) -> None:
    added = list(items_of(run, more))
    check_length(len(value) + len(added))
    value.extend(added)


def _insert(run: Run, value: Items, index: int, item: object) -> None:
    check_length(len(value) + 1)
    run.charge_size(value)
    value.insert(index, item)


def _append(run: Run, value: Items, item: object) -> None:
    check_length(len(value) + 1)
    value.append(item)


def _sort(run: Run, value: Items, *, reverse: bool = False) -> None:
    pay_for_sorting(run, value)
    value.sort(reverse=reverse)


def _update(run: Run, value: dict[object, object], /, *others: Mapping[object, object], **entries: object) -> None:
    for other in others:
        if not isinstance(other, dict):
            raise Refused(f"update takes a dict, not a {name_of(other)}")
        run.charge_size(other)
        value.update(other)
    value.update(entries)


def _set_default(run: Run, value: dict[object, object], key: object, default: object = None) -> object:
    return value.setdefault(plain_key(key), default)


def _pop(run: Run, value: dict[object, object], key: object, *default: object) -> object:
    return value.pop(plain_key(key), *default)


CHANGING: Final[dict[type, dict[str, Method]]] = {
    list: {
        "append": _append,
        "extend": _extend,
        "insert": _insert,
        "pop": _same(list.pop),
        "remove": _deep(list.remove),
        "clear": _same(list.clear),
        "reverse": _same(list.reverse),
        "sort": _sort,
    },
    dict: {"update": _update, "setdefault": _set_default, "pop": _pop, "clear": _same(dict.clear)},
}
"""Methods that change their value: only scripts have them, on copies of their own."""
