"""Who lives, as the store remembers it: a row for each InstanceActor, the supervisor's heartbeat, and the counts of
`top`.

This module knows the tables `actors` and `engine` of the store's registry and the form of their rows. It refuses to
know Ray, so that `top` and `status` answer without importing it. Rows are for people and for a new supervisor that
adopts the living; leases alone decide who hosts what.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from gobpm_ray.runtime.ports import Store

ACTORS = "actors"
ENGINE = "engine"
SUPERVISOR = "supervisor"
ACTOR_NUMBER = "actor_number"

FRESH_MS = 3_000
"""A heartbeat older than three ticks is a supervisor that is gone, or that cannot reach the store."""


@dataclass(frozen=True, slots=True)
class ActorRow:
    """One InstanceActor, from before its creation until after its end."""

    name: str
    """`InstanceActor-<number>-<random>`: what its lease tokens start with. Unique over clusters and restarts, for
    another engine's actor of the same number must not be released by mistake."""
    number: int
    cluster: str
    """Address of the Ray cluster it lives in: another cluster's supervisor can neither reach it nor bury it."""
    spare: bool = False
    """Kept although it is free."""
    since_ms: int = 0
    """Wall clock of its host; 0 until it has started."""
    node: str = ""
    pid: int = 0

    @property
    def ray_name(self) -> str:
        """How people see it in the Ray dashboard, after the engine's prefix."""
        return f"InstanceActor-{self.number}"

    @property
    def started(self) -> bool:
        return self.since_ms > 0


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What the supervisor says of itself each second."""

    at_ms: int
    """Wall clock of its host."""
    pid: int
    node: str
    cluster: str = ""
    actors: int = 0
    free: int = 0
    """Free ones that are not spares: they linger."""
    spares: int = 0
    """Free ones that are kept."""
    trouble: str = ""
    """Why actors cannot be made, in one line; '' when all is well."""

    def fresh(self, wall_ms: int) -> bool:
        return wall_ms - self.at_ms < FRESH_MS


@dataclass(frozen=True, slots=True)
class Census:
    """Living InstanceActors = resident + free + spares (promise 7)."""

    actors: int
    resident: int
    free: int
    spares: int


def actor_rows(store: Store) -> list[ActorRow]:
    """All rows, by number; a row that an unknown release wrote is skipped."""
    rows = (_decode(value) for value in store.values(ACTORS).values())
    return sorted((row for row in rows if row is not None), key=lambda row: row.number)


def read_actor(store: Store, name: str) -> ActorRow | None:
    value = store.get_value(ACTORS, name)
    return None if value is None else _decode(value)


def write_actor(store: Store, row: ActorRow) -> None:
    store.put_value(ACTORS, row.name, json.dumps(asdict(row)).encode())


def drop_actor(store: Store, name: str) -> None:
    store.drop_value(ACTORS, name)


def next_actor_number(store: Store) -> int:
    """A number that this engine has not used before; only its supervisor asks."""
    number = int(store.get_value(ENGINE, ACTOR_NUMBER) or b"0") + 1
    store.put_value(ENGINE, ACTOR_NUMBER, str(number).encode())
    return number


def write_heartbeat(store: Store, heartbeat: Heartbeat) -> None:
    store.put_value(ENGINE, SUPERVISOR, json.dumps(asdict(heartbeat)).encode())


def read_heartbeat(store: Store) -> Heartbeat | None:
    value = store.get_value(ENGINE, SUPERVISOR)
    if value is None:
        return None
    try:
        return Heartbeat(**json.loads(value))
    except (ValueError, TypeError):
        return None


def drop_heartbeat(store: Store) -> None:
    store.drop_value(ENGINE, SUPERVISOR)


def supervisor_is_alive(store: Store, wall_ms: int) -> bool:
    """Whether a supervisor wrote its heartbeat just now; what the command line warns about when it is not so."""
    heartbeat = read_heartbeat(store)
    return heartbeat is not None and heartbeat.fresh(wall_ms)


def actor_of(token: str) -> str:
    """The actor that a lease's token belongs to (`<actor>:...`)."""
    return token.partition(":")[0]


def census(rows: Iterable[ActorRow], leases: Iterable[tuple[str, str, int]]) -> Census:
    """Count started actors by what they do; two reads, so a wake in between may show in one of them only."""
    hosting = {actor_of(token) for _, token, _ in leases}
    resident = free = spares = 0
    for row in rows:
        if not row.started:
            continue
        if row.name in hosting:
            resident += 1
        elif row.spare:
            spares += 1
        else:
            free += 1
    return Census(resident + free + spares, resident, free, spares)


def take_census(store: Store) -> Census:
    return census(actor_rows(store), store.leases())


def _decode(value: bytes) -> ActorRow | None:
    try:
        return ActorRow(**json.loads(value))
    except (ValueError, TypeError):
        return None
