"""Call activities: another process, run as an instance of its own; here the token waits for its end.

The called instance is started inside the commit that arms the wait for it, and answers this wait when it ends
(`gobpm_ray.core.calling`); so a caller that only waits is released like any other (X14). Its id says who calls, from
where and for which time: `instance:track:node:visit`. A token that is taken away from its call cancels what it
called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.core.arming import rearm_rivals
from gobpm_ray.core.calling import TERMINATED
from gobpm_ray.core.faults import FAILURE, INVALID_CALL, Fault
from gobpm_ray.core.keys import key_text
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.propagation import throw_error, throw_escalation, uncaught
from gobpm_ray.core.state import ArmedWait, TrackState, parse_wait_id, wait_id
from gobpm_ray.core.step import Send
from gobpm_ray.core.variables import merged, visible
from gobpm_ray.errors import InvalidPayload
from gobpm_ray.model.elements import CallActivity

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track
    from gobpm_ray.core.step import Trigger


class Call(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        process = _text(run, track, node, "called", "called process")
        if not process:
            raise Fault(INVALID_CALL, f"'{node.id}' calls no process: {node.operands['called'].text!r} gives nothing")
        track.state = TrackState.WAITING
        wait = wait_id(track.id, node.id, 0, track.visit)
        run.arm(track, node.id, wait, ArmedWait("child"), run.race_group(track, node))
        child = _child(run, track, wait)
        run.step.sends.append(
            Send(
                child,
                "start",
                values=_given(run, track, node),
                to=child,
                wait=wait,
                process=process,
                version=_version(node),
                business_key=_text(run, track, node, "business_key", "business key"),
            )
        )

    def fire(self, run: Run, track: Track, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        track.wakes += 1
        run.changed.add(f"t{track.id}")
        if trigger.kind == "escalation":
            throw_escalation(run, track, trigger.code, trigger.values)
            return
        if trigger.kind == "failed":
            run.withdraw(track, (wait,))
            rearm_rivals(run, track, node)
            run.incident(track, trigger.cause or f"'{node.id}': nothing could be called", FAILURE)
        elif trigger.code:
            run.withdraw(track, (wait,))
            rearm_rivals(run, track, node)
            if not throw_error(run, track, trigger.code, trigger.values, trigger.cause):
                run.incident(track, uncaught(node, trigger.code, trigger.cause), FAILURE)
        elif trigger.cause == TERMINATED:
            child = _child(run, track, wait)
            run.withdraw(track, (wait,))
            rearm_rivals(run, track, node)
            run.incident(track, f"the called instance '{child}' was cancelled", FAILURE)
        else:
            takes = node.outputs or cast(CallActivity, node.element).propagate
            run.complete(track, node, trigger.values if takes else {})

    def interrupt(self, run: Run, track: Track, node: ProgramNode) -> None:
        for wait, armed in track.waits.items():
            if armed.kind != "child":
                continue
            child = _child(run, track, wait)
            sends = run.step.sends
            called = next((send for send in sends if send.kind == "start" and send.to == child), None)
            if called is None:
                sends.append(Send(f"{child}:cancel", "cancel", to=child))
            else:
                sends.remove(called)  # in this very step: it never was

    def dehydratable(self, park: Park) -> bool:
        return park.far()


def _child(run: Run, track: Track, wait: str) -> str:
    """The id of the instance that was called for this wait. A '/' would end an instance's id in a task's id."""
    _, node, _, visit = parse_wait_id(wait)
    return f"{run.state.id}:{track.id}:{node}:{visit}".replace("/", "_")


def _given(run: Run, track: Track, node: ProgramNode) -> dict[str, object]:
    if node.inputs:
        return dict(track.local or {})
    return merged(run.state, track) if cast(CallActivity, node.element).inherit else {}


def _version(node: ProgramNode) -> int:
    call = cast(CallActivity, node.element)
    match call.binding:
        case "latest":
            return 0
        case "deployment":
            return node.pinned
        case "version":
            return call.version


def _text(run: Run, track: Track, node: ProgramNode, operand: str, use: str) -> str:
    if operand not in node.operands:
        return ""
    value = run.evaluate(node.operands[operand], visible(run.state, track), f"{use} of '{node.id}'")
    if value is None or value == "":
        return ""
    try:
        return key_text(value)
    except InvalidPayload as error:
        raise Fault(INVALID_CALL, f"{use} of '{node.id}': {error}") from error
