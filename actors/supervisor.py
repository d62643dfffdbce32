"""How many InstanceActors should live, and what a dead one leaves behind: `ResidencySupervisor`.

A plain class over two ports: the store, and `Actors` (what Ray can do: create, find, tell, kill, report an end). It
knows counts, leases and names. It refuses to know Ray, what an instance is, and when an instance may be dehydrated: it
never takes a lease from a living actor, and kills only after an operator's stop ran out of grace.

Three kinds of actors, told apart by their leases alone:

    settled    holds one lease for longer than a second: works or waits off the CPU, is not counted on for new work
    moving     holds a lease that is younger: it claims, runs, commits, and goes on to the next
    free       holds none: it lingers and ends itself, or is a spare and stays

Wanted are the settled ones, and beside them as many as there is work for (ready and moving instances, at most twice
the cores), at least the configured spares. Spares are the first to serve: a short wake makes no second actor.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from actors.registry import (
    ActorRow,
    Heartbeat,
    actor_of,
    actor_rows,
    drop_actor,
    drop_heartbeat,
    next_actor_number,
    read_actor,
    read_heartbeat,
    write_actor,
    write_heartbeat,
)
from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.runtime.crashpoints import reached
from gobpm_ray.runtime.ports import BellName, Store
from gobpm_ray.settings import Settings

log = logging.getLogger(__name__)

SETTLED_S = 1.0
"""A residency this old is off the CPU: a wake takes milliseconds."""
LATE_READY_MS = 1_000
"""An instance that has been ready for this long with every actor busy is worth one more actor."""
RECONCILE_S = 10.0
"""How often the rows are compared with the living, beside every reported end."""
MAX_CREATION_PAUSE_S = 30.0
BREATH_S = 0.05
"""Between two passes at least, so that the supervisor costs a busy store nothing that counts."""


@dataclass(frozen=True, slots=True)
class End:
    """An InstanceActor is no more. `clean`: it said so itself, after it had let go of everything."""

    name: str
    clean: bool
    reason: str = ""


class Actors(Protocol):
    """What Ray does for the supervisor. Every method but `pause` returns at once, whatever state an actor is in."""

    @property
    def cluster(self) -> str:
        """The Ray cluster's address."""

    def cores(self) -> int: ...
    def create(self, row: ActorRow) -> None:
        """Begin to create it; its end, a failed creation included, is among `ended` later."""

    def adopt(self, row: ActorRow) -> bool:
        """Watch an actor that another supervisor created; False: Ray knows none of this name."""

    def spare(self, name: str, kept: bool) -> None: ...
    def stop(self, name: str, grace_ms: int) -> None: ...
    def kill(self, name: str) -> None: ...
    def ended(self) -> list[End]:
        """Those that ended since the last call; the bell `supervisor` rings for each."""

    def pause(self, timeout_s: float) -> None:
        """Wait, but no longer than until an actor ends."""


@dataclass(slots=True)
class _Living:
    row: ActorRow
    adopted: bool = False


@dataclass(slots=True)
class Outcome:
    """What one pass did and found."""

    living: int = 0
    settled: int = 0
    moving: int = 0
    free: int = 0
    wanted: int = 0
    ready: int = 0
    created: list[str] = field(default_factory=list)
    buried: list[str] = field(default_factory=list)
    released: int = 0
    """Leases of dead actors that went back to ready."""


class ResidencySupervisor:
    """Keeps the right number of InstanceActors; all state is the store's and Ray's, so that a new one goes on where it
    died."""

    bell: BellName = "supervisor"

    def __init__(
        self,
        store: Store,
        settings: Settings,
        actors: Actors,
        *,
        node: str = "",
        monotonic: Callable[[], float] = time.monotonic,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        tell: Callable[[dict[str, float]], None] | None = None,
    ) -> None:
        """`tell` is told the counts of each heartbeat: the metrics of the process."""
        self._store = store
        self._settings = settings
        self._actors = actors
        self._node = node
        self._monotonic = monotonic
        self._wall_ms = wall_ms
        self._living: dict[str, _Living] = {}
        self._first_seen: dict[str, float] = {}
        """When each live lease's token was first seen."""
        self._reported: list[End] = []
        """Ends that Ray reported and that are not buried yet."""
        self._hosts: dict[str, bool] = {}
        """Our actors that hold a lease, and whether it is a settled one."""
        self._tell = tell
        self._oldest_ready_ms = 0
        self._neighbours: dict[str, int] = {}
        """Clusters of other supervisors on this store, with the wall clock of their last heartbeat."""
        self._reconciled = -RECONCILE_S
        self._grown_at = float("-inf")
        """When an actor last came to life: what it can do has to show before one more is made."""
        self._stillborn = 0
        """Actors in a row that ended before they had started."""
        self._create_after = float("-inf")
        self._trouble = ""
        self._heartbeat_at = float("-inf")

    # ------------------------------------------------------------------------------------------------------------ loop

    def run(self, stop: threading.Event) -> None:
        """Pass after pass until `stop`: at each ring of the bell, and once a tick. A failing pass ends the pass, not
        the loop."""
        tick_s = self._settings.holder_tick_ms / 1_000
        while not stop.is_set():
            try:
                self.pass_once()
                # The bell rings for every instance that becomes ready: a burst of ten thousand is looked at now and
                # then.
                self._actors.pause(BREATH_S)
                self._store.wait_bell(self.bell, tick_s)
            except EnvironmentFailure as failure:
                log.warning("supervisor: %s", failure)
                stop.wait(tick_s)
            except Exception:
                log.exception("supervisor: a pass failed")
                stop.wait(tick_s)

    def pass_once(self) -> Outcome:
        """Bury the dead, count, create what is missing, say which stay; waits for nothing."""
        outcome = Outcome()
        self._heartbeat_if_due(outcome)
        self._bury_reported(outcome)
        if self._monotonic() - self._reconciled >= RECONCILE_S:
            self._reconcile(outcome)
            self._reconciled = self._monotonic()
        self._count(outcome)
        self._create_missing(outcome)
        self._appoint_spares()
        self._heartbeat_if_due(outcome)
        return outcome

    # ------------------------------------------------------------------------------------------------------- the living

    def _bury_reported(self, outcome: Outcome) -> None:
        self._reported += self._actors.ended()
        while self._reported:
            end = self._reported[0]
            living = self._living.get(end.name)
            started = living is not None and self._has_started(living)
            if living is not None:
                self._bury(end.name, outcome)
            # Only now: were the store away, an end that is forgotten would leave a dead actor among the living for
            # ever.
            self._reported.pop(0)
            if living is None or end.clean:
                continue
            if started:
                log.warning("%s died: %s", living.row.ray_name, end.reason)
                continue
            # It never came to life: making the next one at once would spin as fast as Ray can fail.
            self._stillborn += 1
            pause_s = min(2.0 ** (self._stillborn - 1), MAX_CREATION_PAUSE_S)
            self._create_after = self._monotonic() + pause_s
            self._trouble = f"{living.row.ray_name} did not start: {end.reason}"
            log.error("%s; next attempt in %g s", self._trouble, pause_s)

    def _has_started(self, living: _Living) -> bool:
        if living.adopted or living.row.started:
            return True
        row = read_actor(self._store, living.row.name)
        return row is not None and row.started

    def _bury(self, name: str, outcome: Outcome) -> None:
        # Released first: were the row gone before, a crash in between would leave the leases to their expiry.
        outcome.released += self._store.release_dead(name)
        reached("supervisor.released")
        drop_actor(self._store, name)
        reached("supervisor.buried")
        self._living.pop(name, None)
        outcome.buried.append(name)

    def _reconcile(self, outcome: Outcome) -> None:
        """Adopt whoever lives and is not ours yet, bury rows without an actor; never touch a living neighbour's."""
        for row in actor_rows(self._store):
            if (ours := self._living.get(row.name)) is not None:
                ours.row = row
            elif row.cluster == self._actors.cluster:
                if self._actors.adopt(row):
                    self._living[row.name] = _Living(row, adopted=True)
                    log.info("adopted %s", row.ray_name)
                else:
                    self._bury(row.name, outcome)
            elif not self._neighbour_lives(row.cluster):
                self._bury(row.name, outcome)

    def _neighbour_lives(self, cluster: str) -> bool:
        last = self._neighbours.get(cluster, 0)
        return Heartbeat(last, 0, "").fresh(self._wall_ms())

    # ------------------------------------------------------------------------------------------------- counts and wants

    def _count(self, outcome: Outcome) -> None:
        now = self._monotonic()
        leases = self._store.leases()
        self._first_seen = {token: self._first_seen.get(token, now) for _, token, _ in leases}
        hosts: dict[str, bool] = {}
        for token, since in self._first_seen.items():
            name = actor_of(token)
            if name in self._living:
                hosts[name] = now - since >= SETTLED_S
        self._hosts = hosts
        outcome.ready, self._oldest_ready_ms = self._store.readiness()
        outcome.living = len(self._living)
        outcome.settled = sum(hosts.values())
        outcome.moving = len(hosts) - outcome.settled
        outcome.free = outcome.living - len(hosts)
        self._note_started(hosts)

    def _note_started(self, hosts: Iterable[str]) -> None:
        """Read the rows again while some actor has not reported its start; who holds a lease has started anyway."""
        waiting = [living for living in self._living.values() if not living.row.started]
        if not waiting:
            return
        rows = {row.name: row for row in actor_rows(self._store)}
        for living in waiting:
            living.row = rows.get(living.row.name, living.row)
            if living.row.name in hosts and not living.row.started:
                living.row = replace(living.row, since_ms=self._wall_ms())
            if living.row.started:
                self._grown_at = self._monotonic()
                self._stillborn = 0
                self._trouble = ""

    def wanted(self, outcome: Outcome) -> int:
        """How many actors should live, given the counts of a pass."""
        settings = self._settings
        work = min(outcome.ready + outcome.moving, 2 * self._actors.cores())
        wanted = outcome.settled + max(work, settings.spares)
        now = self._monotonic()
        if (
            self._oldest_ready_ms > LATE_READY_MS
            and outcome.free == 0
            and wanted <= outcome.living
            and now - self._grown_at >= SETTLED_S
        ):
            wanted = outcome.living + 1
        return min(wanted, settings.max_resident + settings.spares)

    def _create_missing(self, outcome: Outcome) -> None:
        outcome.wanted = self.wanted(outcome)
        # An actor costs about a second of CPU to start: more of them at once than there are cores only delays the
        # first.
        starting = sum(not living.row.started for living in self._living.values())
        missing = min(outcome.wanted - outcome.living, self._actors.cores() - starting)
        if missing <= 0 or self._monotonic() < self._create_after:
            return
        for _ in range(missing):
            number = next_actor_number(self._store)
            row = ActorRow(f"InstanceActor-{number}-{secrets.token_hex(3)}", number, self._actors.cluster)
            # The row comes first: an actor without a row would be unknown to the next supervisor for ever.
            write_actor(self._store, row)
            reached("supervisor.row_written")
            self._living[row.name] = _Living(row)
            try:
                self._actors.create(row)
            except Exception as failure:
                self._living.pop(row.name)
                drop_actor(self._store, row.name)
                self._trouble = f"{row.ray_name} cannot be created: {' '.join(str(failure).split())[:300]}"
                self._create_after = self._monotonic() + SETTLED_S
                log.error("%s", self._trouble)
                return
            reached("supervisor.created")
            outcome.created.append(row.name)
            outcome.living += 1
            outcome.free += 1

    def _appoint_spares(self) -> None:
        """As many as configured of those that do not sit on a settled residency are kept; the oldest, for they are
        warm."""
        candidates = [name for name in self._living if not self._hosts.get(name, False)]
        candidates.sort(key=lambda name: (not self._living[name].row.spare, self._living[name].row.number))
        kept = set(candidates[: self._settings.spares])
        for name, living in self._living.items():
            if living.row.spare != (name in kept):
                living.row = replace(living.row, spare=name in kept)
                self._actors.spare(name, name in kept)

    # -------------------------------------------------------------------------------------------------------- heartbeat

    def _heartbeat_if_due(self, outcome: Outcome) -> None:
        now = self._monotonic()
        if now - self._heartbeat_at < self._settings.holder_tick_ms / 1_000 * 0.9:
            return
        before = read_heartbeat(self._store)
        if before is not None and before.cluster not in ("", self._actors.cluster):
            self._neighbours[before.cluster] = before.at_ms
        free = [living for name, living in self._living.items() if name not in self._hosts and living.row.started]
        spares = sum(living.row.spare for living in free)
        write_heartbeat(
            self._store,
            Heartbeat(
                at_ms=self._wall_ms(),
                pid=os.getpid(),
                node=self._node,
                cluster=self._actors.cluster,
                actors=len(self._living),
                free=len(free) - spares,
                spares=spares,
                trouble=self._trouble,
            ),
        )
        self._heartbeat_at = now
        if self._tell is not None:
            self._tell(
                {
                    "actors": len(self._living),
                    "free_actors": len(free),
                    "ready_instances": outcome.ready,
                    "oldest_ready_ms": self._oldest_ready_ms,
                }
            )

    # ------------------------------------------------------------------------------------------------------------- stop

    def drain(self, grace_ms: int) -> int:
        """Every actor was asked to let go and ended, or was killed when the grace was over; how many were killed.

        Called after the loop has ended. Killed or not, all they hosted is ready again or dehydrated.
        """
        outcome = Outcome()
        self._reconcile(outcome)
        for name in self._living:
            self._actors.stop(name, grace_ms)
        # A second beyond the grace: the actor itself abandons at its end, which is gentler than a kill.
        deadline = self._monotonic() + grace_ms / 1_000 + 1.0
        while self._living and self._monotonic() < deadline:
            self._store.wait_bell(self.bell, 0.2)
            self._bury_reported(outcome)
        killed = list(self._living)
        for name in killed:
            log.warning("%s did not end within its grace of %d ms and is killed", name, grace_ms)
            self._actors.kill(name)
            self._bury(name, outcome)
        drop_heartbeat(self._store)
        return len(killed)
