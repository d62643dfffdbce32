"""Called instances on a real host and store: one process calls another, hears of its end, and takes it along."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.elements import Expression
from gobpm_ray.runtime.programs import write_pins
from tests.unit.runtime.desk import Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


def worker(name: str = "child") -> ProcessBuilder:
    process = ProcessBuilder(name)
    process.start("s").user_task("u").script_task("t", script=Expression("x * 2", "feel"), result="y").end("e")
    return process


def caller(name: str = "p", calls: str = "child", message: str = "") -> ProcessBuilder:
    process = ProcessBuilder(name)
    process.start("s").call("c", process=calls).end("e")
    if message:
        process.boundary("c", "b", message=message).end("stopped")
    return process


def children(desk: Desk, parent: str) -> list[str]:
    return [name for _, name in desk.store.instances() if desk.record(name).caller.partition("\x1e")[0] == parent]


def test_a_caller_is_released_while_the_called_one_waits_and_goes_on_with_its_result(desk: Desk) -> None:
    """X14."""
    desk.deploy(worker())
    desk.deploy(caller())
    desk.start(x=21)
    assert desk.turn().quiet
    [child] = children(desk, "i")
    assert desk.store.leases() == []
    assert desk.waiting("i") == [("child", "c")]
    assert desk.waiting(child) == [("task", "u")]
    desk.complete("u")
    desk.turn()
    assert (desk.status("i"), desk.status(child)) == ("completed", "completed")
    assert desk.variables("i") == {"x": 21, "y": 42}
    assert desk.history("i") == ["s", "c", "e"]


def test_calls_nest_and_results_come_back_through_every_level(desk: Desk) -> None:
    desk.deploy(worker("lc"))
    desk.deploy(caller("lb", "lc"))
    desk.deploy(caller("la", "lb"))
    desk.start("la", x=4)
    desk.turn()
    desk.complete("u")
    desk.turn()
    assert desk.variables("i") == {"x": 4, "y": 8}
    assert {desk.status(name) for _, name in desk.store.instances()} == {"completed"}


def test_nested_calls_with_interrupting_boundaries_on_one_message_all_end(desk: Desk) -> None:
    """S82: the message reaches every level, and each of them ends what it called."""
    desk.deploy(worker("ld"))
    desk.deploy(caller("lc", "ld", "Stop"))
    desk.deploy(caller("lb", "lc", "Stop"))
    desk.deploy(caller("la", "lb", "Stop"))
    desk.start("la", x=1)
    desk.turn()
    assert len(desk.store.instances()) == 4
    desk.publish("Stop")
    desk.turn()
    assert desk.status("i") == "completed"
    assert desk.history("i") == ["s", "b", "stopped"]
    assert all(desk.record(name).status in ("completed", "terminated") for _, name in desk.store.instances())
    assert desk.store.tasks() == []
    assert desk.store.quiet().quiet


def test_cancelling_a_caller_ends_what_it_called_even_if_that_stands_in_an_incident(desk: Desk) -> None:
    """S83."""
    failing = ProcessBuilder("child")
    failing.start("s").script_task("t", script=Expression("${missing.x}", "juel"))
    failing.at("t").end("e")
    desk.deploy(failing)
    desk.deploy(caller())
    desk.start()
    desk.turn()
    [child] = children(desk, "i")
    assert desk.waiting(child) == [("incident", "t")]
    desk.store.deliver("i", "cancel", "", "op1", b"{}")
    desk.turn()
    assert (desk.status("i"), desk.status(child)) == ("terminated", "terminated")
    assert desk.store.quiet().quiet


def test_a_process_that_calls_itself_is_stopped_at_the_limit_in_an_incident() -> None:
    """S83."""
    desk = Desk(max_call_depth=5)
    try:
        desk.deploy(caller("p", "p"))
        desk.start()
        desk.turn()
        names = [name for _, name in desk.store.instances()]
        assert len(names) == 6
        assert desk.waiting(names[-1]) == [("incident", "c")]
        assert {desk.status(name) for name in names} == {"active"}
        desk.store.deliver("i", "cancel", "", "op1", b"{}")
        desk.turn()
        assert {desk.status(name) for name in names} == {"terminated"}
    finally:
        desk.close()


def test_a_call_of_what_is_not_deployed_is_an_incident_that_a_retry_heals(desk: Desk) -> None:
    desk.deploy(caller())
    desk.start(x=1)
    desk.turn()
    assert desk.waiting("i") == [("incident", "c")]
    desk.deploy(worker())
    incident = next(iter(desk.record("i").waits))
    desk.store.deliver("i", "retry", incident, "op1", b"{}")
    desk.turn()
    desk.complete("u")
    desk.turn()
    assert desk.status("i") == "completed"


def test_cancelling_a_called_instance_is_an_incident_of_its_caller(desk: Desk) -> None:
    desk.deploy(worker())
    desk.deploy(caller())
    desk.start(x=1)
    desk.turn()
    [child] = children(desk, "i")
    desk.store.deliver(child, "cancel", "", "op1", b"{}")
    desk.turn()
    assert desk.waiting("i") == [("incident", "c")]


def test_an_uncaught_error_of_a_called_instance_is_caught_at_the_call(desk: Desk) -> None:
    failing = ProcessBuilder("child")
    failing.start("s").end("e", error="E1", inputs={"why": "full"})
    process = caller()
    process.boundary("c", "b", error="E1").end("failed")
    desk.deploy(failing)
    desk.deploy(process)
    desk.start()
    desk.turn()
    assert desk.history("i") == ["s", "b", "failed"]
    assert desk.status("i") == "completed"


def test_a_call_bound_to_its_deployment_keeps_calling_what_was_there_then(desk: Desk) -> None:
    desk.deploy(worker())
    process = ProcessBuilder("p")
    process.start("s").call("c", process="child", binding="deployment").end("e")
    version = desk.deploy(process)
    write_pins(desk.store, "p", version, {"c": 1})
    newer = ProcessBuilder("child")
    newer.start("s").end("e")
    assert desk.deploy(newer) == 2
    write_pins(desk.store, "p", version, {"c": 2})
    desk.start(x=1)
    desk.turn()
    [child] = children(desk, "i")
    assert desk.record(child).process_version == 1


def test_an_iterating_call_fans_out_and_collects_in_order(desk: Desk) -> None:
    desk.deploy(worker())
    process = ProcessBuilder("p")
    process.start("s").call("c", process="child", inputs={"x": "=item"}, outputs={"z": "=y"}).multi_instance(
        collection="items", item="item", output="out", output_item="z"
    ).end("e")
    desk.deploy(process)
    desk.start(items=list(range(100)))
    desk.turn()
    assert len(children(desk, "i")) == 100
    for task in reversed(desk.store.tasks()):
        desk.store.complete_task(task.id, "", (), (), f"done-{task.id}", b"{}")
        desk.turn()
    assert desk.status("i") == "completed"
    assert desk.variables("i")["out"] == [n * 2 for n in range(100)]


def test_an_item_that_cannot_be_stored_is_an_incident_of_the_iteration(desk: Desk) -> None:
    process = ProcessBuilder("p")
    broken = Expression('["\\ud800"]', "python")
    process.start("s").user_task("u").multi_instance(collection=broken, item="item").end("e")
    desk.deploy(process)
    desk.start()
    desk.turn()
    assert desk.waiting("i") == [("incident", "u")]
