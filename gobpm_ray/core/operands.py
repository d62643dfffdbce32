"""What a definition's expressions and events become once compiled: values that the node families evaluate and arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Literal

Evaluate = Callable[[Mapping[str, object], int], object]
"""(variables, now in ms) -> value."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A compiled expression with the text that incidents quote."""

    text: str
    evaluate: Evaluate


@dataclass(frozen=True, slots=True)
class Timer:
    kind: Literal["date", "duration", "cycle"]
    value: Operand


@dataclass(frozen=True, slots=True)
class Property:
    """One of several keys of a message's conversation."""

    name: str
    path: Operand | None
    data: Operand | None


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    key: Operand | None
    plain: str
    """The canonical key of a message correlated by name alone, and of every start subscription."""
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class Signal:
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Terminate:
    pass


@dataclass(frozen=True, slots=True)
class Error:
    """`code` '' catches every error."""

    code: str


@dataclass(frozen=True, slots=True)
class Escalation:
    """`code` '' catches every escalation."""

    code: str


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Operand


@dataclass(frozen=True, slots=True)
class Compensate:
    activity: str
    """'' for everything completed in the scope."""


@dataclass(frozen=True, slots=True)
class Cancel:
    pass


@dataclass(frozen=True, slots=True)
class Link:
    name: str


Definition = Timer | Message | Signal | Terminate | Error | Escalation | Conditional | Compensate | Cancel | Link


@dataclass(frozen=True, slots=True)
class Binding:
    """One compiled input or output mapping."""

    target: str
    source: Operand
    stores: tuple[str, ...] = ()
    """Data stores whose values the source sees."""
    store: StoreShape | None = None
    """The data store that is the target, of an output that writes one."""


@dataclass(frozen=True, slots=True)
class StoreShape:
    """A data store as a process declares it."""

    name: str
    capacity: int = 0
    check: Callable[[object], str] | None = None
    """The value -> '' or what is wrong with it."""


def whole_number(value: object) -> int | None:
    """The value as a count; a constant is a text. None for what is no whole number."""
    if isinstance(value, str):
        text = value.strip()
        return int(text) if text.removeprefix("-").isdecimal() else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return int(value) if isfinite(value) and value == int(value) else None
