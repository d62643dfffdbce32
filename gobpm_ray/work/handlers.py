"""What a worker does for a topic: a function, how many at once, and for how long it may keep a job to itself.

The decorator leaves the function as it is, so that it can be called and tested like any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from gobpm_ray.engine.amounts import Span, after
from gobpm_ray.errors import InputError

Work = Callable[..., object | Awaitable[object]]
"""fn(inputs) -> outputs, or fn(inputs, context) -> outputs; sync or async. No table of outputs: one named `result`."""

F = TypeVar("F", bound=Work)


@dataclass(frozen=True, slots=True)
class Handler:
    topic: str
    work: Work
    concurrency: int = 4
    lock: Span = "PT1M"
    """Extended while the function runs, so it only says how soon others may have the job of a worker that died."""
    retries: int | None = None
    """Further attempts after a failure; None: the element's own policy."""
    backoff: Span | None = None

    @property
    def lock_ms(self) -> int:
        return after(0, self.lock)

    @property
    def takes_context(self) -> bool:
        return len(inspect.signature(self.work).parameters) > 1

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.work)


HANDLERS: dict[str, Handler] = {}
"""Everything decorated in this program, by topic."""


def worker(
    topic: str,
    *,
    concurrency: int = 4,
    lock: Span = "PT1M",
    retries: int | None = None,
    backoff: Span | None = None,
) -> Callable[[F], F]:
    """The decorated function does the jobs of this topic in every `Worker` of this program without handlers of its own.

    @worker("bill", concurrency=8, lock="PT30S")
    def bill(inputs):
        return {"invoice": make_invoice(inputs["order"])}
    """

    def decorate(work: F) -> F:
        if topic in HANDLERS and HANDLERS[topic].work is not work:
            raise InputError(f"worker: topic '{topic}' has a handler already: {HANDLERS[topic].work}")
        HANDLERS[topic] = checked(Handler(topic, work, concurrency, lock, retries, backoff))
        return work

    return decorate


def checked(handler: Handler) -> Handler:
    """The handler; InputError for one that could never work."""
    if not handler.topic:
        raise InputError("worker: expected a topic")
    if handler.concurrency < 1:
        raise InputError(f"worker '{handler.topic}': concurrency {handler.concurrency}: expected at least 1")
    if handler.lock_ms < 100:
        raise InputError(f"worker '{handler.topic}': a lock of {handler.lock!r} ends before anything can be done")
    return handler
