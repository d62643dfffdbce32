"""Structure and import on the real engine (groups S and I): what the conformance suite shows in this program holds with
actors, a store and releases in between.

After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from gobpm_ray.errors import InvalidModel
from tests.integration.scene import Scene

pytestmark = pytest.mark.slow

_SPACE = "http://www.omg.org/spec/BPMN/20100524/MODEL"


def drawn(body: str, *, prefix: str = "bpmn", encoding: str = "UTF-8", codec: str = "") -> bytes:
    """A document around these elements, which are written with the prefix `bpmn`."""
    declared = f"xmlns:{prefix}" if prefix else "xmlns"
    text = f'<bpmn:definitions {declared}="{_SPACE}">{body}</bpmn:definitions>'
    text = text.replace("bpmn:", f"{prefix}:" if prefix else "")
    return (f'<?xml version="1.0" encoding="{encoding}"?>\n' + text).encode(codec or encoding)


def straight(process: str, node: str = '<bpmn:task id="t" name="Über"/>') -> str:
    return (
        f'<bpmn:process id="{process}" isExecutable="true"><bpmn:startEvent id="s"/>{node}<bpmn:endEvent id="e"/>'
        '<bpmn:sequenceFlow id="f" sourceRef="s" targetRef="t"/>'
        '<bpmn:sequenceFlow id="g" sourceRef="t" targetRef="e"/></bpmn:process>'
    )


# --- structure -------------------------------------------------------------------------------------------------------


def test_an_inclusive_join_waits_for_the_two_branches_that_were_taken(scene: Scene) -> None:
    """S80: released between the two."""
    order = scene.process()
    order.start("s").inclusive("f")
    order.at("f").when("a").user_task("a").inclusive("j").end("e")
    for name in ("b", "c"):
        order.at("f").when(name).user_task(name).to("j")
    instance = scene.begin(order, a=True, b=True, c=False)
    scene.released(instance)
    scene.complete("a")
    assert scene.waits(instance) == [("b", "task")]
    scene.released(instance)
    scene.complete("b")
    scene.completed(instance, "s", "f", "a", "b", "j", "e")


@pytest.mark.parametrize("sequential", [False, True], ids=["parallel", "sequential"])
def test_an_iteration_over_nothing_passes_and_over_no_list_is_an_incident(scene: Scene, sequential: bool) -> None:
    """S81: the same in both modes."""
    each = scene.process()
    each.start("s").user_task("u").multi_instance(collection="items", item="item", sequential=sequential).end("e")
    process = scene.deploy(each)
    scene.completed(scene.begin(process, items=[]), "s", "e")
    scene.completed(scene.begin(process, items=None), "s", "e")
    held = scene.begin(process, items="abc")
    assert scene.see(held).state == "incident"
    scene.engine.set(held, {"items": ["x"]})
    scene.engine.retry(held)
    scene.engine.wait_quiet()
    assert scene.waits(held) == [("u", "task")]
    missing = scene.begin(process)
    assert scene.see(missing).state == "incident"
    scene.call_off(held, missing)


def test_nested_calls_whose_borders_wait_for_one_message_all_end(scene: Scene) -> None:
    """S82"""
    stop: dict[str, Any] = {"message": scene.name("stop"), "key": "=k"}
    inner = scene.process("inner")
    inner.start().user_task("work").end()
    inner.boundary("work", "stop", **stop).end("x")
    middle = scene.process("middle")
    middle.start().call("c", process=scene.deploy(inner)).end()
    middle.boundary("c", "stop", **stop).end("x")
    outer = scene.process("outer")
    outer.start("s").call("c", process=scene.deploy(middle)).end()
    outer.boundary("c", "stop", **stop).end("x")
    instance = scene.begin(outer, k=7)
    scene.released(instance)
    scene.publish(stop["message"], 7)
    scene.completed(instance, "s", "stop", "x")
    assert scene.engine.list_instances(ended=False) == []


def test_a_second_compensation_border_is_refused_at_deploy_and_nothing_is_stored(scene: Scene) -> None:
    """S84"""
    process, before = scene.name("p"), scene.engine.processes()
    border = '<bpmn:boundaryEvent id="{0}" attachedToRef="t"><bpmn:compensateEventDefinition/></bpmn:boundaryEvent>'
    border += '<bpmn:task id="h{0}" isForCompensation="true"/>'
    border += '<bpmn:association id="a{0}" sourceRef="{0}" targetRef="h{0}"/>'
    body = straight(process, '<bpmn:task id="t"/>' + border.format("x") + border.format("y"))
    with pytest.raises(InvalidModel, match=r"'y'.* is the second compensate event on 't'"):
        scene.engine.deploy(drawn(body))
    assert scene.engine.processes() == before


def test_an_interrupting_and_another_border_triggered_at_once_have_one_writer(scene: Scene) -> None:
    """S85: either may come first; the one that does not interrupt runs at most once, the other exactly once."""
    order = scene.process()
    order.start("s").user_task("u").end()
    order.boundary("u", "note", signal=scene.name("note"), interrupting=False).end("noted")
    order.boundary("u", "stop", signal=scene.name("stop")).end("stopped")
    process = scene.deploy(order)
    for _ in range(5):
        instance = scene.begin(process)
        threads = [threading.Thread(target=scene.engine.signal, args=(scene.name(each),)) for each in ("note", "stop")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        scene.engine.wait_quiet()
        nodes = sorted(scene.completed(instance).trace)
        assert nodes in (["note", "noted", "s", "stop", "stopped"], ["s", "stop", "stopped"])


def test_two_messages_that_begin_a_process_together_make_one_instance_whichever_is_first(scene: Scene) -> None:
    """M50: published at the same moment, from two threads, and neither begins an instance of its own."""
    order, words = scene.process(), (scene.name("order"), scene.name("paid"))
    order.start("both", message=words, key="number", parallel_multiple=True).end("e")
    process = scene.deploy(order)
    for number in range(5):
        threads = [
            threading.Thread(target=scene.engine.publish, args=(word, number, {"number": number, "from": word}))
            for word in words
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        scene.engine.wait_quiet()
    views = scene.of_process(process)
    assert [(view.state, view.trace) for view in views] == [("completed", ("both", "e"))] * 5
    assert {view.variables["number"] for view in views} == {0, 1, 2, 3, 4}


# --- import ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "encoding", "codec"),
    [
        ("", "UTF-8", "utf-8-sig"),
        ("bpmn2", "ISO-8859-1", ""),
        ("semantic", "windows-1252", ""),
    ],
)
def test_a_file_runs_alike_in_every_prefix_style_and_encoding(
    scene: Scene, prefix: str, encoding: str, codec: str
) -> None:
    """I86"""
    process = scene.name("p")
    data = drawn(straight(process), prefix=prefix, encoding=encoding, codec=codec)
    scene.engine.deploy(data)
    assert scene.engine.process(process).nodes["t"].name == "Über"
    scene.completed(scene.begin(process), "s", "t", "e")


def test_a_file_with_a_black_box_pool_and_two_processes_runs_both(scene: Scene) -> None:
    """I87: also without a single incoming or outgoing child, and with ids that are no names of XML."""
    first, second = scene.name("1st"), scene.name("2nd")
    pools = (
        f'<bpmn:collaboration id="c"><bpmn:participant id="black" name="Somebody"/>'
        f'<bpmn:participant id="a" processRef="{first}"/><bpmn:participant id="b" processRef="{second}"/>'
        f"</bpmn:collaboration>"
    )
    deployed = scene.engine.deploy(drawn(pools + straight(first) + straight(second)))
    assert [one.process_id for one in deployed] == [first, second]
    for process in (first, second):
        scene.completed(scene.begin(process), "s", "t", "e")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('<bpmn:collaboration id="c"/>', "there is no process in"),
        (straight("twice") * 2, "'twice'"),
        (straight("lost").replace('targetRef="e"', 'targetRef="gone"'), "'g'"),
    ],
    ids=["no process", "an id twice", "a flow to nowhere"],
)
def test_a_file_that_cannot_run_is_refused_by_element_and_nothing_is_stored(
    scene: Scene, body: str, words: str
) -> None:
    """I87"""
    before = scene.engine.processes()
    with pytest.raises(InvalidModel, match=words):
        scene.engine.deploy(drawn(body))
    assert scene.engine.processes() == before


def test_hostile_files_are_refused_and_a_deep_one_runs_to_its_end(scene: Scene) -> None:
    """I88: entities and floods; a hundred levels of sub-processes, released at the innermost."""
    process = scene.name("p")
    bomb = drawn(straight(process)).replace(b"<bpmn:def", b'<!DOCTYPE x [<!ENTITY a "b">]><bpmn:def', 1)
    outside = drawn(straight(process)).replace(
        b"<bpmn:def", b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><bpmn:def', 1
    )
    for data in (bomb, outside):
        with pytest.raises(InvalidModel, match="document type declaration"):
            scene.engine.deploy(data)
    depth = 100
    inner = '<bpmn:userTask id="t"/>'
    for level in range(depth):
        inner = f'<bpmn:subProcess id="sub{level}">{inner}</bpmn:subProcess>'
    scene.engine.deploy(drawn(f'<bpmn:process id="{process}" isExecutable="true">{inner}</bpmn:process>'))
    instance = scene.begin(process)
    scene.released(instance)
    scene.complete("t")
    assert len(scene.completed(instance).trace) == depth + 1
