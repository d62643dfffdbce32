"""3. A gateway chooses a path by a FEEL condition; the default path is for everything else."""

from __future__ import annotations

import pytest

from gobpm_ray import Engine, ProcessBuilder


@pytest.mark.parametrize(("amount", "way"), [(50, "cheap"), (5_000, "dear")])
def test_a_path_is_chosen(engine: Engine, amount: int, way: str) -> None:
    order = ProcessBuilder("order")
    order.start("start").exclusive("which")
    order.at("which").when("amount > 100").end("dear")
    order.at("which").otherwise().end("cheap")
    engine.deploy(order)

    started = engine.start("order", {"amount": amount})
    assert engine.wait(started.instance_id).trace == ("start", "which", way)


def test_two_paths_run_side_by_side_and_join(engine: Engine) -> None:
    order = ProcessBuilder("order")
    order.start().parallel("fork").user_task("pack").parallel("join").end("sent")
    order.at("fork").user_task("bill").to("join")
    engine.deploy(order)

    started = engine.start("order")
    engine.complete("bill")
    assert engine.inspect(started.instance_id).state == "waiting"
    engine.complete("pack")
    assert engine.inspect(started.instance_id).state == "completed"
