"""Commands about jobs: what waits for workers, and what an operator says of a job in a worker's place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gobpm_ray.cli.operations import operations
from gobpm_ray.cli.options import DeliveryId, Json, Outputs, Variables
from gobpm_ray.cli.output import OK, Output, finish, json_object, variables

if TYPE_CHECKING:
    from collections.abc import Callable

    from gobpm_ray.engine.operations import Operations
    from gobpm_ray.engine.views import Started, TaskInfo

job = typer.Typer(help="Report a job in its worker's place.", no_args_is_help=True)

JobName = Annotated[
    str, typer.Argument(metavar="JOB", help="A job's id, or a node id: its oldest open job.", show_default=False)
]
Code = Annotated[str, typer.Option("--code", metavar="CODE", help="As the model names it.", show_default=False)]


def jobs(
    topic: Annotated[str, typer.Option("--topic", metavar="NAME", help="Only jobs of this topic.")] = "",
    node: Annotated[str, typer.Option("--node", metavar="ID", help="Only jobs of this element.")] = "",
    instance: Annotated[str, typer.Option("--instance", metavar="ID", help="Only jobs of this instance.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1)] = 1_000,
    json: Json = False,
) -> None:
    """List open jobs, oldest first, and which worker has locked which."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            found = engine.jobs(topic=topic, node=node, instance_id=instance, limit=limit)
        for one in found:
            output.row(_row(one))
        if not output.json:
            from gobpm_ray.cli.render import show_table

            rows = [(j.id, j.topic, j.owner or "-", str(j.failures or ""), j.cause) for j in found]
            show_table(("job", "topic", "worker", "failures", "last cause"), rows, "no open jobs")
        return OK

    finish(json, body)


@job.command("complete")
def complete(
    name: JobName, outputs: Outputs = None, var: Variables = None, delivery_id: DeliveryId = None, json: Json = False
) -> None:
    """The job is done; its outputs become variables."""
    _report(json, name, "done", lambda engine: engine.complete_job(name, _values(outputs, var), id=delivery_id))


@job.command("fail")
def fail(
    name: JobName,
    cause: Annotated[str, typer.Option("--cause", metavar="TEXT", help="For people.", show_default=False)],
    retries: Annotated[
        int | None,
        typer.Option("--retries", min=0, help="Attempts left; 0: an incident. Default: the element's policy."),
    ] = None,
    backoff: Annotated[
        str | None, typer.Option("--backoff", metavar="PT5M", help="Until the next attempt. Default: the policy's.")
    ] = None,
    delivery_id: DeliveryId = None,
    json: Json = False,
) -> None:
    """The attempt failed: it is repeated, or an incident."""
    _report(
        json,
        name,
        "failed",
        lambda engine: engine.fail_job(name, cause, retries=retries, backoff=backoff, id=delivery_id),
    )


@job.command("error")
def error(
    name: JobName,
    code: Code,
    message: Annotated[str, typer.Option("--message", metavar="TEXT")] = "",
    outputs: Outputs = None,
    var: Variables = None,
    delivery_id: DeliveryId = None,
    json: Json = False,
) -> None:
    """The job ends by throwing a BPMN error."""
    _report(
        json,
        name,
        f"error {code}",
        lambda engine: engine.bpmn_error(name, code, message, _values(outputs, var), id=delivery_id),
    )


@job.command("escalate")
def escalate(
    name: JobName,
    code: Code,
    outputs: Outputs = None,
    var: Variables = None,
    delivery_id: DeliveryId = None,
    json: Json = False,
) -> None:
    """The job throws an escalation and goes on."""
    _report(
        json,
        name,
        f"escalation {code}",
        lambda engine: engine.escalate(name, code, _values(outputs, var), id=delivery_id),
    )


@job.command("unlock")
def unlock(name: JobName, json: Json = False) -> None:
    """Take a job from the worker that has locked it; others may fetch it at once."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            found = engine.task(name, "job")
            engine.unlock(found.id)
        output.row({"job": found.id, "owner": None}, lambda: f"{found.id} may be fetched")
        return OK

    finish(json, body)


def _report(json: bool, name: str, what: str, act: Callable[[Operations], Started]) -> None:
    def body(output: Output) -> int:
        with operations(output) as engine:
            answer = act(engine)
        again = " (a duplicate: nothing changed)" if answer.duplicate else ""
        output.row(
            {"id": answer.id, "duplicate": answer.duplicate, "instance_id": answer.instance_id},
            lambda: f"{name} of {answer.instance_id}: {what}{again}",
        )
        return OK

    finish(json, body)


def _values(outputs: str | None, var: list[str] | None) -> dict[str, Any]:
    return {**json_object(outputs, "--outputs"), **variables(var or ())}


def _row(one: TaskInfo) -> dict[str, Any]:
    from gobpm_ray.engine.views import moment_text, plain

    return {
        "job": one.id,
        "instance_id": one.instance_id,
        "process_id": one.process_id,
        "node": one.node,
        "name": one.name,
        "topic": one.topic or None,
        "worker": one.owner or None,
        "failures": one.failures,
        "cause": one.cause or None,
        "retries": one.retries or None,
        "created": moment_text(one.created_ms),
        "inputs": plain(one.inputs),
    }
