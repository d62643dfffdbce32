"""Intermediate throws, and send tasks with a message: what is thrown is accepted inside the step's own commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.arming import key_of
from gobpm_ray.core.nodes.family import Family
from gobpm_ray.core.operands import Message, Signal
from gobpm_ray.core.step import Send

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track


class Throw(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        throw(run, track, node)
        run.complete(track, node, {})


def throw(run: Run, track: Track, node: ProgramNode) -> None:
    """The node's messages and signals are sent, with its mapped inputs as payload, nothing without a mapping."""
    sends = []
    for index, definition in enumerate(node.definitions):
        if isinstance(definition, Message | Signal):
            suffix = f":{index}" if index else ""
            delivery = f"{run.state.id}:{track.id}:{node.id}:{track.visit}{suffix}"
            values = dict(track.local or {})
            if isinstance(definition, Message):
                sends.append(Send(delivery, "message", definition.name, key_of(run, track, definition), values))
            else:
                sends.append(Send(delivery, "signal", definition.name, definition.key, values))
    run.step.sends.extend(sends)
