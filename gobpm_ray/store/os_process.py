"""Processes that are not our children, as the operating system sees them: whether one lives, and what it runs.

This module knows pids; it refuses to know whose they are.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path


def is_alive(pid: int) -> bool:
    """False also for a zombie: where process 1 does not reap, the dead stay listed."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Path("/proc/self").exists() is False  # no /proc on this system: kill(0) is all there is to know
    return state.rpartition(")")[2].split()[0] != "Z"


def command_line(pid: int) -> str:
    """A living process's command line; empty if it is none of this user's business or does not live."""
    if not is_alive(pid):
        return ""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="surrogateescape")
    except OSError:
        asked = ["/bin/ps", "-p", str(pid), "-o", "command="]
        with contextlib.suppress(OSError):
            return subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        return ""


def send_signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
