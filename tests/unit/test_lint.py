"""The linter: what looks wrong in a process that could run, and silence where nothing does."""

from __future__ import annotations

from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.lint import lint, lint_calls


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


# --- breadth -----------------------------------------------------------------------------------------------------


def test_what_stands_beside_the_flow_is_no_loose_end() -> None:
    """Handlers, event sub-processes, links, ad-hoc activities and what begins the process by a message."""
    beside = ProcessBuilder("beside")
    beside.start().service_task("book").throw(link="on")
    beside.first.catch("goes_on", link="on").end()
    beside.boundary("book", compensate=True).service_task("undo")
    with beside.event_sub_process() as late:
        late.start(timer="PT1H").end(compensate=True)
    with beside.at("goes_on").ad_hoc("free", until="done") as free:
        free.first.task("a")
        free.first.task("b")
    beside.at("free").end()
    beside.first.receive_task("begin", message="m", instantiate=True).end()
    gateway = beside.first.event_gateway("g", instantiate=True)
    gateway.catch(message="n").end()
    assert _found(beside) == []


def test_a_condition_that_asks_nothing_and_never_holds() -> None:
    dead = ProcessBuilder("dead")
    dead.start().exclusive("x", default="e3").when("1 > 2").end("e1")
    dead.at("x").when("false and y").end("e2")
    dead.at("x").end("e3")
    assert _found(dead) == [("dead_condition", "x_to_e1"), ("dead_condition", "x_to_e2")]


def test_a_condition_that_asks_a_variable_or_the_time_is_alive() -> None:
    alive = ProcessBuilder("alive")
    alive.start().exclusive("x", default="e3").when("y").end("e1")
    alive.at("x").when('today() > date("2030-01-01")').end("e2")
    alive.at("x").end("e3")
    assert _found(alive) == []


def test_a_conditional_event_that_never_fires() -> None:
    never = ProcessBuilder("never")
    never.start().catch("c", conditional="false").end()
    assert _found(never) == [("dead_condition", "c")]


def test_a_loop_that_nothing_ends() -> None:
    endless = ProcessBuilder("endless")
    endless.start().task("a").loop().task("b").loop(while_="true").task("c").loop(maximum=3).end()
    assert _found(endless) == [("endless_loop", "a"), ("endless_loop", "b")]


def test_a_join_that_an_inclusive_choice_need_not_fill() -> None:
    closed = ProcessBuilder("closed")
    closed.start().inclusive("x", default="b").when("y").task("a").parallel("join").end()
    closed.at("x").task("b").to("join")
    assert _found(closed) == [("closed_join", "join")]


def test_a_join_with_a_flow_that_nothing_comes_by() -> None:
    closed = ProcessBuilder("closed")
    closed.start().parallel("fork").task("a").parallel("join").end()
    closed.at("fork").task("b").to("join")
    closed.first.exclusive("loop").to("join")
    closed.at("loop").when("z").task("again").to("loop")
    found = _found(closed)
    assert ("closed_join", "join") in found
    assert ("unreachable", "again") in found


def test_a_handler_that_no_boundary_leads_to_and_a_compensation_that_finds_none() -> None:
    lost = ProcessBuilder("lost")
    lost.start().service_task("book").end(compensate="book")
    lost.first.task("undo")
    lost._draft.change("undo", for_compensation=True)
    assert _found(lost) == [("unused_handler", "undo"), ("no_handler", "end")]


def test_a_link_that_nothing_throws() -> None:
    lost = ProcessBuilder("lost")
    lost.start().end()
    lost.first.catch("c", link="gone").end("e")
    assert _found(lost) == [("unmatched_link", "c"), ("unreachable", "e")]


def test_a_cancelled_transaction_that_nobody_goes_on_from() -> None:
    order = ProcessBuilder("order")
    with order.start().transaction("t") as inside:
        inside.start().end("stop", cancel=True)
    order.at("t").end()
    assert _found(order) == [("no_handler", "stop")]


def test_a_call_of_a_process_that_is_in_no_file_is_named() -> None:
    caller, called = ProcessBuilder("caller"), ProcessBuilder("called")
    caller.start().call("known", process="called").call("gone", process="nowhere").call("any", process="=which").end()
    called.start().end()
    processes = (caller.build(), called.build())
    assert [(problem.code, problem.element) for problem in lint_calls(processes)] == [("unknown_process", "gone")]
    assert lint_calls(processes, {"nowhere"}) == ()


def test_messages_that_begin_a_process_together_need_a_key() -> None:
    """M50"""
    start = ProcessBuilder("start")
    start.start("both", message=("a", "b"), parallel_multiple=True).end()
    assert _found(start) == [("no_key", "both")]
    gateway = ProcessBuilder("gateway")
    gateway.first.event_gateway("g", instantiate=True, parallel=True)
    gateway.at("g").catch("a", message="a", key="=k").end()
    gateway.at("g").receive_task("b", message="b").end()
    assert _found(gateway) == [("no_key", "g")]
    [warning] = lint(gateway.build())
    assert warning.message.endswith(
        "'b' has no correlation key: one that finds nobody waiting begins an instance of its own"
    )
    sound = ProcessBuilder("sound")
    sound.start("both", message=("a", "b"), key="k", parallel_multiple=True).end()
    assert _found(sound) == []
