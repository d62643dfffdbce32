"""Every scenario's first leg, computed by the client of a bulk: what a host makes of the same start, or left to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from gobpm_ray.checkpoint import rows
from gobpm_ray.engine.operations import Operations
from gobpm_ray.errors import GobpmError
from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.first_leg import FirstLegs
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import Settings
from tests.conformance.cases import Case, cases

SETTINGS = Settings(hand_over=False, history_limit=100_000)
T0 = 1_767_225_600_000
LIVE = 1_800_000_000_000


def _starts() -> Iterator[Case]:
    """Of each model every different way in which its cases start it."""
    seen = set()
    for case in cases():
        begun = (case.model, case.scenario.process, repr(case.scenario.variables), case.scenario.now_ms)
        if not case.missing and begun not in seen:
            seen.add(begun)
            yield case


STARTS = list(_starts())


class Counting(MemoryStore):
    """How many were born parked."""

    born = 0

    def start_parked(self, starts: Any) -> Any:
        answers = super().start_parked(starts)
        self.born += sum(answer is not None for answer in answers)
        return answers


def _store(case: Case) -> tuple[Counting, str]:
    store = Counting(SETTINGS, lambda: LIVE)
    store.manual_clock(case.scenario.now_ms or T0)
    deployed = Operations(store, SETTINGS).deploy(case.main, *case.beside, job_nodes=case.scenario.job_nodes)
    return store, case.scenario.process or next(d.process_id for d in deployed)


def _told(store: MemoryStore) -> dict[str, object]:
    return {
        "instances": {name: store.instance(name) for _, name in store.instances()},
        "facts": [fact for _, fact in store.facts()],
        "due": store.due(1_000),
        "tasks": (store.tasks(), store.tasks("job")),
        "pending": [dataclasses.replace(row, accepted_live=0) for row in store.pending(0, 1_000)],
        "ready": store.readiness(),
    }


@pytest.mark.parametrize("case", STARTS, ids=lambda case: case.id)
def test_a_first_leg_is_the_same_whoever_computes_it(case: Case) -> None:
    """Promises 1 and 3: nothing in the store tells a bulk's client from a host, down to the last byte."""
    try:
        other, process = _store(case)
    except GobpmError:
        pytest.skip("not deployed: the case is about its refusal")
    start = (process, 0, "i", "d", "bk", rows.payload(dict(case.scenario.variables)))
    (accepted,) = FirstLegs(other, SETTINGS, Programs(other, SETTINGS)).start_many([start])
    assert (accepted.instance_id, accepted.duplicate) == ("i", False)

    plain, _ = _store(case)
    plain.start(*start)
    if other.born:
        host = Host(plain, SETTINGS, Programs(plain, SETTINGS), Callables(lambda _topic: None), "a")
        host.serve_once()
        host.close()
    assert _told(other) == _told(plain)
    BORN.add((case.model, bool(other.born)))


BORN: set[tuple[str, bool]] = set()


def test_most_kinds_of_waits_are_parked_so_and_work_is_not() -> None:
    """The comparison above would be empty otherwise."""
    if len(BORN) < len({case.model for case in STARTS}) / 2:
        pytest.skip("asked for alone")
    assert sum(born for _, born in BORN) > 60
    assert sum(not born for _, born in BORN) > 20
