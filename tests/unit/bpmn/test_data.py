"""Data in XML: elements with their scopes, types and first values; associations with data stores; and back to XML."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lxml import etree

from gobpm_ray.bpmn.check import check_bytes
from gobpm_ray.bpmn.reader import examine, read_bpmn
from gobpm_ray.bpmn.writer import write_bpmn
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.builder import ProcessBuilder, Stored
from gobpm_ray.model.data import DataElement, DataStore, ItemType
from gobpm_ray.model.document import from_json, to_json
from gobpm_ray.model.elements import Expression, Mapping, MessageDefinition, Process, ReceiveTask
from tests.unit.bpmn.documents import around, document

XSD = ' xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
NODES = '<bpmn:startEvent id="s"/><bpmn:endEvent id="e"/><bpmn:sequenceFlow id="f" sourceRef="s" targetRef="e"/>'


def _process(body: str, beside: str = "", attributes: str = XSD) -> Process:
    return _without_lines(read_bpmn(document(body, beside=beside, attributes=attributes)).processes[0])


def _without_lines(process: Process) -> Process:
    return replace(
        process,
        line=0,
        nodes={key: replace(node, line=0) for key, node in process.nodes.items()},
        flows={key: replace(flow, line=0) for key, flow in process.flows.items()},
        data=tuple(replace(element, line=0) for element in process.data),
        stores=tuple(replace(store, line=0) for store in process.stores),
    )


def _codes(data: bytes) -> list[tuple[str, str]]:
    return [(problem["code"], problem["element"]) for problem in check_bytes(data)["warnings"]]


# --- elements ----------------------------------------------------------------------------------------------------


def test_data_objects_and_properties_have_a_scope_a_type_and_a_first_value() -> None:
    process = _process(
        '<bpmn:property id="p1" name="tries" itemSubjectRef="n" ray:initial="[1, 2]"/>'
        '<bpmn:dataObject id="d1" name="Invoice No" isCollection="true"/>'
        '<bpmn:startEvent id="s"/>'
        '<bpmn:subProcess id="sub"><bpmn:property id="p2" name="inner"/><bpmn:dataObject id="d2" name="deep"/>'
        '<bpmn:task id="t"><bpmn:property id="p3" name="own" ray:initial="true"/></bpmn:task></bpmn:subProcess>'
        '<bpmn:sequenceFlow id="f" sourceRef="s" targetRef="sub"/>',
        '<bpmn:itemDefinition id="n" structureRef="xsd:int" isCollection="true"/>',
    )
    assert process.data == (
        DataElement("p1", "tries", "p", "property", ItemType("int", collection=True), "[1, 2]"),
        DataElement("d1", "Invoice No", "p", "dataObject", ItemType(collection=True)),
        DataElement("p2", "inner", "sub", "property"),
        DataElement("d2", "deep", "sub", "dataObject"),
        DataElement("p3", "own", "t", "property", initial="true"),
    )


def test_a_data_object_without_a_name_is_called_like_each_of_its_references() -> None:
    process = _process(
        '<bpmn:dataObject id="d"/><bpmn:dataObjectReference id="r1" name="Order" dataObjectRef="d"/>'
        '<bpmn:dataObjectReference id="r2" name="Order" dataObjectRef="d"/>'
        '<bpmn:dataObjectReference id="r3" name="Order [checked]" dataObjectRef="d"/><bpmn:dataObject id="mute"/>'
        + NODES
    )
    assert [(element.id, element.name) for element in process.data] == [("r1", "Order"), ("r3", "Order [checked]")]


def test_what_tools_put_in_for_want_of_a_target_is_no_variable() -> None:
    body = '<bpmn:task id="x"><bpmn:property id="q" name="__targetRef_placeholder"/></bpmn:task>'
    assert read_bpmn(around(body)).processes[0].data == ()


@pytest.mark.parametrize("vendor", ["flowable", "activiti"])
def test_values_of_flowable_and_activiti_are_first_values(vendor: str) -> None:
    def value(name: str, kind: str, text: str) -> str:
        inside = f"<bpmn:extensionElements><{vendor}:value>{text}</{vendor}:value></bpmn:extensionElements>"
        return f'<bpmn:dataObject id="{name}" name="{name}" itemSubjectRef="{kind}">{inside}</bpmn:dataObject>'

    body = value("a", "xsd:string", "12") + value("b", "xsd:int", "12") + value("c", "xsd:boolean", "true")
    process = _process(body + NODES)
    assert [(element.item, element.initial) for element in process.data] == [
        (ItemType("string"), '"12"'),
        (ItemType("int"), "12"),
        (ItemType("boolean"), "true"),
    ]


@pytest.mark.parametrize(
    ("structure", "simple"),
    [
        ("xsd:dateTime", "dateTime"),
        ("xs:int", "int"),
        ("other:boolean", "boolean"),
        ("http://www.w3.org/2001/XMLSchema#decimal", "decimal"),
    ],
)
def test_a_simple_type_is_known_by_its_namespace_and_by_the_usual_prefix(structure: str, simple: str) -> None:
    beside = f'<bpmn:itemDefinition id="n" structureRef="{structure}"/>'
    body = '<bpmn:dataObject id="d" name="d" itemSubjectRef="n"/>' + NODES
    process = _process(body, beside, ' xmlns:other="http://www.w3.org/2001/XMLSchema"')
    assert process.data[0].item == ItemType(simple)


def test_typed_inputs_and_outputs_stand_for_their_types_and_others_are_names() -> None:
    process = _process(
        '<bpmn:ioSpecification><bpmn:dataInput id="i" name="order" itemSubjectRef="n"/>'
        '<bpmn:dataInput id="j" name="x"/>'
        "<bpmn:inputSet/><bpmn:outputSet/></bpmn:ioSpecification>"
        '<bpmn:userTask id="u"><bpmn:ioSpecification><bpmn:dataOutput id="o" itemSubjectRef="schema"/>'
        '<bpmn:dataOutput id="q" name="sum" itemSubjectRef="n"/></bpmn:ioSpecification></bpmn:userTask>',
        '<bpmn:itemDefinition id="n" structureRef="xsd:int"/><bpmn:itemDefinition id="schema"><bpmn:extensionElements>'
        '<ray:schema>{"type": "object"}</ray:schema></bpmn:extensionElements></bpmn:itemDefinition>',
    )
    assert process.data == (
        DataElement("i", "order", "p", "dataInput", ItemType("int")),
        DataElement("o", "", "u", "dataOutput", ItemType(schema='{"type": "object"}')),
        DataElement("q", "sum", "u", "dataOutput", ItemType("int")),
    )


def test_a_message_has_the_type_of_its_item() -> None:
    beside = '<bpmn:message id="m" name="M" itemRef="n"/><bpmn:itemDefinition id="n" structureRef="xsd:int"/>'
    process = _process('<bpmn:receiveTask id="r" messageRef="m"/>', beside)
    task = process.nodes["r"]
    assert isinstance(task, ReceiveTask)
    assert task.message == MessageDefinition(name="M", item=ItemType("int"))


# --- what is said of it ------------------------------------------------------------------------------------------


def test_what_is_not_checked_is_said_and_forbids_nothing() -> None:
    data = document(
        '<bpmn:dataObject id="a" name="a" itemSubjectRef="gone"/>'
        '<bpmn:dataObject id="b" name="b" itemSubjectRef="java"/>'
        '<bpmn:userTask id="u"><bpmn:ioSpecification><bpmn:dataOutput id="o" itemSubjectRef="n"/>'
        "</bpmn:ioSpecification></bpmn:userTask>"
        '<bpmn:dataStoreReference id="r" name="Stock" dataStoreRef="gone"/>',
        beside='<bpmn:itemDefinition id="java" structureRef="java.lang.String"/>'
        '<bpmn:itemDefinition id="n" structureRef="xsd:int"/>',
        attributes=XSD,
    )
    assert _codes(data) == [
        ("unknown_item_definition", "a"),
        ("type_not_checked", "b"),
        ("type_not_checked", "o"),
        ("unknown_data_store", "r"),
        ("unused_data_store", "Stock"),
    ]
    assert [store.name for store in read_bpmn(data).processes[0].stores] == ["Stock"]


def test_variables_that_hide_or_double_others_are_said() -> None:
    data = document(
        '<bpmn:dataObject id="a" name="x"/><bpmn:property id="b" name="x"/><bpmn:startEvent id="s"/>'
        '<bpmn:subProcess id="sub"><bpmn:dataObject id="c" name="x"/><bpmn:task id="t"/></bpmn:subProcess>'
        '<bpmn:endEvent id="e"/><bpmn:sequenceFlow id="f" sourceRef="s" targetRef="sub"/>'
        '<bpmn:sequenceFlow id="g" sourceRef="sub" targetRef="e"/>'
    )
    assert _codes(data) == [("duplicate_data", "a"), ("hidden_data", "c")]


@pytest.mark.parametrize(
    ("body", "beside", "code"),
    [
        ('<bpmn:dataObject id="d" name="d" ray:initial="{"/>', "", "initial_value"),
        ('<bpmn:dataObject id="d" name="d" itemSubjectRef="n" ray:initial="true"/>', "n", "initial_value"),
        ('<bpmn:dataObject id="d" name="d" itemSubjectRef="bad"/>', "bad", "item_type"),
    ],
)
def test_what_contradicts_itself_is_refused(body: str, beside: str, code: str) -> None:
    schema = "<bpmn:extensionElements><ray:schema>{</ray:schema></bpmn:extensionElements>"
    roots = {
        "": "",
        "n": '<bpmn:itemDefinition id="n" structureRef="xsd:int"/>',
        "bad": f'<bpmn:itemDefinition id="bad">{schema}</bpmn:itemDefinition>',
    }
    examination = examine(document(body + NODES, beside=roots[beside], attributes=XSD))
    assert [problem.code for problem in examination.errors] == [code]


def test_a_typed_output_of_the_process_is_said_to_be_unchecked() -> None:
    specified = '<bpmn:ioSpecification><bpmn:dataOutput id="o" name="x" itemSubjectRef="n"/></bpmn:ioSpecification>'
    data = document(specified + NODES, beside='<bpmn:itemDefinition id="n" structureRef="xsd:int"/>', attributes=XSD)
    assert _codes(data) == [("type_not_checked", "o")]
    assert read_bpmn(data).processes[0].data == ()


def test_an_iteration_does_not_collect_into_a_data_store() -> None:
    body = (
        '<bpmn:dataStoreReference id="r" name="Stock"/><bpmn:task id="x"><bpmn:multiInstanceLoopCharacteristics>'
        "<bpmn:loopCardinality>2</bpmn:loopCardinality><bpmn:loopDataOutputRef>r</bpmn:loopDataOutputRef>"
        "</bpmn:multiInstanceLoopCharacteristics></bpmn:task>"
    )
    with pytest.raises(InvalidModel, match="the data store 'Stock' as the collected output of task 'x'"):
        read_bpmn(around(body))


def test_a_collection_from_a_data_store_is_refused_with_a_reason() -> None:
    body = (
        '<bpmn:dataStoreReference id="r" name="Stock"/><bpmn:task id="x"><bpmn:multiInstanceLoopCharacteristics>'
        "<bpmn:loopDataInputRef>r</bpmn:loopDataInputRef></bpmn:multiInstanceLoopCharacteristics></bpmn:task>"
    )
    with pytest.raises(InvalidModel, match="the data store 'Stock' as the collection of task 'x'"):
        read_bpmn(around(body))


# --- data stores -------------------------------------------------------------------------------------------------

STORE = (
    '<bpmn:dataStore id="ds" name="Stock" capacity="5" isUnlimited="false" itemSubjectRef="n"/>'
    '<bpmn:itemDefinition id="n" structureRef="xsd:int"/>'
)
TASK = (
    '<bpmn:dataStoreReference id="r" name="here" dataStoreRef="ds"/><bpmn:property id="v" name="left"/>'
    '<bpmn:task id="x">{}</bpmn:task>'
)


def _moved(inside: str) -> tuple[tuple[Mapping, ...], tuple[Mapping, ...]]:
    process = read_bpmn(around(TASK.format(inside), beside=STORE)).processes[0]
    assert process.stores == (DataStore("Stock", 5, ItemType("int"), process.stores[0].line),)
    return process.nodes["x"].inputs, process.nodes["x"].outputs


def test_a_copy_from_a_store_is_an_input_that_reads_it() -> None:
    inputs, _ = _moved(
        '<bpmn:ioSpecification><bpmn:dataInput id="i" name="now"/></bpmn:ioSpecification><bpmn:dataInputAssociation>'
        "<bpmn:sourceRef>r</bpmn:sourceRef><bpmn:targetRef>i</bpmn:targetRef></bpmn:dataInputAssociation>"
    )
    assert inputs == (Mapping("now", Expression("Stock"), ("Stock",)),)


def test_a_copy_into_a_store_is_an_output_that_writes_it_and_reads_nothing() -> None:
    _, outputs = _moved(
        "<bpmn:dataOutputAssociation><bpmn:sourceRef>v</bpmn:sourceRef><bpmn:targetRef>r</bpmn:targetRef>"
        "</bpmn:dataOutputAssociation>"
    )
    assert outputs == (Mapping("Stock", Expression("left"), (), True),)


def test_a_transformation_and_an_assignment_see_the_store_that_they_write() -> None:
    into = "<bpmn:dataOutputAssociation><bpmn:targetRef>r</bpmn:targetRef>{}</bpmn:dataOutputAssociation>"
    written = (Mapping("Stock", Expression("Stock - 1"), ("Stock",), True),)
    assert _moved(into.format("<bpmn:transformation>Stock - 1</bpmn:transformation>"))[1] == written
    assigned = "<bpmn:assignment><bpmn:from>Stock - 1</bpmn:from><bpmn:to>r</bpmn:to></bpmn:assignment>"
    assert _moved(into.format(assigned))[1] == written


def test_an_output_may_come_from_a_store() -> None:
    _, outputs = _moved(
        "<bpmn:dataOutputAssociation><bpmn:sourceRef>r</bpmn:sourceRef><bpmn:targetRef>v</bpmn:targetRef>"
        "</bpmn:dataOutputAssociation>"
    )
    assert outputs == (Mapping("left", Expression("Stock"), ("Stock",)),)


def test_an_arrow_that_a_drawing_tool_made_moves_nothing_and_is_said_so() -> None:
    inside = (
        '<bpmn:property id="q" name="__targetRef_placeholder"/><bpmn:dataInputAssociation>'
        "<bpmn:sourceRef>r</bpmn:sourceRef><bpmn:targetRef>q</bpmn:targetRef></bpmn:dataInputAssociation><bpmn:dataOutputAssociation>"
        "<bpmn:targetRef>r</bpmn:targetRef></bpmn:dataOutputAssociation>"
    )
    data = around('<bpmn:dataStoreReference id="r" name="Stock"/>' + f'<bpmn:task id="x">{inside}</bpmn:task>')
    process = read_bpmn(data).processes[0]
    assert (process.nodes["x"].inputs, process.nodes["x"].outputs, process.stores) == ((), (), ())
    assert _codes(data) == [("ignored", "x")]


def test_without_a_limit_a_capacity_says_nothing() -> None:
    beside = '<bpmn:dataStore id="ds" capacity="5" isUnlimited="true"/>'
    process = _process('<bpmn:dataStoreReference id="r" dataStoreRef="ds"/>' + NODES, beside)
    assert process.stores == (DataStore("ds"),)


# --- and back ----------------------------------------------------------------------------------------------------


def _everything() -> ProcessBuilder:
    builder = ProcessBuilder("p", variables={"type": "object"})
    builder.store("Stock of today", "xsd:int", capacity=3)
    builder.store('odd "name" [1]', {"type": "array"})
    builder.data("Invoice No", "xsd:string", collection=True, initial=["<&>"])
    builder.data("plain")
    with builder.start("s").sub_process("sub", inputs={"all": Stored("Stock of today", "`Stock of today` + 1")}) as sub:
        sub.data("deep", int, initial=3)
        sub.start("si").service_task("w", topic="w").property("own", bool, initial=True).returns(
            sum="xsd:decimal"
        ).takes(x="xsd:date").end("ei")
    builder.at("sub").receive_task("r", message="M").carries({"required": ["a"]}).catch("c", message="M").carries(
        "xsd:int"
    ).user_task("u", outputs={Stored('odd "name" [1]'): "=a", Stored("Third"): Stored("Stock of today")}).end("e")
    return builder


def test_reading_what_was_written_gives_the_same_model() -> None:
    process = _everything().build()
    examination = examine(write_bpmn(process))
    assert examination.errors == ()
    assert _without_lines(examination.definitions.processes[0]) == process


def test_the_stored_document_gives_the_same_model() -> None:
    process = _everything().build()
    assert from_json(to_json(process)) == process


def test_data_is_drawn_in_a_row_under_the_process() -> None:
    root = etree.fromstring(write_bpmn(_everything().build()))
    places = {shape.get("bpmnElement"): shape[0] for shape in root.iter("{*}BPMNShape")}
    references = [element.get("id") for element in root.iter("{*}dataObjectReference", "{*}dataStoreReference")]
    assert len(references) == 5
    lowest = max(
        int(place.get("y", "")) + int(place.get("height", "")) for key, place in places.items() if key not in references
    )
    assert all(int(places[reference].get("y", "")) > lowest for reference in references)
    columns = [int(places[reference].get("x", "")) for reference in references]
    assert len(set(columns)) == len(columns)


# --- the builder's own refusals ----------------------------------------------------------------------------------


def test_the_builder_refuses_what_it_could_not_mean() -> None:
    builder = ProcessBuilder("p")
    builder.data("x")
    with pytest.raises(InvalidModel, match="declares 'x' twice"):
        builder.data("x")
    with pytest.raises(InvalidModel, match="is no name of a variable"):
        builder.data("a`b")
    with pytest.raises(InvalidModel, match="initial value of 'y': not JSON"):
        builder.data("y", initial=object())
    with pytest.raises(InvalidModel, match="JSON schema: at type"):
        builder.data("z", {"type": 5})
    with pytest.raises(InvalidModel, match="waits for no message"):
        builder.start("s").carries("xsd:int")
    with pytest.raises(InvalidModel, match="capacity of 0 or more"):
        builder.store("Stock", capacity=-1)
