"""The pseudo-language of a constant that stands where an expression could: the text is the value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Literal:
    text: str

    def evaluate(self, variables: Mapping[str, object], now_ms: int) -> object:
        return self.text


def compile_literal(text: str) -> _Literal:
    """The constant `text`."""
    return _Literal(text)
