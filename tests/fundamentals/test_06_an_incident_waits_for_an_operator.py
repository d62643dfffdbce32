"""6. What goes wrong in one instance stays there: an incident, with its cause, that an operator retries or resolves."""

from __future__ import annotations

from typing import Any

from gobpm_ray import Engine, ProcessBuilder


def test_an_incident_waits_for_an_operator(engine: Engine) -> None:
    paper = {"left": 0}

    def print_label(_inputs: dict[str, Any]) -> dict[str, Any]:
        if not paper["left"]:
            raise RuntimeError("no paper")
        return {"printed": True}

    parcel = ProcessBuilder("parcel")
    parcel.start().service_task("label", topic="printer").end()
    engine.register("printer", print_label)
    engine.deploy(parcel)
    instance_id = engine.start("parcel").instance_id

    (incident,) = engine.incidents()
    assert (incident.node, "no paper" in incident.cause) == ("label", True)

    paper["left"] = 1
    engine.retry(instance_id, "label")
    assert engine.inspect(instance_id).variables == {"printed": True}
