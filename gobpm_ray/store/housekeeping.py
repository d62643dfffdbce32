"""The store's side of an operator's care: dead letters, held instances, the slow walk, counts, registers.

The other half of `gobpm_ray.store.redis_store.RedisStore`, beside the wake path. It refuses to know when any of it is
done: holders and people decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import redis

from gobpm_ray.errors import InputError, LeaseLost, UnknownDelivery
from gobpm_ray.runtime.limits import full
from gobpm_ray.runtime.ports import Accepted, DeadRow, DueList
from gobpm_ray.settings import Settings
from gobpm_ray.store import rows
from gobpm_ray.store.calls import store_call
from gobpm_ray.store.keys import Keys
from gobpm_ray.store.scripts import Argument, Scripts

LETTERS = 1_000
"""Dead letters read at once."""


class Housekeeping:
    def __init__(self, client: redis.Redis, keys: Keys, settings: Settings, scripts: Scripts) -> None:
        self.settings = settings
        self.keys = keys
        self._client: Any = client
        self._scripts = scripts
        self._run = scripts.run

    @property
    def client(self) -> Any:
        """For those inside the store who read what no method of the port gives."""
        return self._client

    def run_script(self, name: str, *arguments: Argument) -> Any:
        return self._run(name, *arguments)

    # --- dead letters

    @store_call
    def fail(self, seq: int, reason: str) -> bool:
        return bool(self._run("fail", seq, _one_line(reason)) == 1)

    @store_call
    def dead(self, limit: int = 1_000) -> list[DeadRow]:
        return [rows.dead(letter) for letter in self._client.lrange(self.keys["dead"], 0, limit - 1)]

    @store_call
    def replay(self, delivery_id: str, new_id: str, ttl: int) -> Accepted:
        letter = self._letter(delivery_id)
        reply = self._run("replay", letter, new_id, ttl, self.settings.max_pending)
        match reply[0]:
            case b"gone":
                raise UnknownDelivery(f"dead letter {delivery_id!r}: somebody else has just taken it, or it is damaged")
            case b"duplicate":
                raise InputError(f"dead letter {delivery_id!r}: a delivery {new_id!r} was accepted before")
            case b"full":
                raise full(f"dead letter {delivery_id!r}", "max_pending", f"{reply[1]} accepted rows are not folded")
        return Accepted(new_id, False, "", reply[1])

    @store_call
    def drop_dead(self, delivery_id: str) -> None:
        self._client.lrem(self.keys["dead"], 1, self._letter(delivery_id))

    def _letter(self, delivery_id: str) -> bytes:
        """The newest letter of this delivery, as it stands in the list."""
        first = 0
        while page := self._client.lrange(self.keys["dead"], first, first + LETTERS - 1):
            for letter in page:
                if rows.dead(letter).id == delivery_id:
                    found: bytes = letter
                    return found
            first += LETTERS
        raise UnknownDelivery(f"dead letter {delivery_id!r}: there is none of this delivery id")

    # --- leases and wakes

    @store_call
    def hold(self, instance_id: str, token: str, history: bytes, fact: bytes) -> None:
        if self._run("hold", instance_id, token, history, fact) == 0:
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")

    @store_call
    def reconcile(self, cursor: str, limit: int) -> tuple[str, int]:
        # An inbox is a key of its own and exists only while it is not empty: the walk asks the server for keys of that
        # form, a thousand of them a command, and looks at an instance only where there is something to look at.
        pattern = escaped(self.keys.instances) + b"*:q"
        position, found = self._client.scan(int(cursor or 0), match=pattern, count=limit, _type="list")
        prefix = len(self.keys.instances)
        repaired = sum(self._scripts.run_many("reconcile", [(key[prefix:-2],) for key in found])) if found else 0
        return (str(position) if position else ""), repaired

    @store_call
    def _nothing_due(self) -> DueList | None:
        """The answer of `due` when there is nothing, by plain reads: what an idle holder asks once a second."""
        pipe = self._client.pipeline(transaction=False)
        pipe.mget(self.keys["clock"], self.keys["liveness"])
        pipe.time()
        pipe.zrange(self.keys["due"], 0, 0, withscores=True)
        (manual, simulated), (seconds, micros), head = pipe.execute()
        now = int(manual or simulated or seconds * 1000 + micros // 1000)
        if head and head[0][1] <= now:
            return None
        return DueList(now, (), int(head[0][1]) if head else None)

    @store_call
    def readiness(self) -> tuple[int, int]:
        # One plain read while nothing is ready.
        head = self._client.zrange(self.keys["ready"], 0, 0, withscores=True)
        if not head:
            return 0, 0
        counts = self._run("population")
        return counts[1], counts[2]

    # --- registers and counts

    @store_call
    def put_value(self, table: str, name: str, value: bytes) -> None:
        try:
            self._client.hset(self.keys.table(table), name, value)
        except redis.exceptions.OutOfMemoryError:
            # Full of waiting instances: what keeps the engine alive must still be written, and they need it to finish.
            self._run("put", table, name, value)

    @store_call
    def count(self, signals: Mapping[str, int]) -> None:
        pipe = self._client.pipeline(transaction=False)
        for name, more in signals.items():
            pipe.hincrby(self.keys.table("signals"), name, more)
        pipe.execute()


def _one_line(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable())[:500]


def escaped(literal: bytes) -> bytes:
    """The text as a glob pattern that means itself."""
    return b"".join(b"\\" + bytes([c]) if c in b"*?[]\\" else bytes([c]) for c in literal)
