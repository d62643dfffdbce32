"""Intermediate throws, and send tasks with a message: what is thrown is accepted inside the step's own commit.

An event with several definitions throws all of them: messages and signals, then escalations, then compensation, which
is waited for, and last what ends the token's path: at an intermediate throw a link, at an end an error, a cancel or a
terminate (`gobpm_ray.core.nodes.ends`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.arming import key_of
from gobpm_ray.core.compensation import collect, next_handler, start_sweep, thrown
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.operands import Escalation, Message, Signal
from gobpm_ray.core.propagation import throw_escalation
from gobpm_ray.core.step import Send

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track


class Throw(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        if node.definitions and not self.throw(run, track, node):
            return
        self.over(run, track, node)

    def throw(self, run: Run, track: Track, node: ProgramNode) -> bool:
        """Everything is thrown. False: the token was interrupted by who caught it, or waits for compensation to end."""
        throw(run, track, node)
        for definition in node.definitions:
            if isinstance(definition, Escalation):
                values = dict(track.local or {})
                if not throw_escalation(run, track, definition.code, values):
                    return False
        compensate = thrown(node)
        return compensate is None or not start_sweep(run, track, collect(run, track, compensate.activity))

    def inside_done(self, run: Run, track: Track, node: ProgramNode, scope: Scope) -> None:
        """A compensation handler has ended: the next one begins, or the event is done."""
        if not next_handler(run, track):
            self.swept(run, track, node)

    def swept(self, run: Run, track: Track, node: ProgramNode) -> None:
        self.over(run, track, node)

    def over(self, run: Run, track: Track, node: ProgramNode) -> None:
        """All has been thrown and the token goes on."""
        if node.link:
            run.record("node", node.id)
            track.local = None
            track.node, track.flow = node.link, ""
            run.enqueue(track)
        else:
            run.complete(track, node, {})

    def interrupt(self, run: Run, track: Track, node: ProgramNode) -> None:
        track.sweep = []
        if track.child:
            scope = run.state.scope(track.child)
            run.clear(scope)
            run.remove_scope(scope.id)
            track.child = ""

    def dehydratable(self, park: Park) -> bool:
        """The handlers of a compensation answer for themselves."""
        return park.far()


def throw(run: Run, track: Track, node: ProgramNode) -> None:
    """The node's messages and signals are sent, with its mapped inputs as payload, nothing without a mapping."""
    sends = []
    for index, definition in enumerate(node.definitions):
        if isinstance(definition, Message | Signal):
            suffix = f":{index}" if index else ""
            delivery = f"{run.state.id}:{track.id}:{node.id}:{track.visit}{suffix}"
            # An activity's own properties are nobody's payload.
            values = dict(track.local or {}) if node.inputs else {}
            if isinstance(definition, Message):
                sends.append(Send(delivery, "message", definition.name, key_of(run, track, definition), values))
            else:
                sends.append(Send(delivery, "signal", definition.name, definition.key, values))
    run.step.sends.extend(sends)
