"""A worker of the fleet, as a program: fetches jobs of one topic, does them slowly, and may be killed at any time."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from gobpm_ray import Settings, Worker
from gobpm_ray.work.handlers import Handler


def work(inputs: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.4)
    return {"double": 2 * inputs["number"], "by": os.getpid()}


if __name__ == "__main__":
    url, engine_id = sys.argv[1:]
    handler = Handler("fleet", work, concurrency=2, lock="PT4S")
    sys.exit(Worker(url, handler, settings=Settings(engine_id=engine_id), grace="PT5S").run())
