"""The Lua scripts as callables: loaded once, run by their digest, with the constant part of every command packed once.

Packing thirty constant keys for each call would cost more than the script itself, so a `Script` renders them when it
is made and
writes the arguments behind them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import redis
from redis.exceptions import NoScriptError

from gobpm_ray.runtime.crashpoints import AFTER, BEFORE, SCRIPTS, reached
from gobpm_ray.settings import Settings
from gobpm_ray.store.keys import Keys

Argument = bytes | str | int

_WRITING = frozenset(SCRIPTS)


@cache
def source(name: str) -> bytes:
    """The whole text of a script: its shebang line, the shared prelude, its own body."""
    folder = resources.files("gobpm_ray.store") / "lua"
    own = (folder / f"{name}.lua").read_bytes()
    shebang, _, body = own.partition(b"\n")
    if not shebang.startswith(b"#!lua"):
        raise ValueError(f"{name}.lua: the first line must be #!lua with its flags")
    return shebang + b"\n" + (folder / "prelude.lua").read_bytes() + b"\n" + body


def pack(argument: Argument) -> bytes:
    """One RESP bulk string."""
    data = argument if isinstance(argument, bytes) else str(argument).encode()
    return b"$%d\r\n%b\r\n" % (len(data), data)


class _Lent:
    """A connection that a thread has to itself; it is the pool's again when the thread has ended, for a pool counts
    what
    it lent, and a program that serves each request in a thread of its own would run out of connections."""

    def __init__(self, pool: Any) -> None:
        self.pid = os.getpid()
        self.connection = pool.get_connection()
        self._pool = pool

    def __del__(self) -> None:
        if self.pid == os.getpid():
            with contextlib.suppress(Exception):  # at the interpreter's exit there may be no pool left
                self._pool.release(self.connection)


class Scripts:
    """Runs scripts of one partition over one client; threads may share it."""

    def __init__(self, client: redis.Redis, keys: Keys, settings: Settings) -> None:
        self._client = client
        self._pool: Any = client.connection_pool
        common: tuple[Argument, ...] = (
            keys.instances,
            settings.lease_ttl_ms,
            settings.dedup_window_ms,
            settings.history_limit,
            settings.facts_limit,
        )
        self._constant = b"".join(pack(part) for part in (len(keys.fixed), *keys.fixed, *common))
        self._constants = 1 + len(keys.fixed) + len(common)
        self._own = threading.local()
        self._digests: dict[str, bytes] = {}

    def _command(self, name: str, arguments: Sequence[Argument]) -> bytes:
        digest = self._digests.get(name)
        if digest is None:
            digest = self._digests[name] = pack(hashlib.sha1(source(name), usedforsecurity=False).hexdigest())
        count = 2 + self._constants + len(arguments)
        return b"*%d\r\n$7\r\nEVALSHA\r\n%b%b%b" % (count, digest, self._constant, b"".join(map(pack, arguments)))

    def run(self, name: str, *arguments: Argument) -> Any:
        """Run one script in one round trip; its raw reply. Raises redis errors as they come."""
        return self.run_many(name, [arguments])[0]

    def run_many(self, name: str, calls: Iterable[Sequence[Argument]]) -> list[Any]:
        """The same script for each of `calls`, pipelined: one write, one fsync of the store for all. Each is atomic
        by itself."""
        commands = [self._command(name, arguments) for arguments in calls]
        writes = name in _WRITING
        if writes:
            reached(BEFORE, name)
        try:
            replies = self._exchange(commands)
        except NoScriptError:
            self._client.script_load(source(name))
            replies = self._exchange(commands)
        if writes:
            reached(AFTER, name)
        return replies

    def _connection(self) -> Any:
        """This thread's own connection, for as long as the thread and the process live: taking one from the pool and
        giving it back
        costs half as much as the script that it carries."""
        lent: _Lent | None = getattr(self._own, "lent", None)
        if lent is None or lent.pid != os.getpid():
            lent = self._own.lent = _Lent(self._pool)
        return lent.connection

    def _exchange(self, commands: list[bytes]) -> list[Any]:
        connection = self._connection()
        try:
            try:
                connection.send_packed_command(commands)
            except redis.ConnectionError:
                # The server that this connection led to has gone, perhaps long ago: it has not read the command, so
                # a new connection may send it again. A reply that does not come is another matter (see below).
                connection.disconnect()
                connection.send_packed_command(commands)
            replies: list[Any] = []
            failure: Exception | None = None
            for _ in commands:
                try:
                    replies.append(connection.read_response())
                except redis.ResponseError as error:
                    failure = failure or error
                    replies.append(error)
            if failure is not None:
                raise failure
            return replies
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            connection.disconnect()
            raise
