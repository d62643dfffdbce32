"""Options and arguments that several commands share, declared once so that they read alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON object per line on stdout, everything else on stderr.")]
Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="BPMN 2.0 files.", show_default=False)]
Process = Annotated[
    str,
    typer.Option(
        "--process", metavar="ID", help="The process to start. Default: the first executable one of each file."
    ),
]
Variables = Annotated[
    list[str] | None, typer.Option("--var", metavar="NAME=JSON", help="A variable; may be given many times.")
]
Secrets = Annotated[
    list[str] | None,
    typer.Option("--secret", metavar="NAME", help="A variable that nobody is shown; may be given many times."),
]
ScenarioPath = Annotated[
    Path | None,
    typer.Option(
        "--scenario",
        metavar="S.yaml|FOLDER",
        help="What happens: one scenario for all files, or a folder with one for each.",
    ),
]
Beside = Annotated[
    list[Path] | None,
    typer.Option("--with", metavar="FILE", help="A file that is deployed and not run; may be given many times."),
]
Strict = Annotated[bool, typer.Option("--strict", help="A user completes only a task that was claimed.")]
Instance = Annotated[str, typer.Argument(metavar="INSTANCE", help="An instance id.", show_default=False)]
Chosen = Annotated[str, typer.Argument(metavar="[INSTANCE]", help="An instance id.", show_default=False)]
OfProcess = Annotated[str, typer.Option("--process", metavar="ID", help="All instances of this process.")]
OfState = Annotated[str, typer.Option("--state", metavar="STATE", help="All in this state, as `list` shows it.")]
OfKey = Annotated[str, typer.Option("--business-key", metavar="KEY", help="All with this business key.")]
Node = Annotated[str, typer.Argument(metavar="[NODE]", help="The failed element. Default: the oldest open incident.")]
Task = Annotated[
    str, typer.Argument(metavar="TASK", help="A task's id, or a node id: its oldest open task.", show_default=False)
]
User = Annotated[str, typer.Option("--user", metavar="NAME", help="Who acts. Default: an operator.")]
Groups = Annotated[
    list[str] | None, typer.Option("--group", metavar="NAME", help="A group of the user; may be given many times.")
]
Payload = Annotated[str | None, typer.Option("--payload", metavar="JSON", help="A JSON object of values.")]
Outputs = Annotated[str | None, typer.Option("--outputs", metavar="JSON", help="A JSON object of outputs.")]
MessageKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="KEY|NAME=JSON",
        help="Its correlation key; or a correlation property, may be given many times. "
        "A key that contains an = is written with one before it.",
    ),
]
DeliveryId = Annotated[
    str | None, typer.Option("--id", metavar="ID", help="The delivery's id: the same again changes nothing.")
]
