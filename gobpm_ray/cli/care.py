"""Commands for whoever looks after an engine: `verify` and the dead letters. They talk to the store alone."""

from __future__ import annotations

from typing import Annotated

import typer

from gobpm_ray.cli.operations import operations
from gobpm_ray.cli.options import Json
from gobpm_ray.cli.output import OK, Output, finish

DIFFERENT = 1

Letter = Annotated[str, typer.Argument(metavar="ID", help="The delivery's id, as `dead list` shows it.")]


def verify(
    repair: Annotated[bool, typer.Option("--repair", help="Write right whatever differs.")] = False,
    json: Json = False,
) -> None:
    """Rebuild every index from the instances and the accepted rows, and compare; exit 1 on any difference."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            report = engine.verify(repair=repair)
        for one in report.differences:
            output.row({"kind": one.kind, "key": one.key, "expected": one.expected, "found": one.found})
        summary = {
            "owners": report.owners,
            "rows": report.rows,
            "differences": len(report.differences),
            "repaired": report.repaired,
            "left": report.left,
        }
        output.row({"summary": summary})
        if not output.json:
            from gobpm_ray.cli.render import show_table

            found = [(one.kind, one.key, one.expected, one.found) for one in report.differences]
            show_table(("index", "entry", "expected", "found"), found, "no differences")
            output.row({}, lambda: ", ".join(f"{count} {name}" for name, count in summary.items()))
        return DIFFERENT if report.differences else OK

    finish(json, body)


dead = typer.Typer(help="Messages and signals that were accepted and set aside.", rich_markup_mode=None)


@dead.command("list")
def list_dead(
    limit: Annotated[int, typer.Option("--limit", min=1)] = 1_000,
    json: Json = False,
) -> None:
    """List dead letters with their reasons, newest first."""

    def body(output: Output) -> int:
        from gobpm_ray.engine.views import moment_text

        with operations(output) as engine:
            found = engine.dead(limit)
        for one in found:
            output.row(
                {
                    "id": one.id,
                    "kind": one.kind,
                    "name": one.name,
                    "key": one.key,
                    "reason": one.reason,
                    "at": moment_text(one.at_ms),
                    "accepted": moment_text(one.accepted_ms),
                    "payload": one.payload,
                }
            )
        if not output.json:
            from gobpm_ray.cli.render import show_table

            rows = [(d.id, f"{d.kind} {d.name}", d.key, d.reason, moment_text(d.at_ms)) for d in found]
            show_table(("id", "what", "key", "reason", "since"), rows, "no dead letters")
        return OK

    finish(json, body)


@dead.command("replay")
def replay_dead(
    letter: Letter,
    ttl: Annotated[str | None, typer.Option("--ttl", metavar="P1D", help="How long it is kept this time.")] = None,
    json: Json = False,
) -> None:
    """Accept a dead letter again, under a new delivery id."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            answer = engine.replay(letter, ttl=ttl)
        output.row(
            {"id": answer.id, "replayed": letter, "duplicate": answer.duplicate},
            lambda: f"{letter} is accepted again as {answer.id}",
        )
        return OK

    finish(json, body)


@dead.command("drop")
def drop_dead(letter: Letter, json: Json = False) -> None:
    """Throw a dead letter away for good."""

    def body(output: Output) -> int:
        with operations(output) as engine:
            engine.drop(letter)
        output.row({"dropped": letter}, lambda: f"{letter} is dropped")
        return OK

    finish(json, body)
