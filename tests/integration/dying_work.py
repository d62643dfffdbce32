"""Work that notes each of its calls outside the engine, and kills the process it runs in where a test wants it.

Each function here makes one that travels by value: what it needs it imports where it runs. A note is one line in a
file, written before anything can die, so that it tells how often the outward effect happened whatever became of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Work = Callable[..., object]


@dataclass(frozen=True)
class Call:
    """One call of a callable, as it told it."""

    node: str
    key: str
    attempt: int
    pid: int
    item: object = None


def calls(log: Path) -> list[Call]:
    if not log.exists():
        return []
    return [Call(**json.loads(line)) for line in log.read_text().splitlines()]


def noting(
    log: Path, *, dies_at: object = None, dies: int = 0, seconds: float = 0.0, until: Path | None = None
) -> Work:
    """Notes its call, takes its time, and hands back which call it was. It kills its own process by SIGKILL in its
    first `dies` calls, of those whose input `item` is `dies_at` if that is given."""
    name, gate = str(log), "" if until is None else str(until)

    def work(inputs, context):
        import json
        import os
        import signal
        import time

        line = {"node": context.node, "key": context.idempotency_key, "attempt": context.attempt, "pid": os.getpid()}
        line["item"] = inputs.get("item")
        with open(name, "a", encoding="ascii") as file:
            file.write(json.dumps(line) + "\n")
        with open(name, encoding="ascii") as file:
            told = [json.loads(each) for each in file]
        mine = [each for each in told if each["node"] == context.node]
        if dies_at is not None:
            mine = [each for each in mine if each["item"] == dies_at] if line["item"] == dies_at else []
        if 0 < len(mine) <= dies:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(seconds)
        while gate and not os.path.exists(gate):
            time.sleep(0.01)
        return {f"by_{context.node}": len(mine)}

    return work


def arming(folder: Path, point: str, nth: int) -> Work:
    """Once and never again (the file says so): the process that it runs in shall die when it passes the crash point for
    the nth time from now on. In a file beside it is the number of the process that did die there."""
    name = str(folder)

    def arm(inputs):
        import os
        import signal

        armed = os.path.join(name, "armed")
        try:
            os.close(os.open(armed, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return {}
        import tests.crash.switch
        from gobpm_ray.runtime import crashpoints

        assert tests.crash.switch.ARMED_BY_TESTS
        passed = 0

        def hook(reached):
            nonlocal passed
            if reached != point:
                return
            passed += 1
            if passed == nth:
                with open(os.path.join(name, "died"), "w", encoding="ascii") as file:
                    file.write(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)

        crashpoints.arm(hook)
        return {}

    return arm


def died(folder: Path) -> bool:
    """The armed process has come to its point."""
    return (folder / "died").exists()
