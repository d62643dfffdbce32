"""From a step to its one commit: rows for what it arms, sends and returns, bytes for the parts that it changed.

It knows both sides of the translation and decides nothing: residency, consumption and identity are given to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gobpm_ray.checkpoint import rows
from gobpm_ray.checkpoint.parts import encode_part
from gobpm_ray.core.advance import touched
from gobpm_ray.core.keys import learnt_text, together_text
from gobpm_ray.core.state import InstanceState, TrackState
from gobpm_ray.core.step import Arm, Send, Step, Trigger
from gobpm_ray.errors import BrokenInvariant
from gobpm_ray.runtime.ports import ArmRow, Commit, SendRow, TriggerRow


@dataclass(slots=True)
class Working:
    """Open effects of the whole instance, kept in its head: by it the claimer of a few parts of a wide instance learns
    that other parts need recovery. `stored` is what the head in the store says."""

    total: int = 0
    loaded: int = 0
    """Of them, in tracks that are here."""
    stored: int = 0

    @classmethod
    def of(cls, state: InstanceState, stored: int) -> Working:
        return cls(stored, _working(state), stored)

    @property
    def elsewhere(self) -> bool:
        return self.total > self.loaded

    def recount(self, state: InstanceState) -> None:
        now = _working(state)
        self.total += now - self.loaded
        self.loaded = now


def _working(state: InstanceState) -> int:
    return sum(track.state is TrackState.WORKING for track in state.tracks.values())


@dataclass(slots=True)
class Draft:
    """A commit in the making: what the step wants, before the decision what becomes of the lease."""

    parts: dict[str, bytes] = field(default_factory=dict)
    removed: Sequence[str] = ()
    returned: Sequence[TriggerRow] = ()
    arms: Sequence[ArmRow] = ()
    sends: Sequence[SendRow] = ()
    history: Sequence[bytes] = ()


def draft(step: Step, working: Working, inbox: Sequence[TriggerRow], message_ttl: int) -> Draft:
    """The step in rows and bytes. UnstorableValue when a variable has no durable form."""
    state = step.state
    if step.outcome:
        working.total = working.loaded = 0
    elif step.calls or working.total:
        working.recount(state)
    changed = step.changed if working.total == working.stored else step.changed | {"h"}
    return Draft(
        parts={name: encode_part(state, name, working.total) for name in changed},
        removed=sorted(step.removed),
        returned=_returned(step.overtaken, inbox) if step.overtaken else (),
        arms=[arm_row(arm, state) for arm in step.arms],
        sends=[send_row(send, message_ttl) for send in step.sends],
        history=[rows.history_entry(entry) for entry in step.history],
    )


def fill(commit: Commit, draft: Draft, step: Step) -> None:
    commit.parts = draft.parts
    commit.removed = draft.removed
    commit.returned = draft.returned
    commit.arms = draft.arms
    commit.withdrawals = step.withdrawals
    commit.sends = draft.sends
    commit.history = draft.history
    commit.outcome = step.outcome
    if step.learnt:
        commit.learnt = learnt_text(step.state.head.keys)


def trigger_of(row: TriggerRow) -> Trigger:
    return rows.trigger(row.id, row.kind, row.wait, row.seq, row.payload, row.key)


def triggers_of(inbox: Iterable[TriggerRow]) -> list[Trigger]:
    return [trigger_of(row) for row in inbox]


def arm_row(arm: Arm, state: InstanceState | None = None) -> ArmRow:
    """The row of an instance's wait; without a state, of a process's start event."""
    holder = state.holder(arm.track) if state is not None else None
    return ArmRow(
        wait=arm.wait,
        kind=arm.kind,
        node=arm.node,
        key=arm.key,
        deadline=arm.deadline or 0,
        group=arm.group,
        repeat=arm.repeat,
        joins=arm.joins,
        depth=arm.depth,
        touch=touched(state, holder) if state is not None and holder is not None else (),
        row=together_text(arm.together) if arm.task is None else rows.task_row(arm.task, f"task '{arm.node}'"),
    )


def send_row(send: Send, message_ttl: int) -> SendRow:
    where = f"{send.kind} {send.name or send.process or send.to}"
    return SendRow(
        send.id,
        send.kind,
        send.key,
        send.name,
        rows.payload(send.values, cause=send.cause, code=send.code, where=where),
        message_ttl if send.ttl is None else send.ttl,
        send.to,
        send.wait,
        send.process,
        send.version,
        send.business_key,
    )


def _returned(overtaken: Sequence[Trigger], inbox: Sequence[TriggerRow]) -> list[TriggerRow]:
    """Messages go back to routing as they came; a broadcast may have left one id for two waits."""
    by_name = {(row.id, row.wait): row for row in inbox}
    found = []
    for trigger in overtaken:
        if trigger.kind == "message":
            row = by_name.get((trigger.id, trigger.wait))
            if row is None:
                raise BrokenInvariant(f"trigger {trigger.id} was overtaken and is not in the inbox")
            found.append(row)
    return found
