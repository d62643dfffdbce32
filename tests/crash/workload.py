"""Processes and client calls for random histories, and the ledger of what was accepted.

Every delivery carries its own id as `mid`, and whatever takes one appends it to the variable `log` of its instance: so
the end of a history tells which delivery had its effect, where, in what order, and how often.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from gobpm_ray.checkpoint import rows
from gobpm_ray.core.keys import message_key, signal_key
from gobpm_ray.errors import EnvironmentFailure, InputError
from gobpm_ray.model.builder import ProcessBuilder, every
from gobpm_ray.runtime.first_leg import FirstLegs
from gobpm_ray.runtime.ports import StartRow, Store

DAY = 86_400_000
LOGGED = {"log": "=append(log, mid)"}
STRICT = ("S0", "S1", "S2")
"""Keys of one collector each (`strict_instance`), which nobody cancels: there, no message is ever overtaken, and order
must hold. Elsewhere a message that its instance did not live to read goes to the next one, behind its own."""
STRICT_ELSE = "A"
"""The key of what is started in bulk, where a collector of its own has the one that was wished."""
TAKES = {
    "collector": ("item",),
    "guarded": ("check", "nudge", "abort"),
    "race": ("go", "alarm"),
    "split": ("mine",),
    "sub": ("stop",),
}
"""Nodes that append to the log, by process: as many completions as entries."""
ONCE = {
    "collector": ("s", "e"),
    "guarded": ("s", "check", "late", "abort", "escalate", "e", "e2", "e4"),
    "race": ("s", "g", "go", "alarm", "pause", "note", "e"),
    "split": ("s", "fork", "mine", "sleep", "charge", "join", "e"),
    "sub": ("s", "is", "inner", "ie", "body", "stop", "e", "e2"),
    "thrower": ("s", "tell", "shout", "e"),
    "starter": ("s", "fill", "e"),
    "ticker": ("s", "tick", "e"),
}
"""Nodes that an instance completes at most once."""
TOPICS = ("escalate", "note", "charge", "fill")


def processes(short: str = "PT20S", middle: str = "PT15M", long: str = "PT30M") -> list[ProcessBuilder]:
    """One of each kind of wait and of each race between waits."""
    collector = ProcessBuilder("collector")
    again = collector.start("s").exclusive("again")
    enough = again.catch("item", message="Item", key="=ref", outputs=LOGGED | {"fin": "=fin"}).exclusive("enough")
    enough.when("fin").end("e")
    enough.otherwise().to("again")

    guarded = ProcessBuilder("guarded")
    guarded.start("s").user_task("check", outputs=LOGGED).end("e")
    guarded.boundary("check", "late", timer=long).service_task("escalate", topic="escalate", idempotent=True).end("e2")
    guarded.boundary("check", "nudge", message="Nudge", key="=ref", interrupting=False, outputs=LOGGED).end("e3")
    guarded.boundary("check", "abort", signal="Abort", outputs=LOGGED).end("e4")

    race = ProcessBuilder("race")
    gateway = race.start("s").event_gateway("g")
    gateway.catch("go", message="Go", key="=ref", outputs=LOGGED).to("merge")
    gateway.catch("alarm", signal="Alarm", outputs=LOGGED).to("merge")
    gateway.catch("pause", timer=short).to("merge")
    race.first.exclusive("merge").service_task("note", topic="note", idempotent=True).end("e")

    split = ProcessBuilder("split")
    fork = split.start("s").parallel("fork")
    fork.user_task("mine", outputs=LOGGED).to("join")
    fork.catch("sleep", timer=middle).to("join")
    fork.service_task("charge", topic="charge").to("join")
    split.first.parallel("join").end("e")

    sub = ProcessBuilder("sub")
    body = sub.start("s").sub_process("body")
    with body as inside:
        inside.start("is").user_task("inner", outputs={"seen": "=mid"}).end("ie")
    body.end("e")
    sub.boundary("body", "stop", message="Stop", key="=ref", outputs=LOGGED).end("e2")
    sub.boundary("body", "again", timer=every(f"R3/{middle}"), interrupting=False).end("e5")

    thrower = ProcessBuilder("thrower")
    thrower.start("s").throw("tell", message="Item", key="=ref", inputs={"mid": "=mid", "fin": "=false"}).throw(
        "shout", signal="Alarm", inputs={"mid": "=mid"}
    ).end("e")

    starter = ProcessBuilder("starter")
    starter.start("s", message="Order").service_task("fill", topic="fill").end("e")

    ticker = ProcessBuilder("ticker")
    ticker.start("s", timer=every(f"R4/{long}")).task("tick").end("e")
    return [collector, guarded, race, split, sub, thrower, starter, ticker]


@dataclass
class Delivery:
    """One call of a client, as the client knows it."""

    id: str
    kind: str
    """message | signal | task | start | cancel | set | retry | resolve"""
    name: str = ""
    key: str = ""
    instance: str = ""
    wait: str = ""
    state: str = "unknown"
    """unknown: the client got no answer and gave up; accepted; refused."""
    seq: int = 0
    listeners: frozenset[tuple[str, str]] = frozenset()
    """Signals: (instance, wait) that were armed at its acceptance, where somebody could see that."""


def strict_instance(key: str) -> str:
    return f"strict-{key}"


@dataclass
class Ledger:
    author: str = ""
    """Begins the ids of its deliveries: each client has a ledger of its own."""
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    """In order of the first sending."""

    def new(self, kind: str, **fields: Any) -> Delivery:
        delivery = Delivery(f"{self.author}{kind[0]}{len(self.deliveries) + 1}", kind, **fields)
        self.deliveries[delivery.id] = delivery
        return delivery


@dataclass(frozen=True)
class Op:
    """A client's wish; `pick` chooses among what is there when it is carried out."""

    kind: str
    pick: int = 0
    name: str = ""
    key: str = ""
    fin: bool = False


class Client:
    """Carries out wishes: each call is repeated with its id while the store gives no answer, as real clients do."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        *,
        tries: int = 5,
        rest: Callable[[], None] = lambda: None,
        first_legs: FirstLegs | None = None,
    ) -> None:
        """`first_legs`: through them it starts in bulk."""
        self._store = store
        self._ledger = ledger
        self._tries = tries
        self._rest = rest
        self._first_legs = first_legs

    def carry_out(self, op: Op) -> None:
        with contextlib.suppress(EnvironmentFailure):
            getattr(self, f"_{op.kind}")(op)

    def _send(self, delivery: Delivery, call: Callable[[], Any]) -> None:
        for attempt in range(self._tries):
            try:
                answer = call()
            except EnvironmentFailure:
                if attempt + 1 == self._tries:
                    raise
                self._rest()
            except InputError:
                delivery.state = "refused"
                return
            else:
                delivery.state = "accepted"
                delivery.seq = delivery.seq or getattr(answer, "seq", 0)
                if not delivery.instance:
                    delivery.instance = getattr(answer, "instance_id", "")
                return

    def _start(self, op: Op) -> None:
        name = "collector" if op.key in STRICT else op.name
        delivery = self._ledger.new("start", name=name, key=op.key)
        instance = strict_instance(op.key) if op.key in STRICT else f"i{delivery.id}"
        values = {"ref": op.key, "log": [], "mid": delivery.id}
        data = rows.payload(values)
        self._send(delivery, lambda: self._store.start(name, 0, instance, delivery.id, "", data))

    def _bulk(self, op: Op) -> None:
        """Three at once: whoever waits after its first leg is born parked."""
        assert self._first_legs is not None
        key = STRICT_ELSE if op.key in STRICT else op.key
        several = [self._ledger.new("start", name=op.name, key=key) for _ in range(3)]
        starts: list[StartRow] = []
        for delivery in several:
            data = rows.payload({"ref": key, "log": [], "mid": delivery.id})
            starts.append((op.name, 0, f"i{delivery.id}", delivery.id, "", data))
        for attempt in range(self._tries):
            try:
                answers = self._first_legs.start_many(starts)
            except EnvironmentFailure:
                if attempt + 1 == self._tries:
                    raise
                self._rest()
            else:
                for delivery, answer in zip(several, answers, strict=True):
                    delivery.state, delivery.instance = "accepted", answer.instance_id
                    delivery.seq = delivery.seq or answer.seq
                return

    def _message(self, op: Op) -> None:
        key = message_key(op.name, None if op.name == "Order" else op.key)
        delivery = self._ledger.new("message", name=op.name, key=key)
        data = rows.payload({"mid": delivery.id, "fin": op.fin})
        self._send(delivery, lambda: self._store.publish(delivery.id, "message", key, op.name, data, DAY))

    def _signal(self, op: Op) -> None:
        delivery = self._ledger.new("signal", name=op.name, key=signal_key(op.name))
        data = rows.payload({"mid": delivery.id})
        self._send(delivery, lambda: self._store.publish(delivery.id, "signal", delivery.key, op.name, data, 0))

    def _repeat(self, op: Op) -> None:
        """A client that did not see its answer, long after: the same id and content once more."""
        known = [d for d in self._ledger.deliveries.values() if d.kind == "message" and d.state == "accepted"]
        if known:
            delivery = known[op.pick % len(known)]
            data = rows.payload({"mid": delivery.id, "fin": False})
            self._store.publish(delivery.id, "message", delivery.key, delivery.name, data, DAY)

    def _complete(self, op: Op) -> None:
        tasks = self._store.tasks()
        if tasks:
            task = tasks[op.pick % len(tasks)]
            delivery = self._ledger.new("task", instance=task.instance_id, wait=task.wait)
            data = rows.payload({"mid": delivery.id})
            self._send(delivery, lambda: self._store.complete_task(task.id, "", (), ("mid",), delivery.id, data))

    def _cancel(self, op: Op) -> None:
        self._act("cancel", op, spared=[strict_instance(key) for key in STRICT])

    def _set(self, op: Op) -> None:
        self._act("set", op)

    def _act(self, kind: str, op: Op, spared: Collection[str] = ()) -> None:
        instances = [instance for _, instance in self._store.instances(ended=False) if instance not in spared]
        if instances:
            instance = instances[op.pick % len(instances)]
            delivery = self._ledger.new(kind, instance=instance)
            data = rows.payload({"touched": delivery.id} if kind == "set" else {})
            self._send(delivery, lambda: self._store.deliver(instance, kind, "", delivery.id, data))

    def _hold(self, op: Op) -> None:
        instances = self._store.instances(ended=False)
        if instances:
            with contextlib.suppress(InputError):
                self._store.suspend(instances[op.pick % len(instances)][1], op.fin)

    def _resume_all(self, op: Op) -> None:
        """What an operator does at last about everything that is held."""
        for _, instance in self._store.instances(ended=False):
            if self._store.status(instance) == "suspended":
                with contextlib.suppress(InputError):
                    self._store.suspend(instance, False)

    def _heal(self, op: Op) -> None:
        """Every open incident of one instance is retried or resolved."""
        instances = self._store.instances(ended=False)
        for _, instance in instances[op.pick % len(instances) :][:3] if instances else ():
            record = self._store.instance(instance)
            for wait, row in (record.waits if record else {}).items():
                if row[0] == "incident":
                    delivery = self._ledger.new("retry" if op.fin else "resolve", instance=instance, wait=wait)
                    self._send(
                        delivery,
                        lambda d=delivery, w=wait, i=instance: self._store.deliver(i, d.kind, w, d.id, b"{}"),  # type: ignore[misc]
                    )
