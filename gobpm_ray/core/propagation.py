"""Who catches an error or an escalation: innermost first (BPMN 13.5.2).

From the token that throws outwards: the boundary events over what it stands in, then the event sub-processes of its
scope, then the boundaries over the sub-process that the scope is the inside of, and so on up to the root. On each
level an event that names the code is preferred to one that catches every code. A scope that an interrupting handler
has taken over catches nothing more, and no event sub-process catches what was thrown inside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from gobpm_ray.core.calling import escalate_to_caller, fail_to_caller
from gobpm_ray.core.faults import UNCAUGHT_ERROR, Fault
from gobpm_ray.core.listening import handle
from gobpm_ray.core.operands import Error, Escalation
from gobpm_ray.errors import BrokenInvariant
from gobpm_ray.model.elements import BoundaryEvent, EndEvent, ThrowEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track

Kind = type[Error] | type[Escalation]


@dataclass(frozen=True, slots=True)
class Catcher:
    node: ProgramNode
    """A boundary event, or the start event of an event sub-process."""
    track: Track | None
    """The token that the boundary lies over."""
    scope: Scope
    """The scope that the event sub-process, or the token, lies in."""


def find(run: Run, track: Track, kind: Kind, code: str) -> Catcher | None:
    """The event that catches what the token throws; None: nobody up to the root."""
    state = run.state
    at: Track | None = track
    while at is not None:
        node = run.node(at)
        scope = state.scope(at.scope)
        if (boundary := _best(run, node.boundaries, kind, code)) is not None:
            return Catcher(boundary, at, scope)
        host = state.track(scope.host) if scope.host else None
        if host is None and scope.host:
            raise BrokenInvariant(f"instance {state.id}: scope {scope.id} has lost its host {scope.host}")
        # The scope of one round of an iteration is not the inside of its activity and listens to nothing.
        if not scope.interrupted and (host is None or host.child == scope.id):
            listeners = run.program.listeners.get(scope.node, ())
            outside = [start for start in listeners if run.nodes[start].scope != node.id]
            if (start := _best(run, outside, kind, code)) is not None:
                return Catcher(start, None, scope)
        at = host
    return None


def catch(run: Run, catcher: Catcher, values: dict[str, object]) -> None:
    """The catching event has fired. Whatever it interrupts is gone, the thrower perhaps included."""
    run.record("woken", catcher.node.id, "error" if _catches(catcher.node, Error) else "escalation")
    track, node = catcher.track, catcher.node
    if track is None:
        handle(run, catcher.scope, node, values)
    elif cast(BoundaryEvent, node.element).interrupting or _catches(node, Error):
        run.leave_by(track, node, values)
    else:
        run.fork_at(track, node, values)


def throw_error(run: Run, track: Track, code: str, values: dict[str, object], cause: str = "") -> bool:
    """The activity that the token stands in has failed with this error. True: it was caught, or has ended this called
    instance, and the token is gone or has gone on elsewhere. False: nobody catches it, and nothing has happened."""
    catcher = find(run, track, Error, code)
    if catcher is not None:
        catch(run, catcher, values)
        return True
    if run.state.caller:
        fail_to_caller(run, code, values, cause)
        return True
    return False


def throw_escalation(run: Run, track: Track, code: str, values: dict[str, object]) -> bool:
    """True: the token goes on as if nothing had happened; False: who caught the escalation has interrupted it."""
    catcher = find(run, track, Escalation, code)
    if catcher is None:
        if run.state.caller:
            escalate_to_caller(run, track, code, values)
        else:
            run.record("uncaught", track.node, f"escalation '{code}'")
        return True
    visit = track.visit
    thrower = run.node(track).element
    if isinstance(thrower, ThrowEvent | EndEvent) and cast(BoundaryEvent, catcher.node.element).interrupting:
        run.record("node", thrower.id)  # it has thrown, as an error end has: only what would follow it is interrupted
    catch(run, catcher, values)
    return run.state.tracks.get(track.id) is track and track.visit == visit


def uncaught(node: ProgramNode, code: str, cause: str = "") -> Fault:
    """What the thrower's incident says."""
    why = f": {cause}" if cause else ""
    return Fault(UNCAUGHT_ERROR, f"error '{code}' thrown by {node.element.type} '{node.id}' is caught by nobody{why}")


def _best(run: Run, events: Iterable[str], kind: Kind, code: str) -> ProgramNode | None:
    catches_all = None
    for event in events:
        node = run.nodes[event]
        for definition in node.definitions:
            if isinstance(definition, kind):
                if definition.code == code and code:
                    return node
                if not definition.code and catches_all is None:
                    catches_all = node
    return catches_all


def _catches(node: ProgramNode, kind: Kind) -> bool:
    return any(isinstance(definition, kind) for definition in node.definitions)
