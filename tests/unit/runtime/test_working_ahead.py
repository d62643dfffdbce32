"""A host with many ready instances runs the next one while the last one's commit is on its way (docs/adr/0009)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gobpm_ray.errors import LeaseLost, StoreUnavailable
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Answer, Commit, CommitResult
from gobpm_ray.settings import Settings
from tests.unit.runtime.desk import Desk


class Slow(MemoryStore):
    """Carries a sent commit out when its answer is asked for, and keeps a diary."""

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        super().__init__(settings, clock)
        self.diary: list[str] = []
        self.failing: dict[str, Exception] = {}
        """Instance -> what the answer to its sent commit is, once."""

    def commit(self, commit: Commit) -> CommitResult:
        self.diary.append(f"commit {commit.instance_id}")
        return super().commit(commit)

    def send_commit(self, commit: Commit) -> Answer[CommitResult]:
        self.diary.append(f"send {commit.instance_id}")
        return _Later(self, commit)

    def unclaim(self, instance_id: str, token: str) -> None:
        self.diary.append(f"unclaim {instance_id}")
        super().unclaim(instance_id, token)


class _Later:
    def __init__(self, store: Slow, commit: Commit) -> None:
        self._store, self._commit = store, commit

    def result(self) -> CommitResult:
        store, commit = self._store, self._commit
        store.diary.append(f"answer {commit.instance_id}")
        if (failure := store.failing.pop(commit.instance_id, None)) is not None:
            raise failure
        return MemoryStore.commit(store, commit)


def desk_of(quick: int, **settings: int) -> tuple[Desk, Slow]:
    desk = Desk({"work": lambda inputs: None}, Slow, **({"claim_ahead": 1} | settings))
    process = ProcessBuilder("p")
    process.start().exclusive("which")
    process.at("which").when("busy = true").service_task("work", topic="work").end("worked")
    process.at("which").otherwise().end("quick")
    desk.deploy(process)
    for number in range(quick):
        desk.start(instance_id=f"i{number}")
    assert isinstance(desk.store, Slow)
    return desk, desk.store


def ended(desk: Desk) -> int:
    return len(desk.store.instances(ended=True))


def test_the_next_instance_runs_before_the_answer_to_the_last_commit() -> None:
    desk, store = desk_of(5)
    desk.host.serve_once()
    assert ended(desk) == 5
    assert store.diary == [
        "commit i0",
        "send i1",
        "send i2",
        "answer i1",
        "send i3",
        "answer i2",
        "send i4",
        "answer i3",
        "answer i4",
    ]
    assert desk.store.leases() == []
    assert desk.host.counters.ahead == 3
    desk.close()


def test_several_are_in_hand_when_there_are_many() -> None:
    desk, store = desk_of(9, claim_ahead=3)
    desk.host.serve_once()
    assert ended(desk) == 9
    assert store.diary[:7] == ["commit i0", "send i1", "send i2", "send i3", "send i4", "answer i1", "send i5"]
    assert desk.store.leases() == []
    desk.close()


def test_more_are_taken_in_hand_as_the_line_grows() -> None:
    """A storm begins with one ready instance: the first actor must not go on as it began."""
    desk, store = desk_of(4, claim_ahead=4)
    grow = store.commit

    def commit(commit: Commit) -> CommitResult:
        for number in range(4, 30):
            desk.start(instance_id=f"i{number}")
        store.commit = grow  # type: ignore[method-assign]
        result = grow(commit)
        return replace(result, ready=2)  # as it was when the first of them came

    store.commit = commit  # type: ignore[method-assign]
    desk.host.serve_once()
    assert ended(desk) == 30
    most = flying = 0
    for line in store.diary:
        flying += line.startswith("send") - line.startswith("answer")
        most = max(most, flying)
    assert most == 5, "four in hand and the one that was handed over"
    desk.close()


@pytest.mark.parametrize(("ready", "most"), [(5, 0), (3, 6)])
def test_few_ready_instances_are_left_to_others(ready: int, most: int) -> None:
    """Another actor may be free: it shall have them."""
    desk, store = desk_of(ready, claim_ahead=most)
    desk.host.serve_once()
    assert ended(desk) == ready
    assert {line.split()[0] for line in store.diary} == {"commit"}
    desk.close()


def test_an_instance_that_needs_time_is_hosted_alone() -> None:
    """What was claimed ahead goes back to the head of the line before an effect begins: nobody waits for that."""
    desk, store = desk_of(3)
    desk.start(instance_id="i3", busy=True)
    desk.start(instance_id="i4")
    desk.start(instance_id="i5")
    desk.host.serve_once()
    assert ended(desk) == 6
    sent = store.diary.index("answer i2")
    assert store.diary[sent : sent + 3] == ["answer i2", "unclaim i4", "commit i3"]
    assert desk.host.counters.given_back == 1
    assert desk.store.leases() == []
    desk.close()


def test_several_in_hand_go_back_in_their_order() -> None:
    desk, store = desk_of(3, claim_ahead=3)
    desk.start(instance_id="i3", busy=True)
    for number in range(4, 9):
        desk.start(instance_id=f"i{number}")
    desk.host.serve_once()
    assert ended(desk) == 9
    back = [line for line in store.diary if line.startswith("unclaim")]
    assert back == ["unclaim i6", "unclaim i5", "unclaim i4"]
    after = store.diary[store.diary.index("commit i3") :]
    assert [line for line in after if line.startswith(("commit", "send"))][2:5] == ["send i4", "send i5", "send i6"]
    desk.close()


def test_an_answer_that_was_lost_is_asked_for_again() -> None:
    """C59: by the commit's id, so nothing happens twice."""
    desk, store = desk_of(5)
    store.failing["i2"] = StoreUnavailable("the answer was lost")
    desk.host.serve_once()
    assert ended(desk) == 5
    assert "commit i2" in store.diary
    assert desk.store.leases() == []
    desk.close()


def test_a_commit_that_was_refused_ends_its_instance_alone() -> None:
    """N8: the lease is somebody else's; the instance under way beside it is not concerned."""
    desk, store = desk_of(5)
    store.failing["i2"] = LeaseLost("another holds the lease")
    desk.host.serve_once()
    assert ended(desk) == 4
    assert desk.host.counters.fenced == 1
    assert [each[0] for each in desk.store.leases()] == ["i2"]
    desk.close()


def test_a_suspect_is_hosted_alone() -> None:
    """C63: if it kills its host, it shall be the only one."""
    desk, store = desk_of(0)
    desk.start(instance_id="i0")
    claim = store.claim("dead:1")
    assert claim is not None
    store.renew("i0", "dead:1")
    for number in range(1, 5):
        desk.start(instance_id=f"h{number}")
    store.release_dead("dead")
    desk.host.serve_once()
    assert ended(desk) == 5
    assert "commit i0" in store.diary
    assert "send i0" not in store.diary
    desk.close()


def test_a_store_that_is_away_ends_the_round_and_nothing_in_hand_is_remembered() -> None:
    """H6: the leases expire, and whoever claims then goes on from the last commit."""
    desk, store = desk_of(5, lease_ttl_ms=1, lease_renew_ms=0)
    store.failing["i2"] = StoreUnavailable("gone")

    def away(commit: Commit) -> CommitResult:
        raise StoreUnavailable("gone")

    store.commit = away  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        desk.host.serve_once()
    assert not desk.host.may_send
    desk.close()
