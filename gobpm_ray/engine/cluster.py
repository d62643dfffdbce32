"""The engine's actors on a Ray cluster: joined or started, ensured, asked, and stopped.

This module knows how a driver gets to Ray (a local cluster of its own, the one it runs in, an address) and which named
actors make an engine. It refuses to know what they do. Ray is imported by the functions, not with the module.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from actors.spec import NAMESPACE, EngineSpec
from gobpm_ray.errors import InvalidSetting, RayUnavailable
from gobpm_ray.settings import Settings

log = logging.getLogger(__name__)

SUPERVISOR = "ResidencySupervisor"
START_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 5.0

_AUTH_MODE = "RAY_AUTH_MODE"


@dataclass(frozen=True, slots=True)
class ClusterHandle:
    """An engine's actors as one driver reached them. Dropping it changes nothing: they are detached and live on."""

    spec: EngineSpec
    address: str
    """Of the Ray cluster, as another driver may join it."""
    dashboard_url: str
    """'' without a dashboard."""
    own_cluster: bool
    """This driver started the cluster, which ends with it."""
    joined: bool
    """This driver's connection to Ray was made here, and is ours to end."""

    @property
    def engine_id(self) -> str:
        return self.spec.settings.engine_id


def ensure(
    settings: Settings,
    store_url: str,
    *,
    address: str = "local",
    dashboard: bool = False,
    num_cpus: int | None = None,
    runtime_env: dict[str, Any] | None = None,
    signing_key: bytes = b"",
    timeout_s: float = START_TIMEOUT_S,
) -> ClusterHandle:
    """The engine's three holders and its supervisor live in the cluster and answered.

    `address`: `local` starts a cluster in this program (unless the program has joined one already), `auto` joins the
    one around, `host:port` and `ray://host:port` a certain one. A connection that the program made itself is used as
    it is. Raises `RayUnavailable` when there is no such cluster or its actors do not come to life, `InvalidSetting`
    when this engine id already runs on another store there.
    """
    spec = EngineSpec(settings, store_url, signing_key)
    own_cluster, joined = _join(spec, address, dashboard, num_cpus, runtime_env)
    try:
        handle = _described(spec, own_cluster, joined)
        _ensure_actors(spec, timeout_s, foreign=not own_cluster)
    except BaseException:
        if joined:
            _leave()
        raise
    return handle


def status(handle: ClusterHandle, timeout_s: float = 5.0) -> dict[str, dict[str, Any]]:
    """Each role's own answer (`pid`, `node`, `store`, `trouble`), or only its `trouble` where it does not answer."""
    from actors.handles import find_service

    answers: dict[str, dict[str, Any]] = {}
    for role in _shells():
        service = find_service(handle.spec, role)
        if service is None:
            answers[role] = {"trouble": "does not live"}
            continue
        try:
            answers[role] = service.call("ping", timeout_s=timeout_s)
        except RayUnavailable as failure:
            answers[role] = {"trouble": str(failure)}
    return answers


def stop(handle: ClusterHandle, grace_ms: int | None = None) -> int:
    """No actor of this engine lives any more; how many had to be killed. What they hosted waits in the store.

    First the supervisor lets every InstanceActor end within the grace, then it and the holders end.
    """
    from actors.handles import CALL_TIMEOUT_S, end_services, find_service, kill_instance_actors

    grace_ms = handle.spec.settings.grace_ms if grace_ms is None else grace_ms
    services = [service for role in _shells() if (service := find_service(handle.spec, role)) is not None]
    killed = 0
    for service in services:
        if service.role == SUPERVISOR:
            try:
                killed += service.call("drain", grace_ms, timeout_s=grace_ms / 1_000 + CALL_TIMEOUT_S)
            except RayUnavailable as failure:
                log.warning("the InstanceActors were not drained: %s", failure)
    killed += end_services(services, CALL_TIMEOUT_S)
    # Whoever is left had no supervisor to be drained by; what it hosted is swept back to ready.
    return killed + kill_instance_actors(handle.engine_id)


def kill(handle: ClusterHandle) -> None:
    """Every process of the cluster that this driver started is gone by SIGKILL, actors first, as in a power failure.

    What a recovery is tested with (`restart` in a scenario); a cluster that the driver only joined is left alone.
    """
    if not handle.own_cluster:
        raise RayUnavailable(f"Ray at {handle.address} was not started by this program, and is not its to kill")
    from actors.power_failure import kill_local_cluster

    kill_local_cluster()


def leave(handle: ClusterHandle) -> None:
    """End this driver's connection if it was made by `ensure`, and with it a cluster that this driver started."""
    if handle.joined:
        _leave()


# ----------------------------------------------------------------------------------------------------------------- Ray


def _join(
    spec: EngineSpec, address: str, dashboard: bool, num_cpus: int | None, runtime_env: dict[str, Any] | None
) -> tuple[bool, bool]:
    """(a cluster was started, a connection was made)."""
    if address != "local" and spec.one_machine and address.startswith("ray://") and not _is_here(address):
        raise InvalidSetting(
            f"address {address}: its nodes cannot reach the embedded store of this machine; "
            "set GOBPM_REDIS_URL to a store that they can reach"
        )
    _decide_authentication(local=address == "local")
    if address == "local":
        # Ours alone: neither phones home nor keeps idle workers that no actor would use.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_enable_worker_prestart", "0")
    import ray

    if ray.is_initialized():
        return False, False
    _refuse_deaf(address)
    options: dict[str, Any] = {
        "namespace": NAMESPACE,
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "runtime_env": runtime_env,
    }
    if address == "local":
        options |= {"include_dashboard": dashboard, "num_cpus": num_cpus}
    try:
        ray.init(address, **options)
    except Exception as failure:
        raise RayUnavailable(f"Ray at {address}: {_one_line(failure)}") from failure
    return address == "local", True


def _leave() -> None:
    import ray

    ray.shutdown()


def _described(spec: EngineSpec, own_cluster: bool, joined: bool) -> ClusterHandle:
    from actors.handles import cluster_address, dashboard_url

    return ClusterHandle(spec, cluster_address(), dashboard_url(), own_cluster, joined)


def _shells() -> dict[str, type]:
    from actors.residency import ResidencySupervisor
    from holders.actors import SHELLS

    return {**SHELLS, SUPERVISOR: ResidencySupervisor}


def _ensure_actors(spec: EngineSpec, timeout_s: float, *, foreign: bool) -> None:
    from ray.exceptions import RayError

    from actors.handles import check_nodes, ensure_services, find_service

    try:
        if foreign and any(find_service(spec, role) is None for role in _shells()):
            check_nodes(timeout_s)
        answers = ensure_services(spec, _shells(), timeout_s)
    except RayError as failure:
        raise RayUnavailable(f"engine {spec.settings.engine_id}: {_one_line(failure)}") from failure
    except ImportError as failure:
        # A Ray client's classes are unpickled at the cluster's end, and its failure comes back as it is.
        raise RayUnavailable(
            f"engine {spec.settings.engine_id}: the cluster has no such module: {failure}"
        ) from failure
    for role, answer in answers.items():
        if answer["store"] != spec.store_digest:
            raise InvalidSetting(
                f"engine_id {spec.settings.engine_id}: its {role} already runs on this Ray cluster with another store; "
                "choose another engine id, or stop that engine"
            )


def _decide_authentication(*, local: bool) -> None:
    """Ray 2.60 turns token authentication on by itself: say outright what it shall be.

    A cluster that we start has it, for its ports let anybody run code; one that we join may have it, which the
    presence of a token tells.
    """
    if os.environ.get(_AUTH_MODE) or "ray" in sys.modules:
        return  # decided by the environment, or read by Ray already
    home = Path.home()
    known = (
        os.environ.get("RAY_AUTH_TOKEN")
        or os.environ.get("RAY_AUTH_TOKEN_PATH")
        or (home / ".ray" / "auth_token").exists()
    )
    os.environ[_AUTH_MODE] = "token" if local or known else "disabled"
    if local and not known:
        try:
            (home / ".ray").mkdir(parents=True, exist_ok=True)
        except OSError:
            # Ray keeps a new token there; where it cannot, this program and its children share one, kept nowhere.
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def _refuse_deaf(address: str) -> None:
    """Ray tries for minutes to reach an address where nobody listens."""
    shown = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    parts = urlsplit(shown if "://" in shown else f"ray://{shown}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.hostname is None or port is None:
        return
    try:
        socket.create_connection((parts.hostname, port), timeout=CONNECT_TIMEOUT_S).close()
    except OSError as failure:
        raise RayUnavailable(f"Ray at {shown}: nobody listens there: {failure.strerror or failure}") from failure


def _is_here(address: str) -> bool:
    return urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")


def _one_line(failure: BaseException) -> str:
    return " ".join(str(failure).split())[:300] or type(failure).__name__
