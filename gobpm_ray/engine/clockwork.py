"""Time as a caller moves it: when nothing moves any more, and how a manual clock goes from deadline to deadline
(design section 5)."""

from __future__ import annotations

from gobpm_ray.engine.amounts import Moment, Span, after, moment
from gobpm_ray.engine.shapes import Shapes
from gobpm_ray.errors import InputError, LimitReached
from gobpm_ray.runtime.ports import Quiet

QUIET_TIMEOUT_S = 60.0


class Clockwork(Shapes):
    """See the module's docstring."""

    def wait_quiet(self, timeout: float = QUIET_TIMEOUT_S) -> Quiet:
        """Return when nothing is pending, due, ready or in work; NotInTime after `timeout` seconds of real time."""
        self._settle()
        last = self.store.quiet()

        def quiet() -> bool:
            nonlocal last
            # An engine in this process tries a failed wake again only when somebody drives it.
            self._settle()
            last = self.store.quiet()
            return last.quiet

        if not last.quiet:
            self._poll(quiet, timeout, "engine: waited for it to be quiet")
        return last

    def advance(
        self,
        by: Span | None = None,
        *,
        to: Moment | None = None,
        max_jumps: int | None = None,
        timeout: float = QUIET_TIMEOUT_S,
    ) -> int:
        """Move the manual clock by a span or to a moment, never back, and return the business time then.

        Time goes from one deadline to the next: each fires at its own time and all that it causes has happened before
        the clock moves on, so what falls due on the way does so in order. LimitReached after `max_jumps` deadlines
        (the time reached stays), `timeout` is the patience for one jump."""
        if (by is None) == (to is None):
            raise InputError("advance: expected either a span or a moment")
        now = self.now()
        target = after(now, by) if by is not None else moment(to) if to is not None else now
        jumps = 0
        while (following := self.wait_quiet(timeout).next_deadline) is not None and following <= target:
            jumps += 1
            if max_jumps is not None and jumps > max_jumps:
                raise LimitReached(f"advance: more than {max_jumps} deadlines on the way")
            self._set_clock(following)
        self._set_clock(target)
        return self.wait_quiet(timeout).now

    def next_deadline(self, timeout: float = QUIET_TIMEOUT_S) -> int | None:
        """When the engine is quiet: the earliest deadline that is armed."""
        return self.wait_quiet(timeout).next_deadline

    def _set_clock(self, now_ms: int) -> None:
        self.store.set_clock(now_ms)
        self._settle()
