"""Event sub-processes: what a scope waits for, its handlers, and their end (BPMN 13.5.4; X7, W13)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gobpm_ray.core.step import Trigger
from gobpm_ray.model.elements import (
    EventDefinition,
    Expression,
    Mapping,
    MessageDefinition,
    SignalDefinition,
    SubProcess,
    UserTask,
)
from tests.unit.core.drawing import after, drawn, every, handler
from tests.unit.core.driving import DAY, HOUR, MINUTE, SECOND, Bench


def message(name: str = "M") -> EventDefinition:
    return MessageDefinition(name=name)


def watched(*definitions: EventDefinition, interrupting: bool = True):
    """A user task in the process, and an event sub-process beside it with a user task of its own."""
    return drawn(
        "s > u > e\nh\nh: hs > uh > eh",
        *handler("h", "hs", *definitions, interrupting=interrupting),
    )


def within(*definitions: EventDefinition, interrupting: bool = True):
    """The same inside a sub-process."""
    return drawn(
        "s > sub > t > e\nsub: si > u > ei\nsub: h\nh: hs > uh > eh",
        SubProcess("sub"),
        *handler("h", "hs", *definitions, interrupting=interrupting),
    )


@pytest.mark.parametrize("definition", [message(), SignalDefinition(name="S"), after("PT1H")])
def test_the_main_flow_is_released_and_the_handler_still_runs(bench, definition):
    """X7, W13."""
    run = bench(watched(definition))
    run.start()
    assert ("hs", definition.type) in run.waiting
    assert run.willing()
    wait = run.wait("hs")
    assert wait.startswith("@0:hs:0:")
    run.now += HOUR
    run.deliver(wait, {"why": 1} if definition.type != "timer" else None)
    assert run.waiting == [("uh", "task")]
    run.fire("uh")
    assert run.trace == ["s", "hs", "uh", "eh", "h"]
    assert run.outcome == "completed"


def test_a_near_deadline_of_an_event_sub_process_keeps_the_instance_resident(bench):
    run = bench(watched(after("PT10S")))
    run.start()
    assert not run.willing(30 * SECOND)
    assert run.willing(5 * SECOND)


def test_an_interrupting_handler_ends_everything_else_in_its_scope_and_only_there(bench):
    process = drawn(
        """
        s > tf > sub > e
        tf > u0 > e0
        sub: si > tg > u1 > e1
        sub: tg > w > e2
        sub: h
        h: hs > uh > eh
        """,
        SubProcess("sub"),
        *handler("h", "hs", message()),
    )
    run = bench(process)
    run.start()
    call = next(iter(run.calls))
    run.fire("hs")
    assert run.last.cancelled == [call]
    assert run.waiting == [("u0", "task"), ("uh", "task")]
    run.fire("uh")
    run.fire("u0")
    assert run.trace[-6:] == ["eh", "h", "sub", "e", "u0", "e0"]
    assert run.outcome == "completed"


def test_a_non_interrupting_handler_runs_as_often_as_it_is_triggered_and_the_scope_waits_for_all(bench):
    run = bench(within(message(), interrupting=False))
    run.start()
    run.fire("hs", {"n": 1})
    run.fire("hs", {"n": 2})
    assert run.waiting == [("hs", "message"), ("u", "task"), ("uh", "task"), ("uh", "task")]
    run.fire("u")
    assert "t" not in run.trace, "handlers hold the scope open"
    assert ("hs", "message") in run.waiting, "and while it is open it listens"
    run.fire("uh")
    run.fire("uh")
    assert run.trace[-3:] == ["sub", "t", "e"]
    assert run.held == {}
    assert run.outcome == "completed"


def test_the_waits_end_with_their_scope(bench):
    run = bench(within(message()))
    run.start()
    wait = run.wait("hs")
    run.fire("u")
    assert run.outcome == "completed"
    assert run.held == {}
    assert run.trigger(Trigger("late", "message", wait)).overtaken


def test_a_message_for_a_scope_that_ended_in_the_same_inbox_goes_back_to_routing(bench):
    run = bench(within(message()))
    run.start()
    step = run.trigger(run.delivered(run.wait("u")), Trigger("m", "message", "@1:hs:0:3"))
    assert [trigger.id for trigger in step.overtaken] == ["m"]


def test_interrupting_starts_of_one_scope_race_and_the_first_closes_the_others(bench):
    process = drawn(
        "s > u > e\nh\nh: hs > uh\ng\ng: gs > ug\nk\nk: ks > uk",
        *handler("h", "hs", message("A")),
        *handler("g", "gs", message("B")),
        *handler("k", "ks", message("C"), interrupting=False),
        UserTask("ug"),
        UserTask("uk"),
    )
    run = bench(process)
    run.start()
    assert {arm.node: (arm.group, arm.repeat) for arm in run.held.values() if arm.kind == "message"} == {
        "hs": ("@0", False),
        "gs": ("@0", False),
        "ks": ("", True),
    }
    run.fire("gs")
    assert run.waiting == [("ug", "task")]
    run.fire("ug")
    assert run.outcome == "completed"


@pytest.mark.parametrize(("cycle", "times"), [("R3/PT10M", 3), ("R1/PT10M", 1), ("R0/PT10M", 0)])
def test_a_cycle_starts_its_handler_exactly_n_times(bench, cycle, times):
    """T37."""
    run = bench(within(every(cycle), interrupting=False))
    run.start()
    waits = []
    for _ in range(times):
        waits.append(run.wait("hs"))
        run.pass_time(10 * MINUTE)
    assert len(set(waits)) == times
    run.pass_time(DAY)
    assert [token for token in run.waiting if token[0] == "uh"] == [("uh", "task")] * times
    assert all(arm.node != "hs" for arm in run.held.values())


def test_a_duration_starts_its_handler_once(bench):
    """T41."""
    run = bench(watched(after("PT1H"), interrupting=False))
    run.start()
    run.pass_time(5 * HOUR)
    assert run.waiting == [("u", "task"), ("uh", "task")]


def test_a_sub_process_in_a_loop_listens_anew_each_time_with_new_wait_ids(bench):
    process = drawn(
        "s > tm > sub > u2 > tm\nsub: si > u > ei\nsub: h\nh: hs > eh",
        SubProcess("sub"),
        *handler("h", "hs", message()),
    )
    run = bench(process)
    run.start()
    seen = set()
    for _ in range(3):
        seen.add(run.wait("hs"))
        run.fire("u")
        assert all(arm.node != "hs" for arm in run.held.values())
        run.fire("u2")
    assert len(seen) == 3


def test_the_key_of_a_message_start_is_read_in_the_scope_that_listens(bench):
    run = bench(watched(MessageDefinition(name="M", key=Expression("order"))))
    run.start(order=7)
    assert run.held[run.wait("hs")].key == "m\x1fM\x1f=7"


def test_a_start_that_cannot_be_armed_is_an_incident_and_a_retry_arms_it(bench):
    run = bench(within(MessageDefinition(name="M", key=Expression("order"))))
    run.start()
    assert run.waiting == [("hs", "incident"), ("u", "task")]
    assert "correlation key" in run.cause
    run.retry()
    assert run.waiting == [("hs", "incident"), ("u", "task")]
    run.assign(order=1)
    run.retry()
    assert run.waiting == [("hs", "message"), ("u", "task")]
    assert run.trace == ["s", "si"]
    run.fire("hs")
    run.fire("uh")
    assert run.outcome == "completed"


def test_an_operator_can_do_without_a_start_that_cannot_be_armed(bench):
    run = bench(within(MessageDefinition(name="M", key=Expression("order"))))
    run.start()
    run.resolve()
    assert run.waiting == [("u", "task")]
    run.fire("u")
    assert run.trace == ["s", "si", "u", "ei", "sub", "t", "e"]


def test_a_handler_listens_for_event_sub_processes_of_its_own(bench):
    process = drawn(
        "s > u > e\nh\nh: hs > uh > eh\nh: g\ng: gs > ug",
        *handler("h", "hs", message("A")),
        *handler("g", "gs", message("B")),
        UserTask("ug"),
    )
    run = bench(process)
    run.start()
    assert run.waiting == [("hs", "message"), ("u", "task")]
    run.fire("hs")
    assert run.waiting == [("gs", "message"), ("uh", "task")]
    run.fire("gs")
    assert run.waiting == [("ug", "task")]
    run.fire("ug")
    assert run.outcome == "completed"
    assert run.trace == ["s", "hs", "gs", "ug", "g", "h"]


def test_cancelling_the_instance_withdraws_what_its_scopes_wait_for(bench):
    run = bench(within(message()))
    run.start()
    run.cancel()
    assert run.outcome == "terminated"
    assert run.held == {}
    assert set(run.parts) == {"h", "s0"}


def test_a_wake_of_an_event_sub_process_needs_only_its_scope_and_the_hosts_above():
    run = Bench(within(message(), interrupting=False), "partial")
    run.start()
    assert run.touch[run.wait("hs")] == ("h", "s1", "t1", "s0")
    run.fire("hs")
    assert run.reloads == 0


def test_both_boundaries_in_one_inbox_have_one_writer(bench):
    """S85."""
    process = drawn(
        "s > u > e\nh\nh: hs > uh\ng\ng: gs > ug",
        *handler("h", "hs", message("A")),
        *handler("g", "gs", message("B"), interrupting=False),
        UserTask("ug"),
    )
    run = bench(process)
    run.start()
    step = run.trigger(run.delivered(run.wait("hs")), run.delivered(run.wait("gs")))
    assert [trigger.wait[:5] for trigger in step.overtaken] == ["@0:gs"]
    assert run.waiting == [("uh", "task")]


def adhoc(interrupting: bool):
    return drawn(
        "s > sub > e\nsub: u1\nsub: u2\nsub: h\nh: hs > uh > eh",
        SubProcess("sub", kind="adhoc", ordering="sequential"),
        *handler("h", "hs", message(), interrupting=interrupting),
    )


def test_an_ad_hoc_sub_process_listens_between_its_activities(bench):
    run = bench(adhoc(False))
    run.start()
    wait = run.wait("hs")
    run.fire("u1")
    assert run.wait("hs") == wait
    run.fire("hs")
    run.fire("u2")
    run.fire("uh")
    assert run.trace == ["s", "u1", "hs", "u2", "uh", "eh", "h", "sub", "e"]
    assert run.held == {}


def test_an_interrupted_ad_hoc_sub_process_begins_nothing_more(bench):
    run = bench(adhoc(True))
    run.start()
    run.fire("hs")
    run.fire("uh")
    assert run.trace == ["s", "hs", "uh", "eh", "h", "sub", "e"]


def test_an_output_mapping_that_fails_leaves_the_scope_deaf(bench):
    process = within(message())
    sub = replace(process.nodes["sub"], outputs=(Mapping("r", Expression("1 / z", "python")),))
    run = bench(replace(process, nodes={**process.nodes, "sub": sub}))
    run.start(z=0)
    run.fire("u")
    assert run.waiting == [("sub", "incident")]
    run.assign(z=1)
    run.retry()
    assert run.outcome == "completed"
