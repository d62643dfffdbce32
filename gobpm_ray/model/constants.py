"""Conditions that ask nothing: found by evaluating them over variables that notice being looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gobpm_ray.errors import GobpmError
from gobpm_ray.model.elements import Expression

_MOMENTS = (0, 4_000_000_000_000)
"""Two clocks: what differs between them asks the time."""


class _Watched(Mapping[str, object]):
    """Variables, none of which is there; `seen` once somebody has asked."""

    def __init__(self) -> None:
        self.seen = False

    def __getitem__(self, name: str) -> object:
        self.seen = True
        raise KeyError(name)

    def get(self, name: str, default: object = None) -> object:
        self.seen = True
        return default

    def __contains__(self, name: object) -> bool:
        self.seen = True
        return False

    def __iter__(self) -> Iterator[str]:
        self.seen = True
        return iter(())

    def __len__(self) -> int:
        return 0


def constant(condition: Expression) -> bool | None:
    """Whether the condition always or never holds; None where that depends on something, or cannot be told."""
    from gobpm_ray.expressions import compile_expression

    answers = []
    for moment in _MOMENTS:
        watched = _Watched()
        try:
            answers.append(compile_expression(condition.text, condition.language).evaluate(watched, moment))
        except GobpmError:
            return None
        if watched.seen:
            return None
    if answers[0] != answers[1] or not (answers[0] is None or isinstance(answers[0], bool)):
        return None
    return bool(answers[0])
