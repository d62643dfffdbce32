"""Messages, their names and keys, by vendors' words and by BPMN's own correlation (BPMN 8.4.2)."""

from __future__ import annotations

from gobpm_ray.bpmn.reader import examine, read_bpmn
from gobpm_ray.bpmn.writer import write_bpmn
from gobpm_ray.model.elements import (
    CatchEvent,
    CorrelationProperty,
    Expression,
    MessageDefinition,
    ReceiveTask,
    StartEvent,
    ThrowEvent,
    WorkTask,
)
from tests.unit.bpmn.documents import document

BODY = (
    '<bpmn:startEvent id="s"><bpmn:messageEventDefinition messageRef="m"/></bpmn:startEvent>'
    '<bpmn:intermediateThrowEvent id="t"><bpmn:messageEventDefinition messageRef="m"/></bpmn:intermediateThrowEvent>'
    '<bpmn:intermediateCatchEvent id="c"><bpmn:messageEventDefinition messageRef="m"/></bpmn:intermediateCatchEvent>'
    '<bpmn:receiveTask id="r" messageRef="m"/><bpmn:sendTask id="st" messageRef="m"/>'
)
SUBSCRIPTION = (
    '<bpmn:correlationSubscription id="cs" correlationKeyRef="k">'
    '<bpmn:correlationPropertyBinding correlationPropertyRef="pr">'
    "<bpmn:dataPath>order.id</bpmn:dataPath></bpmn:correlationPropertyBinding></bpmn:correlationSubscription>"
)
MESSAGE = '<bpmn:message id="m" name="Paid"/>'
PROPERTY = (
    '<bpmn:correlationProperty id="pr"><bpmn:correlationPropertyRetrievalExpression messageRef="m">'
    "<bpmn:messagePath>payment.order</bpmn:messagePath></bpmn:correlationPropertyRetrievalExpression>"
    "</bpmn:correlationProperty>"
)
KEY = (
    '<bpmn:collaboration id="co"><bpmn:correlationKey id="k"><bpmn:correlationPropertyRef>'
    "pr</bpmn:correlationPropertyRef>"
    "{more}</bpmn:correlationKey></bpmn:collaboration>"
)


def _definitions(data: bytes) -> dict[str, MessageDefinition]:
    found = {}
    for node in read_bpmn(data).processes[0].nodes.values():
        if isinstance(node, StartEvent | CatchEvent | ThrowEvent):
            assert isinstance(node.definitions[0], MessageDefinition)
            found[node.id] = node.definitions[0]
        elif isinstance(node, ReceiveTask | WorkTask):
            assert node.message is not None
            found[node.id] = node.message
    return found


def test_a_message_without_correlation_has_its_name_and_no_key() -> None:
    plain = MessageDefinition(name="Paid")
    assert _definitions(document(BODY, beside=MESSAGE)) == dict.fromkeys(["s", "t", "c", "r", "st"], plain)


def test_a_message_without_a_name_is_called_by_its_id() -> None:
    found = _definitions(document('<bpmn:receiveTask id="r" messageRef="m"/>', beside='<bpmn:message id="m"/>'))
    assert found["r"].name == "m"


def test_a_vendors_key_is_used_on_both_sides_but_not_at_the_process_start() -> None:
    message = MESSAGE.replace("/>", ">") + (
        '<bpmn:extensionElements><zeebe:subscription correlationKey="= id"/></bpmn:extensionElements></bpmn:message>'
    )
    found = _definitions(document(BODY, beside=message))
    assert found["s"].key is None
    assert {found[node].key for node in ("t", "c", "r", "st")} == {Expression("id")}


def test_bpmn_correlation_takes_the_message_path_when_sending_and_the_data_path_when_receiving() -> None:
    found = _definitions(document(SUBSCRIPTION + BODY, beside=MESSAGE + PROPERTY + KEY.format(more="")))
    assert found["s"].key is None
    assert {found[node].key for node in ("t", "st")} == {Expression("payment.order")}
    assert {found[node].key for node in ("c", "r")} == {Expression("order.id")}


def _refusals(body: str, beside: str) -> list[tuple[str, str]]:
    return [(error.code, error.element) for error in examine(document(body, beside=beside)).errors]


RECEIVE = '<bpmn:receiveTask id="r" messageRef="m"/>'


def test_several_properties_of_a_message_are_several_keys_of_its_conversation() -> None:
    """M49: on every side, the process's start included."""
    second = PROPERTY.replace('id="pr"', 'id="pr2"').replace("payment.order", "payment.invoice")
    found = _definitions(document(SUBSCRIPTION + BODY, beside=MESSAGE + PROPERTY + second))
    several = (
        CorrelationProperty("pr", Expression("payment.order"), Expression("order.id")),
        CorrelationProperty("pr2", Expression("payment.invoice"), None),
    )
    assert found == dict.fromkeys(["s", "t", "c", "r", "st"], MessageDefinition(name="Paid", properties=several))


def test_several_properties_survive_being_written() -> None:
    second = PROPERTY.replace('id="pr"', 'id="pr2"')
    data = document(SUBSCRIPTION + BODY, beside=MESSAGE + PROPERTY + second)
    assert _definitions(write_bpmn(read_bpmn(data))) == _definitions(data)


def test_a_message_of_a_key_with_several_properties_has_properties() -> None:
    more = "<bpmn:correlationPropertyRef>pr2</bpmn:correlationPropertyRef>"
    found = _definitions(document(SUBSCRIPTION + RECEIVE, beside=MESSAGE + PROPERTY + KEY.format(more=more)))
    assert [each.name for each in found["r"].properties] == ["pr"]


def test_receiving_a_correlated_message_without_a_subscription_is_refused() -> None:
    assert _refusals(RECEIVE, MESSAGE + PROPERTY) == [("unsupported", "m")]
