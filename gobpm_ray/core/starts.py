"""What a deployed process waits for before it has an instance: the start events of its root scope that need a trigger.

The waits are held for the process, not for an instance: `@:<start event>:<definition>:0`, and `#k` behind it for the
later occurrences of a cycle. A message or signal start stays armed (`repeat`); each match makes an instance.

A message start's key is its *name alone*, whatever correlation key the event declares: the key's expression reads an
instance's variables, and there is none yet. Routing therefore looks a message up under two canonical keys, its own and
`message_key(name)`: the first wakes a conversation, the second starts one (M50).
"""

from __future__ import annotations

from gobpm_ray.calendar.timers import arm_timer, rearm
from gobpm_ray.core.arming import timer_wait
from gobpm_ray.core.operands import Message, Signal, Timer
from gobpm_ray.core.program import Program
from gobpm_ray.core.state import ArmedWait, parse_wait_id, wait_id
from gobpm_ray.core.step import Arm
from gobpm_ray.errors import GobpmError, InvalidTimer

OWNER = "@"
"""Stands in the place of the track."""


def start_arms(program: Program, now_ms: int) -> list[tuple[Arm, ArmedWait]]:
    """The waits to hold when the process is deployed. InvalidTimer names a start event whose timer cannot be read; one
    that has no occurrence (R0) arms nothing."""
    armed = []
    for node_id in program.triggered:
        for index, definition in enumerate(program.nodes[node_id].definitions):
            wait = wait_id(OWNER, node_id, index, 0)
            if isinstance(definition, Timer):
                try:
                    timer = arm_timer(definition.kind, definition.value.evaluate({}, now_ms), now_ms)
                except GobpmError as error:
                    raise InvalidTimer(f"process '{program.id}', start event '{node_id}': {error}") from error
                if timer is not None:
                    armed.append(_held(wait, timer_wait(timer)))
            elif isinstance(definition, Message):
                armed.append(_held(wait, ArmedWait("message", key=definition.plain)))
            elif isinstance(definition, Signal):
                armed.append(_held(wait, ArmedWait("signal", key=definition.key)))
    return armed


def next_start_arm(wait: str, fired: ArmedWait, now_ms: int) -> tuple[Arm, ArmedWait] | None:
    """The wait that follows when a timer start has fired; None after a date, a duration or the last of a cycle."""
    following = rearm(fired.cycle, fired.anchor, fired.index, now_ms) if fired.cycle else None
    if following is None:
        return None
    _, node_id, index, _ = parse_wait_id(wait)
    return _held(wait_id(OWNER, node_id, index, 0, following.index), timer_wait(following))


def _held(wait: str, armed: ArmedWait) -> tuple[Arm, ArmedWait]:
    arm = Arm(
        wait=wait,
        kind=armed.kind,
        node=parse_wait_id(wait)[1],
        track=OWNER,
        scope="",
        depth=0,
        key=armed.key,
        deadline=armed.deadline,
        repeat=armed.kind != "timer",
    )
    return arm, armed
