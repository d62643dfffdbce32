"""Engines with one fault each, made on purpose: what the machine must find.

Each is an engine that loses, doubles or forgets something at a release or a wake; the straight run, which does neither,
goes through the same code unharmed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from gobpm_ray.checkpoint.parts import decode_with_working
from gobpm_ray.core.state import InstanceState
from gobpm_ray.runtime import hosting
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import Commit, CommitResult
from tests.crash.broken import without


@contextmanager
def _commits(change: Callable[[MemoryStore, Commit], None]) -> Iterator[None]:
    """What a releasing commit carries is changed on its way into the memory store."""
    whole = MemoryStore.commit

    def commit(self: MemoryStore, commit: Commit) -> CommitResult:
        if commit.residency == "release" and not commit.outcome:
            copied = replace(commit)
            change(self, copied)
            return whole(self, copied)
        return whole(self, commit)

    with mock.patch.object(MemoryStore, "commit", commit):
        yield


def _consume_twice(store: MemoryStore, commit: Commit) -> None:
    """A delivery stays in the inbox, once, although its step is committed."""
    doubled: set[tuple[str, str]] = store.__dict__.setdefault("doubled", set())
    last = commit.consumed[-1] if commit.consumed and commit.version else ""
    if last and (commit.instance_id, last) not in doubled:
        doubled.add((commit.instance_id, last))
        commit.consumed = commit.consumed[:-1]


def _forget_a_wait(_store: MemoryStore, commit: Commit) -> None:
    if len(commit.arms) > 1:
        commit.arms = commit.arms[:-1]


def _keep_a_wait(_store: MemoryStore, commit: Commit) -> None:
    commit.withdrawals = commit.withdrawals[:-1]


@contextmanager
def _hydrating(change: Callable[[InstanceState], None]) -> Iterator[None]:
    """Who is rebuilt from a checkpoint is not quite who he was."""

    def decode(*arguments: Any) -> Any:
        state, working = decode_with_working(*arguments)
        change(state)
        return state, working

    with mock.patch.object(hosting, "decode_with_working", decode):
        yield


def _without_joins(state: InstanceState) -> None:
    for scope in state.scopes.values():
        scope.joins = {}


def _without_ledgers(state: InstanceState) -> None:
    for scope in state.scopes.values():
        scope.ledger = []


def _without_edges(state: InstanceState) -> None:
    """A condition that holds already is taken for one that does not."""
    for holder in state.holders():
        for wait in holder.waits.values():
            wait.index = 0 if wait.kind == "conditional" else wait.index


@contextmanager
def _dead_work_forgotten() -> Iterator[None]:
    """Recovery forgets what a dead host had begun: nobody repeats it."""
    with mock.patch.object(hosting.Hosting, "_recover", return_value=None):
        yield


BREAKS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "a trigger is consumed twice": lambda: _commits(_consume_twice),
    "a wait is forgotten at release": lambda: _commits(_forget_a_wait),
    "a wait outlives its token": lambda: _commits(_keep_a_wait),
    "a join forgets who has come": lambda: _hydrating(_without_joins),
    "a scope forgets what it would compensate": lambda: _hydrating(_without_ledgers),
    "a condition forgets that it holds": lambda: _hydrating(_without_edges),
    "the work of a dead host is forgotten": _dead_work_forgotten,
    "scripts without the delivery's dedup": lambda: without("dedup"),
    "scripts that drain no parked message": lambda: without("drain"),
}
