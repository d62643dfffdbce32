"""What a rehearsal answers for one file: the result object of `simulate` and `run` (design section 11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gobpm_ray.engine.views import InstanceView, WaitView, moment_text, plain
from gobpm_ray.model.elements import Process

OutcomeState = Literal["completed", "terminated", "waiting", "incident", "rejected"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where an instance stands after the last step. `rejected`: the file was refused, and `error` says why."""

    file: str
    process_id: str | None
    instance_id: str | None = None
    """None: nothing has started it yet."""
    state: OutcomeState = "waiting"
    trace: Sequence[str] = ()
    """Flow nodes, once per completion, in order."""
    trace_names: Sequence[str] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    waits: Sequence[Mapping[str, Any]] = ()
    incidents: Sequence[Mapping[str, Any]] = ()
    children: Sequence[Outcome] = ()
    error: str | None = None
    """Why the run stopped before its end."""

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "instance_id": self.instance_id,
            "process_id": self.process_id,
            "state": self.state,
            "trace": list(self.trace),
            "trace_names": list(self.trace_names),
            "variables": plain(self.variables),
            "waits": [dict(wait) for wait in self.waits],
            "incidents": [dict(incident) for incident in self.incidents],
            "children": [child.to_json() for child in self.children],
            "error": self.error,
        }

    def family(self) -> Iterable[Outcome]:
        """It and everything it started, at any depth."""
        yield self
        for child in self.children:
            yield from child.family()


def rejected(file: str, why: str) -> Outcome:
    return Outcome(file, None, state="rejected", error=why)


def not_started(
    file: str, process_id: str, starts: Iterable[WaitView], error: str | None, others: Sequence[Outcome]
) -> Outcome:
    """Of a process that waits for a message, a signal or a deadline to begin."""
    return Outcome(file, process_id, waits=_waits(starts), children=others, error=error)


def outcome_of(
    file: str, view: InstanceView, process: Process | None, children: Sequence[Outcome], error: str | None
) -> Outcome:
    return Outcome(
        file=file,
        process_id=view.process_id,
        instance_id=view.instance_id,
        state=state_of(view),
        trace=view.trace,
        trace_names=[_name(process, node) for node in view.trace],
        variables=view.variables,
        waits=_waits(view.waits),
        incidents=[{"node": incident.node, "cause": incident.cause} for incident in view.incidents],
        children=children,
        error=error,
    )


def state_of(view: InstanceView) -> OutcomeState:
    """An open incident decides; what is held or on its way still waits."""
    if view.incidents:
        return "incident"
    return view.state if view.state == "completed" or view.state == "terminated" else "waiting"


def _waits(waits: Iterable[WaitView]) -> list[dict[str, Any]]:
    return [{"node": wait.node, "kind": wait.kind, "deadline": moment_text(wait.deadline_ms)} for wait in waits]


def _name(process: Process | None, node: str) -> str:
    element = process.nodes.get(node) if process is not None else None
    return (element.name if element is not None else "") or node
