"""Reliability signals of one process: counted, never stored, no fact of any instance (N7, N12)."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Counters:
    """Each field is only ever raised, by the one who sees it happen."""

    claims: int = 0
    commits: int = 0
    retried: int = 0
    """Commits or reads repeated because the store did not answer."""
    hydrated: int = 0
    dehydrated: int = 0
    handed_over: int = 0
    """Claims that a commit gave back in the same call."""
    ahead: int = 0
    """Instances that were run while the commit of the one before was on its way."""
    given_back: int = 0
    """Claims taken ahead and not begun, because the instance before them needed time."""
    suspended_without_wake: int = 0
    """Claims that found nothing to do (N7)."""
    fenced: int = 0
    """Leases lost to the sweep or a rival: nothing was written after it."""
    abandoned: int = 0
    """Failed wakes that kept their hold (D18)."""
    held: int = 0
    """Instances that were held as incidents because their hosts had died silently too often (N9)."""
    sealed: int = 0
    """Attempts that a dead host left open and that must not be repeated (N10)."""
    reloaded: int = 0
    """Steps that needed more of the instance than its triggers touch."""
    effects: int = 0
    discarded: int = 0
    """Effects whose result no longer mattered when it came."""
    stale_requeued: int = 0
    """Expired leases that went back to ready (N9)."""
    lacking: int = 0
    """Effects that cannot begin because no node of the cluster has what they ask for."""
    timers_fired: int = 0
    folded: int = 0
    parked: int = 0
    """Messages that nobody waited for when they were folded."""
    refused: int = 0
    """Rows set aside as dead letters for what they say, poison included (H6)."""
    expired: int = 0
    """Parked messages, ended instances and tombstones past their time."""
    repaired: int = 0
    """Dropped wakes that the slow walk found (C69)."""

    def as_dict(self) -> dict[str, int]:
        return asdict(self)
