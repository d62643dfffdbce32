"""The conformance suite's cases: what stands in `scenarios/*.yaml`, and whether an outcome is what a case expects.

A file `scenarios/<model>.yaml` belongs to `<model>.bpmn` beside it:

    says: what the standard demands, and where
    files: [other.bpmn, rules.dmn]      deployed beside it, optional
    cases:
      a sentence that names the case:
        process, variables, now, steps, max_steps: the scenario (`gobpm_ray.engine.scenario`)
        expect: {state, trace | nodes, variables, waits, incidents, children, error}
        open: [variables that tell who came first among several instances, which the standard leaves open]

`trace` is the exact order of completions, `nodes` the same in any order, for what the standard leaves open. `variables`
are those named; `waits` and `incidents` are elements, each as often as it is there, and none when they are not given.
`children` are the instances that were started besides, in any order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator

from gobpm_ray.engine.outcome import Outcome
from gobpm_ray.engine.scenario import Scenario, read_scenario
from gobpm_ray.engine.views import plain

SCENARIOS = Path(__file__).parent / "scenarios"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
"""Files that lie beside the project and are not part of it: cases about them are skipped when they are absent."""


class Expected(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    process: str = ""
    state: str = "completed"
    trace: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    variables: dict[str, Any] = Field(default_factory=dict)
    absent: tuple[str, ...] = ()
    """Variables that must not be there."""
    waits: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    cause: str = ""
    """Stands in the first incident's cause."""
    children: tuple[Expected, ...] = ()
    error: str = ""
    """Stands in what stopped the run."""

    @field_validator("nodes")
    @classmethod
    def _in_any_order(cls, nodes: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if nodes is None else tuple(sorted(nodes))


@dataclass(frozen=True, slots=True)
class Case:
    model: str
    name: str
    scenario: Scenario
    expected: Expected
    main: Path
    beside: tuple[Path, ...] = ()
    missing: tuple[Path, ...] = ()
    open: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.model}: {self.name}"

    @property
    def number(self) -> int:
        """The same for ever: by it is chosen what runs on the real engine."""
        return int.from_bytes(hashlib.sha256(self.id.encode()).digest()[:8])

    @property
    def real(self) -> bool:
        """A third of the cases runs on the real engine too."""
        return self.number % 3 == 0

    @property
    def everyday(self) -> bool:
        """About a dozen of these, each time the tests run; the others take long."""
        return self.number % 30 == 0


def cases() -> list[Case]:
    return [case for path in sorted(SCENARIOS.glob("*.yaml")) for case in _of(path)]


def _of(path: Path) -> Iterator[Case]:
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    unknown = set(raw) - {"says", "model", "files", "cases"}
    assert not unknown, f"{path.name}: unknown {unknown}"
    main = _file(raw.get("model", f"{path.stem}.bpmn"))
    beside = tuple(_file(name) for name in raw.get("files", ()))
    for name, content in raw["cases"].items():
        expected = Expected.model_validate(content.pop("expect"))
        left_open = tuple(content.pop("open", ()))
        scenario = read_scenario(content, f"{path.name}: {name}")
        missing = tuple(file for file in (main, *beside) if not file.is_file())
        yield Case(path.stem, name, scenario, expected, main, beside, missing, left_open)


def _file(name: str) -> Path:
    """Of the suite; `corpus/...` of the files beside the project."""
    return CORPUS / name.removeprefix("corpus/") if name.startswith("corpus/") else SCENARIOS / name


def shape(outcome: Outcome, left_open: Collection[str] = ()) -> dict[str, Any]:
    """All of an outcome that must be the same however it came about; without ids, without order where several tokens
    move at once, and without the variables that the case leaves open."""
    return {
        "process": outcome.process_id,
        "state": outcome.state,
        "nodes": sorted(outcome.trace),
        "variables": plain({name: value for name, value in outcome.variables.items() if name not in left_open}),
        "waits": sorted((wait["node"], wait["kind"], wait["deadline"] or "") for wait in outcome.waits),
        "incidents": sorted((incident["node"], incident["cause"]) for incident in outcome.incidents),
        "children": sorted((shape(child, left_open) for child in outcome.children), key=repr),
        "error": outcome.error,
    }


def differences(expected: Expected, outcome: Outcome, where: str = "") -> list[str]:
    """What is not as expected, one line each."""
    found: list[str] = []

    def compare(what: str, wanted: object, have: object) -> None:
        if wanted != have:
            found.append(f"{where}{what}: expected {wanted!r}, it is {have!r}")

    if expected.process:
        compare("process", expected.process, outcome.process_id)
    compare("state", expected.state, outcome.state)
    if expected.trace is not None:
        compare("trace", list(expected.trace), list(outcome.trace))
    if expected.nodes is not None:
        compare("nodes", list(expected.nodes), sorted(outcome.trace))
    have = plain(outcome.variables)
    assert isinstance(have, dict)
    for name, value in expected.variables.items():
        compare(f"variable {name}", value, have.get(name, "(none)"))
    for name in expected.absent:
        compare(f"variable {name}", "(none)", have.get(name, "(none)"))
    waits = [str(wait["node"]) for wait in outcome.waits if wait["kind"] != "incident"]
    compare("waits", sorted(expected.waits), sorted(waits))
    compare("incidents", sorted(expected.incidents), sorted(str(incident["node"]) for incident in outcome.incidents))
    if expected.cause and not any(expected.cause in str(incident["cause"]) for incident in outcome.incidents):
        compare("cause", expected.cause, [str(incident["cause"]) for incident in outcome.incidents])
    if expected.error not in (outcome.error or "") or bool(expected.error) != bool(outcome.error):
        compare("error", expected.error, outcome.error)
    return found + _children(expected.children, outcome.children, where)


def _children(expected: Sequence[Expected], outcomes: Sequence[Outcome], where: str) -> list[str]:
    if len(expected) != len(outcomes):
        shown = [f"{outcome.process_id} {outcome.state} {list(outcome.trace)}" for outcome in outcomes]
        return [f"{where}children: expected {len(expected)}, there are {shown}"]
    left, found = list(outcomes), []
    for number, wanted in enumerate(expected, 1):
        answers = [differences(wanted, outcome, f"{where}child {number}: ") for outcome in left]
        best = min(range(len(left)), key=lambda index: len(answers[index]))
        found += answers[best]
        del left[best]
    return found
