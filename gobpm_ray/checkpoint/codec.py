"""The durable form of values: JSON, plus one-key objects that stand for what JSON lacks.

`{"$dt": "2026-01-01T00:00:00+00:00"}` is a date-time. A user's own one-key object whose key begins with `$` is written
with one more `$`, so nothing that a user stores can be mistaken for a tag. What has no durable form is refused, naming
the path and the type. It knows values; it refuses to know what a checkpoint is or where the bytes go.

Plain JSON is the hot path: it is checked once, in place, and copied only where a value needs a tag.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from types import NoneType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic_core import PydanticSerializationError, from_json, to_json

from gobpm_ray.calendar.timers import Duration, YearsMonths
from gobpm_ray.errors import InvalidPayload, UnstorableValue
from gobpm_ray.secret import Secret

DEEPEST = 150
"""Levels of nesting that a stored value may have: what the JSON reader takes, less what a part and a tag add."""
_LARGEST = (1 << 63) - 1
SECRET = "$s"  # noqa: S105 - the name of a tag
"""The tag of a value that is marked secret."""
_AS_IT_IS = frozenset({str, bool, NoneType})


class _Refused(Exception):
    """A value without a durable form; the levels above add their keys, innermost first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: list[str | int] = []


def dump(values: dict[str, Any], where: str = "value") -> bytes:
    """The values as JSON bytes. Raises UnstorableValue: one line that names `where`, the path in it and the type."""
    return write(storable(values, where), where)


def load(data: bytes, where: str = "value") -> dict[str, Any]:
    """What `dump` was given, tuples as lists. Raises InvalidPayload for bytes that no `dump` wrote."""
    return restored(parse(data, where), data, where)


def parse(data: bytes, where: str = "value") -> dict[str, Any]:
    """The JSON object as it stands, its tags not yet read."""
    try:
        found = from_json(data)
        if type(found) is not dict:
            raise ValueError(f"expected a JSON object, not {type(found).__name__}")
        return found
    except ValueError as error:
        raise InvalidPayload(f"{where}: {_one_line(error)}") from error


def write(document: dict[str, Any], where: str = "value") -> bytes:
    """A document whose values went through `storable`, as bytes."""
    try:
        return to_json(document)
    except PydanticSerializationError as error:
        # All that is left to go wrong is text that no encoding has: half of a surrogate pair.
        path = next(_unwritable(document, ""), "")
        raise UnstorableValue(f"{where}{_named(path)}: text with half of a surrogate pair cannot be stored") from error


def storable(values: dict[str, Any], where: str = "value") -> dict[str, Any]:
    """The same object when all of it is plain JSON, else a copy with tags; UnstorableValue otherwise."""
    try:
        return _inside(values, DEEPEST)
    except _Refused as refused:
        path = ""
        for step in reversed(refused.path):
            path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
        raise UnstorableValue(f"{where}{_named(path)}: {refused}") from None


def restored(values: dict[str, Any], data: bytes, where: str = "value") -> dict[str, Any]:
    """Every tag replaced by what it stands for; the top level is never a tag, as in `storable`. `data` is what the
    values were parsed from: most hold no tag, and one look says so. InvalidPayload for a tag that says nothing."""
    if b'"$' not in data:
        return values
    try:
        return {key: _restored(value) for key, value in values.items()}
    except ValueError as error:
        raise InvalidPayload(f"{where}: {_one_line(error)}") from error


# --- writing


def _tagged(value: Any, levels: int) -> Any:
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is int:
        return value if -_LARGEST <= value <= _LARGEST else {"$i": format(value, "x")}
    if kind is float:
        return value if isfinite(value) else {"$f": str(value)}
    if kind is dict:
        inside = _inside(value, levels)
        if len(value) == 1:
            (key,) = value
            if key.startswith("$"):
                return {"$" + key: inside[key]}
        return inside
    if kind is list:
        return _items(value, levels)
    return _exotic(value, levels)


def _inside(value: dict[str, Any], levels: int) -> dict[str, Any]:
    if not levels:
        raise _Refused(f"nested deeper than {DEEPEST} levels")
    copy = None
    for key, item in value.items():
        if type(key) is not str:
            raise _Refused(f"a key of type {type(key).__name__} cannot be stored, only text")
        if type(item) in _AS_IT_IS:
            continue
        try:
            tagged = _tagged(item, levels - 1)
        except _Refused as refused:
            refused.path.append(key)
            raise
        if tagged is not item:
            if copy is None:
                copy = dict(value)
            copy[key] = tagged
    return value if copy is None else copy


def _items(value: list[Any], levels: int) -> list[Any]:
    if not levels:
        raise _Refused(f"nested deeper than {DEEPEST} levels")
    copy = None
    for index, item in enumerate(value):
        if type(item) in _AS_IT_IS:
            continue
        try:
            tagged = _tagged(item, levels - 1)
        except _Refused as refused:
            refused.path.append(index)
            raise
        if tagged is not item:
            if copy is None:
                copy = list(value)
            copy[index] = tagged
    return value if copy is None else copy


def _exotic(value: Any, levels: int) -> Any:
    for kind, tag, text in _WRITERS:
        if isinstance(value, kind):
            return {tag: text(value)}
    if isinstance(value, Secret):
        return {SECRET: _tagged(value.reveal(), levels)}
    # Enumerations and other refinements of a JSON type are stored as what they refine.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return _tagged(int.__index__(value), levels)
    if isinstance(value, float):
        return _tagged(float.__float__(value), levels)
    if isinstance(value, tuple | list):
        return _items(list(value), levels)
    if isinstance(value, dict):
        return _tagged(dict(value), levels)
    raise _Refused(f"a value of type {type(value).__qualname__} cannot be stored")


def _zoned(value: datetime | time) -> str:
    """The local time and its zone's name: an offset alone would forget when summer time ends."""
    if isinstance(value.tzinfo, ZoneInfo) and value.tzinfo.key:
        return f"{value.replace(tzinfo=None).isoformat()}{'~' if value.fold else ''}[{value.tzinfo.key}]"
    return value.isoformat()


_WRITERS: tuple[tuple[type, str, Callable[[Any], object]], ...] = (
    (datetime, "$dt", _zoned),
    (date, "$da", date.isoformat),
    (time, "$ti", _zoned),
    (timedelta, "$td", lambda value: [value.days, value.seconds, value.microseconds]),
    (YearsMonths, "$ym", lambda value: value.months),
    (Duration, "$du", lambda value: [value.months, value.days, value.ms]),
    (Decimal, "$d", str),
    (bytes, "$b", lambda value: b64encode(value).decode()),
    (bytearray, "$b", lambda value: b64encode(value).decode()),
    (UUID, "$u", lambda value: value.hex),
)


def _unwritable(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            shown = key.encode(errors="replace").decode()
            yield from _unwritable(key, f"{path}.{shown}" if path else shown)
            yield from _unwritable(item, f"{path}.{shown}" if path else shown)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unwritable(item, f"{path}[{index}]")


# --- reading


def _restored(value: Any) -> Any:
    if type(value) is list:
        return [_restored(item) for item in value]
    if type(value) is not dict:
        return value
    if len(value) == 1:
        ((key, item),) = value.items()
        if key.startswith("$$"):
            return {key[1:]: _restored(item)}
        if key.startswith("$"):
            reader = _READERS.get(key)
            if reader is None:
                raise ValueError(f"unknown tag {key!r}: written by a newer release?")
            try:
                return reader(item)
            except Exception as error:  # whatever a constructor makes of damaged text
                raise ValueError(f"tag {key!r} with {item!r:.80}: {error}") from error
    return {key: _restored(item) for key, item in value.items()}


def _moment(text: str) -> datetime:
    local, fold, zone = _placed(text)
    moment = datetime.fromisoformat(local)
    return moment if zone is None else moment.replace(tzinfo=zone, fold=fold)


def _time(text: str) -> time:
    local, fold, zone = _placed(text)
    moment = time.fromisoformat(local)
    return moment if zone is None else moment.replace(tzinfo=zone, fold=fold)


def _placed(text: str) -> tuple[str, int, ZoneInfo | None]:
    local, bracket, zone = text.partition("[")
    if not bracket:
        return text, 0, None
    return local.rstrip("~"), int(local.endswith("~")), ZoneInfo(zone.rstrip("]"))


_READERS: dict[str, Callable[[Any], object]] = {
    "$i": lambda text: int(text, 16),
    "$f": float,
    "$dt": _moment,
    "$da": date.fromisoformat,
    "$ti": _time,
    "$td": lambda parts: timedelta(*parts),
    "$ym": YearsMonths,
    "$du": lambda parts: Duration(*parts),
    "$d": Decimal,
    "$b": lambda text: b64decode(text, validate=True),
    "$u": UUID,
    SECRET: lambda value: Secret(_restored(value)),
}


def _named(path: str) -> str:
    return f" '{path}'" if path else ""


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
