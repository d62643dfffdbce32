"""Drives the core as an engine would, without one: a table of parts and a table of waits in place of the store.

After every step the books are checked against the state itself: what was not declared changed must not have changed,
and the waits that the store would hold are exactly those that the tokens know of. A `Bench` hydrates in one of three
ways between steps: not at all, everything, or only the parts that the trigger touches.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

from gobpm_ray.core.advance import advance, recover, touched
from gobpm_ray.core.program import Program, compile_process
from gobpm_ray.core.projection import open_incidents, tokens, variables, waits
from gobpm_ray.core.residency import willing
from gobpm_ray.core.state import InstanceState, PartsMissing, Scope, Track, parse_wait_id
from gobpm_ray.core.step import Arm, Call, Send, Step, Trigger
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.elements import Process

NOW = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000

Hydration = Literal["resident", "whole", "partial"]


class Bench:
    def __init__(
        self,
        process: Process | ProcessBuilder,
        hydration: Hydration = "resident",
        *,
        jobs: Callable[[Any], bool] = lambda _: False,
        max_steps: int = 10_000,
    ) -> None:
        built = process.build() if isinstance(process, ProcessBuilder) else process
        self.program: Program = compile_process(built, 1, jobs=jobs)
        self.hydration = hydration
        self.max_steps = max_steps
        self.now = NOW
        self.epoch = 1
        self.state = InstanceState("i1", built.id, 1)
        self.parts: dict[str, Any] = {"h": deepcopy(self.state.head)}
        self.held: dict[str, Arm] = {}
        self.touch: dict[str, tuple[str, ...]] = {}
        self.calls: dict[str, Call] = {}
        self.sends: list[Send] = []
        self.history: list[Any] = []
        self.overtaken: list[str] = []
        self.outcome = ""
        self.reloads = 0
        self.last: Step
        self._count = 0

    # --- what happens ---

    def start(self, node: str = "", **values: object) -> Step:
        return self.trigger(Trigger(self.delivery_id(), "start", node=node, values=values))

    def fire(self, node: str, values: dict[str, object] | None = None) -> Step:
        """What the node (boundary, arm, task, event) waits for comes."""
        return self.deliver(self.wait(node), values)

    def pass_time(self, ms: int) -> None:
        """Everything that falls due on the way fires, in order."""
        until = self.now + ms
        while due := min(
            (arm for arm in self.held.values() if arm.deadline is not None and arm.deadline <= until),
            key=lambda arm: arm.deadline or 0,
            default=None,
        ):
            assert due.deadline is not None
            self.now = max(self.now, due.deadline)
            self.deliver(due.wait)
        self.now = until

    def deliver(self, wait: str, values: dict[str, object] | None = None) -> Step:
        """As the store's script does it: a once wait and its race group are withdrawn before the core hears of it."""
        return self.trigger(self.delivered(wait, values))

    def delivered(self, wait: str, values: dict[str, object] | None = None) -> Trigger:
        arm = self.held[wait]
        if not arm.repeat:
            del self.held[wait]
            if arm.group:
                self.held = {other: held for other, held in self.held.items() if held.group != arm.group}
        return Trigger(self.delivery_id(), arm.kind, wait, values=values or {})  # type: ignore[arg-type]

    def done(self, node: str, **values: object) -> Step:
        return self.trigger(Trigger(self.delivery_id(), "done", self.effect(node), values=values))

    def failed(self, node: str, cause: str) -> Step:
        return self.trigger(Trigger(self.delivery_id(), "failed", self.effect(node), cause=cause))

    def error(self, node: str, code: str, **values: object) -> Step:
        """The work of the node, a call or a job, throws an error."""
        return self.throw("error", node, code, values)

    def escalate(self, node: str, code: str, **values: object) -> Step:
        """The work of the node throws an escalation, and goes on."""
        return self.throw("escalation", node, code, values)

    def throw(self, kind: Literal["error", "escalation"], node: str, code: str, values: dict[str, object]) -> Step:
        job = next((wait for wait, arm in self.held.items() if arm.node == node and arm.kind == "job"), None)
        if job is not None and kind == "error":
            return self.trigger(replace(self.delivered(job, values), kind=kind, code=code))
        if job is not None:
            # An escalation leaves the wait armed.
            return self.trigger(Trigger(self.delivery_id(), kind, job, values=values, code=code))
        key = next(key for key, call in self.calls.items() if call.node == node)
        if kind == "error":
            del self.calls[key]
        return self.trigger(Trigger(self.delivery_id(), kind, key, values=values, code=code))

    def retry(self) -> Step:
        return self.operate("retry")

    def resolve(self, **values: object) -> Step:
        return self.operate("resolve", values)

    def operate(self, kind: Literal["retry", "resolve"], values: dict[str, object] | None = None) -> Step:
        [incident] = open_incidents(self.state)
        del self.held[incident.wait]
        return self.trigger(Trigger(self.delivery_id(), kind, incident.wait, values=values or {}))

    def assign(self, **values: object) -> Step:
        return self.trigger(Trigger(self.delivery_id(), "set", values=values))

    def cancel(self) -> Step:
        return self.trigger(Trigger(self.delivery_id(), "cancel"))

    def crash(self) -> Step:
        """The host dies; the next claimer recovers from the parts."""
        self.epoch += 1
        self.state = self.hydrated()
        return self.keep(recover(self.program, self.state, self.now, self.epoch))

    def trigger(self, *triggers: Trigger) -> Step:
        step = self._advance(triggers)
        return self.keep(step)

    # --- what the store does ---

    def _advance(self, triggers: tuple[Trigger, ...]) -> Step:
        arguments: dict[str, Any] = {"epoch": self.epoch, "max_steps": self.max_steps}
        if self.hydration == "resident":
            return advance(self.program, self.state, triggers, self.now, **arguments)
        # A step that was never committed leaves no trace: the rebuilt state gives the same one again.
        first = advance(self.program, self.hydrated(), triggers, self.now, **arguments)
        again = advance(self.program, self.hydrated(), triggers, self.now, **arguments)
        assert first == again
        if self.hydration == "whole":
            return again
        names = {name for trigger in triggers for name in self.touch.get(trigger.wait, ())} | {"h", "s0"}
        try:
            partial = advance(self.program, self.hydrated(names), triggers, self.now, **arguments)
        except PartsMissing:
            self.reloads += 1
            return again
        for name in ("changed", "removed", "arms", "sends", "calls", "history", "overtaken", "outcome"):
            assert getattr(partial, name) == getattr(again, name), name
        for part in partial.changed:
            assert part_of(partial.state, part) == part_of(again.state, part)
        return again

    def hydrated(self, names: set[str] | None = None) -> InstanceState:
        """An instance rebuilt from the stored parts, all of them or those named."""
        state = InstanceState("i1", self.program.id, 1, caller=self.state.caller, complete=names is None)
        for name, part in deepcopy(self.parts).items():
            if names is not None and name not in names:
                continue
            if name == "h":
                state.head = part
            elif name.startswith("t"):
                state.tracks[part.id] = part
            else:
                state.scopes[part.id] = part
        return state

    def keep(self, step: Step) -> Step:
        """The commit, and the checks of the books."""
        self.state = state = step.state
        assert not step.changed & step.removed
        for name in step.removed:
            del self.parts[name]
        for name in step.changed:
            self.parts[name] = deepcopy(part_of(state, name))
        living = {"h"} | {f"t{track}" for track in state.tracks} | {f"s{scope}" for scope in state.scopes}
        assert living == set(self.parts)
        for name in living:
            assert part_of(state, name) == self.parts[name], f"{name} changed and was not declared"
        for wait in step.withdrawals:
            self.held.pop(wait, None)
        for arm in step.arms:
            assert arm.wait not in self.touch, f"wait id {arm.wait} was used before"
            self.held[arm.wait] = arm
            holder = state.holder(arm.track)
            assert holder is not None
            self.touch[arm.wait] = touched(state, holder)
        holders: list[Track | Scope] = [*state.tracks.values(), *state.scopes.values()]
        known = {wait for holder in holders for wait in holder.waits}
        conditions = sum(wait.kind == "conditional" for holder in holders for wait in holder.waits.values())
        assert state.head.conditions == conditions
        assert known == set(self.held), "the store and the tokens disagree about what is armed"
        for scope in state.scopes.values():
            assert scope.live == len(state.tracks_in(scope.id))
        assert state.head.incidents == sum(track.incident is not None for track in state.tracks.values())
        for cancelled in step.cancelled:
            del self.calls[cancelled]
        self.calls.update((call.effect_key, call) for call in step.calls)
        self.sends.extend(step.sends)
        self.history.extend(step.history)
        self.overtaken.extend(trigger.id for trigger in step.overtaken)
        self.outcome = step.outcome
        self.last = step
        return step

    # --- what is seen ---

    def delivery_id(self) -> str:
        self._count += 1
        return f"d{self._count}"

    def wait(self, node: str) -> str:
        """The id of the oldest wait of the node."""
        return next(wait for wait, arm in self.held.items() if arm.node == node and arm.kind != "incident")

    def effect(self, node: str) -> str:
        key = next(key for key, call in self.calls.items() if call.node == node)
        del self.calls[key]
        return key

    @property
    def trace(self) -> list[str]:
        return [entry.node for entry in self.history if entry.event == "node"]

    @property
    def events(self) -> list[str]:
        return [entry.event for entry in self.history]

    @property
    def variables(self) -> dict[str, object]:
        return variables(self.state)

    @property
    def cause(self) -> str:
        [incident] = open_incidents(self.state)
        return incident.cause

    @property
    def waiting(self) -> list[tuple[str, str]]:
        """(node, kind) of every armed wait, in order of arming."""
        return sorted((view.node, view.kind) for view in waits(self.state))

    @property
    def tokens(self) -> list[tuple[str, str]]:
        return sorted((token.node, token.state) for token in tokens(self.program, self.state))

    def willing(self, threshold: int = 30 * SECOND) -> bool:
        return willing(self.program, self.state, self.now, threshold)

    def deadline(self, node: str) -> int | None:
        deadline = self.held[self.wait(node)].deadline
        return None if deadline is None else deadline - NOW


def part_of(state: InstanceState, name: str) -> object:
    if name == "h":
        return state.head
    return state.tracks[name[1:]] if name.startswith("t") else state.scopes[name[1:]]


def visit_of(wait: str) -> str:
    return parse_wait_id(wait)[3]
