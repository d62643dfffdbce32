"""Whether a value is what its item definition says: simple types of XML Schema, and JSON schemas.

A check answers '' or where the value differs and what was expected there. It quotes the definition and never the value:
what is wrong may be a secret. It knows values as the engine keeps them (numbers of FEEL, dates, durations, beside plain
JSON), reads no file and follows no address. A JSON schema costs its library only where there is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any

from gobpm_ray.calendar.durations import Duration, YearsMonths, parse_duration
from gobpm_ray.calendar.moments import parse_moment
from gobpm_ray.errors import InvalidModel, InvalidTimer

Check = Callable[[object], str]
"""The value -> '' or `path: expected ...`; the path is '' for the value itself."""

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?(Z|[+-]\d{2}:?\d{2})?(@\S+)?")
_DAY = re.compile(r"-?\d{4,}-\d{2}-\d{2}(Z|[+-]\d{2}:\d{2})?")
_LONGEST = 200


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and isfinite(value)


def _is_double(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _whole(least: int | None = None, most: int | None = None) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        if not _is_number(value) or value != int(value):  # type: ignore[call-overload]
            return False
        return (least is None or value >= least) and (most is None or value <= most)  # type: ignore[operator]

    return fits


def _is_moment(value: object) -> bool:
    return isinstance(value, datetime) or (isinstance(value, str) and "T" in value and _reads(parse_moment, value))


def _is_day(value: object) -> bool:
    if isinstance(value, str):
        return _DAY.fullmatch(value[:_LONGEST]) is not None and _reads(parse_moment, value[:10])
    return isinstance(value, date) and not isinstance(value, datetime)


def _is_time(value: object) -> bool:
    return isinstance(value, time) or (isinstance(value, str) and _TIME.fullmatch(value[:_LONGEST]) is not None)


def _is_duration(value: object) -> bool:
    if isinstance(value, str):
        return value.lstrip("-").startswith("P") and _reads(parse_duration, value.lstrip("-"))
    return isinstance(value, timedelta | Duration | YearsMonths)


def _reads(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except InvalidTimer:
        return False
    return True


_TEXTS = (
    *("string", "normalizedString", "token", "language", "anyURI", "Name", "NCName", "NMTOKEN", "ID", "IDREF"),
    *("QName", "base64Binary", "hexBinary"),
)
_SIMPLE: dict[str, tuple[str, Callable[[object], bool]]] = {
    **dict.fromkeys(_TEXTS, ("a text", _is_text)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "decimal": ("a number", _is_number),
    "float": ("a number", _is_double),
    "double": ("a number", _is_double),
    "integer": ("a whole number", _whole()),
    "long": ("a whole number of 64 bits", _whole(-(2**63), 2**63 - 1)),
    "int": ("a whole number of 32 bits", _whole(-(2**31), 2**31 - 1)),
    "short": ("a whole number of 16 bits", _whole(-(2**15), 2**15 - 1)),
    "byte": ("a whole number of 8 bits", _whole(-128, 127)),
    "unsignedLong": ("a whole number from 0 on, of 64 bits", _whole(0, 2**64 - 1)),
    "unsignedInt": ("a whole number from 0 on, of 32 bits", _whole(0, 2**32 - 1)),
    "unsignedShort": ("a whole number from 0 on, of 16 bits", _whole(0, 2**16 - 1)),
    "unsignedByte": ("a whole number from 0 to 255", _whole(0, 255)),
    "nonNegativeInteger": ("a whole number from 0 on", _whole(0)),
    "positiveInteger": ("a whole number from 1 on", _whole(1)),
    "nonPositiveInteger": ("a whole number up to 0", _whole(None, 0)),
    "negativeInteger": ("a whole number up to -1", _whole(None, -1)),
    "date": ("a date such as 2026-03-01", _is_day),
    "dateTime": ("a date and time such as 2026-03-01T09:30:00Z", _is_moment),
    "dateTimeStamp": ("a date and time such as 2026-03-01T09:30:00Z", _is_moment),
    "time": ("a time such as 09:30:00", _is_time),
    "duration": ("a duration such as P2DT12H", _is_duration),
    "dayTimeDuration": ("a duration such as P2DT12H", _is_duration),
    "yearMonthDuration": ("a duration such as P1Y6M", _is_duration),
}
ANYTHING = frozenset({"anyType", "anySimpleType", "anyAtomicType"})
"""Types that every value has: known, and nothing to check."""


def known(simple: str) -> bool:
    """A simple type of XML Schema by this local name is checked (or, `anyType`, needs no check)."""
    return simple in _SIMPLE or simple in ANYTHING


@lru_cache(maxsize=1_000)
def compiled(simple: str, schema: str, collection: bool) -> Check:
    """The check of a type: a simple one by its name, or a JSON schema as text, or neither; of a collection each item is
    checked. A value that is null is not there yet: only a JSON schema may refuse it. InvalidModel says what is wrong
    with a schema."""
    one = _by_schema(schema) if schema else _by_name(simple)
    return _each(one) if collection else one


def _by_name(simple: str) -> Check:
    if simple not in _SIMPLE:
        return lambda _value: ""
    shown, fits = _SIMPLE[simple]
    expected = f": expected {shown} (xsd:{simple})"
    return lambda value: "" if value is None or fits(value) else expected


def _each(one: Check) -> Check:
    def check(value: object) -> str:
        if value is None:
            return ""
        if not isinstance(value, list | tuple):
            return ": expected a list"
        for index, item in enumerate(value):
            if wrong := one(item):
                return f"[{index}]{wrong}"
        return ""

    return check


# --- JSON schemas ------------------------------------------------------------------------------------------------


def _by_schema(text: str) -> Check:
    validator = _validator(text)

    def check(value: object) -> str:
        from jsonschema.exceptions import best_match

        error = best_match(validator.iter_errors(_plain(value)))
        if error is None:
            return ""
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
        return f"{path}: expected {_expected(error)}"

    return check


def _validator(text: str) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as broken:
        raise InvalidModel(f"JSON schema: not JSON: {broken}") from None
    if not isinstance(schema, dict | bool):
        raise InvalidModel("JSON schema: expected an object, or true or false")
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise InvalidModel(f"JSON schema: refers to {reference[:80]!r}; expected everything in the schema itself")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as wrong:
        place = "/".join(str(step) for step in wrong.absolute_path) or "its root"
        raise InvalidModel(f"JSON schema: at {place}: {' '.join(wrong.message.split())[:200]}") from None
    for pattern in _patterns(schema):
        if why := _unreadable(pattern):
            raise InvalidModel(f"JSON schema: pattern {pattern[:80]!r} cannot be read: {why}")
    # With a registry of its own nothing is ever fetched.
    return _bounded(Draft202012Validator)(schema, registry=Registry(), format_checker=_formats())


def _bounded(base: Any) -> Any:
    """The validator with patterns that take time in proportion to the text: data comes from anywhere, and Python's own
    take as long as they like over the wrong one."""
    import re2  # type: ignore[import-untyped]
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    def by_value(validator: Any, pattern: str, value: object, _schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "string") and not re2.search(pattern, value):
            yield ValidationError("pattern")

    def by_name(validator: Any, patterns: dict[str, Any], value: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "object"):
            for pattern, inside in patterns.items():
                for name in [name for name in value if re2.search(pattern, name)]:
                    yield from validator.descend(value[name], inside, path=name, schema_path=pattern)

    def by_no_name(validator: Any, others: Any, value: Any, schema: Any) -> Iterator[Any]:
        if not validator.is_type(value, "object"):
            return
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        more = [name for name in value if name not in named and not any(re2.search(each, name) for each in patterns)]
        if others is False and more:
            yield ValidationError("additionalProperties")
        for name in more if isinstance(others, dict) else ():
            yield from validator.descend(value[name], others, path=name)

    return extend(base, {"pattern": by_value, "patternProperties": by_name, "additionalProperties": by_no_name})


def _patterns(schema: object) -> list[str]:
    found: list[str] = []
    for one in _inside(schema):
        if isinstance(one.get("pattern"), str):
            found.append(one["pattern"])
        if isinstance(one.get("patternProperties"), dict):
            found += one["patternProperties"]
    return found


def _unreadable(pattern: str) -> str:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as wrong:
        return " ".join(str(wrong).split())
    return ""


def _references(schema: object) -> list[str]:
    keys = ("$ref", "$dynamicRef")
    return [one[key] for one in _inside(schema) for key in keys if isinstance(one.get(key), str)]


def _inside(schema: object) -> Iterator[dict[str, Any]]:
    """Every table in the schema, at any depth."""
    pending = [schema]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            yield one
            pending.extend(one.values())
        elif isinstance(one, list):
            pending.extend(one)


def _formats() -> Any:
    """Formats as the simple types of the same meaning have them; others are notes for people."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    for name, simple in (("date", "date"), ("date-time", "dateTime"), ("time", "time"), ("duration", "duration")):
        fits = _SIMPLE[simple][1]
        checker.checks(name)(lambda value, fits=fits: not isinstance(value, str) or fits(value))
    return checker


def _expected(error: Any) -> str:
    wanted = error.validator_value
    match error.validator:
        case "required":
            lacking = [name for name in wanted if isinstance(error.instance, dict) and name not in error.instance]
            return f"'{lacking[0]}', which is missing" if lacking else "more than is there"
        case "type":
            return " or ".join(wanted) if isinstance(wanted, list) else str(wanted)
        case "enum":
            return f"one of {_shown(wanted)}"
        case "additionalProperties" | "unevaluatedProperties":
            return "no other names than the schema has"
        case None:
            return "nothing at all"
    return f"{error.validator} {_shown(wanted)}"


def _shown(wanted: object) -> str:
    text = json.dumps(wanted, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _plain(value: object) -> object:
    """The value as JSON has it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    return value if isinstance(value, float) else str(value)
