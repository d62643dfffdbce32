"""The sudden end of a Ray cluster that this program started: what a recovery is tried with, on purpose.

It knows operating-system processes and who begot them. It ends nobody that is not this program's own descendant.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import ray

GCS = "gcs_server"


def kill_local_cluster() -> None:
    """SIGKILL for every Ray process that descends from this one, raylet and workers alike; the connection ends.

    Only Ray's table of names dies a moment later, with the connection: without it the driver would wait for seconds.
    """
    victims = [pid for pid in ray_processes(os.getpid()) if GCS not in _command_line(pid)]
    # All stand still before the first dies: a raylet that lives for a moment longer would restart who was killed.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    ray.shutdown()


def ray_processes(ancestor: int) -> list[int]:
    """The descendants of a process that belong to a Ray session, each before its own children."""
    parents = _parents()
    found = [ancestor]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return [pid for pid in found[1:] if _belongs_to_ray(pid, parents, ancestor)]


def _belongs_to_ray(pid: int, parents: dict[int, int], ancestor: int) -> bool:
    """It, or a process between it and the ancestor, was started as a part of Ray."""
    while pid not in (ancestor, 0):
        if any(mark in _command_line(pid) for mark in ("raylet", GCS, "ray/_private", "ray/dashboard", "ray::")):
            return True
        pid = parents.get(pid, 0)
    return False


def _parents() -> dict[int, int]:
    """The parent of every process."""
    if Path("/proc/self/stat").exists():
        return {
            pid: parent
            for path in Path("/proc").glob("[0-9]*")
            if (pid := int(path.name)) and (parent := _parent(path))
        }
    listed = subprocess.run(["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return {int(pid): int(parent) for pid, parent in (line.split() for line in listed.splitlines())}


def _parent(folder: Path) -> int:
    try:
        return int((folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        asked = ["/bin/ps", "-p", str(pid), "-o", "command="]
        with contextlib.suppress(OSError):
            return subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        return ""
