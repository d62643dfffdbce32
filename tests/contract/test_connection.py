"""Connections to a store: URLs, users, passwords and TLS on real servers, and what each failure is called."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import redis

from gobpm_ray.errors import (
    BrokenInvariant,
    EnvironmentFailure,
    InvalidSetting,
    StoreRefused,
    StoreUnavailable,
    UnknownTask,
)
from gobpm_ray.store.connection import connect, inspect_store, mask, resolve_url, store_errors, translate
from gobpm_ray.store.embedded import EmbeddedStore, shipped_binary

SECRET = "5ec/re@t"
QUOTED = "5ec%2Fre%40t"
FIT = ("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction", "--save", "")

StartServer = Callable[..., int]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """A real server on a port of this machine, with whatever options a test asks for; returns the port."""
    with ExitStack() as cleaning:

        def start(*options: str) -> int:
            folder = tempfile.mkdtemp(prefix="gobpm-")
            cleaning.callback(shutil.rmtree, folder)
            port = free_port()
            server = subprocess.Popen(
                [shipped_binary(), "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, *(options or FIT)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            cleaning.callback(server.wait, timeout=10)
            cleaning.callback(server.kill)
            deadline = time.monotonic() + 10
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    return port
                except ConnectionRefusedError:
                    assert time.monotonic() < deadline, "the server does not come up"
                    time.sleep(0.01)

        yield start


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gobpm-"))
    yield folder
    EmbeddedStore(folder).stop()
    shutil.rmtree(folder)


# ------------------------------------------------------------------------------------------------------------ opening


def test_without_a_url_the_embedded_store_is_opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 2, point 2: nothing to install, nothing to configure."""
    monkeypatch.delenv("GOBPM_REDIS_URL", raising=False)
    with connect(home=home) as client:
        assert client.set("key", "värde")
        assert client.get("key") == "värde".encode(), "answers are bytes"
        assert inspect_store(client) == []
    assert resolve_url(home=home) == f"unix://{home}/store.sock"


def test_the_environment_names_an_external_store(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 2, point 2: `GOBPM_REDIS_URL`; a URL that is given outright is stronger."""
    port = start_server()
    monkeypatch.setenv("GOBPM_REDIS_URL", f"redis://127.0.0.1:{port}/3")
    with connect(home="/nonexistent/home") as client:
        client.set("key", "value")
    with connect(f"redis://127.0.0.1:{port}/4") as client:
        assert client.get("key") is None


def test_user_and_password_of_the_url_are_used(start_server: StartServer) -> None:
    """Issue 2, point 2: an external store with users of its own, and a password that needs quoting."""
    port = start_server(*FIT, "--requirepass", SECRET, "--user", *f"engine on >{SECRET} ~* &* +@all".split())

    for login in (f":{QUOTED}", f"default:{QUOTED}", f"engine:{QUOTED}"):
        with connect(f"redis://{login}@127.0.0.1:{port}") as client:
            assert client.ping()


@pytest.mark.parametrize("login", ["", ":wrong@", f"nobody:{QUOTED}@"], ids=["none", "wrong password", "wrong user"])
def test_a_refused_login_is_named_and_shows_no_password(start_server: StartServer, login: str) -> None:
    """Bad input: a wrong password is one line, exit code 5."""
    port = start_server(*FIT, "--requirepass", SECRET)

    with pytest.raises(StoreRefused, match=rf"127\.0\.0\.1:{port}/0: user or password refused") as refused:
        connect(f"redis://{login}127.0.0.1:{port}/0")
    for hidden in (SECRET, QUOTED, ":wrong"):
        assert hidden not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_store_that_is_down_is_named(home: Path) -> None:
    """Bad input: a store that is down is one line, exit code 5."""
    port = free_port()
    with pytest.raises(StoreUnavailable, match=f"redis://engine:\\*\\*\\*@127.0.0.1:{port}") as refused:
        connect(f"redis://engine:{QUOTED}@127.0.0.1:{port}")
    assert QUOTED not in str(refused.value)
    assert "\n" not in str(refused.value)

    with pytest.raises(StoreUnavailable, match=r"no\.sock"):
        connect(f"unix://{home}/no.sock")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:6379",
        "127.0.0.1:6379",
        "redis://:hunter2@127.0.0.1:port",
        "redis://:hunter2@127.0.0.1:99999",
        "redis://:hunter2@127.0.0.1/database",
        "redis://:hunter2@[::1",
        "redis://:hunter2@127.0.0.1?decode_responses=true",
        "redis://:hunter2@127.0.0.1?socket_timeout=soon",
        "redis://:hunter2@127.0.0.1?no_such_option=1",
        "unix://store.sock",
    ],
)
def test_a_url_that_names_no_store_is_bad_input(url: str) -> None:
    """Bad input: exit code 2, one line, no password."""
    with pytest.raises(InvalidSetting, match="store URL") as refused:
        connect(url)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://:hunter2@host", "redis://:***@host"),
        ("rediss://engine:hun@ter/2@host:1/0", "rediss://engine:***@host:1/0"),
        ("unix:///a/socket?password=hunter2&db=1", "unix:///a/socket?password=***&db=1"),
        ("rediss://host?ssl_password=hunter2", "rediss://host?ssl_password=***"),
        ("redis://:hun:ter?2@host", "redis://:***@host"),
    ],
)
def test_a_shown_url_holds_no_password(url: str, shown: str) -> None:
    """A log line is read by more people than the store."""
    assert mask(url) == shown


def test_tls_is_spoken_and_its_certificate_is_checked(start_server: StartServer, home: Path) -> None:
    """Issue 2, point 2: TLS to a hosted store; here a terminator of its own before the real server."""
    port = start_server()
    subprocess.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem",
        shell=True,
        cwd=home,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home / "cert.pem", home / "key.pem")
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=terminate_tls, args=(listener, context, port), daemon=True).start()
        secure = f"rediss://localhost:{listener.getsockname()[1]}/0"

        with connect(f"{secure}?ssl_ca_certs={home}/cert.pem") as client:
            client.set("key", "value")
            assert client.get("key") == b"value"
        with pytest.raises(StoreUnavailable, match=r"(?i)certificate"):
            connect(secure)


def terminate_tls(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    """Speak TLS to the clients of `listener`, and pass what they say to the server on `port`."""

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with source, sink:
            try:
                while data := source.recv(65_536):
                    sink.sendall(data)
            except OSError:
                return  # either end went: so does the other

    while True:
        try:
            plain, _ = listener.accept()
        except OSError:
            return  # the test is over
        try:
            client = context.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            continue
        server = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=pump, args=(client, server), daemon=True).start()
        threading.Thread(target=pump, args=(server, client), daemon=True).start()


# ----------------------------------------------------------------------------------------------------------- failures


def test_a_failure_of_the_server_comes_out_under_our_name(start_server: StartServer) -> None:
    """H6: environment failures from the real server, each caused and not made up."""
    port = start_server(*FIT, "--maxmemory", "1mb")
    with connect(f"redis://127.0.0.1:{port}") as client:
        with pytest.raises(StoreRefused, match="memory is full"), store_errors():
            client.set("key", "x" * 100_000)
        with pytest.raises(StoreRefused, match="memory is full"), store_errors():
            client.eval("return redis.call('SET', KEYS[1], 'x')", 1, "key")

        client.config_set("maxmemory", 0)
        client.acl_setuser("reader", enabled=True, nopass=True, keys="*", categories=["+@read", "+@connection"])
        reader = connect(f"redis://reader:any@127.0.0.1:{port}")
        with reader, pytest.raises(StoreRefused, match="may not"), store_errors():
            reader.set("key", "value")

        client.rpush("list", 1)
        with pytest.raises(BrokenInvariant, match="WRONGTYPE"), store_errors():
            client.get("list")

        client.replicaof("127.0.0.1", str(free_port()))
        with pytest.raises(StoreRefused, match="read-only replica"), store_errors():
            client.set("key", "value")
        with pytest.raises(StoreRefused, match="read-only replica"):
            inspect_store(client)
        client.replicaof("NO", "ONE")


def test_a_store_that_runs_a_script_for_too_long_is_away_for_a_while(start_server: StartServer) -> None:
    """H6: BUSY is a circumstance, no fault of the delivery."""
    port = start_server(*FIT, "--busy-reply-threshold", "1")
    with connect(f"redis://127.0.0.1:{port}") as client, connect(f"redis://127.0.0.1:{port}") as other:

        def run_endlessly() -> None:
            with pytest.raises(redis.ResponseError, match=r"(?i)script killed by user"):
                client.eval("while true do end", 0)

        def ask_until_refused() -> None:
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                other.get("key")

        endless = threading.Thread(target=run_endlessly)
        endless.start()
        try:
            with pytest.raises(StoreUnavailable, match="BUSY"), store_errors():
                ask_until_refused()
        finally:
            other.script_kill()
            endless.join()


@pytest.mark.parametrize(
    ("failure", "name"),
    [
        (redis.BusyLoadingError("Redis is loading the dataset in memory"), StoreUnavailable),
        (redis.exceptions.ClusterDownError("CLUSTERDOWN Hash slot not served"), StoreUnavailable),
        (redis.exceptions.TryAgainError("TRYAGAIN Multiple keys request during rehashing of slot"), StoreUnavailable),
        (redis.exceptions.MovedError("3999 127.0.0.1:6381"), StoreUnavailable),
        (redis.exceptions.AskError("3999 127.0.0.1:6381"), StoreUnavailable),
        (redis.exceptions.MasterDownError("MASTERDOWN Link with MASTER is down"), StoreUnavailable),
        (redis.ResponseError("ERR max number of clients reached"), StoreUnavailable),
        (redis.ConnectionError("max number of clients reached"), StoreUnavailable),
        (redis.ConnectionError("Connection closed by server."), StoreUnavailable),
        (redis.TimeoutError("Timeout reading from socket"), StoreUnavailable),
        (BrokenPipeError("Broken pipe"), StoreUnavailable),
        (redis.ReadOnlyError("You can't write against a read only replica."), StoreRefused),
        (redis.exceptions.NoScriptError("No matching script."), StoreRefused),
        (redis.ResponseError("NOAUTH Authentication required."), StoreRefused),
        (redis.ResponseError("MISCONF Errors writing to the AOF file: No space left on device"), StoreRefused),
        (redis.ResponseError("NOREPLICAS Not enough good replicas to write."), StoreRefused),
        (redis.ResponseError("unknown command 'EVALSHA', with args beginning with: "), StoreRefused),
        (redis.ResponseError("DB index is out of range"), StoreRefused),
        (redis.ResponseError("CROSSSLOT Keys in request don't hash to the same slot"), BrokenInvariant),
        (redis.ResponseError("user_script:1: Script attempted to access nonexistent global variable"), BrokenInvariant),
        (redis.exceptions.DataError("Invalid input of type: 'dict'."), BrokenInvariant),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value)[:32],
)
def test_a_failure_that_only_a_cluster_or_a_bad_day_shows_has_its_name(failure: Exception, name: type) -> None:
    """H6, D 12: what the circumstances cause is an environment failure; what we cause is a broken invariant."""
    translated = translate(failure, "redis://host")

    assert type(translated) is name
    assert isinstance(translated, EnvironmentFailure) is (name is not BrokenInvariant)
    assert str(translated).startswith("store redis://host: ")
    assert " ".join(str(failure).split()) in str(translated)


def test_our_own_errors_pass_through_untouched() -> None:
    """An error that has its name keeps it."""
    ours = UnknownTask("task 7: unknown")
    assert translate(ours) is ours
    with pytest.raises(UnknownTask, match="task 7"), store_errors():
        raise ours


# --------------------------------------------------------------------------------------------------------- inspection


@pytest.mark.parametrize(
    ("options", "warnings"),
    [
        (FIT, []),
        ((*FIT, "--maxmemory-policy", "allkeys-lru"), ["maxmemory-policy is allkeys-lru"]),
        ((*FIT, "--appendfsync", "everysec"), ["appendfsync is everysec: .* a second"]),
        ((*FIT, "--appendfsync", "no"), ["appendfsync is no"]),
        ((*FIT, "--appendonly", "no"), ["appendonly is off"]),
        (
            ("--maxmemory-policy", "volatile-ttl", "--save", ""),
            ["maxmemory-policy is volatile-ttl", "appendonly is off"],
        ),
    ],
    ids=["fit", "evicts", "everysec", "never", "no file", "as it comes"],
)
def test_settings_that_lose_work_are_said_at_start(
    start_server: StartServer, options: tuple[str, ...], warnings: list[str]
) -> None:
    """E89: one sentence for each setting with which accepted work can be lost."""
    with connect(f"redis://127.0.0.1:{start_server(*options)}") as client:
        found = inspect_store(client)

    assert len(found) == len(warnings)
    for sentence, expected in zip(found, warnings, strict=True):
        assert re.search(expected, sentence), sentence


def test_a_store_that_forbids_config_is_judged_by_what_it_tells(start_server: StartServer) -> None:
    """E89: a hosted store tells its eviction and its file in INFO; what nobody tells is named as unknown."""
    port = start_server(*FIT, "--user", "hosted", "on", "nopass", "~*", "&*", "+@all", "-config")
    with connect(f"redis://hosted:any@127.0.0.1:{port}") as client:
        assert inspect_store(client) == [
            "store: appendfsync could not be read; anything but always loses the last writes in a crash"
        ]


@pytest.mark.parametrize(
    ("info", "verdict"),
    [
        ({"redis_version": "6.2.14"}, "Redis 6.2.14 is too old"),
        ({"redis_version": "7.0.0"}, None),
        ({"redis_version": "10.0.1"}, None),
        ({"redis_version": "7.2.4", "valkey_version": "7.1.9", "server_name": "valkey"}, "Valkey 7.1.9 is too old"),
        ({"redis_version": "7.2.4", "valkey_version": "8.0.0", "server_name": "valkey"}, None),
    ],
    ids=["Redis 6.2", "Redis 7.0", "Redis 10", "Valkey 7.1", "Valkey 8"],
)
def test_a_store_that_is_too_old_is_refused(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, info: dict[str, str], verdict: str | None
) -> None:
    """D 6: Redis 7.0 or Valkey 7.2 suffice. No server of 2021 is at hand: a real one's INFO is told to be older."""
    with connect(f"redis://127.0.0.1:{start_server()}") as client:
        real = dict(client.info("everything"))
        real.pop("valkey_version", None)
        monkeypatch.setattr(client, "info", lambda *_: real | info)
        if verdict is None:
            assert inspect_store(client) == []
        else:
            with pytest.raises(StoreRefused, match=verdict):
                inspect_store(client)
