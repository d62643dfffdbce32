"""FEEL's temporal literals as text, read and written; what they share with timers comes from the model."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from gobpm_ray.calendar.durations import YearsMonths, parse_duration, time_zone
from gobpm_ray.calendar.moments import parse_moment, parse_offset
from gobpm_ray.errors import InvalidTimer

_TIME = re.compile(
    r"T?(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:?\d{2})?(?:@([A-Za-z0-9_+/-]{1,60}))?", re.ASCII
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def read_date(text: str) -> date:
    """ValueError unless the text is a date and nothing more."""
    if not _DATE.fullmatch(text):
        raise ValueError("expected a date such as 2026-03-01")
    return date.fromisoformat(text)


def read_time(text: str) -> time:
    """ValueError unless the text is a time of day, with or without offset or zone."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("expected a time such as 09:30:00")
    hour, minute, second, fraction, offset, zone = found.groups()
    where: tzinfo | None = None
    if zone:
        where = time_zone(zone)
    elif offset:
        where = parse_offset(offset)
    return time(int(hour), int(minute), int(second), int(((fraction or "") + "000000")[:6]), where)


def read_moment(text: str) -> datetime:
    """InvalidTimer unless the text is a date and time; without zone it is UTC, as everywhere in this engine."""
    return parse_moment(text)


def read_duration(text: str) -> timedelta | YearsMonths:
    """A FEEL duration: signed, and either years and months or days and time, never both (ValueError)."""
    negative = text.startswith("-")
    parsed = parse_duration(text[1:] if negative else text)
    if parsed.months and (parsed.days or parsed.ms):
        raise ValueError("a FEEL duration is either of years and months or of days and time")
    sign = -1 if negative else 1
    if parsed.months or re.fullmatch(r"-?P(\d+Y)?(\d+M)?", text):
        return YearsMonths(sign * parsed.months)
    return sign * timedelta(days=parsed.days, milliseconds=parsed.ms)


def read_temporal(text: str) -> date | time | datetime | timedelta | YearsMonths:
    """What `@"..."` names; ValueError with the reason if it is none of them."""
    try:
        if text.lstrip("-").startswith("P"):
            return read_duration(text)
        if _DATE.fullmatch(text):
            return read_date(text)
        return read_time(text) if re.match(r"T?\d\d:", text) else read_moment(text)
    except InvalidTimer as error:
        raise ValueError(str(error)) from error


def format_duration(value: timedelta) -> str:
    """`P1DT2H`, `-PT0.5S`, `PT0S`."""
    sign = "-" if value < timedelta() else ""
    value = abs(value)
    hours, seconds = divmod(value.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    fraction = f".{value.microseconds:06d}".rstrip("0") if value.microseconds else ""
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    if seconds or fraction:
        clock += f"{seconds}{fraction}S"
    days = f"{value.days}D" if value.days else ""
    return f"{sign}P{days}" + (f"T{clock}" if clock or not days else "") if (days or clock) else "PT0S"


def format_moment(value: datetime) -> str:
    """ISO 8601, with `Z` for UTC and `@Zone` where a zone is known by name."""
    return _plain(value) + _suffix(value.tzinfo, value.strftime("%z"))


def format_time(value: time) -> str:
    """ISO 8601, with what is known of the zone."""
    return _plain(value) + _suffix(value.tzinfo, value.strftime("%z"))


def _plain(value: datetime | time) -> str:
    text = value.replace(tzinfo=None).isoformat()
    return text.rstrip("0") if "." in text else text


def _suffix(where: tzinfo | None, offset: str) -> str:
    if where is None:
        return ""
    if isinstance(where, ZoneInfo):
        return f"@{where.key}"
    return "Z" if where is UTC or offset == "+0000" else f"{offset[:3]}:{offset[3:5]}"
