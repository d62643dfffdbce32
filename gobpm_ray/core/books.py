"""The books of one step: what changed, what is armed, withdrawn, called and recorded, and what expressions read.

It has one routine for each entry that must never be made in two ways: `withdraw` ends waits on every exit path (D6),
`incident` turns wrong content into a wait for an operator. It knows no move of a token; those are `gobpm_ray.core.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from gobpm_ray.core.faults import one_line
from gobpm_ray.core.operands import Binding, Operand
from gobpm_ray.core.program import Program, ProgramNode
from gobpm_ray.core.state import (
    SCOPE_OWNER,
    ArmedWait,
    Incident,
    InstanceState,
    Scope,
    Track,
    TrackState,
    parse_wait_id,
    wait_id,
)
from gobpm_ray.core.step import Arm, Call, HistoryEntry, HistoryEvent, Step, TaskRow
from gobpm_ray.core.variables import merged, owner
from gobpm_ray.errors import BrokenInvariant, ExpressionError, GobpmError

_T = TypeVar("_T")


class Books:
    __slots__ = ("arms", "born", "calls", "changed", "epoch", "nodes", "now", "program", "stale", "state", "step")

    def __init__(self, program: Program, state: InstanceState, now_ms: int, epoch: int) -> None:
        self.program = program
        self.nodes: Mapping[str, ProgramNode] = program.nodes
        self.state = state
        self.step = Step(state)
        self.changed = self.step.changed
        self.now = now_ms
        self.epoch = epoch
        self.arms: dict[str, Arm] = {}
        self.calls: dict[str, Call] = {}
        self.born: set[str] = set()
        """Parts made in this step: if they end in it, the store never hears of them."""
        self.stale = False
        """Data has changed under armed conditions: they are to be asked before the next token moves."""

    def close(self) -> Step:
        """The step, its books balanced."""
        self.step.arms = list(self.arms.values())
        self.step.calls = list(self.calls.values())
        return self.step

    def record(self, event: HistoryEvent, node: str = "", detail: str = "") -> None:
        self.step.history.append(HistoryEntry(event, self.now, node, detail))

    def node(self, track: Track) -> ProgramNode:
        node = self.nodes.get(track.node)
        if track.round and node is not None:
            node = node.body  # as `Program.at`, without the call: this is on every path
        if node is None:
            raise BrokenInvariant(
                f"instance {self.state.id}: track {track.id} stands at '{track.node}', "
                f"which {self.program.id} version {self.program.version} does not have"
            )
        return node

    def number_visit(self, track: Track) -> None:
        head = self.state.head
        head.visits += 1
        track.visit = head.visits
        self.changed.add("h")
        self.changed.add(f"t{track.id}")

    def forget(self, part: str) -> None:
        self.changed.discard(part)
        if part not in self.born:
            self.step.removed.add(part)

    # --- waits -------------------------------------------------------------------------------------------------------

    def arm(
        self,
        holder: Track | Scope,
        node: str,
        wait: str,
        armed: ArmedWait,
        group: str = "",
        repeat: bool = False,
        task: TaskRow | None = None,
    ) -> None:
        """A new wait, held by the commit of this step: a token's, or a scope's for its event sub-processes."""
        holder.waits[wait] = armed
        if isinstance(holder, Track):
            part, owner, scope = f"t{holder.id}", holder.id, self.state.scope(holder.scope)
        else:
            part, owner, scope = f"s{holder.id}", SCOPE_OWNER + holder.id, holder
        self.changed.add(part)
        if armed.kind == "conditional":
            self.state.head.conditions += 1
            self.changed.add("h")
        self.arms[wait] = Arm(
            wait=wait,
            kind=armed.kind,
            node=node,
            track=owner,
            scope=scope.id,
            depth=scope.depth,
            key=armed.key,
            deadline=armed.deadline,
            group=group,
            repeat=repeat,
            task=task,
        )

    def race_group(self, track: Track, node: ProgramNode) -> str:
        """The group of an activity's own wait and its interrupting boundaries; '' when nothing can race.

        Boundaries that outlived a failed attempt keep the group of the visit in which they were armed."""
        if not node.rivals:
            return ""
        for wait in track.waits:
            _, waiting, _, visit = parse_wait_id(wait)
            if waiting in node.rivals:
                return f"{track.id}:{visit}"
        return f"{track.id}:{track.visit}"

    def withdraw(self, holder: Track | Scope, waits: Sequence[str] | None = None) -> None:
        """The one way in which waits end: all of the holder's, or those named; the one that has just fired included.
        A wait that was armed in this very step was never held and needs no withdrawal."""
        for ended in list(holder.waits) if waits is None else waits:
            armed = holder.waits.pop(ended)
            if armed.kind == "incident" and isinstance(holder, Track):
                holder.incident = None
                self.state.head.incidents -= 1
                self.changed.add("h")
            elif armed.kind == "conditional":
                self.state.head.conditions -= 1
                self.changed.add("h")
            if self.arms.pop(ended, None) is None:
                self.step.withdrawals.append(ended)
            self.changed.add(f"t{holder.id}" if isinstance(holder, Track) else f"s{holder.id}")

    # --- incidents ---------------------------------------------------------------------------------------------------

    def incident(self, track: Track, error: GobpmError | str, code: str = "") -> None:
        """The token stands in an incident, beside whatever it still waits for."""
        cause = one_line(error)
        code = code or getattr(error, "code", "failure")
        track.state = TrackState.FAILED
        track.incident = Incident(cause, self.now, code)
        self.state.head.incidents += 1
        self.changed.add("h")
        wait = wait_id(track.id, track.node, "!", track.visit)
        self.arm(track, track.node, wait, ArmedWait("incident"))
        self.record("incident", track.node, cause)

    # --- outward -----------------------------------------------------------------------------------------------------

    def call(self, call: Call) -> None:
        self.calls[call.effect_key] = call

    def cancel_call(self, effect_key: str) -> None:
        """The result no longer matters; an effect of this very step is not even handed out."""
        if self.calls.pop(effect_key, None) is None:
            self.step.cancelled.append(effect_key)

    # --- values ------------------------------------------------------------------------------------------------------

    def evaluate(self, operand: Operand, variables: Mapping[str, object], use: str) -> object:
        return self.guarded(operand.evaluate, variables, use)

    def guarded(
        self, evaluate: Callable[[Mapping[str, object], int], _T], variables: Mapping[str, object], use: str
    ) -> _T:
        """The value. Whatever goes wrong inside an expression is its instance's content, even if it is a fault of the
        language's implementation: it must not end the step for the siblings."""
        try:
            return evaluate(variables, self.now)
        except GobpmError as error:
            raise ExpressionError(f"{use}: {error}") from error
        except Exception as error:
            raise ExpressionError(f"{use}: {type(error).__name__}: {error}") from error

    def truth(self, operand: Operand, variables: Mapping[str, object], use: str) -> bool:
        """The value of what must be true or false."""
        value = self.evaluate(operand, variables, use)
        if isinstance(value, bool):
            return value
        shown = "null" if value is None else f"a {type(value).__name__}"
        raise ExpressionError(f"{use}, {operand.text!r}: expected true or false, got {shown}")

    def map(self, bindings: Sequence[Binding], variables: Mapping[str, object], use: str) -> dict[str, object]:
        """The targets' values; a later mapping sees the targets of the earlier ones."""
        seen = dict(variables)
        mapped: dict[str, object] = {}
        for binding in bindings:
            value = self.evaluate(binding.source, seen, f"{use} mapping '{binding.target}'")
            mapped[binding.target] = seen[binding.target] = value
        return mapped

    def assign(self, scope_id: str, values: Mapping[str, object]) -> None:
        """Each variable has its value, in the nearest scope that has it, else in the root."""
        for name, value in values.items():
            scope = owner(self.state, scope_id, name)
            scope.variables[name] = value
            self.changed.add(f"s{scope.id}")
        if self.state.head.conditions:
            self.stale = True

    def shown(self, track: Track) -> dict[str, object]:
        """What a person or a worker is shown: the mapped inputs; without a mapping nothing, in a round of an iteration
        what sets it apart from the others."""
        if track.local is None and track.round:
            return {name: value for name, value in self.state.scope(track.scope).variables.items() if value is not None}
        return dict(track.local or {})

    def inputs(self, track: Track) -> dict[str, object]:
        """What a callable is given: the mapped inputs, without a mapping everything that the token sees."""
        return dict(track.local) if track.local is not None else merged(self.state, track)
