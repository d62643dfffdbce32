"""The books of one step: what changed, what is armed, withdrawn, called and recorded, and what expressions read.

It has one routine for each entry that must never be made in two ways: `withdraw` ends waits on every exit path (D6),
`incident` turns wrong content into a wait for an operator. It knows no move of a token; those are `gobpm_ray.core.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from gobpm_ray.core import shapes
from gobpm_ray.core.faults import one_line
from gobpm_ray.core.operands import Binding, Operand
from gobpm_ray.core.program import Program, ProgramNode
from gobpm_ray.core.secrets import NO_VEIL, veil_of
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
from gobpm_ray.secret import Secret

_T = TypeVar("_T")


class Books:
    __slots__ = (
        *("arms", "born", "calls", "changed", "data", "epoch", "nodes", "now"),
        *("program", "stale", "state", "step", "veil"),
    )

    def __init__(self, program: Program, state: InstanceState, now_ms: int, epoch: int) -> None:
        self.program = program
        self.nodes: Mapping[str, ProgramNode] = program.nodes
        self.state = state
        self.step = Step(state)
        self.changed = self.step.changed
        self.now = now_ms
        self.epoch = epoch
        self.data: Mapping[str, object] = {}
        """What the data stores held when the step began; one that nobody has written is null."""
        self.arms: dict[str, Arm] = {}
        self.calls: dict[str, Call] = {}
        self.born: set[str] = set()
        """Parts made in this step: if they end in it, the store never hears of them."""
        self.stale = False
        """Data has changed under armed conditions: they are to be asked before the next token moves."""

        self.veil = NO_VEIL
        """What is to be hidden, as far as it was known before the step and has come in with its triggers."""

    def close(self) -> Step:
        """The step, its books balanced."""
        if self.veil and self.step.sends:
            # Whoever receives a secret has it as one.
            self.step.sends = [replace(send, values=self._marked(send.values)) for send in self.step.sends]
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
        joins: str = "",
    ) -> None:
        """A new wait, held by the commit of this step: a token's, or a scope's for its event sub-processes."""
        holder.waits[wait] = armed
        if task is not None and self.veil:
            task = replace(task, secrets=tuple(n for n, value in task.inputs.items() if self.veil.tells(n, value)))
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
            joins=joins,
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

    # --- secrets -----------------------------------------------------------------------------------------------------

    def bring(self, values: Mapping[str, object], marked: Sequence[str]) -> None:
        """Values have come in: those that are marked are the instance's secrets from now on, and what comes under the
        name of one is hidden with it."""
        self._keep_secret(marked)
        self.veil = self.veil.joined(veil_of(self.program.process, values, marked=self.state.head.secrets))
        self._note_secrets(values)

    def _note_secrets(self, values: Mapping[str, object]) -> None:
        """A secret is one under another name too, also when the first has got another value."""
        declared = self.program.process.secrets
        self._keep_secret(n for n, value in values.items() if n not in declared and self.veil.tells(n, value))

    def _keep_secret(self, names: Iterable[str]) -> None:
        head = self.state.head
        if fresh := [name for name in names if name not in head.secrets]:
            head.secrets = sorted({*head.secrets, *fresh})
            self.changed.add("h")

    def _marked(self, values: dict[str, object]) -> dict[str, object]:
        return {name: Secret(value) if self.veil.tells(name, value) else value for name, value in values.items()}

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
            shown = {**seen, **self.stored(binding.stores)} if binding.stores else seen
            value = self.evaluate(binding.source, shown, f"{use} mapping '{binding.target}'")
            mapped[binding.target] = seen[binding.target] = value
            if binding.stores and self.veil.texts:
                self._note_secrets({binding.target: value})
        return mapped

    # --- data stores -------------------------------------------------------------------------------------------------

    def stored(self, names: Sequence[str]) -> dict[str, object]:
        """The values of data stores, as the step has left them so far."""
        written = self.step.writes
        found: dict[str, object] = {}
        for name in names:
            if name in written:
                found[name] = written[name]
                continue
            self.step.reads.add(name)
            value = found[name] = self.data.get(name)
            if isinstance(value, Secret):
                # Written by somebody whose secret it is: it stays one, whatever it is called here.
                found[name] = value.reveal()
                self.bring({name: found[name]}, (name,))
        return found

    def map_out(self, node: ProgramNode, variables: Mapping[str, object]) -> dict[str, object]:
        """As `map` of a node's outputs, with those for data stores written there; all of it, or none of it."""
        seen = dict(variables)
        mapped: dict[str, object] = {}
        writes: dict[str, object] = {}
        for binding in node.outputs:
            # A later mapping reads what an earlier one has written: both are one step.
            shown = {**seen, **self.stored(binding.stores)} if binding.stores else seen
            shown = {**shown, **{name: writes[name] for name in binding.stores if name in writes}} if writes else shown
            value = self.evaluate(binding.source, shown, f"output mapping '{binding.target}'")
            if binding.store is None:
                mapped[binding.target] = seen[binding.target] = value
            else:
                shapes.require_fit(binding.store, value)
                writes[binding.store.name] = value
        if node.mapped is not None:
            node.mapped.require(mapped, f"output mapping of '{node.id}'")
        self.step.writes.update(writes)
        for name in writes:
            self.record("stored", node.id, name)
        return mapped

    def assign(self, scope_id: str, values: Mapping[str, object]) -> None:
        """Each variable has its value, in the nearest scope that has it, else in the root."""
        if self.veil.texts:
            self._note_secrets(values)
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
        if track.local is None or ((node := self.node(track)).properties and not node.inputs):
            return merged(self.state, track)
        return dict(track.local)
