"""ISO-8601 durations, and what adding one to an instant means; it knows calendars and zones, and no clock.

A duration has three parts that must not be merged: months (a month has no fixed length), days (a local day has 23 to
25 hours) and milliseconds. They are added in that order, months and days on the local calendar of a zone, then
milliseconds on the absolute line. Stated rules: a day that the target month lacks becomes that month's last day
(31 January + P1M is 28 or 29 February, 29 February + P1Y is 28 February); a local time that daylight saving skips
moves forward by the gap's length; one that happens twice is its first.

Narrower than ISO 8601 on purpose, where a reading would be a guess: no sign, no fraction of a year or month, and a
fraction only in the last component. Weeks may stand beside other components.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from gobpm_ray.errors import InvalidTimer

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MS: Final = timedelta(milliseconds=1)
DAY_MS: Final = 86_400_000
_UNIT_MS: Final = {"W": 7 * DAY_MS, "D": DAY_MS, "H": 3_600_000, "M": 60_000, "S": 1_000}
_LONGEST: Final = 64
_MAX_MONTHS: Final = 12 * 9_999
_MAX_DAYS: Final = 366 * 9_999

_NUMBER = r"(\d+(?:[.,]\d+)?)"
_DURATION = re.compile(
    rf"P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:(T)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, order=True)
class YearsMonths:
    """A duration of whole months, as FEEL's years-and-months duration: it has no length in days."""

    months: int

    def __str__(self) -> str:
        years, months = divmod(abs(self.months), 12)
        text = (f"{years}Y" if years else "") + (f"{months}M" if months else "")
        return f"{'-' if self.months < 0 else ''}P{text or '0M'}"


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time that is never negative: months, then days, then milliseconds."""

    months: int = 0
    days: int = 0
    ms: int = 0

    def __post_init__(self) -> None:
        if min(self.months, self.days, self.ms) < 0:
            raise InvalidTimer(f"duration {self.months} months {self.days} days {self.ms} ms: must not be negative")
        if self.months > _MAX_MONTHS or self.days > _MAX_DAYS or self.ms > _MAX_DAYS * DAY_MS:
            raise InvalidTimer("duration: longer than 9,999 years")

    @property
    def empty(self) -> bool:
        """Nothing at all, or less than half a millisecond."""
        return not (self.months or self.days or self.ms)

    @property
    def exact(self) -> bool:
        """Only milliseconds: the same length wherever it is added."""
        return not (self.months or self.days)

    def times(self, factor: int) -> Duration:
        return Duration(self.months * factor, self.days * factor, self.ms * factor)

    @classmethod
    def of(cls, value: timedelta | YearsMonths) -> Duration:
        """The same length as a Python or FEEL duration; a negative one is refused."""
        if isinstance(value, YearsMonths):
            return cls(months=value.months)
        return cls(ms=round_ms(value))


def round_ms(value: timedelta) -> int:
    """Whole milliseconds of a timedelta, half up."""
    return (value + timedelta(microseconds=500)) // MS


@lru_cache(maxsize=1_024)
def parse_duration(text: str) -> Duration:
    """`P3M`, `P1Y2M`, `P1W`, `P1DT12H`, `PT0.5S` and the like; InvalidTimer names the text and the rule (T46)."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        raise _refused(text, "expected an ISO-8601 duration such as PT15M or P7D")
    if text[0] in "+-":
        raise _refused(text, "a duration has no sign; it cannot lie in the past")
    found = _DURATION.fullmatch(text)
    if found is None:
        raise _refused(text, "expected an ISO-8601 duration such as PT15M, P7D or P1Y2M (upper case, in this order)")
    years, months, weeks, days, clock, hours, minutes, seconds = found.groups()
    parts = [("Y", years), ("M", months), ("W", weeks), ("D", days), ("H", hours), ("M", minutes), ("S", seconds)]
    given = [(unit, number) for unit, number in parts if number is not None]
    if clock is not None and not (hours or minutes or seconds):
        raise _refused(text, "hours, minutes or seconds must follow T")
    if not given:
        raise _refused(text, "at least one component must follow P")
    if any(not number.isdigit() for _, number in given[:-1]):
        raise _refused(text, "only the last component may have a fraction")
    if any(number is not None and not number.isdigit() for number in (years, months)):
        raise _refused(text, "a fraction of a year or month has no length; write days")
    ms = sum((_in_ms(unit, number) for unit, number in (("H", hours), ("M", minutes), ("S", seconds))), Decimal(0))
    whole_days = 0
    for unit, size, number in (("W", 7, weeks), ("D", 1, days)):
        if number is not None and number.isdigit():
            whole_days += size * int(number)
        else:
            ms += _in_ms(unit, number)
    return Duration(12 * int(years or 0) + int(months or 0), whole_days, int(ms.to_integral_value(ROUND_HALF_UP)))


def _in_ms(unit: str, number: str | None) -> Decimal:
    return Decimal(number.replace(",", ".")) * _UNIT_MS[unit] if number else Decimal(0)


def _refused(text: str, rule: str) -> InvalidTimer:
    return InvalidTimer(f"duration {text[:80]!r}: {rule}")


def time_zone(name: str) -> tzinfo:
    """The IANA zone; InvalidTimer when there is none of that name."""
    if name in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidTimer(f"zone {name[:80]!r}: not an IANA time zone such as Europe/Berlin") from error


def resolve(local: datetime, where: tzinfo) -> datetime:
    """The instant, in UTC, of a local wall-clock time: skipped times move forward, doubled ones are their first."""
    # A skipped time with fold 0 takes the offset before the gap, which lands behind the gap by the same distance.
    return local.replace(tzinfo=where, fold=0).astimezone(UTC)


def to_ms(instant: datetime) -> int:
    """Milliseconds since the epoch of an aware datetime, rounded down."""
    return (instant - EPOCH) // MS


def from_ms(ms: int, where: tzinfo = UTC) -> datetime:
    """The aware datetime of an instant; InvalidTimer outside the years 1 to 9999."""
    try:
        return (EPOCH + timedelta(milliseconds=ms)).astimezone(where)
    except OverflowError as error:
        raise InvalidTimer(f"instant {ms} ms: outside the years 1 to 9999") from error


def add_months(local: datetime, months: int) -> datetime:
    """The same day and time `months` later (or earlier), or the last day of a shorter month."""
    year, month = divmod(local.year * 12 + local.month - 1 + months, 12)
    if not 1 <= year <= 9_999:
        raise OverflowError("outside the years 1 to 9999")
    return local.replace(year=year, month=month + 1, day=min(local.day, monthrange(year, month + 1)[1]))


def add_duration(start_ms: int, duration: Duration, zone: str = "UTC") -> int:
    """`start_ms` plus the duration, months and days on the zone's calendar; InvalidTimer beyond the year 9999."""
    if duration.exact:
        end = start_ms + duration.ms
    else:
        where = time_zone(zone)
        local = from_ms(start_ms, where).replace(tzinfo=None)
        try:
            local = add_months(local, duration.months) + timedelta(days=duration.days)
            end = to_ms(resolve(local, where)) + duration.ms
        except (OverflowError, ValueError) as error:
            raise InvalidTimer("timer: lies beyond the year 9999") from error
    if end > _LAST_MS:
        raise InvalidTimer("timer: lies beyond the year 9999")
    return end


_LAST_MS: Final = to_ms(datetime(9999, 12, 30, tzinfo=UTC))
