"""Hosts that die without a word over one instance: counted, then a person must look (N9, C63)."""

from __future__ import annotations

import logging

import pytest

from gobpm_ray.engine.instance_views import instance_view
from gobpm_ray.engine.operations import Operations
from gobpm_ray.errors import InputError
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.counters import Counters
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.runtime.reporting import EVERY_S, Reporting
from tests.unit.runtime.desk import Desk


class Killed(BaseException):
    """The host's process is gone in the middle of its step."""


class Mortal(Host):
    """Dies when it computes the step of the instance named."""

    victim = "poison"

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        get = self.programs.get

        def die(process_id: str, version: int):
            if self.hosting == self.victim:
                raise Killed
            return get(process_id, version)

        self.programs.get = die  # type: ignore[method-assign]


def desk_with_processes() -> Desk:
    desk = Desk()
    process = ProcessBuilder("p")
    process.start().user_task("work").end()
    desk.deploy(process)
    return desk


def live_and_die(desk: Desk, number: int) -> bool:
    """One host's life; True: it died in work, and its lease is released as Ray's report of the death does."""
    host = Mortal(desk.store, desk.settings, Programs(desk.store), desk.callables, f"mortal{number}")
    try:
        while host.serve_once():
            pass
    except Killed:
        desk.store.release_dead(f"mortal{number}")
        return True
    finally:
        host._renewer.close()
        host._listener.close()
        desk.host.counters.held += host.counters.held
    return False


def test_three_silent_deaths_are_an_incident_that_a_person_resumes(caplog: pytest.LogCaptureFixture) -> None:
    """C63, N9: not hosted a further time, in the history, and everybody else goes on."""
    desk = desk_with_processes()
    desk.start(instance_id="poison")
    deaths = 0
    while live_and_die(desk, deaths):
        deaths += 1
        assert deaths < 10
    # The first host may never have begun: it is only from the second on that a death counts however early it comes.
    assert deaths == 1 + desk.settings.max_silent_deaths
    assert desk.host.counters.held == 1
    desk.start(instance_id="sound")
    assert not live_and_die(desk, 99)
    assert desk.waiting("sound") == [("task", "work")]
    record = desk.record("poison")
    view = instance_view(record, Programs(desk.store).get("p", 1))
    (incident,) = view.incidents
    assert (view.state, incident.node, incident.code) == ("incident", "", "silent_deaths")
    assert incident.cause == "3 hosts died over it without a word; find what kills them, then retry"
    assert desk.history("poison", "incident") == [incident.cause]
    assert len(record.inbox) == 1, "its trigger is kept"
    assert any(
        r.levelno == logging.ERROR and "instance poison of process p is held" in r.message for r in caplog.records
    )
    assert [fact["instance"] for fact in desk.facts("Incident")] == ["poison"]
    # Whatever killed them is found and mended: a person lets it go on.
    operations = Operations(desk.store, desk.settings)
    with pytest.raises(InputError, match="retry it"):
        operations.resolve("poison")
    operations.retry("poison")
    desk.turn()
    assert desk.waiting("poison") == [("task", "work")]
    assert desk.store.population().incidents == 0
    desk.close()


def test_a_commit_in_between_makes_good_again() -> None:
    """Two unlucky nodes in a row are no reason to hold an instance that does its work."""
    desk = desk_with_processes()
    desk.start(instance_id="poison")
    for number in range(3):
        assert live_and_die(desk, number)
    desk.turn()
    assert desk.waiting("poison") == [("task", "work")]
    desk.complete("work")
    for number in range(3, 6):
        assert live_and_die(desk, number)
    desk.turn()
    assert desk.status("poison") == "completed"
    desk.close()


def test_the_limit_may_be_switched_off() -> None:
    desk = Desk(max_silent_deaths=0)
    process = ProcessBuilder("p")
    process.start().end()
    desk.deploy(process)
    desk.start(instance_id="poison")
    for number in range(8):
        assert live_and_die(desk, number)
    desk.turn()
    assert desk.status("poison") == "completed"
    desk.close()


def test_counts_are_told_now_and_then_once_each() -> None:
    """N12: to the store's totals and to the metrics of the process."""
    desk = Desk()
    now, told = [0.0], []
    counters = Counters()
    reporting = Reporting(desk.store, counters, lambda more: told.append(dict(more)), monotonic=lambda: now[0])
    counters.fenced = 2
    reporting.report()
    assert desk.store.values("signals") == {}, "not yet"
    now[0] = EVERY_S
    reporting.report()
    counters.fenced += 1
    reporting.report(at_once=True)
    now[0] = 3 * EVERY_S
    reporting.report()
    assert told == [{"fenced": 2}, {"fenced": 1}], "and nothing where nothing was counted"
    assert desk.store.values("signals") == {"fenced": b"3"}
    desk.close()
