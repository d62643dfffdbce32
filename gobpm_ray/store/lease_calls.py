"""Leases on Redis: claimed, committed under, renewed, given back: the path of a wake. A part of
`gobpm_ray.store.redis_store.RedisStore`.

It knows which script answers what. It refuses to know what a checkpoint holds.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from gobpm_ray.errors import (
    BrokenInvariant,
    DataStoreChanged,
    LeaseLost,
)
from gobpm_ray.runtime.ports import (
    Answer,
    Claim,
    Commit,
    CommitResult,
    TriggerRow,
)
from gobpm_ray.store import rows
from gobpm_ray.store.calls import Later, store_call
from gobpm_ray.store.connection import ANSWER_TIMEOUT_S
from gobpm_ray.store.scripts import Argument
from gobpm_ray.store.task_calls import TaskCalls

log = logging.getLogger("gobpm_ray.store")


class LeaseCalls(TaskCalls):
    @store_call
    def claim(self, token: str) -> Claim | None:
        reply = self._run("claim", token, self.settings.whole_parts, self.settings.claim_triggers)
        return rows.claim(reply, token) if reply else None

    @store_call
    def load(self, instance_id: str, token: str) -> Claim:
        reply = self._run("load", instance_id, token, self.settings.claim_triggers)
        if reply[0] == b"lost":
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")
        return rows.claim(reply, token)

    @store_call
    def fetch(self, instance_id: str, token: str) -> tuple[tuple[TriggerRow, ...], int]:
        reply = self._run("fetch", instance_id, token, self.settings.claim_triggers)
        if reply[0] == b"lost":
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")
        return tuple(map(rows.trigger, reply[1:])), reply[0]

    @store_call
    def commit(self, commit: Commit) -> CommitResult:
        return self._committed(commit, self._run("commit", *self._commit_arguments(commit)))

    @store_call
    def send_commit(self, commit: Commit) -> Answer[CommitResult]:
        sent = self._scripts.send("commit", *self._commit_arguments(commit))
        return Later(lambda: self._committed(commit, sent.reply()))

    def _commit_arguments(self, commit: Commit) -> Sequence[Argument]:
        settings = self.settings
        return rows.commit_arguments(
            commit,
            settings.max_resident,
            settings.whole_parts,
            settings.claim_triggers,
            settings.max_call_depth,
        )

    @staticmethod
    def _committed(commit: Commit, reply: Any) -> CommitResult:
        if reply[0] == b"lost":
            raise LeaseLost(f"instance {commit.instance_id!r}: commit refused, {reply[1].decode()}")
        if reply[0] == b"changed":
            raise DataStoreChanged(f"instance {commit.instance_id!r}: data store {reply[1].decode()!r} has changed")
        if reply[0] == b"inbox":
            raise BrokenInvariant(f"instance {commit.instance_id!r}: the commit names triggers that are not there")
        following = rows.claim(reply[5:], commit.next_token) if len(reply) > 5 else None
        return CommitResult(reply[0] == 1, reply[1], reply[2], reply[3], following, reply[4])

    @store_call
    def renew(self, instance_id: str, token: str) -> tuple[int, int]:
        reply = self._run("renew", instance_id, token)
        if reply[0] == b"lost":
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")
        return reply[0], reply[1]

    @store_call
    def abandon(self, instance_id: str, token: str, backoff_ms: int) -> None:
        if self._run("abandon", instance_id, token, backoff_ms) == 0:
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")

    @store_call
    def unclaim(self, instance_id: str, token: str) -> None:
        if self._run("unclaim", instance_id, token) == 0:
            raise LeaseLost(f"instance {instance_id!r}: the lease is no longer ours")

    @store_call
    def release_dead(self, actor: str) -> int:
        return int(self._run("release_dead", actor))

    @store_call
    def sweep(self, limit: int = 100) -> int:
        # Nearly always nothing is leased, or nothing for long: a look at the head costs a third of the script.
        return int(self._run("sweep", limit)) if self._client.exists(self.keys["leases"]) else 0

    @store_call
    def wait_instance_bell(self, instance_id: str, timeout_s: float) -> bool:
        return self._pop_bell(self.keys.instance(instance_id) + b":b", timeout_s)

    def _pop_bell(self, key: bytes, timeout_s: float) -> bool:
        """The bit, if it was set or is set within the time. Longer waits than a connection's own patience end early: a
        bell is only a hint, so its sleeper looks again."""
        if timeout_s <= 0:
            return self._client.lpop(key) is not None
        return self._client.blpop(key, timeout=min(timeout_s, ANSWER_TIMEOUT_S / 2)) is not None
