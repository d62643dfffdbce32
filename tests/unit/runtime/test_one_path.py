"""What holds for every kind of wait: where a released token stands, who wakes it, and what a wake outlives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray.checkpoint import rows
from gobpm_ray.core.projection import tokens
from gobpm_ray.model.builder import ProcessBuilder
from holders.timer import TimerHolder
from tests.unit.runtime.desk import HOUR, Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


def two_waits(desk: Desk) -> None:
    builder = ProcessBuilder("p")
    builder.start().parallel("fork")
    builder.at("fork").catch("later", timer="PT2H").to("join")
    builder.at("fork").receive_task("hear", message="Said", key="who").to("join")
    builder.first.parallel("join").end("done")
    desk.deploy(builder)
    desk.start(who="ann")
    desk.turn()


def test_a_released_instances_tokens_still_stand_where_they_wait(desk: Desk) -> None:
    """D1: its execution is gone, its flow is not."""
    two_waits(desk)
    assert not desk.record().resident
    assert sorted(token.node for token in tokens(desk.host.programs.get("p", 1), desk.state())) == ["hear", "later"]


def test_a_message_with_a_wrong_key_wakes_nobody(desk: Desk) -> None:
    """D3, M48: the holder is what is subscribed, and compares before it wakes."""
    two_waits(desk)
    epoch = desk.record().epoch
    desk.publish("Said", "bob")
    desk.turn()
    assert (desk.record().epoch, desk.history()) == (epoch, ["start", "fork"])
    assert desk.store.population().parked == 1


def test_a_cold_restart_and_a_wake_are_the_same_hydration(desk: Desk) -> None:
    """D19: another host, that has never seen the instance, goes on as the first would have."""
    two_waits(desk)
    desk.host.close()
    desk.host = desk.new_host("a2")
    desk.publish("Said", "ann")
    desk.turn()
    desk.advance(2 * HOUR)
    assert sorted(desk.history()) == ["done", "fork", "hear", "join", "later", "start"]


def test_a_matched_wake_outlives_the_lease_of_who_claimed_it(desk: Desk) -> None:
    """N4: only the commit that consumes it clears it."""
    two_waits(desk)
    desk.publish("Said", "ann")
    desk.fold()
    for attempt in range(2):
        claim = desk.store.claim(f"gone:{attempt}:1")
        assert claim is not None
        assert [trigger.kind for trigger in claim.triggers] == ["message"]
        desk.live_ms += desk.settings.lease_ttl_ms
        assert desk.store.sweep() == 1
    desk.turn()
    assert desk.history() == ["start", "fork", "hear"]


def test_a_due_timer_fires_without_anybody_ringing(desk: Desk) -> None:
    """N6: timers have no producer; the holder's own pass finds them, and does not wait for anything (H10)."""
    two_waits(desk)
    desk.store.set_clock(desk.store.now() + 2 * HOUR)
    while desk.store.wait_bell("timer", 0):
        pass
    assert desk.timers.pass_once().moved
    desk.turn()
    assert desk.history() == ["start", "fork", "later"]


def test_overdue_timers_fire_within_one_lease_when_their_holder_was_killed(desk: Desk) -> None:
    """T43: it had the list of what is due in its hands and fired none of it. A store that was restored from an older
    state is the same: everything overdue is fired by the first pass of whoever has the order lease next."""
    two_waits(desk)
    desk.start("p", "second", who="bob")
    desk.turn()
    desk.timers.pass_once()
    desk.store.set_clock(desk.store.now() + 48 * HOUR)
    assert len(desk.store.due(100).rows) == 2  # read, and dead
    second = TimerHolder(desk.store, desk.settings, live_ms=lambda: desk.live_ms)
    second.pass_once()
    desk.live_ms += 5_000
    second.pass_once()
    assert desk.store.due(100).rows == ()
    desk.turn()
    assert desk.history() == ["start", "fork", "later"]
    assert desk.history("second") == ["start", "fork", "later"]


def test_a_cancel_of_a_held_instance_does_not_wait_for_its_resumption(desk: Desk) -> None:
    """R26, D21: and nothing of what came while it was held is run; a later timer does not revive it."""
    two_waits(desk)
    desk.store.suspend("i", True)
    desk.publish("Said", "ann")
    desk.turn()
    desk.store.deliver("i", "cancel", "", "c", rows.payload({}))
    desk.turn()
    assert (desk.status(), desk.history()) == ("terminated", ["start", "fork"])
    desk.advance(3 * HOUR)
    assert desk.status() == "terminated"
    # The message was for nobody else: it waits for another of its process.
    desk.start("p", "next", who="ann")
    desk.turn()
    assert desk.history("next") == ["start", "fork", "hear"]
