"""How an event definition becomes a wait: a deadline computed once, or a canonical key evaluated once (promise 6).

The holder is the token that stands at the event or in the activity that the event guards, or, for the start event of an
event sub-process, the scope itself. Errors, escalations, compensations, cancels and links arm nothing (D13): who throws
looks for who catches (`gobpm_ray.core.propagation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gobpm_ray.calendar.timers import TimerArm, arm_timer, rearm
from gobpm_ray.core.conditions import holds
from gobpm_ray.core.correlation import key_to_send_by, keys_to_wait_by
from gobpm_ray.core.faults import INVALID_KEY, Fault
from gobpm_ray.core.keys import message_key
from gobpm_ray.core.operands import Conditional, Message, Signal, Timer
from gobpm_ray.core.state import SCOPE_OWNER, ArmedWait, Scope, Track, parse_wait_id, wait_id
from gobpm_ray.core.variables import visible, visible_in
from gobpm_ray.errors import InvalidPayload

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run


def arm_definitions(
    run: Run,
    holder: Track | Scope,
    node: ProgramNode,
    group: str = "",
    *,
    repeat: bool = False,
    visit: int = 0,
    occurrence: int = 0,
    met: int = -1,
) -> bool:
    """Every event definition of `node`, but the one that was `met` already, is armed for the holder; a scope says in
    which `visit`. False: a timer among them has no occurrence (R0)."""
    if isinstance(holder, Track):
        owner, visit = holder.id, holder.visit
    else:
        owner = SCOPE_OWNER + holder.id
    if node.gathers:
        # One of several that must all occur ends neither its siblings nor the activity, and is needed once.
        group, repeat = "", False
    fires = True
    for index, definition in enumerate(node.definitions):
        if index == met:
            continue
        wait = wait_id(owner, node.id, index, visit, occurrence)
        if isinstance(definition, Timer):
            value = run.evaluate(definition.value, seen_by(run, holder), f"timer of '{node.id}'")
            timer = arm_timer(definition.kind, value, run.now)
            if timer is None:
                fires = False
                continue
            run.arm(holder, node.id, wait, timer_wait(timer), group)
        elif isinstance(definition, Message):
            if not definition.properties:
                key = key_of(run, holder, definition)
                run.arm(holder, node.id, wait, ArmedWait("message", key=key), group, repeat)
                continue
            keys = keys_to_wait_by(run, seen_by(run, holder), node, definition)
            if not keys:
                run.arm(holder, node.id, wait, ArmedWait("unkeyed"), group, repeat)
                continue
            if node.gathers:
                del keys[1:]  # each wait of such a node is one thing that must occur
            races = group if group or repeat or len(keys) == 1 else f"{owner}:{visit}:{node.id}"
            for number, key in enumerate(keys):
                alias = wait_id(owner, node.id, f"{index}+{number}" if number else index, visit, occurrence)
                run.arm(holder, node.id, alias, ArmedWait("message", key=key), races, repeat)
        elif isinstance(definition, Signal):
            run.arm(holder, node.id, wait, ArmedWait("signal", key=definition.key), group, repeat)
        elif isinstance(definition, Conditional):
            # Armed as false: true already, it fires before another token moves.
            run.stale = holds(run, node, definition, seen_by(run, holder)) or run.stale
            run.arm(holder, node.id, wait, ArmedWait("conditional"), group, repeat)
    return fires


def arm_next(run: Run, holder: Track | Scope, node: ProgramNode, wait: str) -> None:
    """The timer that has fired is withdrawn; if it is a cycle's, the next occurrence is armed as a wait of its own in
    the same step. A duration or date never repeats (T41)."""
    fired = holder.waits[wait]
    run.withdraw(holder, (wait,))
    following = rearm(fired.cycle, fired.anchor, fired.index, run.now) if fired.cycle else None
    if following is not None:
        owner, _, index, visit = parse_wait_id(wait)
        armed_in = int(visit.partition("#")[0])
        again = wait_id(owner, node.id, index, armed_in, following.index)
        run.arm(holder, node.id, again, timer_wait(following))


def rearm_rivals(run: Run, track: Track, node: ProgramNode) -> None:
    """The delivery of a failure, or of an error, took the activity's whole race group with it, yet the activity goes
    on: its interrupting boundaries are held again, as new waits with the deadlines and keys that they had."""
    run.number_visit(track)
    for wait, armed in list(track.waits.items()):
        _, boundary, index, _ = parse_wait_id(wait)
        if boundary in node.rivals:
            run.withdraw(track, (wait,))
            again = wait_id(track.id, boundary, index, track.visit)
            run.arm(track, boundary, again, armed, f"{track.id}:{track.visit}")


def occurred(
    run: Run, holder: Track | Scope, node: ProgramNode, wait: str, values: dict[str, object]
) -> dict[str, object] | None:
    """What the event brings, now that this wait is met; None while a parallel multiple event needs others yet."""
    if not node.gathers:
        return values
    gathered = {**(holder.waits[wait].gathered or {}), **values}
    rest = [other for other in holder.waits if other != wait and parse_wait_id(other)[1] == node.id]
    run.withdraw(holder, (wait,))
    for other in rest:
        holder.waits[other].gathered = gathered
    return None if rest else gathered


def seen_by(run: Run, holder: Track | Scope) -> Mapping[str, object]:
    return visible(run.state, holder) if isinstance(holder, Track) else visible_in(run.state, holder.id)


def timer_wait(timer: TimerArm) -> ArmedWait:
    return ArmedWait(
        "timer",
        deadline=timer.deadline_ms,
        cycle=timer.cycle_text or "",
        anchor=timer.anchor_ms,
        index=timer.index,
    )


def key_of(run: Run, holder: Track | Scope, message: Message) -> str:
    """The message's canonical key in the holder's scope: the same for the one who waits and the one who throws (N3)."""
    if message.properties:
        return key_to_send_by(run, seen_by(run, holder), message)
    if message.key is None:
        return message.plain
    use = f"correlation key of message '{message.name}'"
    value = run.evaluate(message.key, seen_by(run, holder), use)
    if value is None or value == "":
        # Not "by name alone": that would take messages that are meant for others.
        raise Fault(INVALID_KEY, f"{use}, {message.key.text!r}, is {'null' if value is None else 'empty'}")
    try:
        return message_key(message.name, value)
    except InvalidPayload as error:
        raise Fault(INVALID_KEY, f"{use}, {message.key.text!r}: {error}") from error
