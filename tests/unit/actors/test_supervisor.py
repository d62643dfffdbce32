"""The supervisor over the in-memory store and a Ray that only remembers: how many live, who is buried, who is left
alone."""

from __future__ import annotations

import itertools
import threading

import pytest

from actors.registry import (
    ActorRow,
    Census,
    Heartbeat,
    actor_rows,
    next_actor_number,
    read_heartbeat,
    supervisor_is_alive,
    take_census,
    write_actor,
    write_heartbeat,
)
from actors.supervisor import MAX_CREATION_PAUSE_S, RECONCILE_S, SETTLED_S, End, ResidencySupervisor
from gobpm_ray.errors import StoreUnavailable
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.settings import Settings

HERE = "192.0.2.1:6379"
ELSEWHERE = "192.0.2.9:6379"
PROCESS = b"json\n{}"


class Clock:
    """One time for the store's liveness, the supervisor's monotonic clock and its wall clock."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def monotonic(self) -> float:
        return self.now_ms / 1_000

    def wall_ms(self) -> int:
        return self.now_ms

    def advance(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1_000)


class RememberingRay:
    """`actors.supervisor.Actors` without Ray: actors start at once unless told otherwise, and die when the test says
    so."""

    def __init__(self, store: MemoryStore, clock: Clock, cores: int = 2) -> None:
        self.store = store
        self.clock = clock
        self.alive: dict[str, ActorRow] = {}
        self.kept: dict[str, bool] = {}
        self.asked_to_stop: list[str] = []
        self.killed: list[str] = []
        self.refuses = ""
        self.starts = True
        self.ends_when_asked = True
        self._cores = cores
        self._ended: list[End] = []

    @property
    def cluster(self) -> str:
        return HERE

    def cores(self) -> int:
        return self._cores

    def create(self, row: ActorRow) -> None:
        if self.refuses:
            raise RuntimeError(self.refuses)
        self.alive[row.name] = row
        if self.starts:
            self.start(row)

    def start(self, row: ActorRow) -> None:
        write_actor(
            self.store, ActorRow(row.name, row.number, row.cluster, row.spare, self.clock.wall_ms(), "n1", 4711)
        )

    def adopt(self, row: ActorRow) -> bool:
        return row.name in self.alive

    def spare(self, name: str, kept: bool) -> None:
        self.kept[name] = kept

    def stop(self, name: str, grace_ms: int) -> None:
        self.asked_to_stop.append(name)
        if self.ends_when_asked:
            self.ends(name, clean=True, reason="stopped")

    def kill(self, name: str) -> None:
        self.killed.append(name)
        self.alive.pop(name, None)

    def ends(self, name: str, *, clean: bool, reason: str) -> None:
        self.alive.pop(name, None)
        self._ended.append(End(name, clean, reason))

    def ended(self) -> list[End]:
        ended, self._ended = self._ended, []
        return ended

    def pause(self, timeout_s: float) -> None:
        pass


class Bench:
    """A store with a process, a supervisor over it, and hands that claim as an actor would."""

    def __init__(self, settings: Settings | None = None, cores: int = 2) -> None:
        self.clock = Clock()
        self.settings = settings or Settings()
        self.store = MemoryStore(self.settings, self.clock.wall_ms)
        self.store.deploy("p", PROCESS, [])
        self.ray = RememberingRay(self.store, self.clock, cores)
        self.supervisor = self.another_supervisor()
        self._claims = 0

    def another_supervisor(self) -> ResidencySupervisor:
        return ResidencySupervisor(
            self.store, self.settings, self.ray, node="n1", monotonic=self.clock.monotonic, wall_ms=self.clock.wall_ms
        )

    def make_ready(self, count: int) -> None:
        for _ in range(count):
            self._claims += 1
            self.store.start("p", 0, f"i{self._claims}", f"d{self._claims}", "", b"{}")

    def claim(self, actor: str) -> str:
        """The actor leases the oldest ready instance; its id."""
        self._claims += 1
        claim = self.store.claim(f"{actor}:{self._claims}")
        assert claim is not None
        return claim.instance_id

    def living(self) -> list[str]:
        return sorted(self.ray.alive)

    def leased(self) -> set[str]:
        return {instance for instance, _, _ in self.store.leases()}

    def settle(self) -> list[str]:
        """Passes until no further actor is made; the names of all that live."""
        while self.supervisor.pass_once().created:
            pass
        return self.living()

    def grow_to(self, count: int) -> list[str]:
        """Actors that host one settled instance each."""
        self.make_ready(count)
        while len(self.leased()) < count:
            self.supervisor.pass_once()
            hosting = {token.partition(":")[0] for _, token, _ in self.store.leases()}
            for name in self.living():
                if name not in hosting and self.store.population().ready:
                    self.claim(name)
            self.supervisor.pass_once()
            self.clock.advance(SETTLED_S)
        self.supervisor.pass_once()
        return self.living()


@pytest.fixture
def bench() -> Bench:
    return Bench()


# ----------------------------------------------------------------------------------------------------------- how many


def test_nobody_lives_while_everything_waits(bench: Bench) -> None:
    """C4, promise 7: waiting instances cost no actor."""
    bench.supervisor.pass_once()

    assert bench.living() == []
    assert take_census(bench.store) == Census(0, 0, 0, 0)


def test_one_ready_instance_brings_one_actor(bench: Bench) -> None:
    """C4."""
    bench.make_ready(1)

    outcome = bench.supervisor.pass_once()

    assert outcome.created == bench.living()
    assert len(bench.living()) == 1
    assert bench.supervisor.pass_once().created == [], "the one that is coming is enough"


def test_a_flood_brings_twice_as_many_actors_as_cores(bench: Bench) -> None:
    """Design 3: min(ready depth, 2 x cores)."""
    bench.make_ready(1_000)

    assert len(bench.settle()) == 4


def test_no_more_actors_start_at_a_time_than_there_are_cores(bench: Bench) -> None:
    """A start costs about a second of CPU: eight at once on two cores would make the first one late for all."""
    bench.ray.starts = False
    bench.make_ready(1_000)

    assert len(bench.settle()) == 2

    bench.ray.start(bench.ray.alive[bench.living()[0]])
    assert len(bench.settle()) == 3


def test_actors_that_move_through_a_flood_do_not_multiply(bench: Bench) -> None:
    """Design 3: a lease that is a moment old is work in progress, not a resident that needs a place of its own."""
    bench.make_ready(1_000)
    for name in bench.settle():
        bench.claim(name)

    for _ in range(5):
        bench.clock.advance(0.1)
        assert bench.supervisor.pass_once().created == []


def test_residents_off_the_cpu_leave_room_for_new_work(bench: Bench) -> None:
    """Design 3: an actor that hosts a long effect is not counted on for the next ready instance."""
    residents = bench.grow_to(4)
    bench.make_ready(1)

    outcome = bench.supervisor.pass_once()

    assert outcome.settled == 4
    assert len(outcome.created) == 1
    assert set(residents) < set(bench.living())


def test_max_resident_caps_them_and_spares_come_on_top() -> None:
    """Design 3: `max_resident`."""
    bench = Bench(Settings(max_resident=3, spares=1))
    bench.grow_to(3)
    bench.make_ready(50)

    bench.supervisor.pass_once()

    assert len(bench.living()) == 4


def test_an_instance_that_is_ready_for_a_second_brings_one_more_actor_a_second() -> None:
    """Design 3: one more whenever the oldest ready row is older than 1 s and every actor is busy."""
    bench = Bench(cores=1)
    bench.make_ready(60)
    names = bench.settle()
    assert len(names) == 2
    created: list[tuple[float, str]] = []
    claims: dict[str, str] = {}
    for tenth in range(40):
        for name in bench.living():
            # Everybody is busy all the time and nothing settles: each claims, commits and goes on to the next.
            bench.store.release_dead(name)
            claims[name] = bench.claim(name)
        bench.make_ready(1)
        created += [(tenth / 10, name) for name in bench.supervisor.pass_once().created]
        bench.clock.advance(0.1)

    times = [at for at, _ in created]
    assert 2 <= len(times) <= 3
    assert times[0] > 1.0
    assert all(later - earlier >= 1.0 for earlier, later in itertools.pairwise(times))


def test_spares_are_made_before_there_is_work_and_told_to_stay() -> None:
    """Promise 7: configured spares."""
    bench = Bench(Settings(spares=2))

    bench.supervisor.pass_once()

    assert len(bench.living()) == 2
    assert bench.ray.kept == dict.fromkeys(bench.living(), True)


def test_a_short_wake_is_served_by_a_spare_and_makes_no_second_actor() -> None:
    """Promise 7."""
    bench = Bench(Settings(spares=1))
    bench.supervisor.pass_once()
    bench.make_ready(1)
    assert bench.supervisor.pass_once().created == []

    bench.claim(bench.living()[0])

    assert bench.supervisor.pass_once().created == []


def test_a_spare_that_became_a_lasting_resident_is_replaced() -> None:
    """Promise 7: the spares are free ones."""
    bench = Bench(Settings(spares=1))
    bench.supervisor.pass_once()
    (first,) = bench.living()
    bench.make_ready(1)
    bench.claim(first)
    bench.supervisor.pass_once()
    bench.clock.advance(SETTLED_S)

    bench.supervisor.pass_once()

    (second,) = set(bench.living()) - {first}
    assert bench.ray.kept == {first: False, second: True}


# ------------------------------------------------------------------------------------------------------------- deaths


def test_a_death_releases_its_lease_at_once_and_its_row_goes(bench: Bench) -> None:
    """Design 3, N9: Ray's report of a death releases that actor's lease by its token, long before it expires."""
    doomed, other = bench.grow_to(2)
    of_doomed = {instance for instance, token, _ in bench.store.leases() if token.startswith(doomed)}
    bench.ray.ends(doomed, clean=False, reason="SIGKILL")

    outcome = bench.supervisor.pass_once()

    assert outcome.released == 1
    assert outcome.buried == [doomed]
    assert bench.leased().isdisjoint(of_doomed)
    assert len(bench.leased()) == 1, f"{other} keeps its own"
    assert doomed not in [row.name for row in actor_rows(bench.store)]
    assert len(outcome.created) == 1, "for what became ready again"


def test_an_actor_that_lingered_out_leaves_nothing_and_needs_no_successor(bench: Bench) -> None:
    """Promise 7: a free actor lingers, ends, and is not counted any more."""
    bench.make_ready(1)
    bench.supervisor.pass_once()
    (name,) = bench.living()
    bench.claim("served-elsewhere")
    bench.ray.ends(name, clean=True, reason="lingered")

    outcome = bench.supervisor.pass_once()

    assert outcome.buried == [name]
    assert actor_rows(bench.store) == []
    assert bench.living() == []


def test_an_end_that_is_reported_while_the_store_is_away_is_not_forgotten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Promise 1: the store was killed and came back; who died meanwhile is not counted among the living for ever."""
    bench.make_ready(1)
    bench.supervisor.pass_once()
    (name,) = bench.living()

    def away(actor: str) -> int:
        raise StoreUnavailable("store: away")

    bench.ray.ends(name, clean=True, reason="lingered")
    with monkeypatch.context() as broken:
        broken.setattr(bench.store, "release_dead", away)
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                bench.supervisor.pass_once()

    outcome = bench.supervisor.pass_once()

    assert outcome.buried == [name]
    assert len(outcome.created) == 1, "for the one that is still ready"


def test_an_actor_that_never_starts_is_retried_ever_more_slowly(bench: Bench) -> None:
    """A module missing on the nodes must not make Ray fail as fast as it can."""
    bench.ray.starts = False
    bench.make_ready(1)
    attempts = []
    for second in range(64):
        for name in bench.supervisor.pass_once().created:
            attempts.append(second)
            bench.ray.ends(name, clean=False, reason="ModuleNotFoundError: no module named orders")
        bench.clock.advance(1.0)

    gaps = [later - earlier for earlier, later in itertools.pairwise(attempts)]
    assert gaps == sorted(gaps)
    assert 4 <= len(attempts) <= 8
    assert max(gaps) <= MAX_CREATION_PAUSE_S + 1
    heartbeat = read_heartbeat(bench.store)
    assert heartbeat is not None
    assert "ModuleNotFoundError" in heartbeat.trouble


def test_an_actor_that_ray_refuses_to_create_leaves_no_row(bench: Bench) -> None:
    bench.ray.refuses = "no such node"
    bench.make_ready(1)

    bench.supervisor.pass_once()

    assert actor_rows(bench.store) == []
    bench.ray.refuses = ""
    bench.clock.advance(1.0)
    assert len(bench.supervisor.pass_once().created) == 1
    bench.supervisor.pass_once()
    heartbeat = read_heartbeat(bench.store)
    bench.clock.advance(1.0)
    bench.supervisor.pass_once()
    heartbeat = read_heartbeat(bench.store)
    assert heartbeat is not None
    assert heartbeat.trouble == "", "it healed"


# ----------------------------------------------------------------------------------------------------------- adoption


def test_a_new_supervisor_adopts_the_living_and_touches_no_lease(bench: Bench) -> None:
    """Design 3: a new supervisor adopts the living; it never kills a resident."""
    residents = bench.grow_to(3)
    leases = bench.leased()
    successor = bench.another_supervisor()

    outcome = successor.pass_once()

    assert bench.living() == residents
    assert bench.ray.killed == []
    assert bench.leased() == leases
    assert outcome.living == 3
    assert outcome.created == []
    bench.ray.ends(residents[0], clean=False, reason="SIGKILL")
    assert successor.pass_once().released == 1, "the adopted are watched as the created are"


def test_a_new_supervisor_buries_those_who_died_unwatched(bench: Bench) -> None:
    """N9: the whole cluster was killed; the rows it left name actors that Ray does not know."""
    residents = bench.grow_to(3)
    bench.ray.alive.clear()

    outcome = bench.another_supervisor().pass_once()

    assert sorted(outcome.buried) == residents
    assert outcome.released == 3
    assert outcome.ready == 3
    assert len(outcome.created) == 2, "as many at a time as there are cores"


def test_an_actor_whose_supervisor_died_before_it_started_is_adopted(bench: Bench) -> None:
    """Its row was written before it was created, so that no actor is ever unknown."""
    bench.ray.starts = False
    bench.make_ready(1)
    bench.supervisor.pass_once()
    (name,) = bench.living()

    outcome = bench.another_supervisor().pass_once()

    assert bench.living() == [name]
    assert outcome.created == []


def test_numbers_are_never_used_again(bench: Bench) -> None:
    """A token's prefix names one actor for ever: a late report must not release another one's lease."""
    bench.grow_to(2)
    bench.ray.alive.clear()
    successor = bench.another_supervisor()
    successor.pass_once()

    assert [row.number for row in actor_rows(bench.store)] == [3, 4]
    assert next_actor_number(bench.store) == 5


def test_actors_of_another_living_cluster_are_left_alone(bench: Bench) -> None:
    """D22: two clusters on one store; neither can see the other's actors, and neither may bury them."""
    theirs = ActorRow("InstanceActor-90-abcdef", 90, ELSEWHERE, since_ms=bench.clock.now_ms)
    write_actor(bench.store, theirs)
    bench.make_ready(1)
    bench.claim(theirs.name)
    for _ in range(30):
        write_heartbeat(bench.store, Heartbeat(bench.clock.now_ms, 1, "n9", ELSEWHERE))
        bench.clock.advance(1.0)
        bench.supervisor.pass_once()

    assert [row.name for row in actor_rows(bench.store)] == [theirs.name]
    assert len(bench.leased()) == 1


def test_actors_of_a_cluster_that_is_gone_are_buried(bench: Bench) -> None:
    """N9: after the whole cluster was killed its successor has another address."""
    theirs = ActorRow("InstanceActor-90-abcdef", 90, ELSEWHERE, since_ms=bench.clock.now_ms)
    write_actor(bench.store, theirs)
    write_heartbeat(bench.store, Heartbeat(bench.clock.now_ms, 1, "n9", ELSEWHERE))
    bench.make_ready(1)
    bench.claim(theirs.name)
    bench.supervisor.pass_once()
    assert len(bench.leased()) == 1, "a moment ago it lived"

    bench.clock.advance(RECONCILE_S)
    bench.supervisor.pass_once()

    assert bench.leased() == set()
    assert theirs.name not in [row.name for row in actor_rows(bench.store)]


# ---------------------------------------------------------------------------------------------- heartbeat and counts


def test_the_heartbeat_tells_that_a_supervisor_lives_and_goes_stale(bench: Bench) -> None:
    """Design 11: operations warn once when no supervisor is alive."""
    assert not supervisor_is_alive(bench.store, bench.clock.wall_ms())
    bench.supervisor.pass_once()
    assert supervisor_is_alive(bench.store, bench.clock.wall_ms())

    bench.clock.advance(5.0)

    assert not supervisor_is_alive(bench.store, bench.clock.wall_ms())


def test_the_census_adds_up() -> None:
    """Promise 7: living = resident + free + spares."""
    bench = Bench(Settings(spares=1))
    bench.make_ready(3)
    names = bench.settle()
    assert len(names) == 3
    bench.claim(names[2])
    spare = next(name for name, kept in bench.ray.kept.items() if kept)
    row = next(row for row in actor_rows(bench.store) if row.name == spare)
    write_actor(bench.store, ActorRow(row.name, row.number, row.cluster, True, row.since_ms))

    assert take_census(bench.store) == Census(actors=3, resident=1, free=1, spares=1)


def test_a_row_that_nobody_can_read_is_skipped(bench: Bench) -> None:
    bench.store.put_value("actors", "from-the-future", b'{"shape": "unknown"}')
    bench.store.put_value("engine", "supervisor", b"not json")

    bench.supervisor.pass_once()

    assert actor_rows(bench.store) == []


# ---------------------------------------------------------------------------------------------------------- stopping


def test_a_drain_asks_everyone_and_kills_nobody_who_listens(bench: Bench) -> None:
    """N11: shutdown lets the running step finish within a grace."""
    names = bench.grow_to(3)

    assert bench.supervisor.drain(1_000) == 0

    assert sorted(bench.ray.asked_to_stop) == names
    assert bench.ray.killed == []
    assert actor_rows(bench.store) == []
    assert read_heartbeat(bench.store) is None


def test_a_drain_kills_who_does_not_end_within_the_grace_and_loses_nothing(bench: Bench) -> None:
    """N11: it is abandoned without a false release: its lease is given back only once it is dead."""
    names = bench.grow_to(2)
    bench.ray.ends_when_asked = False
    moved = threading.Event()
    original = bench.store.wait_bell

    def impatient(bell, timeout_s):
        bench.clock.advance(0.5)
        moved.set()
        return False

    bench.store.wait_bell = impatient  # type: ignore[method-assign]
    try:
        killed = bench.supervisor.drain(1_000)
    finally:
        bench.store.wait_bell = original  # type: ignore[method-assign]

    assert moved.is_set()
    assert killed == 2
    assert sorted(bench.ray.killed) == names
    assert bench.leased() == set()
    assert bench.store.population().ready == 2


def test_a_failing_pass_ends_the_pass_and_not_the_loop(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """H7."""
    stop = threading.Event()
    calls: list[int] = []
    settings = Settings(holder_tick_ms=1)
    supervisor = ResidencySupervisor(bench.store, settings, bench.ray)

    def readiness():
        calls.append(1)
        if len(calls) == 1:
            raise StoreUnavailable("store: gone")
        if len(calls) == 2:
            raise ZeroDivisionError
        stop.set()
        return MemoryStore.readiness(bench.store)

    monkeypatch.setattr(bench.store, "readiness", readiness)
    supervisor.run(stop)

    assert len(calls) == 3
