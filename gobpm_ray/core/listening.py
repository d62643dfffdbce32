"""Event sub-processes: what a scope itself waits for, and the handlers that it then runs (BPMN 13.5.4).

Their start events are armed when the scope opens, as waits of the scope (`@<scope>:start event:index:visit`), and end
with it. A handler is a token of that scope that stands at the event sub-process and hosts its inside: so the scope
completes when its tokens and its handlers have ended. An interrupting handler takes the scope over: everything else
in it ends, and from then on it catches nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gobpm_ray.core.arming import arm_definitions, arm_next, occurred
from gobpm_ray.core.faults import LISTENING
from gobpm_ray.core.shapes import opened
from gobpm_ray.core.state import SCOPE_OWNER, TrackState
from gobpm_ray.errors import BrokenInvariant, GobpmError
from gobpm_ray.model.elements import StartEvent

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track
    from gobpm_ray.core.step import Trigger


def listen(run: Run, scope: Scope) -> None:
    """The scope, just opened and with its variables set, waits for the start events of its event sub-processes."""
    for start in run.program.listeners.get(scope.node, ()):
        node = run.nodes[start]
        try:
            listen_for(run, scope, node)
        except BrokenInvariant:
            raise
        except GobpmError as error:
            track = run.new_track(scope, start)
            run.number_visit(track)
            run.incident(track, error, LISTENING)


def listen_for(run: Run, scope: Scope, node: ProgramNode) -> None:
    """One start event is armed. A timer without an occurrence (R0) arms nothing: its handler never runs."""
    interrupting = interrupts(node)
    group = SCOPE_OWNER + scope.id if interrupting else ""
    before = set(scope.waits)
    try:
        arm_definitions(run, scope, node, group, repeat=not interrupting, visit=_number(run))
    except GobpmError:
        run.withdraw(scope, [wait for wait in scope.waits if wait not in before])
        raise


def heard(run: Run, scope: Scope, node: ProgramNode, wait: str, trigger: Trigger) -> None:
    """A wait of the scope is met."""
    values = occurred(run, scope, node, wait, trigger.values)
    if values is None:
        return
    if not interrupts(node):
        if node.gathers:
            arm_definitions(run, scope, node, visit=_number(run))
        elif trigger.kind == "timer":
            arm_next(run, scope, node, wait)
    handle(run, scope, node, values)


def handle(run: Run, scope: Scope, node: ProgramNode, values: dict[str, object]) -> None:
    """The handler that begins at this start event runs in the scope; interrupting, it has the scope for itself."""
    if interrupts(node):
        run.clear(scope)
        scope.interrupted = True
        run.changed.add(f"s{scope.id}")
    begin(run, scope, node, values)


def begin(run: Run, scope: Scope, node: ProgramNode, values: dict[str, object]) -> None:
    """A token of the scope hosts the event sub-process, and inside it one has passed the start event."""
    host = run.new_track(scope, node.scope)
    run.number_visit(host)
    inside = run.open_scope(host, node.scope, opened(run.program.declared.get(node.scope), {}))
    host.child = inside.id
    host.state = TrackState.HOSTING
    track = run.new_track(inside, node.id)
    run.number_visit(track)
    run.complete(track, node, values)
    if inside.id in run.state.scopes:
        listen(run, inside)


def interrupts(node: ProgramNode) -> bool:
    return cast(StartEvent, node.element).interrupting


def stands_outside(run: Run, track: Track, node: ProgramNode) -> bool:
    """The token stands for a start event that could not be armed: in the scope that should listen, not inside."""
    return node.id in run.program.listeners.get(run.state.scope(track.scope).node, ())


def _number(run: Run) -> int:
    run.state.head.visits += 1
    run.changed.add("h")
    return run.state.head.visits
