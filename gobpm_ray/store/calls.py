"""What every call of the store has in common: redis-py's exceptions do not come out of it. It knows no key."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

import redis

from gobpm_ray.store.connection import translate

P = ParamSpec("P")
R = TypeVar("R")


def store_call(method: Callable[P, R]) -> Callable[P, R]:
    """Redis' own exceptions end here: callers see StoreUnavailable or StoreRefused."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (redis.RedisError, OSError) as error:
            raise translate(error) from error

    return call


class Later(Generic[R]):
    """Implements `gobpm_ray.runtime.ports.Answer`: what is read from replies that will stand in the thread's
    connection."""

    def __init__(self, read: Callable[[], R]) -> None:
        self._read = read

    @store_call
    def result(self) -> R:
        return self._read()
