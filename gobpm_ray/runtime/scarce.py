"""Work that waits for what no node of the cluster has: noticed soon, and given up when patience is at its end.

A scheduler keeps such work waiting without a word, for a node that has it may still come (an autoscaler adds one). It
knows amounts by name, and a clock; it refuses to know who schedules, and what becomes of work that is given up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

log = logging.getLogger("gobpm_ray.runtime")

FIRST_LOOK_S = 1.0
LONGEST_PAUSE_S = 30.0
"""Between two looks for work that some node can do: it waits for its turn, or runs."""
_SLACK = 1e-6

Amounts = Mapping[str, float]
Nodes = Callable[[], Sequence[Amounts]]
"""What each living node has in all, busy or not."""
Lacking = Callable[[str], None]
"""Told what is missing; '' when it is there again."""


def wanted(options: Mapping[str, Any]) -> dict[str, float]:
    """What the options of a Ray task ask one node for, by the names that nodes have for it."""
    asked = {"CPU": float(options.get("num_cpus", 1)), "GPU": float(options.get("num_gpus", 0))}
    asked["memory"] = float(options.get("memory", 0))
    asked |= {name: float(amount) for name, amount in options.get("resources", {}).items()}
    if "accelerator_type" in options:
        asked[f"accelerator_type:{options['accelerator_type']}"] = 0.001
    return {name: amount for name, amount in asked.items() if amount > 0}


def missing(asked: Amounts, nodes: Sequence[Amounts]) -> str:
    """What no node has, for people: `far 1 (of 0)`; '' when one node has all of it."""
    if any(all(node.get(name, 0) + _SLACK >= amount for name, amount in asked.items()) for node in nodes):
        return ""
    most = {name: max((node.get(name, 0) for node in nodes), default=0) for name in asked}
    short = [name for name, amount in asked.items() if most[name] + _SLACK < amount]
    said = ", ".join(f"{name} {asked[name]:.15g} (the most that a node has: {most[name]:.15g})" for name in short)
    return said or " and ".join(f"{name} {amount:.15g}" for name, amount in asked.items()) + " together on one node"


@dataclass(slots=True, eq=False)
class _Watched:
    asked: Amounts
    lacking: Lacking
    give_up: Lacking
    look_at: float
    pause: float = FIRST_LOOK_S
    since: float | None = None
    """It has been lacking something since then."""
    over: bool = field(default=False)


class Scarcity:
    """Watches work that has been handed to a scheduler, in one thread that lives while there is any."""

    def __init__(
        self, nodes: Nodes, patience_s: float, *, monotonic: Callable[[], float] = time.monotonic, threaded: bool = True
    ) -> None:
        self._nodes = nodes
        self._patience_s = patience_s
        self._monotonic = monotonic
        self._threaded = threaded
        self._watched: list[_Watched] = []
        self._changed = threading.Condition()
        self._running = False

    def watch(self, asked: Amounts, lacking: Lacking, give_up: Lacking) -> Callable[[], None]:
        """`lacking` is told what is missing, and '' when it has come; `give_up`, once, when it was missing for too
        long. The answer ends the watch."""
        one = _Watched(asked, lacking, give_up, self._monotonic() + FIRST_LOOK_S)
        with self._changed:
            self._watched.append(one)
            if self._threaded and not self._running:
                self._running = True
                threading.Thread(target=self._serve, name="gobpm-scarce", daemon=True).start()

        def forget() -> None:
            with self._changed:
                one.over = True
                if one in self._watched:
                    self._watched.remove(one)
                self._changed.notify_all()

        return forget

    def look(self) -> float:
        """Everything whose time has come is looked at once; how long until the next."""
        now = self._monotonic()
        with self._changed:
            due = [one for one in self._watched if one.look_at <= now]
        if due:
            try:
                nodes = self._nodes()
            except Exception as failure:
                log.debug("the cluster does not say what it has: %s", failure)
                nodes = None
            for one in due:
                self._judge(one, nodes, now)
        with self._changed:
            return max(0.0, min((one.look_at for one in self._watched), default=now) - now)

    def _judge(self, one: _Watched, nodes: Sequence[Amounts] | None, now: float) -> None:
        what = "" if nodes is None else missing(one.asked, nodes)
        if one.over:
            return
        if nodes is None or what:
            one.pause = FIRST_LOOK_S
        else:
            one.pause = min(2 * one.pause, LONGEST_PAUSE_S)
        one.look_at = now + one.pause
        if what and one.since is None:
            one.since = now
            one.lacking(what)
        elif not what and nodes is not None and one.since is not None:
            one.since = None
            one.lacking("")
        if what and one.since is not None and now - one.since >= self._patience_s:
            with self._changed:
                one.over = True
                self._watched.remove(one)
            one.give_up(what)

    def _serve(self) -> None:
        while True:
            pause = self.look()
            with self._changed:
                if not self._watched:
                    self._running = False
                    return
                self._changed.wait(min(max(pause, 0.01), LONGEST_PAUSE_S))
