"""The embedded store: a real server that outlives its openers, is shared by them, and loses nothing to a SIGKILL.

Each test runs on the server that the project ships, and on each Redis and Valkey that is installed on this machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from gobpm_ray.errors import EnvironmentFailure, InvalidSetting, StoreUnavailable
from gobpm_ray.store.connection import connect
from gobpm_ray.store.embedded import EmbeddedStore, default_home, found_on_path, shipped_binary
from gobpm_ray.store.os_process import is_alive
from gobpm_ray.store.signing_key import signing_key

MakeStore = Callable[..., EmbeddedStore]


@pytest.fixture(params=[shipped_binary(), *found_on_path()], ids=lambda binary: binary.name)
def binary(request: pytest.FixtureRequest) -> Path:
    assert isinstance(request.param, Path)
    return request.param


@pytest.fixture
def home() -> Iterator[Path]:
    # Not tmp_path: its long names would put every socket outside the home.
    folder = Path(tempfile.mkdtemp(prefix="gobpm-"))
    yield folder / "home"
    shutil.rmtree(folder)


@pytest.fixture
def make_store(home: Path, binary: Path) -> Iterator[MakeStore]:
    made: list[EmbeddedStore] = []

    def make(at: Path = home, **options: object) -> EmbeddedStore:
        made.append(EmbeddedStore(at, **({"binary": binary} | options)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for store in made:
        store.stop()


def living(store: EmbeddedStore) -> int:
    pid = store.pid
    assert pid is not None
    return pid


def killed(store: EmbeddedStore) -> int:
    """The store's server got no chance to clean up: its pid file and its socket still lie about."""
    pid = living(store)
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while is_alive(pid):
        assert time.monotonic() < deadline, "SIGKILL did not end the server"
        time.sleep(0.005)
    assert store.socket.exists()
    assert store.pid_file.exists()
    return pid


def test_every_change_is_on_disk_before_it_is_answered_and_nothing_is_evicted(make_store: MakeStore) -> None:
    """Issue 2, point 2: AOF `always`, `noeviction`, a data folder, a unix socket and no port."""
    store = make_store()
    with connect(store.ensure_running()) as client:
        found = client.config_get("*")

    expected = {
        "appendonly": "yes",
        "appendfsync": "always",
        "maxmemory-policy": "noeviction",
        "save": "",
        "port": "0",
        "dir": str(store.data),
        "hash-max-listpack-value": "4096",
        "hash-max-listpack-entries": "128",
    }
    assert {name: found[name] for name in expected} == expected


def test_only_its_own_user_can_reach_the_store(make_store: MakeStore) -> None:
    """Issue 2, point 2: a socket without a password is guarded by its permissions."""
    store = make_store()
    store.ensure_running()

    for path in (store.home, store.data, store.socket, store.log_file, store.conf_file):
        assert path.stat().st_mode & 0o077 == 0, f"{path}: {stat.filemode(path.stat().st_mode)}"


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["sys.exit()", "os.kill(os.getpid(), 9)"], ids=["exits", "is killed"])
def test_the_store_outlives_the_program_that_opened_it(make_store: MakeStore, binary: Path, ending: str) -> None:
    """N1: what was accepted stays, whatever happens to the opener."""
    store = make_store()
    program = (
        "import os, sys\n"
        "from gobpm_ray.store.embedded import EmbeddedStore\n"
        "from gobpm_ray.store.connection import connect\n"
        f"url = EmbeddedStore({str(store.home)!r}, binary={str(binary)!r}).ensure_running()\n"
        "connect(url).set('accepted', 'yes')\n"
        f"{ending}\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False, timeout=60)

    assert store.status().running
    with connect(store.url) as client:
        assert client.get("accepted") == b"yes"


def test_a_second_opener_attaches_to_the_living_server(make_store: MakeStore) -> None:
    """Issue 2, point 2: one home is one server."""
    first, second = make_store(), make_store()
    first.ensure_running()
    pid = living(first)

    assert second.ensure_running() == first.url
    assert living(second) == pid


def test_openers_that_race_start_one_server(make_store: MakeStore) -> None:
    """Issue 2, point 2: two servers over one data folder would ruin it."""
    stores = [make_store() for _ in range(8)]
    with ThreadPoolExecutor(len(stores)) as threads:
        urls = list(threads.map(lambda store: store.ensure_running(), stores))

    assert set(urls) == {stores[0].url}
    assert len({living(store) for store in stores}) == 1
    assert stores[0].log_file.read_text(encoding="utf-8").lower().count("ready to accept connections") == 1


def test_a_killed_server_is_replaced_and_nothing_accepted_is_lost(make_store: MakeStore) -> None:
    """N1: SIGKILL leaves a stale pid and a stale socket; the next opener loads all that was answered."""
    store = make_store()
    with connect(store.ensure_running()) as client:
        for number in range(200):
            client.rpush("accepted", number)
    former = killed(store)

    assert not store.status().running
    with connect(store.ensure_running()) as client:
        assert client.lrange("accepted", 0, -1) == [str(number).encode() for number in range(200)]
    assert living(store) != former


def test_a_client_of_a_killed_server_goes_on_with_the_new_one(make_store: MakeStore) -> None:
    """N1: an engine need not be opened again because its store was."""
    store = make_store()
    with connect(store.ensure_running()) as client:
        client.set("accepted", "yes")
        killed(store)
        store.ensure_running()

        assert client.get("accepted") == b"yes"


def test_a_torn_last_write_is_dropped_and_the_rest_is_loaded(make_store: MakeStore) -> None:
    """N1: a write that a crash tore was never answered, so losing it breaks no promise."""
    store = make_store()
    with connect(store.ensure_running()) as client:
        client.set("accepted", "yes")
    killed(store)
    (increments,) = store.data.glob("appendonlydir/*.incr.aof")
    with increments.open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$4\r\nto")

    with connect(store.ensure_running()) as client:
        assert client.get("accepted") == b"yes"
        assert client.dbsize() == 1


def test_data_that_cannot_be_read_is_named_and_not_thrown_away(make_store: MakeStore) -> None:
    """N1: a ruined file is for a person to judge; starting empty would lose every instance in silence."""
    store = make_store()
    with connect(store.ensure_running()) as client:
        client.set("accepted", "yes")
    killed(store)
    (increments,) = store.data.glob("appendonlydir/*.incr.aof")
    ruined = b"no such thing\r\n" + increments.read_bytes()
    increments.write_bytes(ruined)

    with pytest.raises(StoreUnavailable, match=r"the server ended: .*(?i:bad file format)") as refused:
        store.ensure_running()
    assert "\n" not in str(refused.value)
    assert increments.read_bytes() == ruined


def test_the_pid_of_a_stranger_is_left_alone(make_store: MakeStore) -> None:
    """N1: after a restart of the machine the pid in the file belongs to somebody else."""
    store = make_store()
    store.ensure_running()
    store.stop()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            store.pid_file.write_text(f"{stranger.pid}\n", encoding="ascii")

            assert store.pid is None
            assert store.stop() is False
            store.ensure_running()
            assert stranger.poll() is None
            assert living(store) != stranger.pid
        finally:
            stranger.kill()


def test_a_server_whose_socket_was_cleaned_away_is_replaced(make_store: MakeStore) -> None:
    """N1: a cleaner of temporary files took the way in; the server behind it must not keep the data folder."""
    store = make_store()
    with connect(store.ensure_running()) as client:
        client.set("accepted", "yes")
    former = living(store)
    store.socket.unlink()

    with connect(store.ensure_running()) as client:
        assert client.get("accepted") == b"yes"
    assert living(store) != former
    assert not is_alive(former)


def test_a_server_that_takes_no_more_clients_is_not_taken_for_dead(make_store: MakeStore) -> None:
    """N1: a full server refuses a connection by closing it, and still owns its data folder."""
    store = make_store(start_timeout_s=0.5)
    with connect(store.ensure_running()) as client:
        pid = living(store)
        client.config_set("maxclients", 1)

        with pytest.raises(StoreUnavailable, match="not ready"):
            make_store(start_timeout_s=0.5).ensure_running()
        assert living(store) == pid
        client.config_set("maxclients", 100)
    assert store.ensure_running() == store.url
    assert living(store) == pid


def test_stopping_ends_the_server_keeps_the_data_and_may_be_repeated(make_store: MakeStore) -> None:
    """Issue 2, point 2: stopped cleanly."""
    store = make_store()
    assert store.stop() is False
    with connect(store.ensure_running()) as client:
        client.set("accepted", "yes")
    pid = living(store)

    assert store.stop() is True
    assert not is_alive(pid)
    assert not store.socket.exists()
    assert store.stop() is False
    with connect(store.ensure_running()) as client:
        assert client.get("accepted") == b"yes"


def test_status_tells_whether_a_server_lives_and_starts_none(make_store: MakeStore) -> None:
    """Issue 2, point 6: `status` asks."""
    store = make_store()
    assert not store.status().running
    assert not store.home.exists()

    store.ensure_running()
    status = store.status()
    assert (status.running, status.loading, status.pid) == (True, False, living(store))
    assert status.version.split()[0] in ("redis", "valkey")
    assert status.version.split()[1][0].isdigit()


def test_a_home_too_deep_for_a_socket_gets_a_short_one_that_every_opener_finds(
    home: Path, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 2, point 2: the kernel cuts a socket's path at 107 bytes; a second opener may have another TMPDIR."""
    deep = home / ('a folder with a "long" name ' * 6).strip()
    store = make_store(deep)
    socket = store.socket
    try:
        with connect(store.ensure_running()) as client:
            client.set("accepted", "yes")
        assert store.socket == socket
        assert len(os.fsencode(socket)) <= 107
        assert socket.parent != deep
        assert socket.parent.stat().st_mode & 0o077 == 0

        monkeypatch.setattr(tempfile, "tempdir", str(home))
        second = make_store(deep)
        with connect(second.ensure_running()) as client:
            assert client.get("accepted") == b"yes"
        assert living(second) == living(store)
    finally:
        store.stop()
        socket.parent.rmdir()


def test_a_home_that_cannot_be_written_is_an_environment_failure(home: Path, make_store: MakeStore) -> None:
    """Exit code 5, one line that names the place."""
    home.parent.joinpath("a file").touch()

    with pytest.raises(EnvironmentFailure, match=r"a file/home: cannot be written: Not a directory") as refused:
        make_store(home.parent / "a file" / "home").ensure_running()
    assert "\n" not in str(refused.value)


def test_a_missing_server_program_is_an_environment_failure(home: Path, make_store: MakeStore) -> None:
    """Exit code 5, one line that names the program."""
    with pytest.raises(EnvironmentFailure, match=r"/no/such/server: no such program"):
        make_store(binary="/no/such/server").ensure_running()


def test_a_server_that_does_not_come_up_says_why(home: Path, make_store: MakeStore) -> None:
    """Exit code 5, with the server's own last words."""
    store = make_store(maxmemory="plenty")

    with pytest.raises(StoreUnavailable, match=r"the server ended: .*argument") as refused:
        store.ensure_running()
    assert "\n" not in str(refused.value)


def test_a_full_store_refuses_and_keeps_what_it_has(make_store: MakeStore) -> None:
    """E89: `noeviction` in deed, on the real server."""
    store = make_store(maxmemory="3mb")
    with connect(store.ensure_running()) as client:
        accepted = 0

        def fill() -> None:
            nonlocal accepted
            for number in range(10_000):
                client.set(f"key:{number}", "x" * 4_000)
                accepted += 1

        with pytest.raises(redis.exceptions.OutOfMemoryError):
            fill()
        assert accepted > 10
        assert client.dbsize() == accepted


def test_a_path_that_no_configuration_can_hold_is_refused(home: Path, make_store: MakeStore) -> None:
    """A line break in a path would be a setting of the store."""
    with pytest.raises(InvalidSetting, match="line break"):
        make_store(home.parent / "a\nb").ensure_running()


def test_the_home_is_the_one_that_the_environment_names(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D 11: `GOBPM_HOME`, else `./.gobpm`, whatever the working directory becomes later."""
    monkeypatch.setenv("GOBPM_HOME", str(home))
    assert default_home() == home
    assert EmbeddedStore().home == home

    monkeypatch.delenv("GOBPM_HOME")
    monkeypatch.chdir(home.parent)
    store = EmbeddedStore()
    monkeypatch.chdir("/")
    assert store.home == home.parent / ".gobpm"


def test_the_signing_key_is_made_once_and_is_its_users_alone(home: Path) -> None:
    """D 9: of programs that race all get the same key."""
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(lambda _: signing_key(home), range(32)))

    assert len(keys) == 1
    assert len(keys.pop()) == 32
    assert (home / "key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.iterdir()] == ["key"]


def test_a_signing_key_that_others_can_read_or_that_was_cut_is_refused(home: Path) -> None:
    """D 9: code signed with a key that anyone knows is code that anyone may have put there."""
    key = home / "key"
    signing_key(home)
    key.chmod(0o644)
    with pytest.raises(EnvironmentFailure, match="other users can read it"):
        signing_key(home)

    key.chmod(0o600)
    key.write_bytes(b"")
    with pytest.raises(EnvironmentFailure, match="0 bytes, expected 32"):
        signing_key(home)
