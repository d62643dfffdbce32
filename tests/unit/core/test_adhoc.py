"""Ad-hoc sub-processes: what begins, in which order, and when it is enough (BPMN 13.3.5)."""

from __future__ import annotations

import pytest

from gobpm_ray.model.builder import ProcessBuilder, after
from tests.unit.core.driving import HOUR


def loose(**options: object) -> ProcessBuilder:
    process = ProcessBuilder("p")
    inside = process.start("s").ad_hoc("ah", **options)  # type: ignore[arg-type]
    inside.end("e")
    for task in ("u1", "u2", "u3"):
        inside.inside.first.user_task(task)
    return process


def waiting(run) -> list[str]:
    return [node for node, kind in run.waiting if kind == "task"]


def test_everything_that_nothing_leads_to_begins_at_once(bench):
    run = bench(loose())
    run.start()
    assert waiting(run) == ["u1", "u2", "u3"]
    for task in ("u2", "u3", "u1"):
        run.fire(task)
    assert run.trace == ["s", "u2", "u3", "u1", "ah", "e"]
    assert run.outcome == "completed"


def test_in_sequence_each_begins_when_the_one_before_it_is_done(bench):
    run = bench(loose(sequential=True))
    run.start()
    for task in ("u1", "u2", "u3"):
        assert waiting(run) == [task]
        run.fire(task)
    assert run.trace == ["s", "u1", "u2", "u3", "ah", "e"]


def test_once_its_condition_holds_the_rest_is_cancelled(bench):
    run = bench(loose(until="enough"))
    run.start(enough=False)
    run.fire("u1")
    assert waiting(run) == ["u2", "u3"]
    run.fire("u3", {"enough": True})
    assert run.trace == ["s", "u1", "u3", "ah", "e"]
    assert run.held == {}


def test_once_its_condition_holds_the_rest_may_finish(bench):
    run = bench(loose(until="enough", cancel_remaining=False))
    run.start(enough=False)
    run.fire("u1", {"enough": True})
    assert waiting(run) == ["u2", "u3"]
    run.fire("u3")
    run.fire("u2")
    assert run.trace == ["s", "u1", "u3", "u2", "ah", "e"]


@pytest.mark.parametrize("cancel", [True, False])
def test_in_sequence_nothing_more_begins_once_the_condition_holds(bench, cancel):
    run = bench(loose(sequential=True, until="enough", cancel_remaining=cancel))
    run.start(enough=False)
    run.fire("u1")
    run.fire("u2", {"enough": True})
    assert run.trace == ["s", "u1", "u2", "ah", "e"]
    assert run.outcome == "completed"


def test_a_condition_first_true_at_the_last_activity_completes_once(bench):
    run = bench(loose(until="enough"))
    run.start(enough=False)
    run.fire("u1")
    run.fire("u2")
    run.fire("u3", {"enough": True})
    assert run.trace == ["s", "u1", "u2", "u3", "ah", "e"]


def test_a_condition_that_cannot_be_told_is_an_incident_of_the_activity_and_a_retry_asks_again(bench):
    run = bench(loose(until="enough"))
    run.start()
    run.fire("u1")
    assert run.cause == "completion condition of 'ah', 'enough': expected true or false, got null"
    run.assign(enough=True)
    run.retry()
    assert run.trace == ["s", "u1", "ah", "e"]


def test_paths_inside_go_on_and_the_condition_is_asked_after_each_activity(bench):
    process = ProcessBuilder("p")
    inside = process.start("s").ad_hoc("ah", until="enough")
    inside.end("e")
    inside.inside.first.user_task("u1").user_task("u2")
    inside.inside.first.catch("c", timer=after("PT1H"))
    run = bench(process)
    run.start(enough=False)
    run.fire("u1")
    run.pass_time(2 * HOUR)
    assert run.trace == ["s", "u1", "c"]
    run.fire("u2", {"enough": True})
    assert run.trace == ["s", "u1", "c", "u2", "ah", "e"]


def test_an_empty_one_passes(bench):
    process = ProcessBuilder("p")
    process.start("s").ad_hoc("ah").end("e")
    run = bench(process)
    run.start()
    assert run.trace == ["s", "ah", "e"]


def test_a_boundary_interrupts_it_with_all_that_runs_inside(bench):
    process = loose(sequential=True)
    process.boundary("ah", "b", timer=after("PT1H")).end("late")
    run = bench(process)
    run.start()
    run.fire("u1")
    run.pass_time(2 * HOUR)
    assert run.trace == ["s", "u1", "b", "late"]
    assert run.held == {}


def test_an_activity_inside_may_iterate_and_counts_once(bench):
    process = ProcessBuilder("p")
    inside = process.start("s").ad_hoc("ah", sequential=True, until="loops >= 1")
    inside.end("e")
    inside.inside.first.user_task("u1", outputs={"loops": "=1"}).multi_instance(cardinality="2")
    inside.inside.first.user_task("u2")
    run = bench(process)
    run.start(loops=0)
    run.fire("u1")
    assert run.outcome == ""
    run.fire("u1")
    assert run.trace == ["s", "u1", "u1", "ah", "e"]


@pytest.mark.parametrize("sequential", [False, True])
def test_it_may_iterate_itself(bench, sequential):
    process = ProcessBuilder("p")
    inside = process.start("s").ad_hoc("ah", sequential=True)
    inside.multi_instance(collection="items", item="item", sequential=sequential).end("e")
    inside.inside.first.user_task("u1")
    inside.inside.first.user_task("u2")
    run = bench(process)
    run.start(items=[1, 2])
    while waiting(run):
        run.fire(waiting(run)[0])
    assert [run.trace.count(node) for node in ("u1", "u2", "ah", "e")] == [2, 2, 2, 1]
    assert run.outcome == "completed"


def test_its_progress_survives_a_crash(bench):
    run = bench(loose(sequential=True))
    run.start()
    run.fire("u1")
    run.crash()
    assert waiting(run) == ["u2"]
