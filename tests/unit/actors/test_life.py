"""An InstanceActor's life without Ray: when it serves, lingers, stays and ends, and what it shows of itself."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from actors.life import MEMORY_LIMIT, Life
from actors.registry import ActorRow, actor_rows, write_actor
from gobpm_ray.errors import StoreUnavailable
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.settings import Settings

ROW = ActorRow("InstanceActor-7-abc123", 7, "192.0.2.1:6379")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class ScriptedHost:
    """A host whose visits are scripted; beyond the script nobody is ready, and a visit takes the time it may wait."""

    def __init__(self, clock: Clock, *script: bool | Exception | Callable[[], bool]) -> None:
        self.clock = clock
        self.script = list(script)
        self.clean = True
        self.spent = False
        self.hosting = ""
        self.waited: list[float] = []
        self.stopped_with: int | None = None
        self.closed = False

    def serve_once(self, timeout_s: float) -> bool:
        if self.script:
            step = self.script.pop(0)
            if isinstance(step, Exception):
                raise step
            return step() if callable(step) else step
        self.waited.append(timeout_s)
        self.clock.now += max(timeout_s, 0.001)
        return False

    def stop(self, grace_ms: int) -> None:
        self.stopped_with = grace_ms
        self.spent = True

    def close(self) -> None:
        self.closed = True


class Stage:
    def __init__(self) -> None:
        self.shown: list[str] = []
        self.changed = threading.Event()

    def show(self, instance_id: str) -> None:
        self.shown.append(instance_id)
        self.changed.set()


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore(Settings())
    write_actor(store, ROW)
    return store


def live(
    host: ScriptedHost,
    store: MemoryStore,
    settings: Settings | None = None,
    row: ActorRow = ROW,
    memory: int = 0,
    stage: Stage | None = None,
) -> Life:
    return Life(row, host, store, settings or Settings(), stage or Stage(), monotonic=host.clock, memory=lambda: memory)


def test_it_lingers_for_as_long_as_configured_after_its_last_work_and_ends(store: MemoryStore) -> None:
    """Promise 7: free ones linger 2 s."""
    clock = Clock()
    host = ScriptedHost(clock, True, False, True)

    assert live(host, store).run() == "lingered"

    assert sum(host.waited) == pytest.approx(2.0, abs=0.01)
    assert max(host.waited) <= 0.5, "a back-off that elapses rings no bell"
    assert host.closed


def test_its_row_is_there_while_it_lives_and_gone_afterwards(store: MemoryStore) -> None:
    clock = Clock()
    seen: list[ActorRow] = []

    def look() -> bool:
        seen.extend(actor_rows(store))
        return True

    live(ScriptedHost(clock, look), store).run()

    (row,) = seen
    assert row.started
    assert row.pid > 0
    assert actor_rows(store) == []


def test_a_spare_stays_until_it_is_told_otherwise(store: MemoryStore) -> None:
    """Promise 7: configured spares."""
    clock = Clock()
    host = ScriptedHost(clock)
    life = live(host, store)
    life.keep(True)

    def look_after_a_while() -> bool:
        assert actor_rows(store)[0].spare
        life.keep(False)
        return False

    original = host.serve_once

    def serve(timeout_s: float) -> bool:
        if clock.now > 1_060:
            host.script.append(look_after_a_while)
        return original(timeout_s)

    host.serve_once = serve  # type: ignore[method-assign]

    assert life.run() == "lingered"
    assert clock.now > 1_060


def test_without_hand_over_it_ends_after_its_release(store: MemoryStore) -> None:
    """Design 3: `hand_over=False` is the plain form: every release ends the actor."""
    host = ScriptedHost(Clock())

    def one() -> bool:
        host.spent = True
        return True

    host.script.append(one)

    assert live(host, store, Settings(hand_over=False)).run() == "released"
    assert host.waited == []


def test_over_its_number_of_hand_overs_it_ends(store: MemoryStore) -> None:
    host = ScriptedHost(Clock())

    def thousandth() -> bool:
        host.spent = True
        return True

    host.script += [True, True, thousandth]

    assert live(host, store).run() == "handed over often enough"


def test_an_interrupted_callable_may_end_in_peace_and_then_the_actor_goes(store: MemoryStore) -> None:
    """Design 12: a sync callable interrupted by a boundary keeps running; the actor is not clean until it ends."""
    host = ScriptedHost(Clock())

    def leave_a_thread() -> bool:
        host.spent, host.clean = True, False
        threading.Timer(0.05, lambda: setattr(host, "clean", True)).start()
        return True

    host.script.append(leave_a_thread)

    assert live(host, store).run() == "not clean"
    assert host.clean
    assert host.waited == [], "nobody else was let in"


def test_an_actor_that_has_grown_is_not_handed_over(store: MemoryStore) -> None:
    """Design 3: handed over only when memory is under the limit."""
    host = ScriptedHost(Clock(), True)

    assert live(host, store, memory=MEMORY_LIMIT + 1).run() == "grown"


def test_a_short_absence_of_the_store_is_waited_out(store: MemoryStore) -> None:
    """H6."""
    clock = Clock()
    host = ScriptedHost(clock, StoreUnavailable("store: away"), True)

    assert live(host, store).run() == "lingered"


def test_a_store_that_is_away_for_a_leases_life_ends_the_actor(store: MemoryStore) -> None:
    """Design 3: an InstanceActor that cannot reach the store for one TTL ends itself."""
    clock = Clock()

    def away() -> bool:
        clock.now += 6.0
        raise StoreUnavailable("store: away")

    host = ScriptedHost(clock, away, away, away, True)

    reason = live(host, store).run()

    assert "store did not answer" in reason
    assert host.script == [True], "it claimed nothing more"


def test_a_fault_of_the_host_ends_the_actor_and_its_row(store: MemoryStore) -> None:
    host = ScriptedHost(Clock(), ZeroDivisionError("a fault of ours"))

    with pytest.raises(ZeroDivisionError):
        live(host, store).run()

    assert actor_rows(store) == []
    assert host.closed


def test_stopping_passes_the_grace_on_and_ends(store: MemoryStore) -> None:
    """N11."""
    clock = Clock()
    host = ScriptedHost(clock)
    life = live(host, store)

    def asked_while_it_works() -> bool:
        life.stop(1_234)
        return True

    host.script.append(asked_while_it_works)

    assert life.run() == "stopped"
    assert host.stopped_with == 1_234


def test_only_a_residency_that_lasts_is_shown(store: MemoryStore) -> None:
    """Issue 2: names make the dashboard readable: InstanceActors and whom they host."""
    clock, stage = Clock(), Stage()
    host = ScriptedHost(clock)
    life = live(host, store, stage=stage)

    def lasting() -> bool:
        host.hosting = "order-17"
        waiting = threading.Thread(target=life.wait_released, args=("order-17",))
        waiting.start()
        for _ in range(50):
            clock.now += 0.6
            if stage.changed.wait(0.1):
                break
        assert waiting.is_alive()
        host.hosting = ""
        waiting.join(5.0)
        assert not waiting.is_alive()
        return True

    host.script.append(lasting)
    life.run()

    assert stage.shown == ["order-17"]
