"""`gobpm-ray`: the commands, by name, and the one place where everything that goes wrong becomes a line and an exit
code."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from gobpm_ray.cli import care, check, daemon, data, human_tasks, jobs, operations, simulate_run
from gobpm_ray.cli.output import INPUT, INTERRUPTED, Output, reported

app = typer.Typer(
    name="gobpm-ray",
    help="A BPMN 2.0 engine on Ray: an instance that waits costs nothing and wakes exactly once.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

LOOK = "Read a file"
RUN = "Run processes"
ENGINE = "The engine"
INSTANCES = "Instances"
PEOPLE = "Tasks"
REPAIR = "Operators"

COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    LOOK: {"check": check.check},
    RUN: {"simulate": simulate_run.simulate, "run": simulate_run.run},
    ENGINE: {"up": daemon.up, "status": daemon.status, "down": daemon.down, "top": operations.top},
    INSTANCES: {
        "deploy": operations.deploy,
        "start": operations.start,
        "list": operations.list_,
        "show": operations.show,
        "publish": operations.publish,
        "signal": operations.signal,
    },
    PEOPLE: {
        "tasks": human_tasks.tasks,
        "claim": human_tasks.claim,
        "unclaim": human_tasks.unclaim,
        "reassign": human_tasks.reassign,
        "complete": human_tasks.complete,
        "jobs": jobs.jobs,
    },
    REPAIR: {
        "incidents": operations.incidents,
        "retry": operations.retry,
        "resolve": operations.resolve,
        "set": operations.set_,
        "cancel": operations.cancel,
        "suspend": operations.suspend,
        "resume": operations.resume,
        "verify": care.verify,
    },
}
for panel, commands in COMMANDS.items():
    for command, function in commands.items():
        app.command(command, rich_help_panel=panel)(function)
app.add_typer(care.dead, name="dead", rich_help_panel=REPAIR)
app.add_typer(data.data, name="data", rich_help_panel=REPAIR)
app.add_typer(jobs.job, name="job", rich_help_panel=PEOPLE)


@app.callback(invoke_without_command=True)
def _without_a_command(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if version:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as installed

        try:
            typer.echo(installed("gobpm-ray"))
        except PackageNotFoundError:
            typer.echo("unknown: gobpm-ray is run from its sources and is not installed")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(INPUT)


def call(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; nothing is raised."""
    output = Output(json="--json" in arguments)
    with reported(output) as code:
        try:
            result = app(list(arguments), prog_name="gobpm-ray", standalone_mode=False)
            code[0] = result if isinstance(result, int) else 0
        except typer.TyperException as usage:
            output.error("usage", usage.format_message())
            code[0] = INPUT
        except (typer.Abort, EOFError):
            code[0] = INTERRUPTED
    return code[0]


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # JSON is UTF-8, and a name that the terminal cannot show must not end the command.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = call(sys.argv[1:])
    with reported(Output()):
        sys.stdout.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
