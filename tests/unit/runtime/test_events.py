"""Event sub-processes, conditions, errors and compensation through the runtime: released at every wait, on a store."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

from gobpm_ray import BpmnError
from gobpm_ray.checkpoint import rows
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.callables import Work
from tests.unit.runtime.desk import HOUR, Desk


class Closing:
    """Desks that are closed when the test ends."""

    def __init__(self) -> None:
        self.desks: list[Desk] = []

    def __call__(self, callables: Mapping[str, Work] | None = None) -> Desk:
        self.desks.append(desk := Desk(callables))
        return desk


@pytest.fixture
def opened():
    desks = Closing()
    yield desks
    for desk in desks.desks:
        desk.close()


def watched(**event: object) -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start("s").user_task("u").end("e")
    with process.event_sub_process("h") as handler:
        handler.start("hs", **event).script_task("note", "1", result="noted").end("he")  # type: ignore[arg-type]
    return process


@pytest.mark.parametrize("event", [{"timer": "PT2H"}, {"message": "M"}])
def test_an_event_sub_process_fires_while_the_main_flow_is_released(opened, event):
    """X7, W13."""
    desk = opened()
    desk.deploy(watched(**event))
    desk.start()
    desk.turn()
    assert desk.store.leases() == []
    assert sorted(node for _, node in desk.waiting()) == ["hs", "u"]
    desk.publish("M") if "message" in event else desk.advance(2 * HOUR)
    desk.turn()
    assert desk.status() == "completed"
    assert desk.history() == ["s", "hs", "note", "he", "h"]
    assert desk.variables() == {"noted": 1}


def test_a_condition_is_released_and_fires_by_an_operators_set(opened):
    """W16, X14."""
    process = ProcessBuilder("p")
    process.start("s").catch("c", conditional="x > 5").end("e")
    desk = opened()
    desk.deploy(process)
    desk.start(x=1)
    desk.turn()
    assert desk.store.leases() == []
    assert desk.waiting() == [("conditional", "c")]
    for number, x in enumerate((2, 7)):
        desk.store.deliver("i", "set", "", f"set{number}", rows.payload({"x": x}))
        desk.turn()
    assert desk.status() == "completed"


def test_an_error_of_a_callable_is_caught_by_the_boundary_that_names_it(opened):
    def refuse(_inputs: dict[str, object]) -> None:
        raise BpmnError("REFUSED", "limit reached", limit=100)

    process = ProcessBuilder("p")
    process.start("s").service_task("w", "refuse").end("e")
    process.boundary("w", "b", error="REFUSED").user_task("u").end("x")
    desk = opened({"refuse": refuse})
    desk.deploy(process)
    desk.start()
    desk.turn()
    assert desk.history() == ["s", "b"]
    assert desk.variables() == {"limit": 100}
    assert desk.store.leases() == []


def test_an_error_of_a_callable_that_nobody_catches_is_an_incident_that_says_what_was_thrown(opened):
    def refuse(_inputs: dict[str, object]) -> None:
        raise BpmnError("REFUSED", "limit reached")

    process = ProcessBuilder("p")
    process.start("s").service_task("w", "refuse").end("e")
    desk = opened({"refuse": refuse})
    desk.deploy(process)
    desk.start()
    desk.turn()
    [incident] = [track.incident for track in desk.state().tracks.values() if track.incident is not None]
    assert incident.cause == "error 'REFUSED' thrown by serviceTask 'w' is caught by nobody: limit reached"


def test_an_error_thrown_after_a_release_is_caught_by_the_scope_around(opened):
    """A76."""
    process = ProcessBuilder("p")
    with process.start("s").sub_process("sub") as inside:
        inside.start("si").throw("note", escalation="N").user_task("u").end("x", error="E")
        with inside.event_sub_process("h") as handler:
            handler.start("hs", escalation="N", interrupting=False).user_task("uh").end("he")
    process.at("sub").end("e")
    process.boundary("sub", "b", error="E").end("caught")
    desk = opened()
    desk.deploy(process)
    desk.start()
    desk.turn()
    assert desk.store.leases() == []
    assert desk.waiting() == [("task", "u"), ("task", "uh")]
    desk.complete("u")
    desk.turn()
    assert desk.history() == ["s", "si", "hs", "note", "u", "x", "b", "caught"]
    assert desk.status() == "completed"
    assert desk.waiting() == []


def test_a_compensation_of_user_tasks_is_released_between_its_handlers(opened):
    """A78: the queue is in the store."""
    process = ProcessBuilder("p")
    process.start("s").task("a").task("b").throw("undo", compensate=True).end("e")
    process.boundary("a", "ca", compensate=True).user_task("ua")
    process.boundary("b", "cb", compensate=True).user_task("ub")
    desk = opened()
    desk.deploy(process)
    desk.start()
    for node in ("ub", "ua"):
        desk.turn()
        assert desk.store.leases() == []
        assert desk.waiting() == [("task", node)]
        desk.complete(node)
    desk.turn()
    assert desk.history() == ["s", "a", "b", "cb", "ub", "ca", "ua", "undo", "e"]


def test_a_bpmn_error_survives_pickling_and_needs_a_code():
    error = pickle.loads(pickle.dumps(BpmnError("E", "why", a=1)))
    assert (error.code, str(error), error.values) == ("E", "why", {"a": 1})
    with pytest.raises(ValueError, match="needs a code"):
        BpmnError("")
