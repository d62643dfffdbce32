"""Random block-structured processes, driven at random: whatever happens, the books balance and everything ends.

The bench compares every step three ways (from the whole instance, from the whole instance again, from the touched parts
alone) and checks after each that parts, waits and counters agree with the state.
"""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gobpm_ray.core.step import Trigger
from gobpm_ray.model.builder import Cursor, ProcessBuilder, ScopeBuilder, after, every
from tests.unit.core.driving import Bench

Block = Any

LEAVES = st.sampled_from(["task", "user", "work", "job", "timer", "message", "fails"])
BLOCKS: st.SearchStrategy[Block] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.just("then"), inner, inner),
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("xor"), inner, inner),
        st.tuples(st.just("race"), inner, inner),
        st.tuples(st.just("sub"), inner, st.sampled_from(["", "interrupting", "forking", "cycle", "terminate"])),
        st.tuples(st.just("guarded"), st.sampled_from(["interrupting", "forking", "cycle"])),
    ),
    max_leaves=8,
)


OPERATIONS: st.SearchStrategy[Literal["retry", "resolve"]] = st.sampled_from(("retry", "resolve"))


class Writer:
    """Appends blocks behind a cursor, with fresh ids."""

    def __init__(self) -> None:
        self.process = ProcessBuilder("p")
        self.count = 0

    def id(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def write(self, block: Block) -> ProcessBuilder:
        self.append(self.process.start("s"), block).end("e")
        return self.process

    def append(self, at: Cursor, block: Block) -> Cursor:
        if isinstance(block, str):
            return self.leaf(at, block)
        kind, *rest = block
        if kind == "then":
            return self.append(self.append(at, rest[0]), rest[1])
        if kind == "guarded":
            node = self.id("u")
            cursor = at.user_task(node)
            self.boundary(node, rest[0])
            return cursor
        if kind == "sub":
            return self.sub(at, *rest)
        return self.split(at, kind, rest)

    def leaf(self, at: Cursor, kind: str) -> Cursor:
        node = self.id(kind)
        match kind:
            case "task":
                return at.task(node)
            case "user":
                return at.user_task(node)
            case "work":
                return at.service_task(node, idempotent=self.count % 2 == 0)
            case "job":
                return at.service_task(node, "job")
            case "timer":
                return at.catch(node, timer=after("PT1H"))
            case "message":
                return at.catch(node, message="M", key="=k")
            case _:
                return at.script_task(node, "y = 1 / z", language="python")

    def split(self, at: Cursor, kind: str, branches: list[Block]) -> Cursor:
        fork, join = self.id("f"), self.id("j")
        if kind == "race":
            at.event_gateway(fork)
        else:
            at.parallel(fork) if kind == "and" else at.exclusive(fork)
        ends = []
        for number, branch in enumerate(branches):
            cursor = self.process.at(fork)
            if kind == "race":
                cursor = self.leaf(cursor, "timer" if number else "message")
            elif kind == "xor":
                cursor = cursor.otherwise() if number else cursor.when("z = 0")
            ends.append(self.append(cursor, branch))
        joined = ends[0].parallel(join) if kind == "and" else ends[0].exclusive(join)
        ends[1].to(join)
        return joined

    def sub(self, at: Cursor, inside: Block, guard: str) -> Cursor:
        node = self.id("sub")
        cursor = at.sub_process(node)
        scope: ScopeBuilder = cursor.inside
        self.append(scope.start(self.id("s")), inside).end(self.id("e"), terminate=guard == "terminate")
        if guard not in ("", "terminate"):
            self.boundary(node, guard)
        return cursor

    def boundary(self, host: str, guard: str) -> None:
        timer = every("R3/PT20M") if guard == "cycle" else after("PT20M")
        boundary = self.process.boundary(host, self.id("b"), timer=timer, interrupting=guard == "interrupting")
        boundary.user_task(self.id("h")).end(self.id("x"))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(block=BLOCKS, data=st.data())
def test_any_process_driven_in_any_order_ends_with_nothing_left(block, data):
    run = Bench(Writer().write(block), "partial", jobs=lambda task: task.topic == "job")
    run.start(k=1, z=0)
    for _ in range(400):
        if run.outcome:
            break
        moves = [("deliver", wait) for wait, arm in run.held.items() if arm.kind != "incident"]
        moves += [("done", key) for key in run.calls] + [("failed", key) for key in run.calls]
        moves += [("heal", wait) for wait, arm in run.held.items() if arm.kind == "incident"]
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


def move(run: Bench, kind: str, target: str, data: st.DataObject) -> None:
    if kind == "deliver":
        deadline = run.held[target].deadline
        run.now = max(run.now, deadline or 0)
        first = run.delivered(target)
        others = [wait for wait, arm in run.held.items() if arm.kind != "incident"]
        if second := data.draw(st.sampled_from(["", *others])):
            # Two in one inbox: the first may end what the second is for.
            run.trigger(first, run.delivered(second))
        else:
            run.trigger(first)
    elif kind == "done":
        del run.calls[target]
        run.trigger(Trigger(run.delivery_id(), "done", target, values={"r": 1}))
    elif kind == "failed":
        del run.calls[target]
        run.trigger(Trigger(run.delivery_id(), "failed", target, cause="no"))
    elif kind == "heal":
        run.assign(z=1)
        del run.held[target]
        run.trigger(Trigger(run.delivery_id(), data.draw(OPERATIONS), target))
    else:
        # A crash loses the calls of the dead host; recovery hands out again what it may.
        run.calls = {}
        run.crash()
