"""Attempts between hosts: parked once whatever dies in between, and what becomes of work that somebody else lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gobpm_ray.core.step import HistoryEntry
from gobpm_ray.errors import LeaseLost, RayUnavailable
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.callables import reference_row
from gobpm_ray.runtime.effects import Effects
from gobpm_ray.runtime.elsewhere import Cancel, Elsewhere, Ended, Errand, Told, perform
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Commit, CommitResult
from tests.unit.runtime.desk import HOUR, Desk
from tests.unit.runtime.test_effects_and_residency import dead_in_effect


def work_process(**more: Any) -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start().service_task("work", "topic", **more).end("done")
    return process


class DyingStore(MemoryStore):
    """Loses the lease of whoever is about to seal or park, so many times: before the commit, or with its answer."""

    deaths = 0
    answered = False

    def commit(self, commit: Commit) -> CommitResult:
        if self.deaths == 0 or not any(b'"sealed"' in entry for entry in commit.history):
            return super().commit(commit)
        self.deaths -= 1
        if self.answered:
            super().commit(commit)
        self.release_dead(commit.token.partition(":")[0])
        raise LeaseLost("its host died here")


@pytest.mark.parametrize("answered", [False, True], ids=["before it was parked", "after it was parked"])
def test_a_crash_between_the_decision_to_park_and_the_parking_parks_once(answered: bool) -> None:
    """A73."""
    desk = Desk(store_class=DyingStore)
    desk.deploy(work_process())
    desk.start()
    dead_in_effect(desk)
    assert isinstance(desk.store, DyingStore)
    desk.store.deaths, desk.store.answered = 1, answered
    desk.turn()
    desk.turn()
    assert desk.store.deaths == 0
    assert desk.waiting() == [("incident", "work")]
    assert desk.history(event="incident") == ["work"]
    assert desk.history(event="sealed") == ["work"]
    assert desk.store.population().incidents == 1
    desk.close()


def test_a_crash_loop_ends_in_an_incident_although_the_task_is_idempotent() -> None:
    """A74."""
    desk = Desk(max_silent_deaths=0)
    desk.deploy(work_process(idempotent=True, retries="9"))
    desk.start()
    for _ in range(3):
        dead_in_effect(desk)
    desk.turn()
    assert desk.waiting() == [("incident", "work")]
    assert desk.history(event="sealed") == ["work"] * 3
    assert "3 attempts were cut off by crashes" in desk.state().tracks["1"].incident.cause  # type: ignore[union-attr]
    desk.close()


# ------------------------------------------------------------------------------------------------------------ elsewhere


class Away:
    """Somewhere else: does errands at once in this thread, and loses the first so many."""

    def __init__(self, lost: int = 0, refuses: bool = False) -> None:
        self.lost = lost
        self.refuses = refuses
        self.sent: list[tuple[Errand, Mapping[str, Any], str]] = []

    def send(
        self, errand: Errand, options: Mapping[str, Any], name: str, ended: Ended, lacking: Callable[[str], None]
    ) -> Cancel:
        if self.refuses:
            raise RayUnavailable("no cluster")
        self.sent.append((errand, options, name))
        if len(self.sent) <= self.lost:
            ended(Told("lost", {}, cause="NodeDiedError: its node died"))
        else:
            ended(perform(errand, None))
        return lambda: None


def double(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    return {"double": 2 * inputs["number"], "attempt": context.attempt}


def desk_with(away: Elsewhere, **task: Any) -> Desk:
    desk = Desk()
    effects: Effects = desk.host.effects
    effects._elsewhere = away
    desk.store.put_value("code", "topic", reference_row(double))
    desk.deploy(work_process(ray={"num_cpus": 2, "resources": {"far": 1}}, **task))
    desk.start(number=4)
    desk.turn()
    return desk


def test_work_with_options_of_a_ray_task_is_sent_with_all_that_the_other_side_needs() -> None:
    away = Away()
    desk = desk_with(away)
    ((errand, options, name),) = away.sent
    assert (options, name) == ({"num_cpus": 2, "resources": {"far": 1}}, "work of i")
    assert (errand.topic, errand.inputs, errand.context.node) == ("topic", {"number": 4}, "work")
    assert errand.most == desk.settings.max_variable
    assert (desk.status(), desk.variables()) == ("completed", {"number": 4, "double": 8, "attempt": 1})
    desk.close()


def test_work_that_was_lost_is_an_incident_also_with_retries_left_unless_it_is_idempotent() -> None:
    """N10: whether its effect happened, only a person can find out."""
    desk = desk_with(Away(lost=1), retries="5")
    incident = desk.state().tracks["1"].incident
    assert incident is not None
    assert incident.code == "sealed"
    assert "perhaps done, and the task is not idempotent: NodeDiedError: its node died" in incident.cause
    desk.close()


def test_idempotent_work_that_was_lost_is_done_again_but_not_for_ever() -> None:
    desk = desk_with(Away(lost=2), idempotent=True)
    assert (desk.status(), desk.variables()["attempt"]) == ("completed", 3)
    assert len(desk.history(event="sealed")) == 2
    desk.close()
    desk = desk_with(Away(lost=3), idempotent=True, retries="9")
    assert desk.waiting() == [("incident", "work")]
    desk.close()


def test_lost_idempotent_work_with_a_policy_waits_for_its_pause() -> None:
    away = Away(lost=1)
    desk = desk_with(away, idempotent=True, retries="R2/PT1H")
    assert desk.waiting() == [("timer", "work")]
    assert not desk.record().resident
    desk.advance(HOUR)
    assert (desk.status(), len(away.sent)) == ("completed", 2)
    desk.close()


def test_work_that_cannot_even_be_sent_has_failed() -> None:
    desk = desk_with(Away(refuses=True))
    incident = desk.state().tracks["1"].incident
    assert incident is not None
    assert (incident.code, incident.cause) == ("failure", "no cluster")
    desk.close()


def test_the_other_side_refuses_a_result_that_is_too_large_before_it_is_sent_back() -> None:
    away = Away()
    desk = desk_with(away)
    errand = away.sent[0][0]
    small = Errand(errand.topic, errand.row, errand.inputs, errand.context, 5)
    told = perform(small, None)
    assert (told.kind, told.values) == ("failed", {})
    assert "the limit is 5 (max_variable)" in told.cause
    missing = Errand("topic", b'{"ref": "not_there:work"}', {}, errand.context, 0)
    assert perform(missing, None).cause.startswith("UnregisteredCallable: topic 'topic': module not_there")
    desk.close()


def test_a_history_line_of_a_failed_attempt_says_why() -> None:
    desk = Desk({"topic": lambda inputs: 1 / 0})
    desk.deploy(work_process(retries="1"))
    desk.start()
    desk.turn()
    entries = [entry for entry in map(_read, desk.record().history) if entry.event in ("failed", "incident")]
    assert [(entry.event, entry.detail) for entry in entries] == [
        ("failed", "ZeroDivisionError: division by zero"),
        ("incident", "ZeroDivisionError: division by zero"),
    ]
    desk.close()


def _read(entry: bytes) -> HistoryEntry:
    from gobpm_ray.checkpoint.rows import read_history_entry

    return read_history_entry(entry)
