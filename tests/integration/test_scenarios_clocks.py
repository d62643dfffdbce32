"""What a time means, many at one moment, and clocks that step, on the real engine (T42, T45, T46, T47).

After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from actors.registry import actor_rows
from gobpm_ray.engine.amounts import moment
from gobpm_ray.engine.views import moment_text
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.builder import ProcessBuilder, at_date
from gobpm_ray.store.scripts import source
from holders.timer import BATCH
from tests.integration.conftest import OpenEngine, wait_until
from tests.integration.scene import DAY, HOUR, Scene, work_until

pytestmark = pytest.mark.slow


def year_of(scene: Scene) -> int:
    return datetime.fromtimestamp(scene.engine.now() / 1_000, UTC).year


def waiting_for(scene: Scene, **timers: str) -> str:
    """An instance that waits for each of these at once."""
    process = scene.process("times")
    process.start("s").parallel("fork")
    for name, timer in timers.items():
        process.at("fork").catch(name, timer=timer).end()
    return scene.begin(process)


def deadlines(scene: Scene, instance: str) -> dict[str, int]:
    return {wait.node: wait.deadline_ms or 0 for wait in scene.see(instance).waits}


# ------------------------------------------------------------------------------------------------------- what it means


def test_every_form_of_a_zone_names_one_instant(scene: Scene) -> None:
    """T45: `Z`, an offset, `[Zone]`, `@Zone` and an offset beside its zone; all fire together, in one wake."""
    day = f"{year_of(scene) + 1}-07-01T"
    instance = waiting_for(
        scene,
        utc=f"{day}07:30:00Z",
        offset=f"{day}09:30:00+02:00",
        bracket=f"{day}09:30:00[Europe/Berlin]",
        at=f"{day}09:30:00@Europe/Berlin",
        both=f"{day}09:30:00+02:00[Europe/Berlin]",
        far=f"{day}03:30:00-04:00@America/New_York",
    )
    scene.released(instance)
    instant = moment(f"{day}07:30:00Z")
    assert set(deadlines(scene, instance).values()) == {instant}

    scene.engine.advance(to=instant)

    assert {e.at_ms for e in scene.completed(instance).history if e.event == "node" and e.node == "at"} == {instant}
    assert scene.cycles(instance) == (1, 1)


@pytest.mark.parametrize(
    ("timer", "says"),
    [
        ("2030-07-01T09:30:00+01:00[Europe/Berlin]", "contradicts the zone"),
        ("2030-07-01T09:30:00Z@Europe/Berlin", "contradicts the zone"),
        ("-PT1H", "sign"),
        ("P1DT", "must follow T"),
        ("PT", "must follow T"),
    ],
)
def test_a_time_that_means_nothing_is_refused_at_deploy_and_is_an_incident_when_it_is_computed(
    scene: Scene, timer: str, says: str
) -> None:
    """T45, T46: nobody guesses; an operator who corrects the variable and retries is served."""
    process = scene.process("fixed")
    process.start("s").catch("nap", timer=timer).end("e")
    with pytest.raises(InvalidModel, match=says):
        scene.engine.deploy(process)
    computed = scene.process("computed")
    a_date = timer.startswith("2")
    computed.start("s").catch("nap", timer=at_date("=when") if a_date else "=when").end("e")
    instance = scene.begin(computed, when=timer)
    (incident,) = scene.engine.incidents(instance)
    assert (incident.node, says in incident.cause) == ("nap", True), incident
    now = scene.engine.now()
    scene.engine.set(instance, {"when": moment_text(now + HOUR) if a_date else "PT1H"})
    scene.engine.retry(instance)
    scene.engine.wait_quiet()
    scene.released(instance)
    assert deadlines(scene, instance) == {"nap": now + HOUR}
    scene.later("PT1H")
    scene.completed(instance, "s", "nap", "e")


def test_years_months_weeks_and_fractions_end_on_a_day_that_is_there(scene: Scene) -> None:
    """T46: from 31 January one month is the last of February; from 29 February one year is the 28th."""
    year = year_of(scene)
    while moment(f"{year}-01-31T10:00:00Z") <= scene.engine.now() or year % 4 == 3:
        year += 1  # not before a leap year: its February is looked at below
    scene.engine.advance(to=f"{year}-01-31T10:00:00Z")
    last = 29 if year % 4 == 0 else 28
    instance = waiting_for(
        scene, quarter="P3M", long="P1Y2M", week="P1W", blink="PT0.5S", month="P1M", cycle="R2/P1M", mixed="P1M1DT0.25S"
    )
    now = moment(f"{year}-01-31T10:00:00Z")
    assert scene.see(instance).resident, "half a second is not worth a release"
    assert deadlines(scene, instance) == {
        "quarter": moment(f"{year}-04-30T10:00:00Z"),
        "long": moment(f"{year + 1}-03-31T10:00:00Z"),
        "week": now + 7 * DAY,
        "blink": now + 500,
        "month": moment(f"{year}-02-{last}T10:00:00Z"),
        "cycle": moment(f"{year}-02-{last}T10:00:00Z"),
        "mixed": moment(f"{year}-03-01T10:00:00Z") + 250,
    }
    scene.later("P15M")
    scene.completed(instance)

    leap = year + 1
    while leap % 4:
        leap += 1
    while moment(f"{leap}-02-29T10:00:00Z") <= scene.engine.now():
        leap += 4
    scene.engine.advance(to=f"{leap}-02-29T10:00:00Z")
    again = waiting_for(scene, year="P1Y", four="P4Y")
    assert deadlines(scene, again) == {
        "year": moment(f"{leap + 1}-02-28T10:00:00Z"),
        "four": moment(f"{leap + 4}-02-29T10:00:00Z"),
    }
    scene.later("P4Y")
    scene.completed(again)


# ---------------------------------------------------------------------------------------------------- all at one moment


@pytest.mark.parametrize(
    ("instances", "timers"), [(6, 100), pytest.param(100, 1_000, marks=pytest.mark.long)], ids=["600", "100,000"]
)
@pytest.mark.timeout(900)
def test_many_timers_due_at_once_fire_once_each_in_batches_while_starts_go_on(
    scene: Scene, instances: int, timers: int
) -> None:
    """T42: each fires once; a process that is started meanwhile does not wait for the end of the storm; and no batch
    takes the store over 5 ms: on the mean, and in the large four of five, for others share the processor."""
    process = scene.process("storm")
    each = process.start("s").sub_process("each")
    each.multi_instance(cardinality=timers, output="fired", output_item="loopCounter")
    with each as inside:
        inside.start().catch("nap", timer="PT2H").end()
    process.at("each").end("e")
    process_id = scene.deploy(process)
    quick = scene.process("quick")
    quick.start("s").script_task("count", "n + 1", result="n").end("e")
    quick_id = scene.deploy(quick)
    started = [one.instance_id for one in scene.engine.start_many(process_id, [None] * instances)]
    scene.engine.wait_quiet(300)
    assert scene.engine.top().due == instances * timers
    began = scene.engine.now()

    with slow_scripts(scene, "fire", 5_000) as slow:
        scene.store.set_clock(began + 2 * HOUR)
        meanwhile = scene.engine.start(quick_id, {"n": 1}).instance_id
        assert scene.engine.wait(meanwhile, 60).variables == {"n": 2}
        left = sum(scene.engine.status(one) != "completed" for one in started)
        scene.engine.wait_quiet(600)

    scripts = scene.client.info("commandstats")["cmdstat_evalsha"]
    batches = -(-instances * timers // BATCH)
    print(f"{left} of {instances} instances were still waking when the other had ended; {len(slow)} of {batches}")
    print(f"batches took over 5 ms; {scripts['calls']} scripts, {scripts['usec_per_call']} us on the mean")
    for one in started:
        assert scene.completed(one).variables["fired"] == list(range(1, timers + 1))
        assert "Overtaken" not in {fact.fact for fact in scene.facts(one)}, "none has fired twice"
    assert scripts["usec_per_call"] < 5_000
    assert instances < 100 or len(slow) <= batches // 5


@contextmanager
def slow_scripts(scene: Scene, script: str, microseconds: int) -> Iterator[list[int]]:
    """How long each run of this script took that took longer, by the store's own log, once the block is over."""
    digest = hashlib.sha1(source(script), usedforsecurity=False).hexdigest().encode()
    names = ("slowlog-log-slower-than", "slowlog-max-len")
    before = {name: scene.client.config_get(name)[name] for name in names}
    found: list[int] = []
    scene.client.config_set(names[0], microseconds)
    scene.client.config_set(names[1], 10_000)
    scene.client.slowlog_reset()
    scene.client.config_resetstat()
    try:
        yield found
        entries = scene.client.slowlog_get(10_000)
        found += [entry["duration"] for entry in entries if digest in entry["command"]]
    finally:
        for name, value in before.items():
            scene.client.config_set(name, value)


# ----------------------------------------------------------------------------------------------------- clocks that step


def test_an_actors_clock_that_steps_an_hour_back_and_forth_changes_nothing(scene: Scene) -> None:
    """T47: the wall clock of an actor's process steps under it; it claims, releases, wakes and renews as any other."""
    steps = scene.process("steps")
    steps.start("s").service_task("step", topic=scene.name("step")).catch("nap", timer="PT2H").service_task(
        "again", topic=scene.name("step")
    ).catch("told", message=scene.name("Tell"), key="=k").end("e")
    scene.engine.register(scene.name("step"), stepping())
    process_id = scene.deploy(steps)
    pids = set()
    try:
        for n, hours in enumerate((-1, 1, -1)):
            instance = scene.begin(process_id, k=f"K{n}", hours=hours)
            pids.add(scene.see(instance).variables["pid"])
            began = scene.engine.now()
            scene.released(instance)
            assert [wait.deadline_ms for wait in scene.see(instance).waits] == [began + 2 * HOUR]
            scene.later("PT1H59M")
            scene.released(instance)
            scene.later("PT1M")
            scene.released(instance)
            assert scene.waits(instance) == [("told", "message")]
            scene.publish(scene.name("Tell"), f"K{n}")
            view = scene.completed(instance, "s", "step", "nap", "again", "told", "e")
            assert scene.cycles(instance) == (2, 2)
            assert {began, began + 2 * HOUR} == {entry.at_ms for entry in view.history}
            says = view.variables["says"]
            assert isinstance(says, float)
            assert abs(says - time.time()) > 3_000, "its clock was off indeed"
    finally:
        rows = [row for row in actor_rows(scene.store) if row.pid in pids]
        for row in rows:
            os.kill(row.pid, signal.SIGKILL)  # nothing puts its clock right
        gone = {row.name for row in rows}
        wait_until(lambda: not gone & {row.name for row in actor_rows(scene.store)}, "they are buried")


def stepping():
    """Work that puts the clock of its own os process off by `hours`, for good."""

    def step(inputs):
        import os
        import time

        real = time.__dict__.setdefault("_real", (time.time, time.time_ns))
        off = inputs["hours"] * 3600
        time.time = lambda: real[0]() + off
        time.time_ns = lambda: real[1]() + off * 10**9
        return {"pid": os.getpid(), "says": time.time()}

    return step


@pytest.mark.long
def test_when_the_stores_clock_steps_back_deadlines_wait_order_holds_and_no_lease_is_lost(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    """T47: an engine on the store's own clock, which steps back by an hour while one instance works and others wait.

    As `tests/contract/test_stepping_clock.py`, which is quick, but with actors and holders on Ray."""
    running = open_engine(holder_tick_ms=100, linger_ms=60_000)
    engine, store = running.operations, running.store
    clock = store.keys["liveness"]
    begin = engine.now()
    store.client.set(clock, begin)  # from here on the store's clock is the test's
    gate, visits = tmp_path / "gate", tmp_path / "visits"
    engine.register("work", work_until(gate, visits))
    for process in clock_processes():
        engine.deploy(process)
    hour, two = (engine.start("sleeper", {"span": span}).instance_id for span in ("PT1H", "PT2H"))
    listener = engine.start("listening", {"k": "A"}).instance_id
    engine.wait_quiet()
    assert engine.top().waiting == 3
    working = engine.start("worker").instance_id
    wait_until(visits.exists, "the work has begun")
    (lease,) = store.leases()

    store.client.set(clock, begin - HOUR)
    for text in ("older", "younger"):
        engine.publish("Reply", "A", {"text": text})
    wait_until(lambda: engine.inspect(listener).ended, "messages are taken all the same")
    assert engine.inspect(listener).trace == ("s", "one", "two", "e")
    assert engine.inspect(listener).variables == {"k": "A", "first": "older", "second": "younger"}
    assert store.sweep() == 0
    assert [row[:2] for row in store.leases()] == [lease[:2]], "no lease is lost early"
    gate.touch()
    assert engine.wait(working, 15).trace == ("s", "work", "e")
    assert visits.read_text() == "x"

    engine.wait_quiet()
    for moved, ended in ((begin + HOUR - 1, []), (begin + HOUR, [hour]), (begin + 2 * HOUR, [hour, two])):
        store.client.set(clock, moved)
        wait_until(lambda these=ended: all(engine.inspect(one).ended for one in these), "the deadline has come")  # type: ignore[misc]
        engine.wait_quiet()
        assert [one for one in (hour, two) if engine.inspect(one).ended] == ended
    assert engine.verify().differences == []


def clock_processes() -> list[ProcessBuilder]:
    nap = ProcessBuilder("sleeper")
    nap.start("s").catch("nap", timer="=span").end("e")
    listener = ProcessBuilder("listening")
    listener.start("s").catch("one", message="Reply", key="=k", outputs={"first": "=text"}).catch(
        "two", message="Reply", key="=k", outputs={"second": "=text"}
    ).end("e")
    working = ProcessBuilder("worker")
    working.start("s").service_task("work", topic="work").end("e")
    return [nap, listener, working]
