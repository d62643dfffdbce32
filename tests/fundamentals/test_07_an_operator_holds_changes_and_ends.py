"""7. An operator may hold an instance (it keeps what comes), change its variables, and end it."""

from __future__ import annotations

from gobpm_ray import Engine, ProcessBuilder


def test_an_operator_holds_changes_and_ends(engine: Engine) -> None:
    order = ProcessBuilder("order")
    order.start().receive_task("paid", message="Payment").user_task("ship").end()
    engine.deploy(order)
    instance_id = engine.start("order").instance_id

    engine.suspend(instance_id)
    engine.publish("Payment")
    assert engine.inspect(instance_id).state == "suspended"

    engine.resume(instance_id)
    assert [task.node for task in engine.tasks()] == ["ship"]

    engine.set(instance_id, {"address": "Rathausplatz 1"})
    engine.cancel(instance_id)
    view = engine.inspect(instance_id)
    assert (view.state, view.variables) == ("terminated", {"address": "Rathausplatz 1"})
