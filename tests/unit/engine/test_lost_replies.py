"""An acceptance whose answer gets lost is asked for again under its own delivery id: kept once, told once (N5)."""

from __future__ import annotations

from typing import Any

import pytest

from gobpm_ray.engine.operations import Operations
from gobpm_ray.errors import StoreUnavailable
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.settings import Settings


class Forgetful(MemoryStore):
    """Accepts, and its answer does not arrive; or does not accept at all."""

    lost = 0
    away = 0

    def _answer(self, accept: Any, *row: object, **more: object) -> Any:
        if self.away:
            self.away -= 1
            raise StoreUnavailable("no route to the store")
        answer = accept(*row, **more)
        if self.lost:
            self.lost -= 1
            raise StoreUnavailable("connection reset after the request")
        return answer

    def start(self, *row: Any) -> Any:
        return self._answer(super().start, *row)

    def publish(self, *row: Any) -> Any:
        return self._answer(super().publish, *row)

    def deliver(self, *row: Any) -> Any:
        return self._answer(super().deliver, *row)

    def complete_task(self, *row: Any, **more: Any) -> Any:
        return self._answer(super().complete_task, *row, **more)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Operations:
    monkeypatch.setattr("gobpm_ray.engine.base.RETRY_PAUSES_S", (0.0, 0.0, 0.0))
    settings = Settings()
    operations = Operations(Forgetful(settings), settings)
    process = ProcessBuilder("p")
    process.start().user_task("work").end()
    operations.deploy(process)
    return operations


@pytest.mark.parametrize("trouble", ["lost", "away"])
def test_an_answer_that_was_lost_is_asked_for_again(engine: Operations, trouble: str) -> None:
    """Whether the first call had been accepted or not, the caller hears of one acceptance."""
    store = engine.store
    assert isinstance(store, Forgetful)
    setattr(store, trouble, 2)
    started = engine.start("p")
    assert not started.duplicate
    setattr(store, trouble, 2)
    assert not engine.publish("M").duplicate
    setattr(store, trouble, 2)
    assert not engine.set(started.instance_id, {"n": 1}).duplicate
    assert len(store.instances()) == 1
    assert len(store.pending(0, 10)) == 1
    record = store.instance(started.instance_id)
    assert record is not None
    assert [trigger.kind for trigger in record.inbox] == ["start", "set"]


def test_an_id_of_the_callers_own_stays_a_duplicate_when_it_is_one(engine: Operations) -> None:
    store = engine.store
    assert isinstance(store, Forgetful)
    assert not engine.publish("M", id="mine").duplicate
    store.lost = 1
    assert engine.publish("M", id="mine").duplicate


def test_a_store_that_stays_away_is_named_after_a_few_attempts(engine: Operations) -> None:
    store = engine.store
    assert isinstance(store, Forgetful)
    store.away = 100
    with pytest.raises(StoreUnavailable, match="no route"):
        engine.start("p")
    assert store.away == 96
