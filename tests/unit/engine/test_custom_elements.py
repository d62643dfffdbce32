"""Elements of the user's own, through the public API (D2), and thresholds of the engine and of elements (X16)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.quorum import Quorum
from gobpm_ray import Engine, ProcessBuilder
from gobpm_ray.bpmn.reader import read_bpmn
from gobpm_ray.bpmn.writer import write_bpmn
from gobpm_ray.core.advance import advance
from gobpm_ray.core.nodes import register
from gobpm_ray.core.nodes.family import Family
from gobpm_ray.core.program import Program, ProgramNode, compile_process
from gobpm_ray.core.residency import willing
from gobpm_ray.core.run import Run
from gobpm_ray.core.state import ArmedWait, InstanceState, Track, TrackState, wait_id
from gobpm_ray.core.step import Trigger
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.document import from_json, to_json
from gobpm_ray.model.elements import CustomTask
from tests.unit.runtime.desk import BEGIN, HOUR, Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


class Stubborn(Family):
    """Waits for a signal and does not say that it may be released."""

    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        track.state = TrackState.WAITING
        run.arm(track, node.id, wait_id(track.id, node.id, 0, track.visit), ArmedWait("timer", run.now + 10 * HOUR))


def motion(**parameters: str) -> ProcessBuilder:
    builder = ProcessBuilder("p")
    given = {"topic": "=motion", "needed": "=2"} | parameters
    builder.start().custom("example:quorum", "vote", parameters=given).end("done")
    return builder


def test_an_element_of_ones_own_waits_is_released_and_goes_on(desk: Desk) -> None:
    """D2: it opts in by itself, and no part of the engine knows it; each vote wakes it, each time it is released."""
    register("example:quorum", Quorum())
    desk.deploy(motion())
    desk.start(motion="roof")
    desk.turn()
    assert not desk.record().resident
    for vote in ("yes", "no"):
        assert desk.history() == ["start"]
        desk.publish("Vote", "roof", vote=vote)
        desk.turn()
    assert desk.history() == ["start", "vote", "done"]
    assert desk.variables()["votes"] == ["yes", "no"]
    assert desk.counts()["Dehydrated"] == 2


def test_an_element_that_does_not_opt_in_keeps_its_instance_resident(desk: Desk) -> None:
    """D2: absent means resident; its wait is held by the store all the same."""
    register("example:stubborn", Stubborn())
    builder = ProcessBuilder("p")
    builder.start().custom("example:stubborn").end()
    desk.deploy(builder)
    desk.start()
    claim = desk.store.claim("a:b:1")
    assert claim is not None
    desk.store.abandon("i", "a:b:1", 0)
    program = desk.host.programs.get("p", 1)
    assert program.nodes["stubborn"].dehydratable is None


def test_the_engine_names_a_family_for_every_host() -> None:
    """Design 9: the module is imported where the instance is hosted."""
    with Engine.open(store=None, clock="virtual") as engine:
        engine.register_element("example:vote", "examples.quorum:Quorum")
        builder = ProcessBuilder("p")
        builder.start().custom("example:vote", "vote", parameters={"topic": "a", "needed": "=1"}).end()
        engine.deploy(builder)
        started = engine.start("p")
        engine.publish("Vote", "a", {"vote": 1})
        assert engine.inspect(started.instance_id).state == "completed"


@pytest.mark.parametrize("family", ["nowhere:Quorum", "examples.quorum:Nobody", "examples.quorum", "os:getcwd"])
def test_what_is_no_family_is_refused_by_name(family: str) -> None:
    with Engine.open(store=None) as engine, pytest.raises(InvalidModel, match=family.partition(":")[0]):
        engine.register_element("example:vote", family)


def test_an_element_that_nobody_registered_is_refused_at_deploy() -> None:
    builder = ProcessBuilder("p")
    builder.start().custom("example:unknown", "odd").end()
    with Engine.open(store=None) as engine, pytest.raises(InvalidModel, match="'odd'"):
        engine.deploy(builder)


def test_wrong_parameters_are_an_incident_of_their_token(desk: Desk) -> None:
    register("example:quorum", Quorum())
    desk.deploy(motion(needed="=0"))
    desk.start(motion="roof")
    desk.turn()
    assert desk.waiting() == [("incident", "vote")]


def test_an_element_of_ones_own_survives_xml_and_json() -> None:
    builder = motion()
    builder.at("vote").stay_within("PT2H")
    process = builder.build()
    (read,) = read_bpmn(write_bpmn(process)).processes
    vote = read.nodes["vote"]
    assert isinstance(vote, CustomTask)
    assert (vote.element, vote.parameters) == (process.nodes["vote"].element, process.nodes["vote"].parameters)  # type: ignore[union-attr]
    assert vote.dehydration_threshold == "PT2H"
    assert from_json(to_json(process)) == process


# --------------------------------------------------------------------------------------------------------- thresholds


def parked(builder: ProcessBuilder) -> tuple[Program, InstanceState]:
    program = compile_process(builder.build())
    step = advance(program, InstanceState("i", "p", 1), [Trigger("s", "start")], BEGIN)
    return program, step.state


def timed(wait: str, threshold: str = "") -> ProcessBuilder:
    builder = ProcessBuilder("p")
    cursor = builder.start().catch("t", timer=wait)
    if threshold:
        cursor.stay_within(threshold)
    cursor.end()
    return builder


@pytest.mark.parametrize(
    ("setting", "element", "released"),
    [("PT30S", "", True), ("PT2H", "", False), ("PT30S", "PT2H", False), ("PT2H", "PT1M", True)],
)
def test_x16_the_threshold_is_the_engines_or_the_elements_own(setting: str, element: str, released: bool) -> None:
    """X16, D2: a timer an hour ahead."""
    program, state = parked(timed("PT1H", element))
    assert willing(program, state, BEGIN, {"PT30S": 30_000, "PT2H": 2 * HOUR}[setting]) is released


def test_a_threshold_that_cannot_be_read_is_refused() -> None:
    with Engine.open(store=None) as engine, pytest.raises(InvalidModel, match="'t'"):
        engine.deploy(timed("PT1H", "soon"))


def test_a_boundarys_own_threshold_counts_for_its_deadline() -> None:
    """X16, D13"""
    builder = ProcessBuilder("p")
    builder.start().user_task("u").end()
    builder.boundary("u", "late", timer="PT1H").stay_within("PT3H").end()
    program, state = parked(builder)
    assert not willing(program, state, BEGIN, 30_000)
