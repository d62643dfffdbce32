"""`up`, `status`, `down`: the engine as something that stays when the command has ended.

A local Ray lives as long as the process that started it, so a process of this engine's own keeps it: `up` starts it
and waits
until it works, `down` asks it to end. On a cluster that runs already nobody needs to stay: the engine's actors are
detached.
The store is a process of its own in every case, and `down` stops it last.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gobpm_ray.cli.home import (
    LOG,
    Running,
    engine_settings,
    forget_running,
    home,
    read_running,
    write_running,
)
from gobpm_ray.cli.options import Json
from gobpm_ray.cli.output import ENVIRONMENT, OK, Output, finish
from gobpm_ray.errors import EnvironmentFailure, RayUnavailable

if TYPE_CHECKING:
    from gobpm_ray.engine.engine import Engine
    from gobpm_ray.settings import Settings

START_WITHIN_S = 120.0
STOP_WITHIN_S = 90.0
HEARTBEAT_WITHIN_S = 15.0
_LOOK_S = 0.1


class ClockName(StrEnum):
    real = "real"
    virtual = "virtual"


Ray = Annotated[
    str,
    typer.Option("--ray", metavar="local|auto|ADDRESS", help="Start Ray on this machine, or join a cluster that runs."),
]
Clock = Annotated[ClockName, typer.Option("--clock", help="Whose time the engine follows.")]
Spares = Annotated[int, typer.Option("--spares", metavar="N", min=0, help="Actors kept warm for the first wake.")]
Dashboard = Annotated[bool, typer.Option("--dashboard/--no-dashboard", help="Serve Ray's dashboard with a local Ray.")]
Foreground = Annotated[bool, typer.Option("--foreground", help="Stay, and end the engine with Ctrl-C.")]


def up(
    ray: Ray = "local",
    clock: Clock = ClockName.real,
    spares: Spares = 0,
    dashboard: Dashboard = True,
    foreground: Foreground = False,
    json: Json = False,
) -> None:
    """Start the engine: its store, Ray, the holders and the supervisor."""

    def body(output: Output) -> int:
        settings = dataclasses.replace(engine_settings(), spares=spares)
        if (found := _alive(settings)) is not None and found.pid != os.getpid():
            output.note(f"engine '{found.engine_id}' is up already")
            return _tell(output, settings)
        if ray != "local":
            _open(ray, clock, settings).close()
            return _tell_when_up(output, settings)
        if foreground:
            return _keep(output, clock, settings, dashboard)
        _start_keeper(output, clock, spares, dashboard)
        return _tell_when_up(output, settings)

    finish(json, body)


def status(json: Json = False) -> None:
    """Say whether the engine is up, and where. Exit code 0: it is; 5: it is not."""
    finish(json, lambda output: _tell(output, engine_settings()))


def down(json: Json = False) -> None:
    """End the engine and its store. Nothing that was accepted is lost."""

    def body(output: Output) -> int:
        from gobpm_ray.store.embedded import EmbeddedStore

        running = read_running()
        stopped = False
        if running is not None and running.pid:
            stopped = _end_keeper(running)
        elif running is not None:
            stopped = _leave_cluster(running)
        store = not os.environ.get("GOBPM_REDIS_URL") and EmbeddedStore(home()).stop()
        said = "the engine is down" if stopped or store else "nothing was up"
        output.row({"engine": stopped, "store": store}, lambda: said)
        return OK

    finish(json, body)


# --- the process that keeps a local Ray


def _keep(output: Output, clock: ClockName, settings: Settings, dashboard: bool) -> int:
    """Open the engine and stay until somebody asks for its end."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    engine = _open("local", clock, settings, dashboard)
    try:
        _tell_when_up(output, settings)
        while not ended.wait(1.0):
            pass
        output.note("ending")
    finally:
        engine.close()
        forget_running(os.getpid())
    return OK


def _open(ray: str, clock: ClockName, settings: Settings, dashboard: bool = False) -> Engine:
    """The engine, opened, and the file of the home that tells of it. Its store is not this process's to stop."""
    from gobpm_ray.engine.engine import Engine
    from gobpm_ray.engine.opening import open_store

    opened = open_store(None, settings)
    opened.store.close()
    try:
        engine = Engine.open(
            "embedded",
            ray=ray,
            clock="virtual" if clock is ClockName.virtual else "real",
            settings=settings,
            dashboard=dashboard,
        )
    except BaseException:
        if opened.started and opened.embedded is not None:
            opened.embedded.stop()
        raise
    running = Running(
        pid=os.getpid() if ray == "local" else 0,
        engine_id=settings.engine_id,
        # Who came as a Ray client may not reach what the cluster's own nodes do: `down` goes the same way.
        ray_address=ray if ray.startswith("ray://") else engine.ray_address,
        dashboard=engine.dashboard_url,
        started_ms=time.time_ns() // 1_000_000,
        clock=clock.value,
        ready=True,
    )
    write_running(running)
    return engine


def _start_keeper(output: Output, clock: ClockName, spares: int, dashboard: bool) -> None:
    """The keeper works and has said so in the home, or RayUnavailable with what it said last."""
    folder = home()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "gobpm_ray.cli.main", "up", "--foreground", "--json"]
    command.append("--dashboard" if dashboard else "--no-dashboard")
    with (folder / LOG).open("wb") as log:
        keeper = subprocess.Popen(
            [*command, "--clock", clock.value, "--spares", str(spares)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    if sys.stderr.isatty():
        output.note("starting the engine")
    until = time.monotonic() + START_WITHIN_S
    while time.monotonic() < until:
        running = read_running()
        if running is not None and running.pid == keeper.pid and running.ready:
            return
        if keeper.poll() is not None:
            raise RayUnavailable(f"the engine did not start: {_last_words(folder / LOG)}")
        time.sleep(_LOOK_S)
    with contextlib.suppress(ProcessLookupError):
        keeper.terminate()
    raise RayUnavailable(f"the engine did not start within {START_WITHIN_S:g} s; see {folder / LOG}")


def _end_keeper(running: Running) -> bool:
    """The keeper has ended, and with it its Ray. False: it lived no more."""
    if not _is_keeper(running.pid):
        forget_running(running.pid)
        return False
    os.kill(running.pid, signal.SIGTERM)
    until = time.monotonic() + STOP_WITHIN_S
    while _is_keeper(running.pid):
        if time.monotonic() > until:
            raise EnvironmentFailure(f"process {running.pid} did not end within {STOP_WITHIN_S:g} s: {home() / LOG}")
        time.sleep(_LOOK_S)
    forget_running(running.pid)
    return True


def _leave_cluster(running: Running) -> bool:
    """The detached actors of an engine on somebody's cluster are gone."""
    from gobpm_ray.engine.on_ray import stop_on_cluster

    stop_on_cluster(running.ray_address or "auto", engine_settings())
    forget_running(running.pid)
    return True


def _is_keeper(pid: int) -> bool:
    """The process lives and is ours: a pid may have been given to somebody else since."""
    from gobpm_ray.store.os_process import command_line

    words = command_line(pid)
    return "gobpm_ray.cli" in words or "gobpm-ray" in words


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("error: ")]
    return (told or lines or ["it said nothing"])[-1].removeprefix("error: ")[:300]


# --- what is up


def _alive(settings: Settings) -> Running | None:
    """The engine of this home, if its keeper lives or, on a cluster, its supervisor does."""
    running = read_running()
    if running is None or running.engine_id != settings.engine_id:
        return None
    if running.pid:
        return running if _is_keeper(running.pid) else None
    return running if _supervisor(settings).get("alive") else None


def _supervisor(settings: Settings) -> dict[str, Any]:
    """What the store knows of the supervisor; a store that does not run is not started to be asked."""
    from actors.registry import read_heartbeat
    from gobpm_ray.engine.opening import open_store
    from gobpm_ray.store.embedded import EmbeddedStore

    if not os.environ.get("GOBPM_REDIS_URL") and not EmbeddedStore(home()).status().running:
        return {"alive": False}
    opened = open_store(None, settings)
    try:
        beat = read_heartbeat(opened.store)
    finally:
        opened.store.close()
    if beat is None:
        return {"alive": False}
    now = time.time_ns() // 1_000_000
    return {"alive": beat.fresh(now), "age_ms": now - beat.at_ms, "node": beat.node, "trouble": beat.trouble or None}


def _tell_when_up(output: Output, settings: Settings) -> int:
    """As `_tell`, once the supervisor has said that it lives: it was asked a moment ago, and speaks each second."""
    until = time.monotonic() + HEARTBEAT_WITHIN_S
    while not _supervisor(settings)["alive"] and time.monotonic() < until:
        time.sleep(_LOOK_S)
    return _tell(output, settings)


def _tell(output: Output, settings: Settings) -> int:
    """One row about the engine; exit code 5 when it is not up."""
    from gobpm_ray.engine.views import moment_text
    from gobpm_ray.store.connection import mask
    from gobpm_ray.store.embedded import EmbeddedStore

    running, supervisor = read_running(), _supervisor(settings)
    url = os.environ.get("GOBPM_REDIS_URL", "")
    store: dict[str, Any] = {"url": mask(url)}
    if not url:
        found = EmbeddedStore(home()).status()
        store = {"url": f"unix://{found.socket}", "running": found.running, "pid": found.pid, "version": found.version}
    alive = bool(supervisor["alive"])
    row = {
        "up": alive,
        "engine_id": settings.engine_id,
        "home": str(home()),
        "pid": running.pid if running else None,
        "store": store,
        "ray": running.ray_address if running and alive else None,
        "dashboard": running.dashboard if running and alive else None,
        "clock": running.clock if running else None,
        "started": moment_text(running.started_ms) if running and alive else None,
        "supervisor": supervisor,
    }
    output.row(row)
    if not output.json:
        from gobpm_ray.cli.render import show_fields

        shown = {"engine": f"{settings.engine_id} is {'up' if alive else 'down'}", "home": row["home"]}
        shown |= {"store": store["url"] if store.get("running", True) else f"{store['url']} (down)"}
        shown |= {name: row[name] for name in ("ray", "dashboard", "clock", "started") if row[name]}
        show_fields(shown)
    return OK if alive else ENVIRONMENT
