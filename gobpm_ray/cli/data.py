"""Commands over the engine's data stores: what they hold, and an operator's word in them."""

from __future__ import annotations

import json as json_text
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gobpm_ray.cli.operations import operations
from gobpm_ray.cli.options import Json
from gobpm_ray.cli.output import OK, Output, finish, json_value

if TYPE_CHECKING:
    from gobpm_ray.engine.views import DataStoreView

Name = Annotated[str, typer.Argument(metavar="NAME", help="The data store's name.", show_default=False)]

data = typer.Typer(help="Data stores: values of the engine that its processes share.", rich_markup_mode=None)


@data.command("list")
def list_data(json: Json = False) -> None:
    """List the data stores that hold something or that a deployed process declares."""

    def body(output: Output) -> int:
        from gobpm_ray.engine.views import moment_text

        with operations(output) as engine:
            found = engine.data_stores()
        for one in found:
            output.row(_about(one))
        if not output.json:
            from gobpm_ray.cli.render import show_table

            rows = [
                (one.name, one.type, str(one.bytes), moment_text(one.written_ms) if one.version else "", _writer(one))
                for one in found
            ]
            show_table(("data store", "type", "bytes", "written", "by"), rows, "no data stores")
        return OK

    finish(json, body)


@data.command("show")
def show_data(name: Name, json: Json = False) -> None:
    """Show what a data store holds; a secret in it is hidden."""

    def body(output: Output) -> int:
        from gobpm_ray.engine.views import plain

        with operations(output) as engine:
            found = engine.data_store(name)
        value = plain(found.value)
        output.row({**_about(found), "value": value}, lambda: json_text.dumps(value, ensure_ascii=False, indent=2))
        return OK

    finish(json, body)


@data.command("set")
def set_data(
    name: Name,
    value: Annotated[str, typer.Argument(metavar="JSON", help="The new value.", show_default=False)],
    version: Annotated[
        int | None, typer.Option("--version", min=0, help="Only if it still has this version, as `data show` gives it.")
    ] = None,
    secret: Annotated[bool, typer.Option("--secret", help="Nobody is shown the value.")] = False,
    json: Json = False,
) -> None:
    """Write a data store; processes that read it later see the new value."""

    def body(output: Output) -> int:
        from gobpm_ray.secret import Secret

        parsed = json_value(value, f"data store {name!r}")
        parsed = Secret(parsed) if secret else parsed
        with operations(output) as engine:
            written = engine.set_data_store(name, parsed, version=version)
        output.row(_about(written), lambda: f"{name} is written (version {written.version})")
        return OK

    finish(json, body)


@data.command("drop")
def drop_data(name: Name, json: Json = False) -> None:
    """Empty a data store: who reads it from now on reads null."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            engine.drop_data_store(name)
        output.row({"dropped": name}, lambda: f"{name} holds nothing any more")
        return OK

    finish(json, body)


def _about(one: DataStoreView) -> dict[str, Any]:
    from gobpm_ray.engine.views import moment_text

    return {
        "name": one.name,
        "version": one.version,
        "written": moment_text(one.written_ms) if one.version else None,
        "by": _writer(one),
        "bytes": one.bytes,
        "hidden": one.hidden,
        "capacity": one.capacity,
        "type": one.type,
        "declared_by": one.declared_by,
    }


def _writer(one: DataStoreView) -> str:
    if not one.version:
        return ""
    return one.written_by or "an operator"
