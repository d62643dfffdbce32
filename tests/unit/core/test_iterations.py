"""Standard loops and multiple instances, over every kind of activity, in every way an instance can be rebuilt."""

from __future__ import annotations

import pytest

from gobpm_ray.core.state import ROOT
from gobpm_ray.core.step import Trigger
from gobpm_ray.model.builder import ProcessBuilder, after
from gobpm_ray.model.elements import Expression
from tests.unit.core.driving import HOUR, Bench

MODES = pytest.mark.parametrize("sequential", [False, True], ids=["parallel", "sequential"])


def over(collection: str = "items", **loop: object) -> ProcessBuilder:
    """A user task for each item."""
    process = ProcessBuilder("p")
    process.start("s").user_task("u").multi_instance(collection=collection, item="item", **loop).end("e")  # type: ignore[arg-type]
    return process


def complete_all(run: Bench, node: str = "u", **values: object) -> int:
    count = 0
    while any(arm.node == node for arm in run.held.values()):
        run.fire(node, dict(values))
        count += 1
    return count


# --- what there is to iterate over -------------------------------------------------------------------------------


@MODES
def test_an_activity_runs_once_for_each_item_and_stands_in_the_trace_as_often(bench, sequential):
    run = bench(over(sequential=sequential))
    run.start(items=["a", "b", "c"])
    assert len([wait for wait in run.waiting if wait == ("u", "task")]) == (1 if sequential else 3)
    assert complete_all(run) == 3
    assert run.trace == ["s", "u", "u", "u", "e"]
    assert (run.outcome, run.variables) == ("completed", {"items": ["a", "b", "c"]})


@MODES
@pytest.mark.parametrize("items", [[], None])
def test_nothing_to_iterate_over_passes_without_a_round(bench, sequential, items):
    """S81: empty and null."""
    run = bench(over(sequential=sequential, output="out", output_item="item"))
    run.start(items=items)
    assert run.trace == ["s", "e"]
    assert run.variables == {"items": items, "out": []}


@MODES
@pytest.mark.parametrize("items", ["abc", 7, {"a": 1}, True])
def test_what_is_no_list_is_an_incident_that_says_what_it_is(bench, sequential, items):
    """S81."""
    run = bench(over(sequential=sequential))
    run.start(items=items)
    assert run.trace == ["s"]
    assert "collection of 'u', 'items': expected a list, got " in run.cause
    assert run.tokens == [("u", "incident")]


@MODES
@pytest.mark.parametrize("collection", ["items", "order.items"])
def test_a_collection_that_does_not_exist_is_an_incident_and_a_retry_looks_again(bench, sequential, collection):
    """S81: missing, not null."""
    run = bench(over(collection, sequential=sequential))
    run.start()
    assert run.cause == f"collection of 'u', '{collection}': variable '{collection.split('.')[0]}' is missing"
    run.assign(items=[1, 2], order={"items": [1, 2]})
    run.retry()
    assert complete_all(run) == 2
    assert run.outcome == "completed"


@MODES
def test_an_iteration_that_cannot_begin_may_be_resolved_and_is_passed_once(bench, sequential):
    run = bench(over(sequential=sequential))
    run.start()
    run.resolve(done=True)
    assert run.trace == ["s", "u", "e"]
    assert run.variables == {"done": True}


@MODES
@pytest.mark.parametrize(("cardinality", "rounds"), [("3", 3), ("n + 1", 3), ("0", 0), ("null", 0), ("n", 2)])
def test_a_cardinality_says_how_many_rounds_there_are(bench, sequential, cardinality, rounds):
    process = ProcessBuilder("p")
    process.start("s").task("t").multi_instance(cardinality=cardinality, sequential=sequential).end("e")
    run = bench(process)
    run.start(n=2)
    assert run.trace == ["s", *["t"] * rounds, "e"]


@MODES
@pytest.mark.parametrize("cardinality", ["-1", "1.5", "true", '"many"', "missing"])
def test_a_cardinality_that_is_no_count_is_an_incident(bench, sequential, cardinality):
    process = ProcessBuilder("p")
    process.start("s").task("t").multi_instance(cardinality=cardinality, sequential=sequential).end("e")
    run = bench(process)
    run.start()
    assert "loop cardinality of 't'" in run.cause


def test_a_cardinality_beyond_all_measure_is_refused_before_a_round_is_made(bench):
    process = ProcessBuilder("p")
    process.start("s").task("t").multi_instance(cardinality="1000000").end("e")
    run = bench(process, max_steps=1_000)
    run.start()
    assert run.cause == "'t' would iterate 1000000 times, the limit is 10000"


# --- what a round sees -------------------------------------------------------------------------------------------


@MODES
def test_a_round_sees_its_item_and_its_number_and_shares_everything_else(bench, sequential):
    process = ProcessBuilder("p")
    script = Expression("total + item * loopCounter", "feel")
    add = process.start("s").script_task("t", script=script, result="total")
    add.multi_instance(collection="items", item="item", sequential=sequential).end("e")
    run = bench(process)
    run.start(items=[10, 20, 30], total=0)
    assert run.variables == {"items": [10, 20, 30], "total": 140}


@MODES
def test_items_are_read_once_whatever_becomes_of_the_collection(bench, sequential):
    run = bench(over(sequential=sequential, output="out", output_item="item"))
    run.start(items=[1, 2, 3])
    run.assign(items=[])
    assert complete_all(run) == 3
    assert run.variables["out"] == [1, 2, 3]


@MODES
def test_an_item_is_a_rounds_own_and_an_assignment_to_it_stays_inside(bench, sequential):
    run = bench(over(sequential=sequential))
    run.start(items=[1, 2], item="outer")
    complete_all(run, item="changed")
    assert run.variables["item"] == "outer"


def test_a_service_task_is_called_with_its_rounds_item(bench):
    process = ProcessBuilder("p")
    process.start("s").service_task("w").multi_instance(collection="items", item="item").end("e")
    run = bench(process)
    run.start(items=["x", "y"])
    assert [(call.inputs["item"], call.inputs["loopCounter"]) for call in run.calls.values()] == [("x", 1), ("y", 2)]
    assert len(set(run.calls)) == 2
    run.done("w")
    run.done("w")
    assert run.trace == ["s", "w", "w", "e"]


# --- what comes out ----------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (2, 1, 0)])
def test_outputs_are_collected_in_the_order_of_the_items(bench, sequential, order):
    run = bench(over(sequential=sequential, output="out", output_item="result"))
    run.start(items=["a", "b", "c"])
    waits = list(run.held)
    for place in order:
        wait = waits[place] if not sequential else run.wait("u")
        number = place if not sequential else run.trace.count("u")
        run.deliver(wait, {"result": number})
        if not sequential and place != order[-1]:
            assert "out" not in run.variables
    assert run.variables == {"items": ["a", "b", "c"], "out": [0, 1, 2]}


@MODES
def test_input_and_output_may_be_one_variable(bench, sequential):
    """Of other engines some lose the list, some the item: the list is replaced when the last round has ended."""
    run = bench(over(sequential=sequential, output="items", output_item="item"))
    run.start(items=[1, 2, 3])
    while any(arm.node == "u" for arm in run.held.values()):
        run.deliver(run.wait("u"), {"item": run.trace.count("u") * 100})
    assert run.variables == {"items": [0, 100, 200]}


@MODES
def test_a_round_without_a_result_leaves_null_and_not_its_neighbours(bench, sequential):
    run = bench(over(sequential=sequential, output="out", output_item="result"))
    run.start(items=[1, 2], result="before")
    run.fire("u", {"result": "mine"})
    run.fire("u")
    assert run.variables == {"items": [1, 2], "result": "before", "out": ["mine", None]}


@MODES
def test_an_output_of_a_sub_process_is_read_inside_it(bench, sequential):
    process = ProcessBuilder("p")
    scope = process.start("s").sub_process("sub", inputs={"twice": "=item * 2"})
    scope.multi_instance(
        collection="items", item="item", sequential=sequential, output="out", output_item="twice + 1"
    ).end("e")
    scope.inside.start("is").user_task("u").end("ie")
    run = bench(process)
    run.start(items=[1, 2])
    complete_all(run)
    assert run.variables["out"] == [3, 5]
    assert run.trace == [
        "s",
        *(["is", "u", "ie", "sub"] * 2 if sequential else ["is", "is", "u", "ie", "sub"]),
        *([] if sequential else ["u", "ie", "sub"]),
        "e",
    ]


@MODES
def test_an_output_that_cannot_be_read_is_an_incident_of_its_round_and_retry_reads_it_again(bench, sequential):
    run = bench(over(sequential=sequential, output="out", output_item=Expression("10 // divisor", "python")))
    run.start(items=[1, 2], divisor="x")
    run.fire("u")
    before = run.trace
    assert run.cause.startswith("output of 'u'")
    run.assign(divisor=5)
    run.retry()
    complete_all(run)
    assert run.variables["out"] == [2, 2]
    assert before == ["s", "u"]
    assert run.trace == ["s", "u", "u", "e"]


def test_a_collected_output_is_one_small_part_of_its_own(bench):
    """The list is not written again and again: what a round's end writes does not grow with the rounds before it."""
    run = bench(over(output="out", output_item="result"))
    run.start(items=list(range(50)))
    for _ in range(49):
        step = run.fire("u", {"result": "r" * 10})
        assert len(step.changed) + len(step.removed) <= 4
        assert f"s{ROOT}" not in step.changed
    run.fire("u", {"result": "last"})
    assert run.variables["out"] == ["r" * 10] * 49 + ["last"]


# --- completion condition ----------------------------------------------------------------------------------------


def test_a_completion_condition_ends_the_rest_and_their_places_stay_null(bench):
    run = bench(over(until="numberOfCompletedInstances >= 2", output="out", output_item="item"))
    run.start(items=["a", "b", "c", "d"])
    waits = list(run.held)
    run.deliver(waits[2])
    step = run.deliver(waits[0])
    assert set(step.withdrawals) >= {waits[1], waits[3]}
    assert run.trace == ["s", "u", "u", "e"]
    assert run.variables["out"] == ["a", None, "c", None]
    assert run.outcome == "completed"


def test_a_sequential_iteration_that_is_complete_begins_no_further_round(bench):
    run = bench(over(until="item = 2", sequential=True, output="out", output_item="item"))
    run.start(items=[1, 2, 3])
    assert complete_all(run) == 2
    assert run.variables["out"] == [1, 2, None]


@MODES
def test_a_condition_that_is_first_true_at_the_last_round_completes_once(bench, sequential):
    run = bench(over(until="numberOfCompletedInstances = numberOfInstances", sequential=sequential))
    run.start(items=[1, 2, 3])
    complete_all(run)
    assert run.trace == ["s", "u", "u", "u", "e"]
    assert run.outcome == "completed"


@MODES
def test_a_condition_sees_the_counters_under_both_names(bench, sequential):
    condition = (
        "numberOfInstances = 3 and nrOfInstances = 3 and numberOfCompletedInstances = 2 and nrOfCompletedInstances = 2 "
        f"and numberOfActiveInstances = {0 if sequential else 1} and nrOfActiveInstances = {0 if sequential else 1}"
    )
    run = bench(over(until=condition, sequential=sequential))
    run.start(items=[1, 2, 3])
    assert complete_all(run) == 2
    assert run.outcome == "completed"


@MODES
def test_a_condition_sees_what_its_round_has_just_given(bench, sequential):
    run = bench(over(until="approved = false", sequential=sequential))
    run.start(items=[1, 2, 3])
    run.fire("u", {"approved": True})
    run.fire("u", {"approved": False})
    assert run.trace == ["s", "u", "u", "e"]


@MODES
def test_a_condition_that_cannot_be_told_is_an_incident_of_its_round(bench, sequential):
    run = bench(over(until="approved", sequential=sequential))
    run.start(items=[1, 2])
    run.fire("u")
    assert run.cause == "completion condition of 'u', 'approved': expected true or false, got null"
    run.assign(approved=True)
    run.retry()
    assert run.trace == ["s", "u", "e"]


# --- behaviours --------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize(
    ("behavior", "events", "conditions", "thrown"),
    [
        ("none", ("Ping",), (), ["Ping", "Ping", "Ping"]),
        ("one", ("Ping",), (), ["Ping"]),
        ("all", (), (), []),
        ("complex", ("Ping", "Pong"), ("numberOfCompletedInstances = 2", "true"), ["Pong", "Ping", "Pong", "Pong"]),
    ],
)
def test_events_are_thrown_as_rounds_end(bench, sequential, behavior, events, conditions, thrown):
    """BPMN 13.3.7."""
    run = bench(over(sequential=sequential, behavior=behavior, events=events, conditions=conditions))
    run.start(items=[1, 2, 3])
    complete_all(run)
    assert [send.name for send in run.sends] == thrown
    assert {send.kind for send in run.sends} <= {"signal"}
    assert len({send.id for send in run.sends}) == len(run.sends)


# --- boundaries --------------------------------------------------------------------------------------------------


@MODES
def test_a_boundary_lies_over_the_whole_iteration_and_interrupts_every_round(bench, sequential):
    process = over(sequential=sequential)
    process.boundary("u", "b", timer=after("PT24H")).task("handler").end("late")
    run = bench(process)
    run.start(items=[1, 2, 3])
    assert [node for node, kind in run.waiting if kind == "timer"] == ["b"]
    run.fire("u")
    run.pass_time(25 * HOUR)
    assert run.trace == ["s", "u", "b", "handler", "late"]
    assert (run.held, run.outcome) == ({}, "completed")


@MODES
def test_a_boundary_does_not_start_over_with_each_round(bench, sequential):
    process = over(sequential=sequential)
    process.boundary("u", "b", timer=after("PT24H"), interrupting=False).end("late")
    run = bench(process)
    run.start(items=[1, 2])
    run.pass_time(20 * HOUR)
    run.fire("u")
    assert run.deadline("b") == 24 * HOUR
    run.pass_time(5 * HOUR)
    run.fire("u")
    assert run.trace == ["s", "u", "b", "late", "u", "e"]


@MODES
def test_a_rounds_own_wait_races_with_nothing(bench, sequential):
    process = over(sequential=sequential)
    process.boundary("u", "b", message="M").end("late")
    run = bench(process)
    run.start(items=[1, 2])
    assert {arm.group for arm in run.held.values() if arm.node == "u"} == {""}
    late = [wait for wait, arm in run.held.items() if arm.node == "u"]
    run.fire("b")
    assert run.trigger(Trigger("late", "task", late[0])).overtaken


def test_an_error_in_one_round_is_caught_over_the_whole_iteration(bench):
    """Innermost first: a round has no boundaries of its own."""
    process = ProcessBuilder("p")
    process.start("s").service_task("w").multi_instance(collection="items", item="item").end("e")
    process.boundary("w", "b", error="E1").end("failed")
    run = bench(process)
    run.start(items=[1, 2, 3])
    run.done("w")
    run.error("w", "E1", why="full")
    assert run.trace == ["s", "w", "b", "failed"]
    assert run.variables == {"items": [1, 2, 3], "why": "full"}
    assert (run.calls, run.held, run.outcome) == ({}, {}, "completed")


@pytest.mark.parametrize(("inputs", "shown"), [({}, {"item": "a", "loopCounter": 1}), ({"x": "=item"}, {"x": "a"})])
def test_who_does_a_round_is_shown_what_sets_it_apart(bench, inputs, shown):
    process = ProcessBuilder("p")
    process.start("s").user_task("u", inputs=inputs).multi_instance(collection="items", item="item").end("e")
    run = bench(process)
    run.start(items=["a", "b"], other=1)
    row = run.held[run.wait("u")].task
    assert row is not None
    assert row.inputs == shown


# --- crashes -----------------------------------------------------------------------------------------------------


def test_a_kill_in_the_second_round_never_runs_the_first_again(bench):
    """A77."""
    process = ProcessBuilder("p")
    process.start("s").service_task("w", idempotent=True).multi_instance(
        collection="items", item="item", sequential=True, output="out", output_item="result"
    ).end("e")
    run = bench(process)
    run.start(items=["a", "b", "c"])
    first = run.calls.copy()
    run.done("w", result="A")
    second = dict(run.calls)
    run.crash()
    assert [call.inputs["item"] for call in run.last.calls] == ["b"]
    assert set(second).isdisjoint(first)
    run.done("w", result="B")
    run.done("w", result="C")
    assert run.variables["out"] == ["A", "B", "C"]
    assert run.trace == ["s", "w", "w", "w", "e"]


def test_a_failed_round_is_retried_alone(bench):
    process = ProcessBuilder("p")
    process.start("s").service_task("w").multi_instance(collection="items", item="item").end("e")
    run = bench(process)
    run.start(items=[1, 2])
    run.failed("w", "no network")
    assert sorted(run.tokens) == [("w", "hosting"), ("w", "incident"), ("w", "working")]
    run.done("w")
    run.retry()
    run.done("w")
    assert run.trace == ["s", "w", "w", "e"]


# --- every kind of activity --------------------------------------------------------------------------------------


@MODES
def test_a_receive_task_iterates(bench, sequential):
    process = ProcessBuilder("p")
    receive = process.start("s").receive_task("r", message="M", key="=item")
    receive.multi_instance(collection="items", item="item", sequential=sequential).end("e")
    run = bench(process)
    run.start(items=["x", "y"])
    keys = [arm.key for arm in run.held.values()]
    assert [key.endswith(f"={item}") for key, item in zip(keys, ["x", "y"], strict=False)] == [True] * len(keys)
    complete_all(run, "r")
    assert run.trace == ["s", "r", "r", "e"]


@MODES
def test_a_sub_process_iterates_with_its_waits_inside(bench, sequential):
    process = ProcessBuilder("p")
    scope = process.start("s").sub_process("sub")
    scope.multi_instance(collection="items", item="item", sequential=sequential, output="out", output_item="item").end(
        "e"
    )
    scope.inside.start("is").user_task("u").catch("c", timer=after("PT1H")).end("ie")
    run = bench(process)
    run.start(items=[1, 2, 3])
    while run.outcome == "":
        while any(arm.node == "u" for arm in run.held.values()):
            run.fire("u")
        run.pass_time(2 * HOUR)
    assert run.trace.count("sub") == 3
    assert run.variables["out"] == [1, 2, 3]


@MODES
def test_iterations_nest(bench, sequential):
    process = ProcessBuilder("p")
    scope = process.start("s").sub_process("sub")
    scope.multi_instance(collection="rows", item="row", sequential=sequential, output="out", output_item="sums").end(
        "e"
    )
    inner = scope.inside.start("is").user_task("u")
    inner.multi_instance(
        collection="row", item="cell", sequential=sequential, output="sums", output_item="cell * 10"
    ).end()
    run = bench(process)
    run.start(rows=[[1, 2], [], [3]])
    complete_all(run)
    assert run.variables["out"] == [[10, 20], [], [30]]
    assert run.trace.count("u") == 3
    assert run.trace.count("sub") == 3


@MODES
def test_an_instance_that_ends_takes_all_rounds_with_it(bench, sequential):
    run = bench(over(sequential=sequential))
    run.start(items=[1, 2, 3])
    run.fire("u")
    run.cancel()
    assert run.outcome == "terminated"
    assert run.held == {}
    assert sorted(run.parts) == ["h", f"s{ROOT}"]


def test_a_terminate_end_beside_an_iteration_ends_it(bench):
    process = ProcessBuilder("p")
    fork = process.start("s").parallel("f")
    fork.user_task("u").multi_instance(cardinality="3").end("e")
    process.at("f").user_task("v").end("stop", terminate=True)
    run = bench(process)
    run.start()
    run.fire("v")
    assert run.outcome == "completed"
    assert run.held == {}


# --- cost --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [10, 1_000])
def test_the_end_of_one_round_touches_as_many_parts_with_a_thousand_rounds_as_with_ten(rounds):
    """A wake of one reads and writes its own track and scope, the host's counters, and nothing of its neighbours."""
    run = Bench(over(output="out", output_item="result"), "partial")
    run.start(items=list(range(rounds)))
    wait = run.wait("u")
    assert set(run.touch[wait]) == {"h", "t2", "s1", "t1", "s0"}
    step = run.deliver(wait, {"result": 1})
    assert run.reloads == 0
    assert step.changed | step.removed == {"s1", "t1", "t2"}
    assert len(step.withdrawals) == 1


@pytest.mark.parametrize("items", [10, 200])
def test_a_sequential_round_needs_its_successors_part_and_no_other(items):
    run = Bench(over(sequential=True), "partial")
    run.start(items=list(range(items)))
    step = run.fire("u")
    assert run.reloads == 0
    assert len(step.changed | step.removed) == 6  # head, host, the ended round's track and scope, the next one's


def test_waiting_rounds_may_be_dehydrated_and_a_near_deadline_over_them_keeps_them(bench):
    """X14's kind: an iteration that only waits holds no actor."""
    run = bench(over())
    run.start(items=[1, 2])
    assert run.willing()
    process = over()
    process.boundary("u", "b", timer=after("PT5S")).end()
    near = bench(process)
    near.start(items=[1, 2])
    assert not near.willing()


# --- standard loops ----------------------------------------------------------------------------------------------


def looping(**loop: object) -> ProcessBuilder:
    process = ProcessBuilder("p")
    add = process.start("s").script_task("t", script=Expression("n + 1", "feel"), result="n")
    add.loop(**loop).end("e")  # type: ignore[arg-type]
    return process


@pytest.mark.parametrize(
    ("loop", "start", "rounds"),
    [
        ({"while_": "n < 3"}, 0, 3),
        ({"while_": "n < 3"}, 7, 1),
        ({"while_": "n < 3", "test_before": True}, 7, 0),
        ({"while_": "n < 3", "test_before": True}, 0, 3),
        ({"while_": "n < 30", "maximum": 4}, 0, 4),
        ({"maximum": 2}, 0, 2),
        ({"maximum": 0}, 0, 0),
        ({"while_": "loopCounter < 2"}, 0, 2),
        ({"while_": "loopCounter < 2", "test_before": True}, 0, 2),
    ],
)
def test_a_standard_loop_repeats_while_its_condition_holds(bench, loop, start, rounds):
    """BPMN 13.3.6: tested before or after each round, up to the maximum."""
    run = bench(looping(**loop))
    run.start(n=start)
    assert run.trace == ["s", *["t"] * rounds, "e"]
    assert run.variables == {"n": start + rounds}


def test_a_standard_loop_waits_in_each_round(bench):
    process = ProcessBuilder("p")
    process.start("s").user_task("u").loop(while_="again", maximum=5).end("e")
    process.boundary("u", "b", message="Stop").end("stopped")
    run = bench(process)
    run.start(again=True)
    run.fire("u")
    run.fire("u")
    assert run.trace == ["s", "u", "u"]
    assert run.tokens == [("u", "hosting"), ("u", "waiting")]
    run.fire("u", {"again": False})
    assert run.trace == ["s", "u", "u", "u", "e"]
    assert run.held == {}


def test_a_loop_without_an_end_is_stopped_in_an_incident(bench):
    run = bench(looping(), max_steps=50)
    run.start(n=0)
    assert "endless loop at 't'" in run.cause


@pytest.mark.parametrize(
    ("loop", "cause"),
    [
        ({"while_": "missing"}, "loop condition of 't', 'missing': expected true or false, got null"),
        ({"maximum": "-1"}, "loop maximum of 't': expected a whole number, got '-1'"),
    ],
)
def test_a_loop_that_cannot_be_told_is_an_incident(bench, loop, cause):
    run = bench(looping(**loop))
    run.start(n=0)
    assert run.cause == cause
