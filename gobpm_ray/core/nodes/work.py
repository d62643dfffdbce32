"""Service and send tasks: work done by a callable of the host, or as a job that a worker fetches.

A call is an effect whose intent is committed before it runs (`Track.attempt`), and whose report, `done` or `failed`,
never passes the store. A failed attempt is repeated by the task's policy: the pause before the next one is a timer that
is held like any other, so that an instance whose next attempt is an hour away is released. A job is a wait too; how
often it is repeated its worker is told, and the store sees to it. A send task with a message and no topic throws it and
passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.calendar.retries import NONE, Retries, parse_retries
from gobpm_ray.calendar.timers import arm_timer
from gobpm_ray.core.arming import rearm_rivals
from gobpm_ray.core.faults import FAILURE, LOST, SEALED, UNAVAILABLE, one_line
from gobpm_ray.core.keys import job_key
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.nodes.throws import throw
from gobpm_ray.core.propagation import throw_error, throw_escalation, uncaught
from gobpm_ray.core.state import ArmedWait, Attempt, TrackState, wait_id
from gobpm_ray.core.step import Call, TaskRow
from gobpm_ray.core.variables import visible
from gobpm_ray.errors import GobpmError
from gobpm_ray.model.elements import WorkTask

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track
    from gobpm_ray.core.step import Trigger

MOST_SEALS = 3
"""So many attempts of one visit cut off by crashes end in an incident, idempotent or not (N10)."""


class Work(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        if node.definitions:
            throw(run, track, node)
            run.complete(track, node, {})
        elif node.job:
            track.state = TrackState.WAITING
            task = cast(WorkTask, node.element)
            policy = "" if "retries" not in node.operands else str(_policy(run, track, node)[0] or "none")
            row = TaskRow(node.id, task.name, topic=_topic(task), retries=policy, inputs=run.inputs(track))
            wait = wait_id(track.id, node.id, 0, track.visit)
            armed = ArmedWait("job", key=job_key(row.topic))
            run.arm(track, node.id, wait, armed, run.race_group(track, node), task=row)
        else:
            track.attempt = Attempt(started=run.now, epoch=run.epoch)
            _hand_out(run, track, node, track.attempt)

    def fire(self, run: Run, track: Track, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        if trigger.kind == "escalation":
            # The work goes on, and a job stays offered, unless who catches the escalation interrupts it.
            throw_escalation(run, track, trigger.code, trigger.values)
            return
        if trigger.kind == "timer":
            run.withdraw(track, (wait,))
            track.wakes += 1
            _attempt(run, track, node)
            return
        if trigger.kind in ("failed", "error"):
            if wait:
                run.withdraw(track, (wait,))
                rearm_rivals(run, track, node)
            if trigger.kind == "failed":
                if trigger.code == UNAVAILABLE:
                    # Not an attempt: nothing was tried, and to wait once more is what it has just done.
                    _fail(run, track, trigger.cause, UNAVAILABLE, trigger)
                elif wait or not _again(run, track, node, trigger):
                    _fail(run, track, trigger.cause or f"'{node.id}' failed without saying why", FAILURE, trigger)
                return
            track.state = TrackState.WAITING  # the effect has reported: nothing of it is left to be cancelled
            if not throw_error(run, track, trigger.code, trigger.values, trigger.cause):
                run.incident(track, uncaught(node, trigger.code, trigger.cause), FAILURE)
            return
        if trigger.kind == "job":
            track.wakes += 1
        run.complete(track, node, results_of(cast(WorkTask, node.element), trigger.values))

    def recover(self, run: Run, track: Track, node: ProgramNode) -> None:
        """The host that had the attempt died without a report. An idempotent task is called again under the same key,
        any other is sealed: whether its effect happened, only a person can find out."""
        attempt = track.attempt
        if attempt is None or attempt.epoch >= run.epoch:
            return
        attempt.seals += 1
        run.record("sealed", node.id, f"attempt {attempt.number}")
        if cast(WorkTask, node.element).idempotent and attempt.seals < MOST_SEALS:
            attempt.number += 1
            _attempt(run, track, node)
        elif attempt.seals >= MOST_SEALS:
            run.incident(track, f"{attempt.seals} attempts were cut off by crashes", SEALED)
        else:
            run.incident(track, "the attempt was cut off by a crash and the task is not idempotent", SEALED)

    def interrupt(self, run: Run, track: Track, node: ProgramNode) -> None:
        if track.state is TrackState.WORKING:
            run.cancel_call(effect_key(track, node))

    def dehydratable(self, park: Park) -> bool:
        """A running effect does not release its instance, and a worker's job in flight does not unless it is told to
        (D12); a pause before the next attempt does, as every timer."""
        if park.track.state is not TrackState.WAITING:
            return False
        job = any(wait.kind == "job" for wait in park.track.waits.values())
        return park.far() and (park.release_jobs or not job)


def effect_key(track: Track, node: ProgramNode) -> str:
    return f"{track.id}:{node.id}:{track.visit}"


def _hand_out(run: Run, track: Track, node: ProgramNode, attempt: Attempt) -> None:
    track.state = TrackState.WORKING
    run.changed.add(f"t{track.id}")
    task = cast(WorkTask, node.element)
    run.call(
        Call(
            effect_key=effect_key(track, node),
            track=track.id,
            node=node.id,
            topic=_topic(task),
            inputs=run.inputs(track),
            idempotent=task.idempotent,
            attempt=attempt.number,
            timeout=_patience(run, track, node),
            ray=task.ray_options,
            mapped=bool(node.outputs),
        )
    )


# --- attempts ----------------------------------------------------------------------------------------------------


def _again(run: Run, track: Track, node: ProgramNode, trigger: Trigger) -> bool:
    """The failed attempt is followed by another one, or by an incident of its own. False: it was the last."""
    attempt, task = track.attempt, cast(WorkTask, node.element)
    if attempt is None:
        return False
    lost = trigger.code == LOST
    if lost:
        # As after a crash of its host: whether its effect happened, only a person can find out (N10).
        attempt.seals += 1
        run.record("sealed", node.id, f"attempt {attempt.number}")
        if not task.idempotent or attempt.seals >= MOST_SEALS:
            why = "cut off too often" if task.idempotent else "perhaps done, and the task is not idempotent"
            _fail(run, track, f"attempt {attempt.number} is {why}: {trigger.cause}", SEALED, trigger)
            return True
    try:
        _, policy = _policy(run, track, node)
        due = policy.next_attempt(attempt.number, run.now, f"{run.state.id}:{effect_key(track, node)}")
    except GobpmError as error:
        _fail(run, track, f"{trigger.cause}; and {error}", FAILURE, trigger)
        return True
    if due is None and not lost:
        return False
    run.record("failed", node.id, one_line(trigger.cause))
    attempt.number += 1
    if due is None or due <= run.now:
        _attempt(run, track, node)
    else:
        track.state = TrackState.WAITING
        wait = wait_id(track.id, node.id, "r", track.visit, attempt.number)
        # In no race: an interrupting boundary withdraws it, but it does not end the boundaries.
        run.arm(track, node.id, wait, ArmedWait("timer", deadline=due))
    return True


def _attempt(run: Run, track: Track, node: ProgramNode) -> None:
    """The next attempt of this visit is handed out."""
    attempt = track.attempt = track.attempt or Attempt()
    attempt.started, attempt.epoch = run.now, run.epoch
    try:
        _hand_out(run, track, node, attempt)
    except GobpmError as error:
        track.state = TrackState.WAITING
        run.incident(track, error, FAILURE)


def _fail(run: Run, track: Track, cause: str, code: str, trigger: Trigger) -> None:
    run.incident(track, cause, code)
    stack = trigger.values.get("stack")
    if track.incident is not None and isinstance(stack, str):
        track.incident.stack = stack


def _policy(run: Run, track: Track, node: ProgramNode) -> tuple[object, Retries]:
    """What the element says of retries, as its expression's value and as a policy. InvalidTimer, ExpressionError."""
    operand = node.operands.get("retries")
    if operand is None:
        return None, NONE
    value = run.evaluate(operand, visible(run.state, track), f"retries of '{node.id}'")
    return value, parse_retries(value)


def _patience(run: Run, track: Track, node: ProgramNode) -> int | None:
    operand = node.operands.get("timeout")
    if operand is None:
        return None
    value = run.evaluate(operand, visible(run.state, track), f"timeout of '{node.id}'")
    timer = arm_timer("duration", value, run.now)
    return None if timer is None else timer.deadline_ms - run.now


# --- results -----------------------------------------------------------------------------------------------------


def _topic(task: WorkTask) -> str:
    return task.topic or task.id


def results_of(task: WorkTask, values: dict[str, object]) -> dict[str, object]:
    """The values as outputs; with a result variable, all of them (or the one `result` of a callable that gave no
    mapping) are its value."""
    if not task.result_variable:
        return values
    return {task.result_variable: values["result"] if values.keys() == {"result"} else dict(values)}
