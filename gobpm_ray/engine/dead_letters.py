"""Dead letters as people see them: what was accepted, and why it reached nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gobpm_ray.checkpoint.rows import shown_payload
from gobpm_ray.core.keys import PROPERTY
from gobpm_ray.runtime.ports import DeadRow

_SEPARATOR = "\x1f"
_AGAIN = "~"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One message or signal that was set aside; `id` names it for `replay` and `drop`."""

    id: str
    kind: Literal["message", "signal"]
    name: str
    key: str
    """The correlation key; '' for one that is correlated by name alone."""
    reason: str
    at_ms: int
    accepted_ms: int
    payload: str


def dead_letter(row: DeadRow) -> DeadLetter:
    key = row.key.rpartition(_SEPARATOR)[2].partition(PROPERTY)[0].removeprefix("=")
    payload = shown_payload(row.payload)
    return DeadLetter(row.id, row.kind, row.name, key, row.reason, row.at, row.accepted, payload)


def replayed_id(delivery_id: str) -> str:
    """`d`, `d~1`, `d~2`: each replay is a delivery of its own, and the first one's id can still be told."""
    first, again, number = delivery_id.rpartition(_AGAIN)
    if again and number.isdigit():
        return f"{first}{_AGAIN}{int(number) + 1}"
    return f"{delivery_id}{_AGAIN}1"
