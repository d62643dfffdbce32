"""Backpressure as every store says it: what is refused, by which setting, and that nothing was stored."""

from __future__ import annotations

from gobpm_ray.errors import LimitReached
from gobpm_ray.settings import Settings


def full(what: str, setting: str, why: str) -> LimitReached:
    """The refusal of a delivery that would pass a limit."""
    return LimitReached(f"{what}: refused, {why} (limit: {setting}); try again later")


def checked_payload(payload: bytes, settings: Settings, what: str) -> None:
    """LimitReached for a payload that is too large to be carried through every step of an instance."""
    if len(payload) > settings.max_payload:
        raise LimitReached(
            f"{what}: refused, its payload has {len(payload)} bytes, the limit is {settings.max_payload} "
            "(max_payload); keep large values elsewhere and send their address"
        )


def checked_data(value: bytes, settings: Settings, name: str) -> None:
    """LimitReached for a value that is too large to be a data store's."""
    if len(value) > settings.max_variable > 0:
        raise LimitReached(
            f"data store {name!r}: refused, its value has {len(value)} bytes, the limit is {settings.max_variable} "
            "(max_variable); keep it elsewhere and its address here"
        )


def checked_result(encoded: bytes, most: int, node: str) -> None:
    """LimitReached for a result that is too large to be a variable."""
    if len(encoded) > most:
        raise LimitReached(
            f"result of '{node}': it has {len(encoded)} bytes, the limit is {most} (max_variable); map what is needed "
            "of it to outputs, or keep it elsewhere and return its address"
        )
