"""Claim, lease and fence on the real engine (group C), and two engines on one store (X11).

After each scenario its fixture looks that nothing of it is left; see `scene.py`.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from actors.registry import actor_rows
from gobpm_ray.engine import cluster
from gobpm_ray.errors import LeaseLost
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.ports import Commit
from gobpm_ray.runtime.programs import Programs
from tests.integration.conftest import RunningEngine, wait_until
from tests.integration.scene import HOUR, Scene, frozen, log_of, work_until
from tests.support.plain_engine import PlainEngine

TTL_MS = 1_500
SETTINGS = {
    "lease_ttl_ms": TTL_MS,
    "lease_renew_ms": 500,
    "dehydration_threshold_ms": HOUR,
    "reconcile_ms": 1_000,
}

pytestmark = pytest.mark.slow


def short(scene: Scene) -> ProcessBuilder:
    process = scene.process("short")
    process.start("s").script_task("count", "n + 1", result="n").end("e")
    return process


def working(scene: Scene, gate: Path, visits: Path) -> str:
    """The id of an instance that works until the gate is there, and has begun to."""
    process = scene.process("working")
    process.start("s").service_task("work", topic=scene.name("work"), idempotent=True).end("e")
    scene.engine.register(scene.name("work"), work_until(gate, visits))
    instance = scene.engine.start(scene.deploy(process)).instance_id
    wait_until(visits.exists, "the work has begun")
    return instance


def nobody_claims_or_sweeps(running: RunningEngine) -> AbstractContextManager[None]:
    """Every actor that claims, makes actors or sweeps stands still."""
    services = cluster.status(running.handle)
    pids = [services[role]["pid"] for role in ("ResidencySupervisor", "TaskHolder")]
    wait_until(lambda: all(row.started for row in actor_rows(running.store)), "every actor has started")
    return frozen(*pids, *(row.pid for row in actor_rows(running.store)))


def test_of_many_claimers_exactly_one_gets_a_ready_instance(scene: Scene) -> None:
    """C59, N8: six claimers beside the engine's own actors; each claim of an instance has an epoch of its own."""
    process_id = scene.deploy(short(scene))
    claims: list[tuple[str, int]] = []
    over = threading.Event()

    def claims_and_gives_back(name: int) -> None:
        for turn in range(100):
            claim = scene.store.claim(f"outsider{name}:x:{turn}")
            if claim is not None:
                claims.append((claim.instance_id, claim.epoch))
                scene.store.abandon(claim.instance_id, claim.token, 0)
            elif over.is_set():
                return

    with ThreadPoolExecutor(6) as pool:
        outsiders = [pool.submit(claims_and_gives_back, name) for name in range(6)]
        # One by one: in a bulk they would be born ended, and nobody would claim them.
        started = [scene.engine.start(process_id, {"n": n}) for n in range(20)]
        over.set()
        for outsider in outsiders:
            outsider.result()
    scene.engine.wait_quiet()

    assert claims
    assert [claim for claim, times in Counter(claims).items() if times > 1] == []
    taken = Counter(instance for instance, _ in claims)
    for n, one in enumerate(started):
        assert scene.completed(one.instance_id, "s", "count", "e").variables == {"n": n + 1}
        record = scene.store.instance(one.instance_id)
        assert record is not None
        assert record.epoch == taken[one.instance_id] + 1, "the engine's own actors claimed it once"


def test_a_zombies_commit_is_refused_and_leaves_no_trace(scene: Scene, tmp_path: Path) -> None:
    """C60, N8: an actor stands still until its lease is swept and another has finished its work; then it wakes up."""
    scene.unclean = True
    gate, visits = tmp_path / "gate", tmp_path / "visits"
    instance = working(scene, gate, visits)
    ((_, token, _),) = scene.store.leases()
    (zombie,) = [row for row in actor_rows(scene.store) if token.startswith(f"{row.name}:")]

    with frozen(zombie.pid):
        wait_until(lambda: len(visits.read_text()) == 2, "another actor does the work again", within_s=20)
        gate.touch()
        view = scene.engine.wait(instance, 10)
        record = scene.store.instance(instance)
        facts = scene.facts(instance)
    wait_until(lambda: f"instance {instance}: lease lost" in log_of(zombie.pid), "the zombie was refused")

    assert view.trace == ("s", "work", "e")
    assert scene.store.instance(instance) == record
    assert scene.facts(instance) == facts
    assert [entry.event for entry in view.history].count("sealed") == 1
    wait_until(lambda: zombie.name in [row.name for row in actor_rows(scene.store)], "it serves on")


def test_an_expired_lease_that_nobody_swept_can_neither_renew_nor_commit(
    scene: Scene, virtual_engine: RunningEngine
) -> None:
    """C61, N8; then it is swept, and the instance goes on with its trigger (N9)."""
    scene.unclean = True
    process_id = scene.deploy(short(scene))
    with nobody_claims_or_sweeps(virtual_engine):
        instance = scene.engine.start(process_id, {"n": 1}).instance_id
        claim = scene.store.claim("outsider:x:1")
        assert claim is not None
        time.sleep(TTL_MS / 1_000 + 0.05)
        before = scene.store.instance(instance)
        ((_, _, left_ms),) = scene.store.leases()
        assert left_ms < 0

        with pytest.raises(LeaseLost):
            scene.store.renew(instance, claim.token)
        with pytest.raises(LeaseLost, match="expired"):
            scene.store.commit(Commit(instance, claim.token, claim.version, "c1", outcome="completed"))

        assert scene.store.instance(instance) == before
    assert scene.engine.wait(instance, 15).variables == {"n": 2}
    assert scene.see(instance).trace == ("s", "count", "e")


@pytest.mark.parametrize("off_s", [-10, 10])
def test_a_claimers_clock_that_is_ten_seconds_off_decides_nothing(
    scene: Scene, virtual_engine: RunningEngine, monkeypatch: pytest.MonkeyPatch, off_s: int
) -> None:
    """C62, T47: the store's clock judges leases and stamps; a host whose clock is off wakes and releases as any."""
    process = scene.process("nap")
    process.start("s").catch("nap", timer="P1D").end("e")
    process_id = scene.deploy(process)
    wall, wall_ns = time.time, time.time_ns
    with nobody_claims_or_sweeps(virtual_engine):
        monkeypatch.setattr(time, "time", lambda: wall() + off_s)
        monkeypatch.setattr(time, "time_ns", lambda: wall_ns() + off_s * 10**9)
        held = scene.engine.start(process_id).instance_id
        claim = scene.store.claim("outsider:x:1")
        assert claim is not None
        ((_, _, left_ms),) = scene.store.leases()
        assert TTL_MS - 500 < left_ms <= TTL_MS
        assert scene.store.sweep() == 0, "it is not taken for expired"
        scene.store.renew(held, claim.token)
        scene.store.abandon(held, claim.token, 0)
        host = Host(scene.store, scene.store.settings, Programs(scene.store), Callables(lambda _topic: None), "off")
        assert host.serve_once()
        host.close()
        monkeypatch.undo()

    scene.engine.wait_quiet()
    (wait,) = scene.see(held).waits
    assert wait.deadline_ms == scene.engine.now() + 24 * HOUR
    scene.released(held)
    scene.later("P1D")
    scene.completed(held, "s", "nap", "e")
    assert scene.cycles(held) == (1, 1)


def test_a_wake_that_was_dropped_is_found_by_the_walk(scene: Scene, virtual_engine: RunningEngine) -> None:
    """C69: a task was completed and nobody knows of it any more, neither `ready` nor a bell; the TaskHolder's walk
    finds the trigger in the instance's inbox, and it is done once."""
    process = scene.process("asked")
    process.start("s").user_task("ask").script_task("count", "n + 1", result="n").end("e")
    instance = scene.begin(process, n=1)
    with nobody_claims_or_sweeps(virtual_engine):
        scene.engine.complete("ask", {"said": "yes"})
        assert scene.client.zrem(scene.store.keys["ready"], instance) == 1
        assert scene.store.population().ready == 0
    began = time.monotonic()

    view = scene.engine.wait(instance, 15)

    assert view.variables == {"n": 2, "said": "yes"}
    assert view.trace == ("s", "ask", "count", "e")
    assert time.monotonic() - began < 10
    scene.engine.wait_quiet()
    assert scene.cycles(instance) == (1, 1)


def test_x16_the_threshold_is_configurable(scene: Scene) -> None:
    """X16, D2: here it is an hour: 59 minutes stay resident and fire without a hydration, 61 are released."""
    process = scene.process("nap")
    process.start("s").catch("nap", timer="=span").end("e")
    process_id = scene.deploy(process)
    near = scene.begin(process_id, span="PT59M")
    assert scene.see(near).resident
    scene.later("PT59M")
    scene.completed(near)
    assert scene.cycles(near) == (0, 0)

    far = scene.begin(process_id, span="PT61M")
    scene.released(far)
    scene.later("PT61M")
    scene.completed(far)
    assert scene.cycles(far) == (1, 1)


def test_x11_two_engines_on_one_store_never_run_the_same_work(scene: Scene, tmp_path: Path) -> None:
    """X11, D22, N11: a second engine with holders and a host of its own beside the one on Ray; no work runs on both,
    a long one keeps its lease by its heartbeat, and a trigger for it respects the lease."""
    log, gate, visits = tmp_path / "log", tmp_path / "gate", tmp_path / "visits"
    process = scene.process("long")
    process.start("s").parallel("fork").service_task("work", topic=scene.name("work"), idempotent=True).end("worked")
    process.at("fork").catch("told", message=scene.name("Tell"), key="=k").end("heard")
    scene.engine.register(scene.name("work"), work_until(gate, visits))
    long = scene.engine.start(scene.deploy(process), {"k": "A"}).instance_id
    wait_until(visits.exists, "the long work has begun")
    (before,) = scene.store.leases()

    brief = scene.process("brief")
    brief.start("s").service_task("note", topic=scene.name("note")).end("e")
    scene.engine.register(scene.name("note"), note_in(log))
    process_id = scene.deploy(brief)
    second = PlainEngine(scene.store, {scene.name("note"): note_in(log)})
    try:
        second.work_beside(hosts=1)
        started = scene.engine.start_many(process_id, [{"n": n} for n in range(30)])
        for one in started:
            scene.engine.wait(one.instance_id, 20)
        scene.engine.publish(scene.name("Tell"), "A")
        wait_until(lambda: "told" in scene.see(long).trace, "the leaseholder has taken its message")
        time.sleep(TTL_MS / 1_000)
        ((instance, token, left_ms),) = scene.store.leases()
        assert (instance, token) == before[:2] == (long, token)
        assert left_ms > 0, "renewed, over two lives long"
        gate.touch()
        scene.engine.wait_quiet()
    finally:
        second.close()

    notes = [line.split() for line in log.read_text().splitlines()]
    assert sorted(int(n) for n, _ in notes) == list(range(30)), "each once"
    assert {pid for _, pid in notes} > {str(os.getpid())}, "both engines have worked"
    assert visits.read_text() == "x"
    assert set(scene.completed(long).trace) == {"s", "fork", "work", "worked", "told", "heard"}
    assert scene.cycles(long) == (0, 0)


def note_in(log: Path):
    """Work that notes for whom, and in which os process, it was done."""
    name = str(log)

    def note(inputs):
        import os
        import time

        time.sleep(0.03)
        with open(name, "a", encoding="ascii") as file:
            file.write(f"{inputs['n']} {os.getpid()}\n")
        return {}

    return note
