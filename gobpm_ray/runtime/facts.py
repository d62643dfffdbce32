"""What a step tells the world: one fact per transition, names and counts only, never a payload (D14).

Facts: `Started`, `Hydrated`, `Dehydrated`, `Incident`, `Lacking`, `Overtaken`, `Stored`, `Completed`, `Terminated`. It
reads steps and states and refuses to know where facts go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gobpm_ray.checkpoint.rows import fact
from gobpm_ray.core.state import InstanceState
from gobpm_ray.core.step import Step
from gobpm_ray.runtime.ports import TriggerRow


def arrival(
    state: InstanceState, rows: Sequence[TriggerRow], now: int, otherwise: str, *, fresh: bool, outcome: str
) -> bytes:
    """The first fact of a hosting: the instance began, or it was hydrated, by what (`otherwise`: by no trigger) and for
    which track."""
    if fresh:
        return fact("Started", state.id, state.process_id, now)
    first = rows[0] if rows else None
    return fact(
        "Hydrated",
        state.id,
        state.process_id,
        now,
        trigger=otherwise if first is None else first.kind,
        track="" if first is None else first.wait.partition(":")[0],
        triggers=len(rows),
        outcome=outcome or "continued",
    )


def departure(state: InstanceState, now: int) -> bytes:
    """The instance is released: what it waits for, and that nothing of it holds an actor.

    Of a partial state only what was loaded is counted, and `partial` says so."""
    kinds = Counter(wait.kind for holder in state.holders() for wait in holder.waits.values())
    extra: dict[str, int] = {} if state.complete else {"partial": 1}
    return fact(
        "Dehydrated",
        state.id,
        state.process_id,
        now,
        kinds=sorted(kinds),
        waits=kinds.total(),
        tracks=len(state.tracks),
        actors=0,
        **extra,
    )


def happened(step: Step, now: int) -> Iterator[bytes]:
    """What else the step did that somebody may wait to hear."""
    state = step.state
    for entry in step.history:
        if entry.event == "lacking":
            yield fact("Lacking", state.id, state.process_id, now, node=entry.node, what=entry.detail)
        if entry.event == "incident":
            yield fact("Incident", state.id, state.process_id, now, node=entry.node)
        elif entry.event == "stored":
            yield fact("Stored", state.id, state.process_id, now, node=entry.node, store=entry.detail)
    for trigger in step.overtaken:
        yield fact("Overtaken", state.id, state.process_id, now, trigger=trigger.kind, wait=trigger.wait)
    if step.outcome:
        yield fact(step.outcome.capitalize(), state.id, state.process_id, now)
