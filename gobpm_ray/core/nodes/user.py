"""User tasks: the token parks until a person completes the task; who may do so is frozen when it is created (H58)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from gobpm_ray.calendar.durations import Duration, YearsMonths
from gobpm_ray.calendar.timers import arm_timer
from gobpm_ray.core.faults import INVALID_TASK, Fault
from gobpm_ray.core.keys import key_text
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.state import ArmedWait, TrackState, wait_id
from gobpm_ray.core.step import TaskRow
from gobpm_ray.core.variables import visible
from gobpm_ray.errors import InvalidPayload
from gobpm_ray.model.elements import UserTask

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track
    from gobpm_ray.core.step import Trigger

DEFAULT_PRIORITY = 50


class User(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        track.state = TrackState.WAITING
        run.arm(
            track,
            node.id,
            wait_id(track.id, node.id, 0, track.visit),
            ArmedWait("task"),
            run.race_group(track, node),
            task=_row(run, track, node),
        )

    def fire(self, run: Run, track: Track, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        track.wakes += 1
        run.complete(track, node, trigger.values)

    def dehydratable(self, park: Park) -> bool:
        return park.far()


def _row(run: Run, track: Track, node: ProgramNode) -> TaskRow:
    task = cast(UserTask, node.element)
    local = run.shown(track)
    if not node.operands:
        return TaskRow(node.id, task.name, required=task.required_outputs, form=task.form, inputs=local)
    seen = visible(run.state, track)
    values = {use: run.evaluate(operand, seen, f"{use} of '{node.id}'") for use, operand in node.operands.items()}
    return TaskRow(
        node=node.id,
        name=task.name,
        assignee=_text(node, "assignee", values.get("assignee")),
        users=_names(node, values, "candidate_users"),
        groups=_names(node, values, "candidate_groups"),
        required=task.required_outputs,
        due=_moment(run, values.get("due")),
        follow_up=_moment(run, values.get("follow_up")),
        priority=_priority(node, values.get("priority")),
        form=task.form,
        inputs=local,
    )


def _text(node: ProgramNode, use: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return key_text(value)
    raise Fault(INVALID_TASK, f"{use} of '{node.id}': expected a text, got {str(value)[:80]!r}")


def _names(node: ProgramNode, values: Mapping[str, object], use: str) -> tuple[str, ...]:
    """A list, or one text with commas."""
    value = values.get(use)
    names = value if isinstance(value, list | tuple) else _text(node, use, value).split(",")
    return tuple(text for name in names if (text := _text(node, use, name)))


def _moment(run: Run, value: object) -> int | None:
    """A date, or how long from now; null and '' mean none."""
    if value is None or value == "":
        return None
    is_span = isinstance(value, timedelta | YearsMonths | Duration) or (
        isinstance(value, str) and value.strip().startswith("P")
    )
    timer = arm_timer("duration" if is_span else "date", value, run.now)
    return None if timer is None else timer.deadline_ms


def _priority(node: ProgramNode, value: object) -> int:
    if value is None or value == "":
        return DEFAULT_PRIORITY
    try:
        return int(key_text(value))
    except (ValueError, InvalidPayload):
        raise Fault(
            INVALID_TASK, f"priority of '{node.id}': expected a whole number, got {str(value)[:80]!r}"
        ) from None
