"""What a scenario file says: which process, from which variables and moment, and the steps that happen to it.

This module knows the file's shape and names what is wrong with it in one line (file, step number, why). It refuses to
know an engine: `gobpm_ray.engine.rehearsal` performs the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gobpm_ray.calendar.moments import parse_date
from gobpm_ray.engine.steps import KINDS, Body, Job, JobError, JobEscalation, JobFailure, Stop
from gobpm_ray.errors import InvalidScenario, InvalidTimer

START_OF_TIME_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: where a virtual clock starts unless the scenario says otherwise."""

MAX_STEPS = 10_000


_INSIDE = {"advance": "duration", "set": "values", "data": "values"}
"""Steps whose value is the content itself and not a table of named fields."""

_JOB_STEPS = (Job, JobError, JobFailure, JobEscalation)


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `number` counts from 1, `optional` lets the run go on when nothing takes it."""

    number: int
    kind: str
    body: Body
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole scenario; without a file it starts the process and lets time run."""

    process: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    """What data stores hold before anything is started."""
    now_ms: int = START_OF_TIME_MS
    steps: tuple[Step, ...] = ()
    max_steps: int = MAX_STEPS
    source: str = ""

    @property
    def stops(self) -> bool:
        """It ends with `stop`: time stands still after the last step."""
        return bool(self.steps) and isinstance(self.steps[-1].body, Stop)

    @property
    def job_nodes(self) -> frozenset[str]:
        """Elements that wait as jobs, because a step reports them."""
        return frozenset(_node_of(step.body.job) for step in self.steps if isinstance(step.body, _JOB_STEPS))


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    process: str = ""
    variables: dict[str, Any] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    now: Any = None
    steps: list[Any] = Field(default_factory=list)
    max_steps: int = Field(default=MAX_STEPS, ge=1)

    @field_validator("variables", "data", "steps", "process", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object, info: Any) -> object:
        return {"variables": {}, "data": {}, "steps": [], "process": ""}[info.field_name] if value is None else value


def load_scenario(path: Path | str) -> Scenario:
    """The scenario of a YAML file; InvalidScenario names the file, the step and the reason."""
    try:
        text = Path(path).read_bytes()
    except OSError as failure:
        raise InvalidScenario(f"{path}: cannot be read: {failure.strerror or failure}") from None
    return parse_scenario(text, str(path))


def parse_scenario(text: str | bytes, source: str = "scenario") -> Scenario:
    """As `load_scenario`, for the text itself."""
    try:
        raw = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as failure:
        raise InvalidScenario(f"{source}: not YAML: {_one_line(failure)}") from None
    return read_scenario({} if raw is None else raw, source)


def read_scenario(raw: object, source: str = "scenario") -> Scenario:
    """As `load_scenario`, for what the YAML says as Python values."""
    if not isinstance(raw, dict):
        raise InvalidScenario(f"{source}: expected a table with process, variables, now, steps; found {_shape(raw)}")
    try:
        file = _File.model_validate(raw)
    except ValidationError as failure:
        raise InvalidScenario(f"{source}: {_first(failure)}") from None
    steps = tuple(_step(number, item, source) for number, item in enumerate(file.steps, 1))
    for step in steps[:-1]:
        if isinstance(step.body, Stop):
            raise InvalidScenario(f"{source}: step {step.number}: stop: only the last step may be stop")
    return Scenario(
        process=file.process,
        variables=file.variables,
        data=file.data,
        now_ms=_moment(file.now, source),
        steps=steps,
        max_steps=file.max_steps,
        source=source,
    )


def _step(number: int, raw: object, source: str) -> Step:
    where = f"{source}: step {number}"
    if not isinstance(raw, dict):
        raise InvalidScenario(f"{where}: expected one step such as {{advance: PT2H}}, found {_shape(raw)}")
    kinds = [key for key in raw if key not in ("optional", "all")]
    if len(kinds) != 1:
        found = ", ".join(str(kind) for kind in kinds) or "none"
        raise InvalidScenario(f"{where}: expected exactly one of {', '.join(KINDS)}; found {found}")
    kind = str(kinds[0])
    if kind not in KINDS:
        raise InvalidScenario(f"{where}: unknown step {kind!r}; expected one of {', '.join(KINDS)}")
    optional = raw.get("optional", False)
    if not isinstance(optional, bool):
        raise InvalidScenario(f"{where}: optional: expected true or false, found {_shape(optional)}")
    body = raw[kind]
    if kind in _INSIDE:
        body = {_INSIDE[kind]: body}
    elif body is None:
        body = {}
    elif not isinstance(body, dict):
        raise InvalidScenario(f"{where}: {kind}: expected a table, found {_shape(body)}")
    if "all" in raw:
        body = {**body, "all": raw["all"]}
    try:
        return Step(number, kind, KINDS[kind].model_validate(body), optional)
    except ValidationError as failure:
        raise InvalidScenario(f"{where}: {kind}: {_first(failure, hide=_INSIDE.get(kind, ''))}") from None


def _first(failure: ValidationError, hide: str = "") -> str:
    error = failure.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in error["loc"] if part != hide)
    why = error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing":
        why = "is missing"
    elif error["type"] == "extra_forbidden":
        why = "is not a field of it"
    return f"{place}: {why}" if place else why


def _moment(raw: object, source: str) -> int:
    if raw is None:
        return START_OF_TIME_MS
    if isinstance(raw, datetime) and raw.tzinfo is None:
        # YAML reads `2026-01-01 00:00:00` and an offset alike as naive UTC.
        raw = raw.replace(tzinfo=UTC)
    elif isinstance(raw, date) and not isinstance(raw, datetime):
        raw = datetime(raw.year, raw.month, raw.day, tzinfo=UTC)
    elif not isinstance(raw, str | datetime):
        raise InvalidScenario(f"{source}: now: expected a date and time, found {_shape(raw)}")
    try:
        return parse_date(raw)
    except InvalidTimer as failure:
        raise InvalidScenario(f"{source}: now: {failure}") from None


def _node_of(name: str) -> str:
    """The node of a node id or of an exact id `instance/track:node:index:visit`."""
    if "/" not in name:
        return name
    parts = name.partition("/")[2].split(":")
    return ":".join(parts[1:-2]) if len(parts) >= 4 else name


def _shape(value: object) -> str:
    text = _one_line(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _one_line(value: object) -> str:
    return " ".join(str(value).split())


def scenarios_in(folder: Path, files: list[Path]) -> Iterator[tuple[Path, Scenario]]:
    """Each file with the scenario `<stem>.yaml` of the folder; without one it just runs."""
    for file in files:
        path = folder / f"{file.stem}.yaml"
        yield file, load_scenario(path) if path.exists() else Scenario(source=str(path))
