"""How an event definition becomes a wait: a deadline computed once, or a canonical key evaluated once (promise 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.calendar.timers import TimerArm, arm_timer
from gobpm_ray.core.faults import INVALID_KEY, Fault
from gobpm_ray.core.keys import message_key
from gobpm_ray.core.operands import Message, Signal, Timer
from gobpm_ray.core.state import ArmedWait, Track, wait_id
from gobpm_ray.core.variables import visible
from gobpm_ray.errors import BrokenInvariant, InvalidPayload

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run


def arm_definitions(run: Run, track: Track, node: ProgramNode, group: str = "", *, repeat: bool = False) -> bool:
    """Every event definition of `node` is armed for the token. False: a timer among them has no occurrence (R0)."""
    fires = True
    for index, definition in enumerate(node.definitions):
        wait = wait_id(track.id, node.id, index, track.visit)
        if isinstance(definition, Timer):
            value = run.evaluate(definition.value, visible(run.state, track), f"timer of '{node.id}'")
            timer = arm_timer(definition.kind, value, run.now)
            if timer is None:
                fires = False
                continue
            run.arm(track, node.id, wait, timer_wait(timer), group)
        elif isinstance(definition, Message):
            key = key_of(run, track, definition)
            run.arm(track, node.id, wait, ArmedWait("message", key=key), group, repeat)
        elif isinstance(definition, Signal):
            run.arm(track, node.id, wait, ArmedWait("signal", key=definition.key), group, repeat)
        else:
            raise BrokenInvariant(f"{node.element.type} '{node.id}' cannot wait for {type(definition).__name__}")
    return fires


def timer_wait(timer: TimerArm) -> ArmedWait:
    return ArmedWait(
        "timer",
        deadline=timer.deadline_ms,
        cycle=timer.cycle_text or "",
        anchor=timer.anchor_ms,
        index=timer.index,
    )


def key_of(run: Run, track: Track, message: Message) -> str:
    """The message's canonical key in the token's scope: the same for the one who waits and the one who throws (N3)."""
    if message.key is None:
        return message.plain
    use = f"correlation key of message '{message.name}'"
    value = run.evaluate(message.key, visible(run.state, track), use)
    if value is None or value == "":
        # Not "by name alone": that would take messages that are meant for others.
        raise Fault(INVALID_KEY, f"{use}, {message.key.text!r}, is {'null' if value is None else 'empty'}")
    try:
        return message_key(message.name, value)
    except InvalidPayload as error:
        raise Fault(INVALID_KEY, f"{use}, {message.key.text!r}: {error}") from error
