"""What a host does when the wake fails, the lease is lost, or the store is away: nothing twice, nothing silently."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from gobpm_ray.checkpoint import rows
from gobpm_ray.checkpoint.codec import dump
from gobpm_ray.errors import StoreUnavailable, UnknownProcess
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Claim, Commit, CommitResult, Definition
from tests.unit.runtime.desk import HOUR, Desk


class Faulty(MemoryStore):
    """The real memory store, with replies that get lost and definitions that go missing."""

    lost_replies = 0
    """Commits that happen and whose answer never comes."""
    down = 0
    """Commits that never happen."""
    missing = False
    seen: list[str]

    def commit(self, commit: Commit) -> CommitResult:
        self.__dict__.setdefault("seen", []).append(commit.commit_id)
        if self.down > 0:
            self.down -= 1
            raise StoreUnavailable("no route to the store")
        result = super().commit(commit)
        if self.lost_replies > 0:
            self.lost_replies -= 1
            raise StoreUnavailable("connection reset after the request")
        return result

    def definition(self, process_id: str, version: int = 0) -> Definition | None:
        return None if self.missing and version else super().definition(process_id, version)


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk(store_class=Faulty)
    process = ProcessBuilder("p")
    process.start().catch("wait", timer="PT2H").script_task("count", "=n + 1", result="n").end("end")
    desk.deploy(process)
    yield desk
    desk.close()


def test_a_missing_definition_keeps_the_hold_and_heals_when_it_is_deployed(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """F31, F32, D18: one attempt per back-off, loud, and no restart."""
    assert isinstance(desk.store, Faulty)
    desk.start(n=0)
    desk.turn()
    desk.host.close()
    desk.host = desk.new_host("a2")  # a fresh host: nothing is cached
    desk.store.missing = True
    desk.store.set_clock(desk.store.now() + 2 * HOUR)
    desk.turn()
    assert desk.host.counters.abandoned == 1, "one attempt, then the back-off"
    assert len(desk.record().inbox) == 1, "the trigger is held"
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "instance i" in errors[0]
    assert "process p version 1 is not deployed" in errors[0]
    assert isinstance(desk.host.last_failure, UnknownProcess)
    desk.live_ms += desk.settings.wake_backoff_ms
    desk.turn()
    assert desk.host.counters.abandoned == 2
    desk.store.missing = False
    desk.live_ms += desk.settings.wake_backoff_ms
    desk.turn()
    assert desk.status() == "completed"
    assert desk.variables() == {"n": 1}


def test_a_successful_wake_logs_no_error(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """F35, D6"""
    desk.start(n=0)
    desk.advance(2 * HOUR)
    assert desk.status() == "completed"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_lost_reply_is_asked_for_again_under_the_same_commit_id(desk: Desk) -> None:
    """Design section 7: the same commit id again answers as the first time, the next claim included."""
    assert isinstance(desk.store, Faulty)
    desk.start(instance_id="a", n=0)
    desk.start(instance_id="b", n=10)
    desk.store.lost_replies = 1
    desk.turn()
    first, second = desk.store.seen[:2]
    assert first == second
    assert desk.host.counters.handed_over == 1, "the claim of the lost reply was not lost"
    assert desk.host.counters.fenced == 0
    desk.advance(2 * HOUR)
    assert (desk.variables("a"), desk.variables("b")) == ({"n": 1}, {"n": 11})
    assert desk.history("a").count("count") == 1


def test_a_store_that_is_away_for_a_moment_is_asked_until_it_answers(desk: Desk) -> None:
    assert isinstance(desk.store, Faulty)
    desk.start(n=0)
    desk.store.down = 3
    desk.turn()
    assert len(set(desk.store.seen)) == 1
    assert desk.host.counters.retried == 3
    assert desk.waiting() == [("timer", "wait")]


def test_an_instance_whose_lease_is_lost_is_dropped_without_a_trace(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C60, C61, N8: a zombie's commit is refused; the new claimer does the work once."""
    desk.start(n=0)
    desk.turn()
    zombie = desk.new_host("zombie")
    programs = zombie.programs
    get = programs.get

    def swept_meanwhile(process_id: str, version: int):
        desk.live_ms += desk.settings.lease_ttl_ms
        desk.store.sweep()
        zombie.stop()  # or it would claim it again, as anybody may
        return get(process_id, version)

    monkeypatch.setattr(programs, "get", swept_meanwhile)
    desk.store.set_clock(desk.store.now() + 2 * HOUR)
    desk.fold()
    before = desk.record()
    assert zombie.serve_once()
    assert zombie.counters.fenced == 1
    assert zombie.counters.commits == 0
    assert desk.record().parts == before.parts
    zombie.close()
    monkeypatch.undo()
    desk.turn()
    assert desk.variables() == {"n": 1}
    assert desk.history().count("count") == 1


def test_a_corrupt_record_fails_loudly_and_the_others_go_on(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """A79"""
    desk.start(instance_id="broken", n=0)
    desk.start(instance_id="sound", n=0)
    desk.turn()
    desk.store._instances["broken"].parts["t1"] = b'{"n": 5'
    desk.advance(2 * HOUR)
    assert desk.status("sound") == "completed"
    assert desk.status("broken") == "active"
    assert "instance broken" in caplog.text
    assert "part 't1' of its checkpoint is damaged" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_checkpoint_of_a_newer_release_is_refused_by_both_numbers(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """D20: the host leaves it to a newer node instead of guessing, or of taking it for a store that is away."""
    desk.start(n=0)
    desk.turn()
    desk.store._instances["i"].parts["h"] = dump({"v": 2, "shape": "unknown"})
    desk.advance(2 * HOUR)
    assert "schema 2, this release reads up to 1" in caplog.text
    assert desk.host.counters.abandoned == 1
    assert len(desk.record().inbox) == 1


def test_a_claim_that_finds_nothing_to_do_is_counted_and_released(desk: Desk) -> None:
    """N7: suspended again with its waits intact; a signal of the process, not a fact of the instance."""
    desk.start(n=0)
    desk.turn()
    before = desk.waiting()
    with desk.store._lock:
        desk.store._make_ready(desk.store._instances["i"], desk.live_ms)
    assert desk.host.serve_once()
    assert desk.host.counters.suspended_without_wake == 1
    assert desk.waiting() == before
    assert not desk.record().resident
    assert desk.history(event="incident") == []


def test_a_wake_of_few_parts_reads_only_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoint in parts: of many parallel waits a wake touches its own; what it lacks is loaded, never guessed."""
    wide = Desk(whole_parts=0)
    process = ProcessBuilder("p")
    process.start().parallel("fork")
    for number in range(5):
        process.at("fork").catch(f"w{number}", timer=f"PT{number + 1}H").to("join")
    process.first.parallel("join").end("end")
    wide.deploy(process)
    wide.start()
    wide.turn()
    claims: list[Claim] = []
    claim = wide.store._claimed

    def noted(*args: Any, **more: Any) -> Claim:
        claims.append(claim(*args, **more))
        return claims[-1]

    monkeypatch.setattr(wide.store, "_claimed", noted)
    wide.advance(HOUR)
    assert not claims[0].complete
    assert sorted(claims[0].parts) == ["h", "s0", "t1"]
    wide.advance(4 * HOUR)
    assert wide.status() == "completed"
    assert wide.history()[-2:] == ["join", "end"]
    wide.close()


def test_a_step_that_needs_more_than_its_parts_loads_the_whole_instance() -> None:
    """PartsMissing: a terminate end ends tokens that the trigger did not touch."""
    desk = Desk(whole_parts=0)
    process = ProcessBuilder("p")
    process.start().parallel("fork").catch("soon", timer="PT1H").end("stop", terminate=True)
    process.at("fork").user_task("never").end()
    desk.deploy(process)
    desk.start()
    desk.advance(HOUR)
    assert desk.status() == "completed"
    assert desk.host.counters.reloaded == 1
    assert desk.store.tasks() == []
    desk.close()


def test_a_store_that_stays_away_ends_the_serving_by_name(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor that cannot reach the store for a lease's lifetime must not go on (design section 3)."""
    assert isinstance(desk.store, Faulty)
    ticks = iter(range(10_000))
    monkeypatch.setattr("tenacity.time.monotonic", lambda: float(next(ticks)))
    desk.start(n=0)
    desk.store.down = 1_000_000
    with pytest.raises(StoreUnavailable):
        desk.host.serve_once()
    desk.store.down = 0
    desk.live_ms += desk.settings.lease_ttl_ms
    desk.advance(2 * HOUR)
    assert desk.status() == "completed"
    assert desk.variables() == {"n": 1}


@pytest.mark.parametrize("how", ["script", "statements", "input", "output"])
def test_a_computed_value_that_cannot_be_stored_is_an_incident_of_its_element(how: str) -> None:
    """Not a wake that fails for ever: the siblings go on, and an operator resolves it."""
    desk = Desk(auto_complete=True)
    process = ProcessBuilder("p")
    at = process.start().parallel("fork")
    if how == "script":
        at = at.script_task("bad", "=[{rule: function(x) x}]", result="rules")
    elif how == "statements":
        at = at.script_task("bad", "rules = [{'rule': {1: 2}}]", language="python")
    elif how == "input":
        at = at.service_task("bad", "topic", inputs={"rules": "=[{rule: function(x) x}]"})
    else:
        at = at.service_task("bad", "topic", outputs={"rules": "=[{rule: function(x) x}]"})
    at.end()
    process.at("fork").script_task("good", "=1 + 1", result="two").end("sibling")
    desk.deploy(process)
    desk.start()
    desk.turn()
    assert desk.host.counters.abandoned == 0
    assert desk.waiting() == [("incident", "bad")]
    assert desk.variables() == {"two": 2}
    assert "sibling" in desk.history()
    (cause,) = [rows.read_history_entry(e).detail for e in desk.record().history if b'"incident"' in e]
    assert "variable 'r" in cause
    assert "cannot be stored" in cause
    desk.close()
