"""One scenario on an engine that runs on Ray with a manual clock, and what must be true when it is over.

A scene names its processes and conversations so that no two of an engine ever meet. It knows the engine's front door
and its store's keys; it never reaches into an actor.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gobpm_ray.engine.operations import Operations
from gobpm_ray.engine.views import Fact, InstanceView
from gobpm_ray.errors import InputError
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.store.redis_store import RedisStore
from tests.support.stores import redis_traces

HOUR = 3_600_000
DAY = 24 * HOUR

EMPTY = (
    *("ready", "leases", "idle", "due", "subs", "in", "pend", "progress", "parked", "parkx", "tasks", "owners"),
    *("topen", "incidents", "purge", "dead", "jobq", "joblocks", "jobwait", "jobs"),
)
"""Tables in which no scenario leaves anything."""

_numbers = itertools.count(1)


class Scene:
    """See the module's docstring."""

    def __init__(self, engine: Operations, client: Any) -> None:
        """`client`: of the engine's store, for looking at keys."""
        assert isinstance(engine.store, RedisStore)
        self.engine = engine
        self.store = engine.store
        self.client = client
        self.id = f"s{next(_numbers)}"
        self.unclean = False
        """Hosts are killed in it: an instance may be hydrated without having been dehydrated."""
        # What a failed scenario before this one left is its fault alone.
        self._before = self._sizes()
        self._earlier = {instance_id for _, instance_id in self.store.instances(limit=100_000)}
        self._after = self._newest_fact()
        self._triggered: list[str] = []

    # --- acting: each returns when the engine is quiet

    def process(self, name: str = "p") -> ProcessBuilder:
        return ProcessBuilder(f"{name}_{self.id}")

    def name(self, word: str) -> str:
        """A message, signal, key, topic or user that belongs to this scene alone."""
        return f"{word}-{self.id}"

    def deploy(self, builder: ProcessBuilder) -> str:
        """The process id. What starts it by itself is taken back when the scene ends."""
        (deployed,) = self.engine.deploy(builder)
        if not deployed.plain_start or deployed.starts:
            self._triggered.append(deployed.process_id)
        return deployed.process_id

    def begin(self, process: ProcessBuilder | str, **variables: object) -> str:
        """The id of a new instance, which has gone as far as it can by itself."""
        process_id = process if isinstance(process, str) else self.deploy(process)
        started = self.engine.start(process_id, variables)
        self.engine.wait_quiet()
        return started.instance_id

    def later(self, span: str) -> None:
        self.engine.advance(span)

    def publish(self, name: str, key: object = None, *, id: str | None = None, **payload: object) -> bool:
        """Whether it was a duplicate."""
        duplicate = self.engine.publish(name, key, payload, id=id).duplicate
        self.engine.wait_quiet()
        return duplicate

    def signal(self, name: str, **payload: object) -> None:
        self.engine.signal(name, payload)
        self.engine.wait_quiet()

    def complete(self, task: str, outputs: dict[str, object] | None = None, user: str = "") -> None:
        self.engine.complete(task, outputs, user)
        self.engine.wait_quiet()

    def call_off(self, *instances: str) -> None:
        """Cancel what a scenario leaves waiting on purpose."""
        for instance in instances:
            self.engine.cancel(instance)
        self.engine.wait_quiet()

    # --- seeing

    def see(self, instance: str) -> InstanceView:
        return self.engine.inspect(instance)

    def waits(self, instance: str) -> list[tuple[str, str]]:
        """(node, kind) of what is armed, sorted."""
        return sorted((wait.node, wait.kind) for wait in self.see(instance).waits)

    def of_process(self, process_id: str) -> list[InstanceView]:
        return self.engine.list_instances(process_id=process_id)

    def facts(self, instance: str) -> list[Fact]:
        return [fact for fact in self._facts() if fact.data["instance"] == instance]

    def cycles(self, instance: str) -> tuple[int, int]:
        """How often it was dehydrated, and hydrated."""
        counts = Counter(fact.fact for fact in self.facts(instance))
        return counts["Dehydrated"], counts["Hydrated"]

    def released(self, *instances: str) -> None:
        """They wait, no actor hosts one of them, and no lease is held (promise 7)."""
        for instance in instances:
            view = self.see(instance)
            assert (view.state, view.resident, view.moving) == ("waiting", False, False), view
        assert self.engine.top().resident == 0
        assert self.store.leases() == []

    def completed(self, instance: str, *trace: str) -> InstanceView:
        """It has come to its end, by these nodes if any are named."""
        view = self.see(instance)
        assert view.state == "completed", view
        if trace:
            assert view.trace == trace
        return view

    # --- the end

    def leaves_nothing(self) -> None:
        """D6, D14, promise 7: every instance has ended, no key but its record and history names it, nothing is armed,
        parked or leased, `verify` finds nothing, and each release and each wake was told once, in turn."""
        engine = self.engine
        left = engine.list_instances(ended=False)
        for process in self._triggered:
            plain = ProcessBuilder(process)
            plain.start().end()
            engine.deploy(plain)
        for view in left:
            # The next scenario shall not find them, whatever becomes of this one.
            with suppress(InputError):  # it has ended meanwhile, with its caller or of itself
                engine.suspend(view.instance_id)
                engine.cancel(view.instance_id)
                engine.resume(view.instance_id)
        engine.wait_quiet()
        assert left == [], "a scenario ends what it began"

        mine = [one for _, one in self.store.instances(limit=100_000) if one not in self._earlier]
        assert redis_traces(self.client, self.store.settings.engine_id, *mine) == []
        assert self._sizes() == self._before
        top = engine.top()
        assert (top.resident, top.ready, top.waiting, top.oldest_ready_ms) == (0, 0, 0, 0)
        assert set(top.pending.values()) <= {0}
        assert top.actors == top.free + top.spares
        assert engine.verify().differences == [], "every index says what the instances say (H12)"
        if not self.unclean:
            for instance in mine:
                self._told_in_turn(instance)

    def _told_in_turn(self, instance: str) -> None:
        turns = [fact for fact in self.facts(instance) if fact.fact not in ("Incident", "Overtaken")]
        names = [fact.fact for fact in turns]
        releases = (len(names) - 2) // 2
        assert names[:-1] == ["Started", *["Dehydrated", "Hydrated"] * releases], (instance, names)
        assert names[-1] in ("Completed", "Terminated"), (instance, names)
        for fact in turns:
            if fact.fact == "Dehydrated":
                assert fact.data["actors"] == 0
                assert fact.data["waits"] or fact.data.get("partial"), fact
            if fact.fact == "Hydrated":
                assert fact.data["trigger"] != "none", fact

    def _sizes(self) -> dict[str, int]:
        """Of those tables that are not empty; normally none."""
        return {name: size for name in EMPTY if (size := self._size(name))}

    def _size(self, name: str) -> int:
        key = self.store.keys[name]
        kind = self.client.type(key)
        sizes = {b"zset": self.client.zcard, b"hash": self.client.hlen, b"list": self.client.llen}
        return 0 if kind == b"none" else int(sizes[kind](key))

    def _facts(self) -> list[Fact]:
        found: list[Fact] = []
        after = self._after
        while page := self.engine.facts(after):
            found += page
            after = page[-1].id
        return found

    def _newest_fact(self) -> str:
        newest = self.client.xrevrange(self.store.keys["facts"], count=1)
        return newest[0][0].decode() if newest else "0"


def work_until(gate: Path, visits: Path | None = None):
    """Work that takes until the gate is there, and notes each visit; made inside a function, so that it travels by
    value."""
    name, log = str(gate), "" if visits is None else str(visits)

    def work(inputs):
        import os
        import time

        if log:
            with open(log, "a", encoding="ascii") as file:
                file.write("x")
        while not os.path.exists(name):
            time.sleep(0.01)
        return {"worked": True}

    return work


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """These os processes stand still (SIGSTOP) and go on afterwards, as after a long pause of their machine."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):  # it was killed where it stood
                os.kill(pid, signal.SIGCONT)


def log_of(pid: int) -> str:
    """What an actor's process has logged so far."""
    import ray

    node: Any = ray._private.worker._global_node
    folder = Path(node.get_logs_dir_path())
    (file,) = folder.glob(f"worker-*-{pid}.err")
    return file.read_text(errors="replace")
