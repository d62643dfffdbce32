"""The two helper threads: a lease is renewed while anybody watches, and nobody hears of a lost one too late."""

from __future__ import annotations

import time
from queue import SimpleQueue

import pytest

from gobpm_ray.errors import LeaseLost, StoreUnavailable
from gobpm_ray.runtime import leasing
from gobpm_ray.runtime.leasing import Bell, Listener, Lost, Renewed, Renewer, Watched
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.settings import Settings

PATIENCE_S = 10.0


class Answers(MemoryStore):
    """Renewals and bells answer what the test lays out; the last answer is repeated."""

    answers: list[Exception | tuple[int, int]]
    rings: list[Exception | bool]

    def renew(self, instance_id: str, token: str) -> tuple[int, int]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait_instance_bell(self, instance_id: str, timeout_s: float) -> bool:
        ring = self.rings.pop(0) if len(self.rings) > 1 else self.rings[0]
        if isinstance(ring, Exception):
            raise ring
        time.sleep(0.001)
        return ring


def store_with(**answers: object) -> tuple[Answers, Settings]:
    settings = Settings(lease_ttl_ms=60, lease_renew_ms=5)
    store = Answers(settings)
    for name, value in answers.items():
        setattr(store, name, value)
    return store, settings


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leasing, "PAUSE_S", 0.002)


def test_a_heartbeat_tells_what_waits_and_survives_a_store_that_stutters() -> None:
    store, settings = store_with(answers=[StoreUnavailable("gone"), RuntimeError("a fault"), (3, 7)])
    renewer = Renewer(store, settings)
    watched = Watched("i", "a:1:1", SimpleQueue())
    renewer.watch(watched)
    assert watched.events.get(timeout=PATIENCE_S) == Renewed(3, 7)
    renewer.close()


def test_a_lease_that_cannot_be_renewed_in_its_lifetime_is_lost() -> None:
    """Design section 3: an actor that cannot reach the store for one TTL ends itself."""
    store, settings = store_with(answers=[StoreUnavailable("no route")])
    renewer = Renewer(store, settings)
    watched = Watched("i", "a:1:1", SimpleQueue())
    renewer.watch(watched)
    lost = watched.events.get(timeout=PATIENCE_S)
    assert isinstance(lost, Lost)
    assert lost.reason == "instance i: its lease could not be renewed: no route"
    renewer.close()


def test_a_lost_lease_is_heard_by_the_hosting_that_held_it_and_no_other() -> None:
    """N8"""
    store, settings = store_with(answers=[LeaseLost("not the live one")])
    renewer = Renewer(store, settings)
    first = Watched("i", "a:1:1", SimpleQueue())
    renewer.watch(first)
    assert first.events.get(timeout=PATIENCE_S) == Lost("not the live one")
    renewer.rest()
    while not first.events.empty():
        first.events.get_nowait()
    store.answers = [(0, 0)]
    second = Watched("i", "a:1:2", SimpleQueue())
    renewer.watch(second)
    assert second.events.get(timeout=PATIENCE_S) == Renewed(0, 0)
    assert first.events.empty()
    renewer.close()


def test_a_bell_is_passed_on_and_an_outage_only_delays_it() -> None:
    store, settings = store_with(rings=[StoreUnavailable("gone"), RuntimeError("a fault"), False, True, False])
    listener = Listener(store, settings)
    watched = Watched("i", "a:1:1", SimpleQueue())
    listener.watch(watched)
    assert watched.events.get(timeout=PATIENCE_S) == Bell()
    listener.close()
