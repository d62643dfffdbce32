"""Conditional events: armed as false, asked when armed and whenever data has changed, fired on false -> true (W16).

No store can match them, so they are kept as waits that only the core knows how to meet. `Head.conditions` counts
them: an instance without any pays nothing for a change of data, and a partial state knows by it that there are more
than it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gobpm_ray.core.faults import CONDITION, Fault, one_line
from gobpm_ray.core.operands import Conditional
from gobpm_ray.core.state import PartsMissing, Scope, Track, parse_wait_id
from gobpm_ray.core.step import Trigger
from gobpm_ray.core.variables import visible, visible_in
from gobpm_ray.errors import BrokenInvariant, GobpmError
from gobpm_ray.model.elements import BoundaryEvent

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import ArmedWait


def holds(run: Run, node: ProgramNode, definition: Conditional, variables: Mapping[str, object]) -> bool:
    """Null, which is what an expression over data that is not there yet gives, is false."""
    value = run.evaluate(definition.condition, variables, f"condition of '{node.id}'")
    if value is None or isinstance(value, bool):
        return bool(value)
    what = f"condition of '{node.id}', {definition.condition.text!r}"
    raise Fault(CONDITION, f"{what}: expected true or false, got a {type(value).__name__}")


def ask(run: Run) -> None:
    """Every armed condition has been asked; those that have become true have fired, outermost and oldest first."""
    run.stale = False
    state = run.state
    armed = [
        (holder, wait, condition)
        for holder in state.holders()
        for wait, condition in holder.waits.items()
        if condition.kind == "conditional"
    ]
    if len(armed) < state.head.conditions and not state.complete:
        raise PartsMissing("armed conditions")
    risen = [entry for entry in armed if _rises(run, *entry)]
    for holder, wait, condition in risen:
        if holder.waits.get(wait) is not condition:
            continue  # one that fired before it has ended it
        node = run.nodes[parse_wait_id(wait)[1]]
        run.record("woken", node.id, "conditional")
        run.meet(holder, node, wait, Trigger("", "conditional", wait))


def _rises(run: Run, holder: Track | Scope, wait: str, armed: ArmedWait) -> bool:
    _, node_id, index, _ = parse_wait_id(wait)
    node = run.nodes[node_id]
    definition = node.definitions[int(index)]
    if not isinstance(definition, Conditional):
        raise BrokenInvariant(f"instance {run.state.id}: wait {wait} is conditional, its event is not")
    seen = visible(run.state, holder) if isinstance(holder, Track) else visible_in(run.state, holder.id)
    if holder.waits.get(wait) is not armed:
        return False
    try:
        true = holds(run, node, definition, seen)
    except GobpmError as error:
        if isinstance(holder, Track) and not isinstance(node.element, BoundaryEvent):
            # A token that waits for nothing else: it stands in an incident, and a retry arms it anew.
            run.abandon(holder)
            run.incident(holder, error, CONDITION)
            return False
        # The activity or scope that it watches goes on: what cannot be told does not hold, and history says why.
        run.record("unreadable", node.id, one_line(error))
        true = False
    if true == bool(armed.index):
        return False
    armed.index = int(true)
    run.changed.add(f"t{holder.id}" if isinstance(holder, Track) else f"s{holder.id}")
    return true
