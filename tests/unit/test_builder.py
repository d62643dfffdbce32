"""The Python builder: it reads like the process, and gives the model that XML gives."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gobpm_ray.bpmn.reader import read_bpmn
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.builder import ProcessBuilder, ScopeBuilder, after, at_date, every
from gobpm_ray.model.elements import (
    AbstractTask,
    BoundaryEvent,
    CallActivity,
    CatchEvent,
    CompensateDefinition,
    ConditionalDefinition,
    DecisionTask,
    EndEvent,
    ErrorDefinition,
    EscalationDefinition,
    ExclusiveGateway,
    Expression,
    Mapping,
    MessageDefinition,
    MultiInstance,
    Process,
    ReceiveTask,
    ScriptTask,
    SignalDefinition,
    StandardLoop,
    StartEvent,
    SubProcess,
    TerminateDefinition,
    ThrowEvent,
    TimerDefinition,
    UserTask,
    WorkTask,
    literal,
)


def _order() -> Process:
    order = ProcessBuilder("order", name="Order")
    order.start().user_task("approve", assignee="=boss").exclusive("decide")
    order.at("decide").when("amount > 100").service_task("bill", topic="billing").end("billed")
    order.at("decide").otherwise().end("refused")
    order.boundary("approve", timer="PT24H", interrupting=False).send_task("remind", topic="mail").end("late")
    return order.build()


def test_a_process_reads_from_start_to_end() -> None:
    process = _order()
    assert (process.id, process.name, process.executable) == ("order", "Order", True)
    assert list(process.nodes) == [
        "start", "approve", "decide", "bill", "billed", "refused", "approve_boundary", "remind", "late",
    ]  # fmt: skip
    assert [(flow.source, flow.target) for flow in process.flows.values()] == [
        ("start", "approve"),
        ("approve", "decide"),
        ("decide", "bill"),
        ("bill", "billed"),
        ("decide", "refused"),
        ("approve_boundary", "remind"),
        ("remind", "late"),
    ]
    assert process.nodes["decide"].incoming == ("approve_to_decide",)
    assert process.nodes["decide"].outgoing == ("decide_to_bill", "decide_to_refused")


def test_conditions_and_defaults_stand_on_the_flows() -> None:
    process = _order()
    assert process.flows["decide_to_bill"].condition == Expression("amount > 100", "feel")
    assert process.flows["decide_to_refused"].default
    gateway = process.nodes["decide"]
    assert isinstance(gateway, ExclusiveGateway)
    assert gateway.default == "decide_to_refused"


def test_the_model_is_the_one_that_xml_gives() -> None:
    xml = b"""<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0">
      <process id="p" name="P" isExecutable="true">
        <startEvent id="s"/>
        <receiveTask id="wait" messageRef="m"/>
        <boundaryEvent id="week" attachedToRef="wait"><timerEventDefinition><timeDuration>P7D</timeDuration>
          </timerEventDefinition></boundaryEvent>
        <endEvent id="e"/>
        <endEvent id="late"/>
        <sequenceFlow id="f1" sourceRef="s" targetRef="wait"/>
        <sequenceFlow id="f2" sourceRef="wait" targetRef="e"/>
        <sequenceFlow id="f3" sourceRef="week" targetRef="late"/>
      </process>
      <message id="m" name="Paid"><extensionElements><zeebe:subscription correlationKey="=order"/></extensionElements>
      </message>
    </definitions>"""
    built = ProcessBuilder("p", name="P")
    built.start("s").receive_task("wait", message="Paid", key="=order").end("e")
    built.boundary("wait", "week", timer="P7D").end("late")
    read = read_bpmn(xml).processes[0]
    built_nodes = built.build().nodes
    assert built_nodes.keys() == read.nodes.keys()
    for node_id, node in read.nodes.items():
        other = built_nodes[node_id]
        for attribute in ("type", "scope", "definitions", "attached_to", "interrupting", "message", "inputs"):
            assert getattr(node, attribute, None) == getattr(other, attribute, None)


def test_a_path_can_lead_to_an_element_that_exists_or_is_still_to_come() -> None:
    loop = ProcessBuilder("loop")
    loop.start().exclusive("again").task("work").exclusive("done", default="end")
    loop.at("done").when("more").to("again")
    loop.at("done").to("end")
    loop.first.end("end")
    process = loop.build()
    assert process.nodes["again"].incoming == ("start_to_again", "done_to_again")
    assert process.flows["done_to_end"].default


def test_a_fork_and_a_join_by_connect() -> None:
    fork = ProcessBuilder("fork")
    fork.start().parallel("split").task("a").parallel("join").end()
    fork.at("split").task("b")
    assert fork.connect("b", "join", name="to join", id="bj") == "bj"
    process = fork.build()
    assert process.nodes["join"].incoming == ("a_to_join", "bj")
    assert process.flows["bj"].name == "to join"


def test_a_sub_process_is_written_in_a_with_block_or_by_a_function() -> None:
    outer = ProcessBuilder("outer")
    with outer.start("s").sub_process("first") as inside:
        inside.start("is").user_task("check").end("ie")

    def body(scope: ScopeBuilder) -> None:
        scope.start("js").end("je")

    outer.at("first").sub_process("second", body).end("e")
    process = outer.build()
    assert isinstance(process.nodes["first"], SubProcess)
    assert {node.id: node.scope for node in process.nodes.values()} == {
        "s": "outer", "first": "outer", "is": "first", "check": "first", "ie": "first",
        "second": "outer", "js": "second", "je": "second", "e": "outer",
    }  # fmt: skip


def test_a_boundary_lies_in_the_scope_of_what_it_is_attached_to() -> None:
    outer = ProcessBuilder("outer")
    with outer.start().sub_process("sub") as inside:
        inside.start("is").user_task("u").end("ie")
    outer.at("sub").end()
    outer.boundary("u", "b", message="Stop", key="=id").end("stopped")
    boundary = outer.build().nodes["b"]
    assert isinstance(boundary, BoundaryEvent)
    assert (boundary.scope, boundary.attached_to, boundary.interrupting) == ("sub", "u", True)
    assert boundary.definitions == (MessageDefinition(name="Stop", key=Expression("id")),)


def test_every_kind_of_event_has_its_definition() -> None:
    events = ProcessBuilder("events")
    events.start("by_message", message="Begin").catch("c", signal="Go").throw("t", signal="Went").throw(
        "milestone"
    ).end("sent", message="Done", key="=id")
    events.start("by_timer", timer="R/PT1H").end("all", terminate=True)
    nodes = events.build().nodes
    found = {
        n.id: n.definitions for n in nodes.values() if isinstance(n, StartEvent | CatchEvent | ThrowEvent | EndEvent)
    }
    assert found == {
        "by_message": (MessageDefinition(name="Begin"),),
        "c": (SignalDefinition(name="Go"),),
        "t": (SignalDefinition(name="Went"),),
        "milestone": (),
        "sent": (MessageDefinition(name="Done", key=Expression("id")),),
        "by_timer": (TimerDefinition(kind="cycle", value=literal("R/PT1H")),),
        "all": (TerminateDefinition(),),
    }


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        ("P7D", "duration", literal("P7D")),
        ("R3/PT10M", "cycle", literal("R3/PT10M")),
        ("0 9 * * MON-FRI", "cycle", literal("0 9 * * MON-FRI")),
        ("@daily", "cycle", literal("@daily")),
        ("2026-01-01T00:00:00Z", "date", literal("2026-01-01T00:00:00Z")),
        ("= wait", "duration", Expression("wait")),
        (at_date("=due"), "date", Expression("due")),
        (every("=rhythm"), "cycle", Expression("rhythm")),
        (after("PT1H"), "duration", literal("PT1H")),
        (timedelta(hours=1, milliseconds=5), "duration", literal("PT3600.005S")),
        (datetime(2026, 1, 1, tzinfo=UTC), "date", literal("2026-01-01T00:00:00+00:00")),
    ],
)
def test_a_timers_kind_is_read_off_its_text_or_said(
    given: str | timedelta | TimerDefinition, kind: str, value: Expression
) -> None:
    timed = ProcessBuilder("timed")
    timed.start().catch("c", timer=given).end()
    node = timed.build().nodes["c"]
    assert isinstance(node, CatchEvent)
    assert node.definitions == (TimerDefinition(kind=kind, value=value),)  # type: ignore[arg-type]


def test_tasks_take_operands_mappings_and_their_own_settings() -> None:
    tasks = ProcessBuilder("tasks")
    (
        tasks.start()
        .service_task(
            "s", "topic", idempotent=True, result="r", inputs={"a": "=b + 1", "c": "plain"}, outputs={"d": "=r"}
        )
        .script_task("x", "a + 1", result="sum")
        .user_task(
            "u", candidate_users=["ann", 'b"ob'], candidate_groups="clerks,leads", priority=5, required_outputs=["ok"]
        )
        .send_task("m", message="Sent", key="=id")
        .manual_task("h")
        .end()
    )
    nodes = tasks.build().nodes
    service, script, user, send = nodes["s"], nodes["x"], nodes["u"], nodes["m"]
    assert isinstance(service, WorkTask)
    assert (service.topic, service.idempotent, service.result_variable) == ("topic", True, "r")
    assert service.inputs == (Mapping("a", Expression("b + 1")), Mapping("c", literal("plain")))
    assert service.outputs == (Mapping("d", Expression("r")),)
    assert isinstance(script, ScriptTask)
    assert (script.script, script.result_variable) == (Expression("a + 1"), "sum")
    assert isinstance(user, UserTask)
    assert user.candidate_users == Expression('["ann", "b\\"ob"]')
    assert user.candidate_groups == literal("clerks,leads")
    assert (user.priority, user.required_outputs) == (literal("5"), ("ok",))
    assert isinstance(send, WorkTask)
    assert (send.type, send.message) == ("sendTask", MessageDefinition(name="Sent", key=Expression("id")))
    assert nodes["h"].type == "manualTask"


def test_an_event_gateway_races_its_arms() -> None:
    race = ProcessBuilder("race")
    race.start().event_gateway("g")
    race.at("g").catch("late", timer="P7D").end("gave_up")
    race.at("g").receive_task("answer", message="Answer", key="=id").end("answered")
    process = race.build()
    assert process.nodes["g"].outgoing == ("g_to_late", "g_to_answer")
    assert isinstance(process.nodes["answer"], ReceiveTask)


def test_ids_are_given_where_none_are_said() -> None:
    plain = ProcessBuilder("plain")
    plain.start().task().task().end()
    plain.start().task().end()
    assert list(plain.build().nodes) == ["start", "task", "task_2", "end", "start_2", "task_3", "end_2"]


# --- refused -----------------------------------------------------------------------------------------------------


def test_build_refuses_in_one_line_with_every_problem() -> None:
    broken = ProcessBuilder("broken")
    broken.start().exclusive("g").when("a > (").to("gone")
    with pytest.raises(InvalidModel) as refusal:
        broken.build()
    assert str(refusal.value).startswith(
        "process 'broken': sequenceFlow 'g_to_gone' leads to 'gone', which does not exist"
    )
    assert [problem.code for problem in refusal.value.problems] == ["unknown_target", "expression"]  # type: ignore[attr-defined]


def test_an_id_is_given_once() -> None:
    twice = ProcessBuilder("twice")
    twice.start().task("a")
    with pytest.raises(InvalidModel, match="two elements with the id 'a'"):
        twice.at("a").task("a")
    with pytest.raises(InvalidModel, match="two elements with the id 'twice'"):
        twice.at("a").task("twice")


def test_a_place_must_exist_and_a_process_needs_an_id() -> None:
    with pytest.raises(InvalidModel, match="no element 'nowhere' yet"):
        ProcessBuilder("p").at("nowhere")
    with pytest.raises(InvalidModel, match="needs an id"):
        ProcessBuilder("")


def test_an_end_has_nothing_behind_it() -> None:
    beyond = ProcessBuilder("beyond")
    beyond.start().end("e").task("after")
    with pytest.raises(InvalidModel, match="endEvent 'e' has an outgoing flow"):
        beyond.build()


def test_a_process_that_is_not_for_execution_says_so() -> None:
    drawing = ProcessBuilder("drawing", executable=False)
    drawing.start().end()
    assert not drawing.build().executable


# --- breadth -----------------------------------------------------------------------------------------------------


def _whole_order() -> Process:
    """The example of the builder's own text."""
    order = ProcessBuilder("order", name="Order")
    order.start().user_task("approve", assignee="=boss").exclusive("decide")
    order.at("decide").when("amount > 100").service_task("bill", topic="billing").end("billed")
    order.at("decide").otherwise().call("ship", process="shipping").multi_instance(collection="parcels", item="parcel")
    order.boundary("approve", timer="PT24H").service_task("remind", topic="mail").end("late")
    order.boundary("bill", compensate=True).service_task("refund", topic="billing")
    with order.event_sub_process("complaint") as complaint:
        complaint.start("hears", message="complained", interrupting=False).user_task("answer").end()
    return order.build()


def test_what_the_builder_tells_of_itself_is_true() -> None:
    nodes = _whole_order().nodes
    called, undone, refund, beside, hears = (
        nodes[name] for name in ("ship", "bill_boundary", "refund", "complaint", "hears")
    )
    assert isinstance(called, CallActivity)
    assert called.loop == MultiInstance(collection=Expression("parcels"), item_variable="parcel")
    assert isinstance(undone, BoundaryEvent)
    assert (undone.definitions, undone.handler, undone.outgoing) == ((CompensateDefinition(),), "refund", ())
    assert isinstance(refund, WorkTask)
    assert (refund.for_compensation, refund.incoming) == (True, ())
    assert isinstance(beside, SubProcess)
    assert beside.kind == "event"
    assert isinstance(hears, StartEvent)
    assert (hears.scope, hears.interrupting) == ("complaint", False)


def test_events_take_what_they_wait_for_and_throw_by_name() -> None:
    order = ProcessBuilder("p")
    with order.start().sub_process("sub") as inside:
        inside.start().throw(escalation="up").end("failed", error="E-1")
    order.at("sub").catch("both", message="m", signal="s", parallel_multiple=True).throw(compensate="sub").end()
    order.boundary("sub", "any", error="").end()
    order.boundary("sub", "some", escalation="up", interrupting=False).end()
    order.boundary("sub", "when", conditional="stock < 3").end(compensate=True)
    nodes = order.build().nodes
    assert nodes["failed"].definitions == (ErrorDefinition(code="E-1"),)  # type: ignore[union-attr]
    assert nodes["any"].definitions == (ErrorDefinition(),)  # type: ignore[union-attr]
    assert nodes["some"].definitions == (EscalationDefinition(code="up"),)  # type: ignore[union-attr]
    assert nodes["when"].definitions == (ConditionalDefinition(condition=Expression("stock < 3")),)  # type: ignore[union-attr]
    assert nodes["throw_2"].definitions == (CompensateDefinition(activity="sub"),)  # type: ignore[union-attr]
    both = nodes["both"]
    assert isinstance(both, CatchEvent)
    assert both.parallel_multiple


def test_a_process_begins_by_several_messages_that_must_all_come() -> None:
    order = ProcessBuilder("p")
    order.start("both", message=("order", "paid"), key="number", parallel_multiple=True).end()
    both = order.build().nodes["both"]
    assert isinstance(both, StartEvent)
    assert both.definitions == tuple(
        MessageDefinition(name=name, key=Expression("number")) for name in ("order", "paid")
    )
    other = ProcessBuilder("p")
    other.start("both", message="order", signal="s", parallel_multiple=True).end()
    with pytest.raises(InvalidModel, match="'both' is parallel multiple and begins a process: a signal belongs to no"):
        other.build()


def test_every_kind_of_work_has_the_same_words() -> None:
    words: dict[str, Any] = {
        "topic": "t",
        "idempotent": True,
        "result": "r",
        "retries": 3,
        "timeout": "PT1M",
        "ray": {"num_cpus": 1},
    }
    order = ProcessBuilder("p")
    at = order.start().service_task("a", **words).send_task("b", **words).business_rule_task("c", **words)
    at.end()
    work = [node for node in order.build().nodes.values() if isinstance(node, WorkTask)]
    assert [node.type for node in work] == ["serviceTask", "sendTask", "businessRuleTask"]
    same = {replace(node, id="", type="serviceTask", incoming=(), outgoing=()) for node in work}
    assert len(same) == 1
    assert (work[2].retries, work[2].ray_options) == (literal("3"), (("num_cpus", "1"),))


def test_a_transaction_is_cancelled_from_inside_and_left_by_its_border() -> None:
    order = ProcessBuilder("p")
    with order.start().transaction("pay") as inside:
        inside.start().exclusive("x", default="done").when("refused").end("stop", cancel=True)
        inside.at("x").end("done")
    order.at("pay").end()
    order.boundary("pay", cancel=True).end()
    transaction = order.build().nodes["pay"]
    assert isinstance(transaction, SubProcess)
    assert transaction.kind == "transaction"


def test_gateways_of_every_kind_take_their_default_and_their_condition() -> None:
    order = ProcessBuilder("p")
    order.start().inclusive("i", default="b").when("x").task("a").complex("c", activation="activationCount = 1").end()
    order.at("i").task("b").to("c")
    nodes = order.build().nodes
    assert nodes["i"].default == "i_to_b"  # type: ignore[union-attr]
    assert nodes["c"].activation == Expression("activationCount = 1")  # type: ignore[union-attr]


def test_a_loop_stands_on_the_activity_added_last_and_on_nothing_else() -> None:
    order = ProcessBuilder("p")
    order.start().task("t").loop(while_="x < 3", maximum=5, test_before=True).exclusive("x")
    with pytest.raises(InvalidModel, match="exclusiveGateway 'x' has no loop"):
        order.at("x").loop(maximum=1)
    with pytest.raises(InvalidModel, match="there is no element '' yet"):
        order.first.multi_instance(cardinality=2)
    order.at("x").end()
    task = order.build().nodes["t"]
    assert isinstance(task, AbstractTask)
    assert task.loop == StandardLoop(condition=Expression("x < 3"), test_before=True, maximum=Expression("5"))


def test_a_message_that_begins_a_process_takes_no_key_and_one_that_begins_a_sub_process_does() -> None:
    """M50."""
    order = ProcessBuilder("p")
    with pytest.raises(InvalidModel, match="a message that begins it has no correlation key"):
        order.start(message="m", key="=k")
    with pytest.raises(InvalidModel, match="a message that begins it has no correlation key"):
        order.first.receive_task(message="m", key="=k", instantiate=True)
    order.start().end()
    with order.event_sub_process() as inside:
        inside.start("x", message="m", key="=k").end()
    definition = order.build().nodes["x"].definitions[0]  # type: ignore[union-attr]
    assert definition == MessageDefinition(name="m", key=Expression("k"))


def test_a_sub_process_that_loops_still_opens_in_a_with_block() -> None:
    order = ProcessBuilder("p")
    with order.start().sub_process("each").multi_instance(collection="orders", item="order", output="bills") as inside:
        inside.start().task("a").end()
    order.at("each").end()
    process = order.build()
    assert process.nodes["a"].scope == "each"
    assert process.nodes["each"].loop is not None  # type: ignore[union-attr]


def test_a_compensation_is_joined_to_its_handler_by_no_flow() -> None:
    order = ProcessBuilder("p")
    order.start().task("a").task("b").end()
    order.boundary("a", compensate=True).task("undo")
    order.boundary("b", compensate=True).to("undo")
    assert [node.handler for node in order.build().nodes.values() if isinstance(node, BoundaryEvent)] == ["undo"] * 2
    with pytest.raises(InvalidModel, match="an association leads to a handler, not a flow"):
        order.boundary("a", "c", compensate=True).to("undo", flow_id="f")


def test_a_business_rule_task_evaluates_a_decision_or_does_work() -> None:
    order = ProcessBuilder("p")
    order.start().business_rule_task("d", decision="rating", result="rate", version=2).business_rule_task(
        "w", topic="rules"
    ).end()
    nodes = order.build().nodes
    decided, worked = nodes["d"], nodes["w"]
    assert isinstance(decided, DecisionTask)
    assert (decided.decision, decided.binding, decided.version) == (literal("rating"), "version", 2)
    assert isinstance(worked, WorkTask)
    assert (worked.type, worked.topic) == ("businessRuleTask", "rules")
