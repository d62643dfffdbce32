"""Everything in the caller's process: turns until nothing moves, and nothing that looks like a release (D17)."""

from __future__ import annotations

import threading

from gobpm_ray.model.builder import ProcessBuilder
from gobpm_ray.runtime.driver import Driver
from gobpm_ray.runtime.programs import Programs
from tests.unit.runtime.desk import DAY, HOUR, Desk


def driven(desk: Desk) -> Driver:
    return Driver(
        desk.store, desk.settings, Programs(desk.store), desk.callables, [desk.messages, desk.timers, desk.tasks]
    )


def test_time_jumps_from_deadline_to_deadline_and_nothing_is_seen_to_release() -> None:
    """W19"""
    desk = Desk()
    process = ProcessBuilder("p")
    process.start().catch("short", timer="PT1S").catch("long", timer="P7D").end()
    desk.deploy(process)
    desk.start()
    driver = driven(desk)
    begin = desk.store.now()
    quiet = driver.drive()
    assert (quiet.quiet, quiet.next_deadline) == (True, begin + 1_000)
    assert driver.advance_to(begin + DAY).now == begin + DAY
    assert desk.waiting() == [("timer", "long")]
    driver.advance_to(begin + 8 * DAY)
    assert desk.status() == "completed"
    assert [fact["fact"] for fact in desk.facts()] == ["Started", "Completed"]
    assert driver.host.counters.dehydrated == 0
    driver.close()


def test_effects_run_in_the_callers_thread_and_in_order() -> None:
    seen: list[tuple[str, str]] = []

    def work(inputs: dict[str, object]) -> dict[str, object]:
        seen.append((str(inputs["who"]), threading.current_thread().name))
        return {}

    async def later(inputs: dict[str, object]) -> dict[str, object]:
        return {"async": True}

    desk = Desk({"topic": work, "later": later})
    process = ProcessBuilder("p")
    process.start().parallel("fork").service_task("a", "topic", inputs={"who": "a"}).end()
    process.at("fork").service_task("b", "topic", inputs={"who": "b"}).service_task("c", "later").end()
    desk.deploy(process)
    desk.start()
    driver = driven(desk)
    driver.drive()
    assert seen == [("a", threading.current_thread().name), ("b", threading.current_thread().name)]
    assert desk.variables()["async"] is True
    assert desk.status() == "completed"
    driver.close()


def test_work_that_completes_at_once_starts_no_thread() -> None:
    desk = Desk(auto_complete=True)
    process = ProcessBuilder("p")
    process.start().service_task("a").catch("wait", timer="PT1S").service_task("b").end()
    desk.deploy(process)
    desk.start()
    driver = driven(desk)
    before = set(threading.enumerate())
    driver.advance_to(desk.store.now() + HOUR)
    assert desk.status() == "completed"
    assert set(threading.enumerate()) == before
    driver.close()


def test_a_wake_that_fails_ends_the_drive_instead_of_spinning() -> None:
    desk = Desk()
    process = ProcessBuilder("p")
    process.start().catch("wait", timer="PT1H").end()
    desk.deploy(process)
    desk.start()
    driver = driven(desk)
    driver.drive()
    desk.store._instances["i"].parts["h"] = b"?"
    desk.store.set_clock(desk.store.now() + HOUR)
    quiet = driver.drive()
    assert not quiet.quiet
    assert "instance i: part 'h'" in str(driver.last_failure)
    driver.close()


def test_a_driver_outlives_any_number_of_hand_overs() -> None:
    desk = Desk(hand_over=False, max_handovers=1)
    process = ProcessBuilder("p")
    process.start().end()
    desk.deploy(process)
    for number in range(5):
        desk.start(instance_id=f"i{number}")
    driver = driven(desk)
    assert driver.drive().quiet
    assert len(desk.store.instances(ended=True)) == 5
    driver.close()
