"""Tables and colours for people; nothing here is a contract. rich falls back to plain text where no terminal reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gobpm_ray.engine.outcome import Outcome

_COLOURS = {
    "completed": "green",
    "terminated": "magenta",
    "waiting": "yellow",
    "running": "cyan",
    "suspended": "blue",
    "incident": "red",
    "rejected": "red",
}


def console() -> Console:
    return Console(highlight=False, soft_wrap=True)


def coloured(state: str) -> str:
    colour = _COLOURS.get(state)
    return f"[{colour}]{state}[/]" if colour else escape(state)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """A table, or the sentence `empty` when there are no rows."""
    rows = list(rows)
    if not rows:
        console().print(escape(empty))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(
            *(
                coloured(str(cell)) if column == "state" else escape(str(cell))
                for column, cell in zip(columns, row, strict=True)
            )
        )
    console().print(table)


def show_fields(fields: Mapping[str, object]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in fields.items():
        table.add_row(name, coloured(str(value)) if name == "state" else escape(str(value)))
    console().print(table)


def show_check(answer: Mapping[str, Any]) -> None:
    out = console()
    verdict = "[green]ok[/]" if answer["ok"] else "[red]refused[/]"
    kind = "executable" if answer["executable"] else "not executable"
    processes = ", ".join(answer["processes"]) or "no process"
    out.print(f"[bold]{escape(answer['file'])}[/] {verdict} · {kind} · {escape(processes)}")
    for level, colour in (("errors", "red"), ("warnings", "yellow")):
        for finding in answer[level]:
            place = f" line {finding['line']}" if finding.get("line") else ""
            out.print(f"  [{colour}]{level[:-1]}[/]{place}: {escape(finding['message'])} ({escape(finding['code'])})")


def show_outcome(outcome: Outcome, depth: int = 0) -> None:
    out, margin = console(), "  " * depth
    who = outcome.process_id or "?"
    place = f"[bold]{escape(outcome.file)}[/] " if depth == 0 else ""
    name = f" {escape(outcome.instance_id)}" if outcome.instance_id else ""
    out.print(f"{margin}{place}{escape(who)}{name}: {coloured(outcome.state)}")
    if outcome.trace_names:
        out.print(f"{margin}  path: {escape(' → '.join(outcome.trace_names))}")
    for wait in outcome.waits:
        until = f" until {wait['deadline']}" if wait["deadline"] else ""
        out.print(f"{margin}  waits: {escape(str(wait['node']))} ({wait['kind']}){until}")
    for incident in outcome.incidents:
        out.print(f"{margin}  [red]incident[/]: {escape(str(incident['node']))}: {escape(str(incident['cause']))}")
    if outcome.variables:
        shown = ", ".join(f"{key} = {value!r}" for key, value in outcome.to_json()["variables"].items())
        out.print(f"{margin}  variables: {escape(shown)}")
    if outcome.error:
        out.print(f"{margin}  [red]error[/]: {escape(outcome.error)}")
    for child in outcome.children:
        show_outcome(child, depth + 1)
