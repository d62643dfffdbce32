"""Service and send tasks: work done by a callable of the host, or as a job that a worker fetches.

A call is an effect whose intent is committed before it runs (`Track.attempt`), and whose report, `done` or `failed`,
never passes the store. A job is a wait like any other. A send task with a message and no topic throws it and passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.core.faults import FAILURE, SEALED
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.nodes.throws import throw
from gobpm_ray.core.state import ArmedWait, Attempt, TrackState, parse_wait_id, wait_id
from gobpm_ray.core.step import Call, TaskRow
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
            row = TaskRow(node.id, task.name, topic=_topic(task), inputs=dict(track.local or {}))
            wait = wait_id(track.id, node.id, 0, track.visit)
            run.arm(track, node.id, wait, ArmedWait("job"), run.race_group(track, node), task=row)
        else:
            track.attempt = Attempt(started=run.now, epoch=run.epoch)
            _hand_out(run, track, node, track.attempt)

    def fire(self, run: Run, track: Track, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        if trigger.kind == "failed":
            if wait:
                run.withdraw(track, (wait,))
                _rearm_rivals(run, track, node)
            run.incident(track, trigger.cause or f"'{node.id}' failed without saying why", FAILURE)
            return
        if trigger.kind == "job":
            track.wakes += 1
        run.complete(track, node, _results(cast(WorkTask, node.element), trigger.values))

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
            attempt.started = run.now
            attempt.epoch = run.epoch
            _hand_out(run, track, node, attempt)
        elif attempt.seals >= MOST_SEALS:
            run.incident(track, f"{attempt.seals} attempts were cut off by crashes", SEALED)
        else:
            run.incident(track, "the attempt was cut off by a crash and the task is not idempotent", SEALED)

    def interrupt(self, run: Run, track: Track, node: ProgramNode) -> None:
        if track.state is TrackState.WORKING:
            run.cancel_call(effect_key(track, node))

    def dehydratable(self, park: Park) -> bool:
        """Neither a running effect nor a worker's job in flight releases its instance (D12)."""
        return False


def _rearm_rivals(run: Run, track: Track, node: ProgramNode) -> None:
    """The delivery of a job's failure took the job's whole race group with it, yet the activity goes on: its
    interrupting boundaries are held again, as new waits with the deadlines and keys that they had."""
    run.number_visit(track)
    for wait, armed in list(track.waits.items()):
        _, boundary, index, _ = parse_wait_id(wait)
        if boundary in node.rivals:
            run.withdraw(track, (wait,))
            again = wait_id(track.id, boundary, index, track.visit)
            run.arm(track, boundary, again, armed, f"{track.id}:{track.visit}")


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
        )
    )


def _topic(task: WorkTask) -> str:
    return task.topic or task.id


def _results(task: WorkTask, values: dict[str, object]) -> dict[str, object]:
    """The values as outputs; with a result variable, all of them (or the one `result` of a callable that gave no
    mapping) are its value."""
    if not task.result_variable:
        return values
    return {task.result_variable: values["result"] if values.keys() == {"result"} else dict(values)}
