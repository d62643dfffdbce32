"""Work that asks for what no node has: said at once, given up when patience ends, done if the node comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gobpm_ray.runtime.callables import reference_row
from gobpm_ray.runtime.elsewhere import Cancel, Ended, Errand, Told, perform
from gobpm_ray.runtime.scarce import Scarcity, missing, wanted
from tests.unit.runtime.desk import Desk
from tests.unit.runtime.test_attempts import double, work_process

SMALL = {"CPU": 2.0, "memory": 4e9, "far": 1.0}
GPU = {"CPU": 8.0, "GPU": 1.0, "accelerator_type:A100": 1.0}


@pytest.mark.parametrize(
    ("options", "short"),
    [
        ({}, ""),
        ({"num_cpus": 8, "num_gpus": 1}, ""),
        ({"num_cpus": 0.1, "resources": {"far": 1}}, ""),
        ({"accelerator_type": "A100", "num_gpus": 0.5}, ""),
        ({"num_cpus": 16}, "CPU 16 (the most that a node has: 8)"),
        ({"resources": {"near": 0.5}}, "near 0.5 (the most that a node has: 0)"),
        ({"accelerator_type": "H100"}, "accelerator_type:H100 0.001 (the most that a node has: 0)"),
        (
            {"memory": 8_000_000_000, "resources": {"far": 2}},
            "memory 8000000000 (the most that a node has: 4000000000), far 2",
        ),
        ({"num_gpus": 1, "resources": {"far": 1}}, "CPU 1 and GPU 1 and far 1 together on one node"),
    ],
)
def test_what_is_missing_is_named(options: dict[str, Any], short: str) -> None:
    found = missing(wanted(options), [SMALL, GPU])
    assert found.startswith(short) if short else found == ""


def test_an_empty_cluster_has_nothing() -> None:
    assert missing({"CPU": 1}, []) == "CPU 1 (the most that a node has: 0)"


class Clocked:
    """A watch whose clock and nodes are the test's."""

    def __init__(self, patience_s: float = 60) -> None:
        self.now = 0.0
        self.nodes: list[Mapping[str, float]] = [SMALL]
        self.told: list[str] = []
        self.given_up: list[str] = []
        self.away = False
        self.scarcity = Scarcity(self.look, patience_s, monotonic=lambda: self.now, threaded=False)

    def look(self) -> list[Mapping[str, float]]:
        if self.away:
            raise ConnectionError("no head")
        return self.nodes

    def watch(self, **options: Any) -> Callable[[], None]:
        return self.scarcity.watch(wanted(options), self.told.append, self.given_up.append)

    def until(self, at: float) -> None:
        while self.now < at:
            self.now = min(at, self.now + max(self.scarcity.look(), 0.25))
        self.scarcity.look()


def test_it_is_said_within_seconds_and_given_up_once_when_patience_ends() -> None:
    clocked = Clocked()
    clocked.watch(resources={"near": 1})
    clocked.until(1)
    assert clocked.told == ["near 1 (the most that a node has: 0)"]
    clocked.until(60)
    assert clocked.given_up == []
    clocked.until(300)
    assert (len(clocked.told), clocked.given_up) == (1, clocked.told)


def test_a_node_that_comes_in_time_ends_the_wait_and_patience_begins_anew() -> None:
    clocked = Clocked()
    clocked.watch(num_gpus=1)
    clocked.until(50)
    clocked.nodes = [SMALL, GPU]
    clocked.until(120)
    assert [bool(text) for text in clocked.told] == [True, False]
    clocked.nodes = [SMALL]
    clocked.until(200)
    assert [bool(text) for text in clocked.told] == [True, False, True]
    assert clocked.given_up == []
    clocked.until(300)
    assert len(clocked.given_up) == 1


def test_work_that_some_node_can_do_is_left_alone_and_looked_at_ever_more_seldom() -> None:
    clocked = Clocked()
    looked: list[float] = []
    nodes = clocked.nodes

    def look() -> Any:
        looked.append(clocked.now)
        return nodes

    clocked.scarcity._nodes = look
    clocked.watch(num_cpus=2)
    clocked.until(600)
    assert (clocked.told, clocked.given_up) == ([], [])
    assert len(looked) < 30


def test_what_has_ended_is_not_watched_any_more() -> None:
    clocked = Clocked()
    clocked.watch(num_gpus=1)()
    clocked.until(100)
    assert (clocked.told, clocked.given_up) == ([], [])


def test_a_cluster_that_does_not_answer_takes_no_patience() -> None:
    clocked = Clocked()
    clocked.watch(num_gpus=1)
    clocked.away = True
    clocked.until(100)
    assert (clocked.told, clocked.given_up) == ([], [])


def test_without_patience_it_is_given_up_at_the_first_look_in_a_thread_of_its_own() -> None:
    given_up = threading.Event()
    scarcity = Scarcity(lambda: [SMALL], 0)
    scarcity.watch({"GPU": 1}, lambda _what: None, lambda _what: given_up.set())
    assert given_up.wait(5)


# ---------------------------------------------------------------------------------------------- as its instance sees it


class Short:
    """Somewhere else, where something is missing; then it comes, or it does not."""

    def __init__(self, comes: bool) -> None:
        self.comes = comes
        self.sent = 0

    def send(
        self, errand: Errand, options: Mapping[str, Any], name: str, ended: Ended, lacking: Callable[[str], None]
    ) -> Cancel:
        self.sent += 1
        lacking("far 1 (the most that a node has: 0)")
        if self.comes:
            lacking("")
            ended(perform(errand, None))
        else:
            ended(Told("unavailable", {}, cause="no node of the cluster has what the task asks for: far 1"))
        return lambda: None


def desk_with(short: Short, **task: Any) -> Desk:
    desk = Desk()
    desk.host.effects._elsewhere = short
    desk.store.put_value("code", "topic", reference_row(double))
    desk.deploy(work_process(ray={"resources": {"far": 1}}, **task))
    desk.start(number=4)
    desk.turn()
    return desk


def test_what_is_missing_stands_in_history_and_facts_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    desk = desk_with(Short(comes=True))
    assert desk.status() == "completed"
    assert desk.history(event="lacking") == ["work"]
    ((fact),) = desk.facts("Lacking")
    assert (fact["node"], fact["what"]) == ("work", "far 1 (the most that a node has: 0)")
    assert desk.host.counters.lacking == 1
    assert "waits for what no node has: far 1" in caplog.text
    desk.close()


def test_what_never_comes_is_an_incident_whatever_the_retries_and_a_retry_hands_it_out_again() -> None:
    short = Short(comes=False)
    desk = desk_with(short, retries="R3/PT0S")
    assert (desk.waiting(), short.sent) == ([("incident", "work")], 1)
    (track,) = desk.state().tracks.values()
    assert track.incident is not None
    assert track.incident.code == "unavailable"
    assert track.incident.cause == "no node of the cluster has what the task asks for: far 1"
    short.comes = True
    (wait,) = desk.record().waits
    desk.store.deliver("i", "retry", wait, "r1", b"{}")
    desk.turn()
    assert (desk.status(), desk.variables()["attempt"]) == ("completed", 1)
    desk.close()
