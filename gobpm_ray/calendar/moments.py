"""ISO-8601 points in time with their zone forms; it reads text and knows no clock.

Accepted: a date, or a date and time, followed by nothing, `Z`, an offset, `[Europe/Berlin]`, `@Europe/Berlin`, or an
offset and a zone. Stated rules: without zone and offset the time is UTC; a date alone is its midnight; an offset that
the named zone does not have at that local time is refused, for one of the two is wrong; a local time that daylight
saving skips moves forward, one that happens twice is its first (an offset beside the zone picks the second).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

from gobpm_ray.calendar.durations import resolve, time_zone, to_ms
from gobpm_ray.errors import InvalidTimer

_MOMENT = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r"(Z|[+-]\d{2}(?::?\d{2})?)?"
    r"(?:\[([A-Za-z0-9_+/-]+)\]|@([A-Za-z0-9_+/-]+))?",
    re.ASCII,
)
_LONGEST = 100


def parse_moment(text: str) -> datetime:
    """The aware datetime that the text names, in its own zone; InvalidTimer names the text and the rule (T45)."""
    text = text.strip()
    found = _MOMENT.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise _refused(text, "expected ISO 8601 such as 2026-03-01T09:30:00Z or 2026-03-01T09:30:00[Europe/Berlin]")
    year, month, day, hour, minute, second, fraction, offset, bracketed, at = found.groups()
    micro = int(((fraction or "") + "000000")[:6])
    try:
        local = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micro)
    except ValueError as error:
        raise _refused(text, str(error)) from error
    name = bracketed or at
    try:
        return _placed(text, local, parse_offset(offset) if offset else None, time_zone(name) if name else None)
    except (OverflowError, ValueError) as error:
        raise _refused(text, f"outside the calendar ({error})") from error


def _placed(text: str, local: datetime, offset: tzinfo | None, where: tzinfo | None) -> datetime:
    if where is None:
        return local.replace(tzinfo=offset or UTC)
    if offset is None:
        return resolve(local, where).astimezone(where)
    instant = local.replace(tzinfo=offset).astimezone(where)
    if instant.replace(tzinfo=None, fold=0) != local:
        raise _refused(text, f"the offset contradicts the zone, which has {instant:%z} at that time")
    return instant


def parse_offset(text: str) -> tzinfo:
    """`Z`, `+02`, `+0200` or `+02:00`; at most 18 hours, as in ISO 8601's users everywhere."""
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or 0)
    if hours > 18 or minutes > 59:
        raise ValueError(f"no such offset: {text}")
    if not hours and not minutes:
        return UTC
    shift = timedelta(hours=hours, minutes=minutes)
    return timezone(-shift if text[0] == "-" else shift)


def parse_date(value: object) -> int:
    """Milliseconds since the epoch of a text, datetime or date; InvalidTimer for anything else.

    A datetime without a zone is UTC, and a date is its midnight in UTC, as in text.
    """
    if isinstance(value, str):
        return to_ms(parse_moment(value))
    if isinstance(value, datetime):
        return to_ms(value if value.tzinfo is not None else value.replace(tzinfo=UTC))
    if isinstance(value, date):
        return to_ms(datetime.combine(value, time(), UTC))
    raise InvalidTimer(f"date {value!r:.80}: expected ISO-8601 text or a date, not {type(value).__name__}")


def _refused(text: str, rule: str) -> InvalidTimer:
    return InvalidTimer(f"date {text[:80]!r}: {rule}")
