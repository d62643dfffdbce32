"""What holders do so that nothing is folded for ever, and no dropped wake stays dropped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from gobpm_ray.errors import InvalidPayload, StoreRefused, StoreUnavailable
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.draft import every
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import DueRow, PendingRow, Routed
from gobpm_ray.settings import Settings
from holders.message import MessageHolder
from holders.poison import MOST_DEATHS
from holders.task import TaskHolder
from holders.timer import TimerHolder
from tests.unit.runtime.desk import DAY, HOUR, Desk


class Death(BaseException):
    """The folder's process is gone: nothing of it runs any more, no handler and no clean-up that it would have."""


class Killing(MemoryStore):
    """Rows that kill whoever folds them."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.kills: set[str] = set()
        self.away: set[str] = set()
        self.wrong: set[str] = set()
        self.full = False
        self.sizes: list[int] = []
        self.puts: list[str] = []

    def pending(self, after_seq: int, limit: int) -> list[PendingRow]:
        self.sizes.append(limit)
        return super().pending(after_seq, limit)

    def route(self, seq: int, limit: int, key: str = "") -> Routed:
        delivery = self._pending[seq].row.id
        if delivery in self.kills:
            raise Death(delivery)
        if delivery in self.away:
            raise StoreUnavailable("no route to the store")
        if delivery in self.wrong:
            raise InvalidPayload("its key has no form")
        return super().route(seq, limit, key)

    def put_value(self, table: str, name: str, value: bytes) -> None:
        self.puts.append(f"{table}/{name}")
        super().put_value(table, name, value)

    def fire_start(self, row: DueRow, next_wait: str, next_deadline: int, next_row: bytes) -> bool:
        if self.full:
            raise StoreRefused("store: its memory is full (maxmemory)")
        return super().fire_start(row, next_wait, next_deadline, next_row)


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk(store_class=Killing, holder_tick_ms=1)
    yield desk
    desk.close()


def live(store: Killing, settings: Settings) -> bool:
    """A folder's whole life, until all is folded; False: it died."""
    holder, stop = MessageHolder(store, settings), threading.Event()
    whole = holder.pass_once

    def once():
        outcome = whole()
        stop.set()
        return outcome

    holder.pass_once = once  # type: ignore[method-assign]
    holder.token = "message:the-same-actor"
    try:
        holder.run(stop)
    except Death:
        return False
    return True


def test_a_row_that_kills_its_folder_three_times_is_set_aside(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Design section 4: poison; those before and behind it are folded, each once."""
    store = desk.store
    assert isinstance(store, Killing)
    for _ in range(5):
        desk.publish("m", 1)
    store.kills = {"d3"}
    lives = 0
    while not live(store, desk.settings):
        lives += 1
        assert lives < 10
    # The first death only says that some row kills; then the guilty one is found by its own mark.
    assert lives == 1 + MOST_DEATHS
    (letter,) = store.dead()
    assert (letter.id, letter.reason) == ("d3", "poison: 3 folders died with it in hand")
    assert store.pending(0, 10) == []
    assert store.population().parked == 4
    assert "message d3 of 'm' cannot be folded: poison" in caplog.text
    assert store.values("folding") == {}


def test_one_death_blames_nobody_for_good(desk: Desk) -> None:
    """A node that goes down kills a folder with any row in hand: the row is folded by the next one."""
    store = desk.store
    assert isinstance(store, Killing)
    for _ in range(3):
        desk.publish("m", 1)
    store.kills = {"d2"}
    for _ in range(3):
        assert not live(store, desk.settings)
    store.kills = set()
    assert live(store, desk.settings)
    assert store.dead() == []
    assert store.population().parked == 3
    assert store.values("folding") == {}, "no mark outlives its row"


def test_a_folder_that_follows_a_clean_end_reads_whole_pages_and_marks_nothing(desk: Desk) -> None:
    """The ordinary pass pays nothing for poison."""
    store = desk.store
    assert isinstance(store, Killing)
    assert live(store, desk.settings)
    store.sizes.clear()
    store.puts.clear()
    for _ in range(10):
        desk.publish("m", 1)
    assert live(store, desk.settings)
    assert store.sizes == [200]
    assert store.puts == ["folding/message"]


def test_a_content_failure_is_a_dead_letter_and_counted(desk: Desk) -> None:
    """H6"""
    store = desk.store
    assert isinstance(store, Killing)
    desk.publish("m", 1)
    desk.publish("m", 1)
    store.wrong = {"d1"}
    outcome = desk.messages.pass_once()
    assert (outcome.folded, outcome.refused) == (1, 1)
    assert [letter.id for letter in store.dead()] == ["d1"]
    assert store.pending(0, 10) == []
    assert (desk.messages.counters.refused, desk.messages.counters.parked) == (1, 1)
    assert desk.messages.pass_once().refused == 0, "it comes back only by an operator"


def test_an_environment_failure_never_makes_a_dead_letter(desk: Desk) -> None:
    """H6: the row waits."""
    store = desk.store
    assert isinstance(store, Killing)
    desk.publish("m", 1)
    store.away = {"d1"}
    for _ in range(10):
        desk.messages.pass_once()
    assert store.dead() == []
    assert len(store.pending(0, 10)) == 1


def test_a_full_taker_blocks_its_key_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """M53: order per key is kept while its taker has no room."""
    desk = Desk(max_inbox=1)
    process = ProcessBuilder("p")
    process.start().user_task("work").end()
    process.boundary("work", "note", message="m", key="=n", interrupting=False).end("noted")
    desk.deploy(process)
    for instance, n in (("a", 1), ("b", 2)):
        desk.start(instance_id=instance, n=n)
    desk.turn()
    for n in (1, 1, 2):
        desk.publish("m", n)
    outcome = desk.messages.pass_once()
    assert (outcome.folded, outcome.kept) == (2, 1)
    assert "d2 'm' stays pending: its taker holds all it may" in caplog.text
    desk.turn()
    assert desk.history("a").count("noted") == 2
    assert desk.store.pending(0, 10) == []
    desk.close()


def test_a_start_timer_in_a_full_store_does_not_block_those_behind_it(desk: Desk) -> None:
    """E90: no new instance, but whoever waits for a deadline gets it."""
    store = desk.store
    assert isinstance(store, Killing)
    process = ProcessBuilder("p")
    process.start("tick", timer=every("R/PT5M")).end()
    desk.deploy(process)
    waiting = ProcessBuilder("q")
    waiting.start().catch("nap", timer="PT10M").end()
    desk.deploy(waiting)
    desk.start("q", "i")
    desk.turn()
    store.full = True
    store.set_clock(store.now() + HOUR)
    outcome = desk.timers.pass_once()
    assert (outcome.folded, outcome.kept > 0) == (1, True)
    store.full = False
    assert desk.timers.pass_once().started == 1, "one catch-up start when there is room"


# --- the walk


def drop(desk: Desk, instance: str) -> None:
    desk.store._unready(instance)


def naps(desk: Desk, count: int) -> None:
    process = ProcessBuilder("p")
    process.start().catch("nap", timer="PT1H").end()
    desk.deploy(process)
    for number in range(count):
        desk.start(instance_id=f"i{number}")


def test_the_walk_repairs_a_dropped_wake_and_counts_it(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """C69"""
    naps(desk, 3)
    drop(desk, "i1")
    outcome = desk.tasks.pass_once()
    assert (outcome.woken, desk.tasks.counters.repaired) == (1, 1)
    assert "1 instances had triggers and were not ready" in caplog.text
    desk.turn()
    assert desk.waiting("i1") == [("timer", "nap")]


def test_the_walk_takes_a_page_a_pass_and_rests_between_rounds(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """C69: near-zero idle cost."""
    monkeypatch.setattr("holders.walk.PAGE", 10)
    naps(desk, 25)
    desk.turn()
    calls: list[str] = []
    reconcile = desk.store.reconcile

    def noted(cursor: str, limit: int) -> tuple[str, int]:
        calls.append(cursor)
        return reconcile(cursor, limit)

    monkeypatch.setattr(desk.store, "reconcile", noted)
    holder = TaskHolder(desk.store, desk.settings, live_ms=lambda: desk.live_ms)
    desk.live_ms += desk.settings.reconcile_ms
    for _ in range(10):
        holder.pass_once()
    assert calls == ["", "10", "20"]
    desk.live_ms += desk.settings.reconcile_ms - 1
    holder.pass_once()
    assert len(calls) == 3
    desk.live_ms += 1
    holder.pass_once()
    assert len(calls) == 4


def test_a_successor_goes_on_where_the_walk_stood(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place is durable; at most ten pages are walked again."""
    monkeypatch.setattr("holders.walk.PAGE", 1)
    naps(desk, 40)
    desk.turn()
    first = TaskHolder(desk.store, desk.settings, live_ms=lambda: desk.live_ms)
    desk.live_ms += desk.settings.reconcile_ms
    for _ in range(15):
        first.walk.step()
    calls: list[str] = []

    def noted(cursor: str, limit: int) -> tuple[str, int]:
        calls.append(cursor)
        return "", 0

    monkeypatch.setattr(desk.store, "reconcile", noted)
    second = TaskHolder(desk.store, desk.settings, live_ms=lambda: desk.live_ms)
    second.walk.step()
    second.walk.step()
    assert calls == ["10"], "and then it rests"


def test_every_kind_tells_what_it_has_counted(desk: Desk) -> None:
    """N12: in the store's totals, when it ends at the latest."""
    desk.publish("nobody", ttl=DAY)
    store = desk.store
    assert isinstance(store, Killing)
    assert live(store, desk.settings)
    assert {name: int(count) for name, count in store.values("signals").items()} == {"folded": 1, "parked": 1}


def test_the_order_lease_is_asked_for_now_and_then_and_again_when_it_may_have_passed(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Design section 4: folding checks it; a third of its life is old enough to ask again."""
    caplog.set_level(logging.INFO)
    now = [0.0]
    holder = TimerHolder(desk.store, desk.settings, monotonic=lambda: now[0])
    assert holder._ordered()
    desk.store._orders.clear()
    assert desk.store.order_lease("timer", "a rival", 5_000)
    assert holder._ordered(), "not asked again yet"
    now[0] = 2.0
    assert not holder._ordered()
