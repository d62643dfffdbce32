"""The engine in the caller's process, through its public door: what each call answers, and what it leaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from gobpm_ray import Engine, ProcessBuilder, Settings
from gobpm_ray.engine.views import moment_text
from gobpm_ray.errors import (
    EngineClosed,
    InputError,
    InvalidModel,
    InvalidPayload,
    InvalidSetting,
    LimitReached,
    NotInTime,
    TaskRefused,
    UnknownInstance,
    UnknownProcess,
    UnknownTask,
    UnregisteredCallable,
    UnstorableValue,
)
from tests.support.documents import APPROVAL

DAY_MS = 86_400_000


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open(None, clock="virtual", now="2026-01-01T00:00:00Z") as opened:
        yield opened


def approval() -> ProcessBuilder:
    builder = ProcessBuilder("approval")
    builder.start("start").user_task("approve").end("end")
    return builder


def waiting_for_answer() -> ProcessBuilder:
    builder = ProcessBuilder("asking")
    builder.start("start").catch("answer", message="Answer", key="=ref").end("end")
    return builder


# --- deploying


def test_deploying_the_same_document_again_makes_no_version(engine: Engine) -> None:
    """T44: the newest version that already has this document stays as it is."""
    first, again = engine.deploy(approval())[0], engine.deploy(approval())[0]
    assert (first.version, first.created) == (1, True)
    assert (again.version, again.created) == (1, False)
    assert engine.processes() == [("approval", 1)]


def test_xml_bytes_and_definitions_are_deployed_alike(engine: Engine) -> None:
    assert engine.deploy(APPROVAL.encode())[0].process_id == "p"
    assert [node.id for node in engine.process("p").nodes.values()] == ["start", "approve", "end"]


def test_a_deployment_of_several_sources_is_all_or_nothing(engine: Engine) -> None:
    """Issue 2, bad input: nothing half written."""
    with pytest.raises(InvalidModel):
        engine.deploy(approval(), b"<nothing/>")
    assert engine.processes() == []


def test_a_deployed_task_without_topic_and_callable_is_refused(engine: Engine) -> None:
    """Design 9: without a topic it is refused at deploy, by name."""
    builder = ProcessBuilder("billing")
    builder.start().service_task("bill").end()
    with pytest.raises(UnregisteredCallable, match="'bill' has no topic"):
        engine.deploy(builder)
    engine.register("bill", lambda _inputs: {"billed": True})
    engine.deploy(builder)
    assert engine.wait(engine.start("billing").instance_id).variables == {"billed": True}


def test_a_deployed_task_with_an_unregistered_topic_becomes_a_job(engine: Engine) -> None:
    """Design 9: a worker does it."""
    builder = ProcessBuilder("billing")
    builder.start().service_task("bill", topic="billing").end()
    engine.deploy(builder)
    started = engine.start("billing")
    (job,) = engine.jobs(topic="billing")
    assert (job.node, job.kind, job.instance_id) == ("bill", "job", started.instance_id)
    assert engine.jobs(topic="mail") == []
    engine.complete_job(job.id, {"billed": True})
    assert engine.inspect(started.instance_id).state == "completed"


def test_callables_may_be_given_when_the_engine_is_opened() -> None:
    def double(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"amount": inputs["amount"] * 2}

    builder = ProcessBuilder("doubling")
    builder.start().service_task("double", topic="double").end()
    with Engine.open(None, clock="virtual", callables={"double": double}) as engine:
        engine.deploy(builder)
        assert engine.inspect(engine.start("doubling", {"amount": 4}).instance_id).variables == {"amount": 8}


# --- starting


def test_the_same_delivery_starts_one_instance(engine: Engine) -> None:
    """N5: a producer's duplicate is answered as one."""
    engine.deploy(approval())
    first = engine.start("approval", delivery_id="order-7")
    again = engine.start("approval", delivery_id="order-7")
    assert (first.duplicate, again.duplicate) == (False, True)
    assert again.instance_id == first.instance_id
    assert len(engine.list_instances()) == 1


def test_an_instance_may_have_an_id_of_the_callers(engine: Engine) -> None:
    engine.deploy(approval())
    assert engine.start("approval", id="order-7", business_key="7").instance_id == "order-7"
    assert engine.inspect("order-7").business_key == "7"
    with pytest.raises(InputError, match="order-7"):
        engine.start("approval", id="order-7", delivery_id="another")


@pytest.mark.parametrize("bad", ["", "a b", "a/b", "a:b", "@a", "{a}", "a\n", "x" * 201])
def test_an_instance_id_that_would_break_a_key_is_refused(engine: Engine, bad: str) -> None:
    engine.deploy(approval())
    with pytest.raises(InputError, match="instance id"):
        engine.start("approval", id=bad)
    assert engine.list_instances() == []


def test_many_starts_are_accepted_in_one_call(engine: Engine) -> None:
    engine.deploy(approval())
    receipts = engine.start_many("approval", [{"n": n} for n in range(5)])
    assert [engine.inspect(r.instance_id).variables for r in receipts] == [{"n": n} for n in range(5)]


def test_an_unknown_process_is_refused_by_name(engine: Engine) -> None:
    engine.deploy(approval())
    with pytest.raises(UnknownProcess, match=r"process nope: not deployed \(deployed: approval\)"):
        engine.start("nope")
    with pytest.raises(UnknownProcess, match="approval version 9"):
        engine.start("approval", version=9)


def test_a_value_that_cannot_be_stored_is_named(engine: Engine) -> None:
    """Issue 2, bad input: one line that names the thing, and nothing half written."""
    engine.deploy(approval())
    with pytest.raises(UnstorableValue, match=r"start of approval 'a\.b': a value of type object"):
        engine.start("approval", {"a": {"b": object()}})
    assert engine.list_instances() == []


def test_variables_that_are_no_table_are_refused(engine: Engine) -> None:
    engine.deploy(approval())
    with pytest.raises(InvalidPayload, match="expected a table"):
        engine.start("approval", [1, 2])  # type: ignore[arg-type]


# --- messages and signals


def test_a_keyed_message_wakes_only_its_conversation(engine: Engine) -> None:
    """M48: the other instance is untouched."""
    engine.deploy(waiting_for_answer())
    a, b = (engine.start("asking", {"ref": ref}).instance_id for ref in ("A", "B"))
    engine.publish("Answer", "B", {"text": "yes"})
    assert engine.inspect(a).state == "waiting"
    assert engine.inspect(b).variables == {"ref": "B", "text": "yes"}


def test_equal_keys_correlate_whatever_their_type(engine: Engine) -> None:
    """N2, N3: 5, 5.0 and "5" are one key."""
    engine.deploy(waiting_for_answer())
    instance = engine.start("asking", {"ref": 5}).instance_id
    engine.publish("Answer", "5")
    assert engine.inspect(instance).state == "completed"


def test_a_message_before_its_catch_is_kept_until_its_time_is_over(engine: Engine) -> None:
    """M51: parked, delivered on arm; the TTL is checked when it would match."""
    engine.deploy(waiting_for_answer())
    engine.publish("Answer", "A", ttl="PT1H")
    engine.publish("Answer", "B", ttl=timedelta(hours=1))
    assert engine.top().parked == 2
    in_time = engine.start("asking", {"ref": "A"}).instance_id
    engine.advance("PT2H")
    too_late = engine.start("asking", {"ref": "B"}).instance_id
    assert engine.inspect(in_time).state == "completed"
    assert engine.inspect(too_late).state == "waiting"


def test_a_message_with_the_same_id_is_delivered_once(engine: Engine) -> None:
    """M55."""
    engine.deploy(waiting_for_answer())
    assert engine.publish("Answer", "A", id="mail-1").duplicate is False
    assert engine.publish("Answer", "A", id="mail-1").duplicate is True
    first = engine.start("asking", {"ref": "A"}).instance_id
    second = engine.start("asking", {"ref": "A"}).instance_id
    assert [engine.inspect(i).state for i in (first, second)] == ["completed", "waiting"]


def test_a_message_key_that_is_no_scalar_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidPayload, match="correlation key"):
        engine.publish("Answer", ["A"])


def test_a_message_start_begins_an_instance_that_knows_its_sender(engine: Engine) -> None:
    """M50; the start's delivery is the sender's throw."""
    sender, receiver = ProcessBuilder("sender"), ProcessBuilder("receiver")
    sender.start().throw("tell", message="News", inputs={"text": "=text"}).end()
    receiver.start("told", message="News").user_task("read").end()
    (deployed,) = engine.deploy(receiver)
    assert (deployed.plain_start, [wait.node for wait in deployed.starts]) == (False, ["told"])
    engine.deploy(sender)
    sent = engine.start("sender", {"text": "hello"}).instance_id
    (received,) = engine.list_instances(process_id="receiver")
    assert received.variables == {"text": "hello"}
    assert received.started_by.startswith(f"{sent}:")


def test_a_signal_wakes_everyone_who_waits_now_and_nobody_later(engine: Engine) -> None:
    """M54."""
    builder = ProcessBuilder("listening")
    builder.start().catch("heard", signal="Go").end()
    engine.deploy(builder)
    early = [engine.start("listening").instance_id for _ in range(2)]
    engine.signal("Go", {"by": "me"})
    late = engine.start("listening").instance_id
    assert [engine.inspect(i).variables for i in early] == [{"by": "me"}] * 2
    assert engine.inspect(late).state == "waiting"


# --- human tasks


def test_a_task_is_claimed_by_one_and_completed_by_its_owner(engine: Engine) -> None:
    """H57: the owner is kept, another user is refused, and by a refusal nothing changes."""
    engine.deploy(approval())
    instance = engine.start("approval").instance_id
    engine.claim("approve", "ada")
    with pytest.raises(TaskRefused):
        engine.claim("approve", "bob")
    with pytest.raises(TaskRefused):
        engine.complete("approve", {"ok": True}, "bob")
    assert [task.owner for task in engine.tasks(user="ada")] == ["ada"]
    assert engine.tasks(user="bob") == []
    engine.complete("approve", {"ok": True}, "ada")
    assert engine.inspect(instance).variables == {"ok": True}


def test_a_task_given_back_can_be_claimed_by_another(engine: Engine) -> None:
    engine.deploy(approval())
    engine.start("approval")
    engine.claim("approve", "ada")
    engine.unclaim("approve")
    engine.claim("approve", "bob")
    assert engine.task("approve").owner == "bob"


def test_the_four_refusals_are_distinct_and_change_nothing(engine: Engine) -> None:
    """H58: unclaimed when strict, not the owner, not eligible, a missing output."""
    builder = ProcessBuilder("review")
    builder.start().user_task("look", candidate_groups=["staff"], required_outputs=["verdict"]).end()
    engine.deploy(builder)
    instance = engine.start("review").instance_id
    before = engine.inspect(instance)
    refusals = []
    for outputs, user, groups, strict in (
        ({"verdict": 1}, "ada", ["staff"], True),
        ({"verdict": 1}, "eve", ["guests"], False),
        ({}, "ada", ["staff"], False),
    ):
        with pytest.raises(TaskRefused) as refused:
            engine.complete("look", outputs, user, groups, strict=strict)
        refusals.append(str(refused.value))
    engine.claim("look", "ada", ["staff"])
    with pytest.raises(TaskRefused) as refused:
        engine.complete("look", {"verdict": 1}, "bob", ["staff"])
    refusals.append(str(refused.value))
    assert len(set(refusals)) == 4
    assert engine.inspect(instance) == before
    assert engine.complete("look", {"verdict": 1}, "ada").instance_id == instance


def test_an_unknown_task_is_refused_by_name(engine: Engine) -> None:
    for name in ("nope", "nope/1:a:0:1"):
        with pytest.raises(UnknownTask, match="nope"):
            engine.complete(name)


def test_a_nodes_oldest_task_is_meant_by_its_id(engine: Engine) -> None:
    engine.deploy(approval())
    first, second = (engine.start("approval").instance_id for _ in range(2))
    engine.complete("approve")
    assert [engine.inspect(i).state for i in (first, second)] == ["completed", "waiting"]


# --- operators


def failing() -> ProcessBuilder:
    builder = ProcessBuilder("failing")
    builder.start().service_task("work", topic="work").end("end")
    return builder


def test_an_incident_is_retried_where_it_happened(engine: Engine) -> None:
    """N10, A72: retry runs it again."""
    attempts = []

    def work(_inputs: dict[str, Any]) -> dict[str, Any]:
        attempts.append(1)
        if len(attempts) == 1:
            raise RuntimeError("no paper")
        return {"attempts": len(attempts)}

    engine.register("work", work)
    engine.deploy(failing())
    instance = engine.start("failing").instance_id
    (incident,) = engine.incidents()
    assert (incident.instance_id, incident.node) == (instance, "work")
    assert "no paper" in incident.cause
    assert engine.inspect(instance).state == "incident"
    engine.retry(instance, "work")
    assert engine.inspect(instance).variables == {"attempts": 2}
    assert engine.incidents() == []


def test_a_failed_job_is_an_incident_that_can_be_resolved(engine: Engine) -> None:
    """A72: resolve goes past it with outputs of the operator's."""
    engine.deploy(failing())
    instance = engine.start("failing").instance_id
    engine.fail_job("work", "no paper")
    assert [i.cause for i in engine.incidents(instance)] == ["no paper"]
    engine.resolve(instance, outputs={"done": "by hand"})
    view = engine.inspect(instance)
    assert (view.state, view.variables) == ("completed", {"done": "by hand"})


def test_nothing_to_repair_is_said(engine: Engine) -> None:
    engine.deploy(approval())
    instance = engine.start("approval").instance_id
    with pytest.raises(InputError, match="no open incident at approve to retry"):
        engine.retry(instance, "approve")
    with pytest.raises(UnknownInstance, match="nope"):
        engine.resolve("nope")


def test_set_cancel_and_what_is_over(engine: Engine) -> None:
    engine.deploy(approval())
    instance = engine.start("approval", {"a": 1}).instance_id
    engine.set(instance, {"a": 2, "b": 3})
    assert engine.inspect(instance).variables == {"a": 2, "b": 3}
    engine.cancel(instance)
    assert engine.inspect(instance).state == "terminated"
    assert engine.tasks() == []
    with pytest.raises(InputError, match="has ended"):
        engine.cancel(instance)
    with pytest.raises(UnknownInstance):
        engine.cancel("nope")


def test_a_suspended_instance_keeps_its_triggers(engine: Engine) -> None:
    """D21."""
    engine.deploy(waiting_for_answer())
    instance = engine.start("asking", {"ref": "A"}).instance_id
    assert engine.suspend(instance) is True
    assert engine.suspend(instance) is False
    engine.publish("Answer", "A")
    assert engine.inspect(instance).state == "suspended"
    assert engine.resume(instance) is True
    assert engine.inspect(instance).state == "completed"


# --- time


def test_advance_fires_each_deadline_at_its_own_time(engine: Engine) -> None:
    """W12: 2 h and 3 h fire at 2 h and 3 h."""
    builder = ProcessBuilder("timers")
    fork = builder.start().parallel("fork")
    fork.catch("two", timer="PT2H").end("e2")
    builder.at("fork").catch("three", timer="PT3H").end("e3")
    engine.deploy(builder)
    instance = engine.start("timers").instance_id
    assert moment_text(engine.next_deadline()) == "2026-01-01T02:00:00Z"
    engine.advance("P1D")
    times = {
        entry.node: moment_text(entry.at_ms) for entry in engine.inspect(instance).history if entry.event == "node"
    }
    assert times["two"] == "2026-01-01T02:00:00Z"
    assert times["three"] == "2026-01-01T03:00:00Z"
    assert moment_text(engine.now()) == "2026-01-02T00:00:00Z"


def test_the_clock_is_moved_by_a_span_or_to_a_moment_and_never_back(engine: Engine) -> None:
    start = engine.now()
    assert engine.advance(timedelta(days=1)) == start + DAY_MS
    assert engine.advance(to="2026-02-01T00:00:00Z") == engine.now()
    assert engine.advance(to=start) == engine.now() > start
    with pytest.raises(InputError):
        engine.advance()
    with pytest.raises(InputError):
        engine.advance("-PT1H")


def test_an_endless_cycle_is_stopped_by_its_bound(engine: Engine) -> None:
    builder = ProcessBuilder("ticking")
    builder.start("tick", timer="R/PT1H").end()
    engine.deploy(builder)
    with pytest.raises(LimitReached, match="more than 5"):
        engine.advance("P1D", max_jumps=5)
    assert len(engine.list_instances()) == 5


def test_on_a_real_clock_time_is_not_moved_but_passes() -> None:
    builder = ProcessBuilder("short")
    builder.start().catch("soon", timer="PT0.05S").end()
    with Engine.open(None) as engine:
        with pytest.raises(InputError, match="manual"):
            engine.advance("PT1H")
        engine.deploy(builder)
        started = engine.start("short")
        assert engine.wait(started.instance_id, 10).trace == ("start", "soon", "end")


def test_waiting_ends_with_the_callers_patience(engine: Engine) -> None:
    engine.deploy(approval())
    instance = engine.start("approval").instance_id
    assert engine.wait(instance, until="waiting").tokens[0].node == "approve"
    with pytest.raises(NotInTime, match=instance):
        engine.wait(instance, 0.01)


def test_a_clock_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="clock"):
        Engine.open(None, clock="fast")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="virtual"):
        Engine.open(None, now="2026-01-01T00:00:00Z")


# --- looking


def test_a_view_says_where_an_instance_stands_and_what_it_waits_for(engine: Engine) -> None:
    builder = ProcessBuilder("late")
    builder.start("start").user_task("do").end()
    builder.boundary("do", "deadline", timer="PT24H").end("gone")
    engine.deploy(builder)
    view = engine.inspect(engine.start("late", {"a": 1}).instance_id)
    assert [(t.node, t.state) for t in view.tokens] == [("do", "waiting")]
    assert {(w.node, w.kind, moment_text(w.deadline_ms)) for w in view.waits} == {
        ("do", "task", None),
        ("deadline", "timer", "2026-01-02T00:00:00Z"),
    }
    assert view.trace == ("start",)
    assert (view.state, view.resident, view.ended, view.moving) == ("waiting", False, False, False)


def test_instances_are_listed_by_process_state_and_end(engine: Engine) -> None:
    engine.deploy(approval(), waiting_for_answer())
    a = engine.start("approval").instance_id
    b = engine.start("asking", {"ref": 1}).instance_id
    engine.complete("approve")
    assert [v.instance_id for v in engine.list_instances()] == [a, b]
    assert [v.instance_id for v in engine.list_instances(ended=False)] == [b]
    assert [v.instance_id for v in engine.list_instances(process_id="approval")] == [a]
    assert [v.instance_id for v in engine.list_instances(state="waiting")] == [b]
    assert [v.instance_id for v in engine.list_instances(limit=1)] == [a]
    assert engine.status(a) == "completed"
    with pytest.raises(UnknownInstance):
        engine.inspect("nope")


def test_facts_tell_what_happened_without_payloads(engine: Engine) -> None:
    """D14: names and counts, never a payload."""
    engine.deploy(approval())
    instance = engine.start("approval", {"secret": "s3cret"}).instance_id
    first = engine.facts()
    engine.complete("approve")
    later = engine.facts(after=first[-1].id)
    assert [fact.data["instance"] for fact in (*first, *later)] == [instance] * (len(first) + len(later))
    assert later
    assert not any("s3cret" in str(fact) for fact in (*first, *later))


def test_top_counts_what_waits_and_what_is_wrong(engine: Engine) -> None:
    engine.deploy(failing(), waiting_for_answer())
    engine.start("failing")
    engine.start("asking", {"ref": 1})
    engine.fail_job("work", "no paper")
    top = engine.top()
    assert (top.waiting, top.incidents, top.resident, top.actors, top.ready) == (2, 1, 0, 0, 0)


# --- closing, restarting


def test_a_closed_engine_answers_nothing() -> None:
    """R28: an error, not a success."""
    engine = Engine.open(None, clock="virtual")
    engine.deploy(approval())
    instance = engine.start("approval").instance_id
    engine.close()
    engine.close()
    assert engine.closed
    calls = (
        lambda: engine.deploy(approval()),
        lambda: engine.register("t", print),
        lambda: engine.start("approval"),
        lambda: engine.start_many("approval", [{}]),
        lambda: engine.publish("M"),
        lambda: engine.signal("S"),
        lambda: engine.tasks(),
        lambda: engine.jobs(),
        lambda: engine.claim("approve", "ada"),
        lambda: engine.unclaim("approve"),
        lambda: engine.complete("approve"),
        lambda: engine.complete_job("approve"),
        lambda: engine.fail_job("approve", "x"),
        lambda: engine.incidents(),
        lambda: engine.retry(instance),
        lambda: engine.resolve(instance),
        lambda: engine.set(instance, {"a": 1}),
        lambda: engine.cancel(instance),
        lambda: engine.suspend(instance),
        lambda: engine.resume(instance),
        lambda: engine.inspect(instance),
        lambda: engine.list_instances(),
        lambda: engine.status(instance),
        lambda: engine.wait(instance),
        lambda: engine.facts(),
        lambda: engine.top(),
        lambda: engine.now(),
        lambda: engine.advance("PT1H"),
        lambda: engine.wait_quiet(),
        lambda: engine.processes(),
        lambda: engine.process("approval"),
        lambda: engine.restart(),
    )
    for call in calls:
        with pytest.raises(EngineClosed):
            call()


def test_a_closed_engine_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with Engine.open(None):
        pass
    assert set(threading.enumerate()) <= before


def test_after_a_restart_only_what_is_encoded_counts(engine: Engine) -> None:
    """Design 11, `restart`: everything cached is forgotten, and the instance goes on."""
    engine.register("work", lambda _inputs: {"done": True})
    builder = ProcessBuilder("long")
    builder.start().user_task("first").service_task("work", topic="work").user_task("last").end()
    engine.deploy(builder)
    instance = engine.start("long", {"amount": 1}).instance_id
    before = engine.inspect(instance)
    engine.restart()
    assert engine.inspect(instance) == before
    engine.complete("first")
    engine.restart()
    engine.complete("last")
    assert engine.inspect(instance).variables == {"amount": 1, "done": True}


def test_settings_reach_the_engine() -> None:
    with Engine.open(None, clock="virtual", settings=Settings(history_limit=3)) as engine:
        engine.deploy(approval())
        instance = engine.start("approval").instance_id
        engine.complete("approve")
        assert len(engine.inspect(instance).history) == 3
