"""`python -m tests.crash.fuzz --seconds N --seed S [--json]`: an engine of os_processes, and no mercy.

Hosts, holders and clients are forks of this process over a real store that syncs every write; they, and the store, are
killed with SIGKILL, frozen with SIGSTOP for longer than a lease lives, and come back. When the time is over everybody
is brought back, and what was accepted is followed to its effect (`tests.crash.checks`), every index compared
(`verify`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import redis

from actors.life import Life
from actors.registry import ActorRow
from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.runtime.callables import Callables, EffectContext
from gobpm_ray.runtime.first_leg import FirstLegs
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.verify import verify
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder
from tests.crash.broken import BREAKS, without
from tests.crash.cases import deployment
from tests.crash.checks import image, index_faults, ledger_faults
from tests.crash.workload import STRICT, TOPICS, Client, Delivery, Ledger, Op, processes
from tests.support.stage import Stage

SETTINGS = Settings(
    engine_id="fuzz",
    lease_ttl_ms=1_000,
    lease_renew_ms=300,
    holder_tick_ms=200,
    reconcile_ms=2_000,
    wake_backoff_ms=200,
    linger_ms=1_000,
    dehydration_threshold_ms=1_500,
    max_resident=6,
    claim_triggers=4,
    claim_ahead=2,
    history_limit=10_000,
)
HOLDERS: dict[str, type[Any]] = {"message": MessageHolder, "timer": TimerHolder, "task": TaskHolder}
ROLES = (
    "message-1",
    "message-2",
    "timer-1",
    "task-1",
    "actor-1",
    "actor-2",
    "actor-3",
    "actor-4",
    "client-1",
    "client-2",
)
STARTS = ("collector", "guarded", "race", "split", "sub", "thrower")
KEYS = ("A", "B", "C", "D", "E")
REST_WITHIN_S = 60.0
"""So long the backlog may stand still."""


# ------------------------------------------------------------------------------------------------------------ the lives


def be_holder(role: str, url: str) -> None:
    store = open_store(url)
    HOLDERS[role.partition("-")[0]](store, SETTINGS).run(threading.Event())


def be_actor(role: str, url: str, chance: random.Random, pauses: tuple[float, ...]) -> None:
    """One InstanceActor's life; the parent makes the next one."""

    def effect(inputs: dict[str, Any], context: EffectContext) -> dict[str, Any]:
        # Now and then longer than a lease: its renewer must keep it, unless the process is frozen.
        time.sleep(chance.choice(pauses))
        return {}

    store = open_store(url)
    row = ActorRow(role, 1, "fuzz", spare=True)
    callables = Callables(lambda _topic: None, local=dict.fromkeys(TOPICS, effect))
    Life(row, Host(store, SETTINGS, Programs(store), callables, role), store, SETTINGS, Stage()).run()


def be_client(role: str, url: str, folder: Path, chance: random.Random, pauses: tuple[float, ...]) -> None:
    """Wishes without end, each noted before it is sent; `folder/enough` ends them."""
    ledger = Journal(folder / f"{role}.journal", role)
    store = open_store(url)
    legs = FirstLegs(store, SETTINGS, Programs(store))
    client = Client(store, ledger, tries=40, rest=lambda: time.sleep(0.1), first_legs=legs)
    while not (folder / "enough").exists():
        client.carry_out(wish(chance))
        ledger.settle()
        time.sleep(chance.choice(pauses))


def wish(chance: random.Random) -> Op:
    kind = chance.choices(
        ("start", "bulk", "message", "signal", "complete", "repeat", "hold", "cancel", "set", "heal"),
        (18, 1, 34, 3, 20, 8, 4, 2, 3, 6),
    )[0]
    key = chance.choice((*KEYS, *KEYS, *STRICT))
    names = {
        "start": STARTS,
        "bulk": STARTS,
        "message": ("Item",) if key in STRICT else ("Item", "Item", "Go", "Nudge", "Stop", "Order", "Order"),
        "signal": ("Alarm", "Abort"),
    }
    fin = chance.random() < (0.5 if kind != "message" else 0.0 if key in STRICT else 0.2)
    return Op(kind, chance.randrange(1 << 16), chance.choice(names.get(kind, ("",))), key, fin)


def open_store(url: str) -> RedisStore:
    """Once the store answers."""
    while True:
        try:
            return RedisStore(open_client(url), SETTINGS)
        except EnvironmentFailure:
            time.sleep(0.05)


class Journal(Ledger):
    """A ledger that a SIGKILL does not erase: a line before each call, another when its end is known."""

    def __init__(self, path: Path, role: str) -> None:
        # Ids go on where the last life of this client stopped.
        lives = sum(1 for _ in path.parent.glob(f"{path.name}.*"))
        super().__init__(author=f"{role}.{lives}.")
        self._file = (path.parent / f"{path.name}.{lives}").open("a", encoding="utf-8")
        self._open: list[Delivery] = []

    def new(self, kind: str, **fields: Any) -> Delivery:
        delivery = super().new(kind, **fields)
        self._write(delivery)
        self._open.append(delivery)
        return delivery

    def settle(self) -> None:
        for delivery in self._open:
            self._write(delivery)
        self._open.clear()

    def _write(self, delivery: Delivery) -> None:
        document = asdict(delivery)
        del document["listeners"]
        self._file.write(json.dumps(document) + "\n")
        self._file.flush()


def read_journals(folder: Path) -> Ledger:
    ledger = Ledger()
    for path in sorted(folder.glob("*.journal.*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):  # a torn last line was never sent
                document = json.loads(line)
                ledger.deliveries[document["id"]] = Delivery(**document)
    return ledger


# -------------------------------------------------------------------------------------------------------- the tormentor


@dataclass
class Child:
    role: str
    pid: int = 0
    frozen_until: float = 0.0
    dead_until: float = 0.0


@dataclass
class Fuzz:
    seconds: float
    chance: random.Random
    folder: Path
    zombies: bool = False
    """Nobody is killed: hosts freeze in the middle of their work, one after the other, and come back too late."""
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.embedded = EmbeddedStore(self.folder / "home")
        self.url = self.embedded.ensure_running()
        self.children = {role: Child(role) for role in ROLES}
        self.client: Any = open_client(self.url)
        self.store = RedisStore(self.client, SETTINGS)
        self._lives = 0

    # --- children

    def born(self, child: Child) -> None:
        self._lives += 1
        seed = self.chance.randrange(1 << 30)
        child.pid = os.fork()
        if child.pid:
            child.frozen_until = child.dead_until = 0.0
            return
        status = 1
        try:
            logging.disable(logging.CRITICAL)
            chance = random.Random(seed)
            kind = child.role.partition("-")[0]
            if kind == "actor":
                work = (0.3, 0.5) if self.zombies else (0.0, 0.01, 0.1, 0.5, 1.0)
                be_actor(f"{child.role}-{self._lives}", self.url, chance, work)
            elif kind == "client":
                # Hosts that are never idle would leave what a zombie held at the end of a long queue.
                rests = (0.2, 0.5) if self.zombies else (0.0, 0.002, 0.01, 0.05)
                be_client(child.role, self.url, self.folder, chance, rests)
            else:
                be_holder(child.role, self.url)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def reap(self) -> None:
        """Whoever died is made anew when its time has come, and an actor's death is reported, mostly."""
        now = time.monotonic()
        for child in self.children.values():
            if child.pid and os.waitpid(child.pid, os.WNOHANG)[0]:
                child.pid = 0
                child.dead_until = now + self.chance.choice((0.0, 0.0, 0.05, 0.3))
            if not child.pid and now >= child.dead_until:
                self.born(child)
            if child.frozen_until and now >= child.frozen_until and child.pid:
                os.kill(child.pid, signal.SIGCONT)
                child.frozen_until = 0.0

    def torment(self) -> None:
        dice = self.chance.random()
        living = [child for child in self.children.values() if child.pid and not child.frozen_until]
        if (dice < 0.4 or self.zombies) and (hosts := self._hosts(living)):
            # Longer than its lease lives: what it held is somebody else's when it wakes.
            if self.zombies and sum(child.frozen_until > 0 for child in self.children.values()) > 1:
                return  # somebody has to take over
            host = self.chance.choice(hosts)
            self.counts["frozen leaseholder"] += 1
            os.kill(host.pid, signal.SIGSTOP)
            absences = (2.2, 2.6) if self.zombies else (1.3, 1.6, 2.0)
            host.frozen_until = time.monotonic() + self.chance.choice(absences)
            return
        if self.zombies:
            return
        dice = self.chance.random()
        child = self.chance.choice(living) if living else None
        if dice < 0.45 and child is not None:
            self.counts[f"killed {child.role.partition('-')[0]}"] += 1
            os.kill(child.pid, signal.SIGKILL)
        elif dice < 0.85 and child is not None and len(living) > len(ROLES) // 2:
            self.counts[f"frozen {child.role.partition('-')[0]}"] += 1
            os.kill(child.pid, signal.SIGSTOP)
            child.frozen_until = time.monotonic() + self.chance.choice((0.1, 0.4, 1.3, 2.0))
        elif dice < 0.90:
            self._store_dies()
        elif dice < 0.95:
            self._store_freezes(self.chance.choice((0.05, 0.3, 1.2)))

    def _hosts(self, living: list[Child]) -> list[Child]:
        """Those that hold a lease now and work under it; who merely waits has little to lose."""
        try:
            idle = {member.decode() for member in self.client.zrange(self.store.keys["idle"], 0, -1)}
            tokens = [token for instance, token, _ in self.store.leases() if instance not in idle]
        except (EnvironmentFailure, redis.RedisError):
            return []
        names = {token.partition(":")[0].rpartition("-")[0] for token in tokens}
        return [child for child in living if child.role in names]

    def _store_dies(self) -> None:
        if (pid := self.embedded.pid) is not None:
            self.counts["killed store"] += 1
            os.kill(pid, signal.SIGKILL)
            time.sleep(self.chance.choice((0.0, 0.05, 0.3)))
        self.embedded.ensure_running()

    def _store_freezes(self, seconds: float) -> None:
        if (pid := self.embedded.pid) is not None:
            self.counts["frozen store"] += 1
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)

    # --- a run

    def run(self) -> list[str]:
        store = self.store
        for builder in processes("PT1S", "PT2S", "PT3S"):
            store.deploy(*deployment(builder, store.now()))
        end = time.monotonic() + self.seconds
        next_torment = time.monotonic() + 0.5
        while (now := time.monotonic()) < end:
            self.reap()
            if now >= next_torment:
                self.torment()
                next_torment = time.monotonic() + self.chance.uniform(0.02, 0.25)
            time.sleep(0.005)
        try:
            restless = self._rest()
        finally:
            self.end()
        return restless or self._judge()

    def _rest(self) -> list[str]:
        """No more torment: clients end, everybody else lives, until nothing moves."""
        (self.folder / "enough").touch()
        for child in self.children.values():
            if child.frozen_until and child.pid:
                os.kill(child.pid, signal.SIGCONT)
                child.frozen_until = 0.0
        store = open_store(self.url)
        deadline = time.monotonic() + REST_WITHIN_S
        least = sys.maxsize
        calm = 0
        while calm < 3:
            for child in self.children.values():
                if child.pid and os.waitpid(child.pid, os.WNOHANG)[0]:
                    child.pid = 0
                if not child.pid and not child.role.startswith("client"):
                    self.born(child)
            clients = [child for child in self.children.values() if child.pid and child.role.startswith("client")]
            with contextlib.suppress(EnvironmentFailure):
                counts = store.population()
                left = counts.ready + sum(counts.pending.values())
                if left < least:
                    # Some of what was wished for takes its time, and there may be thousands of it.
                    least, deadline = left, time.monotonic() + REST_WITHIN_S
                if time.monotonic() > deadline:
                    return [f"it does not come to rest: {counts}"]
                if not clients and calm == 0:
                    Client(store, Ledger(author="parent.")).carry_out(Op("resume_all"))
                calm = calm + 1 if not clients and store.quiet().quiet else 0
            time.sleep(0.15)
        return []

    def end(self) -> None:
        for child in self.children.values():
            if child.pid:
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
                child.pid = 0

    def _judge(self) -> list[str]:
        client = open_client(self.url)
        store = RedisStore(client, SETTINGS)
        ledger = read_journals(self.folder)
        # Timers that fell due since it was at rest are nobody's fault: time goes on while nobody is left to see it.
        seen = image(client, store.keys)
        faults = [*index_faults(seen), *ledger_faults(seen, ledger)]
        faults += [f"verify: {difference}" for difference in verify(store).differences]
        states = Counter(delivery.state for delivery in ledger.deliveries.values())
        kinds = Counter(delivery.kind for delivery in ledger.deliveries.values() if delivery.state == "accepted")
        self.counts.update({f"{state} deliveries": count for state, count in states.items()})
        self.counts.update({f"accepted {kind}": count for kind, count in kinds.items()})
        self.counts["instances"] = sum(not name.startswith("@") for name in seen.rows)
        self.counts["epochs"] = sum(int(row.fields.get("ep", b"0")) for row in seen.rows.values())
        self.counts["commits"] = sum(int(row.fields.get("v", b"0")) for row in seen.rows.values())
        store.close()
        client.close()
        return faults


def fuzz(seconds: float, seed: int, *, zombies: bool = False) -> tuple[list[str], dict[str, int]]:
    """One run on a store of its own; (faults, what happened)."""
    folder = Path(tempfile.mkdtemp(prefix="gobpm-"))
    run = Fuzz(seconds, random.Random(seed), folder, zombies)
    faults: list[str] = ["it did not end"]
    try:
        faults = run.run()
        return faults, dict(sorted(run.counts.items()))
    finally:
        run.end()
        run.embedded.stop()
        if not faults:  # what failed is kept, to be looked at
            shutil.rmtree(folder)


@contextlib.contextmanager
def guards(missing: str) -> Iterator[None]:
    with without(missing) if missing else contextlib.nullcontext():
        yield


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.crash.fuzz", description=__doc__)
    options.add_argument("--seconds", type=float, default=30.0)
    options.add_argument("--seed", type=int, default=0, help="of who is tormented when; what follows is the machine's")
    options.add_argument("--zombies", action="store_true", help="no kills: only hosts that freeze and come back")
    options.add_argument("--json", action="store_true", help="one object on stdout")
    options.add_argument("--without", choices=sorted(BREAKS), default="", help="take a guard out: it must be missed")
    asked = options.parse_args(arguments)
    with guards(asked.without):
        faults, counts = fuzz(asked.seconds, asked.seed, zombies=asked.zombies)
    if asked.json:
        print(json.dumps({"seconds": asked.seconds, "seed": asked.seed, "faults": faults, "counts": counts}))
    else:
        for name, count in counts.items():
            print(f"{count:8d}  {name}")
        for fault in faults:
            print(f"FAULT: {fault}")
        print("well" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
