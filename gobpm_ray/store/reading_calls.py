"""What is only looked at on Redis: instances, facts, counts, leases. A part of
`gobpm_ray.store.redis_store.RedisStore`; nothing here changes anything.
"""

from __future__ import annotations

import logging

from gobpm_ray.runtime.ports import (
    InstanceRecord,
    Population,
)
from gobpm_ray.store import rows
from gobpm_ray.store.calls import store_call
from gobpm_ray.store.lease_calls import LeaseCalls

log = logging.getLogger("gobpm_ray.store")


class ReadingCalls(LeaseCalls):
    @store_call
    def instance(self, instance_id: str) -> InstanceRecord | None:
        key = self.keys.instance(instance_id)
        pipe = self._client.pipeline(transaction=True)
        pipe.hgetall(key)
        pipe.lrange(key + b":q", 0, -1)
        pipe.lrange(key + b":h", 0, -1)
        fields, inbox, history = pipe.execute()
        if b"st" not in fields:
            return None
        process, version = fields[b"df"].split(rows.RS)
        named = {name.decode(): value for name, value in fields.items()}
        return InstanceRecord(
            instance_id,
            process.decode(),
            int(version),
            named["bk"].decode(),
            rows.STATUS[named["st"]],
            int(named["v"]),
            int(named["ep"]),
            "tk" in named,
            int(named["cr"]),
            {name[1:]: value for name, value in named.items() if name[0] == "."},
            {name[1:]: rows.wait(value) for name, value in named.items() if name[0] == "~"},
            tuple(map(rows.trigger, inbox)),
            tuple(history),
            int(named.get("pk", 0)),
            named.get("pa", b"").decode(),
        )

    @store_call
    def status(self, instance_id: str) -> str | None:
        value = self._client.hget(self.keys.instance(instance_id), "st")
        return None if value is None else rows.STATUS[value]

    @store_call
    def instances(self, *, ended: bool | None = None, after_seq: int = 0, limit: int = 1_000) -> list[tuple[int, str]]:
        out: list[tuple[int, str]] = []
        while len(out) < limit:
            page = self._client.zrangebyscore(
                self.keys["instances"], f"({after_seq}", "+inf", start=0, num=limit, withscores=True
            )
            if not page:
                break
            after_seq = int(page[-1][1])
            pipe = self._client.pipeline(transaction=False)
            for member, _ in page:
                pipe.hget(self.keys.instance(member.decode()), "st")
            for (member, score), status in zip(page, pipe.execute(), strict=True):
                if ended is None or (status in (b"c", b"t")) == ended:
                    out.append((int(score), member.decode()))
        return out[:limit]

    @store_call
    def facts(self, after: str = "0", limit: int = 1_000) -> list[tuple[str, bytes]]:
        page = self._client.xrange(self.keys["facts"], f"({after}" if after != "0" else "-", "+", count=limit)
        return [(entry.decode(), fields[b"f"]) for entry, fields in page]

    @store_call
    def population(self) -> Population:
        counts = self._run("population")
        resident, ready, oldest, waiting, due, pending, parked, incidents, ended, dead, _idle = counts
        return Population(
            resident,
            ready,
            oldest,
            max(waiting - resident - ready, 0),
            due,
            {"message": pending},
            parked,
            incidents,
            ended,
            dead,
        )

    @store_call
    def leases(self) -> list[tuple[str, str, int]]:
        members = self._client.zrange(self.keys["leases"], 0, -1, withscores=True)
        if not members:
            return []
        seconds, micros = self._client.time()
        live = seconds * 1000 + micros // 1000
        pipe = self._client.pipeline(transaction=False)
        for member, _ in members:
            pipe.hget(self.keys.instance(member.decode()), "tk")
        return [
            (member.decode(), (token or b"").decode(), int(expiry) - live)
            for (member, expiry), token in zip(members, pipe.execute(), strict=True)
        ]
