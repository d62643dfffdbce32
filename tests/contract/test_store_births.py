"""Instances that are born parked: what a start, a claim and the first leg's commit would have left, in one step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.errors import InputError, LimitReached, StoreUnavailable, UnknownProcess
from gobpm_ray.runtime.ports import Accepted, Commit, ParkedStart, SendRow, Store
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import verify
from tests.support.stores import (
    SERVERS,
    StoreBed,
    claimed,
    deploy,
    fire_due,
    fold,
    human,
    inbox,
    message,
    payload,
    publish,
    signal,
    start,
    timer,
    values_of,
    waiting,
    woken,
)

T0 = 1_767_225_600_000
LIVE = 1_800_000_000_000
HOUR = 3_600_000


def leg(instance: str, *arms: Any, delivery: str = "", **changes: object) -> Commit:
    """The commit of a first leg, as it is made of the claim of a start."""
    made: dict[str, object] = {
        "parts": {"h": b"head", "s0": b"scope", "t1": b"track"},
        "consumed": [delivery or f"start-{instance}"],
        "arms": arms,
        "history": [f"{instance} began".encode()],
        "facts": [f'{{"fact":"Started","instance":"{instance}"}}'.encode()],
    }
    return Commit(instance, "bulk:1", 0, f"first-{instance}", **(made | changes))  # type: ignore[arg-type]


def parked(store: Store, instance: str, *arms: Any, **changes: Any) -> ParkedStart:
    """A parked start of the newest version of `order`."""
    delivery = changes.pop("delivery", f"start-{instance}")
    of = {
        name: changes.pop(name) for name in ("version", "newest", "business_key", "payload", "now") if name in changes
    }
    given: dict[str, Any] = {
        "version": 1,
        "newest": True,
        "business_key": "",
        "payload": payload(),
        "now": store.now(),
    } | of
    commit = leg(instance, *arms, delivery=delivery, **changes)
    return ParkedStart("order", instance_id=instance, delivery_id=delivery, commit=commit, **given)


def born(store: Store, instance: str, *arms: Any, **changes: Any) -> Accepted:
    (answer,) = store.start_parked([parked(store, instance, *arms, **changes)])
    assert answer is not None
    return answer


def prepared(bed: StoreBed, **changes: object) -> Store:
    store = bed.store(**changes)
    if isinstance(store, RedisStore):
        store.client.set(store.keys["liveness"], LIVE)
    store.manual_clock(T0)
    deploy(store)
    deploy(store, "child")
    return store


def everything(store: Store) -> dict[str, object]:
    """All that a store tells; of a real one every key and value but bells and the times in its stream."""
    told: dict[str, object] = {
        "instances": {name: store.instance(name) for _, name in store.instances()},
        "order": store.instances(),
        "facts": [fact for _, fact in store.facts()],
        "tasks": (store.tasks(), store.tasks("job")),
        "due": store.due(100),
        "pending": [replace(row, accepted_live=0) for row in store.pending(0, 100)],
        "incidents": store.incidents(),
        "population": replace(store.population(), oldest_ready_ms=0),
        "quiet": store.quiet(),
        "leases": store.leases(),
    }
    if isinstance(store, RedisStore):
        client = store.client
        for key in client.scan_iter(match=f"*gobpm:{store.settings.engine_id}:*", count=1_000):
            name, kind = key.rpartition(b"}:")[2].decode(), client.type(key)
            if kind == b"hash":
                told[name] = client.hgetall(key)
            elif kind == b"zset":
                told[name] = client.zrange(key, 0, -1, withscores=True)
            elif kind == b"list" and not name.startswith("bell:"):
                told[name] = client.lrange(key, 0, -1)
            elif kind == b"string":
                told[name] = client.get(key)
    return told


def _index_faults(store: Store) -> list[object]:
    """Checkpoints and definitions are only bytes here."""
    return [found for found in verify(store).differences if found.kind not in ("checkpoint", "definition")]


LEGS: dict[str, dict[str, Any]] = {
    "a timer": {"arms": [timer("w1", T0 + HOUR)]},
    "a person": {"arms": [human("w1", assignee="ann")], "business_key": "bk-7"},
    "a race": {"arms": [timer("w1", T0 + HOUR, group="g"), message("w2", group="g"), signal("w3", group="g")]},
    "a repeated wait": {"arms": [message("w1", repeat=True), human("w2")]},
    "an incident": {"arms": [replace(human("w1"), kind="incident", row=b"")]},
    "a job": {"arms": [replace(human("w1"), kind="job", key="topic\x1f09")]},
    "joined waits": {"arms": [message("w1"), message("w2", key="B", joins="w1", group="g")]},
    "what it threw": {
        "arms": [human("w1")],
        "sends": [
            SendRow("s1", "message", message_key("Reply", "A-1"), "Reply", payload(), HOUR),
            SendRow("s2", "signal", signal_key("Alarm"), "Alarm", payload()),
        ],
    },
    "what it called": {
        "arms": [replace(human("w1"), kind="child", row=b"")],
        "sends": [SendRow("s1", "start", to="called", wait="w1", process="child", payload=payload(n=1))],
    },
    "a call of nothing": {
        "arms": [replace(human("w1"), kind="child", row=b"")],
        "sends": [SendRow("s1", "start", to="called", wait="w1", process="nothing")],
    },
    "what it learnt": {"arms": [message("w1")], "learnt": "\x1dorder=A\x1d"},
    "its own message, thrown early": {"arms": [message("w1", key="early")]},
    "its end": {"outcome": "completed"},
    "its termination, with a wait": {"outcome": "terminated"},
}


@pytest.mark.parametrize("which", LEGS)
def test_an_instance_that_is_born_parked_is_what_three_steps_would_have_made_of_it(bed: StoreBed, which: str) -> None:
    """Promises 1 and 3: nothing in the store tells one way from the other."""
    changes = dict(LEGS[which])
    arms, business_key = changes.pop("arms", ()), changes.pop("business_key", "")
    plain, other = prepared(bed), prepared(bed)
    for store in (plain, other):
        waiting(store, "other", human("w0"), commit_id="c0")
        publish(store, "m1", key="early")
        fold(store)

    plain.start("order", 0, "i1", "start-i1", business_key, payload())
    claim = claimed(plain, "bulk:1", "i1")
    plain.commit(replace(leg("i1", *arms, **changes), token=claim.token))
    answer = born(other, "i1", *arms, business_key=business_key, **changes)

    assert (answer.duplicate, answer.instance_id) == (False, "i1")
    first, second = everything(plain), everything(other)
    if bed.real:
        assert first.keys() == second.keys()
    for name in first:
        assert second[name] == first[name], name
    if bed.real:
        assert _index_faults(other) == []


def test_a_born_instance_wakes_like_any_other(store: Store) -> None:
    """Timer, message and person find it, and its next commit starts from version 1."""
    store.manual_clock(T0)
    deploy(store)
    born(store, "i1", timer("w1", T0 + HOUR))
    born(store, "i2", message("w1"))
    born(store, "i3", human("w1"))
    assert store.claim("a:1") is None
    store.set_clock(T0 + HOUR)
    fire_due(store)
    publish(store, "m1")
    fold(store)
    store.complete_task("i3/w1", "", (), (), "d1", payload())

    for _ in range(3):
        claim = claimed(store)
        assert (claim.version, claim.epoch, len(claim.triggers)) == (1, 2, 1)
        assert claim.parts == {"h": b"head", "s0": b"scope", "t1": b"track"}
        store.commit(Commit(claim.instance_id, claim.token, 1, claim.token, outcome="completed", consumed=["x"][:0]))


def test_a_message_that_came_before_the_birth_makes_it_ready(store: Store) -> None:
    """M51: oldest first, one for a wait that is met once."""
    deploy(store)
    publish(store, "m1", n=1)
    publish(store, "m2", n=2)
    fold(store)
    born(store, "i1", message("w1"))
    claim = claimed(store, instance="i1")
    (trigger,) = claim.triggers
    assert (trigger.id, values_of(trigger)) == ("m1", {"n": 1})
    assert store.population().parked == 1


def test_a_repeated_birth_is_answered_as_a_duplicate(store: Store) -> None:
    """Promise 4: a client that lost the answer asks again, in either way, and nothing happens twice."""
    deploy(store)
    born(store, "i1", human("w1"))
    before = everything(store)
    (again,) = store.start_parked([parked(store, "i2", human("w1"), delivery="start-i1")])
    assert again is not None
    assert (again.duplicate, again.instance_id) == (True, "i1")
    plain = store.start("order", 0, "i3", "start-i1", "", payload())
    assert (plain.duplicate, plain.instance_id) == (True, "i1")
    assert everything(store)["instances"] == before["instances"]


def test_a_plain_start_is_a_duplicate_for_a_birth(store: Store) -> None:
    deploy(store)
    start(store, "i1")
    (again,) = store.start_parked([parked(store, "i1", human("w1"))])
    assert again is not None
    assert again.duplicate
    assert list(woken(store)) == ["i1"]


def test_a_leg_of_another_version_than_the_newest_is_not_taken(store: Store) -> None:
    store.manual_clock(T0)
    deploy(store)
    deploy(store, document=b"xml\n<b/>")
    before = everything(store)
    assert store.start_parked([parked(store, "i1", human("w1"))]) == [None]
    assert everything(store) == before
    # The older one was asked for, or the leg is the newest's.
    assert born(store, "i1", human("w1"), newest=False).instance_id == "i1"
    assert born(store, "i2", human("w1"), version=2).instance_id == "i2"
    assert store.start_parked([parked(store, "i3", human("w1"), version=3, newest=False)]) == [None]
    versions = {name: getattr(store.instance(name), "process_version", 0) for name in ("i1", "i2", "i3")}
    assert versions == {"i1": 1, "i2": 2, "i3": 0}


@pytest.mark.parametrize("away", [-1_001, 1_001])
def test_a_leg_of_another_time_is_not_taken(store: Store, away: int) -> None:
    """Its deadlines would be those of another time."""
    store.manual_clock(T0)
    deploy(store)
    assert store.start_parked([parked(store, "i1", human("w1"), now=T0 + away)]) == [None]
    assert store.instance("i1") is None
    assert born(store, "i1", human("w1"), now=T0 + (1_000 if away > 0 else -1_000)).seq


def test_what_cannot_be_born_is_refused_by_its_plain_start(bed: StoreBed) -> None:
    """E90: without a trace, and by name."""
    store = bed.store(max_pending=1, max_payload=100)
    assert store.start_parked([parked(store, "i0", human("w1"))]) == [None]
    with pytest.raises(UnknownProcess):
        start(store, "i0")
    deploy(store)
    born(store, "i1", human("w1"))
    assert store.start_parked([parked(store, "i1", human("w1"), delivery="other")]) == [None]
    with pytest.raises(InputError, match="exists"):
        store.start("order", 0, "i1", "other", "", payload())
    large = parked(store, "i2", human("w1"), payload=payload(text="x" * 100))
    assert store.start_parked([large]) == [None]
    with pytest.raises(LimitReached, match="max_payload"):
        store.start("order", 0, "i2", "start-i2", "", large.payload)
    start(store, "i3")
    assert store.start_parked([parked(store, "i4", human("w1"))]) == [None]
    with pytest.raises(LimitReached, match="max_pending"):
        start(store, "i4")
    assert [name for _, name in store.instances()] == ["i1", "i3"]


def test_each_of_several_births_is_answered_for_itself(store: Store) -> None:
    deploy(store)
    several = [parked(store, f"i{n}", human("w1"), newest=n != 2, version=1 + (n == 2)) for n in range(5)]
    answers = store.start_parked([*several, several[3]])
    assert [answer and (answer.instance_id, answer.duplicate) for answer in answers] == [
        ("i0", False),
        ("i1", False),
        None,
        ("i3", False),
        ("i4", False),
        ("i3", True),
    ]
    assert store.population().waiting == 4
    assert store.start_parked([]) == []


def test_what_is_called_after_sent_births_sees_them(store: Store) -> None:
    deploy(store)
    sent = store.send_parked([parked(store, f"i{n}", human("w1")) for n in range(3)])
    more = store.send_parked([parked(store, "i3", human("w1"))])
    # A script, as all that changes something: reads have connections of their own.
    assert store.claim("a:1") is None
    assert inbox(store, "i3") == []
    assert [answer.instance_id for answer in more.result() if answer] == ["i3"]
    assert [answer.instance_id for answer in sent.result() if answer] == ["i0", "i1", "i2"]


@pytest.mark.parametrize("bed", SERVERS, indirect=True)
def test_births_whose_connection_is_cut_are_known_by_their_delivery_ids(bed: StoreBed) -> None:
    """Promise 1: nobody knows what was stored, and asking again tells."""
    store = bed.store()
    assert isinstance(store, RedisStore)
    deploy(store)
    born(store, "i0", human("w1"))
    starts = [parked(store, f"i{n}", human("w1")) for n in range(1, 30)]
    sent = store.send_parked(starts)
    store._scripts._connection().disconnect()
    with pytest.raises(StoreUnavailable):
        sent.result()
    answers = store.start_parked(starts)
    assert [answer and answer.instance_id for answer in answers] == [f"i{n}" for n in range(1, 30)]
    assert store.population().waiting == 30
    assert _index_faults(store) == []


def test_the_script_is_loaded_again_when_the_server_has_forgotten_it(bed: StoreBed) -> None:
    """After the store's restart."""
    store = bed.store()
    deploy(store)
    if isinstance(store, RedisStore):
        store.client.script_flush()
    answers = store.start_parked([parked(store, f"i{n}", human("w1")) for n in range(20)])
    assert [answer and answer.duplicate for answer in answers] == [False] * 20


@pytest.mark.parametrize("bed", SERVERS, indirect=True)
def test_two_clients_bear_the_same_delivery_once(bed: StoreBed) -> None:
    store = bed.store()
    assert isinstance(store, RedisStore)
    deploy(store)
    with open_client(bed._url or "") as client:
        rival = RedisStore(client, store.settings)
        mine = store.send_parked([parked(store, f"a{n}", human("w1"), delivery=f"d{n}") for n in range(40)])
        theirs = rival.send_parked([parked(rival, f"b{n}", human("w1"), delivery=f"d{n}") for n in range(40)])
        answers = [*mine.result(), *theirs.result()]
        rival.close()
    assert [answer and answer.instance_id for answer in answers[:40]] == [a and a.instance_id for a in answers[40:]]
    assert sum(answer is not None and answer.duplicate for answer in answers) == 40
    assert store.population().waiting == 40
