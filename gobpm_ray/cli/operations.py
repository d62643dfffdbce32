"""Commands that act on a running engine or look at it. They talk to its store and never import Ray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gobpm_ray.cli.options import (
    Chosen,
    DeliveryId,
    Files,
    Instance,
    Json,
    MessageKeys,
    Node,
    OfKey,
    OfProcess,
    OfState,
    Outputs,
    Payload,
    Secrets,
    Variables,
)
from gobpm_ray.cli.output import OK, Output, correlation, finish, json_object, marked, variables

if TYPE_CHECKING:
    from gobpm_ray.engine.operations import Operations
    from gobpm_ray.engine.views import IncidentView, InstanceView, Started


@contextmanager
def operations(output: Output) -> Iterator[Operations]:
    """The configured engine, by its store alone; says once when nobody works there."""
    from gobpm_ray.cli.home import engine_settings
    from gobpm_ray.engine.opening import open_store
    from gobpm_ray.engine.operations import Operations

    settings = engine_settings()
    opened = open_store(None, settings)
    found = Operations(opened.store, settings, signing_key=opened.signing_key)
    try:
        if not found.supervised():
            output.warn(
                f"no supervisor of engine '{settings.engine_id}' is alive: what is accepted waits until `gobpm-ray up`"
            )
        yield found
    finally:
        found.close()


# --- processes and instances


def deploy(files: Files, secret: Secrets = None, json: Json = False) -> None:
    """Store the executable processes of files; all are read and validated before the first is written."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            found = engine.deploy(*files, secrets=secret or ())
        for one in found:
            output.row({"process_id": one.process_id, "version": one.version, "created": one.created})
        if not output.json:
            from gobpm_ray.cli.render import show_table

            rows = [(one.process_id, one.version, "new" if one.created else "unchanged") for one in found]
            show_table(("process", "version", "document"), rows, "nothing deployed")
        return OK

    finish(json, body)


def start(
    process: Annotated[str, typer.Argument(metavar="PROCESS", help="A process id.", show_default=False)],
    var: Variables = None,
    secret: Secrets = None,
    version: Annotated[int, typer.Option("--version", metavar="N", help="Default: the newest.")] = 0,
    business_key: Annotated[str, typer.Option("--business-key", metavar="KEY")] = "",
    instance_id: Annotated[str | None, typer.Option("--instance", metavar="ID", help="The new instance's id.")] = None,
    delivery_id: DeliveryId = None,
    json: Json = False,
) -> None:
    """Start an instance of a deployed process."""

    def body(output: Output) -> int:
        values = marked(variables(var or ()), secret or ())
        with operations(output) as engine:
            answer = engine.start(
                process, values, version=version, business_key=business_key, id=instance_id, delivery_id=delivery_id
            )
        _receipt(output, answer, f"started {answer.instance_id}")
        return OK

    finish(json, body)


def list_(
    process: Annotated[str, typer.Option("--process", metavar="ID", help="Only this process.")] = "",
    state: Annotated[
        str, typer.Option("--state", help="running, waiting, incident, suspended, completed or terminated.")
    ] = "",
    living: Annotated[bool, typer.Option("--living", help="Only instances that have not ended.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1)] = 1_000,
    json: Json = False,
) -> None:
    """List instances, oldest first."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            found = engine.list_instances(process_id=process, state=state, ended=False if living else None, limit=limit)
        for view in found:
            output.row(_listed(view))
        if not output.json:
            from gobpm_ray.cli.render import show_table

            rows = [
                (
                    v.instance_id,
                    f"{v.process_id}:{v.version}",
                    v.state,
                    "yes" if v.resident else "",
                    v.business_key,
                    _stands(v),
                )
                for v in found
            ]
            show_table(("instance", "process", "state", "resident", "key", "stands at"), rows, "no instances")
        return OK

    finish(json, body)


def show(instance: Instance, json: Json = False) -> None:
    """Show everything about one instance."""

    def body(output: Output) -> int:
        from gobpm_ray.engine.views import moment_text, plain

        with operations(output) as engine:
            view = engine.inspect(instance)
        waits = [
            {"id": w.id, "node": w.node, "kind": w.kind, "deadline": moment_text(w.deadline_ms)} for w in view.waits
        ]
        incidents = [
            {"node": i.node, "cause": i.cause, "code": i.code, "at": moment_text(i.at_ms)} for i in view.incidents
        ]
        history = [
            {"event": e.event, "at": moment_text(e.at_ms), "node": e.node, "detail": e.detail} for e in view.history
        ]
        output.row(
            {
                **_listed(view),
                "created": moment_text(view.created_ms),
                "started_by": view.started_by,
                "caller": view.caller,
                "variables": plain(view.variables),
                "waits": waits,
                "incidents": incidents,
                "history": history,
            }
        )
        if not output.json:
            _show(view, waits, history)
        return OK

    finish(json, body)


def _show(view: InstanceView, waits: list[dict[str, Any]], history: list[dict[str, Any]]) -> None:
    from gobpm_ray.cli.render import show_fields, show_table
    from gobpm_ray.engine.views import plain

    show_fields(
        {
            "instance": view.instance_id,
            "process": f"{view.process_id} version {view.version}",
            "state": view.state,
            "resident": "yes" if view.resident else "no",
            "business key": view.business_key or "-",
            "stands at": _stands(view) or "-",
            "variables": plain(view.variables),
        }
    )
    show_table(
        ("waits at", "for", "until"), [(w["node"], w["kind"], w["deadline"] or "") for w in waits], "waits for nothing"
    )
    for incident in view.incidents:
        show_fields({f"incident at {incident.node}": incident.cause})
    show_table(
        ("when", "what", "where", ""),
        [(e["at"], e["event"], e["node"], e["detail"]) for e in history],
        "no history yet",
    )


# --- messages and signals


def publish(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The message's name.", show_default=False)],
    key: MessageKeys = None,
    payload: Payload = None,
    ttl: Annotated[
        str | None, typer.Option("--ttl", metavar="P1D", help="How long it is kept when nobody waits for it.")
    ] = None,
    delivery_id: DeliveryId = None,
    json: Json = False,
) -> None:
    """Send a message to whoever waits for it, or starts by it."""

    def body(output: Output) -> int:
        values = json_object(payload, "--payload")
        with operations(output) as engine:
            answer = engine.publish(name, correlation(key or ()), values, id=delivery_id, ttl=ttl)
        _receipt(output, answer, f"accepted message {name} as {answer.id}")
        return OK

    finish(json, body)


def signal(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The signal's name.", show_default=False)],
    payload: Payload = None,
    delivery_id: DeliveryId = None,
    json: Json = False,
) -> None:
    """Send a signal to everyone who waits for it now."""

    def body(output: Output) -> int:
        values = json_object(payload, "--payload")
        with operations(output) as engine:
            answer = engine.signal(name, values, id=delivery_id)
        _receipt(output, answer, f"accepted signal {name} as {answer.id}")
        return OK

    finish(json, body)


# --- operators


def incidents(
    instance: Annotated[str, typer.Option("--instance", metavar="ID", help="Only this instance.")] = "",
    process: Annotated[str, typer.Option("--process", metavar="ID", help="Only of this process.")] = "",
    node: Annotated[str, typer.Option("--node", metavar="ID", help="Only at this element.")] = "",
    code: Annotated[str, typer.Option("--code", metavar="CODE", help="Only of this kind.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1)] = 1_000,
    retry: Annotated[bool, typer.Option("--retry", help="Try each of them again.")] = False,
    resolve: Annotated[bool, typer.Option("--resolve", help="Go past each of them, with --outputs.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Cancel their instances.")] = False,
    outputs: Outputs = None,
    json: Json = False,
) -> None:
    """List open incidents, oldest first; or repair all that fit."""

    def body(output: Output) -> int:
        from gobpm_ray.errors import InputError

        chosen = [name for name, wanted in (("retry", retry), ("resolve", resolve), ("drop", drop)) if wanted]
        if len(chosen) > 1:
            raise InputError(f"incidents: expected at most one of --retry, --resolve and --drop, got {len(chosen)}")
        with operations(output) as engine:
            if chosen:
                repaired = engine.repair(
                    chosen[0],  # type: ignore[arg-type]
                    instance_id=instance,
                    process_id=process,
                    node=node,
                    code=code,
                    outputs=json_object(outputs, "--outputs") if resolve else None,
                    limit=limit,
                )
                for one, why in repaired.refused:
                    output.warn(f"{one}: {why}")
                row = {"action": chosen[0], "matched": repaired.matched, "done": len(repaired.done)}
                output.row(
                    row, lambda: f"accepted: {chosen[0]} of {len(repaired.done)} of {repaired.matched} incidents"
                )
                return OK
            found = engine.incidents(instance, process_id=process, node=node, code=code, limit=limit)
        for each in found:
            output.row(_incident(each))
        if not output.json:
            from gobpm_ray.cli.render import show_table
            from gobpm_ray.engine.views import moment_text

            rows = [(i.instance_id, i.node, i.code, i.cause, moment_text(i.at_ms)) for i in found]
            show_table(("instance", "at", "kind", "cause", "since"), rows, "no open incidents")
        return OK

    finish(json, body)


def _incident(one: IncidentView) -> dict[str, Any]:
    from gobpm_ray.engine.views import moment_text, plain

    return {
        "instance_id": one.instance_id,
        "process_id": one.process_id,
        "node": one.node,
        "cause": one.cause,
        "code": one.code,
        "at": moment_text(one.at_ms),
        "stack": one.stack or None,
        "attempts": [{"event": e.event, "at": moment_text(e.at_ms), "cause": e.detail} for e in one.attempts],
        "data": plain(one.data),
    }


def retry(instance: Instance, node: Node = "", json: Json = False) -> None:
    """Try a failed element again."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            answer = engine.retry(instance, node)
        _receipt(output, answer, f"accepted: retry of {node or 'the oldest incident'} in {instance}")
        return OK

    finish(json, body)


def resolve(instance: Instance, node: Node = "", outputs: Outputs = None, json: Json = False) -> None:
    """Go past a failed element with outputs of your own."""

    def body(output: Output) -> int:
        values = json_object(outputs, "--outputs")
        with operations(output) as engine:
            answer = engine.resolve(instance, node, values)
        _receipt(output, answer, f"accepted: {node or 'the oldest incident'} in {instance} is resolved")
        return OK

    finish(json, body)


def set_(
    instance: Instance,
    values: Annotated[list[str], typer.Argument(metavar="NAME=JSON...", help="Variables.", show_default=False)],
    json: Json = False,
) -> None:
    """Write variables of an instance."""

    def body(output: Output) -> int:
        chosen = variables(values, option="")
        with operations(output) as engine:
            answer = engine.set(instance, chosen)
        _receipt(output, answer, f"accepted: {', '.join(chosen)} of {instance}")
        return OK

    finish(json, body)


def cancel(
    instance: Chosen = "",
    process: OfProcess = "",
    state: OfState = "",
    business_key: OfKey = "",
    json: Json = False,
) -> None:
    """Terminate an instance, or all living ones that fit."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            if instance and not (process or state or business_key):
                answer = engine.cancel(instance)
                _receipt(output, answer, f"accepted: {instance} is cancelled")
                return OK
            _one_or_filter(instance, "cancel")
            done = engine.cancel_all(process_id=process, state=state, business_key=business_key)
        _many(output, done, "cancelled")
        return OK

    finish(json, body)


def suspend(
    instance: Chosen = "",
    process: OfProcess = "",
    state: OfState = "",
    business_key: OfKey = "",
    json: Json = False,
) -> None:
    """Hold an instance, or all living ones that fit: it keeps what comes and runs none of it."""

    def body(output: Output) -> int:
        if instance and not (process or state or business_key):
            return _hold(output, instance, True)
        _one_or_filter(instance, "suspend", process, state, business_key)
        with operations(output) as engine:
            done = engine.suspend_all(process_id=process, state=state, business_key=business_key)
        _many(output, done, "suspended")
        return OK

    finish(json, body)


def resume(instance: Chosen = "", process: OfProcess = "", business_key: OfKey = "", json: Json = False) -> None:
    """Let a held instance go on, or all held ones that fit."""

    def body(output: Output) -> int:
        if instance and not (process or business_key):
            return _hold(output, instance, False)
        _one_or_filter(instance, "resume", process, business_key)
        with operations(output) as engine:
            done = engine.resume_all(process_id=process, business_key=business_key)
        _many(output, done, "resumed")
        return OK

    finish(json, body)


def _one_or_filter(instance: str, action: str, *filters: str) -> None:
    from gobpm_ray.errors import InputError

    if instance:
        raise InputError(f"{action}: expected an instance or a filter, got both")
    if filters and not any(filters):
        raise InputError(f"{action}: expected an instance, or a filter to choose by")


def _many(output: Output, done: list[str], word: str) -> None:
    for one in done:
        output.row({"instance_id": one, word: True})
    output.row({"count": len(done)}, lambda: f"{len(done)} instances are {word}")


def _hold(output: Output, instance: str, suspended: bool) -> int:
    with operations(output) as engine:
        changed = engine.suspend(instance) if suspended else engine.resume(instance)
    word = "suspended" if suspended else "resumed"
    text = f"{instance} is {word}" if changed else f"{instance} was {word} already"
    output.row({"instance_id": instance, "suspended": suspended, "changed": changed}, lambda: text)
    return OK


def top(json: Json = False) -> None:
    """Show the engine at a glance: who is resident, what waits, what is due."""

    def body(output: Output) -> int:
        from gobpm_ray.engine.views import plain

        with operations(output) as engine:
            answer = plain(engine.top())
        output.row(answer)
        if not output.json and isinstance(answer, dict):
            from gobpm_ray.cli.render import show_fields

            pending, signals = answer.pop("pending"), answer.pop("signals")
            show_fields({**answer, **{f"pending {kind}": count for kind, count in pending.items()}})
            if signals:
                show_fields({name.replace("_", " "): count for name, count in signals.items()})
        return OK

    finish(json, body)


# --- shapes


def _listed(view: InstanceView) -> dict[str, Any]:
    return {
        "instance_id": view.instance_id,
        "process_id": view.process_id,
        "version": view.version,
        "state": view.state,
        "resident": view.resident,
        "business_key": view.business_key,
        "tokens": [{"node": token.node, "state": token.state} for token in view.tokens],
    }


def _stands(view: InstanceView) -> str:
    return ", ".join(f"{token.node} ({token.state})" for token in view.tokens)


def _receipt(output: Output, answer: Started, text: str) -> None:
    again = " (a duplicate: nothing changed)" if answer.duplicate else ""
    row = {"id": answer.id, "duplicate": answer.duplicate, "instance_id": answer.instance_id or None}
    output.row(row, lambda: text + again)
