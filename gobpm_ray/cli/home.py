"""What `up` leaves in the engine's home, so that every other command finds the same engine: one small file.

It knows names and a pid; it refuses to believe them: whether an engine works is told by its heartbeat in the store.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from gobpm_ray.settings import Settings

HOME_VARIABLE = "GOBPM_HOME"
ENGINE_VARIABLE = "GOBPM_ENGINE_ID"
FILE = "engine.json"
LOG = "engine.log"


@dataclass(frozen=True, slots=True)
class Running:
    """The engine that `up` started in this home."""

    pid: int
    """Of the process that keeps it: it ends, and so does the engine."""
    engine_id: str
    ray_address: str = ""
    dashboard: str = ""
    started_ms: int = 0
    clock: str = "real"
    ready: bool = False


def home() -> Path:
    return Path(os.environ.get(HOME_VARIABLE) or ".gobpm").expanduser().absolute()


def read_running(folder: Path | None = None) -> Running | None:
    """What the file says; None without one, or with one that nobody can read."""
    try:
        return Running(**json.loads(((folder or home()) / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_running(running: Running, folder: Path | None = None) -> None:
    """Replaced whole: a reader sees the old file or the new one."""
    path = (folder or home()) / FILE
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(asdict(running)))
    draft.replace(path)


def forget_running(pid: int, folder: Path | None = None) -> None:
    """The file of this very process is gone; another one's stays."""
    if (running := read_running(folder)) is not None and running.pid == pid:
        ((folder or home()) / FILE).unlink(missing_ok=True)


def engine_settings() -> Settings:
    """Settings under the id that GOBPM_ENGINE_ID names, else the home's engine's, else `main`."""
    named = os.environ.get(ENGINE_VARIABLE, "").strip()
    running = None if named else read_running()
    return Settings(engine_id=named or (running.engine_id if running else "main"))
