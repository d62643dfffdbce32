"""`verify` on a real store: every kind of damage is found and repaired, and an engine at work shows none (H12, C70).

Damage is done by hand, past the scripts: what no engine does. After a repair a second look finds nothing.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gobpm_ray.cli.main import call as command_line
from gobpm_ray.errors import InputError
from gobpm_ray.runtime.ports import Commit
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.rows import RS
from gobpm_ray.store.verify import Verifier, verify
from tests.support.plain_engine import PlainEngine, models, until
from tests.support.stores import SERVERS, commit_of

Server = Callable[[str], str]


@pytest.fixture(params=SERVERS)
def url(request: pytest.FixtureRequest, server_url: Server) -> str:
    return server_url(request.param)


@pytest.fixture
def engine(url: str) -> Iterator[PlainEngine]:
    """Something of everything: waiting, ended, parked, pending, ready, leased."""
    client = open_client(url)
    store = RedisStore(client, Settings(engine_id=f"v{uuid.uuid4().hex[:10]}"))
    store.manual_clock(1_767_225_600_000)
    engine = PlainEngine(store)
    operations = engine.operations
    operations.deploy(*models())
    for number in range(3):
        operations.start("approval", {"who": "ann"}, id=f"approval-{number}")
        operations.start("wait", id=f"wait-{number}")
        operations.start("alarm", id=f"alarm-{number}")
        operations.start("race", {"k": f"K{number}"}, id=f"race-{number}")
    operations.start("failing", id="failing-0")
    operations.publish("Letter", None, {"k": "A"}, id="letter-d")
    operations.publish("Nobody", "x", id="parked-d")
    engine.turn()
    operations.complete("approval-2/" + next(t.id for t in operations.tasks(instance_id="approval-2")).split("/", 1)[1])
    engine.turn()
    operations.publish("Nobody", "y", id="pending-d")
    operations.signal("Nothing", id="signal-d")
    operations.start("wait", id="leased-0")
    assert store.claim("somebody:1:1") is not None
    operations.start("wait", id="ready-0")
    yield engine
    engine.close()
    store.close()
    client.close()


class Hand:
    """Writes past the scripts."""

    def __init__(self, engine: PlainEngine) -> None:
        self.client: Any = engine.store.client
        self.keys = engine.store.keys
        self.engine = engine

    def key(self, instance: str) -> bytes:
        return self.keys.instance(instance)

    def wait(self, instance: str, kind: str) -> str:
        record = self.engine.store.instance(instance)
        assert record is not None
        return next(wait for wait, row in record.waits.items() if row[0] == kind)

    def task(self) -> str:
        return self.engine.operations.tasks(instance_id="approval-0")[0].id

    def one(self, index: str, containing: str = "") -> bytes:
        members: list[bytes] = self.client.zrange(self.keys[index], 0, -1)
        return next(member for member in members if containing.encode() in member)


def letter(hand: Hand) -> str:
    """The instance that a message started."""
    return next(i for _, i in hand.engine.store.instances() if i.startswith("letter-"))


def ended_remains(hand: Hand) -> None:
    hand.client.hset(hand.key("approval-2"), ".t1", b"{}")
    hand.client.zrem(hand.keys["purge"], "approval-2")


def row_of_nothing(hand: Hand) -> None:
    row = RS.join((b"T", b"nap", b"", b"5", b"", b"o", b"0", b"1", b""))
    hand.client.hset(hand.key("wait-0"), "~9:nap:0:9", row)
    hand.client.zadd(hand.keys["due"], {b"wait-0\x1e9:nap:0:9": 5})


def other_deadline(hand: Hand) -> None:
    name = "~" + hand.wait("wait-0", "timer")
    fields = hand.client.hget(hand.key("wait-0"), name).split(RS)
    fields[3] = b"77"
    hand.client.hset(hand.key("wait-0"), name, RS.join(fields))


def double_place(hand: Hand) -> None:
    member = hand.one("parked")
    hand.client.zadd(hand.keys["pend"], {member.rpartition(RS)[2].lstrip(b"0"): int(member.rpartition(RS)[2])})


def forgotten_row(hand: Hand) -> None:
    seq = hand.client.zrange(hand.keys["pend"], 0, 0)[0]
    hand.client.zrem(hand.keys["pend"], seq)


def lost_row(hand: Hand) -> None:
    seq = hand.client.zrange(hand.keys["pend"], 0, 0)[0]
    hand.client.hdel(hand.keys["in"], seq)


def working_and_forgotten(hand: Hand) -> None:
    head = json.loads(hand.client.hget(hand.key("wait-1"), ".h"))
    hand.client.hset(hand.key("wait-1"), ".h", json.dumps(head | {"w": 1}))


DAMAGE: dict[str, tuple[str, Callable[[Hand], object]]] = {
    # index entries that are gone
    "a deadline is not due": ("due", lambda h: h.client.zrem(h.keys["due"], h.one("due", "wait-0"))),
    "a deadline has moved": ("due", lambda h: h.client.zadd(h.keys["due"], {h.one("due", "wait-0"): 1})),
    "a message subscription is gone": ("subs", lambda h: h.client.zrem(h.keys["subs"], h.one("subs", letter(h)))),
    "a signal subscription is gone": ("subs", lambda h: h.client.zrem(h.keys["subs"], h.one("subs", "alarm-1"))),
    "a start subscription is gone": ("subs", lambda h: h.client.zrem(h.keys["subs"], h.one("subs", "@letter"))),
    "a task is gone": ("tasks", lambda h: h.client.hdel(h.keys["tasks"], h.task())),
    "a task is not listed": ("topen", lambda h: h.client.zrem(h.keys["topen"], h.task())),
    "an incident is not listed": ("incidents", lambda h: h.client.delete(h.keys["incidents"])),
    "a wake was dropped": ("ready", lambda h: h.client.zrem(h.keys["ready"], "ready-0")),
    "an open effect has nobody": ("ready", working_and_forgotten),
    "a lease is not listed": ("leases", lambda h: h.client.zrem(h.keys["leases"], "leased-0")),
    "an instance is not listed": ("instances", lambda h: h.client.zrem(h.keys["instances"], "wait-0")),
    "an ended instance is not kept as one": ("ended", lambda h: h.client.zrem(h.keys["ended"], "approval-2")),
    "an ended instance left something": ("purge", ended_remains),
    # entries that nobody accounts for
    "a deadline of nobody": ("due", lambda h: h.client.zadd(h.keys["due"], {b"nobody\x1e1:n:0:1": 5})),
    "a deadline of another wait": ("due", lambda h: h.client.zadd(h.keys["due"], {b"wait-0\x1e8:n:0:1": 5})),
    "a subscription of nobody": (
        "subs",
        lambda h: h.client.zadd(h.keys["subs"], {h.one("subs", "alarm-1").replace(b"alarm-1", b"nobody"): 0}),
    ),
    "a subscription under another key": (
        "subs",
        lambda h: h.client.zadd(h.keys["subs"], {h.one("subs", "alarm-1").replace(b"Alarm", b"Other"): 0}),
    ),
    "a task of nobody": ("tasks", lambda h: h.client.hset(h.keys["tasks"], "nobody/1:n:0:1", b"1\x1eU\x1e{}")),
    "an owner of no task": ("owners", lambda h: h.client.hset(h.keys["owners"], "nobody/1:n:0:1", "ann")),
    "an incident of nobody": ("incidents", lambda h: h.client.zadd(h.keys["incidents"], {b"wait-0\x1e1:n:!:1": 5})),
    "an ended instance is ready": ("ready", lambda h: h.client.zadd(h.keys["ready"], {"approval-2": 5})),
    "a leased instance is ready": ("ready", lambda h: h.client.zadd(h.keys["ready"], {"leased-0": 5})),
    "a lease of nobody": ("leases", lambda h: h.client.zadd(h.keys["leases"], {"wait-0": 5})),
    "an idle one that is not leased": ("idle", lambda h: h.client.zadd(h.keys["idle"], {"wait-0": 5})),
    "a living instance is kept as ended": ("ended", lambda h: h.client.zadd(h.keys["ended"], {"wait-0": 5})),
    "a living instance is to be emptied": ("purge", lambda h: h.client.zadd(h.keys["purge"], {"wait-0": 5})),
    "an instance without a record": ("instances", lambda h: h.client.zadd(h.keys["instances"], {"nobody": 5})),
    "an inbox of nobody": ("inbox", lambda h: h.client.rpush(h.key("nobody") + b":q", b"x\x1emessage\x1e\x1e1")),
    # rows against the checkpoint
    "a wait's row is gone": ("waits", lambda h: h.client.hdel(h.key("wait-0"), "~" + h.wait("wait-0", "timer"))),
    "a task's row is gone": ("waits", lambda h: h.client.hdel(h.key("approval-0"), "~" + h.wait("approval-0", "task"))),
    "a row that the checkpoint does not have": ("waits", row_of_nothing),
    "a row with another deadline": ("waits", other_deadline),
    "a row that is no row": ("waits", lambda h: h.client.hset(h.key("wait-0"), "~x", b"garbage")),
    "a race has lost its list": (
        "groups",
        lambda h: h.client.hdel(h.key("race-0"), *[n for n in h.client.hkeys(h.key("race-0")) if n[:1] == b"%"]),
    ),
    "a race of nothing": ("groups", lambda h: h.client.hset(h.key("wait-0"), "%g", b"a\x1eb")),
    "a process waits by no version": ("starts", lambda h: h.client.delete(h.key("@letter"))),
    "a process waits by an old version": ("starts", lambda h: h.client.hset(h.key("@letter"), "df", b"letter\x1e0")),
    # accepted rows
    "a row is neither pending nor parked": ("pend", forgotten_row),
    "a pending row is not stored": ("pend", lost_row),
    "a row is pending and parked": ("parked", double_place),
    "a message is parked for ever": ("parkx", lambda h: h.client.delete(h.keys["parkx"])),
    "a parked message that is not stored": (
        "parked",
        lambda h: h.client.zadd(h.keys["parked"], {b"m\x1e000000000007": 0}),
    ),
    "an expiry of nothing": ("parkx", lambda h: h.client.zadd(h.keys["parkx"], {b"m\x1e000000000007": 9})),
    "progress of nothing": ("progress", lambda h: h.client.hset(h.keys["progress"], "777", b"x")),
    "a delivery is remembered for ever": ("dedupx", lambda h: h.client.zrem(h.keys["dedupx"], "letter-d")),
    "a delivery is forgotten too late": ("dedupx", lambda h: h.client.zadd(h.keys["dedupx"], {"letter-d": 5})),
    "an expiry of no delivery": ("dedupx", lambda h: h.client.zadd(h.keys["dedupx"], {"no-such-delivery": 5})),
}


def test_an_engine_in_order_has_no_differences(engine: PlainEngine) -> None:
    """H12: waiting, ended, parked, pending, ready and leased, all at once."""
    report = Verifier(engine.store).verify()
    assert report.differences == []
    assert report.owners > 15
    assert report.rows == 3


def test_a_deployed_decision_is_no_difference(engine: PlainEngine) -> None:
    """H12: it stands among the processes, in every version, and there is nothing that could begin by it."""
    rules = Path(__file__).parents[1] / "conformance" / "scenarios" / "decision_first.rules.dmn"
    engine.operations.deploy(rules)
    assert Verifier(engine.store).verify().differences == []


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_and_repaired(engine: PlainEngine, damage: str) -> None:
    """H12, C70: found by kind, repaired, and not found again."""
    kind, inflict = DAMAGE[damage]
    inflict(Hand(engine))
    found = Verifier(engine.store).verify()
    assert kind in {one.kind for one in found.differences}, found.differences
    assert found.repaired == 0
    assert Verifier(engine.store).verify().differences == found.differences, "looking changes nothing"
    repaired = Verifier(engine.store).verify(repair=True)
    assert repaired.left == 0
    assert repaired.repaired >= len(found.differences)
    assert Verifier(engine.store).verify().differences == []


def test_an_engine_goes_on_after_a_repair(engine: PlainEngine) -> None:
    """All damage of one engine at once; what it waited for still comes."""
    hand = Hand(engine)
    for name in ("due", "subs", "topen", "incidents", "ready", "leases", "instances", "pend", "parkx", "dedupx"):
        hand.client.delete(hand.keys[name])
    assert Verifier(engine.store).verify(repair=True).left == 0
    operations = engine.operations
    for number in range(2):
        operations.complete(operations.tasks(instance_id=f"approval-{number}")[0].id)
    operations.signal("Alarm")
    operations.publish("Reply", "A")
    operations.publish("Answer", "K0")
    engine.turn()
    engine.store.set_clock(engine.store.now() + 3 * 3_600_000)
    engine.turn()
    left = {view.process_id for view in operations.list_instances(ended=False)}
    assert left == {"failing"}
    assert Verifier(engine.store).verify().differences == []


def test_a_task_whose_row_is_lost_is_only_an_operators(engine: PlainEngine) -> None:
    """Who might do it is nowhere else: the repair errs on the side of nobody."""
    hand = Hand(engine)
    task = hand.task()
    hand.client.hdel(hand.keys["tasks"], task)
    hand.client.hdel(hand.keys["owners"], task)
    Verifier(engine.store).verify(repair=True)
    with pytest.raises(InputError, match="not eligible"):
        engine.operations.complete(task, user="bob")
    engine.operations.complete(task)
    engine.turn()
    assert engine.operations.status("approval-0") == "completed"


@pytest.mark.parametrize("part", [b"{", b'{"v": 99}'])
def test_a_checkpoint_that_cannot_be_read_is_named_and_left_alone(engine: PlainEngine, part: bytes) -> None:
    """A79, D20: that one is reported; nobody can repair it, and the others are verified."""
    hand = Hand(engine)
    hand.client.hset(hand.key("wait-0"), ".h", part)
    hand.client.zrem(hand.keys["due"], hand.one("due", "wait-1"))
    report = Verifier(engine.store).verify(repair=True)
    assert {(one.kind, one.key.split(" | ")[0]) for one in report.differences} == {
        ("checkpoint", "wait-0"),
        ("due", "wait-1"),
    }
    assert (report.repaired, report.left) == (1, 1)
    assert hand.client.hget(hand.key("wait-0"), ".h") == part


def test_a_definition_that_is_lost_is_named(engine: PlainEngine) -> None:
    hand = Hand(engine)
    hand.client.delete(hand.keys["docs"])
    report = Verifier(engine.store).verify(repair=True)
    assert {one.kind for one in report.differences} >= {"definition"}
    assert report.left > 0


def test_a_wait_whose_trigger_is_in_the_inbox_is_not_missing(engine: PlainEngine) -> None:
    """The row went with the delivery, its rivals with it; the checkpoint follows with the commit."""
    engine.operations.publish("Answer", "K0")
    engine.operations.complete(engine.operations.tasks(instance_id="approval-0")[0].id)
    engine.fold()
    record = engine.store.instance("race-0")
    assert record is not None
    assert (len(record.inbox), len(record.waits)) == (1, 0)
    assert Verifier(engine.store).verify().differences == []


@pytest.mark.slow
def test_a_busy_engine_shows_no_differences(engine: PlainEngine) -> None:
    """No false alarm while starts, wakes, broadcasts, claims of tasks and ends go on beside."""
    engine.work_beside(hosts=2)
    operations, stop = engine.operations, threading.Event()
    failures: list[BaseException] = []

    def traffic() -> None:
        number = 0
        try:
            while not stop.is_set():
                number += 1
                operations.start("race", {"k": f"B{number}"}, id=f"busy-{number}")
                operations.start("alarm")
                operations.publish("Answer", f"B{number - 3}")
                operations.publish("Letter", None, {"k": f"L{number}"})
                operations.publish("Reply", f"L{number - 2}")
                operations.start("approval", {"who": ""}, id=f"app-{number}")
                for task in operations.tasks(limit=2):
                    operations.complete(task.id)
                if number % 5 == 0:
                    operations.signal("Alarm")
                    engine.store.set_clock(engine.store.now() + 60_000)
                if number % 7 == 0:
                    operations.suspend(f"busy-{number}")
                    operations.resume(f"busy-{number}")
        except InputError:
            pass  # a task may have been ended by its boundary between the list and the completion
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=traffic) for _ in range(1)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(12):
            assert Verifier(engine.store).verify().differences == []
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


@pytest.mark.slow
def test_a_repair_beside_an_engine_at_work_undoes_nothing(engine: PlainEngine) -> None:
    """Each repair is refused whole if its owner has changed since it was looked at."""
    engine.work_beside()
    operations, hand = engine.operations, Hand(engine)
    ids = [operations.start("wait", id=f"w{n}").instance_id for n in range(60)]
    stop = threading.Event()

    def spoil() -> None:
        while not stop.is_set():
            hand.client.zpopmax(hand.keys["due"])
            hand.client.zadd(hand.keys["ready"], {"approval-2": 1, "nobody": 1})

    thread = threading.Thread(target=spoil)
    thread.start()
    for _ in range(5):
        Verifier(engine.store).verify(repair=True)
    stop.set()
    thread.join()
    assert Verifier(engine.store).verify(repair=True).left == 0
    engine.store.set_clock(engine.store.now() + 3_600_001)
    until(lambda: all(operations.status(instance) == "completed" for instance in ids))
    for instance in ids:
        record = engine.store.instance(instance)
        assert record is not None
        fired = [entry for entry in record.history if b'"woken"' in entry]
        assert len(fired) == 1, "each deadline fired once"


def test_a_repair_that_comes_too_late_is_refused(engine: PlainEngine) -> None:
    """The guard: what was found is put right only while nothing else has happened to its owner."""
    hand = Hand(engine)
    hand.client.zrem(hand.keys["due"], hand.one("due", "wait-0"))
    verifier = Verifier(engine.store)
    ((difference, guards),) = verifier._exactly("wait-0", set())
    assert difference.kind == "due"
    engine.operations.cancel("wait-0")
    assert not verifier._mend(difference.writes, guards)
    assert not [member for member in hand.client.zrange(hand.keys["due"], 0, -1) if b"wait-0" in member]


def test_the_command_tells_differences_as_lines_and_exits_with_1(
    engine: PlainEngine, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GOBPM_REDIS_URL", url)
    monkeypatch.setenv("GOBPM_ENGINE_ID", engine.store.settings.engine_id)
    assert command_line(["verify", "--json"]) == 0
    capsys.readouterr()
    hand = Hand(engine)
    hand.client.zrem(hand.keys["ready"], "ready-0")
    assert command_line(["verify", "--json"]) == 1
    first, summary = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first == {"kind": "ready", "key": "ready-0", "expected": "an entry", "found": "nothing"}
    assert summary["summary"]["differences"] == 1
    assert command_line(["verify", "--repair"]) == 1
    assert "ready" in capsys.readouterr().out
    assert command_line(["verify"]) == 0


def test_an_engine_without_a_store_says_so() -> None:
    from gobpm_ray.runtime.memory import MemoryStore

    with pytest.raises(InputError, match="in its process"):
        verify(MemoryStore(Settings()))


@pytest.mark.slow
def test_many_writers_arm_and_cancel_and_the_indexes_equal_the_rows(url: str) -> None:
    """C70: 64 writers on one store, each arming and withdrawing timers, some dying between; rows and indexes agree."""
    settings = Settings(engine_id=f"c{uuid.uuid4().hex[:8]}", lease_ttl_ms=60_000)
    client = open_client(url)
    store = RedisStore(client, settings)
    store.deploy("order", b"xml\n<a/>", ())
    from tests.support.stores import start, timer

    def write(number: int) -> None:
        name = f"i{number}"
        held: list[str] = []
        claim = claims[name]
        version = claim.version
        for turn in range(20):
            arms = [timer(f"w{turn}-{n}", 9_000_000_000_000 + turn) for n in range(10)]
            gone, held = held[: 3 * (turn % 3)], held[3 * (turn % 3) :]
            commit: Commit = commit_of(
                claim,
                version=version,
                residency="keep",
                consumed=[t.id for t in claim.triggers] if turn == 0 else [],
                arms=arms,
                withdrawals=gone,
            )
            version = store.commit(commit).version
            held += [arm.wait for arm in arms]

    claims = {}
    for number in range(64):
        start(store, f"i{number}")
        claim = store.claim(f"w{number}:1:1")
        assert claim is not None
        claims[claim.instance_id] = claim
    threads = [threading.Thread(target=write, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = Verifier(store, meaning=False).verify()
    assert report.differences == []
    assert store.population().due > 5_000
    store.close()
    client.close()
