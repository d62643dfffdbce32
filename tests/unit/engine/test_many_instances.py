"""Many instances and tasks at once: holds, cancels and lists by what they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray import Engine, ProcessBuilder, Settings
from gobpm_ray.errors import InputError, TaskRefused


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open(store=None, clock="virtual", now="2026-01-01T00:00:00Z") as opened:
        work = ProcessBuilder("work")
        work.start().user_task(
            "do", assignee="=who", candidate_groups="=group", priority="=priority", due="=due", follow_up="=later"
        ).end()
        other = ProcessBuilder("other")
        other.start().user_task("look").end()
        opened.deploy(work, other)
        yield opened


def begin(engine: Engine, business_key: str = "", process: str = "work", **values: object) -> str:
    given = {"who": None, "group": None, "priority": None, "due": None, "later": None} | values
    return engine.start(process, given, business_key=business_key).instance_id


def states(engine: Engine) -> dict[str, str]:
    return {view.instance_id: view.state for view in engine.list_instances()}


def test_instances_are_held_and_let_go_by_what_they_are(engine: Engine) -> None:
    """D21, issue 5.8"""
    first, second, third = begin(engine, "A"), begin(engine, "B"), begin(engine, "A", "other")
    assert engine.suspend_all(business_key="A") == [first, third]
    assert engine.suspend_all(process_id="work") == [second]
    assert set(states(engine).values()) == {"suspended"}
    engine.complete(f"{first}/{engine.inspect(first).waits[0].id}")
    assert engine.status(first) == "suspended"
    assert engine.resume_all(process_id="work") == [first, second]
    assert states(engine) == {first: "completed", second: "waiting", third: "suspended"}
    assert engine.resume_all() == [third]


def test_instances_are_cancelled_by_what_they_are(engine: Engine) -> None:
    """R26, issue 5.8: also held ones, at once; nobody means all by saying nothing."""
    first, second, third = begin(engine, "A"), begin(engine, "B"), begin(engine, "A", "other")
    engine.suspend(first)
    with pytest.raises(InputError):
        engine.cancel_all()
    assert engine.cancel_all(state="suspended") == [first]
    assert engine.status(first) == "terminated"
    assert engine.cancel_all(process_id="work", business_key="A") == []
    assert engine.cancel_all(business_key="A") == [third]
    assert states(engine) == {first: "terminated", second: "waiting", third: "terminated"}


def test_variables_of_a_dehydrated_instance_are_set(engine: Engine) -> None:
    """Issue 5.8: it is woken for it and waits on."""
    instance = begin(engine)
    engine.set(instance, {"colour": "red"})
    assert engine.inspect(instance).variables["colour"] == "red"
    assert engine.inspect(instance).state == "waiting"


def test_tasks_are_listed_by_person_process_variable_and_dates(engine: Engine) -> None:
    """Issue 5.5"""
    mine = begin(engine, who="ann", colour="red", due="PT1H")
    ours = begin(engine, group="crew", colour="blue", due="PT3H", later="PT1M")
    anyone = begin(engine, process="other")
    now = engine.now()

    def found(**filters: object) -> list[str]:
        return [task.instance_id for task in engine.tasks(**filters)]  # type: ignore[arg-type]

    assert found() == [mine, ours, anyone]
    assert found(user="ann") == [mine, anyone]
    assert found(groups=["crew"]) == [ours, anyone]
    assert found(process_id="other") == [anyone]
    assert found(variables={"colour": "red"}) == [mine]
    assert found(variables={"colour": "green"}) == []
    assert found(due_before_ms=now + 2 * 3_600_000) == [mine]
    assert found(follow_up_before_ms=now + 3_600_000) == [ours]
    assert found(due_before_ms=now + 2 * 3_600_000, user="bob") == []


def test_tasks_are_ordered_by_age_urgency_or_due_date(engine: Engine) -> None:
    """Issue 5.5"""
    calm = begin(engine, priority=10, due="PT1H")
    plain = begin(engine)
    urgent = begin(engine, priority=90, due="PT2H")
    orders = {order: [task.instance_id for task in engine.tasks(order=order)] for order in ("age", "priority", "due")}
    assert orders == {"age": [calm, plain, urgent], "priority": [urgent, plain, calm], "due": [calm, urgent, plain]}


def test_a_task_is_reassigned_and_its_new_owner_completes_it(engine: Engine) -> None:
    """H57"""
    instance = begin(engine, who="ann")
    engine.reassign("do", "bob")
    with pytest.raises(TaskRefused):
        engine.complete("do", user="ann")
    assert engine.task("do").owner == "bob"
    engine.complete("do", user="bob")
    assert engine.status(instance) == "completed"


def test_strictness_is_a_setting_that_a_completion_may_overrule() -> None:
    """H58"""
    with Engine.open(store=None, clock="virtual", settings=Settings(strict_tasks=True)) as engine:
        process = ProcessBuilder("p")
        process.start().user_task("do").end()
        engine.deploy(process)
        engine.start("p")
        engine.start("p")
        with pytest.raises(TaskRefused):
            engine.complete("do", user="ann")
        engine.complete("do", user="ann", strict=False)
        engine.claim("do", "ann")
        engine.complete("do", user="ann")
        assert engine.tasks() == []


def test_owner_and_eligibility_survive_releases_and_restarts(engine: Engine) -> None:
    """X8, H58: frozen when it was created, whatever the variables become."""
    instance = begin(engine, group="crew")
    engine.claim("do", "bob", ["crew"])
    engine.set(instance, {"group": "others"})
    task = engine.task("do")
    assert (task.owner, task.groups) == ("bob", ("crew",))
    engine.unclaim("do")
    with pytest.raises(TaskRefused):
        engine.complete("do", user="eve", groups=["others"])
