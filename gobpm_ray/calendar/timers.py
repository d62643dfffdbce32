"""When a timer is due: dates, durations and cycles as absolute milliseconds; pure, every clock value is an argument.

A cycle is a *grid* of points in time, computed from one anchor and never cumulatively, so that neither a late fire nor
a short month shifts what follows. Point k lies k periods behind the anchor:

- `R3/PT10M`: the anchor is the moment of arming; points 1, 2 and 3. Exactly three fires.
- `R3/<start>/PT10M`: the anchor is the start; points 0, 1 and 2. A start in the past only fixes the grid: the first
  fire is the next point after the moment of arming (T40).
- `R/PT10M/<end>`: like the first, up to the end, which is included.
- `R3/<start>/<end>`: the period is the distance between the two.
- cron, 5 fields or 6 with seconds in front (`0 9 * * MON-FRI`, `?` as `*`, `@daily` and its kin), in UTC or in the
  zone of a `CRON_TZ=Europe/Berlin` in front. Cron has no count and no end.

Stated rules. A point that passed while nobody could fire it is *consumed*: the overdue deadline fires once and the next
is the first point after now (T39), so a cycle of n that slept through k points fires fewer than n times; awake it fires
exactly n times (T37). `R0` never fires. `R` and `R-1` have no end. Days, weeks, months and years follow the calendar of
the start's zone, else UTC. A deadline is computed once, when it is armed, and never re-evaluated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal

from cronsim import CronSim, CronSimError

from gobpm_ray.calendar.durations import (
    Duration,
    YearsMonths,
    add_duration,
    from_ms,
    parse_duration,
    time_zone,
    to_ms,
)
from gobpm_ray.calendar.moments import parse_date, parse_moment
from gobpm_ray.errors import InvalidTimer

__all__ = [
    "Cycle",
    "Duration",
    "Occurrence",
    "TimerArm",
    "YearsMonths",
    "add_duration",
    "arm_timer",
    "first_occurrence",
    "next_occurrence",
    "parse_cycle",
    "parse_date",
    "parse_duration",
    "rearm",
]

TimerKind = Literal["date", "duration", "cycle"]

_REPEAT = re.compile(r"R(-1|\d{0,9})")
_SEPARATOR = re.compile(r"/(?=[+-]?P[\dT]|\d{4}-|$)", re.ASCII)
"""A slash between two parts, and not the one inside `@America/Phoenix`."""
_CRON_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_LONGEST = 300
_FAR = 1 << 60
"""More grid points than any cycle has before the year 9999 (a period is at least a millisecond)."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One point of a cycle's grid: its absolute time and its number k."""

    deadline_ms: int
    index: int


@dataclass(frozen=True, slots=True)
class TimerArm:
    """What an armed timer must remember. `cycle_text` is None for a date or duration: it fires once."""

    deadline_ms: int
    cycle_text: str | None
    anchor_ms: int
    index: int


@dataclass(frozen=True, slots=True)
class Cycle:
    """A parsed cycle. `repeats` is None without end; exactly one of `period` and `cron` is set."""

    text: str
    repeats: int | None = None
    period: Duration | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    cron: str = ""
    zone: str = "UTC"

    def anchor(self, now_ms: int) -> int:
        """Where the grid begins when the cycle is armed now."""
        return now_ms if self.start_ms is None else self.start_ms

    def first(self, now_ms: int) -> int | None:
        """Deadline of the first fire when armed now; None if it never fires."""
        occurrence = first_occurrence(self, now_ms)
        return None if occurrence is None else occurrence.deadline_ms

    @property
    def _first_index(self) -> int:
        return 1 if self.start_ms is None else 0

    @property
    def _last_index(self) -> int:
        return _FAR if self.repeats is None else self._first_index + self.repeats - 1


def first_occurrence(cycle: Cycle, now_ms: int) -> Occurrence | None:
    """The first fire of a cycle armed now; None if it never fires (R0, or all its points have passed)."""
    return _after(cycle, cycle.anchor(now_ms), cycle._first_index, now_ms)


def next_occurrence(cycle: Cycle, anchor_ms: int, index: int, now_ms: int) -> Occurrence | None:
    """The first grid point behind point `index` that lies after now; None when the cycle is over."""
    return _after(cycle, anchor_ms, index + 1, now_ms)


def _after(cycle: Cycle, anchor_ms: int, lowest: int, now_ms: int) -> Occurrence | None:
    if cycle.cron:
        deadline = _cron_after(cycle, now_ms)
        return None if deadline is None else Occurrence(deadline, lowest)
    period = cycle.period
    if period is None or lowest > cycle._last_index:
        return None
    if period.exact:
        index = max(lowest, (now_ms - anchor_ms) // period.ms + 1)
    else:
        index = _search(anchor_ms, period, cycle.zone, lowest, now_ms)
    deadline = _point(anchor_ms, period, cycle.zone, index)
    if index > cycle._last_index or deadline is None:
        return None
    return None if cycle.end_ms is not None and deadline > cycle.end_ms else Occurrence(deadline, index)


def _search(anchor_ms: int, period: Duration, where: str, lowest: int, now_ms: int) -> int:
    """The smallest index from `lowest` on whose point lies after now: points grow with their index, so bisect."""

    def passed(index: int) -> bool:
        point = _point(anchor_ms, period, where, index)
        return point is not None and point <= now_ms

    if not passed(lowest):
        return lowest
    reach = 1
    while passed(lowest + reach):
        reach *= 2
    low, high = lowest + reach // 2, lowest + reach
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passed(middle) else (low, middle)
    return high


def _point(anchor_ms: int, period: Duration, where: str, index: int) -> int | None:
    """Grid point `index`; None beyond the calendar's end."""
    if index == 0:
        return anchor_ms
    try:
        return add_duration(anchor_ms, period.times(index), where)
    except InvalidTimer:
        return None


def _cron_after(cycle: Cycle, now_ms: int) -> int | None:
    try:
        for found in CronSim(cycle.cron, from_ms(now_ms, time_zone(cycle.zone))):
            # In the hour that the end of summer time repeats, the library may answer with its first pass: over.
            if to_ms(found) > now_ms:
                return to_ms(found)
    except (OverflowError, ValueError):
        pass
    return None


@lru_cache(maxsize=1_024)
def parse_cycle(text: str) -> Cycle:
    """The cycle that the text describes; InvalidTimer names the text and the rule."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        raise _refused(text, "expected a repetition such as R3/PT10M, or a cron expression")
    return _interval(text) if text[0] == "R" else _cron(text)


def _interval(text: str) -> Cycle:
    repeat, _, tail = text.partition("/")
    rest = _SEPARATOR.split(tail) if tail else []
    found = _REPEAT.fullmatch(repeat)
    if found is None:
        raise _refused(text, "R must be followed by nothing, -1 or a whole number of repetitions")
    repeats = None if found[1] in ("", "-1") else int(found[1])
    if not 1 <= len(rest) <= 2:
        raise _refused(text, "expected R<n>/<duration>, R<n>/<start>/<duration> or R<n>/<duration>/<end>")
    try:
        return _bounded(text, repeats, rest)
    except InvalidTimer as error:
        raise _refused(text, str(error)) from error


def _bounded(text: str, repeats: int | None, rest: list[str]) -> Cycle:
    start = end = None
    where = "UTC"
    durations = [part for part in rest if part[:1] in "P+-"]
    if not durations and len(rest) == 2:
        start, where = _start(rest[0])
        end = parse_date(rest[1])
        period = Duration(ms=max(0, end - start))
        end = None
    elif len(durations) != 1:
        raise InvalidTimer("expected exactly one duration")
    else:
        period = parse_duration(durations[0])
        if len(rest) == 2 and rest[1] == durations[0]:
            start, where = _start(rest[0])
        elif len(rest) == 2:
            end = parse_date(rest[1])
    if period.empty:
        raise InvalidTimer("a cycle's period must be at least a millisecond")
    return Cycle(text, repeats, period, start, end, zone=where)


def _start(text: str) -> tuple[int, str]:
    moment = parse_moment(text)
    return to_ms(moment), getattr(moment.tzinfo, "key", "UTC")


def _cron(text: str) -> Cycle:
    where, expression = "UTC", text
    if found := re.fullmatch(r"(?:CRON_TZ|TZ)=(\S+)\s+(.+)", text):
        where, expression = found[1], found[2]
    expression = _CRON_MACROS.get(expression.lower(), expression)
    fields = expression.split()
    if len(fields) not in (5, 6):
        raise _refused(text, "neither a repetition (R3/PT10M) nor a cron expression of 5 or 6 fields")
    fields[-1], fields[-3] = ("*" if field == "?" else field for field in (fields[-1], fields[-3]))
    expression = " ".join(fields)
    try:
        CronSim(expression, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise _refused(text, f"cron: {error}") from error
    time_zone(where)
    return Cycle(text, cron=expression, zone=where)


def _refused(text: str, rule: str) -> InvalidTimer:
    return InvalidTimer(f"cycle {text[:80]!r}: {rule}")


def arm_timer(kind: TimerKind, value: object, now_ms: int) -> TimerArm | None:
    """The timer's first deadline when it is armed now; None only for a cycle that never fires.

    A date or duration in the past is due at once. Values are ISO-8601 text; a date may also be a datetime or date, a
    duration a timedelta or `YearsMonths`. Anything else, numbers above all, is refused: its unit would be a guess.
    """
    if kind == "date":
        return TimerArm(parse_date(value), None, now_ms, 0)
    if kind == "duration":
        return TimerArm(add_duration(now_ms, _duration(value)), None, now_ms, 0)
    if not isinstance(value, str):
        raise InvalidTimer(f"cycle {value!r:.80}: expected text such as R3/PT10M, not {type(value).__name__}")
    cycle = parse_cycle(value)
    occurrence = first_occurrence(cycle, now_ms)
    if occurrence is None:
        return None
    return TimerArm(occurrence.deadline_ms, cycle.text, cycle.anchor(now_ms), occurrence.index)


def rearm(cycle_text: str, anchor_ms: int, index: int, now_ms: int) -> TimerArm | None:
    """The deadline that follows a fire of point `index`; None when the cycle is over."""
    cycle = parse_cycle(cycle_text)
    occurrence = next_occurrence(cycle, anchor_ms, index, now_ms)
    if occurrence is None:
        return None
    return TimerArm(occurrence.deadline_ms, cycle.text, anchor_ms, occurrence.index)


def _duration(value: object) -> Duration:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, Duration):
        return value
    if isinstance(value, timedelta | YearsMonths):
        return Duration.of(value)
    hint = "a point in time belongs into timeDate" if isinstance(value, date) else "expected text such as PT15M"
    raise InvalidTimer(f"duration {value!r:.80}: {hint}, not {type(value).__name__}")
