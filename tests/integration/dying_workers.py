"""`python -m tests.integration.dying_workers STORE_URL ENGINE_ID FOLDER TOPIC...`: for each topic a worker that dies.

A topic begins with the crash point at which its worker kills itself with SIGKILL; `inside` dies in its function. When
all of them are dead one more worker does what they left, until it is told to stop. Every life is a fork of this
process, which holds no connection and no thread until then. What the functions did stands in a file, one line a call.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import tests.crash.switch
from gobpm_ray import Settings, Worker
from gobpm_ray.runtime import crashpoints
from gobpm_ray.work.handlers import Handler

LOCK = "PT1S"
INSIDE = "inside"

assert tests.crash.switch.ARMED_BY_TESTS


def noting(folder: Path, *, dies: bool) -> Any:
    def work(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        line = {
            "node": context.job.topic,
            "key": context.idempotency_key,
            "attempt": context.attempt,
            "pid": os.getpid(),
        }
        with (folder / "calls").open("a") as file:
            file.write(json.dumps(line) + "\n")
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"done_by": "the dying" if dies else "a worker"}

    return work


def dies_at(point: str) -> crashpoints.Hook:
    def hook(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def live_and_die(url: str, settings: Settings, folder: Path, topic: str) -> None:
    point = topic.partition(" ")[0]
    crashpoints.arm(dies_at(point))
    handler = Handler(topic, noting(folder, dies=point == INSIDE), lock=LOCK)
    Worker(url, handler, name=f"dying {point}", settings=settings).run()


def main(url: str, engine_id: str, folder: Path, topics: list[str]) -> None:
    settings = Settings(engine_id=engine_id)
    lives: dict[int, str] = {}
    for topic in topics:
        pid = os.fork()
        if pid == 0:
            try:
                live_and_die(url, settings, folder, topic)
            finally:
                os._exit(1)
        lives[pid] = topic
    for pid, topic in lives.items():
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"the worker of {topic!r} did not die: {status}")
    (folder / "all died").touch()
    handlers = [Handler(topic, noting(folder, dies=False), lock=LOCK) for topic in topics]
    Worker(url, *handlers, name="steady", settings=settings).run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
