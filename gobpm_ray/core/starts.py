"""What a deployed process waits for before it has an instance: the start events of its root scope that need a trigger.

The waits are held for the process, not for an instance: `@:<start event>:<definition>:0`, and `#k` behind it for the
later occurrences of a cycle. A message or signal start stays armed (`repeat`); each match makes an instance.

A message start's key is its *name alone*, whatever correlation key the event declares: the key's expression reads an
instance's variables, and there is none yet. Routing therefore looks a message up under two canonical keys, its own and
`message_key(name)`: the first wakes a conversation, the second starts one (M50).

Where several messages must all come (a parallel multiple start event, the arms of a parallel event-based gateway), each
of them starts the instance, which waits for the others. The wait of such a start event says which one it is for
(`event#index`): the instance must not wait for that one again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from gobpm_ray.calendar.timers import arm_timer, rearm
from gobpm_ray.core.arming import timer_wait
from gobpm_ray.core.operands import Message, Signal, Timer
from gobpm_ray.core.program import Program
from gobpm_ray.core.state import ArmedWait, parse_wait_id, wait_id
from gobpm_ray.core.step import Arm
from gobpm_ray.errors import GobpmError, InvalidTimer
from gobpm_ray.model.elements import EventBasedGateway

OWNER = "@"
"""Stands in the place of the track."""
NUMBER = "#"
"""Before the index of the definition that a parallel multiple start event was begun by."""


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
                held, waiting = _held(wait, ArmedWait("message", key=definition.plain))
                named = f"{node_id}{NUMBER}{index}" if program.nodes[node_id].gathers else node_id
                armed.append((replace(held, node=named, together=_together(program, node_id, definition)), waiting))
            elif isinstance(definition, Signal):
                armed.append(_held(wait, ArmedWait("signal", key=definition.key)))
    return armed


def begun_at(program: Program, named: str) -> tuple[str, int]:
    """The start event (or arm, or task) and the index of its definition that a start trigger names; -1: any of them."""
    if named in program.nodes:
        return named, -1
    node_id, _, index = named.rpartition(NUMBER)
    return node_id, int(index)


def _together(program: Program, node_id: str, definition: Message) -> tuple[str, ...]:
    """The names of the other messages that the instance will wait for."""
    node = program.nodes[node_id]
    gateway = program.instantiating.get(node_id, "")
    if node.gathers:
        nodes = [node]
    elif gateway and cast(EventBasedGateway, program.nodes[gateway].element).parallel:
        nodes = [program.nodes[flow.target] for flow in program.nodes[gateway].outgoing]
    else:
        return ()
    names = (each.name for one in nodes for each in one.definitions if isinstance(each, Message))
    return tuple(dict.fromkeys(name for name in names if name != definition.name))


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
