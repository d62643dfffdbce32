"""A whole engine without Ray on a real store: its front door, its holders and a host, each moved when the test says
so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from gobpm_ray.engine.operations import Operations
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.callables import Callables, Work
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.store.redis_store import RedisStore
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder


class PlainEngine:
    def __init__(self, store: RedisStore, callables: Mapping[str, Work] | None = None) -> None:
        self.store = store
        self.operations = Operations(store, store.settings)
        self.callables = Callables(lambda topic: store.get_value("code", topic), local=callables)
        self.messages = MessageHolder(store, store.settings)
        self.timers = TimerHolder(store, store.settings)
        self.tasks = TaskHolder(store, store.settings)
        self.host = self.new_host("actor")
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def new_host(self, actor: str) -> Host:
        return Host(self.store, self.store.settings, Programs(self.store), self.callables, actor)

    def fold(self) -> bool:
        return any(holder.pass_once().moved for holder in (self.messages, self.timers, self.tasks))

    def turn(self) -> None:
        """Until nothing moves."""
        while self.fold() or self.host.serve_once():
            pass

    def work_beside(self, hosts: int = 1) -> None:
        """Holders and hosts work in threads of their own from here on."""
        for holder in (self.messages, self.timers, self.tasks):
            self._threads.append(threading.Thread(target=holder.run, args=(self._stop,), daemon=True))
        for number in range(hosts):
            self._threads.append(threading.Thread(target=self._serve, args=(f"beside{number}",), daemon=True))
        for thread in self._threads:
            thread.start()

    def _serve(self, actor: str) -> None:
        host = self.new_host(actor)
        while not self._stop.is_set():
            host.serve_once(0.05)
        host.close()

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(10)
        self.host.close()


def models() -> list[ProcessBuilder]:
    """Processes that together wait in every way: a task with a boundary, message, signal, timer, incident, gateway."""
    approval = ProcessBuilder("approval")
    approval.start().user_task("approve", assignee="=who").end("approved")
    approval.boundary("approve", "late", timer="P1D").end("escalated")
    letter = ProcessBuilder("letter")
    letter.start("arrives", message="Letter").catch("reply", message="Reply", key="=k").end()
    alarm = ProcessBuilder("alarm")
    alarm.start().catch("hear", signal="Alarm").end()
    wait = ProcessBuilder("wait")
    wait.start().catch("nap", timer="PT1H").end()
    failing = ProcessBuilder("failing")
    failing.start().script_task("bad", "=[{rule: function(x) x}]", result="x").end()
    race = ProcessBuilder("race")
    race.start().event_gateway("either").catch("answer", message="Answer", key="=k").end()
    race.at("either").catch("timeout", timer="PT2H").end()
    return [approval, letter, alarm, wait, failing, race]


def until(true: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for a condition; the test fails after `seconds`."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
