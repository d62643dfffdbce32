"""Every crash point on the real store with fsync: an os_process SIGKILLs itself there, another takes over."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gobpm_ray.runtime import crashpoints
from gobpm_ray.store.embedded import EmbeddedStore

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_whoever_kills_itself_at_a_point_is_followed_by_one_who_ends_alike() -> None:
    """Promise 1, N9: SIGKILL at each named point, then a successor that knows the store alone; the points of threads
    that renew leases and of recovery itself included."""
    folder = Path(tempfile.mkdtemp(prefix="gobpm-"))
    store = EmbeddedStore(folder)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.crash.killed", "--url", store.ensure_running()],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        store.stop()
        shutil.rmtree(folder)
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]

    assert {report["point"] for report in reports} == set(crashpoints.POINTS)
    assert [report for report in reports if not report["killed"]] == [], done.stderr
    assert [report for report in reports if not report["same"]] == [], done.stderr
