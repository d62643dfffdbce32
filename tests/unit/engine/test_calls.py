"""Called processes through the engine's public door: versions, and who called whom."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray import Engine, ProcessBuilder
from gobpm_ray.engine.rehearsal import _parent


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open(None, clock="virtual", now="2026-01-01T00:00:00Z") as opened:
        yield opened


def called(result: int) -> ProcessBuilder:
    process = ProcessBuilder("called")
    process.start("s").script_task("t", script=f"={result}", result="version").user_task("u").end("e")
    return process


def caller(binding: str, name: str = "caller") -> ProcessBuilder:
    process = ProcessBuilder(name)
    process.start("s").call("c", process="called", binding=binding).end("e")  # type: ignore[arg-type]
    return process


@pytest.mark.parametrize(("binding", "version"), [("deployment", 1), ("latest", 2)])
def test_a_call_bound_to_its_deployment_stays_with_what_was_deployed_with_it(
    engine: Engine, binding: str, version: int
) -> None:
    """Whichever of the two was named first."""
    engine.deploy(caller(binding), called(1))
    engine.deploy(called(2))
    engine.start("caller", id="i")
    engine.wait_quiet()
    [child] = [view for view in engine.list_instances() if view.caller == "i"]
    assert (child.process_id, child.version, child.variables) == ("called", version, {"version": version})


def test_deploying_the_same_again_changes_nothing_about_what_is_called(engine: Engine) -> None:
    engine.deploy(called(1), caller("deployment"))
    engine.deploy(called(2))
    engine.deploy(caller("deployment"))
    engine.start("caller", id="i")
    engine.wait_quiet()
    [child] = [view for view in engine.list_instances() if view.caller == "i"]
    assert child.version == 1


def test_each_called_instance_names_the_one_that_called_it_and_not_the_outermost(engine: Engine) -> None:
    outer = ProcessBuilder("outer")
    outer.start("s").call("c", process="caller").end("e")
    engine.deploy(called(1), caller("latest"), outer)
    engine.start("outer", id="i")
    engine.wait_quiet()
    views = {view.process_id: view for view in engine.list_instances()}
    assert views["caller"].caller == "i"
    assert views["called"].caller == views["caller"].instance_id
    assert views["outer"].caller == ""
    known = {view.instance_id for view in views.values()}
    assert [_parent(views[name], known) for name in ("outer", "caller", "called")] == [
        "",
        "i",
        views["caller"].instance_id,
    ]


def test_what_a_called_instance_throws_belongs_to_it_and_not_to_its_caller(engine: Engine) -> None:
    """The ids of called instances are made of the same parts as those of throws."""
    thrower = ProcessBuilder("called")
    thrower.start("s").throw("m", message="Begin").user_task("u").end("e")
    begun = ProcessBuilder("begun")
    begun.start("s", message="Begin").user_task("u").end("e")
    engine.deploy(thrower, caller("latest"), begun)
    engine.start("caller", id="i")
    engine.wait_quiet()
    views = {view.process_id: view for view in engine.list_instances()}
    known = {view.instance_id for view in views.values()}
    assert _parent(views["begun"], known) == views["called"].instance_id
