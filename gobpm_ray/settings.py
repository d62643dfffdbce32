"""Every tunable of the engine in one frozen value; it knows the defaults and nothing about who uses them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from gobpm_ray.errors import InvalidSetting

SECOND = 1_000
"""Milliseconds in a second: every duration in the engine is an int of milliseconds."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Engine-wide defaults, validated when built (NFR-2). Durations are milliseconds."""

    engine_id: str = "main"
    """Names this engine's keys, holders and actors; two ids on one store do not see each other."""
    lease_ttl_ms: int = 10 * SECOND
    lease_renew_ms: int = 3 * SECOND
    holder_tick_ms: int = 1 * SECOND
    reconcile_ms: int = 300 * SECOND
    wake_backoff_ms: int = 5 * SECOND
    linger_ms: int = 2 * SECOND
    grace_ms: int = 30 * SECOND
    dehydration_threshold_ms: int = 30 * SECOND
    """A timer nearer than this keeps its instance resident (D2, X16)."""
    message_ttl_ms: int = 86_400 * SECOND
    dedup_window_ms: int = 86_400 * SECOND
    retention_ms: int = 86_400 * SECOND
    retention_count: int = 100_000
    history_limit: int = 200
    facts_limit: int = 100_000
    max_handovers: int = 100_000
    """Instances that one actor hosts before it is replaced (docs/adr/0006)."""
    max_resident: int = 64
    spares: int = 0
    """Actors kept alive and free, so that the first wake does not pay for an actor's creation."""
    hand_over: bool = True
    """False: every release ends its actor instead of handing it the next ready instance."""
    claim_ahead: int = 12
    """Instances that an actor takes in hand, to run them while the commits of its last ones are on their way, at most
    and no more than half of those that are ready; 0: none (docs/adr/0009)."""
    park_at_start: bool = True
    """Instances that are started in bulk and wait after their first leg are written as waiting by their client, and no
    actor sees them before they are woken (docs/adr/0010)."""
    claim_triggers: int = 256
    """Triggers that one claim hands out and one commit consumes, at most."""
    whole_parts: int = 64
    """A claim returns every part of an instance with at most this many fields, else only those its triggers touch."""
    max_pending: int = 1_000_000
    """Backpressure: messages and signals accepted and not folded, and instances ready and not claimed; beyond, new ones
    are refused as LimitReached."""
    max_inbox: int = 10_000
    """Triggers that one instance holds unconsumed; beyond, operators are refused and its messages stay pending."""
    max_payload: int = 1_048_576
    """Bytes of one delivery's payload."""
    max_silent_deaths: int = 3
    """Hosts that may die over an instance without a commit in between; then it is held as an incident (N9).
    0: never."""
    resource_patience_ms: int = 300 * SECOND
    """How long a Ray task may ask for what no node of the cluster has before it becomes an incident; that it does is
    told at once. Long enough for an autoscaler to add a node. 0: an incident at once."""
    auto_complete: bool = False
    """Complete service and send tasks that have no registered callable at once, with a warning (`simulate`, `run`)."""
    retries: str = "none"
    """How often a failed attempt of a service or send task is repeated that has no policy of its own
    (`gobpm_ray.calendar.retries`)."""
    strict_tasks: bool = False
    """A user completes only a task that was claimed, unless the completion itself says otherwise."""
    release_jobs: bool = False
    """A worker's job does not keep its instance resident, not even while there is room (D12)."""
    max_variable: int = 1_048_576
    """Bytes of one result, or of one value that an expression makes a variable."""
    max_instance: int = 33_554_432
    """Bytes of one instance's checkpoint; one that would grow beyond is held, with what woke it unconsumed."""
    max_call_depth: int = 100
    """Called instances may call others down to this depth: a process that calls itself is stopped in an incident."""
    incident_stacks: bool = True
    """Keep where in the code an attempt failed, for its incident; secrets are hidden in it either way."""
    max_advance_steps: int = 10_000
    """Flow nodes that one step may pass before it is stopped as an endless loop without a wait."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise InvalidSetting(f"setting {field.name}={value!r}: expected a whole number of at least 0")
        if not self.engine_id or any(c in self.engine_id for c in "{}:\n\x1f "):
            raise InvalidSetting(
                f"setting engine_id={self.engine_id!r}: expected a name without spaces, colons or braces"
            )
        if self.lease_renew_ms * 2 > self.lease_ttl_ms:
            raise InvalidSetting(
                "setting lease_renew_ms: expected at most half of lease_ttl_ms, or a late renewal loses the lease"
            )

    def __reduce__(self) -> tuple[Callable[..., Settings], tuple[dict[str, object]]]:
        """By name: an actor that lives may hand its settings to one whose process has a newer release loaded, in which
        another field stands at each place."""
        return _restored, ({field.name: getattr(self, field.name) for field in fields(self)},)


def _restored(values: dict[str, object]) -> Settings:
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in values.items() if name in known})  # type: ignore[arg-type]
