"""2. A service task is a Python function, registered under the task's topic.

The function gets the variables (or the mapped inputs) and returns values; they become variables.
"""

from __future__ import annotations

from typing import Any

from gobpm_ray import Engine, ProcessBuilder


def price(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"total": inputs["pieces"] * 3}


def test_work_is_a_function(engine: Engine) -> None:
    order = ProcessBuilder("order")
    order.start().service_task("price", topic="pricing").end()

    engine.register("pricing", price)
    engine.deploy(order)

    started = engine.start("order", {"pieces": 4})
    assert engine.wait(started.instance_id).variables == {"pieces": 4, "total": 12}


def test_without_a_function_it_is_a_job_for_a_worker(engine: Engine) -> None:
    order = ProcessBuilder("order")
    order.start().service_task("price", topic="pricing").end()
    engine.deploy(order)

    started = engine.start("order", {"pieces": 4})
    (job,) = engine.jobs(topic="pricing")
    engine.complete_job(job.id, {"total": 12})
    assert engine.wait(started.instance_id).variables["total"] == 12
