"""Retry policies as they are written in a model: how often work that failed is tried again, and how long after.

    none                                  it is not
    3                                     three times, each at once
    PT5M,PT10M                            twice: after five minutes, then after ten
    R3/PT10S                              three times, ten seconds apart
    fixed(3, PT10S)                       the same
    exponential(5, PT1S, factor=2, cap=PT1H, jitter=0.2)
                                          five times, after 1, 2, 4 ... seconds, never more than an hour; each is made
                                          longer or shorter by up to a fifth

Pure: jitter is drawn from a seed that the caller gives, so that the same failure has the same next attempt wherever it
is computed.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from gobpm_ray.calendar.durations import add_duration, parse_duration
from gobpm_ray.errors import InvalidTimer

MOST = 10_000
"""Retries that one policy may ask for; more is a loop that nobody watches."""
_REPEATED = re.compile(r"R(\d+)/(.+)", re.DOTALL)
_CALLED = re.compile(r"(fixed|exponential)\s*\((.*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Retries:
    """`pauses` one after the other; with a factor the first one grows from attempt to attempt instead."""

    count: int = 0
    pauses: tuple[str, ...] = ()
    """Durations; empty: at once."""
    factor: float = 1.0
    cap: str = ""
    jitter: float = 0.0

    def next_attempt(self, failures: int, now_ms: int, seed: str) -> int | None:
        """When the attempt after so many failures is due; None: there is none any more."""
        if failures < 1 or failures > self.count:
            return None
        if not self.pauses:
            return now_ms
        if self.factor == 1.0:
            due = add_duration(now_ms, parse_duration(self.pauses[min(failures, len(self.pauses)) - 1]))
        else:
            first = add_duration(now_ms, parse_duration(self.pauses[0])) - now_ms
            longest = add_duration(now_ms, parse_duration(self.cap)) - now_ms if self.cap else 1 << 45
            try:
                pause = min(first * self.factor ** (failures - 1), longest)
            except OverflowError:
                pause = longest
            due = now_ms + int(pause)
        if not self.jitter:
            return due
        drawn = int.from_bytes(hashlib.blake2b(f"{seed}:{failures}".encode(), digest_size=8).digest()) / (1 << 64)
        return now_ms + int((due - now_ms) * (1 + self.jitter * (2 * drawn - 1)))


NONE = Retries()


def parse_retries(value: object) -> Retries:
    """The policy that a model's text, or the value of its expression, names; InvalidTimer."""
    if value is None:
        return NONE
    if isinstance(value, list | tuple):
        value = ",".join(f"PT{one.total_seconds():f}S" if isinstance(one, timedelta) else str(one) for one in value)
    if isinstance(value, timedelta):
        value = f"PT{value.total_seconds():f}S"
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise _wrong(value, "expected a number, durations, fixed(...) or exponential(...)")
    text = str(value).strip()
    if text in ("", "none"):
        return NONE
    if re.fullmatch(r"\d+(\.0+)?", text):
        return Retries(_count(text.partition(".")[0], value))
    if called := _CALLED.fullmatch(text):
        return _called(called[1], called[2], value)
    pauses: list[str] = []
    for part in text.split(","):
        repeated = _REPEATED.fullmatch(part.strip())
        times, pause = (_count(repeated[1], value), repeated[2]) if repeated else (1, part)
        pauses += [_pause(pause, value)] * times
    return Retries(_count(str(len(pauses)), value), tuple(pauses))


def _called(kind: str, arguments: str, value: object) -> Retries:
    given: dict[str, str] = {}
    names = iter(("retries", "first" if kind == "exponential" else "every"))
    for argument in filter(None, (part.strip() for part in arguments.split(","))):
        name, equals, text = argument.partition("=")
        given[name.strip() if equals else next(names, argument)] = text.strip() if equals else argument
    known = {"retries", "every"} if kind == "fixed" else {"retries", "first", "factor", "cap", "jitter"}
    if unknown := sorted(given.keys() - known):
        raise _wrong(value, f"{kind} has no {', '.join(unknown)}")
    if "retries" not in given:
        raise _wrong(value, f"{kind} needs how many retries")
    count = _count(given["retries"], value)
    if kind == "fixed":
        return Retries(count, (_pause(given["every"], value),) if "every" in given else ())
    jitter = _number(given.get("jitter", "0"), value)
    if not 0 <= jitter <= 1:
        raise _wrong(value, "jitter is a share between 0 and 1")
    factor = _number(given.get("factor", "2"), value)
    if factor < 1:
        raise _wrong(value, "factor is at least 1")
    cap = _pause(given["cap"], value) if "cap" in given else ""
    return Retries(count, (_pause(given.get("first", "PT1S"), value),), factor, cap, jitter)


def _count(text: str, value: object) -> int:
    if not text.isdecimal() or int(text) > MOST:
        raise _wrong(value, f"expected at most {MOST} retries, as a whole number")
    return int(text)


def _number(text: str, value: object) -> float:
    try:
        return float(text)
    except ValueError:
        raise _wrong(value, f"{text!r} is no number") from None


def _pause(text: str, value: object) -> str:
    try:
        parse_duration(text.strip())
    except InvalidTimer as failure:
        raise _wrong(value, str(failure)) from None
    return text.strip()


def _wrong(value: object, why: str) -> InvalidTimer:
    return InvalidTimer(f"retries {str(value)[:80]!r}: {why}")
