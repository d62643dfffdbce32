"""Random processes full of what hangs together without flows, driven at random: handlers of every kind, errors and
escalations thrown anywhere, compensation and cancelled transactions, crashes in between. The books balance after every
step, whole and partial states agree, and in the end nothing is left."""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gobpm_ray.core.step import Trigger
from gobpm_ray.model.builder import Cursor, ProcessBuilder, ScopeBuilder, after, every
from tests.unit.core.driving import Bench

Block = Any

LEAVES = st.sampled_from(
    ["user", "work", "job", "undoable", "undo", "escalate", "condition", "signal", "toggle", "link", "gather"]
)
HANDLERS = st.lists(
    st.sampled_from(
        ["message", "message!", "cycle", "error", "escalation", "escalation!", "conditional", "conditional!"]
    ),
    max_size=3,
)
BOUNDARIES = st.lists(
    st.sampled_from(["timer!", "cycle", "error", "escalation", "escalation!", "conditional", "conditional!"]),
    max_size=2,
)
ENDS = st.sampled_from(["", "", "error", "escalation", "terminate", "compensate", "cancel"])
BLOCKS: st.SearchStrategy[Block] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.just("then"), inner, inner),
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("sub"), inner, HANDLERS, BOUNDARIES, ENDS, st.booleans()),
    ),
    max_leaves=9,
)
OPERATIONS: st.SearchStrategy[Literal["retry", "resolve"]] = st.sampled_from(("retry", "resolve"))
CODES = st.sampled_from(["E", "F"])


class Writer:
    def __init__(self) -> None:
        self.process = ProcessBuilder("p")
        self.count = 0

    def id(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def write(self, block: Block, handlers: list[str]) -> ProcessBuilder:
        self.append(self.process, self.process.start("s"), block).end("e")
        self.handle(self.process, handlers)
        return self.process

    def append(self, scope: ScopeBuilder, at: Cursor, block: Block) -> Cursor:
        if isinstance(block, str):
            return self.leaf(scope, at, block)
        kind, *rest = block
        if kind == "then":
            return self.append(scope, self.append(scope, at, rest[0]), rest[1])
        if kind == "and":
            fork, join = self.id("f"), self.id("j")
            at.parallel(fork)
            first = self.append(scope, scope.at(fork), rest[0])
            second = self.append(scope, scope.at(fork), rest[1])
            joined = first.parallel(join)
            second.to(join)
            return joined
        return self.sub(scope, at, *rest)

    def leaf(self, scope: ScopeBuilder, at: Cursor, kind: str) -> Cursor:
        node = self.id(kind)
        match kind:
            case "user":
                return at.user_task(node)
            case "work":
                return at.service_task(node, idempotent=self.count % 2 == 0)
            case "job":
                return at.service_task(node, "job")
            case "undoable":
                done = at.user_task(node)
                scope.boundary(node, self.id("c"), compensate=True).service_task(self.id("w"), idempotent=True)
                return done
            case "undo":
                return at.throw(node, compensate=True)
            case "escalate":
                return at.throw(node, escalation="E")
            case "condition":
                return at.catch(node, conditional="x > 1")
            case "signal":
                return at.catch(node, signal="S")
            case "toggle":
                return at.script_task(node, "if x > 1 then 0 else 2", result="x")
            case "link":
                at.throw(node, link=node)
                return scope.first.catch(self.id("in"), link=node)
            case _:
                return at.catch(node, message="A", signal="B", parallel_multiple=True)

    def sub(
        self,
        scope: ScopeBuilder,
        at: Cursor,
        inside: Block,
        handlers: list[str],
        boundaries: list[str],
        end: str,
        undo: bool,
    ) -> Cursor:
        node = self.id("sub")
        cursor = at.transaction(node) if end == "cancel" else at.sub_process(node)
        inner: ScopeBuilder = cursor.inside
        last = self.append(inner, inner.start(self.id("s")), inside)
        how: dict[str, Any] = {"error": "E", "escalation": "F", "terminate": True, "compensate": True, "cancel": True}
        last.end(self.id("e"), **({end: how[end]} if end else {}))
        self.handle(inner, handlers)
        if undo:
            with inner.event_sub_process(self.id("h")) as handler:
                handler.start(self.id("s"), compensate=True).throw(self.id("u"), compensate=True).user_task(
                    self.id("user")
                ).end(self.id("e"))
        if end == "cancel":
            scope.boundary(node, self.id("b"), cancel=True).end(self.id("e"))
        for kind in boundaries:
            scope.boundary(
                node, self.id("b"), interrupting=kind.endswith("!") or kind == "error", **self.event(kind)
            ).user_task(self.id("user")).end(self.id("e"))
        return cursor

    def handle(self, scope: ScopeBuilder, handlers: list[str]) -> None:
        for kind in handlers:
            with scope.event_sub_process(self.id("h")) as handler:
                started = handler.start(
                    self.id("s"), interrupting=kind.endswith("!") or kind == "error", **self.event(kind)
                )
                started.service_task(self.id("work")).end(self.id("e"))

    def event(self, kind: str) -> dict[str, Any]:
        match kind.rstrip("!"):
            case "timer":
                return {"timer": after("PT20M")}
            case "cycle":
                return {"timer": every("R2/PT20M")}
            case "message":
                return {"message": "M"}
            case "conditional":
                return {"conditional": "x > 1"}
            case other:
                return {other: "E" if self.count % 2 else ""}


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(block=BLOCKS, handlers=HANDLERS, data=st.data())
def test_any_process_of_events_driven_in_any_order_ends_with_nothing_left(block, handlers, data):
    run = Bench(Writer().write(block, handlers), "partial", jobs=lambda task: task.topic == "job")
    run.start(x=0)
    for _ in range(120):
        if run.outcome:
            break
        moves = [("deliver", wait) for wait, arm in run.held.items() if arm.kind not in ("incident", "conditional")]
        moves += [(kind, key) for key in run.calls for kind in ("done", "failed", "error", "escalation")]
        moves += [("heal", wait) for wait, arm in run.held.items() if arm.kind == "incident"]
        moves += [("set", "0"), ("set", "2")] if any(arm.kind == "conditional" for arm in run.held.values()) else []
        moves += [("crash", "")] if run.calls else []
        assert moves, "a live instance waits for nothing"
        kind, target = data.draw(st.sampled_from(moves))
        move(run, kind, target, data)
    else:
        run.cancel()
    assert run.outcome in ("completed", "terminated")
    assert run.held == {}
    assert run.calls == {}
    assert set(run.parts) == {"h", "s0"}
    assert run.state.head.incidents == 0
    assert run.state.head.conditions == 0


def move(run: Bench, kind: str, target: str, data: st.DataObject) -> None:
    if kind == "deliver":
        job = run.held[target].kind == "job"
        how = data.draw(st.sampled_from(["job", "failed", "error", "escalation"])) if job else ""
        run.now = max(run.now, run.held[target].deadline or 0)
        first = Trigger(run.delivery_id(), "escalation", target) if how == "escalation" else run.delivered(target)
        if how:
            first = Trigger(first.id, how, target, code=data.draw(CODES), cause="no")  # type: ignore[arg-type]
        others = [wait for wait, arm in run.held.items() if arm.kind not in ("incident", "conditional")]
        if second := data.draw(st.sampled_from(["", *others])):
            run.trigger(first, run.delivered(second))
        else:
            run.trigger(first)
    elif kind == "set":
        run.assign(x=int(target))
    elif kind == "heal":
        del run.held[target]
        run.trigger(Trigger(run.delivery_id(), data.draw(OPERATIONS), target))
    elif kind == "crash":
        run.calls = {}
        run.crash()
    else:
        if kind != "escalation":
            del run.calls[target]
        code = data.draw(CODES) if kind in ("error", "escalation") else ""
        run.trigger(Trigger(run.delivery_id(), kind, target, cause="no", code=code))  # type: ignore[arg-type]
