"""One engine's worth of plain parts on a memory store, with both clocks in the test's hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from gobpm_ray.checkpoint import rows
from gobpm_ray.checkpoint.parts import decode
from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.core.program import compile_process
from gobpm_ray.core.starts import start_arms
from gobpm_ray.core.state import InstanceState
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.document import to_json
from gobpm_ray.model.elements import Process
from gobpm_ray.runtime.callables import Callables, Work
from gobpm_ray.runtime.commits import arm_row
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.memory import MemoryStore
from gobpm_ray.runtime.ports import ArmRow, InstanceRecord, Quiet
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import Settings
from holders.message import MessageHolder
from holders.task import TaskHolder
from holders.timer import TimerHolder

BEGIN = 1_767_225_600_000
"""2026-01-01T00:00:00Z"""
HOUR = 3_600_000
DAY = 24 * HOUR


class Desk:
    """`store_class` may be a memory store that fails on purpose."""

    def __init__(
        self,
        callables: Mapping[str, Work] | None = None,
        store_class: type[MemoryStore] = MemoryStore,
        **settings: Any,
    ) -> None:
        self.settings = Settings(**settings)
        self.live_ms = 1_800_000_000_000
        self.store = store_class(self.settings, lambda: self.live_ms)
        self.store.manual_clock(BEGIN)
        self.callables = Callables(lambda topic: self.store.get_value("code", topic), local=callables)
        self.host = self.new_host("a1")
        self.timers = TimerHolder(self.store, self.settings, live_ms=lambda: self.live_ms)
        self.messages = MessageHolder(self.store, self.settings, live_ms=lambda: self.live_ms)
        self.tasks = TaskHolder(self.store, self.settings, live_ms=lambda: self.live_ms)
        self._ids = 0

    def new_host(self, actor: str) -> Host:
        return Host(self.store, self.settings, Programs(self.store), self.callables, actor, sleep=lambda _s: None)

    def close(self) -> None:
        self.host.close()

    # --- what a caller does

    def deploy(self, builder: ProcessBuilder) -> int:
        return self.deploy_process(builder.build())

    def deploy_process(self, process: Process) -> int:
        starts = []
        for arm, armed in start_arms(compile_process(process), self.store.now()):
            row = arm_row(arm)
            if arm.kind == "timer":
                data = rows.start_timer_row(armed.cycle, armed.anchor, armed.index)
                row = ArmRow(row.wait, row.kind, row.node, row.key, row.deadline, row=data)
            starts.append(row)
        return self.store.deploy(process.id, b"json\n" + to_json(process), starts)[0]

    def start(self, process_id: str = "p", instance_id: str = "i", **variables: object) -> str:
        self.store.start(process_id, 0, instance_id, f"start-{instance_id}", "", rows.payload(variables))
        return instance_id

    def publish(self, name: str, key: object = None, ttl: int = DAY, **values: object) -> None:
        self.store.publish(self._id(), "message", message_key(name, key), name, rows.payload(values), ttl)

    def signal(self, name: str, **values: object) -> None:
        self.store.publish(self._id(), "signal", signal_key(name), name, rows.payload(values), 0)

    def complete(self, node: str, **outputs: object) -> None:
        task = next(t for t in self.store.tasks() if rows.read_task_row(t.row).node == node)
        self.store.complete_task(task.id, "", (), outputs, self._id(), rows.payload(outputs))

    def _id(self) -> str:
        self._ids += 1
        return f"d{self._ids}"

    # --- time

    def fold(self) -> bool:
        """The holders' turn."""
        passes = [holder.pass_once() for holder in (self.messages, self.timers, self.tasks)]
        return any(outcome.moved for outcome in passes)

    def turn(self) -> Quiet:
        """Until nothing moves."""
        while self.fold() or self.host.serve_once():
            pass
        return self.store.quiet()

    def advance(self, ms: int) -> None:
        """As the engine's `advance`: from deadline to deadline, each at its own time."""
        target = self.store.now() + ms
        while (following := self.turn().next_deadline) is not None and following <= target:
            self.store.set_clock(following)
        self.store.set_clock(target)
        self.turn()

    # --- what can be seen

    def record(self, instance_id: str = "i") -> InstanceRecord:
        record = self.store.instance(instance_id)
        assert record is not None
        return record

    def state(self, instance_id: str = "i") -> InstanceState:
        record = self.record(instance_id)
        return decode(instance_id, record.process_id, record.process_version, record.business_key, record.parts, True)

    def variables(self, instance_id: str = "i") -> dict[str, object]:
        return self.state(instance_id).scopes["0"].variables

    def history(self, instance_id: str = "i", event: str = "node") -> list[str]:
        entries = map(rows.read_history_entry, self.record(instance_id).history)
        return [entry.node or entry.detail for entry in entries if entry.event == event]

    def status(self, instance_id: str = "i") -> str:
        return self.record(instance_id).status

    def facts(self, name: str = "") -> list[dict[str, Any]]:
        found = [json.loads(fact) for _, fact in self.store.facts()]
        return [fact for fact in found if name in ("", fact["fact"])]

    def counts(self) -> Counter[str]:
        return Counter(fact["fact"] for fact in self.facts())

    def waiting(self, instance_id: str = "i") -> list[tuple[str, str]]:
        """(kind, node) of every armed wait, as the store holds it."""
        return sorted((row[0], row[1]) for row in self.record(instance_id).waits.values())
