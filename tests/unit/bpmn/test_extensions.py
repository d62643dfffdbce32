"""Vendors' extensions: what of them is executed, warned about, and refused."""

from __future__ import annotations

import pytest

from gobpm_ray.bpmn.reader import examine, read_bpmn
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import (
    Expression,
    FlowNode,
    Mapping,
    MessageDefinition,
    ReceiveTask,
    ScriptTask,
    UserTask,
    WorkTask,
    literal,
)
from tests.unit.bpmn.documents import around


def _node(element: str, beside: str = "") -> FlowNode:
    return read_bpmn(around(element, beside=beside)).processes[0].nodes["x"]


def _work(element: str) -> WorkTask:
    node = _node(element)
    assert isinstance(node, WorkTask)
    return node


def _user(element: str) -> UserTask:
    node = _node(element)
    assert isinstance(node, UserTask)
    return node


def _extended(kind: str, extensions: str, attributes: str = "") -> str:
    return (
        f'<bpmn:{kind} id="x"{attributes}><bpmn:extensionElements>{extensions}</bpmn:extensionElements></bpmn:{kind}>'
    )


def _warning_codes(element: str) -> list[str]:
    return [warning.code for warning in read_bpmn(around(element)).warnings]


# --- Zeebe -------------------------------------------------------------------------------------------------------


def test_a_zeebe_job_type_is_the_topic() -> None:
    for kind in ("serviceTask", "sendTask"):
        task = _work(_extended(kind, '<zeebe:taskDefinition type="email"/>'))
        assert (task.type, task.topic) == (kind, "email")


def test_zeebe_headers_are_warned_about() -> None:
    definition = '<zeebe:taskDefinition type="email" retries="5"/><zeebe:taskHeaders/>'
    assert _warning_codes(_extended("serviceTask", definition)) == ["ignored"]


def test_retries_of_other_engines_are_policies_here() -> None:
    """Zeebe counts attempts, Camunda repetitions; this engine's own word comes first."""
    zeebe = '<zeebe:taskDefinition type="email" retries="{}"/>'
    assert _work(_extended("serviceTask", zeebe.format("5"))).retries == literal("4")
    assert _work(_extended("serviceTask", zeebe.format("=tries"))).retries == Expression("max(0, (tries) - 1)")
    cycle = "<camunda:failedJobRetryTimeCycle>R3/PT10M</camunda:failedJobRetryTimeCycle>"
    assert _work(_extended("serviceTask", cycle)).retries == literal("R3/PT10M")
    assert _work(_extended("serviceTask", cycle, ' ray:retries="2"')).retries == literal("2")


def test_options_of_a_ray_task_are_attributes_and_wrong_ones_are_named() -> None:
    task = _work(
        '<bpmn:serviceTask id="x" ray:num_cpus="2" ray:memory="2GiB" ray:resources="{&quot;disk&quot;: 1}" '
        'ray:scheduling="SPREAD" ray:timeout="PT5M"/>'
    )
    assert dict(task.ray_options) == {
        "num_cpus": "2",
        "memory": str(2 << 30),
        "resources": '{"disk": 1}',
        "scheduling": '"SPREAD"',
    }
    assert task.timeout == literal("PT5M")
    for name, value in (("num_cpus", "many"), ("memory", "much"), ("resources", "[1]"), ("scheduling", "NEAR")):
        with pytest.raises(InvalidModel, match=f"'x' .*{name}="):
            _work(f'<bpmn:serviceTask id="x" ray:{name}="{value}"/>')


def test_a_topic_where_none_is_used_is_warned_about() -> None:
    """A throw event is no job here: it throws."""
    message = '<bpmn:message id="m" name="M"/>'
    element = (
        '<bpmn:intermediateThrowEvent id="x"><bpmn:extensionElements><zeebe:taskDefinition type="email"/>'
        '</bpmn:extensionElements><bpmn:messageEventDefinition messageRef="m"/></bpmn:intermediateThrowEvent>'
    )
    warnings = read_bpmn(around(element, beside=message)).warnings
    assert [(warning.code, warning.element) for warning in warnings] == [("ignored", "x")]


def test_zeebe_mappings_are_feel_or_constants_in_their_order() -> None:
    task = _work(
        _extended(
            "serviceTask",
            '<zeebe:taskDefinition type="t"/><zeebe:ioMapping><zeebe:input source="= a.b + 1" target="n"/>'
            '<zeebe:input source="plain" target="c"/><zeebe:output source="=result" target="total"/></zeebe:ioMapping>',
        )
    )
    assert task.inputs == (Mapping("n", Expression("a.b + 1")), Mapping("c", literal("plain")))
    assert task.outputs == (Mapping("total", Expression("result")),)


def test_a_zeebe_user_task_takes_assignment_dates_priority_and_form() -> None:
    task = _user(
        _extended(
            "userTask",
            '<zeebe:assignmentDefinition assignee="=boss" candidateGroups="clerks, leads" candidateUsers="=[u1, u2]"/>'
            '<zeebe:taskSchedule dueDate="=now() + duration(&quot;PT1H&quot;)" followUpDate="2026-01-01T00:00:00Z"/>'
            '<zeebe:priorityDefinition priority="70"/><zeebe:formDefinition formId="approve"/><zeebe:userTask/>',
        )
    )
    assert task.assignee == Expression("boss")
    assert task.candidate_groups == literal("clerks, leads")
    assert task.candidate_users == Expression("[u1, u2]")
    assert task.due == Expression('now() + duration("PT1H")')
    assert task.follow_up == literal("2026-01-01T00:00:00Z")
    assert task.priority == literal("70")
    assert task.form == "approve"


def test_a_zeebe_script_is_feel_with_a_result_variable() -> None:
    node = _node(_extended("scriptTask", '<zeebe:script expression="= a + 1" resultVariable="r"/>'))
    assert isinstance(node, ScriptTask)
    assert (node.script, node.result_variable) == (Expression("a + 1"), "r")


def test_a_script_task_with_a_job_type_is_work_for_a_callable() -> None:
    assert _work(_extended("scriptTask", '<zeebe:taskDefinition type="lua"/>')).topic == "lua"


def test_a_zeebe_subscription_gives_the_messages_key() -> None:
    message = (
        '<bpmn:message id="m" name="Paid"><bpmn:extensionElements><zeebe:subscription correlationKey="= order.id"/>'
        "</bpmn:extensionElements></bpmn:message>"
    )
    node = _node('<bpmn:receiveTask id="x" messageRef="m"/>', message)
    assert isinstance(node, ReceiveTask)
    assert node.message == MessageDefinition(name="Paid", key=Expression("order.id"))


# --- Camunda 7, Flowable, Activiti -------------------------------------------------------------------------------


@pytest.mark.parametrize("vendor", ["camunda", "flowable"])
def test_an_external_topic_is_the_topic(vendor: str) -> None:
    task = _work(f'<bpmn:serviceTask id="x" {vendor}:type="external" {vendor}:topic="billing"/>')
    assert task.topic == "billing"


@pytest.mark.parametrize(
    ("attribute", "topic"),
    [
        ('camunda:class="com.acme.Pay"', "com.acme.Pay"),
        ('camunda:delegateExpression="${pay}"', "${pay}"),
        ('activiti:expression="#{pay.now()}"', "#{pay.now()}"),
        ('flowable:type="mail"', "mail"),
    ],
)
def test_code_of_another_engine_becomes_a_topic_with_a_warning(attribute: str, topic: str) -> None:
    element = f'<bpmn:serviceTask id="x" {attribute}/>'
    assert _work(element).topic == topic
    assert _warning_codes(element) == ["foreign_code"]


def test_zeebes_word_comes_before_camundas_and_our_own_before_both() -> None:
    """C.9.1 of the corpus has both vendors' words on one task."""
    both = _extended("serviceTask", '<zeebe:taskDefinition type="z"/>', ' camunda:type="external" camunda:topic="c"')
    assert _work(both).topic == "z"
    all_three = both.replace(" camunda:type", ' ray:callable="mine" camunda:type')
    assert _work(all_three).topic == "mine"


@pytest.mark.parametrize("vendor", ["camunda", "flowable", "activiti"])
def test_a_user_task_of_camundas_family_takes_its_attributes(vendor: str) -> None:
    task = _user(
        f'<bpmn:userTask id="x" {vendor}:assignee="kermit" {vendor}:candidateUsers="fozzie,piggy"'
        f' {vendor}:candidateGroups="muppets" {vendor}:dueDate="2026-01-01T00:00:00Z" {vendor}:priority="3"'
        f' {vendor}:formKey="f"/>'
    )
    assert task.assignee == literal("kermit")
    assert task.candidate_users == literal("fozzie,piggy")
    assert task.candidate_groups == literal("muppets")
    assert task.due == literal("2026-01-01T00:00:00Z")
    assert (task.priority, task.form) == (literal("3"), "f")


def test_camunda_parameters_are_mappings_and_computed_ones_are_refused() -> None:
    plain = (
        '<camunda:inputOutput><camunda:inputParameter name="a">one</camunda:inputParameter>'
        '<camunda:outputParameter name="b">two</camunda:outputParameter></camunda:inputOutput>'
    )
    task = _work(_extended("serviceTask", plain, ' camunda:topic="t"'))
    assert task.inputs == (Mapping("a", literal("one")),)
    assert task.outputs == (Mapping("b", literal("two")),)
    scripted = plain.replace("one", "<camunda:script scriptFormat='groovy'>1</camunda:script>")
    errors = examine(around(_extended("serviceTask", scripted, ' camunda:topic="t"'))).errors
    assert [(error.code, error.element) for error in errors] == [("unsupported", "x")]
    assert "the script in parameter 'a'" in errors[0].message


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("<camunda:list/>", "[]"),
        ("<camunda:list><camunda:value>a \"b\"</camunda:value><camunda:value>${n}</camunda:value></camunda:list>",
         '["a \\"b\\"", n]'),
        ('<camunda:map><camunda:entry key="k 1">v</camunda:entry><!-- more --><camunda:entry key="l">#{ n }'
         "</camunda:entry></camunda:map>", '{"k 1": "v", "l": n}'),
        ("<camunda:map/>", "{}"),
    ],
)  # fmt: skip
def test_camunda_lists_and_maps_of_constants_and_variables_are_values(written: str, text: str) -> None:
    parameter = f'<camunda:inputOutput><camunda:inputParameter name="a">{written}</camunda:inputParameter>'
    task = _work(_extended("serviceTask", parameter + "</camunda:inputOutput>", ' camunda:topic="t"'))
    assert task.inputs == (Mapping("a", Expression(text)),)


@pytest.mark.parametrize(
    "written",
    [
        "<camunda:list><camunda:value>${n + 1}</camunda:value></camunda:list>",
        "<camunda:list><camunda:script scriptFormat='groovy'>1</camunda:script></camunda:list>",
        "<camunda:map><camunda:entry key='k'><camunda:list/></camunda:entry></camunda:map>",
    ],
)
def test_camunda_lists_and_maps_that_compute_are_refused_by_their_parameter(written: str) -> None:
    parameter = f'<camunda:inputOutput><camunda:inputParameter name="a">{written}</camunda:inputParameter>'
    body = _extended("serviceTask", parameter + "</camunda:inputOutput>", ' camunda:topic="t"')
    [error] = examine(around(body)).errors
    assert (error.code, error.element) == ("unsupported", "x")
    assert "in parameter 'a'" in error.message


def test_a_result_variable_is_kept() -> None:
    assert _work('<bpmn:serviceTask id="x" camunda:topic="t" camunda:resultVariable="r"/>').result_variable == "r"
    assert _work('<bpmn:serviceTask id="x" activiti:class="C" activiti:resultVariableName="r"/>').result_variable == "r"


@pytest.mark.parametrize(
    "extension",
    [
        '<camunda:executionListener event="start"/>',
        '<camunda:taskListener event="create"/>',
        '<flowable:executionListener event="end"/>',
        '<activiti:taskListener event="create"/>',
        "<camunda:connector/>",
        "<zeebe:executionListeners/>",
        "<zeebe:taskListeners/>",
    ],
)
def test_listeners_and_connectors_are_refused_by_name(extension: str) -> None:
    errors = examine(around(_extended("userTask", extension))).errors
    assert [(error.code, error.element) for error in errors] == [("unsupported", "x")]
    assert extension.strip("</>").split()[0] in errors[0].message


def test_a_listener_on_the_process_is_refused_too() -> None:
    data = around('<bpmn:task id="x"/>').replace(
        b'<bpmn:startEvent id="s"/>',
        b"<bpmn:extensionElements><camunda:executionListener/></bpmn:extensionElements><bpmn:startEvent id='s'/>",
    )
    assert [(error.code, error.element) for error in examine(data).errors] == [("unsupported", "p")]


# --- our own -----------------------------------------------------------------------------------------------------


def test_our_own_attributes_say_callable_idempotence_outputs_and_key() -> None:
    task = _work('<bpmn:serviceTask id="x" ray:callable="pkg:pay" ray:idempotent="true" ray:resultVariable="r"/>')
    assert (task.topic, task.idempotent, task.result_variable) == ("pkg:pay", True, "r")
    assert _user('<bpmn:userTask id="x" ray:requiredOutputs="a, b c"/>').required_outputs == ("a", "b", "c")
    message = '<bpmn:message id="m" name="M" ray:correlationKey="order"/>'
    node = _node('<bpmn:receiveTask id="x" messageRef="m"/>', message)
    assert isinstance(node, ReceiveTask)
    assert node.message.key == Expression("order")
