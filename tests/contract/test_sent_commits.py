"""Commits that are sent and not waited for, and claims that go back unbegun: what a host that works ahead relies on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from gobpm_ray.errors import LeaseLost, StoreUnavailable
from gobpm_ray.runtime.ports import Store
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from tests.support.stores import SERVERS, StoreBed, claimed, commit_of, deploy, human, payload, start, waiting


def test_sent_commits_are_answered_each_for_itself_in_any_order(store: Store) -> None:
    """Promise 3: the answers are those of `commit`, whoever asks first."""
    deploy(store)
    for name in ("i1", "i2", "i3"):
        start(store, name)
    first, second = claimed(store, "a:1", "i1"), claimed(store, "a:2", "i2")
    sent = store.send_commit(commit_of(first, next_token="a:3"))
    refused = store.send_commit(commit_of(second, version=7))

    with pytest.raises(LeaseLost):
        refused.result()
    answer = sent.result()
    assert answer.next is not None
    assert (answer.kept, answer.version, answer.next.instance_id, answer.ready) == (False, 1, "i3", 0)


def test_what_is_called_after_a_sent_commit_sees_it(store: Store) -> None:
    deploy(store)
    start(store, "i1")
    sent = store.send_commit(commit_of(claimed(store), outcome="completed"))
    assert store.claim("b:1") is None
    assert store.status("i1") == "completed"
    assert sent.result().version == 1


def test_a_handed_over_claim_tells_how_many_more_are_ready(store: Store) -> None:
    deploy(store)
    for number in range(5):
        start(store, f"i{number}")
    result = store.commit(commit_of(claimed(store), next_token="a:2"))
    assert result.ready == 3


def test_a_claim_given_back_is_the_next_one_to_be_claimed(bed: StoreBed) -> None:
    """As if it had never been claimed: at the head of the line, its trigger unconsumed."""
    store = bed.store()
    waiting(store, "i1", human("w1"))
    store.deliver("i1", "task", "w1", "d1", payload())
    bed.elapse(5)
    start(store, "z1", "order")
    bed.elapse(5)
    claimed(store, "a:1", "i1")
    store.unclaim("i1", "a:1")

    again = claimed(store, "b:1", "i1")
    assert [trigger.id for trigger in again.triggers] == ["d1"]
    assert not again.suspect
    claimed(store, "b:2", "z1")


def test_only_the_holder_of_a_lease_gives_it_back(store: Store) -> None:
    """N8: by its token, and once."""
    deploy(store)
    start(store, "i1")
    claimed(store, "a:1")
    for token in ("b:1", "a:11"):
        with pytest.raises(LeaseLost):
            store.unclaim("i1", token)
    store.unclaim("i1", "a:1")
    with pytest.raises(LeaseLost):
        store.unclaim("i1", "a:1")


def test_a_claim_given_back_keeps_its_count_of_silent_deaths(store: Store) -> None:
    """N9, C63: who takes a suspect in hand and gives it back has not shown that it is harmless."""
    deploy(store)
    start(store, "i1")
    claimed(store, "a:1")
    store.renew("i1", "a:1")
    store.release_dead("a")
    assert claimed(store, "b:1").deaths == 1
    store.unclaim("i1", "b:1")
    assert claimed(store, "c:1").deaths == 1


@pytest.fixture(params=SERVERS)
def redis_store(request: pytest.FixtureRequest, server_url: Callable[[str], str]) -> Iterator[RedisStore]:
    client = open_client(server_url(request.param))
    store = RedisStore(client, Settings(engine_id="sent"))
    yield store
    store.close()
    client.flushdb()
    client.close()


def test_a_connection_that_breaks_under_sent_commits_fails_each_and_loses_nothing(redis_store: RedisStore) -> None:
    """C59: nobody knows whether they were carried out, so each is asked again by its id, and happens once."""
    store = redis_store
    deploy(store)
    for name in ("i1", "i2"):
        start(store, name)
    commits = [commit_of(claimed(store, f"a:{n}", f"i{n}"), outcome="completed") for n in (1, 2)]
    sent = [store.send_commit(commit) for commit in commits]
    store._scripts._connection().disconnect()

    for each in sent:
        with pytest.raises(StoreUnavailable):
            each.result()
    answers = [store.commit(commit) for commit in commits]
    assert [answer.version for answer in answers] == [1, 1]
    assert [store.status(name) for name in ("i1", "i2")] == ["completed", "completed"]


def test_a_call_behind_a_sent_commit_fails_when_the_connection_breaks_and_the_next_goes_through(
    redis_store: RedisStore,
) -> None:
    store = redis_store
    deploy(store)
    start(store, "i1")
    commit = commit_of(claimed(store, "a:1"), outcome="completed")
    sent = store.send_commit(commit)
    _cut_others(store)
    _tolerant(lambda: store.claim("a:2"))
    _tolerant(sent.result)
    assert store.commit(commit).version == 1
    assert store.claim("a:3") is None


def test_a_script_that_the_server_has_forgotten_is_loaded_again_under_a_sent_commit(redis_store: RedisStore) -> None:
    """After the store's restart: the first call of each script is answered with NOSCRIPT."""
    store = redis_store
    deploy(store)
    start(store, "i1")
    claim = claimed(store, "a:1")
    store.client.script_flush()
    sent = store.send_commit(commit_of(claim, outcome="completed"))
    assert sent.result().version == 1
    assert store.status("i1") == "completed"


def _cut_others(store: RedisStore) -> None:
    """Every connection but the one that asks for it is closed by the server."""
    store.client.client_kill_filter(_type="normal", skipme=True)


def _tolerant(work: Callable[[], object]) -> None:
    with suppress(StoreUnavailable):
        work()
