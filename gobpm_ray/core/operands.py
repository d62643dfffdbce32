"""What a definition's expressions and events become once compiled: values that the node families evaluate and arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
class Message:
    name: str
    key: Operand | None
    plain: str
    """The canonical key of a message correlated by name alone, and of every start subscription."""


@dataclass(frozen=True, slots=True)
class Signal:
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Terminate:
    pass


Definition = Timer | Message | Signal | Terminate


@dataclass(frozen=True, slots=True)
class Binding:
    """One compiled input or output mapping."""

    target: str
    source: Operand
