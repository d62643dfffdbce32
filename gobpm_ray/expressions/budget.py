"""What one evaluation may cost; it counts steps and sizes, and knows no language.

Every evaluation ends: loops, calls and everything that grows pay steps from one budget, sizes have limits of their
own, and a shared structure is paid for each time it is met (ten lists of ten lists of ten ... are small in memory and
endless to print). An expression that can neither loop nor grow runs without a budget, and allocates none.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions.registry import shorten

MAX_STEPS: Final = 100_000
MAX_ITEMS: Final = 1_000_000
"""Elements of a list, characters of a text."""
MAX_BITS: Final = 4_096
MAX_SOURCE: Final = 65_536
"""Characters of one expression or script."""
MAX_DEPTH: Final = 100
"""Nesting of an expression's operations: two Python frames each or fewer, far below the interpreter's limit."""
MAX_NESTING: Final = 200
"""Nesting of a value."""


class Refused(Exception):
    """Why an evaluation or compilation stopped; whoever knows the text makes it an ExpressionError."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class Run:
    """The budget and the clock value of one evaluation."""

    __slots__ = ("left", "now_ms")

    def __init__(self, now_ms: int, steps: int = MAX_STEPS) -> None:
        self.now_ms = now_ms
        self.left = steps

    def charge(self, steps: int) -> None:
        """Pay for work about to be done."""
        self.left -= steps
        if self.left < 0:
            raise Refused(f"it takes more than {MAX_STEPS:,} steps")

    def charge_size(self, value: object) -> None:
        """Pay for one pass of C code over a text or list."""
        if isinstance(value, str):
            self.charge(len(value) >> 6)
        elif isinstance(value, list | tuple | dict):
            self.charge(len(value) >> 4)

    def charge_deep(self, value: object) -> None:
        """Pay for a pass over everything in the value, shared parts as often as they are met."""
        if isinstance(value, list | tuple | dict):
            self.charge(measure(value, (self.left + 1) << 4) >> 4)
        elif isinstance(value, str):
            self.charge(len(value) >> 6)


class _Free(Run):
    """The budget of expressions that can neither loop nor grow, shared by all: nothing is used up, but one walk
    through a value must still fit."""

    __slots__ = ()

    def charge(self, steps: int) -> None:
        if steps > MAX_STEPS:
            raise Refused(f"it takes more than {MAX_STEPS:,} steps")


FREE: Final = _Free(0)


def measure(value: object, limit: int = MAX_ITEMS) -> int:
    """How many values the value is made of (64 characters count as one), up to a little over `limit`."""
    level, size, depth = [value], 0, 0
    while level and size <= limit:
        depth += 1
        if depth > MAX_NESTING:
            raise Refused(f"a value is nested more than {MAX_NESTING} deep")
        below: list[object] = []
        for item in level:
            size += 1
            if isinstance(item, list | tuple):
                below.extend(item)
            elif isinstance(item, dict):
                below.extend(item.values())
                below.extend(item)
            elif isinstance(item, str):
                size += len(item) >> 6
            elif isinstance(item, int):
                size += item.bit_length() >> 6
            if size + len(below) > limit:
                return size + len(below)
        level = below
    return size


def check_result(value: object) -> None:
    """A value that an expression has built must be finite to walk through: at most a million parts."""
    if isinstance(value, list | tuple | dict) and measure(value) > MAX_ITEMS:
        raise Refused(f"the result has more than {MAX_ITEMS:,} parts")


def check_length(length: int) -> None:
    """Refuse a text or list before it is built."""
    if length > MAX_ITEMS:
        raise Refused(f"a text or list would have more than {MAX_ITEMS:,} elements")


def check_bits(value: int) -> int:
    """The number itself, if it is of a sane size."""
    if value.bit_length() > MAX_BITS:
        raise Refused(f"a whole number would have more than {MAX_BITS:,} bits")
    return value


def power(base: int, exponent: int) -> int:
    """`base ** exponent` of whole numbers, refused before it is computed."""
    if base.bit_length() * exponent > MAX_BITS + exponent:
        raise Refused(f"a whole number would have more than {MAX_BITS:,} bits")
    return check_bits(base**exponent)


def join(run: Run, separator: str, parts: Iterable[str]) -> str:
    """`separator.join(parts)`, paid for and measured first."""
    listed = parts if isinstance(parts, list) else list(parts)
    check_length(sum(map(len, listed)) + len(separator) * len(listed))
    run.charge(1 + (len(listed) >> 4))
    text = separator.join(listed)
    run.charge(len(text) >> 6)
    return text


def exact(number: float) -> Decimal:
    """The decimal that a float was written as: 0.1 is one tenth."""
    return Decimal(repr(number))


def check_source(language: str, text: str) -> None:
    """Refuse a text too long to be an expression that somebody wrote."""
    if len(text) > MAX_SOURCE:
        raise failure(language, text, Refused(f"it is longer than {MAX_SOURCE:,} characters"))


def failure(language: str, text: str, refused: Refused) -> ExpressionError:
    """The one line that names expression, position and reason."""
    where = ""
    if refused.position is not None:
        position = max(0, min(refused.position, len(text)))
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
        where = f" at column {column}" if line == 1 else f" at line {line}, column {column}"
    return ExpressionError(f"{language} expression {shorten(text)!r}{where}: {refused.reason}")


def surprise(language: str, text: str, error: Exception) -> ExpressionError:
    """The same for what Python itself refused."""
    if isinstance(error, RecursionError):
        reason = "it is nested too deep"
    elif isinstance(error, MemoryError):
        reason = "it needs too much memory"
    else:
        reason = shorten(str(error), 120) or type(error).__name__
    return failure(language, text, Refused(reason))
