"""Commands about human tasks and jobs: the list, who has what, and what was done."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gobpm_ray.cli.operations import operations
from gobpm_ray.cli.options import DeliveryId, Groups, Json, Outputs, Strict, Task, User, Variables
from gobpm_ray.cli.output import OK, Output, finish, json_object, variables

if TYPE_CHECKING:
    from gobpm_ray.engine.views import TaskInfo


class Order(StrEnum):
    AGE = "age"
    PRIORITY = "priority"
    DUE = "due"


def tasks(
    user: User = "",
    group: Groups = None,
    node: Annotated[str, typer.Option("--node", metavar="ID", help="Only tasks of this element.")] = "",
    instance: Annotated[str, typer.Option("--instance", metavar="ID", help="Only tasks of this instance.")] = "",
    jobs: Annotated[bool, typer.Option("--jobs", help="Jobs of workers instead of tasks of people.")] = False,
    process: Annotated[str, typer.Option("--process", metavar="ID", help="Only tasks of this process.")] = "",
    where: Annotated[
        list[str] | None, typer.Option("--where", metavar="NAME=JSON", help="Only where this variable has this value.")
    ] = None,
    due_before: Annotated[
        str | None,
        typer.Option("--due-before", metavar="WHEN", help="Only with a due date before then, or in that time."),
    ] = None,
    follow_up_before: Annotated[
        str | None, typer.Option("--follow-up-before", metavar="WHEN", help="The same of the follow-up date.")
    ] = None,
    order: Annotated[Order, typer.Option("--order", help="What comes first.")] = Order.AGE,
    limit: Annotated[int, typer.Option("--limit", min=1)] = 1_000,
    json: Json = False,
) -> None:
    """List open tasks; with --user or --group those that this person has or may claim."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            if jobs:
                found = engine.jobs(node=node, instance_id=instance, limit=limit)
            else:
                from gobpm_ray.engine.amounts import when

                now = engine.now()
                found = engine.tasks(
                    node=node,
                    instance_id=instance,
                    user=user,
                    groups=group or (),
                    process_id=process,
                    variables=variables(where or (), option="--where"),
                    due_before_ms=None if due_before is None else when(now, due_before),
                    follow_up_before_ms=None if follow_up_before is None else when(now, follow_up_before),
                    order=order.value,
                    limit=limit,
                )
        for one in found:
            output.row(_row(one))
        if not output.json:
            from gobpm_ray.cli.render import show_table
            from gobpm_ray.engine.views import moment_text

            rows = [
                (t.id, t.name or t.node, t.owner or "-", ", ".join((*t.users, *t.groups)), moment_text(t.due_ms) or "")
                for t in found
            ]
            show_table(
                ("task", "name", "owner", "candidates", "due"), rows, "no open jobs" if jobs else "no open tasks"
            )
        return OK

    finish(json, body)


def claim(
    task: Task,
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Who takes it.", show_default=False)],
    group: Groups = None,
    json: Json = False,
) -> None:
    """Reserve a task for a user."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            found = engine.task(task)
            engine.claim(found.id, user, group or ())
        output.row({"task": found.id, "owner": user}, lambda: f"{found.id} is claimed by {user}")
        return OK

    finish(json, body)


def reassign(
    task: Task,
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Who has it from now on.", show_default=False)],
    json: Json = False,
) -> None:
    """Give a task to a user, whoever has it."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            found = engine.task(task)
            engine.reassign(found.id, user)
        output.row({"task": found.id, "owner": user}, lambda: f"{found.id} is given to {user}")
        return OK

    finish(json, body)


def unclaim(task: Task, json: Json = False) -> None:
    """Give a task's reservation back."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            found = engine.task(task)
            engine.unclaim(found.id)
        output.row({"task": found.id, "owner": None}, lambda: f"{found.id} is free")
        return OK

    finish(json, body)


def complete(
    task: Task,
    user: User = "",
    group: Groups = None,
    outputs: Outputs = None,
    var: Variables = None,
    strict: Strict = False,
    delivery_id: DeliveryId = None,
    json: Json = False,
) -> None:
    """Complete a task, or report a job as done; its outputs become variables."""

    def body(output: Output) -> int:
        from gobpm_ray.errors import UnknownTask

        values = {**json_object(outputs, "--outputs"), **variables(var or ())}
        with operations(output) as engine:
            try:
                answer = engine.complete(task, values, user, group or (), strict=strict or None, id=delivery_id)
            except UnknownTask as unknown:
                try:
                    answer = engine.complete_job(task, values, id=delivery_id)
                except UnknownTask:
                    raise unknown from None
        again = " (a duplicate: nothing changed)" if answer.duplicate else ""
        output.row(
            {"id": answer.id, "duplicate": answer.duplicate, "instance_id": answer.instance_id},
            lambda: f"completed {task} of {answer.instance_id}{again}",
        )
        return OK

    finish(json, body)


def _row(task: TaskInfo) -> dict[str, Any]:
    from gobpm_ray.engine.views import moment_text, plain

    return {
        "task": task.id,
        "instance_id": task.instance_id,
        "process_id": task.process_id,
        "node": task.node,
        "kind": task.kind,
        "name": task.name,
        "owner": task.owner or None,
        "users": list(task.users),
        "groups": list(task.groups),
        "required": list(task.required),
        "created": moment_text(task.created_ms),
        "due": moment_text(task.due_ms),
        "follow_up": moment_text(task.follow_up_ms),
        "priority": task.priority,
        "form": task.form or None,
        "topic": task.topic or None,
        "inputs": plain(task.inputs),
    }
