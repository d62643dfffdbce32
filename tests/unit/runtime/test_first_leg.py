"""Bulk starts by way of their first leg: who is tried so, how seldom what never fits, and whose word a refusal is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gobpm_ray.checkpoint import rows
from gobpm_ray.errors import LimitReached, StoreUnavailable, UnknownProcess
from gobpm_ray.model.builder import ProcessBuilder, Stored
from gobpm_ray.model.elements import CustomTask
from gobpm_ray.runtime import first_leg
from gobpm_ray.runtime.first_leg import FirstLegs
from gobpm_ray.runtime.hosting import Hosting
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Accepted, ParkedStart, StartRow
from gobpm_ray.runtime.programs import Programs
from tests.unit.runtime.desk import HOUR, Desk


class Watched(MemoryStore):
    """Counts births and plain starts."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.births: list[int] = []
        self.plain: list[int] = []
        self.fails = False

    def start_parked(self, starts: Sequence[ParkedStart]) -> list[Accepted | None]:
        if self.fails:
            raise StoreUnavailable("the store is away")
        answers = super().start_parked(starts)
        self.births.append(sum(answer is not None for answer in answers))
        return answers

    def start_many(self, rows: Sequence[StartRow], before: int = 0) -> list[Accepted]:
        self.plain.append(len(rows))
        return super().start_many(rows, before)


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk(store_class=Watched)
    yield desk
    desk.close()


def seen(desk: Desk) -> Watched:
    assert isinstance(desk.store, Watched)
    return desk.store


def legs_of(desk: Desk, **given: Any) -> FirstLegs:
    return FirstLegs(desk.store, desk.settings, Programs(desk.store, desk.settings), **given)


def starts(count: int, process: str = "p", version: int = 0, first: int = 0, **values: object) -> list[StartRow]:
    names = [f"{process}{version}-{number}" for number in range(first, first + count)]
    return [(process, version, name, f"start:{name}", "", rows.payload(values)) for name in names]


def waiting(name: str = "p", node: str = "check") -> ProcessBuilder:
    p = ProcessBuilder(name)
    p.start("s").user_task(node).end("e")
    return p


def working(name: str = "work") -> ProcessBuilder:
    p = ProcessBuilder(name)
    p.start("s").service_task("do", topic="do").user_task("check").end("e")
    return p


def test_a_bulk_waits_without_a_host(desk: Desk) -> None:
    """Issue 7: no claim, no actor; each is answered in its place, and wakes like any other."""
    desk.deploy(waiting())
    rows_ = starts(first_leg.TOGETHER * 2 + 7)
    answers = legs_of(desk).start_many(rows_)

    assert [answer.instance_id for answer in answers] == [row[2] for row in rows_]
    assert not any(answer.duplicate for answer in answers)
    assert [answer.seq for answer in answers] == sorted(answer.seq for answer in answers)
    assert (seen(desk).births, seen(desk).plain) == ([50, 50, 7], [])
    assert desk.store.claim("a:1") is None
    assert len(desk.store.tasks()) == len(rows_)
    desk.complete("check")
    assert desk.host.serve_once()
    assert desk.store.population().ended == 1


def test_the_same_bulk_again_is_all_duplicates(desk: Desk) -> None:
    desk.deploy(waiting())
    first = legs_of(desk).start_many(starts(9))
    again = legs_of(desk).start_many(starts(9))
    assert [(a.instance_id, a.duplicate) for a in again] == [(a.instance_id, True) for a in first]
    assert len(desk.store.tasks()) == 9


def test_what_ends_in_its_first_leg_is_born_ended(desk: Desk) -> None:
    p = ProcessBuilder("p")
    p.start("s").script_task("add", "=1 + 1", result="n").end("e")
    desk.deploy(p)
    legs_of(desk).start_many(starts(3))
    assert seen(desk).births == [3]
    assert {desk.store.status(name) for _, name in desk.store.instances()} == {"completed"}


def _near() -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").catch("soon", timer="PT5S").end("e")
    return p


def _failing() -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").script_task("bad", "=[{rule: function(x) x}]", result="n").end("e")
    return p


def _storing() -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").script_task("take", outputs={Stored("Stock"): "=1"}).user_task("check").end("e")
    return p


@pytest.mark.parametrize("model", [working("p"), _near(), _storing()], ids=["work", "near deadline", "data store"])
def test_what_needs_a_host_is_started_plainly(desk: Desk, model: ProcessBuilder) -> None:
    """Work to do, a deadline nearer than the threshold, a data store: ready, untouched, and its host's."""
    desk.deploy(model)
    legs_of(desk).start_many(starts(3))
    assert (seen(desk).births, seen(desk).plain) == ([], [3])
    claim = desk.store.claim("a:1")
    assert claim is not None
    assert (claim.version, claim.epoch, len(claim.triggers)) == (0, 1, 1)


def test_a_first_leg_that_ends_in_an_incident_is_its_hosts_to_tell(desk: Desk) -> None:
    desk.deploy(_failing())
    legs_of(desk).start_many(starts(2))
    assert (seen(desk).births, seen(desk).plain) == ([], [2])
    desk.host.serve_once()
    assert len(desk.store.incidents()) == 2


def test_a_leg_that_raises_is_left_to_a_host(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what no rule of the engine foresees: a client of an older release, a bug."""
    desk.deploy(waiting())
    legs = legs_of(desk)
    monkeypatch.setattr(Hosting, "first_leg", lambda _self: 1 / 0)
    assert len(legs.start_many(starts(2))) == 2
    assert seen(desk).plain == [2]


def test_elements_of_the_users_own_are_left_to_hosts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.deploy(waiting())
    legs = legs_of(desk)
    program = legs._programs.get("p", 1)
    own = {**program.process.nodes, "own": CustomTask(id="own", element="own")}
    monkeypatch.setattr(
        legs._programs, "get", lambda *_name: replace(program, process=replace(program.process, nodes=own))
    )
    legs.start_many(starts(2))
    assert (seen(desk).births, seen(desk).plain) == ([], [2])


def test_a_process_that_never_fits_is_hardly_ever_tried(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 7: what begins with work must not pay for trying each time."""
    desk.deploy(working())
    legs, tried = legs_of(desk), itertools.count()
    whole = Hosting.first_leg
    monkeypatch.setattr(Hosting, "first_leg", lambda self: (next(tried), whole(self))[1])
    for number in range(40):
        legs.start_many(starts(100, "work", first=100 * number))
    assert seen(desk).plain == [100] * 40, "and each bulk is one call of the store, as ever"
    assert next(tried) == 12, "the 1st, 3rd, 7th ... 2,047th, 3,071st"


def test_a_process_that_fits_again_is_tried_each_time(desk: Desk) -> None:
    """A gateway decides by the variables: some of a bulk have work to do first."""
    p = ProcessBuilder("p")
    p.start("s").exclusive("which")
    p.at("which").when("busy").service_task("do", topic="do").end("e1")
    p.at("which").otherwise().user_task("check").end("e2")
    desk.deploy(p)
    legs = legs_of(desk)
    mixed = [row for number in range(10) for row in starts(1, first=number, busy=number == 4)]
    answers = legs.start_many(mixed)
    assert [answer.instance_id for answer in answers] == [row[2] for row in mixed]
    # The one, and the one that was skipped after it.
    assert (seen(desk).births, seen(desk).plain) == ([8], [2])
    legs.start_many(starts(10, first=10, busy=False))
    assert seen(desk).births == [8, 10]


def test_a_new_version_is_noticed_by_the_store_and_then_by_the_client(desk: Desk) -> None:
    """One that somebody else deploys: the bulk that meets it goes plainly, as its newest version."""
    desk.deploy(waiting())
    legs = legs_of(desk)
    legs.start_many(starts(3))
    desk.deploy(waiting(node="other"))
    legs.start_many(starts(3, first=3))
    assert (seen(desk).births, seen(desk).plain) == ([3, 0], [3])
    legs.start_many(starts(9, first=6))
    assert seen(desk).births == [3, 0, 9]
    assert [getattr(desk.store.instance(f"p0-{n}"), "process_version", 0) for n in (0, 4, 8)] == [1, 2, 2]
    legs.start_many(starts(3, version=1))
    assert getattr(desk.store.instance("p1-0"), "process_version", 0) == 1


def test_a_clock_that_jumps_meanwhile_costs_a_plain_start(desk: Desk) -> None:
    """No deadline is computed from a time that is over."""
    p = ProcessBuilder("p")
    p.start("s").catch("sleep", timer="P1D").end("e")
    desk.deploy(p)
    moved = iter(range(1_000))

    def monotonic() -> float:
        if next(moved) == 3:
            desk.store.set_clock(desk.store.now() + HOUR)
        return 0.0

    legs_of(desk, monotonic=monotonic).start_many(starts(6))
    assert (seen(desk).births, seen(desk).plain) == ([0], [6])


def test_the_business_time_is_read_anew_before_it_is_old(desk: Desk) -> None:
    p = ProcessBuilder("p")
    p.start("s").catch("sleep", timer="P1D").end("e")
    desk.deploy(p)
    seconds = itertools.count(step=0.125)

    def monotonic() -> float:
        desk.store.set_clock(desk.store.now() + 100)
        return next(seconds)

    begun = desk.store.now()
    legs_of(desk, monotonic=monotonic).start_many(starts(8))
    assert seen(desk).births == [8]
    created = [getattr(desk.store.instance(f"p0-{n}"), "created", 0) - begun for n in range(8)]
    assert created == [100, 100, 100, 400, 400, 400, 700, 700]


@pytest.mark.parametrize(("process", "version"), [("nothing", 0), ("p", 7)])
def test_what_is_not_deployed_is_refused_as_ever(desk: Desk, process: str, version: int) -> None:
    desk.deploy(waiting())
    with pytest.raises(UnknownProcess, match=process):
        legs_of(desk).start_many(starts(3, process, version))


def test_a_limit_is_refused_as_ever(desk: Desk) -> None:
    """E90: by the plain start, whose words name the limit."""
    desk.deploy(waiting())
    with pytest.raises(LimitReached, match="max_payload"):
        legs_of(desk).start_many(starts(3, text="x" * 2_000_000))
    assert desk.store.instances() == []


def test_a_checkpoint_beyond_its_limit_is_a_hosts_to_hold() -> None:
    desk = Desk(store_class=Watched, max_instance=500)
    desk.deploy(waiting())
    legs_of(desk).start_many(starts(2, text="x" * 1_000))
    assert (seen(desk).births, seen(desk).plain) == ([], [2])
    desk.close()


def test_a_store_that_is_away_is_said_to_be(desk: Desk) -> None:
    """Nothing is started another way meanwhile: nobody knows what the store has done."""
    desk.deploy(waiting())
    seen(desk).fails = True
    with pytest.raises(StoreUnavailable):
        legs_of(desk).start_many(starts(3))
    assert seen(desk).plain == []
