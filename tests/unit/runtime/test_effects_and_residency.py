"""Effects beside triggers, recovery after a dead host, and instances that stay because a deadline is near."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.callables import EffectContext
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Commit, CommitResult
from tests.unit.runtime.desk import HOUR, Desk

PATIENCE_S = 10.0


def until(true: Callable[[], bool]) -> None:
    """Something that another thread does, and that no event tells."""
    give_up = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.001)


@contextmanager
def hosting(host: Host) -> Iterator[threading.Thread]:
    """The host serves in a thread of its own, as in its actor."""
    thread = threading.Thread(target=host.serve_once, daemon=True)
    thread.start()
    yield thread
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def work_process(**task: object) -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start().service_task("work", "topic", **task).end("end")  # type: ignore[arg-type]
    return process


def test_an_interrupting_boundary_ends_a_busy_activity_and_its_late_result_is_discarded() -> None:
    """W10, X1: the actor is not clean until the callable's thread has ended, so nothing is handed over meanwhile."""
    begun, go = threading.Event(), threading.Event()

    def slow(inputs: dict[str, object]) -> dict[str, object]:
        begun.set()
        go.wait(PATIENCE_S)
        return {"result": "too late"}

    desk = Desk({"topic": slow})
    process = work_process()
    process.boundary("work", "late", timer="PT1H").script_task("note", "=true", result="escalated").end("escalation")
    desk.deploy(process)
    desk.start()
    with hosting(desk.host):
        assert begun.wait(PATIENCE_S)
        assert desk.host.hosting == "i"
        desk.store.set_clock(desk.store.now() + HOUR)
        desk.fold()
        until(lambda: desk.status() == "completed")
    assert desk.variables() == {"escalated": True}
    assert not desk.host.clean
    desk.start(instance_id="next")
    assert not desk.host.serve_once(), "an unclean host takes nothing"
    assert desk.host.spent
    go.set()
    until(lambda: desk.host.clean)
    assert desk.host.counters.discarded == 1
    assert desk.variables() == {"escalated": True}
    assert desk.host.serve_once()
    desk.close()


def test_effects_of_several_tokens_run_at_once_sync_and_async() -> None:
    together = threading.Barrier(2)

    def in_a_thread(inputs: dict[str, object]) -> dict[str, object]:
        together.wait(PATIENCE_S)
        return {"sync": inputs["n"]}

    async def on_a_loop(inputs: dict[str, object], context: EffectContext) -> dict[str, object]:
        await asyncio.get_running_loop().run_in_executor(None, together.wait, PATIENCE_S)
        return {"async": context.idempotency_key}

    desk = Desk({"a": in_a_thread, "b": on_a_loop})
    process = ProcessBuilder("p")
    process.start().parallel("fork").service_task("one", "a").parallel("join").end()
    process.at("fork").service_task("two", "b").to("join")
    desk.deploy(process)
    desk.start(n=3)
    desk.turn()
    assert desk.status() == "completed"
    variables = desk.variables()
    assert variables["sync"] == 3
    assert str(variables["async"]).startswith("i:")
    desk.close()


def test_an_interrupted_coroutine_is_stopped_and_the_host_is_clean_at_once() -> None:
    """W10: what can be stopped is stopped."""
    begun, stopped = threading.Event(), threading.Event()

    async def slow(inputs: dict[str, object]) -> None:
        begun.set()
        try:
            await asyncio.sleep(PATIENCE_S)
        except asyncio.CancelledError:
            stopped.set()
            raise

    desk = Desk({"topic": slow})
    process = work_process()
    process.boundary("work", "late", timer="PT1H").end("escalation")
    desk.deploy(process)
    desk.start()
    with hosting(desk.host):
        assert begun.wait(PATIENCE_S)
        desk.store.set_clock(desk.store.now() + HOUR)
        desk.fold()
    assert desk.status() == "completed"
    assert stopped.wait(PATIENCE_S)
    until(lambda: desk.host.clean)
    desk.close()


class Noting(MemoryStore):
    commits: list[str]
    """The residency that each commit asked for."""

    def commit(self, commit: Commit) -> CommitResult:
        self.__dict__.setdefault("commits", []).append(commit.residency)
        return super().commit(commit)


def test_the_result_of_one_effect_and_the_intent_of_the_next_are_one_commit() -> None:
    """Design section 9: n effects in a row are n + 1 commits, and each intent is durable before its effect begins."""
    seen: list[str] = []

    def work(inputs: dict[str, object], context: EffectContext) -> None:
        state = desk.state()
        seen.append(state.tracks["1"].node)
        assert state.tracks["1"].attempt is not None

    desk = Desk({"topic": work}, Noting)
    process = ProcessBuilder("p")
    process.start().service_task("one", "topic").service_task("two", "topic").service_task("three", "topic").end()
    desk.deploy(process)
    desk.start()
    desk.turn()
    assert desk.status() == "completed"
    assert seen == ["one", "two", "three"]
    assert isinstance(desk.store, Noting)
    assert desk.store.commits == ["keep", "keep", "keep", "release"]
    desk.close()


def dead_in_effect(desk: Desk) -> None:
    """A host dies inside its first effect: the lease expires and is swept."""
    begun, go = threading.Event(), threading.Event()

    def hang(inputs: dict[str, object]) -> None:
        begun.set()
        go.wait(PATIENCE_S)

    desk.callables.local["topic"] = hang
    dying = desk.new_host("dying")
    with hosting(dying):
        assert begun.wait(PATIENCE_S)
        assert desk.store.release_dead("dying") == 1
        dying.stop(0)
    go.set()
    dying.close()


def test_an_attempt_cut_off_by_a_crash_is_sealed_unless_the_task_is_idempotent() -> None:
    """A72, N10: an operator's retry runs it, once more."""
    desk = Desk()
    desk.deploy(work_process())
    desk.start()
    dead_in_effect(desk)
    calls: list[int] = []
    desk.callables.local["topic"] = lambda inputs: calls.append(1)
    desk.turn()
    assert calls == []
    assert desk.waiting() == [("incident", "work")]
    assert desk.host.counters.sealed == 1
    assert not desk.record().resident, "an open incident is a wait for an operator (D24)"
    assert [fact["trigger"] for fact in desk.facts("Hydrated")] == ["recovery"]
    (wait,) = desk.record().waits
    desk.store.deliver("i", "retry", wait, "op-1", b"{}")
    desk.turn()
    assert calls == [1]
    assert desk.status() == "completed"
    desk.close()


def test_an_idempotent_attempt_is_driven_again_under_the_same_key() -> None:
    """A71: with the next attempt's number, and finished before the host lets go."""
    desk = Desk()
    desk.deploy(work_process(idempotent=True))
    desk.start()
    dead_in_effect(desk)
    seen: list[EffectContext] = []

    def work(inputs: dict[str, object], context: EffectContext) -> None:
        seen.append(context)

    desk.callables.local["topic"] = work
    desk.turn()
    assert desk.status() == "completed"
    assert [(c.attempt, c.idempotency_key) for c in seen] == [(2, "i:1:work:2")]
    desk.close()


def test_an_open_effect_is_recovered_even_if_the_claim_brought_other_parts_only() -> None:
    """The head counts open effects, so a claimer of a few parts learns that others need recovery."""
    desk = Desk(whole_parts=0)
    process = ProcessBuilder("p")
    process.start().parallel("fork").service_task("work", "topic").parallel("join").end()
    process.at("fork").catch("wait", timer="PT1H").to("join")
    desk.deploy(process)
    desk.start()
    dead_in_effect(desk)
    desk.store.set_clock(desk.store.now() + HOUR)
    desk.timers.pass_once()
    assert desk.host.serve_once()
    assert desk.waiting() == [("incident", "work")]
    assert desk.state().scopes["0"].joins != {}, "the timer's token has arrived as well"
    desk.close()


def test_a_failing_callable_is_an_incident_that_names_the_error() -> None:
    def fails(inputs: dict[str, object]) -> None:
        raise ConnectionError("printer is\non fire")

    desk = Desk({"topic": fails})
    desk.deploy(work_process())
    desk.start()
    desk.turn()
    (track,) = desk.state().tracks.values()
    assert track.incident is not None
    assert track.incident.cause == "ConnectionError: printer is on fire"
    assert desk.facts("Incident")[0]["node"] == "work"
    desk.close()


def test_a_result_that_cannot_be_stored_is_an_incident_of_its_task() -> None:
    desk = Desk({"topic": lambda inputs: {"order": {"lines": [object()]}}})
    desk.deploy(work_process())
    desk.start()
    desk.turn()
    (track,) = desk.state().tracks.values()
    assert track.incident is not None
    assert track.incident.cause == "result of 'work' 'order.lines[0]': a value of type object cannot be stored"
    desk.close()


def test_work_without_a_callable_is_an_incident_or_completes_with_one_warning() -> None:
    """Only `simulate` and `run` complete unregistered work at once."""
    desk = Desk()
    desk.deploy(work_process())
    desk.start()
    desk.turn()
    (track,) = desk.state().tracks.values()
    assert track.incident is not None
    assert "no callable is registered for topic 'topic'" in track.incident.cause
    desk.close()
    warnings: list[str] = []
    desk = Desk(auto_complete=True)
    desk.host.effects._on_warning = warnings.append
    desk.deploy(work_process())
    desk.start(instance_id="a")
    desk.start(instance_id="b")
    desk.turn()
    assert (desk.status("a"), desk.status("b")) == ("completed", "completed")
    assert len(warnings) == 1
    desk.close()


# --- residency


def near_timer() -> ProcessBuilder:
    process = ProcessBuilder("p")
    process.start().catch("soon", timer="PT10S").end("end")
    return process


def test_a_timer_under_the_threshold_stays_resident_and_fires_without_a_hydration() -> None:
    """W2, X16: and it is in `due` all the same."""
    desk = Desk()
    desk.deploy(near_timer())
    desk.start()
    with hosting(desk.host):
        until(lambda: bool(desk.record().waits))
        assert desk.record().resident
        assert desk.store.quiet().quiet, "merely waiting is not busy"
        assert desk.store.quiet().next_deadline == desk.store.now() + 10_000
        desk.store.set_clock(desk.store.now() + 10_000)
        desk.fold()
    assert desk.status() == "completed"
    assert desk.counts() == {"Started": 1, "Completed": 1}
    assert desk.host.counters.hydrated == 0
    desk.close()


def test_a_resident_that_merely_waits_makes_room_when_others_are_ready() -> None:
    """Design section 3: evicted by asking, at a renewal; its fact is written once."""
    desk = Desk(lease_renew_ms=20)
    desk.deploy(near_timer())
    desk.start(instance_id="resident")
    with hosting(desk.host):
        until(lambda: bool(desk.record("resident").waits))
        long = ProcessBuilder("long")
        long.start().catch("wait", timer="P7D").end()
        desk.deploy(long)
        desk.start("long", "next")
        until(lambda: bool(desk.record("next").waits))
    assert not desk.record("resident").resident
    assert desk.counts()["Dehydrated"] == 2
    desk.close()


def test_a_crowded_engine_releases_a_near_timer_at_once_and_says_so() -> None:
    """`either`: the store decides, and only then is the fact of the release true (D14)."""
    desk = Desk()
    desk.deploy(near_timer())
    for instance in ("a", "b"):
        desk.start(instance_id=instance)
    with hosting(desk.host):
        until(lambda: desk.host.hosting == "b" and bool(desk.record("b").waits))
        assert not desk.record("a").resident
        assert [fact["instance"] for fact in desk.facts("Dehydrated")] == ["a"]
        desk.host.stop()
    assert [fact["instance"] for fact in desk.facts("Dehydrated")] == ["a", "b"]
    desk.close()


def test_a_suspended_resident_is_released_and_keeps_its_triggers() -> None:
    """D21"""
    desk = Desk()
    desk.deploy(near_timer())
    desk.start()
    with hosting(desk.host):
        until(lambda: bool(desk.record().waits))
        assert desk.store.suspend("i", True)
    assert not desk.record().resident
    desk.advance(10_000)
    assert (desk.status(), len(desk.record().inbox)) == ("suspended", 1)
    desk.store.suspend("i", False)
    desk.turn()
    assert desk.status() == "completed"
    desk.close()


def test_a_lost_bell_costs_one_heartbeat() -> None:
    """Design section 3: renew returns the inbox's length."""
    desk = Desk(lease_renew_ms=20)
    desk.deploy(near_timer())
    desk.start()
    with hosting(desk.host):
        until(lambda: bool(desk.record().waits))
        with desk.store._lock:
            desk.store.set_clock(desk.store.now() + 10_000)
            desk.timers.pass_once()
            desk.store._bells.discard("@i")
    assert desk.status() == "completed"
    desk.close()


def test_stopping_lets_the_running_step_finish_and_releases_what_waits() -> None:
    """N11, A75"""
    begun, go = threading.Event(), threading.Event()

    def slow(inputs: dict[str, object]) -> dict[str, object]:
        begun.set()
        go.wait(PATIENCE_S)
        return {"done": True}

    desk = Desk({"topic": slow})
    process = ProcessBuilder("p")
    process.start().service_task("work", "topic").catch("soon", timer="PT10S").end()
    desk.deploy(process)
    desk.start()
    desk.start(instance_id="other")
    with hosting(desk.host):
        assert begun.wait(PATIENCE_S)
        desk.host.stop()
        go.set()
    assert desk.variables() == {"done": True}
    assert desk.waiting() == [("timer", "soon")]
    assert not desk.record().resident
    assert desk.record("other").version == 0, "a stopping host claims nothing"
    desk.close()


def test_an_effect_that_outlasts_the_grace_is_left_without_a_false_release() -> None:
    """N11: the lease is not given back as if the step had ended; its host's death brings the next claimer."""
    begun, go = threading.Event(), threading.Event()

    def hang(inputs: dict[str, object]) -> None:
        begun.set()
        go.wait(PATIENCE_S)

    desk = Desk({"topic": hang})
    desk.deploy(work_process())
    desk.start()
    with hosting(desk.host):
        assert begun.wait(PATIENCE_S)
        desk.host.stop(0)
    assert desk.record().resident
    assert desk.state().tracks["1"].attempt is not None
    assert desk.history() == desk.history()[:1]
    go.set()
    until(lambda: desk.host.clean)
    assert desk.store.release_dead("a1") == 1
    desk.close()


@pytest.mark.parametrize(("hand_over", "most"), [(False, 1_000), (True, 2)])
def test_a_host_is_spent_by_its_first_release_or_at_its_cap(hand_over: bool, most: int) -> None:
    """`hand_over=False` is the plain form: every release ends the actor."""
    desk = Desk(hand_over=hand_over, max_handovers=most)
    process = ProcessBuilder("p")
    process.start().end()
    desk.deploy(process)
    for number in range(4):
        desk.start(instance_id=f"i{number}")
    assert desk.host.serve_once()
    assert desk.host.spent
    assert len(desk.store.instances(ended=True)) == (1 if not hand_over else most)
    assert not desk.host.serve_once()
    desk.close()


def test_a_free_host_takes_what_becomes_ready_while_it_waits() -> None:
    desk = Desk()
    process = ProcessBuilder("p")
    process.start().end()
    desk.deploy(process)
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(desk.host.serve_once(PATIENCE_S)), daemon=True)
    thread.start()
    desk.start()
    thread.join(PATIENCE_S)
    assert found == [True]
    assert desk.status() == "completed"
    desk.close()
