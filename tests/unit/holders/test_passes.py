"""Holders pass by pass, without Ray and without waiting: order, failures by their cause, and what is said about it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence

import pytest

from gobpm_ray.errors import InvalidPayload, StoreUnavailable
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.draft import every
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import ArmRow, Commit, DueRow, PendingRow, Routed
from gobpm_ray.settings import Settings
from holders.loop import LATE_MS
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder
from tests.unit.runtime.desk import DAY, HOUR, Desk


class Faulty(MemoryStore):
    """The real memory store; named rows cannot be folded, for want of the store or for what they say."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.away: set[str] = set()
        self.wrong: set[str] = set()
        self.routed: list[str] = []
        self.fire_fails = 0

    def route(self, seq: int, limit: int, key: str = "") -> Routed:
        row = self._pending[seq].row
        if row.id in self.away:
            raise StoreUnavailable("no route to the store")
        if row.id in self.wrong:
            raise InvalidPayload("its key has no form")
        self.routed.append(row.id)
        return super().route(seq, limit, key)

    def fire(self, rows: Sequence[DueRow]) -> int:
        if self.fire_fails:
            self.fire_fails -= 1
            raise StoreUnavailable("no route to the store")
        return super().fire(rows)


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk(store_class=Faulty)
    yield desk
    desk.close()


def catcher(key: str = "=n") -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start().catch("one", message="m", key=key).catch("two", message="m", key=key).end()
    return process


def test_an_environment_failure_keeps_the_row_and_blocks_later_ones_of_its_key(desk: Desk) -> None:
    """H6, M53: order per key is kept, other keys go on."""
    store = desk.store
    assert isinstance(store, Faulty)
    desk.deploy(catcher())
    for instance, n in (("a", 1), ("b", 2)):
        desk.start(instance_id=instance, n=n)
    desk.turn()
    desk.publish("m", 1, text="first")
    desk.publish("m", 1, text="second")
    desk.publish("m", 2, text="other key")
    store.away = {"d1"}
    outcome = desk.messages.pass_once()
    assert (outcome.folded, outcome.kept) == (1, 2)
    assert store.routed == ["d3"]
    store.away = set()
    desk.turn()
    assert store.routed == ["d3", "d1", "d2"]
    assert desk.status("a") == "completed"
    assert desk.variables("a")["text"] == "second"


def test_a_content_failure_is_loud_and_blocks_nobody(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """H6"""
    store = desk.store
    assert isinstance(store, Faulty)
    for _ in range(3):
        desk.publish("m", 1)
    store.wrong = {"d1"}
    outcome = desk.messages.pass_once()
    assert (outcome.folded, outcome.refused) == (2, 1)
    assert "message d1 of 'm' cannot be folded: its key has no form" in caplog.text


def test_a_store_that_is_away_ends_the_pass_after_a_few_rows(desk: Desk) -> None:
    store = desk.store
    assert isinstance(store, Faulty)
    for number in range(50):
        desk.publish("m", number)
    store.away = {f"d{number}" for number in range(1, 51)}
    assert desk.messages.pass_once().kept == 3


def test_a_pass_ends_though_every_fold_brings_a_new_row(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """H3: the cursor rises and a pass is bounded."""
    store = desk.store
    route = store.route

    def and_another(seq: int, limit: int) -> Routed:
        desk.publish("m", seq)
        return route(seq, limit)

    monkeypatch.setattr(store, "route", and_another)
    monkeypatch.setattr("holders.message.BATCH", 4)
    monkeypatch.setattr("holders.message.BATCHES", 3)
    for _ in range(4):
        desk.publish("m", 0)
    outcome = desk.messages.pass_once()
    assert outcome.folded == 12
    assert outcome.more


def test_a_broadcast_wakes_all_in_bounded_calls(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """M54, H1"""
    monkeypatch.setattr("holders.message.BATCH", 10)
    process = ProcessBuilder("p")
    process.start().catch("hear", signal="go").end()
    desk.deploy(process)
    for number in range(25):
        desk.start(instance_id=f"i{number}")
    desk.turn()
    desk.signal("go")
    outcome = desk.messages.pass_once()
    assert (outcome.folded, outcome.woken) == (1, 25)
    desk.turn()
    assert len(desk.store.instances(ended=True)) == 25


def test_due_deadlines_fire_in_batches_each_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """T42"""
    monkeypatch.setattr("holders.timer.BATCH", 10)
    process = ProcessBuilder("p")
    process.start().catch("wait", timer="PT1H").end()
    desk.deploy(process)
    for number in range(25):
        desk.start(instance_id=f"i{number}")
    desk.turn()
    desk.store.set_clock(desk.store.now() + HOUR)
    assert desk.timers.pass_once().folded == 25
    assert desk.timers.pass_once().folded == 0
    desk.turn()
    assert len(desk.store.instances(ended=True)) == 25


def test_a_failed_fire_leaves_the_deadline_due(desk: Desk) -> None:
    store = desk.store
    assert isinstance(store, Faulty)
    process = ProcessBuilder("p")
    process.start().catch("wait", timer="PT1H").end()
    desk.deploy(process)
    desk.start()
    desk.turn()
    store.set_clock(store.now() + HOUR)
    store.fire_fails = 1
    with pytest.raises(StoreUnavailable):
        desk.timers.pass_once()
    desk.turn()
    assert desk.status() == "completed"


def test_a_cycle_that_slept_fires_once_and_then_on_its_grid(desk: Desk) -> None:
    """T39, X12: a day down is one catch-up start, and the next deadline is on the old grid."""
    process = ProcessBuilder("p")
    process.start("tick", timer=every("R/PT5M")).end()
    desk.deploy(process)
    begin = desk.store.now()
    desk.store.set_clock(begin + DAY + 60_000)
    outcome = desk.timers.pass_once()
    assert outcome.started == 1
    assert desk.store.due(1).next_deadline == begin + DAY + 5 * 60_000


def test_a_damaged_start_timer_fires_once_more_and_blocks_nobody(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    process = ProcessBuilder("p")
    process.start("tick", timer=every("R/PT5M")).end()
    desk.deploy(process)
    wait = next(iter(desk.store._starts["p"].values()))
    wait.arm = type(wait.arm)(wait.arm.wait, "timer", "tick", wait.arm.key, wait.arm.deadline, row=b"?")
    desk.store.set_clock(desk.store.now() + HOUR)
    outcome = desk.timers.pass_once()
    assert (outcome.started, outcome.refused) == (1, 1)
    assert "start timer @:tick:0:0 of p goes no further" in caplog.text
    assert desk.timers.pass_once().folded == 0


def test_expired_leases_go_back_to_ready_and_late_messages_to_the_dead(desk: Desk) -> None:
    """N9, M51"""
    process = ProcessBuilder("p")
    process.start().catch("wait", timer="PT1H").end()
    desk.deploy(process)
    desk.start()
    assert desk.store.claim("dead:1:1") is not None
    desk.live_ms += desk.settings.lease_ttl_ms
    outcome = desk.tasks.pass_once()
    assert (outcome.woken, outcome.folded) == (1, 1)
    assert desk.tasks.counters.stale_requeued == 1
    desk.publish("nobody", ttl=HOUR)
    desk.turn()
    assert desk.store.population().parked == 1
    desk.store.set_clock(desk.store.now() + HOUR)
    assert desk.tasks.pass_once().folded == 1
    assert desk.store.population().dead == 1


def test_an_idle_pass_moves_nothing(desk: Desk) -> None:
    """H8"""
    outcomes = [holder.pass_once() for holder in (desk.messages, desk.timers, desk.tasks)]
    assert not any(outcome.moved or outcome.more for outcome in outcomes)


# --- the loop


class Listening(Faulty):
    """Its bells return at once, and stop the loop after `rounds`."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)
        self.stop = threading.Event()
        self.rounds = 3
        self.waits: list[float] = []
        self.lists = 0
        self.fails: Exception | None = None

    def wait_bell(self, bell: str, timeout_s: float) -> bool:
        self.waits.append(timeout_s)
        if len(self.waits) >= self.rounds:
            self.stop.set()
        return True

    def pending(self, after_seq: int, limit: int) -> list[PendingRow]:
        self.lists += 1
        if self.fails is not None:
            failure, self.fails = self.fails, None
            raise failure
        return super().pending(after_seq, limit)


def listening(**settings: object) -> tuple[Listening, Settings, list[int]]:
    chosen = Settings(**({"holder_tick_ms": 1} | settings))  # type: ignore[arg-type]
    live = [1_800_000_000_000]
    return Listening(chosen, lambda: live[0]), chosen, live


@pytest.mark.parametrize("failure", [StoreUnavailable("gone"), ValueError("a fault")])
def test_a_failing_pass_never_ends_the_loop(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """H7"""
    store, settings, _ = listening()
    store.fails = failure
    MessageHolder(store, settings).run(store.stop)
    assert store.lists == store.rounds + 1
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_the_backlog_is_said_at_the_start_and_late_rows_after_the_first_pass(caplog: pytest.LogCaptureFixture) -> None:
    """H7: INFO with the backlog, WARN with id and wait, not on the first pass."""
    caplog.set_level(logging.INFO)
    store, settings, live = listening()
    for delivery in ("old", "older"):
        store.publish(delivery, "message", "mk", "m", b"{}", DAY)
    store.away = {"old"}
    live[0] += LATE_MS + 1
    MessageHolder(store, settings, live_ms=lambda: live[0]).run(store.stop)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "message: begins, 2 messages pending, 0 signals pending"
    late = [record for record in caplog.records if "waited 300 s" in record.getMessage()]
    assert [record.levelno for record in late] == [logging.WARNING] * 2, "two later passes"
    assert "message old of 'm'" in late[0].getMessage()


def test_a_second_holder_of_a_kind_idles_while_the_first_lives() -> None:
    """Design section 4: the order lease."""
    store, settings, live = listening()
    assert store.order_lease("message", "first", 5_000)
    second = MessageHolder(store, settings)
    thread = threading.Thread(target=second.run, args=(store.stop,), daemon=True)
    thread.start()
    thread.join(0.05)
    assert store.lists == 0
    live[0] += 5_000
    thread.join(10)
    assert not thread.is_alive()
    assert store.lists == store.rounds


def test_the_timer_sleeps_until_its_next_deadline_but_not_on_a_clock_that_stands() -> None:
    store, settings, live = listening(holder_tick_ms=1_000)
    store.deploy("p", b"json\n{}", ())
    store.start("p", 0, "i", "d", "", b"{}")
    claim = store.claim("t:1")
    assert claim is not None
    arms = [ArmRow("w", "timer", "n", deadline=live[0] + 40)]
    store.commit(Commit("i", "t:1", claim.version, "c", parts={"h": b"{}"}, consumed=["d"], arms=arms))
    TimerHolder(store, settings).run(store.stop)
    assert store.waits == [0.04, 1.0, 1.0]


@pytest.mark.parametrize("kind", [MessageHolder, TimerHolder, TaskHolder])
def test_every_holder_ends_when_it_is_told_to(kind: type[MessageHolder]) -> None:
    store, settings, _ = listening()
    kind(store, settings).run(store.stop)
    assert len(store.waits) == store.rounds


def test_deadlines_that_were_due_for_long_are_warned_of_once_a_pass_on_a_running_clock(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """H7: not on the first pass, and not because a manual clock jumped."""
    store, settings, live = listening()
    timers = TimerHolder(store, settings, live_ms=lambda: live[0])
    store.deploy("p", b"json\n{}", [ArmRow("@:tick:0:0", "timer", "tick", deadline=live[0] + 1)])
    live[0] += LATE_MS + 1_000
    assert timers.pass_once().behind == 0
    timers._passes = 1
    store.deploy("p", b"json\n{2}", [ArmRow("@:tock:0:0", "timer", "tock", deadline=live[0] + 1)])
    live[0] += LATE_MS + 1_000
    assert timers.pass_once().behind == 1
    assert "1 deadlines were due for more than 300 s, first @:tock:0:0 of @p" in caplog.text
    caplog.clear()
    store.manual_clock(live[0] + DAY)
    store.deploy("p", b"json\n{3}", [ArmRow("@:tack:0:0", "timer", "tack", deadline=live[0] + 1)])
    assert timers.pass_once().behind == 1
    assert caplog.text == ""
