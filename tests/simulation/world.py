"""A deterministic simulation of the whole engine: one thread, one seed, one history.

Theory of operation. Every os_process of the engine (each holder, the supervisor, each InstanceActor's life, each
client) is a greenlet over the plain classes, and its store is a `Tap`: before each call it hands control back to the
scheduler, which decides from a list of events who runs next and for how many calls, who dies there, who freezes and
comes back as a zombie, whose call is lost on its way and whose only loses the answer, and how the two clocks go. The
scripts are the real ones, on a real server whose liveness is the `liveness` key's. Whatever an event names is taken
modulo what there is, so a history stays a history when events are dropped from it: that is how a failing one is shrunk.
"""

from __future__ import annotations

import hashlib
import logging
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from actors.registry import ActorRow
from actors.supervisor import End, ResidencySupervisor
from gobpm_ray.checkpoint.rows import read_history_entry
from gobpm_ray.errors import EnvironmentFailure, LeaseLost, StoreUnavailable
from gobpm_ray.runtime.callables import Callables, EffectContext
from gobpm_ray.runtime.first_leg import FirstLegs
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.leasing import Bell, Event, Lost, Renewed, Watched
from gobpm_ray.runtime.ports import Accepted, Answer, BellName, Commit, CommitResult, ParkedStart, Store
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.runtime.sending import CarriedOut
from gobpm_ray.settings import Settings
from gobpm_ray.store.redis_store import RedisStore
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder
from tests.crash.checks import Image, image, index_faults, ledger_faults, verified
from tests.crash.workload import STRICT, TOPICS, Client, Delivery, Ledger, Op
from tests.support.stage import NoRay, OneThread, QuietLife, Stage

SETTINGS = Settings(
    engine_id="sim",
    linger_ms=500,
    max_resident=4,
    wake_backoff_ms=1_000,
    claim_triggers=3,
    claim_ahead=2,
    whole_parts=12,
    history_limit=10_000,
)
BEGIN = 1_767_225_600_000
LIVE_BEGIN = 1_800_000_000_000
SYNC = ("wait_bell", "wait_instance_bell")


class Killed(BaseException):
    """SIGKILL: unwinds the greenlet, and nothing that it tries meanwhile reaches the store."""


@dataclass(frozen=True)
class Happening:
    """One event of a history."""

    what: str
    """run | op | kill | freeze | thaw | lose | deny | live | clock | restart"""
    who: int = 0
    amount: int = 0
    op: Op | None = None


class OsProcess:
    """One greenlet of the simulation, named as its role."""

    def __init__(self, world: Simulation, name: str, body: Callable[[OsProcess], object]) -> None:
        self.world = world
        self.name = name
        self.budget = 0
        self.alive = True
        self.frozen = False
        self.blocked = False
        """It waits for a bell, an event or time."""
        self.ticks = False
        """This turn a sleep without a bell is over as well."""
        self.lose = ""
        """before | after: what becomes of its next call."""
        self.tap = cast(Store, Tap(self))
        self.greenlet = greenlet(lambda: self._live(body), world.hub)

    def _live(self, body: Callable[[OsProcess], object]) -> None:
        try:
            body(self)
        except Killed:
            pass
        except Exception as failure:
            self.world.faults.append(f"{self.name} failed: {failure!r}")
            self.world.ray.report(self.name, clean=False)

    def run(self, calls: int, *, ticks: bool) -> None:
        self.budget = calls
        self.ticks = ticks
        self.blocked = False
        self.world.current = self
        self.greenlet.switch()
        if self.greenlet.dead:
            self.alive = False

    def pause(self, *, blocked: bool = False) -> None:
        """Back to the scheduler when this turn's calls are used up, or there is nothing to do."""
        if not self.alive:
            raise Killed
        self.budget -= 1
        if blocked:
            self.blocked = True
        while self.budget < 0 or self.blocked:
            self.world.hub.switch()
            if not self.alive:
                raise Killed

    def kill(self) -> None:
        self.alive = False
        if self.greenlet:  # begun and not ended
            self.greenlet.throw(Killed)


class Tap:
    """The store as one os_process reaches it."""

    def __init__(self, process: OsProcess) -> None:
        self._process = process
        self._store = process.world.store

    def send_commit(self, commit: Commit) -> Answer[CommitResult]:
        return CarriedOut(self.commit, commit)

    def send_parked(self, starts: Sequence[ParkedStart]) -> Answer[list[Accepted | None]]:
        return CarriedOut(self.start_parked, starts)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not callable(method):
            return method
        process, world = self._process, self._process.world

        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "wait_bell":
                return self._sleep(*args)
            if name == "hold":
                process.world.stats["held"] += 1
            if name == "wait_instance_bell":
                process.pause()
                return world.pop_instance_bell(args[0])
            process.pause()
            lose, process.lose = process.lose, ""
            if lose == "before":
                world.note(process.name, name, "never sent")
                raise StoreUnavailable("simulated: the call was lost")
            try:
                answer = method(*args, **kwargs)
            except EnvironmentFailure:
                raise
            except Exception as refusal:
                world.note(process.name, name, type(refusal).__name__)
                raise
            world.observe(process, name, args, answer)
            world.note(process.name, name, "answer lost" if lose else "done")
            if lose:
                raise StoreUnavailable("simulated: the answer was lost")
            return answer

        self.__dict__[name] = call
        return call

    def _sleep(self, bell: BellName, timeout_s: float) -> bool:
        """Asleep until the bell rings; whether its time has run out is the scheduler's to say."""
        process = self._process
        while True:
            process.pause(blocked=timeout_s > 0)
            rung = self._store.wait_bell(bell, 0)
            if rung or process.ticks or timeout_s <= 0:
                return rung


class Pause(threading.Event):
    """`stop` of a loop: a wait is the scheduler's."""

    def __init__(self, process: OsProcess) -> None:
        super().__init__()
        self._process = process

    def wait(self, timeout: float | None = None) -> bool:
        if timeout:
            self._process.pause(blocked=True)
        return self.is_set()


class Inbox(OneThread):
    """The queue of a hosting; who sleeps on it does the work of its renewer and its listener when it is looked at."""

    def __init__(self, host: SimulatedHost) -> None:
        super().__init__()
        self._host = host

    def get(self, timeout: float | None = None) -> Event:
        host = self._host
        while not self._events:
            host.process.pause(blocked=True)
            watched = host.watching.watched
            assert watched is not None
            try:
                if host.store.wait_instance_bell(watched.instance_id, 0):
                    return Bell()
                inbox, ready = host.store.renew(watched.instance_id, watched.token)
                return Renewed(inbox, ready)
            except LeaseLost as lost:
                return Lost(str(lost))
            except EnvironmentFailure:
                continue
        return self._events.popleft()


class Watching:
    """Renewer and listener of a host in one thread: they only remember for whom."""

    def __init__(self) -> None:
        self.watched: Watched | None = None

    def watch(self, watched: Watched) -> None:
        self.watched = watched

    def rest(self) -> None:
        """It is looked at only while somebody sleeps."""

    def close(self) -> None:
        """No thread."""


class SimulatedHost(Host):
    def __init__(self, process: OsProcess, row: ActorRow) -> None:
        world = process.world
        super().__init__(
            process.tap,
            world.settings,
            world.programs,
            Callables(lambda _topic: None, local={topic: process_effect(process) for topic in TOPICS}),
            row.name,
            inline_effects=True,
            sleep=lambda _s: process.pause(blocked=True),
            new_events=lambda: Inbox(self),  # type: ignore[arg-type, return-value]
        )
        self.process = process
        self.watching = Watching()
        self._boot = "b"
        self._renewer = self._listener = self.watching  # type: ignore[assignment]


def process_effect(process: OsProcess) -> Callable[..., object]:
    def effect(inputs: dict[str, object], context: EffectContext) -> dict[str, object]:
        process.pause()
        process.world.effects.append(context.idempotency_key)
        process.pause()
        return {}

    return effect


class Ray(NoRay):
    """`actors.supervisor.Actors`: makes lives, knows who lives, reports deaths to whoever asks."""

    cluster = "simulated"

    def __init__(self, world: Simulation) -> None:
        super().__init__()
        self._world = world

    def create(self, row: ActorRow) -> None:
        self._world.born(row)

    def adopt(self, row: ActorRow) -> bool:
        return any(process.name == row.name and process.alive for process in self._world.processes)

    def report(self, name: str, *, clean: bool) -> None:
        self._ended.append(End(name, clean, "" if clean else "killed"))


class Simulation:
    """`programs` never change and compiling them costs more than a whole history: one table for all."""

    def __init__(
        self,
        store: RedisStore,
        client: Any,
        settings: Settings,
        starting: Callable[[Store], object],
        programs: Programs,
        *,
        verifies: bool = True,
    ) -> None:
        self.verifies = verifies
        """The engine's own `verify` is asked at the end, beside the check by hand that costs a twentieth of it."""
        self.programs = programs
        self.store = store
        self.client = client
        self.settings = settings
        self.hub = getcurrent()
        self.current: OsProcess | None = None
        self.live = LIVE_BEGIN
        self.effects: list[str] = []
        self.ledger = Ledger()
        self.processes: list[OsProcess] = []
        self.ray = Ray(self)
        self.commits: dict[str, list[Any]] = {}
        """Commits that the store took, by instance, in order."""
        self.faults: list[str] = []
        self._ops: deque[Op] = deque()
        self._digest = hashlib.sha256()
        self.notes: list[str] | None = None
        self.stats = {"calls": 0, "kills": 0, "zombies": 0, "lost": 0, "fenced": 0, "held": 0}
        client.flushdb()
        self._set_live()
        store.manual_clock(BEGIN)
        starting(store)
        for role in ("message", "timer", "task", "supervisor", "client-1", "client-2"):
            self._boot(role)

    # --- whoever lives

    def _boot(self, role: str) -> None:
        bodies: dict[str, Callable[[OsProcess], object]] = {
            "message": self._holder(MessageHolder),
            "timer": self._holder(TimerHolder),
            "task": self._holder(TaskHolder),
            "supervisor": self._supervise,
        }
        self.processes.append(OsProcess(self, role, bodies.get(role, self._be_client)))

    def _holder(self, kind: type[Any]) -> Callable[[OsProcess], object]:
        def body(process: OsProcess) -> None:
            holder = kind(process.tap, self.settings, live_ms=lambda: self.live)
            holder.token = f"{holder.kind}:sim"  # Ray restarts a holder under the name it had
            holder.run(Pause(process))

        return body

    def _supervise(self, process: OsProcess) -> None:
        ResidencySupervisor(
            process.tap, self.settings, self.ray, monotonic=lambda: self.live / 1_000, wall_ms=lambda: self.live
        ).run(Pause(process))

    def _be_client(self, process: OsProcess) -> None:
        legs = FirstLegs(process.tap, self.settings, self.programs, monotonic=lambda: self.live / 1_000)
        client = Client(process.tap, self.ledger, rest=lambda: process.pause(blocked=True), first_legs=legs)
        while True:
            if self._ops:
                client.carry_out(self._ops.popleft())
            else:
                process.pause(blocked=True)

    def born(self, row: ActorRow) -> None:
        def body(process: OsProcess) -> None:
            life = QuietLife(
                row,
                SimulatedHost(process, row),
                process.tap,
                self.settings,
                Stage(),
                monotonic=lambda: self.live / 1_000,
                wall_ms=lambda: self.live,
                memory=lambda: 0,
            )
            life._stopping = Pause(process)
            life.run()
            self.ray.report(row.name, clean=True)

        self.processes.append(OsProcess(self, row.name, body))

    # --- what the scheduler sees

    def note(self, who: str, call: str, how: str) -> None:
        self.stats["calls"] += 1
        self.stats["fenced"] += how == "LeaseLost"
        line = f"{who.rpartition('-')[0] or who} {call} {how}"
        self._digest.update(line.encode())
        if self.notes is not None:
            self.notes.append(line)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def observe(self, process: OsProcess, name: str, args: tuple[Any, ...], answer: Any) -> None:
        """What only a bystander can know: which commit was taken, who listened when a signal was accepted."""
        if name == "commit":
            commit = args[0]
            taken = self.commits.setdefault(commit.instance_id, [])
            if all(before.commit_id != commit.commit_id for before in taken):
                if commit.version != len(taken):
                    self.faults.append(f"{commit.instance_id}: a commit from version {commit.version} was taken twice")
                taken.append(commit)
        elif name == "start_parked":
            for start, accepted in zip(args[0], answer, strict=True):
                if accepted is not None and not accepted.duplicate:
                    self.commits[start.instance_id] = [start.commit]
        elif name == "publish" and args[1] == "signal" and not answer.duplicate:
            members = self.client.zrangebylex(self.store.keys["subs"], b"[" + args[2].encode() + b"\x1e", "+")
            mine = [m.decode().split("\x1e") for m in members if m.startswith(args[2].encode() + b"\x1e")]
            self.ledger.deliveries[args[0]].listeners = frozenset((m[2], m[3]) for m in mine)

    def pop_instance_bell(self, instance_id: str) -> bool:
        return self.client.lpop(self.store.keys.instance(instance_id) + b":b") is not None

    def _set_live(self) -> None:
        self.client.set(self.store.keys["liveness"], self.live)

    def pass_time(self, ms: int) -> None:
        self.live += ms
        self._set_live()

    def set_clock(self, ms: int) -> None:
        self.store.set_clock(self.store.now() + ms)

    # --- a history

    def happen(self, event: Happening) -> None:
        awake = [process for process in self.processes if process.alive and not process.frozen]
        match event.what:
            case "run":
                if awake:
                    awake[event.who % len(awake)].run(event.amount, ticks=event.who % 3 == 0)
            case "op":
                assert event.op is not None
                self._ops.append(event.op)
            case "kill":
                self._kill(self._victim(awake, event))
            case "freeze":
                if (victim := self._victim(awake, event)) is not None:
                    victim.frozen = True
                    self.stats["zombies"] += 1
            case "thaw":
                frozen = [process for process in self.processes if process.alive and process.frozen]
                if frozen:
                    frozen[event.who % len(frozen)].frozen = False
            case "lose" | "deny":
                if awake:
                    awake[event.who % len(awake)].lose = "after" if event.what == "lose" else "before"
                    self.stats["lost"] += 1
            case "live":
                self.pass_time(event.amount)
            case "clock":
                self.set_clock(event.amount)
            case "restart":
                self._restart()
        self._forget_the_dead()

    def _victim(self, awake: list[OsProcess], event: Happening) -> OsProcess | None:
        """Mostly an actor, for whoever holds a lease has the most to lose."""
        actors = [process for process in awake if process.name.startswith("InstanceActor")]
        chosen = actors if actors and event.who % 4 else awake
        return chosen[event.who % len(chosen)] if chosen else None

    def _kill(self, process: OsProcess | None) -> None:
        if process is None:
            return
        self.stats["kills"] += 1
        process.kill()
        self.ray.report(process.name, clean=False)

    def _restart(self) -> None:
        """What Ray does about a dead holder or supervisor, and whoever runs clients about theirs."""
        living = {process.name for process in self.processes if process.alive}
        for role in ("message", "timer", "task", "supervisor", "client-1", "client-2"):
            if role not in living:
                self._boot(role)

    def _forget_the_dead(self) -> None:
        if any(not process.alive for process in self.processes):
            self.processes = [process for process in self.processes if process.alive]

    def heal(self) -> None:
        """No more trouble: everybody is there, and time goes on until nothing moves."""
        for process in self.processes:
            process.frozen = False
            process.lose = ""
        self._restart()
        self._ops.extend([Op("resume_all")])
        for round_ in range(120):
            for process in list(self.processes):
                if process.alive:
                    process.run(60, ticks=round_ % 4 < 2)
            self._forget_the_dead()
            if round_ >= 2 and not self._ops and self.store.quiet().quiet and self._clients_rest():
                return
            self.pass_time(1_100 if round_ % 4 else self.settings.lease_ttl_ms)
        self.faults.append("the engine does not come to rest")

    def _clients_rest(self) -> bool:
        return all(process.blocked for process in self.processes if process.name.startswith("client"))

    def judge(self) -> Image:
        seen = image(self.client, self.store.keys)
        self.faults += index_faults(seen)
        if self.verifies:
            self.faults += verified(self.store, self.programs)
        self.faults += ledger_faults(seen, self.ledger)
        for instance, taken in self.commits.items():
            row = seen.rows[instance]
            written = [entry for commit in taken for entry in commit.history]
            others = list(row.history)
            for entry in written:
                if entry in others:
                    others.remove(entry)
                else:
                    self.faults.append(f"{instance}: its history lacks {entry!r}")
            # The scripts write two kinds of lines themselves: triggers that found it ended, and a hold after deaths.
            told = [read_history_entry(entry).event for entry in others]
            if set(told) - {"overtaken", "incident"} or told.count("incident") > self.stats["held"]:
                self.faults.append(f"{instance}: its history has more than its {len(taken)} commits wrote: {others}")
            if int(row.fields["v"]) != len(taken):
                self.faults.append(f"{instance}: version {row.fields['v']!r} after {len(taken)} commits")
        return seen

    def close(self) -> None:
        for process in self.processes:
            if process.alive:
                process.kill()


# ------------------------------------------------------------------------------------------------------------ histories

STARTS = ("collector", "guarded", "race", "split", "sub", "thrower")
KEYS = ("A", "B")


def history(seed: int, length: int = 150) -> list[Happening]:
    """The seed's events: wishes of clients, turns, and trouble."""
    chance = random.Random(seed)
    calm = chance.random() < 0.15
    """Some histories have no trouble but timing."""
    found = [Happening("op", op=Op("start", name=name, key=chance.choice(KEYS))) for name in chance.sample(STARTS, 4)]
    while len(found) < length:
        dice = chance.random()
        who = chance.randrange(1 << 16)
        if dice < 0.02 and not calm:
            found += _absence(chance)
            continue
        if dice < 0.20:
            found.append(Happening("op", op=_wish(chance)))
        elif dice < 0.30 and not calm:
            what = chance.choice(
                ("kill", "kill", "freeze", "freeze", "thaw", "thaw", "lose", "lose", "deny", "restart", "restart")
            )
            found.append(Happening(what, who))
        elif dice < 0.35:
            found.append(Happening("live", amount=chance.choice((50, 600, 1_100, 4_000, 11_000))))
        elif dice < 0.39:
            found.append(Happening("clock", amount=chance.choice((1_000, 21_000, 400_000, 1_000_000))))
        else:
            found.append(Happening("run", who, chance.choice((0, 1, 1, 2, 3, 5, 8))))
    return found


def _absence(chance: random.Random) -> list[Happening]:
    """Somebody freezes for longer than a lease lives, the others go on, and the zombie comes back."""
    turns = [Happening("run", chance.randrange(1 << 16), 8) for _ in range(chance.randrange(4, 16))]
    back = [Happening("thaw", chance.randrange(1 << 16))]
    after = [Happening("run", chance.randrange(1 << 16), chance.choice((1, 3, 8))) for _ in range(6)]
    return [Happening("freeze", chance.randrange(1 << 16)), Happening("live", amount=11_000), *turns, *back, *after]


def _wish(chance: random.Random) -> Op:
    kind = chance.choices(
        ("start", "bulk", "message", "signal", "complete", "repeat", "hold", "cancel", "set", "heal"),
        (17, 3, 34, 8, 16, 8, 4, 3, 3, 4),
    )[0]
    key = chance.choice((*KEYS, *STRICT))
    if kind == "start" and key in STRICT:
        return Op("start", name="collector", key=key)
    names = {
        "start": STARTS,
        "bulk": STARTS,
        "message": ("Item", "Item", "Go", "Nudge", "Stop", "Order"),
        "signal": ("Alarm", "Abort"),
    }
    return Op(
        kind,
        chance.randrange(1 << 16),
        chance.choice(names.get(kind, ("",))) if key not in STRICT or kind != "message" else "Item",
        key,
        chance.random() < (0.1 if kind == "message" else 0.5),
    )


@dataclass
class Verdict:
    faults: list[str]
    digest: str
    stats: dict[str, int]
    deliveries: int


def play(
    store: RedisStore,
    client: Any,
    events: Sequence[Happening],
    starting: Callable[[Store], object],
    programs: Programs,
    notes: list[str] | None = None,
    *,
    verifies: bool = True,
) -> Verdict:
    """One history, from an empty store to rest and judgement."""
    world = Simulation(store, client, SETTINGS, starting, programs, verifies=verifies)
    world.notes = notes
    try:
        for event in events:
            world.happen(event)
        world.heal()
        world.judge()
    except Exception as failure:
        world.faults.append(f"the engine failed: {failure!r}")
    finally:
        world.close()
    accepted: list[Delivery] = [d for d in world.ledger.deliveries.values() if d.state == "accepted"]
    return Verdict(world.faults, world.digest, world.stats, len(accepted))


def shrunk(events: Sequence[Happening], fails: Callable[[Sequence[Happening]], bool]) -> list[Happening]:
    """Events dropped, in halves first and one by one at last, while the history still fails."""
    found = list(events)
    size = len(found) // 2
    while size:
        at = 0
        while at < len(found):
            candidate = found[:at] + found[at + size :]
            if fails(candidate):
                found = candidate
            else:
                at += size
        size //= 2
    return found


@contextmanager
def silence() -> Iterator[None]:
    """The engine's log says nothing meanwhile: here everybody dies all the time, and says so."""
    loggers = [logging.getLogger(name) for name in ("gobpm_ray", "actors")]
    levels = [log.level for log in loggers]
    for log in loggers:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in zip(loggers, levels, strict=True):
            log.setLevel(level)
