"""FEEL's functions on dates, times and durations. `now()` and `today()` are the clock value that the caller gave."""

from __future__ import annotations

from calendar import day_name, month_name, monthrange
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

from gobpm_ray.calendar.durations import YearsMonths, from_ms, time_zone
from gobpm_ray.expressions.budget import Run
from gobpm_ray.expressions.feel.builtins import builtin
from gobpm_ray.expressions.feel.iso import read_date, read_duration, read_moment, read_time
from gobpm_ray.expressions.feel.operators import midnight
from gobpm_ray.expressions.feel.values import Number, instant


@builtin("now()")
def now(run: Run) -> object:
    return from_ms(run.now_ms)


@builtin("today()")
def today(run: Run) -> object:
    return from_ms(run.now_ms).date()


@builtin("date(from: x)", folds=True)
def to_date(run: Run, value: object) -> object:
    if isinstance(value, str):
        return read_date(value)
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else None


@builtin("date(year: i, month: i, day: i)", folds=True)
def date_of(run: Run, year: int, month: int, day: int) -> object:
    return date(year, month, day)


@builtin("time(from: x)", folds=True)
def to_time(run: Run, value: object) -> object:
    if isinstance(value, str):
        return read_time(value)
    if isinstance(value, date):
        return midnight(value).timetz()
    return value if isinstance(value, time) else None


@builtin("time(hour: i, minute: i, second: n, offset: u?)")
def time_of(run: Run, hour: int, minute: int, second: Number, offset: timedelta | None = None) -> object:
    where: tzinfo | None = None if offset is None else timezone(offset)
    micros = int(second * 1_000_000)
    return time(hour, minute, micros // 1_000_000, micros % 1_000_000, where)


@builtin("date and time(from: x)", folds=True)
def to_moment(run: Run, value: object) -> object:
    if isinstance(value, str):
        return read_moment(value)
    return midnight(value) if isinstance(value, date) else None


@builtin("date and time(date: d, time: x)")
def moment_of(run: Run, day: date, clock: object) -> object:
    if isinstance(clock, str):  # a moment in another zone: date and time(from, "Europe/Berlin")
        return instant(midnight(day)).astimezone(time_zone(clock))
    if not isinstance(clock, time):
        return None
    own = day.date() if isinstance(day, datetime) else day
    return datetime.combine(own, clock.replace(tzinfo=None), clock.tzinfo or UTC)


@builtin("duration(from: s)", folds=True)
def to_duration(run: Run, value: str) -> object:
    return read_duration(value)


@builtin("duration(from: u)")
def same_duration(run: Run, value: timedelta | YearsMonths) -> object:
    return value


@builtin("years and months duration(from: d, to: d)")
def months_between(run: Run, start: date, end: date) -> object:
    if end < start if type(start) is type(end) else midnight(end) < midnight(start):
        return YearsMonths(-_months(end, start))
    return YearsMonths(_months(start, end))


def _months(start: date, end: date) -> int:
    """Whole months from the earlier to the later."""
    months = (end.year - start.year) * 12 + end.month - start.month
    return months - (end.day < start.day)


@builtin("day of week(date: d)")
def day_of_week(run: Run, value: date) -> object:
    return day_name[value.weekday()]


@builtin("day of year(date: d)")
def day_of_year(run: Run, value: date) -> object:
    return value.timetuple().tm_yday


@builtin("week of year(date: d)")
def week_of_year(run: Run, value: date) -> object:
    return value.isocalendar().week


@builtin("month of year(date: d)")
def month_of_year(run: Run, value: date) -> object:
    return month_name[value.month]


@builtin("last day of month(date: d)")
def last_day_of_month(run: Run, value: date) -> object:
    return monthrange(value.year, value.month)[1]
