"""1. A process is deployed, an instance is started, a person completes its task.

`deploy` takes a file, bytes or what a `ProcessBuilder` built. `start` answers with a receipt: the start is stored.
`inspect` shows where the instance stands. A task's outputs become variables.
"""

from __future__ import annotations

from gobpm_ray import Engine, ProcessBuilder


def test_a_process_waits_for_a_person(engine: Engine) -> None:
    holiday = ProcessBuilder("holiday")
    holiday.start("asked").user_task("approve", name="Approve the holiday").end("answered")
    engine.deploy(holiday)

    started = engine.start("holiday", {"days": 10}, business_key="ada-2026")
    view = engine.inspect(started.instance_id)
    assert view.state == "waiting"
    assert [token.node for token in view.tokens] == ["approve"]

    (task,) = engine.tasks()
    engine.complete(task.id, {"approved": True}, user="bob")

    view = engine.wait(started.instance_id)
    assert view.state == "completed"
    assert view.trace == ("asked", "approve", "answered")
    assert view.variables == {"days": 10, "approved": True}
