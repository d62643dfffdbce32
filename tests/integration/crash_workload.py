"""Thirty instances of three processes, and what must be true of them when everything around them was killed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gobpm_ray.engine.operations import Operations
from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.elements import Process

EACH = 10


def working() -> Process:
    builder = ProcessBuilder("working")
    builder.start("s").service_task("first", topic="note", idempotent=True).service_task(
        "second", topic="note", idempotent=True
    ).end("e")
    return builder.build()


def asking() -> Process:
    builder = ProcessBuilder("asking")
    builder.start("s").receive_task("answer", message="Answer", key="=ref").service_task(
        "third", topic="note", idempotent=True
    ).end("e")
    return builder.build()


def sleeping() -> Process:
    builder = ProcessBuilder("sleeping")
    builder.start("s").catch("nap", timer="PT4S").end("e")
    return builder.build()


TRACES = {
    "working": ("s", "first", "second", "e"),
    "asking": ("s", "answer", "third", "e"),
    "sleeping": ("s", "nap", "e"),
}


def noting(folder: str) -> Callable[..., object]:
    """Work that leaves one line a call in a file of its own key, and takes a third of a second."""

    def note(inputs, context):
        import os
        import time

        with open(os.path.join(folder, context.idempotency_key.replace(":", "+")), "a", encoding="ascii") as file:
            file.write("x")
        time.sleep(0.3)
        return {}

    return note


class Workload:
    def __init__(self, operations: Operations, folder: Path) -> None:
        self.operations = operations
        self.folder = folder
        self.refs = [f"R-{n}" for n in range(EACH)]
        self.instances: list[str] = []

    def begin(self) -> None:
        self.folder.mkdir()
        self.operations.register("note", noting(str(self.folder)))
        self.operations.deploy(working(), asking(), sleeping())
        for n, ref in enumerate(self.refs):
            for process in TRACES:
                self.instances.append(self.operations.start(process, {"ref": ref}, id=f"{process}-{n}").instance_id)

    def answer(self, refs: list[str]) -> None:
        """Each message with an id of its own, sent again until there is an answer."""
        for ref in refs:
            patiently(lambda ref=ref: self.operations.publish("Answer", key=ref, id=f"answer-{ref}"))  # type: ignore[misc]

    def finish(self, within_s: float = 60.0) -> None:
        """Every instance has completed, each node once, each effect once or, where its host died, twice; and every
        index is what the checkpoints say."""
        deadline = time.monotonic() + within_s
        for instance in self.instances:
            left = max(1.0, deadline - time.monotonic())
            view = patiently(lambda instance=instance, left=left: self.operations.wait(instance, timeout=left))  # type: ignore[misc]
            assert view.state == "completed", (instance, view)
            assert view.trace == TRACES[instance.partition("-")[0]], (instance, view.history)
        calls = Counter({path.name: len(path.read_text()) for path in self.folder.iterdir()})
        assert len(calls) == 3 * EACH, "each effect under its one key"
        assert max(calls.values()) <= 3, calls
        assert self.operations.verify().differences == []


def patiently(call: Callable[[], Any], within_s: float = 30.0) -> Any:
    """The answer of a store that may be away for a moment."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return call()
        except EnvironmentFailure:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
