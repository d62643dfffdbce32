"""The verbs that every family of flow nodes answers, and what each may assume.

A family is stateless and shared: everything it changes goes through the `Run` it is handed. Content that is wrong is
raised (any GobpmError); the run turns it into an incident of that track alone.

    enter      a token has arrived: pass at once (`run.complete`, `run.go_past`), or park (arm waits, hand out work)
    fire       a trigger for a wait that names this node has come
    interrupt  the token is taken away while it is parked here: end what only this family knows of
    retry      an operator wants the entry tried again
    resolve    an operator goes past the incident, with these values in place of a result
    recover    the host that had its effect died without a report
    inside_done  the child scope that the token hosts is empty
    inner_done   a node that this family watches is done, and its token has not left; True: the family saw to the token
    ask_again    tokens have moved or died elsewhere: may a join of this family open now?
    dehydratable (optional) may an instance be released while a token is parked here? A family without this capability
               keeps its instance resident (D2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from gobpm_ray.core.state import parse_wait_id
from gobpm_ray.errors import BrokenInvariant

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import ArmedWait, Scope, Track
    from gobpm_ray.core.step import Trigger


@dataclass(frozen=True, slots=True)
class Park:
    """A parked token, as a capability is asked about it."""

    track: Track
    node: ProgramNode
    now_ms: int
    threshold_ms: int
    release_jobs: bool = False
    """A worker's job is no reason to stay."""
    thresholds: Mapping[str, int] = field(default_factory=dict)
    """Elements with a threshold of their own, in ms: what counts for their waits."""

    def far(self) -> bool:
        """No own deadline, boundary timers included, is nearer than the threshold."""
        nearest = self.now_ms + self.threshold_ms
        if not self.thresholds:
            return all(wait.deadline is None or wait.deadline >= nearest for wait in self.track.waits.values())
        return not any(
            near(self.thresholds, name, wait, self.now_ms, nearest) for name, wait in self.track.waits.items()
        )


def near(thresholds: Mapping[str, int], name: str, wait: ArmedWait, now_ms: int, nearest: int) -> bool:
    """The wait's deadline is nearer than its element's threshold, or without one before `nearest`."""
    own = thresholds.get(parse_wait_id(name)[1])
    return wait.deadline is not None and wait.deadline < (nearest if own is None else now_ms + own)


@runtime_checkable
class Dehydratable(Protocol):
    """The optional capability of a family, answered from the token's own state."""

    def dehydratable(self, park: Park) -> bool: ...


class Family:
    """What a family does unless it says otherwise."""

    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        raise NotImplementedError

    def fire(self, run: Run, track: Track, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        raise BrokenInvariant(
            f"instance {run.state.id}: {node.element.type} '{node.id}' arms no wait, yet {wait} fired"
        )

    def interrupt(self, run: Run, track: Track, node: ProgramNode) -> None:
        """Waits are withdrawn by the run; there is nothing else to end."""

    def retry(self, run: Run, track: Track, node: ProgramNode) -> None:
        run.revisit(track)

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        run.complete(track, node, values)

    def inside_done(self, run: Run, track: Track, node: ProgramNode, scope: Scope) -> None:
        raise BrokenInvariant(f"instance {run.state.id}: {node.element.type} '{node.id}' hosts scope {scope.id}")

    def inner_done(self, run: Run, track: Track, node: ProgramNode) -> bool:
        raise BrokenInvariant(f"instance {run.state.id}: nothing watches {node.element.type} '{node.id}'")

    def ask_again(self, run: Run, scope: Scope, node: ProgramNode) -> bool:
        """True: something has changed. A join that counts nothing but its own flows has no need to be asked."""
        return False

    def recover(self, run: Run, track: Track, node: ProgramNode) -> None:
        raise BrokenInvariant(f"instance {run.state.id}: {node.element.type} '{node.id}' hands out no effect")
