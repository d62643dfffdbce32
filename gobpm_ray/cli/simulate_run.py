"""`simulate` and `run`: the same scenarios, in this process on a virtual clock, or on the real engine."""

from __future__ import annotations

import dataclasses
import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gobpm_ray.cli.options import Beside, Files, Json, Process, ScenarioPath, Strict, Variables
from gobpm_ray.cli.output import INCIDENT, INPUT, OK, WAITING, Output, finish, variables
from gobpm_ray.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from gobpm_ray.engine.engine import Engine
    from gobpm_ray.engine.outcome import Outcome
    from gobpm_ray.engine.scenario import Scenario
    from gobpm_ray.settings import Settings

    Opening = Callable[[Scenario], AbstractContextManager[Engine]]

WHOLE_HISTORY = 1_000_000
"""Entries: the trace is the history, so nothing of it may be trimmed."""


class ClockName(StrEnum):
    virtual = "virtual"
    real = "real"


def simulate(
    files: Files,
    process: Process = "",
    var: Variables = None,
    scenario: ScenarioPath = None,
    beside: Beside = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Run processes in this very program, on a virtual clock, and print where they end. No store, no Ray."""

    def body(output: Output) -> int:
        from gobpm_ray.engine.engine import Engine

        # What it would warn of is said once for each file, before anything runs.
        logging.getLogger("gobpm_ray").setLevel(logging.ERROR)

        def opening(chosen: Scenario) -> Engine:
            return Engine.open(None, clock="virtual", now=chosen.now_ms, settings=_settings())

        return _rehearse(output, opening, files, scenario, variables(var or ()), process, beside or (), strict)

    finish(json, body)


def run(
    files: Files,
    process: Process = "",
    var: Variables = None,
    scenario: ScenarioPath = None,
    beside: Beside = None,
    strict: Strict = False,
    clock: Annotated[ClockName, typer.Option("--clock", help="Whose time the engine follows.")] = ClockName.virtual,
    threshold: Annotated[
        str, typer.Option("--threshold", metavar="PT0S", help="A timer nearer than this keeps its instance resident.")
    ] = "PT30S",
    json: Json = False,
) -> None:
    """Run processes on the real engine: store, Ray actors, holders. The same answers as `simulate`."""

    def body(output: Output) -> int:
        from gobpm_ray.engine.amounts import after

        settings = dataclasses.replace(_settings(), dehydration_threshold_ms=after(0, threshold))
        with _real_engines(output, clock.value, settings) as opening:
            return _rehearse(output, opening, files, scenario, variables(var or ()), process, beside or (), strict)

    finish(json, body)


def _settings() -> Settings:
    from gobpm_ray.settings import Settings

    return Settings(auto_complete=True, history_limit=WHOLE_HISTORY)


# --- what is run with what


def _rehearse(
    output: Output,
    opening: Opening,
    files: Sequence[Path],
    path: Path | None,
    given: dict[str, Any],
    process: str,
    beside: Sequence[Path],
    strict: bool,
) -> int:
    """Every group of files in an engine of its own; the exit code of them all."""
    from gobpm_ray.engine.rehearsal import Rehearsal

    _all_there([*files, *beside])
    plan = list(_plan(files, path))
    outcomes: list[Outcome] = []
    for group, scenario in plan:
        chosen = dataclasses.replace(scenario, variables={**scenario.variables, **given})
        with opening(chosen) as engine:
            say = output.note if not output.json and sys.stderr.isatty() else _silent
            rehearsal = Rehearsal(engine, chosen, strict=strict, say=say, warn=output.warn)
            found = rehearsal.run([str(file) for file in group], process, [str(file) for file in beside])
        for outcome in found:
            output.row(outcome.to_json())
            if not output.json:
                from gobpm_ray.cli.render import show_outcome

                show_outcome(outcome)
        outcomes += found
    return _exit_code(outcomes)


def _silent(_text: str) -> None:
    """A pipe wants the answer, not the story."""


def _plan(files: Sequence[Path], path: Path | None) -> Iterator[tuple[Sequence[Path], Scenario]]:
    from gobpm_ray.engine.scenario import Scenario, load_scenario, scenarios_in

    if path is not None and path.is_dir():
        yield from (([file], scenario) for file, scenario in scenarios_in(path, list(files)))
    else:
        yield files, Scenario() if path is None else load_scenario(path)


def _all_there(files: Iterable[Path]) -> None:
    """Before anything runs: a file that is not there is a slip of the caller, not a finding about a file."""
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: {'is a folder, not a file' if file.is_dir() else 'there is no such file'}")


def _exit_code(outcomes: Sequence[Outcome]) -> int:
    states = {each.state for outcome in outcomes for each in outcome.family()}
    if "rejected" in states or any(outcome.error is not None for outcome in outcomes):
        return INPUT
    if "incident" in states:
        return INCIDENT
    return WAITING if "waiting" in states else OK


# --- the real engine


@contextmanager
def _real_engines(output: Output, clock: str, settings: Settings) -> Iterator[Opening]:
    """Opens engines that share one store and one Ray, each under an id of its own, so that none sees another.

    Without GOBPM_REDIS_URL and GOBPM_HOME the store lives in a folder that goes when everything is over."""
    from gobpm_ray.engine.engine import Engine
    from gobpm_ray.engine.on_ray import SharedRay, open_on_ray
    from gobpm_ray.store.embedded import EmbeddedStore

    configured = any(os.environ.get(name) for name in ("GOBPM_REDIS_URL", "GOBPM_HOME"))
    shared = SharedRay()
    home = None if configured else tempfile.mkdtemp(prefix="gobpm-run-")

    def opening(scenario: Scenario) -> Engine:
        if not output.json and sys.stderr.isatty():
            output.note("starting the engine")
        return open_on_ray(
            Engine,
            "embedded",
            "local",
            dataclasses.replace(settings, engine_id=f"run-{secrets.token_hex(4)}"),
            "virtual" if clock == "virtual" else "real",
            scenario.now_ms,
            home,
            shared=shared,
            passing=True,
        )

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    # Asked to end, it ends what it started: a store or a Ray left behind would be nobody's.
    before = signal.signal(signal.SIGTERM, interrupted)
    try:
        yield opening
    finally:
        signal.signal(signal.SIGTERM, before)
        shared.close()
        if home is not None:
            EmbeddedStore(home).stop()
            shutil.rmtree(home, ignore_errors=True)
