"""DBOS doing what a wake does: durable workflows that wait for a message each, woken one after the other.

Optional and slow: `pip install -e '.[bench]'`. A waiting DBOS workflow is a thread, so few wait at once.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import Result


def measure(waiting: int) -> Result:
    """Starts and wakes a second, on SQLite. ImportError without the package."""
    from importlib.metadata import version

    from dbos import DBOS, SetWorkflowID

    with tempfile.TemporaryDirectory(prefix="gobpm-bench-") as folder:
        config: Any = {
            "name": "bench",
            "system_database_url": f"sqlite:///{Path(folder) / 'dbos.sqlite'}",
            "log_level": "ERROR",
            "run_admin_server": False,
        }
        DBOS(config=config)

        @DBOS.workflow()
        def wait(_customer: str, amount: int, _region: str) -> int:
            DBOS.recv("go", timeout_seconds=600)
            return amount

        DBOS.launch()
        try:
            begin = time.perf_counter()
            handles = []
            for number in range(waiting):
                with SetWorkflowID(f"w{number}"):
                    handles.append(DBOS.start_workflow(wait, "C-1001", 125, "north"))
            started = time.perf_counter()
            time.sleep(1.0)
            woken = time.perf_counter()
            for number in range(waiting):
                DBOS.send(f"w{number}", "go", "go")
            for handle in handles:
                handle.get_result()
            ended = time.perf_counter()
        finally:
            DBOS.destroy()
    return {
        "version": version("dbos"),
        "store": "SQLite",
        "waiting": waiting,
        "starts_per_s": round(waiting / (started - begin), 1),
        "wakes_per_s": round(waiting / (ended - woken), 1),
    }
