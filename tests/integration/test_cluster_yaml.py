"""`cluster.yaml` is what Ray's launcher accepts, and starts nodes that can run the project, Redis included (C6)."""

from __future__ import annotations

import copy
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from jsonschema import ValidationError
from ray.autoscaler._private.util import prepare_config, validate_config

from gobpm_ray.errors import StoreRefused, StoreUnavailable
from gobpm_ray.store.connection import connect, inspect_store

CLUSTER_YAML = Path(__file__).parents[2] / "cluster.yaml"
COMMANDS = (
    "initialization_commands",
    "setup_commands",
    "head_setup_commands",
    "worker_setup_commands",
    "head_start_ray_commands",
    "worker_start_ray_commands",
)


@pytest.fixture
def cluster() -> dict[str, Any]:
    config = yaml.safe_load(CLUSTER_YAML.read_text(encoding="utf-8"))
    assert isinstance(config, dict)
    return config


def test_rays_own_launcher_accepts_the_cluster_file(cluster: dict[str, Any]) -> None:
    """C6: Ray fills in its provider's defaults and checks the whole against its own schema."""
    prepared = prepare_config(copy.deepcopy(cluster))

    validate_config(prepared)
    assert prepared["cluster_name"] == "gobpm"
    assert prepared["available_node_types"]["worker"]["max_workers"] == 4


@pytest.mark.parametrize(
    ("break_it", "complaint"),
    [
        (lambda config: config.update(auth="ubuntu"), "ubuntu"),
        (lambda config: config.update(max_workers="many"), "many"),
        (lambda config: config.update(redis={"port": 6380}), "redis"),
        (lambda config: config["available_node_types"]["head"].pop("node_config"), "node_config"),
        (lambda config: config.update(rsync_exclude=".venv"), "venv"),
    ],
    ids=[
        "a word for the login",
        "a word for a number",
        "an unknown field",
        "a node type without its machine",
        "no list of names",
    ],
)
def test_rays_own_launcher_refuses_a_broken_copy(cluster: dict[str, Any], break_it: Any, complaint: str) -> None:
    """C6: the check above can fail; each breach is refused and named."""
    break_it(cluster)

    with pytest.raises(ValidationError, match=complaint):
        validate_config(prepare_config(cluster))


def test_rays_own_launcher_refuses_more_workers_than_the_cluster_may_have(cluster: dict[str, Any]) -> None:
    """C6: what no schema can say, Ray's launcher checks itself."""
    cluster["available_node_types"]["worker"]["min_workers"] = 5

    with pytest.raises(ValueError, match="max_workers"):
        validate_config(prepare_config(cluster))


def test_every_command_of_the_cluster_file_is_a_shell_command(cluster: dict[str, Any]) -> None:
    """C6: a quote that a folded line lost would show only on a paid machine."""
    commands = [command for key in COMMANDS for command in cluster.get(key, [])]

    assert len(commands) >= 9
    for command in commands:
        checked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, f"{command}\n{checked.stderr}"


def test_every_node_installs_the_project_from_its_lock(cluster: dict[str, Any]) -> None:
    """C6: a node runs the same versions as the tests did."""
    install = " && ".join(cluster["setup_commands"])

    assert "--require-hashes -r requirements.lock" in install
    assert (CLUSTER_YAML.parent / "requirements.lock").is_file()
    assert "." in cluster["file_mounts"].values()


def test_every_node_finds_the_store_and_says_how_ray_authenticates(cluster: dict[str, Any], tmp_path: Path) -> None:
    """C6, D 12: the environment that Ray's processes inherit names the head's store and the auth mode.

    The start command runs for real, up to `ray start`, in a home of its own.
    """
    (tmp_path / ".gobpm-cluster.env").write_text(
        "GOBPM_STORE_PASSWORD=5ec2e7\nRAY_AUTH_TOKEN=70cen\n", encoding="utf-8"
    )
    binaries = tmp_path / "gobpm-ray" / ".venv" / "bin"
    binaries.mkdir(parents=True)
    ray = binaries / "ray"
    ray.write_text('#!/bin/sh\necho "$RAY_AUTH_MODE $RAY_AUTH_TOKEN $GOBPM_REDIS_URL $*"\n', encoding="utf-8")
    ray.chmod(0o755)

    for key, address in (("head_start_ray_commands", r"[0-9a-f.:]+"), ("worker_start_ray_commands", r"10\.0\.0\.7")):
        started = subprocess.run(
            ["bash", "-c", cluster[key][-1]],
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "RAY_HEAD_IP": "10.0.0.7"},
            capture_output=True,
            text=True,
            check=False,
        )

        assert started.returncode == 0, started.stderr
        mode, token, url, verb, *_ = shlex.split(started.stdout)
        assert (mode, token, verb) == ("token", "70cen", "start")
        assert re.fullmatch(rf"redis://:5ec2e7@{address}:6380/0", url)
    assert (tmp_path / ".gobpm-node.env").stat().st_mode & 0o077 == 0, "other users must not read the password"


def test_the_heads_store_keeps_every_instance(cluster: dict[str, Any], tmp_path: Path) -> None:
    """C6: on disk before it answers, never evicting, its password from the environment, unknown to the passer-by.

    The head's set-up command runs for real, in folders of its own and without `sudo`; the server that it installed
    starts on the file that it wrote.
    """
    (tmp_path / ".gobpm-cluster.env").write_text("GOBPM_STORE_PASSWORD=5ec2e7\n", encoding="utf-8")
    (set_up,) = [command for command in cluster["head_setup_commands"] if "requirepass" in command]
    port = free_port()
    for there, here in (
        ("sudo ", ""),
        ("-o ubuntu -g ubuntu ", ""),
        ("~/gobpm-ray/.venv/bin/python", sys.executable),
        ("/usr/local/bin/gobpm-store", str(tmp_path / "gobpm-store")),
        ("/var/lib/gobpm-store", str(tmp_path / "store")),
        ("'port 6380' 'bind * -::*'", f"'port {port}' 'bind 127.0.0.1'"),
    ):
        assert there in set_up, f"the set-up command no longer says {there!r}"
        set_up = set_up.replace(there, here)
    subprocess.run(["bash", "-c", set_up], env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, check=True)

    assert (tmp_path / "store" / "store.conf").stat().st_mode & 0o077 == 0, "other users must not read the password"
    server = subprocess.Popen(
        [tmp_path / "gobpm-store", tmp_path / "store" / "store.conf"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        client = retried(lambda: connect(f"redis://:5ec2e7@127.0.0.1:{port}/0"))
        with client:
            assert inspect_store(client) == []
            assert client.info("memory")["maxmemory"] > 0, "the store must not push Ray out of memory"
        with pytest.raises(StoreRefused, match="password"):
            connect(f"redis://127.0.0.1:{port}/0")
    finally:
        server.terminate()
        server.wait(timeout=10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def retried(open_it: Callable[[], redis.Redis], within_s: float = 10.0) -> redis.Redis:
    deadline = time.monotonic() + within_s
    while True:
        try:
            return open_it()
        except StoreUnavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
