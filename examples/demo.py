"""The main job: three hundred document requests live through eight days on the real engine, in a minute.

A customer is asked for a document and reminded every day; whoever has not answered after a week is called by a
person. Time is the engine's
manual clock, everything else is real: the store, Ray, the actors. Run it with `make demo`; `--keep` leaves the engine
up to look at.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from gobpm_ray import Engine, Settings

PROCESS = Path(__file__).with_name("document_request.bpmn")
DAYS = 8
SLOTS = 4
"""Answers arrive at four hours of the day."""
NEVER = 0.2
"""The share of customers who do not answer."""


class Post:
    """The post office: one line in a spool file per letter, so that letters can be counted apart from the engine."""

    def __init__(self, spool: str) -> None:
        self.spool = spool

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        with open(self.spool, "a", encoding="utf-8") as letters:
            letters.write(f"{inputs['reference']}\n")
        return {}


@dataclass
class Tally:
    """What the driver has seen, day by day."""

    rows: list[tuple[str, ...]] = field(default_factory=list)
    answers: int = 0
    calls: int = 0


def screen(tally: Tally, total: int) -> Table:
    table = Table(title=f"{total} document requests", title_justify="left")
    for heading in ("day", "waiting", "actors", "answers", "letters sent", "calls to make", "ended", "took"):
        table.add_column(heading, justify="right")
    for row in tally.rows:
        table.add_row(*row)
    return table


def answer_slots(references: list[str], chance: random.Random) -> dict[int, list[str]]:
    """Slot of the week -> who answers in it; some answer never."""
    slots: dict[int, list[str]] = {}
    for reference in references:
        if chance.random() >= NEVER:
            slots.setdefault(chance.randrange(1, 7 * SLOTS), []).append(reference)
    return slots


def live_through(engine: Engine, total: int, spool: Path, seed: int, console: Console) -> tuple[Tally, list[str]]:
    """Start everybody, let eight days pass, let a person make the calls; (what was seen, instance ids)."""
    tally = Tally()
    references = [f"R-{number:04d}" for number in range(total)]
    answers = answer_slots(references, random.Random(seed))
    engine.deploy(PROCESS)
    with Live(screen(tally, total), console=console, refresh_per_second=4) as live:
        started = engine.start_many("document-request", [{"reference": reference} for reference in references])
        engine.wait_quiet()
        for day in range(DAYS):
            begin = time.perf_counter()
            for slot in range(day * SLOTS, (day + 1) * SLOTS):
                for reference in answers.get(slot, []):
                    engine.publish("document received", reference, {"answered": True})
                    tally.answers += 1
                engine.advance(f"PT{24 // SLOTS}H")
            calls = engine.tasks(node="call-customer")
            top = engine.top()
            ended = len([name for name in started if engine.status(name.instance_id) == "completed"])
            letters = len(spool.read_text(encoding="utf-8").splitlines())
            took = f"{time.perf_counter() - begin:.1f} s"
            figures = (day + 1, top.waiting, top.actors, tally.answers, letters, len(calls), ended)
            tally.rows.append((*map(str, figures), took))
            live.update(screen(tally, total))
        for task in engine.tasks(node="call-customer"):
            engine.complete(task.id, {"answered": True}, user="nina")
            tally.calls += 1
        engine.wait_quiet()
    return tally, [name.instance_id for name in started]


def balance(engine: Engine, tally: Tally, instances: list[str], spool: Path, console: Console) -> bool:
    """Print what became of everybody, from the instances' own histories; True if it adds up with what was seen
    outside."""
    seen: Counter[str] = Counter()
    for name in instances:
        view = engine.inspect(name)
        trace = Counter(view.trace)
        seen["answered"] += trace["received"]
        seen["reminded"] += trace["send-reminder"]
        seen["escalated"] += trace["called"]
        seen["requests"] += trace["send-request"]
        seen["completed"] += view.state == "completed"
    letters = len(spool.read_text(encoding="utf-8").splitlines())
    table = Table(title="What became of them", title_justify="left")
    for heading in ("", "by the instances' histories", "as seen outside"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("answered", str(seen["answered"]), f"{tally.answers} messages published")
    table.add_row("reminders", str(seen["reminded"]), f"{letters - len(instances)} letters beyond the first")
    table.add_row("escalated to a person", str(seen["escalated"]), f"{tally.calls} calls made")
    table.add_row("completed", str(seen["completed"]), f"{len(instances)} instances started")
    console.print()
    console.print(table)
    return (
        seen["answered"] == tally.answers
        and seen["escalated"] == tally.calls
        and seen["requests"] + seen["reminded"] == letters
        and seen["answered"] + seen["escalated"] == seen["completed"] == len(instances)
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description="Document requests on the real engine, with a manual clock.")
    arguments.add_argument("--instances", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=7)
    arguments.add_argument("--keep", action="store_true", help="leave the engine up, with the Ray dashboard's address")
    options = arguments.parse_args()
    console = Console()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gobpm-demo-") as folder:
        spool = Path(folder, "letters.txt")
        spool.touch()
        console.print("starting Ray and the embedded store ...")
        with Engine.open(
            home=Path(folder, "home"),
            clock="virtual",
            settings=Settings(spares=2, engine_id="demo"),
            callables={"mail": Post(str(spool))},
            dashboard=options.keep,
        ) as engine:
            console.print(f"engine up after {time.perf_counter() - begin:.1f} s")
            tally, instances = live_through(engine, options.instances, spool, options.seed, console)
            fine = balance(engine, tally, instances, spool, console)
            console.print(
                f"{'it adds up' if fine else 'IT DOES NOT ADD UP'}, {time.perf_counter() - begin:.1f} s in all"
            )
            if options.keep:
                console.print(f"Ray dashboard: {engine.dashboard_url}   (Ctrl-C ends the engine)")
                try:
                    while True:
                        time.sleep(3600)
                except KeyboardInterrupt:
                    console.print("ending")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
