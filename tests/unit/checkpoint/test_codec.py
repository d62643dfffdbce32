"""Values survive their durable form exactly, or are refused by name."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gobpm_ray.calendar.timers import Duration, YearsMonths
from gobpm_ray.checkpoint.codec import DEEPEST, dump, load
from gobpm_ray.errors import InvalidPayload, UnstorableValue

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ZONES = st.sampled_from([None, UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata"), timezone(timedelta(hours=-3))])
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**40), max_value=10**40)
    | st.floats(allow_nan=False)
    | TEXT
)
EXOTIC = (
    st.datetimes(timezones=ZONES)
    | st.dates()
    | st.times(timezones=ZONES)
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.binary()
    | st.uuids()
    | st.builds(YearsMonths, st.integers(-50_000, 50_000))
    | st.builds(Duration, st.integers(0, 100), st.integers(0, 1_000), st.integers(0, 10**9))
)
NAMES = TEXT | st.sampled_from(["$", "$$", "$dt", "$$dt", "$i", "$x"])
VALUES = st.recursive(
    PLAIN | EXOTIC,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_what_was_stored_is_what_is_read(values: dict[str, Any]) -> None:
    """Design section 8: date-times with their zone, decimals with their digits, objects that look like tags."""
    assert same(load(dump(values)), values)


def same(read: Any, stored: Any) -> bool:
    if isinstance(stored, dict):
        return type(read) is dict and read.keys() == stored.keys() and all(same(read[k], stored[k]) for k in stored)
    if isinstance(stored, list):
        return type(read) is list and len(read) == len(stored) and all(map(same, read, stored))
    if isinstance(stored, datetime | time):
        # Zones compare by what they say: two datetimes of one instant in different zones would be equal.
        return (read.replace(tzinfo=None), read.fold, read.utcoffset()) == (
            stored.replace(tzinfo=None),
            stored.fold if isinstance(stored.tzinfo, ZoneInfo) else read.fold,
            stored.utcoffset(),
        ) and isinstance(read.tzinfo, ZoneInfo) == isinstance(stored.tzinfo, ZoneInfo)
    return type(read) is type(stored) and repr(read) == repr(stored)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_numbers_survive(value: float) -> None:
    assert load(dump({"x": value})) == {"x": value}


def test_not_a_number_survives() -> None:
    assert math.isnan(load(dump({"x": math.nan}))["x"])
    assert load(dump({"x": Decimal("NaN")}))["x"].is_nan()


def test_tuples_become_lists_and_refined_types_what_they_refine() -> None:
    class Colour(StrEnum):
        RED = "red"

    class Level(IntEnum):
        HIGH = 3

    class Row(dict[str, Any]):
        pass

    stored = {"t": (1, (2, date(2026, 1, 2))), "c": Colour.RED, "l": Level.HIGH, "r": Row(a=1), "b": bytearray(b"x")}
    read = load(dump(stored))
    assert read == {"t": [1, [2, date(2026, 1, 2)]], "c": "red", "l": 3, "r": {"a": 1}, "b": b"x"}
    assert [type(read[name]) for name in "clr"] == [str, int, dict]


def test_plain_values_are_plain_json_that_other_programs_read() -> None:
    assert dump({"a": [1, 2.5, None, True, "ä"]}) == '{"a":[1,2.5,null,true,"ä"]}'.encode()


def test_a_local_time_that_happens_twice_keeps_which_one_it_is() -> None:
    second = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
    read = load(dump({"x": second}))["x"]
    assert (read.fold, read.utcoffset()) == (1, timedelta(hours=1))


class Shade(Enum):
    DARK = 1


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (object(), "order 'x.lines[1]': a value of type object cannot be stored"),
        ({1, 2}, "order 'x.lines[1]': a value of type set cannot be stored"),
        (1j, "order 'x.lines[1]': a value of type complex cannot be stored"),
        (Shade.DARK, "order 'x.lines[1]': a value of type Shade cannot be stored"),
        ({1: "one"}, "order 'x.lines[1]': a key of type int cannot be stored, only text"),
        ("half \ud800", "order 'x.lines[1]': text with half of a surrogate pair cannot be stored"),
    ],
)
def test_what_has_no_durable_form_is_refused_by_path_and_type(value: object, line: str) -> None:
    """Design section 8: one line that names the variable."""
    with pytest.raises(UnstorableValue) as refused:
        dump({"x": {"lines": ["fine", value]}}, "order")
    assert str(refused.value) == line


def test_values_nest_as_deep_as_the_limit_and_no_deeper() -> None:
    def nested(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return value

    fits = {"x": nested(DEEPEST - 1)}
    assert load(dump(fits)) == fits
    with pytest.raises(UnstorableValue, match="nested deeper than 150 levels"):
        dump({"x": nested(DEEPEST)})
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UnstorableValue, match="nested deeper"):
        dump({"x": endless})


def test_storing_changes_nothing_of_the_values_themselves() -> None:
    inner = {"$dt": "mine"}
    values = {"a": inner, "b": [UUID(int=1)], "c": (1,)}
    dump(values)
    assert values == {"a": {"$dt": "mine"}, "b": [UUID(int=1)], "c": (1,)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b'{"a":{"$nope":1}}',
        b'{"a":{"$dt":"yesterday"}}',
        b'{"a":{"$dt":5}}',
        b'{"a":{"$dt":"2026-01-01T00:00:00[Mars/Base]"}}',
        b'{"a":{"$d":"1,5"}}',
        b'{"a":{"$b":"*"}}',
        b'{"a":{"$du":[-1,0,0]}}',
        b'{"a":{"$td":[1,2,3,4,5,6,7,8,9]}}',
        b'{"a":{"$u":"short"}}',
    ],
)
def test_bytes_that_no_dump_wrote_are_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(InvalidPayload) as refused:
        load(data, "payload of d1")
    assert str(refused.value).startswith("payload of d1: ")
    assert "\n" not in str(refused.value)
