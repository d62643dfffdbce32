"""What has been carried out although its sender asks for the answer later: for stores with no way to wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from gobpm_ray.errors import GobpmError

A = TypeVar("A")
R = TypeVar("R")


class CarriedOut(Generic[R]):
    """Implements `gobpm_ray.runtime.ports.Answer`: done at once, told when asked."""

    def __init__(self, carry_out: Callable[[A], R], what: A) -> None:
        self._answer: R | None = None
        self._refusal: GobpmError | None = None
        try:
            self._answer = carry_out(what)
        except GobpmError as refusal:
            self._refusal = refusal

    def result(self) -> R:
        if self._answer is None:
            assert self._refusal is not None  # noqa: S101 - one of the two came of it
            raise self._refusal
        return self._answer
