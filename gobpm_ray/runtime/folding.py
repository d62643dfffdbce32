"""What one pass of a holder did, and what a driver may expect of a holder; nothing of messages, timers or threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)
class Outcome:
    """One pass, by value: counters come from successes only (H4)."""

    folded: int = 0
    """Rows that are done: delivered, parked, dropped, expired, fired."""
    woken: int = 0
    started: int = 0
    kept: int = 0
    """Rows left as they were because the circumstances were wrong: the next pass meets them again."""
    refused: int = 0
    """Rows whose content is wrong."""
    more: bool = False
    """The pass ended at its own bound, not at the end of the work."""
    next_deadline: int | None = None
    """The earliest deadline that is not due yet; TimerHolder only."""
    now: int = 0
    """Business time as the pass read it; 0: it did not."""
    behind: int = 0
    """Rows that had waited too long before this pass began (H7)."""

    @property
    def moved(self) -> bool:
        return self.folded > 0


class Pass(Protocol):
    """A holder as its caller sees it."""

    def pass_once(self) -> Outcome:
        """Fold what there is, waiting for nothing; always ends."""
