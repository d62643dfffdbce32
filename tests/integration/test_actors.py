"""The engine's actors on a real Ray and a real store: who lives when, who dies of what, and what is seen of it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from actors.handles import dashboard_url, living_instance_actors
from actors.registry import actor_rows, read_heartbeat, supervisor_is_alive, take_census
from actors.spec import EngineSpec
from gobpm_ray.engine import cluster
from gobpm_ray.engine.operations import Operations
from gobpm_ray.errors import InvalidSetting
from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.model.elements import Process
from gobpm_ray.settings import Settings
from gobpm_ray.store.connection import open_client
from gobpm_ray.store.embedded import EmbeddedStore
from gobpm_ray.store.redis_store import RedisStore
from gobpm_ray.store.signing_key import signing_key
from tests.integration.conftest import OpenEngine, RunningEngine, opened, wait_until

pytestmark = pytest.mark.slow


def reply_process() -> Process:
    builder = ProcessBuilder("reply")
    builder.start("asked").receive_task("wait", message="reply", key="=reference").end("answered")
    return builder.build()


def work_process(topic: str, **more: Any) -> Process:
    builder = ProcessBuilder(f"work-{topic}")
    builder.start("begun").service_task("work", topic=topic, **more).end("done")
    return builder.build()


def states_in_ray(engine_id: str) -> dict[str, str]:
    """Ray's own state API: the state of each of the engine's actors, by class and number."""
    from ray.util.state import list_actors

    return {
        (actor.name or "").rpartition(":")[2]: actor.state
        for actor in list_actors(dashboard_url(), limit=10_000)
        if (actor.name or "").startswith(f"gobpm:{engine_id}:")
    }


def live_in_ray(engine_id: str) -> list[str]:
    return sorted(name for name, state in states_in_ray(engine_id).items() if state != "DEAD")


def await_no_actor(running: RunningEngine) -> None:
    wait_until(lambda: not living_instance_actors(running.settings.engine_id), "no InstanceActor lives")


def await_waiting(running: RunningEngine, count: int) -> None:
    """All started instances wait, dehydrated."""
    wait_until(
        lambda: (
            (population := running.store.population()).ready == 0
            and population.resident == 0
            and population.waiting >= count
        ),
        f"{count} instances wait",
        within_s=30.0,
    )


# ------------------------------------------------------------------------------------------------------------- living


def test_what_waits_is_a_record_and_no_actor_lives(engine: RunningEngine) -> None:
    """C4, promise 7: while instances wait, `top` says 0 resident and Ray's state API lists no live InstanceActor."""
    engine.operations.deploy(reply_process())
    references = [f"R-{n}" for n in range(200)]
    started = engine.operations.start_many("reply", [{"reference": reference} for reference in references])
    await_waiting(engine, len(references))
    await_no_actor(engine)

    top = engine.operations.top()
    assert (top.resident, top.free, top.spares, top.actors, top.ready) == (0, 0, 0, 0, 0)
    wait_until(
        lambda: not [name for name in live_in_ray(engine.settings.engine_id) if name.startswith("InstanceActor")],
        "Ray's state API lists no live InstanceActor",
    )
    assert live_in_ray(engine.settings.engine_id) == [
        "MessageHolder",
        "ResidencySupervisor",
        "TaskHolder",
        "TimerHolder",
    ]

    for reference in references:
        engine.operations.publish("reply", key=reference)
    for instance in started:
        assert engine.operations.wait(instance.instance_id, timeout=30).state == "completed"


def test_a_message_that_nobody_waits_for_wakes_nobody(engine: RunningEngine) -> None:
    """D4: correlation is checked before waking; a wrong key never wakes an instance."""
    engine.operations.deploy(reply_process())
    started = engine.operations.start("reply", {"reference": "R-right"})
    wait_until(lambda: engine.operations.inspect(started.instance_id).waits, "it waits")
    await_no_actor(engine)
    numbers = engine.store.get_value("engine", "actor_number")

    engine.operations.publish("reply", key="R-wrong")
    wait_until(lambda: engine.store.population().parked > 0, "it is parked")
    time.sleep(0.3)

    assert engine.store.get_value("engine", "actor_number") == numbers, "no actor was made"
    engine.operations.publish("reply", key="R-right")
    assert engine.operations.wait(started.instance_id, timeout=15).state == "completed"


def test_spares_lingering_and_residents_add_up_to_rays_own_count(open_engine: OpenEngine, tmp_path: Path) -> None:
    """Promise 7: living InstanceActors = resident + free + spares."""
    running = open_engine(spares=1, linger_ms=60_000)
    gate = tmp_path / "gate"
    running.operations.register("gate", wait_for_file(gate))
    running.operations.deploy(work_process("gate"))
    wait_until(lambda: take_census(running.store).spares == 1, "a spare is ready before there is work")

    started = [running.operations.start("work-gate").instance_id for _ in range(3)]
    wait_until(lambda: take_census(running.store).resident == 3, "three work", within_s=30)

    wait_until(lambda: take_census(running.store).spares == 1, "the spare that works is replaced", within_s=30)
    census = take_census(running.store)
    assert census.actors == census.resident + census.free + census.spares
    assert len(living_instance_actors(running.settings.engine_id)) == census.actors

    gate.touch()
    for instance in started:
        assert running.operations.wait(instance, timeout=15).state == "completed"
    wait_until(
        lambda: (now := take_census(running.store)).resident == 0 and now.free + now.spares == now.actors,
        "all are free",
    )


def test_the_dashboard_shows_whom_an_actor_hosts(engine: RunningEngine, tmp_path: Path) -> None:
    """Issue 2: actor classes, names and task names are readable: InstanceActors and whom they host."""
    from ray.util.state import list_actors, list_tasks

    gate = tmp_path / "gate"
    engine.operations.register("shown", wait_for_file(gate))
    engine.operations.deploy(work_process("shown"))
    started = engine.operations.start("work-shown", id="order-17")

    def shown() -> bool:
        return any(
            task.name == "hosting order-17" and task.state == "RUNNING"
            for task in list_tasks(dashboard_url(), limit=10_000)
        )

    wait_until(shown, "a Ray task named after the instance runs", within_s=20)
    alive = [
        actor
        for actor in list_actors(dashboard_url(), limit=10_000)
        if actor.state == "ALIVE" and (actor.name or "").startswith(f"gobpm:{engine.settings.engine_id}:")
    ]
    assert {"InstanceActor", "ResidencySupervisor", "TimerHolder", "MessageHolder", "TaskHolder"} == {
        actor.class_name for actor in alive
    }
    assert {actor.ray_namespace for actor in alive} == {"gobpm"}

    gate.touch()
    assert engine.operations.wait(started.instance_id, timeout=15).state == "completed"
    wait_until(lambda: not shown(), "it is shown no longer")


def test_without_hand_over_every_release_ends_its_actor(open_engine: OpenEngine) -> None:
    """Design 3: `hand_over=False` is the plain form."""
    running = open_engine(hand_over=False, linger_ms=60_000)
    running.operations.deploy(reply_process())
    started = running.operations.start("reply", {"reference": "R-1"})
    wait_until(lambda: running.operations.inspect(started.instance_id).waits, "it waits")

    wait_until(lambda: not living_instance_actors(running.settings.engine_id), "its actor is gone", within_s=10)

    running.operations.publish("reply", key="R-1")
    assert running.operations.wait(started.instance_id, timeout=15).state == "completed"
    assert running.store.get_value("engine", "actor_number") == b"2"


# -------------------------------------------------------------------------------------------------------------- dying


def test_a_killed_actor_is_reported_and_its_instance_runs_again_before_its_lease_expires(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    """Promise 1, N9: the report of a death releases the lease at once; the sweep would take a lease's whole life."""
    running = open_engine(lease_ttl_ms=60_000, lease_renew_ms=10_000)
    gate, visits = tmp_path / "gate", tmp_path / "visits"
    running.operations.register("counted", count_and_wait(visits, gate))
    running.operations.deploy(work_process("counted", idempotent=True))
    started = running.operations.start("work-counted")
    wait_until(visits.exists, "the work has begun", within_s=20)
    (row,) = [row for row in actor_rows(running.store) if row.started]

    os.kill(row.pid, signal.SIGKILL)
    killed_at = time.monotonic()

    wait_until(lambda: not running.store.leases() or len(visits.read_text()) > 1, "the lease is released", within_s=5)
    wait_until(lambda: len(visits.read_text()) > 1, "the work begins again", within_s=20)
    assert time.monotonic() - killed_at < 25
    assert row.name not in [row.name for row in actor_rows(running.store)]
    gate.touch()
    assert running.operations.wait(started.instance_id, timeout=15).state == "completed"
    assert visits.read_text() == "xx"


def test_a_resident_outlives_its_supervisor_and_is_adopted_by_the_next(open_engine: OpenEngine, tmp_path: Path) -> None:
    """Design 3: InstanceActors are detached; a new supervisor adopts the living and never kills a resident."""
    running = open_engine(lease_ttl_ms=60_000, lease_renew_ms=10_000)
    gate, visits = tmp_path / "gate", tmp_path / "visits"
    running.operations.register("lasting", count_and_wait(visits, gate))
    running.operations.deploy(work_process("lasting", idempotent=True))
    started = running.operations.start("work-lasting")
    wait_until(visits.exists, "the work has begun", within_s=20)
    (row,) = [row for row in actor_rows(running.store) if row.started]
    first = wait_until_heartbeat(running)

    os.kill(first, signal.SIGKILL)

    wait_until(lambda: wait_until_heartbeat(running) != first, "Ray restarted the supervisor", within_s=20)
    wait_until(
        lambda: (beat := read_heartbeat(running.store)) is not None and beat.actors == 1, "it adopted the resident"
    )
    assert [row.pid for row in actor_rows(running.store)] == [row.pid]
    assert visits.read_text() == "x", "the work went on all the while"

    # The adopted is watched as the created was.
    os.kill(row.pid, signal.SIGKILL)
    wait_until(lambda: len(visits.read_text()) > 1, "the work begins again", within_s=20)
    gate.touch()
    assert running.operations.wait(started.instance_id, timeout=15).state == "completed"


def test_a_killed_holder_comes_back_and_folds_what_was_accepted_meanwhile(engine: RunningEngine) -> None:
    """Promise 1, H2: SIGKILL of a holder loses nothing that was accepted."""
    engine.operations.deploy(reply_process())
    started = engine.operations.start("reply", {"reference": "R-kill"})
    wait_until(lambda: engine.operations.inspect(started.instance_id).waits, "it waits")
    pid = cluster.status(engine.handle)["MessageHolder"]["pid"]

    os.kill(pid, signal.SIGKILL)
    engine.operations.publish("reply", key="R-kill")

    assert engine.operations.wait(started.instance_id, timeout=20).state == "completed"
    assert cluster.status(engine.handle)["MessageHolder"]["pid"] != pid


def test_a_store_that_was_killed_and_came_back_is_served_on(ray_cluster: str, tmp_path: Path) -> None:
    """Promise 1: SIGKILL of the store loses nothing; an actor that ended meanwhile does not block the next."""
    home = Path(tempfile.mkdtemp(prefix="gobpm-"))
    own = EmbeddedStore(home)
    try:
        url = own.ensure_running()
        with opened(url, signing_key(home), lease_ttl_ms=3_000, lease_renew_ms=1_000) as running:
            running.operations.deploy(reply_process())
            started = running.operations.start("reply", {"reference": "R-store"})
            wait_until(lambda: running.operations.inspect(started.instance_id).waits, "it waits")
            pid = own.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not living_instance_actors(running.settings.engine_id), "its actor is gone", within_s=20)

            own.ensure_running()

            with open_client(url) as client:
                again = Operations(RedisStore(client, running.settings), running.settings)
                again.publish("reply", key="R-store")
                assert again.wait(started.instance_id, timeout=20).state == "completed"
    finally:
        own.stop()
        shutil.rmtree(home, ignore_errors=True)


def test_opening_again_finds_the_living_and_replaces_the_dead(open_engine: OpenEngine) -> None:
    """E93: `get_if_exists` gives a dying actor as well; whoever opens gets living ones."""
    import ray

    running = open_engine()
    before = {role: answer["pid"] for role, answer in cluster.status(running.handle).items()}

    again = cluster.ensure(running.settings, running.handle.spec.store_url)
    assert {role: answer["pid"] for role, answer in cluster.status(again).items()} == before

    name = running.handle.spec.actor_name("TaskHolder")
    ray.kill(ray.get_actor(name, namespace="gobpm"), no_restart=True)
    os.kill(before["TimerHolder"], signal.SIGKILL)
    cluster.ensure(running.settings, running.handle.spec.store_url)

    after = {role: answer["pid"] for role, answer in cluster.status(again).items()}
    assert after["ResidencySupervisor"] == before["ResidencySupervisor"]
    assert after["TaskHolder"] != before["TaskHolder"]
    assert after["TimerHolder"] != before["TimerHolder"]


# ----------------------------------------------------------------------------------------------- stopping, refusing


def test_stopping_leaves_no_actor_and_every_instance_where_it_was(open_engine: OpenEngine, tmp_path: Path) -> None:
    """N11, promise 1: the actors go, the instances stay; opened again they go on."""
    running = open_engine()
    running.operations.deploy(reply_process())
    started = running.operations.start("reply", {"reference": "R-stop"})
    gate = tmp_path / "gate"
    running.operations.register("stopped", wait_for_file(gate))
    running.operations.deploy(work_process("stopped", idempotent=True))
    working = running.operations.start("work-stopped")
    wait_until(lambda: take_census(running.store).resident == 1, "one works", within_s=20)
    wait_until(lambda: running.operations.inspect(started.instance_id).waits, "one waits")
    assert supervisor_is_alive(running.store, time.time_ns() // 1_000_000)

    cluster.stop(running.handle, grace_ms=500)

    wait_until(lambda: live_in_ray(running.settings.engine_id) == [], "Ray lists nobody of this engine", within_s=10)
    assert not supervisor_is_alive(running.store, time.time_ns() // 1_000_000)
    assert actor_rows(running.store) == []
    assert running.operations.inspect(started.instance_id).state == "waiting"
    running.operations.publish("reply", key="R-stop")
    gate.touch()

    cluster.ensure(running.settings, running.handle.spec.store_url, signing_key=running.handle.spec.signing_key)

    assert running.operations.wait(started.instance_id, timeout=25).state == "completed"
    assert running.operations.wait(working.instance_id, timeout=25).state == "completed"


def test_an_engine_id_that_runs_on_another_store_is_refused(engine: RunningEngine, tmp_path: Path) -> None:
    """D16: one clear line, and the running engine is left alone."""
    before = cluster.status(engine.handle)

    with pytest.raises(InvalidSetting, match=rf"engine_id {engine.settings.engine_id}.*another store"):
        cluster.ensure(engine.settings, f"unix://{tmp_path}/another.sock")

    assert cluster.status(engine.handle) == before


def test_a_password_is_in_no_repr() -> None:
    """Issue 2: a password never stands in names, logs or reprs."""
    spec = EngineSpec(Settings(), "redis://user:s3cret@192.0.2.1:6379/0", b"signing")

    assert "s3cret" not in repr(spec)
    assert "signing" not in repr(spec).replace("signing_key", "")
    assert "s3cret" not in spec.actor_name("TimerHolder")
    twin = EngineSpec(Settings(), "redis://user:other@192.0.2.1:6379/0")
    assert spec.store_digest == twin.store_digest


# ------------------------------------------------------------------------------------------------------------ support


def wait_until_heartbeat(running: RunningEngine) -> int:
    """The process id that the newest heartbeat names."""
    wait_until(lambda: read_heartbeat(running.store) is not None, "the supervisor's heartbeat")
    heartbeat = read_heartbeat(running.store)
    assert heartbeat is not None
    return heartbeat.pid


def wait_for_file(path: Path):
    """Work that takes until the file is there; made inside a function, so that it travels by value."""
    name = str(path)

    def work(inputs):
        import os
        import time

        while not os.path.exists(name):
            time.sleep(0.02)
        return {"done": True}

    return work


def count_and_wait(visits: Path, gate: Path):
    """Work that notes each visit and takes until the gate is there."""
    name, until = str(visits), str(gate)

    def work(inputs):
        import os
        import time

        with open(name, "a", encoding="ascii") as file:
            file.write("x")
        while not os.path.exists(until):
            time.sleep(0.02)
        return {}

    return work
