"""Compensation and transactions: what is undone, in which order, with which data, and across crashes (BPMN 13.5.5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gobpm_ray.model.elements import (
    BoundaryEvent,
    CancelDefinition,
    CompensateDefinition,
    EndEvent,
    ErrorDefinition,
    Expression,
    FlowNode,
    Mapping,
    MessageDefinition,
    MultiInstance,
    ParallelGateway,
    ScriptTask,
    SubProcess,
    ThrowEvent,
    UserTask,
    WorkTask,
)
from tests.unit.core.drawing import after, drawn, feel, handler
from tests.unit.core.driving import HOUR, Bench


def undo(activity: str, by: FlowNode) -> tuple[FlowNode, FlowNode]:
    """The compensation boundary `c_<activity>`, and its handler."""
    boundary = BoundaryEvent(
        f"c_{activity}", definitions=(CompensateDefinition(),), attached_to=activity, handler=by.id
    )
    return boundary, replace(by, for_compensation=True)  # type: ignore[arg-type]


def throw(id: str = "undo", activity: str = "") -> ThrowEvent:
    return ThrowEvent(id, definitions=(CompensateDefinition(activity=activity),))


def booking(*extra: FlowNode, path: str = "s > w1 > w2 > undo > e", lines: str = ""):
    """Two service tasks whose work is undone by user tasks."""
    return drawn(
        f"{path}\nc_w1\nu1\nc_w2\nu2\n{lines}",
        *undo("w1", UserTask("u1")),
        *undo("w2", UserTask("u2")),
        *extra,
    )


def booked(bench, process=None) -> Bench:
    run = bench(process or booking(throw()))
    run.start()
    run.done("w1", a=1)
    run.done("w2", b=2)
    return run


def test_handlers_run_in_reverse_order_one_after_another_and_then_the_flow_goes_on(bench):
    run = booked(bench)
    assert run.tokens == [("u2", "waiting"), ("undo", "hosting")]
    assert run.willing()
    run.fire("u2")
    assert run.waiting == [("u1", "task")]
    run.fire("u1")
    assert run.trace == ["s", "w1", "w2", "c_w2", "u2", "c_w1", "u1", "undo", "e"]
    assert run.outcome == "completed"
    assert set(run.parts) == {"h", "s0"}


def test_a_throw_for_one_activity_undoes_only_that_one(bench):
    run = booked(bench, booking(throw(activity="w1")))
    assert run.waiting == [("u1", "task")]
    run.fire("u1")
    assert run.trace[-3:] == ["u1", "undo", "e"]
    assert [entry.activity for entry in run.state.scopes["0"].ledger] == ["w2"]


def test_a_compensation_handler_is_no_start_and_runs_by_compensation_alone(bench):
    run = bench(drawn("w1 > e\nc_w1\nu1", *undo("w1", UserTask("u1"))))
    run.start()
    assert run.tokens == [("w1", "working")]
    run.done("w1")
    assert run.trace == ["w1", "e"]


def test_each_completion_is_undone_once(bench):
    run = booked(bench, booking(throw(), throw("undo2"), path="s > w1 > w2 > undo > undo2 > e"))
    run.fire("u2")
    run.fire("u1")
    assert run.trace[-3:] == ["undo", "undo2", "e"]
    assert run.trace.count("u1") == run.trace.count("u2") == 1
    assert run.outcome == "completed"


def test_nothing_completed_is_nothing_to_undo(bench):
    run = bench(booking(throw(), path="s > undo > w1 > w2 > e"))
    run.start()
    assert run.trace == ["s", "undo"]


def test_an_activity_in_a_loop_is_undone_once_for_each_completion_with_the_data_of_each(bench):
    process = drawn(
        "s > w1 > undo > e\nc_w1\nw9",
        *undo("w1", WorkTask("w9")),
        WorkTask("w1", loop=MultiInstance(cardinality=feel("3"), sequential=True)),
        throw(),
    )
    run = bench(process)
    run.start()
    for n in range(3):
        run.done("w1", booking=n)
    assert len(run.calls) == 1
    seen = []
    while run.calls:
        seen.append(next(iter(run.calls.values())).inputs["booking"])
        run.done("w9")
    assert seen == [2, 1, 0]
    assert run.outcome == "completed"


def test_a_handler_reads_what_was_visible_at_completion_and_writes_what_is_there_now(bench):
    process = drawn(
        "s > w1 > change > undo > e\nc_w1\nw9",
        *undo("w1", WorkTask("w9")),
        ScriptTask("change", script=Expression("a = 99\nseen = 0", "python")),
        throw(),
    )
    run = bench(process)
    run.start(a=0)
    run.done("w1", a=1)
    assert next(iter(run.calls.values())).inputs["a"] == 1
    run.done("w9", seen=1, a=7)
    assert run.variables == {"a": 7, "seen": 1}
    assert run.outcome == "completed"


def test_a_handlers_input_mappings_read_the_snapshot_again_when_it_is_retried(bench):
    process = drawn(
        "s > w1 > change > undo > e\nc_w1\nw9",
        *undo("w1", WorkTask("w9", inputs=(Mapping("id", Expression("a")),))),
        ScriptTask("change", script=Expression("a = 99", "python")),
        throw(),
    )
    run = bench(process)
    run.start()
    run.done("w1", a=1)
    assert next(iter(run.calls.values())).inputs == {"id": 1}
    run.failed("w9", "no")
    run.retry()
    assert next(iter(run.calls.values())).inputs == {"id": 1}
    run.done("w9")
    assert run.outcome == "completed"


def test_what_completes_while_a_compensation_runs_is_not_part_of_it(bench):
    process = drawn(
        "s > fork > w1 > undo > e\nfork > w2 > e2\nc_w1\nu1\nc_w2\nu2",
        ParallelGateway("fork"),
        *undo("w1", UserTask("u1")),
        *undo("w2", UserTask("u2")),
        throw(),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    run.done("w2")
    run.fire("u1")
    assert "u2" not in run.trace
    assert run.outcome == "completed"


def test_a_crash_in_the_middle_goes_on_with_the_handler_that_it_cut_off(bench):
    """A78."""
    process = drawn(
        "s > w1 > w2 > undo > e\nc_w1\nw8\nc_w2\nw9",
        *undo("w1", WorkTask("w8")),
        *undo("w2", WorkTask("w9", idempotent=True)),
        throw(),
    )
    run = booked(bench, process)
    run.calls = {}
    run.crash()
    assert [call.node for call in run.calls.values()] == ["w9"]
    run.done("w9")
    assert [call.node for call in run.calls.values()] == ["w8"]
    run.calls = {}
    run.crash()
    assert run.waiting == [("w8", "incident")]
    run.retry()
    run.done("w8")
    assert run.trace == ["s", "w1", "w2", "c_w2", "w9", "c_w1", "w8", "undo", "e"]
    assert run.outcome == "completed"


def test_a_compensation_end_undoes_and_then_the_scope_is_done(bench):
    process = drawn(
        "s > sub > e\nsub: si > w1 > x\nsub: c_w1\nsub: u1",
        SubProcess("sub"),
        *undo("w1", UserTask("u1")),
        EndEvent("x", definitions=(CompensateDefinition(),)),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    assert run.waiting == [("u1", "task")]
    run.fire("u1")
    assert run.trace == ["s", "si", "w1", "c_w1", "u1", "x", "sub", "e"]


def test_an_interrupting_boundary_over_the_scope_ends_a_running_compensation(bench):
    process = drawn(
        "s > sub > e\nsub: si > w1 > undo > ei\nsub: c_w1\nsub: u1\nlate > e2",
        SubProcess("sub"),
        *undo("w1", UserTask("u1")),
        throw(),
        BoundaryEvent("late", definitions=(after("PT1H"),), attached_to="sub"),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    run.pass_time(HOUR)
    assert run.trace[-2:] == ["late", "e2"]
    assert run.held == {}
    assert set(run.parts) == {"h", "s0"}


def test_an_error_in_a_handler_goes_out_of_the_throwing_scope(bench):
    process = drawn(
        "s > sub > e\nsub: si > w1 > undo > ei\nsub: c_w1\nsub: w9\nb > t1",
        SubProcess("sub"),
        *undo("w1", WorkTask("w9")),
        throw(),
        BoundaryEvent("b", definitions=(ErrorDefinition("error", ""),), attached_to="sub"),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    run.error("w9", "E")
    assert run.trace[-2:] == ["b", "t1"]
    assert run.outcome == "completed"


# --- sub-processes ---


def test_a_completed_sub_process_is_undone_from_inside(bench):
    process = drawn(
        """
        s > sub > w3 > undo > e
        sub: si > w1 > w2 > ei
        sub: c_w1
        sub: u1
        sub: c_w2
        sub: u2
        c_w3
        u3
        """,
        SubProcess("sub", inputs=(Mapping("room", Expression("7")),)),
        *undo("w1", UserTask("u1", inputs=(Mapping("room", Expression("room")),))),
        *undo("w2", UserTask("u2")),
        *undo("w3", UserTask("u3")),
        throw(),
    )
    run = bench(process)
    run.start()
    for node in ("w1", "w2", "w3"):
        run.done(node)
    for node in ("u3", "u2"):
        run.fire(node)
    assert run.held[run.wait("u1")].task.inputs == {"room": 7}, "the data of a scope that has ended"
    run.fire("u1")
    assert run.trace[-8:] == ["c_w3", "u3", "c_w2", "u2", "c_w1", "u1", "undo", "e"]
    assert run.outcome == "completed"


def test_a_throw_outside_names_the_sub_process_as_a_whole(bench):
    process = drawn(
        "s > sub > w3 > undo > e\nsub: si > w1 > ei\nsub: c_w1\nsub: u1\nc_w3\nu3",
        SubProcess("sub"),
        *undo("w1", UserTask("u1")),
        *undo("w3", UserTask("u3")),
        throw(activity="sub"),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    run.done("w3")
    assert run.waiting == [("u1", "task")]
    run.fire("u1")
    assert run.outcome == "completed"
    assert "u3" not in run.trace


def test_a_handler_at_the_border_of_a_sub_process_stands_for_its_inside(bench):
    process = drawn(
        "s > sub > undo > e\nsub: si > w1 > ei\nsub: c_w1\nsub: u1\nc_sub\nu9",
        *undo("sub", UserTask("u9")),
        SubProcess("sub"),
        *undo("w1", UserTask("u1")),
        throw(),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    assert run.waiting == [("u9", "task")]
    run.fire("u9")
    assert run.trace[-4:] == ["c_sub", "u9", "undo", "e"]


def test_a_compensation_event_sub_process_decides_what_is_undone_inside(bench):
    process = drawn(
        """
        s > sub > undo > e
        sub: si > w1 > w2 > ei
        sub: c_w1
        sub: u1
        sub: c_w2
        sub: u2
        sub: h
        h: hs > th > again > eh
        """,
        SubProcess("sub", inputs=(Mapping("room", Expression("7")),)),
        *undo("w1", UserTask("u1")),
        *undo("w2", UserTask("u2")),
        *handler("h", "hs", CompensateDefinition()),
        ScriptTask("th", script=feel("room + 1"), result_variable="seen"),
        throw("again", "w1"),
        throw(),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    run.done("w2")
    assert run.waiting == [("u1", "task")]
    assert run.variables["seen"] == 8
    run.fire("u1")
    assert run.trace[-9:] == ["hs", "th", "c_w1", "u1", "again", "eh", "h", "undo", "e"]
    assert "u2" not in run.trace
    assert run.outcome == "completed"
    assert set(run.parts) == {"h", "s0"}


def test_a_compensation_event_sub_process_does_not_run_by_itself(bench):
    process = drawn(
        "s > sub > e\nsub: si > u > ei\nsub: h\nh: hs > th",
        SubProcess("sub"),
        *handler("h", "hs", CompensateDefinition()),
    )
    run = bench(process)
    run.start()
    assert run.waiting == [("u", "task")]
    run.fire("u")
    assert run.trace == ["s", "si", "u", "ei", "sub", "e"]


def test_an_error_handler_of_the_scope_can_undo_what_the_scope_completed(bench):
    process = drawn(
        "s > sub > e\nsub: si > w1 > x\nsub: c_w1\nsub: u1\nsub: h\nh: hs > undo > eh",
        SubProcess("sub"),
        *undo("w1", UserTask("u1")),
        EndEvent("x", definitions=(ErrorDefinition("error", "E"),)),
        *handler("h", "hs", ErrorDefinition("error", "")),
        throw(),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    assert run.waiting == [("u1", "task")]
    run.fire("u1")
    assert run.trace == ["s", "si", "w1", "x", "hs", "c_w1", "u1", "undo", "eh", "h", "sub", "e"]


def test_a_sub_process_that_was_interrupted_has_nothing_to_undo(bench):
    process = drawn(
        "s > sub > e\nsub: si > w1 > x\nsub: c_w1\nsub: u1\nb > undo > e2",
        SubProcess("sub"),
        *undo("w1", UserTask("u1")),
        EndEvent("x", definitions=(ErrorDefinition("error", "E"),)),
        BoundaryEvent("b", definitions=(ErrorDefinition("error", ""),), attached_to="sub"),
        throw(),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    assert run.trace == ["s", "si", "w1", "x", "b", "undo", "e2"]


# --- transactions ---


def transaction(*extra: FlowNode, lines: str = "", way_out: bool = True):
    return drawn(
        f"""
        s > sub > e
        sub: si > w1 > fork > u > x
        sub: fork > w2 > ei
        sub: c_w1
        sub: u1
        {"b > t1 > e2" if way_out else ""}
        {lines}
        """,
        SubProcess("sub", kind="transaction"),
        ParallelGateway("fork"),
        *undo("w1", UserTask("u1")),
        EndEvent("x", definitions=(CancelDefinition(),)),
        *([BoundaryEvent("b", definitions=(CancelDefinition(),), attached_to="sub")] if way_out else []),
        *extra,
    )


def test_a_cancel_ends_the_rest_compensates_and_leaves_by_the_cancel_boundary(bench):
    """BPMN 13.3.5."""
    run = bench(transaction())
    run.start()
    run.done("w1")
    call = next(iter(run.calls))
    run.fire("u")
    assert run.last.cancelled == [call]
    assert run.waiting == [("u1", "task")]
    run.fire("u1")
    assert run.trace == ["s", "si", "w1", "fork", "u", "x", "c_w1", "u1", "b", "t1", "e2"]
    assert run.outcome == "completed"
    assert set(run.parts) == {"h", "s0"}


def test_a_cancel_with_nothing_to_undo_leaves_at_once(bench):
    process = drawn(
        "s > sub > e\nsub: si > x\nb > t1",
        SubProcess("sub", kind="transaction"),
        EndEvent("x", definitions=(CancelDefinition(),)),
        BoundaryEvent("b", definitions=(CancelDefinition(),), attached_to="sub"),
    )
    run = bench(process)
    run.start()
    assert run.trace == ["s", "si", "x", "b", "t1"]


def test_nothing_interrupts_the_compensation_of_a_cancelled_transaction(bench):
    process = transaction(
        BoundaryEvent("late", definitions=(after("PT1H"),), attached_to="sub"),
        *handler("h", "hs", MessageDefinition(name="M")),
        lines="late > e3\nsub: h\nh: hs > th",
    )
    run = bench(process)
    run.start()
    run.done("w1")
    run.fire("u")
    run.pass_time(2 * HOUR)
    assert run.waiting == [("u1", "task")]
    run.fire("u1")
    assert run.trace[-3:] == ["b", "t1", "e2"]


def test_a_cancel_inside_a_nested_sub_process_cancels_the_transaction_around_it(bench):
    process = drawn(
        "s > sub > e\nsub: si > w1 > in > ei\nsub: c_w1\nsub: u1\nin: s2 > x\nb > t1",
        SubProcess("sub", kind="transaction"),
        SubProcess("in"),
        *undo("w1", UserTask("u1")),
        EndEvent("x", definitions=(CancelDefinition(),)),
        BoundaryEvent("b", definitions=(CancelDefinition(),), attached_to="sub"),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    run.fire("u1")
    assert run.trace == ["s", "si", "w1", "s2", "x", "c_w1", "u1", "b", "t1"]
    assert run.outcome == "completed"


def test_a_transaction_without_a_cancel_is_a_sub_process_that_can_be_undone_later(bench):
    process = drawn(
        "s > sub > undo > e\nsub: si > w1 > ei\nsub: c_w1\nsub: u1",
        SubProcess("sub", kind="transaction"),
        *undo("w1", UserTask("u1")),
        throw(),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    run.fire("u1")
    assert run.trace == ["s", "si", "w1", "ei", "sub", "c_w1", "u1", "undo", "e"]


def test_a_cancel_that_has_no_way_out_is_an_incident(bench):
    run = bench(transaction(way_out=False))
    run.start()
    run.done("w1")
    run.fire("u")
    assert "cancels no transaction" in run.cause


@pytest.mark.parametrize("crashes", [1, 2])
def test_a_crash_during_the_compensation_of_a_cancel_changes_nothing(crashes, bench):
    process = drawn(
        "s > sub > e\nsub: si > w1 > x\nsub: c_w1\nsub: w9\nb > t1",
        SubProcess("sub", kind="transaction"),
        *undo("w1", WorkTask("w9", idempotent=True)),
        EndEvent("x", definitions=(CancelDefinition(),)),
        BoundaryEvent("b", definitions=(CancelDefinition(),), attached_to="sub"),
    )
    run = bench(process)
    run.start()
    run.done("w1")
    for _ in range(crashes):
        run.calls = {}
        run.crash()
    run.done("w9")
    assert run.trace == ["s", "si", "w1", "x", "c_w1", "w9", "b", "t1"]
    assert run.outcome == "completed"
