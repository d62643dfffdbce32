"""What a block is as a process: appended behind a cursor, with fresh ids, until the model is whole.

Conditions read `x` (0 at the start, `toggle` and operators change it), correlation keys `k`, which is each instance's
own, and what fails reads `z`. Work is done by the callable of its topic, `job` by a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gobpm_ray.model.builder import Cursor, ProcessBuilder, ScopeBuilder, after, every
from tests.support.blocks import Block, Plan

FAIL_AND_RETRY = "PT5M, PT5M"


class BlockWriter:
    """Writes one process. `careful`: work that is not idempotent stays so."""

    def __init__(self, process_id: str, *, careful: bool = True) -> None:
        self.process = ProcessBuilder(process_id)
        self._careful = careful
        self._count = 0

    def write(self, block: Block, handlers: Sequence[str] = (), end: str = "") -> ProcessBuilder:
        last = self._append(self.process, self.process.start("s"), block)
        last.end("e", **_end(end))
        self._handle(self.process, handlers)
        return self.process

    def _id(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    # --- blocks

    def _append(self, scope: ScopeBuilder, at: Cursor, block: Block) -> Cursor:
        match block.kind:
            case "then":
                return self._append(scope, self._append(scope, at, block.inside[0]), block.inside[1])
            case "and" | "xor" | "or" | "complex":
                return self._split(scope, at, block)
            case "race":
                return self._race(scope, at, block)
            case "again":
                return self._again(scope, at, block)
            case "loop":
                node = self._id("loop")
                inner = at.sub_process(node)
                self._fill(inner.inside, block.inside[0])
                return inner.loop(while_="x < 1", test_before=bool(block.how[0]), maximum=2)
            case "many":
                node = self._id("many")
                inner = at.sub_process(node)
                self._fill(inner.inside, block.inside[0])
                return self._times(inner, *block.how)
            case "each":
                return self._times(self._leaf(scope, at, block.how[0]), *block.how[1:])
            case "adhoc":
                return self._adhoc(at, block)
            case "sub":
                return self._sub(scope, at, block)
            case "guarded":
                cursor = self._leaf(scope, at, block.how[0])
                self._guard(scope, cursor.node_id, block.how[1:])
                return cursor
            case leaf:
                return self._leaf(scope, at, leaf)

    def _fill(self, inner: ScopeBuilder, block: Block, end: str = "") -> None:
        last = self._append(inner, inner.start(self._id("s")), block)
        last.end(self._id("e"), **_end(end))

    def _times(self, cursor: Cursor, order: str, until: str) -> Cursor:
        condition = "numberOfCompletedInstances >= 1 or x > 1" if until else None
        return cursor.multi_instance(
            collection="[1, 2]",
            item="item",
            sequential=bool(order),
            until=condition,
            output=f"out{self._count}",
            output_item="item + x",
        )

    def _split(self, scope: ScopeBuilder, at: Cursor, block: Block) -> Cursor:
        fork, join = self._id("f"), self._id("j")
        conditional = block.kind in ("xor", "or")
        {"xor": at.exclusive, "or": at.inclusive}.get(block.kind, at.parallel)(fork)
        first, second = scope.at(fork), scope.at(fork)
        if conditional:
            first = first.when("x > 1")
            second = second.otherwise() if block.kind == "xor" else second.when("k > 0")
        ends = [
            self._append(scope, cursor.task(self._id("way")), inside)
            for cursor, inside in zip((first, second), block.inside, strict=True)
        ]
        if block.kind == "complex":
            joined = ends[0].complex(join, activation=f"activationCount >= {block.how[0]}")
        else:
            joined = {"and": ends[0].parallel, "or": ends[0].inclusive, "xor": ends[0].exclusive}[block.kind](join)
        ends[1].to(join)
        return joined

    def _race(self, scope: ScopeBuilder, at: Cursor, block: Block) -> Cursor:
        gateway, join = self._id("g"), self._id("j")
        at.event_gateway(gateway)
        ends = [
            self._append(scope, self._leaf(scope, scope.at(gateway), arm), inside)
            for arm, inside in zip(block.how, block.inside, strict=True)
        ]
        joined = ends[0].exclusive(join)
        for end in ends[1:]:
            end.to(join)
        return joined

    def _again(self, scope: ScopeBuilder, at: Cursor, block: Block) -> Cursor:
        """A flow that leads back, once."""
        count, merge, choice = self._id("n"), self._id("m"), self._id("c")
        begun = at.script_task(self._id("script"), "0", result=count).exclusive(merge)
        inside = self._append(scope, begun, block.inside[0])
        decided = inside.script_task(self._id("script"), f"{count} + 1", result=count).exclusive(choice)
        decided.when(f"{count} < 2").to(merge)
        return scope.at(choice).otherwise().task(self._id("on"))

    def _adhoc(self, at: Cursor, block: Block) -> Cursor:
        """Inside there are no start and end events, so what is more than a leaf lies in a sub-process."""
        order, until = block.how
        cursor = at.ad_hoc(self._id("adhoc"), sequential=bool(order), until="x > 1" if until else None)
        inner = cursor.inside
        for inside in block.inside:
            if inside.inside or inside.kind in ("guarded", "link", "undoable", "sub"):
                wrapped = inner.first.sub_process(self._id("sub"))
                self._fill(wrapped.inside, inside)
            else:
                self._append(inner, inner.first, inside)
        return cursor

    def _sub(self, scope: ScopeBuilder, at: Cursor, block: Block) -> Cursor:
        end, undo, *around = block.how
        border = around.index("|")
        node = self._id("sub")
        cursor = at.transaction(node) if end == "cancel" else at.sub_process(node)
        inner = cursor.inside
        self._fill(inner, block.inside[0], end)
        self._handle(inner, around[:border])
        if undo:
            with inner.event_sub_process(self._id("h")) as handler:
                handler.start(self._id("s"), compensate=True).throw(self._id("u"), compensate=True).user_task(
                    self._id("user")
                ).end(self._id("e"))
        if end == "cancel":
            scope.boundary(node, self._id("b"), cancel=True).end(self._id("e"))
        self._guard(scope, node, around[border + 1 :])
        return cursor

    # --- what catches from outside the flow

    def _guard(self, scope: ScopeBuilder, host: str, boundaries: Sequence[str]) -> None:
        for boundary in boundaries:
            caught = scope.boundary(host, self._id("b"), interrupting=boundary[0] == "!", **self._event(boundary[1:]))
            done = (
                caught.user_task(self._id("user")) if self._count % 2 else caught.script_task(self._id("script"), "k")
            )
            done.end(self._id("e"))

    def _handle(self, scope: ScopeBuilder, handlers: Sequence[str]) -> None:
        for handler in handlers:
            with scope.event_sub_process(self._id("h")) as inside:
                started = inside.start(self._id("s"), interrupting=handler[0] == "!", **self._event(handler[1:]))
                done = (
                    started.service_task(self._id("work"), "work", idempotent=True)
                    if self._count % 2
                    else started.user_task(self._id("user"))
                )
                done.end(self._id("e"))

    def _event(self, kind: str) -> dict[str, Any]:
        match kind:
            case "timer":
                return {"timer": after("PT20M")}
            case "cycle":
                return {"timer": every("R2/PT20M")}
            case "message":
                return {"message": "N", "key": "=k"}
            case "signal":
                return {"signal": "S"}
            case "conditional":
                return {"conditional": "x > 1"}
            case other:
                return {other: "E" if self._count % 2 else ""}

    # --- leaves

    def _leaf(self, scope: ScopeBuilder, at: Cursor, kind: str) -> Cursor:
        node = self._id(kind)
        match kind:
            case "task":
                return at.task(node)
            case "manual":
                return at.manual_task(node)
            case "script":
                return at.script_task(node, "k + x", result=f"r{node}")
            case "toggle":
                return at.script_task(node, "if x > 1 then 0 else 2", result="x")
            case "fails":
                return at.script_task(node, "y = 1 / z", language="python")
            case "decide":
                return at.business_rule_task(node, decision="rate", result=f"r{node}")
            case "send":
                return at.send_task(node, message="M", key="=k")
            case "throw":
                return at.throw(node, message="N", key="=k")
            case "shout":
                return at.throw(node, signal="S")
            case "escalate":
                return at.throw(node, escalation="E")
            case "undo":
                return at.throw(node, compensate=True)
            case "link":
                at.throw(node, link=node)
                return scope.first.catch(self._id("in"), link=node)
            case "user":
                return at.user_task(node, assignee="ann" if self._count % 3 == 0 else None)
            case "undoable":
                done = at.user_task(node)
                scope.boundary(node, self._id("c"), compensate=True).service_task(
                    self._id("w"), "work", idempotent=True
                )
                return done
            case "job":
                return at.service_task(node, "job", retries=FAIL_AND_RETRY if self._count % 2 else None)
            case "work":
                return at.service_task(node, "work", idempotent=True)
            case "careful":
                return at.service_task(node, "work", idempotent=not self._careful)
            case "flaky" | "throws" | "warns":
                return at.service_task(node, kind, idempotent=True)
            case "call":
                return at.call(node, process="q", propagate=self._count % 2 == 0)
            case _:
                return self._catch(at, node, kind)

    def _catch(self, at: Cursor, node: str, kind: str) -> Cursor:
        match kind:
            case "receive":
                return at.receive_task(node, message="M", key="=k")
            case "message":
                return at.catch(node, message="M" if self._count % 2 else "N", key="=k")
            case "signal":
                return at.catch(node, signal="S")
            case "timer":
                return at.catch(node, timer=after("PT30M"))
            case "condition":
                return at.catch(node, conditional="x > 1")
            case "gather":
                return at.catch(node, message="M", key="=k", signal="S", parallel_multiple=True)
            case "either":
                return at.catch(node, message="N", key="=k", timer=after("PT30M"))
        raise AssertionError(f"no block is called {kind}")


def write(plan: Plan) -> list[ProcessBuilder]:
    """The plan's processes, what is called first. Work stays not idempotent only where nothing moves beside it: a
    sealed attempt goes on after its siblings, and so in another order than one that nobody cut off."""
    careful = plan.one_token
    called = BlockWriter("q", careful=careful).write(plan.called, (), plan.called_end)
    return [called, BlockWriter("p", careful=careful).write(plan.block, plan.handlers)]


def _end(kind: str) -> dict[str, Any]:
    match kind:
        case "":
            return {}
        case "error" | "escalation":
            return {kind: "E"}
        case "message":
            return {"message": "N", "key": "=k"}
        case "signal":
            return {"signal": "S"}
        case other:
            return {other: True}
