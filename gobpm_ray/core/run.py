"""One step in the making: the single writer of an instance's state, and the moves that every node family is made of.

A `Run` lives for one `advance`, and keeps its `Books` so that no family has to. Tokens fork, go on and end here, scopes
open, complete and are torn down, and here alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from gobpm_ray.core import conditions, listening
from gobpm_ray.core.books import Books
from gobpm_ray.core.calling import report_end
from gobpm_ray.core.compensation import book
from gobpm_ray.core.faults import DEADLOCK, ENDLESS_LOOP, FAILURE, FLOW, NO_WAY_OUT, OUTPUT, Fault
from gobpm_ray.core.operands import Operand
from gobpm_ray.core.program import Program, ProgramFlow, ProgramNode
from gobpm_ray.core.state import ROOT, InstanceState, Scope, Track, TrackState
from gobpm_ray.core.step import HistoryEntry, Trigger
from gobpm_ray.core.variables import visible
from gobpm_ray.errors import BrokenInvariant, ExpressionError, GobpmError

_PARKED = (TrackState.WAITING, TrackState.WORKING, TrackState.HOSTING)
_WIDEST = 10
"""A step may pass this many times `limit` nodes in all: a wide fork may, a loop that forks without end may not."""


class Run(Books):
    __slots__ = ("closing", "depth", "doomed", "limit", "passed", "ready")

    def __init__(self, program: Program, state: InstanceState, now_ms: int, epoch: int, limit: int) -> None:
        super().__init__(program, state, now_ms, epoch)
        self.limit = limit
        self.ready: deque[tuple[Track, int]] = deque()
        """Tokens that can go on, first in first out, each with the nodes that its path has passed since the trigger."""
        self.depth = 0
        self.passed = 0
        self.closing: list[Scope] = []
        """Scopes without a token, to be closed before the next token moves. A list, and not a recursion, so that the
        depth of nesting is no limit."""
        self.doomed: list[Scope] = []
        """Scopes that `clear` has still to end."""

    @property
    def widest(self) -> int:
        """The most rounds that one iteration may begin with."""
        return self.limit * _WIDEST

    # --- the loop ----------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """No token is ready any more."""
        tracks = self.state.tracks
        while self.ready or self.closing or self.stale or (self.program.merges and self.settle()):
            if self.closing:
                self.hand_over(self.closing.pop())
                continue
            if self.stale:
                conditions.ask(self)
                continue
            if not self.ready:
                continue  # a join has opened, and its token has found no way to go
            track, self.depth = self.ready.popleft()
            # A terminate end may have ended it while it stood in the queue.
            if tracks.get(track.id) is track:
                self.visit(track)
        self.depth = self.passed = 0

    def visit(self, track: Track, *, again: bool = False) -> None:
        """The token has entered the node it stands at; boundary events are armed over it if it parked there.

        `again`: its work is done once more. The boundaries stayed armed all the while, and so they do if it fails."""
        node = self.node(track)
        kept = set(track.waits) if again else ()
        self.number_visit(track)
        self.passed += 1
        try:
            if self.depth >= self.limit or self.passed > self.limit * _WIDEST:
                raise Fault(
                    ENDLESS_LOOP,
                    f"passed {self.limit} nodes in one step without a wait: an endless loop at '{node.id}'",
                )
            if node.inputs or node.properties:
                track.local = self.map((*node.properties, *node.inputs), visible(self.state, track), "input")
                if node.needs is not None:
                    node.needs.require(track.local, f"input of '{node.id}'")
            node.family.enter(self, track, node)
            if node.boundaries and not again and track.state in _PARKED:
                for boundary in node.boundaries:
                    self.nodes[boundary].family.enter(self, track, self.nodes[boundary])
        except BrokenInvariant:
            raise
        except GobpmError as error:
            self.abandon(track, kept)
            self.incident(track, error, FAILURE if again else "")

    # --- tokens ------------------------------------------------------------------------------------------------------

    def new_track(self, scope: Scope, node: str, parent: str = "", flow: str = "") -> Track:
        """A token that stands at `node` and is in nobody's queue yet."""
        head = self.state.head
        head.tracks += 1
        track = Track(id=str(head.tracks), scope=scope.id, node=node, parent=parent, flow=flow)
        self.state.tracks[track.id] = track
        self.born.add(f"t{track.id}")
        scope.live += 1
        self.changed.update(("h", f"t{track.id}", f"s{scope.id}"))
        return track

    def place(self, track: Track, node: str, flow: str = "") -> None:
        """The token stands at `node`, on a new visit, without entering it: what it waits for there has already come."""
        track.node = node
        track.flow = flow
        self.number_visit(track)

    def enqueue(self, track: Track) -> None:
        track.state = TrackState.READY
        self.changed.add(f"t{track.id}")
        self.ready.append((track, self.depth + 1))

    def revisit(self, track: Track) -> None:
        """It enters its node again, from the beginning."""
        track.local = None
        track.attempt = None
        self.enqueue(track)

    def complete(self, track: Track, node: ProgramNode, values: Mapping[str, object]) -> None:
        """The node is done with these results: they are bound, it is recorded, and the token goes on."""
        try:
            if node.results is not None:
                node.results.require(values, f"result of '{node.id}'")
            if node.outputs:
                seen = visible(self.state, track, values)
                # Each in its own way: most outputs have nothing to do with data stores and types.
                plain = node.mapped is None and not node.writes
                self.assign(track.scope, self.map(node.outputs, seen, "output") if plain else self.map_out(node, seen))
            elif values:
                self.assign(track.scope, values)
        except GobpmError as error:
            # The trigger is consumed and will not come again: keep its values, so that a retry can bind them.
            self.withdraw(track)
            track.local = {**(track.local or {}), **values}
            track.attempt = None
            self.incident(track, error, OUTPUT)
            if node.results is not None:
                # Beside the mapped inputs, from which they could not be told any more.
                next(wait for wait in track.waits.values() if wait.kind == "incident").gathered = dict(values)
            return
        self.go_past(track, node)

    def go_past(self, track: Track, node: ProgramNode, flows: Sequence[ProgramFlow] | None = None) -> None:
        """The node is recorded as completed and the token goes on, by `flows` if given."""
        self.step.history.append(HistoryEntry("node", self.now, node.id))
        if node.booked:
            book(self, track, node)
        self.go_on(track, node, flows)

    def go_on(self, track: Track, node: ProgramNode, flows: Sequence[ProgramFlow] | None = None) -> None:
        """The token leaves: its waits are withdrawn and it takes its flows, or ends for want of any. One atomic fork:
        it continues on the first flow itself, a new token on each of the others."""
        self.withdraw(track)
        track.attempt = None
        if node.watcher is not None:
            try:
                if node.watcher.inner_done(self, track, node):
                    return
            except GobpmError as error:
                self.incident(track, error, FLOW)
                return
        self.close_inside(track)
        if flows is None:
            try:
                flows = self.choose(track, node) if node.conditional else node.outgoing
            except GobpmError as error:
                self.incident(track, error, FLOW)
                return
        track.local = None
        if not flows:
            self.end(track)
            return
        track.node, track.flow = flows[0].target, flows[0].id
        self.enqueue(track)
        if len(flows) > 1:
            scope = self.state.scope(track.scope)
            for flow in flows[1:]:
                self.enqueue(self.new_track(scope, flow.target, track.id, flow.id))

    def close_inside(self, track: Track) -> None:
        """The scope that the token hosted, which nothing lives in any more, is gone."""
        if track.child:
            self.remove_scope(track.child)
            track.child = ""

    def end(self, track: Track) -> None:
        """The token is gone; if it was the last of its scope, the scope is done."""
        scope = self.state.scope(track.scope)
        self.drop(track)
        scope.live -= 1
        self.changed.add(f"s{scope.id}")
        if scope.live == 0:
            self.emptied(scope)

    def drop(self, track: Track) -> None:
        track.state = TrackState.READY
        del self.state.tracks[track.id]
        self.forget(f"t{track.id}")

    def abandon(self, track: Track, kept: Collection[str] = ()) -> None:
        """What the token was doing is over without a result: its waits (but those kept), its effect, its inside."""
        node = self.node(track)
        node.family.interrupt(self, track, node)
        self.withdraw(track, [wait for wait in track.waits if wait not in kept] if kept else None)
        track.local = None
        track.attempt = None
        track.state = TrackState.READY
        self.changed.add(f"t{track.id}")

    def meet(self, holder: Track | Scope, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        """A wait is met: the family of its node goes on, of a scope's wait the event sub-process."""
        if isinstance(holder, Track):
            node.family.fire(self, holder, node, wait, trigger)
        else:
            listening.heard(self, holder, node, wait, trigger)

    def leave_by(self, track: Track, boundary: ProgramNode, values: Mapping[str, object]) -> None:
        """The token leaves what it was doing, without a result, by an interrupting boundary event."""
        self.abandon(track)
        track.wakes += 1
        self.place(track, boundary.id)
        self.complete(track, boundary, values)

    def fork_at(self, track: Track, boundary: ProgramNode, values: Mapping[str, object]) -> None:
        """A new token goes on from a non-interrupting boundary event over what the token is doing."""
        fork = self.new_track(self.state.scope(track.scope), boundary.id, parent=track.id)
        self.number_visit(fork)
        self.complete(fork, boundary, values)

    # --- scopes ------------------------------------------------------------------------------------------------------

    def open_scope(self, host: Track | None, node: str, variables: dict[str, object]) -> Scope:
        head = self.state.head
        parent = None if host is None else self.state.scope(host.scope)
        scope = Scope(
            id=str(head.scopes),
            node=node,
            parent="" if parent is None else parent.id,
            host="" if host is None else host.id,
            depth=0 if parent is None else parent.depth + 1,
            variables=variables,
        )
        head.scopes += 1
        self.state.scopes[scope.id] = scope
        self.born.add(f"s{scope.id}")
        self.changed.update(("h", f"s{scope.id}"))
        return scope

    def emptied(self, scope: Scope) -> None:
        """No token is left in the scope: it completes, unless a join still waits for tokens that cannot come."""
        while scope.joins and self.ask_joins(scope):
            if scope.live or self.step.outcome or scope in self.closing:
                return
        if scope.joins:
            self.deadlock(scope)
            return
        if not scope.parent:
            self.finish("completed")
        else:
            self.closing.append(scope)

    def settle(self) -> bool:
        """Every token has come to rest: may a join that waits for what other tokens do open now?"""
        return any(scope.joins and self.ask_joins(scope) for scope in list(self.state.scopes.values()))

    def ask_joins(self, scope: Scope) -> bool:
        """True: one of the scope's joins has changed."""
        for join in list(scope.joins):
            node = self.nodes[join]
            if node.upstream and node.family.ask_again(self, scope, node):
                return True
        return False

    def hand_over(self, scope: Scope) -> None:
        """The token that hosts the scope learns that its inside is done."""
        if scope.id not in self.state.scopes:
            return  # ended from outside in the meantime
        host = self.state.track(scope.host)
        if host is None:
            raise BrokenInvariant(f"instance {self.state.id}: scope {scope.id} has lost its host {scope.host}")
        node = self.node(host)
        node.family.inside_done(self, host, node, scope)

    def deadlock(self, scope: Scope) -> None:
        """The oldest open join gets a token that stands in an incident there: an operator opens it or cancels."""
        join = next(iter(scope.joins))
        track = self.new_track(scope, join)
        self.number_visit(track)
        self.incident(track, self.stuck(scope, join))

    def stuck(self, scope: Scope, join: str) -> Fault:
        arrived = scope.joins[join][0]
        node = self.nodes[join]
        missing = ", ".join(f"'{flow}'" for flow in node.incoming if flow not in arrived)
        kind = node.element.type.removesuffix("Gateway")
        return Fault(DEADLOCK, f"{kind} join '{join}' can never open: no token is left that could arrive by {missing}")

    def terminate(self, track: Track) -> None:
        """The token and everything else in its scope end; the scope is done."""
        scope = self.state.scope(track.scope)
        self.drop(track)
        scope.live -= 1
        self.clear(scope)
        self.emptied(scope)

    def clear(self, scope: Scope) -> None:
        """Nothing lives in the scope any more, at any depth."""
        self.clear_all((scope,))

    def clear_all(self, scopes: Sequence[Scope]) -> None:
        """Nothing lives in any of the scopes any more, at any depth."""
        outermost = not self.doomed
        self.doomed.extend(scopes)
        if not outermost:
            return  # the outer call, whose token hosts these scopes, goes on with them
        inside: dict[str, list[Track]] | None = None
        for doomed in self.doomed:
            if doomed.live:
                if inside is None:
                    inside = self.state.tracks_by_scope()
                for track in inside.get(doomed.id, ()):
                    self.abandon(track)
                    self.drop(track)
            doomed.live = 0
            doomed.joins.clear()
            if doomed.waits:
                self.withdraw(doomed)
            if doomed.id in self.state.scopes:
                self.changed.add(f"s{doomed.id}")
        self.doomed.clear()

    def remove_scope(self, scope_id: str) -> None:
        if (scope := self.state.scopes[scope_id]).waits:
            self.withdraw(scope)
        del self.state.scopes[scope_id]
        self.forget(f"s{scope_id}")

    def finish(
        self, outcome: Literal["completed", "terminated"], code: str = "", cause: str = "", values: object = None
    ) -> None:
        """The instance has ended: of its parts only the head and the root scope, with its final variables, stay. Who
        called it hears of it: `code` is an error that nobody inside has caught, `values` what it carries."""
        self.clear(self.state.scope(ROOT))
        for scope_id in [scope_id for scope_id in self.state.scopes if scope_id != ROOT]:
            self.remove_scope(scope_id)
        self.ready.clear()
        self.closing.clear()
        self.changed.clear()
        self.changed.update(("h", f"s{ROOT}"))
        self.step.outcome = outcome
        self.record("ended", detail=outcome)
        if self.state.caller:
            report_end(self, outcome, code, cause, values)

    # --- choosing -----------------------------------------------------------------------------------------------------

    def holds(self, track: Track, flow: ProgramFlow, condition: Operand) -> bool:
        value = self.evaluate(condition, visible(self.state, track), f"condition of flow '{flow.id}'")
        if isinstance(value, bool):
            return value
        shown = "null" if value is None else f"a {type(value).__name__}"
        raise ExpressionError(f"condition of flow '{flow.id}', {condition.text!r}: expected true or false, got {shown}")

    def choose(self, track: Track, node: ProgramNode) -> Sequence[ProgramFlow]:
        """The flows that leave an activity: unconditional ones and those whose condition holds, else the default."""
        taken = [
            flow
            for flow in node.outgoing
            if not flow.default and (flow.condition is None or self.holds(track, flow, flow.condition))
        ]
        return taken or self.default_of(node)

    @staticmethod
    def default_of(node: ProgramNode) -> Sequence[ProgramFlow]:
        """The default flow; a Fault names the node that has none."""
        for flow in node.outgoing:
            if flow.default:
                return (flow,)
        raise Fault(NO_WAY_OUT, f"no condition out of {node.element.type} '{node.id}' holds and it has no default flow")
