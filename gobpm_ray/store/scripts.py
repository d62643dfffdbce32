"""The Lua scripts as callables: loaded once, run by their digest, with the constant part of every command packed once.

Packing thirty constant keys for each call would cost a twentieth of the script, so they are rendered once and the
arguments written behind them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import redis
from hiredis import pack_command
from redis.exceptions import NoScriptError

from gobpm_ray.runtime.crashpoints import AFTER, BEFORE, SCRIPTS, reached
from gobpm_ray.settings import Settings
from gobpm_ray.store.keys import Keys

Argument = bytes | str | int

LOST = (redis.ConnectionError, redis.TimeoutError, OSError)
"""Failures after which nobody knows what the server has done."""

_WRITING = frozenset(SCRIPTS)

_GOES_ON = {"birth": "commit"}
"""Scripts that are the beginning of another one."""


@cache
def source(name: str) -> bytes:
    """The whole text of a script: its shebang line, the shared prelude, its own body, and that of the one it begins."""
    folder = resources.files("gobpm_ray.store") / "lua"
    own = (folder / f"{name}.lua").read_bytes()
    shebang, _, body = own.partition(b"\n")
    if not shebang.startswith(b"#!lua"):
        raise ValueError(f"{name}.lua: the first line must be #!lua with its flags")
    if name in _GOES_ON:
        body += (folder / f"{_GOES_ON[name]}.lua").read_bytes().partition(b"\n")[2]
    return shebang + b"\n" + (folder / "prelude.lua").read_bytes() + b"\n" + body


def packed(*arguments: Argument) -> bytes:
    """RESP bulk strings, one for each."""
    # The C function renders a whole command; its first line, the count, is another one's here.
    command: bytes = pack_command(arguments)  # type: ignore[arg-type] # its stub asks for a tuple of one
    return command[command.index(b"\n") + 1 :]


class _Lent:
    """A connection that a thread has to itself; it is the pool's again when the thread has ended, for a pool counts
    what it lent, and a program that serves each request in a thread of its own would run out of connections."""

    def __init__(self, pool: Any) -> None:
        self.pid = os.getpid()
        self.connection = pool.get_connection()
        self._pool = pool

    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
        # At the interpreter's exit there may be no pool left, and no module either: what it needs it brings.
        try:
            if self.pid == getpid():
                self._pool.release(self.connection)
        except Exception:  # noqa: S110
            pass


class Sent:
    """A script that was sent and whose reply has not been waited for. It belongs to the thread that sent it."""

    __slots__ = ("_arguments", "_failure", "_name", "_reply", "_scripts", "read")

    def __init__(self, scripts: Scripts, name: str, arguments: Sequence[Argument]) -> None:
        self._scripts, self._name, self._arguments = scripts, name, arguments
        self._reply: Any = None
        self._failure: Exception | None = None
        self.read = False
        """Its reply, or its failure, is here."""

    def settle(self, reply: Any = None, failure: Exception | None = None) -> None:
        self._reply, self._failure, self.read = reply, failure, True

    def reply(self) -> Any:
        """Waits for it; raises redis errors as they come, and nobody knows then whether it was run."""
        if not self.read:
            with contextlib.suppress(*LOST):  # told below
                self._scripts.read_sent()
        if isinstance(self._failure, NoScriptError):
            return self._scripts.run(self._name, *self._arguments)
        if self._failure is not None:
            raise self._failure
        if self._name in _WRITING:
            reached(AFTER, self._name)
        return self._reply


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
        self._constant = packed(len(keys.fixed), *keys.fixed, *common)
        self._constants = 1 + len(keys.fixed) + len(common)
        self._own = threading.local()
        self._digests: dict[str, bytes] = {}

    def _command(self, name: str, arguments: Sequence[Argument]) -> bytes:
        digest = self._digests.get(name)
        if digest is None:
            digest = self._digests[name] = packed(hashlib.sha1(source(name), usedforsecurity=False).hexdigest())
        count = 2 + self._constants + len(arguments)
        return b"*%d\r\n$7\r\nEVALSHA\r\n%b%b%b" % (count, digest, self._constant, packed(*arguments))

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

    def send(self, name: str, *arguments: Argument) -> Sent:
        """Send one script and do not wait; what this thread runs later is run after it."""
        return self.send_many(name, [arguments])[0]

    def send_many(self, name: str, calls: Sequence[Sequence[Argument]]) -> list[Sent]:
        """`run_many`, not waited for."""
        if len(calls) > 1 and name not in self._digests:
            # Or each might be answered that the server does not know the script, and be sent again by itself. A full
            # server that refuses says so to each.
            with contextlib.suppress(redis.ResponseError):
                self._client.script_load(source(name))
        if name in _WRITING:
            reached(BEFORE, name)
        sent = [Sent(self, name, arguments) for arguments in calls]
        connection = self._connection()
        try:
            connection.send_packed_command([b"".join(self._command(name, arguments) for arguments in calls)])
        except LOST as failure:
            self._lose(connection, failure)
            raise
        self._unread().extend(sent)
        return sent

    def read_sent(self) -> None:
        """The replies of what this thread has sent, in its order."""
        unread = self._unread()
        connection = self._connection()
        while unread:
            try:
                unread[0].settle(connection.read_response())
            except redis.ResponseError as refusal:
                unread[0].settle(failure=refusal)
            except LOST as failure:
                self._lose(connection, failure)
                raise
            unread.popleft()

    def _lose(self, connection: Any, failure: Exception) -> None:
        """The connection is useless, and with it every reply that was still to come."""
        connection.disconnect()
        unread = self._unread()
        while unread:
            unread.popleft().settle(failure=failure)

    def _unread(self) -> deque[Sent]:
        unread: deque[Sent] | None = getattr(self._own, "unread", None)
        if unread is None:
            unread = self._own.unread = deque()
        return unread

    def _connection(self) -> Any:
        """This thread's own connection, for as long as the thread and the process live: taking one from the pool and
        giving it back costs half as much as the script that it carries."""
        lent: _Lent | None = getattr(self._own, "lent", None)
        if lent is None or lent.pid != os.getpid():
            lent = self._own.lent = _Lent(self._pool)
        return lent.connection

    def _exchange(self, commands: list[bytes]) -> list[Any]:
        connection = self._connection()
        # In one piece: what the server reads together shares an fsync.
        written = [b"".join(commands)]
        try:
            try:
                connection.send_packed_command(written)
            except redis.ConnectionError as gone:
                # The server that this connection led to has gone, perhaps long ago: it has not read the command, so
                # a new connection may send it again. A reply that does not come is another matter (see below).
                self._lose(connection, gone)
                connection.send_packed_command(written)
            if self._unread():
                self.read_sent()
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
        except LOST as gone:
            self._lose(connection, gone)
            raise
