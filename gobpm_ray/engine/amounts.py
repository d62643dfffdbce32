"""What a caller may write where the engine takes a time: ISO text, Python values or milliseconds; out come
milliseconds."""

from __future__ import annotations

from datetime import datetime, timedelta

from gobpm_ray.calendar.durations import add_duration, parse_duration, round_ms
from gobpm_ray.calendar.moments import parse_date
from gobpm_ray.errors import InvalidTimer

Span = str | timedelta | int
"""`PT2H`, a timedelta, or milliseconds."""

Moment = str | datetime | int
"""`2026-01-01T00:00:00Z`, an aware datetime, or milliseconds since the epoch."""


def after(start_ms: int, span: Span) -> int:
    """The moment `span` later, months and years on the calendar; InvalidTimer for a length that is negative or
    unreadable."""
    if isinstance(span, bool) or not isinstance(span, str | timedelta | int):
        raise InvalidTimer(f"duration {span!r}: expected ISO-8601 text, a timedelta or milliseconds")
    if isinstance(span, str):
        return add_duration(start_ms, parse_duration(span))
    length = round_ms(span) if isinstance(span, timedelta) else span
    if length < 0:
        raise InvalidTimer(f"duration {span!r}: expected one that is not negative")
    return start_ms + length


def moment(value: Moment) -> int:
    """The moment in milliseconds; InvalidTimer for what names none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return parse_date(value)


def when(now_ms: int, text: str) -> int:
    """A date, or how long from now; InvalidTimer."""
    return after(now_ms, text) if text.strip().startswith("P") else moment(text)
