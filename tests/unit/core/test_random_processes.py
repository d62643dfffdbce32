"""Random processes of every element, driven at random: whatever happens, the books balance and everything ends.

The bench compares every step three ways (from the whole instance, from the whole instance again, from the touched parts
alone) and checks after each that parts, waits and counters agree with the state. Several triggers in one inbox, errors
and escalations thrown anywhere, compensation, cancelled transactions, crashes in between: in the end nothing is left.
The processes are those of `tests.machine`, which has the store and the engine around them.
"""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gobpm_ray.core.step import Trigger
from tests.support.block_writer import write
from tests.support.blocks import Plan, plans
from tests.unit.core.driving import Bench

OPERATIONS: st.SearchStrategy[Literal["retry", "resolve"]] = st.sampled_from(("retry", "resolve"))
CODES = st.sampled_from(("E", "F"))
UNADDRESSED = ("incident", "conditional")
"""Kinds of waits that no trigger of the inbox is for."""


@settings(max_examples=140, suppress_health_check=list(HealthCheck))
@given(plan=plans(without=("decide",)), data=st.data())
def test_any_process_driven_in_any_order_ends_with_nothing_left(plan: Plan, data: st.DataObject) -> None:
    process = write(plan)[-1]
    run = Bench(process, "partial", jobs=lambda task: task.topic == "job")
    run.start(k=1, x=0, z=0)
    for _ in range(120):
        if run.outcome:
            break
        found = moves(run)
        assert found, f"a live instance waits for nothing: {plan!r}"
        move(run, *data.draw(st.sampled_from(found)), data)
    else:
        run.cancel()
    assert run.outcome in ("completed", "terminated")
    assert run.held == {}
    assert run.calls == {}
    assert set(run.parts) == {"h", "s0"}
    assert run.state.head.incidents == 0
    assert run.state.head.conditions == 0


def moves(run: Bench) -> list[tuple[str, str]]:
    found = [("deliver", wait) for wait, arm in run.held.items() if arm.kind not in UNADDRESSED]
    found += [(kind, key) for key in run.calls for kind in ("done", "failed", "error", "escalation")]
    found += [("heal", wait) for wait, arm in run.held.items() if arm.kind == "incident"]
    if any(arm.kind == "conditional" for arm in run.held.values()):
        found += [("set", "0"), ("set", "2")]
    return [*found, ("crash", "")] if run.calls else found


def move(run: Bench, kind: str, target: str, data: st.DataObject) -> None:
    match kind:
        case "deliver":
            _deliver(run, target, data)
        case "set":
            run.assign(x=int(target))
        case "heal":
            run.assign(z=1)
            del run.held[target]
            run.trigger(Trigger(run.delivery_id(), data.draw(OPERATIONS), target))
        case "crash":
            # A crash loses the calls of the dead host; recovery hands out again what it may.
            run.calls = {}
            run.crash()
        case _:
            if kind != "escalation":
                del run.calls[target]
            code = data.draw(CODES) if kind in ("error", "escalation") else ""
            values: dict[str, Any] = {"r": 1} if kind == "done" else {}
            run.trigger(Trigger(run.delivery_id(), kind, target, cause="no", code=code, values=values))  # type: ignore[arg-type]


def _deliver(run: Bench, target: str, data: st.DataObject) -> None:
    """One trigger, or two in one inbox: the first may end what the second is for."""
    job = run.held[target].kind == "job"
    how = data.draw(st.sampled_from(("job", "failed", "error", "escalation"))) if job else ""
    run.now = max(run.now, run.held[target].deadline or 0)
    # An escalation leaves its job armed.
    first = Trigger(run.delivery_id(), "escalation", target) if how == "escalation" else run.delivered(target)
    if how:
        first = Trigger(first.id, how, target, code=data.draw(CODES), cause="no")  # type: ignore[arg-type]
    others = [wait for wait, arm in run.held.items() if arm.kind not in UNADDRESSED]
    if second := data.draw(st.sampled_from(("", *others))):
        run.trigger(first, run.delivered(second))
    else:
        run.trigger(first)
