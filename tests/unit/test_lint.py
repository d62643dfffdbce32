"""The linter: what looks wrong in a process that could run, and silence where nothing does."""

from __future__ import annotations

from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.lint import lint


def _found(builder: ProcessBuilder) -> list[tuple[str, str]]:
    return [(warning.code, warning.element) for warning in lint(builder.build())]


def test_a_sound_process_has_no_warnings() -> None:
    sound = ProcessBuilder("sound")
    sound.start().parallel("fork").task("a").parallel("join").exclusive("x", default="no").when("y").end("yes")
    sound.at("fork").to("join")
    sound.at("x").end("no")
    sound.boundary("a", timer="PT1H").end("late")
    assert _found(sound) == []


def test_an_element_without_a_way_in_beside_a_start_event() -> None:
    """BPMN 10.5.2."""
    loose = ProcessBuilder("loose")
    loose.start().end()
    loose.first.task("alone").end("e2")
    assert _found(loose) == [("no_incoming", "alone"), ("unreachable", "e2")]


def test_elements_without_a_way_in_begin_a_process_that_has_no_start_event() -> None:
    implied = ProcessBuilder("implied")
    implied.first.task("a").task("b")
    assert _found(implied) == []


def test_a_circle_that_nothing_leads_into_can_never_be_reached() -> None:
    circle = ProcessBuilder("circle")
    circle.start().end()
    circle.first.exclusive("a").task("b").to("a")
    circle.boundary("b", "at_b", timer="PT1H").end("late")
    assert _found(circle) == [
        ("unreachable", "a"),
        ("unreachable", "b"),
        ("unreachable", "at_b"),
        ("unreachable", "late"),
    ]


def test_a_choice_without_a_default_whose_flows_are_all_conditional() -> None:
    choice = ProcessBuilder("choice")
    choice.start().exclusive("x").when("a").end("e1")
    choice.at("x").when("b").end("e2")
    assert _found(choice) == [("no_default", "x")]


def test_an_activity_whose_flows_are_all_conditional() -> None:
    implicit = ProcessBuilder("implicit")
    implicit.start().task("t").when("a").end("e1")
    assert _found(implicit) == [("no_default", "t")]


def test_a_flow_of_a_choice_that_is_always_open() -> None:
    choice = ProcessBuilder("choice")
    choice.start().exclusive("x").when("a").end("e1")
    choice.at("x").end("e2")
    assert _found(choice) == [("no_condition", "x_to_e2")]


def test_a_condition_on_a_default_flow() -> None:
    marked = ProcessBuilder("marked")
    marked.start().exclusive("x").when("a").end("e1")
    marked.first.end("e2")
    marked.connect("x", "e2", "c", default=True, id="d")
    assert _found(marked) == [("condition_on_default", "d")]


def test_a_condition_where_nobody_asks_it() -> None:
    fork = ProcessBuilder("fork")
    fork.start().parallel("p").when("a").end("e1")
    fork.at("p").end("e2")
    assert _found(fork) == [("ignored_condition", "p_to_e1")]


def test_a_join_fed_by_one_exclusive_choice_may_never_open() -> None:
    closed = ProcessBuilder("closed")
    closed.start().exclusive("x", default="b").when("y").task("a").parallel("join").end()
    closed.at("x").task("b").to("join")
    assert _found(closed) == [("closed_join", "join")]


def test_a_join_fed_by_one_event_gateway_may_never_open() -> None:
    closed = ProcessBuilder("closed")
    closed.start().event_gateway("g").catch("c", timer="PT1H").parallel("join").end()
    closed.at("g").catch("d", signal="S").to("join")
    assert _found(closed) == [("closed_join", "join")]


def test_a_join_behind_different_splits_is_left_alone() -> None:
    open_join = ProcessBuilder("open")
    open_join.start().parallel("fork").exclusive("x", default="e2").when("y").parallel("join").end()
    open_join.at("x").end("e2")
    open_join.at("fork").task("b").to("join")
    assert _found(open_join) == []


def test_a_path_that_stops_without_an_end_event() -> None:
    stops = ProcessBuilder("stops")
    stops.start().parallel("p").end()
    stops.at("p").task("t")
    assert _found(stops) == [("dead_end", "t")]
