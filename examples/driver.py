"""A driver script: attach to the Ray cluster around, do business, leave; come back later to the same instances.

    ray job submit --working-dir . -- python examples/driver.py
    ray job submit --working-dir . -- python examples/driver.py --attach

The first run deploys a process, starts a few orders, receives the payments of half of them and leaves: the others
wait, as records in the store, while no driver and no actor of theirs lives. The second run finds them there and
receives their payments.

A Ray job runs in a copy of its working directory that is gone some day, so the embedded store gets a home beside it:
GOBPM_HOME, else `~/.gobpm`. GOBPM_REDIS_URL names a store of your own instead.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gobpm_ray import Engine, ProcessBuilder
from gobpm_ray.errors import GobpmError
from gobpm_ray.model.elements import Process

PROCESS = "driver-order"
PATIENCE_S = 60.0


def order_process() -> Process:
    """Reserve the goods, wait for the payment of this order, ship; after ten days without payment the order is
    cancelled."""
    order = ProcessBuilder(PROCESS, name="Order")
    order.start("ordered").service_task("reserve", topic="reserve goods", name="Reserve the goods").receive_task(
        "payment", message="payment received", key="=number", name="Wait for the payment"
    ).service_task("ship", topic="ship goods", name="Ship the goods").end("shipped")
    order.boundary("payment", timer="P10D").end("cancelled")
    return order.build()


def reserve(inputs: dict[str, Any]) -> dict[str, Any]:
    """Runs in an actor on some node of the cluster, which has no copy of this script: it travels by value, signed."""
    return {"shelf": f"{chr(ord('A') + inputs['item'] % 26)}-{inputs['item']}"}


def ship(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"parcel": f"{inputs['number']} from {inputs['shelf']}"}


def first_visit(engine: Engine, orders: int) -> list[str]:
    """Orders are started, and half of them paid; returns their instances' ids."""
    engine.register("reserve goods", reserve)
    engine.register("ship goods", ship)
    engine.deploy(order_process())
    run = f"{int(time.time()):x}"
    started = [
        engine.start(PROCESS, {"number": f"{run}-{item}", "item": item}, id=f"order-{run}-{item}").instance_id
        for item in range(1, orders + 1)
    ]
    for instance_id in started:
        engine.wait(instance_id, PATIENCE_S, until="waiting")
    return started


def pay(engine: Engine, instance_ids: list[str]) -> None:
    """The payments come in, and the orders are shipped."""
    for instance_id in instance_ids:
        number = engine.inspect(instance_id).variables["number"]
        engine.publish("payment received", number, {"paid": True})
    for instance_id in instance_ids:
        engine.wait(instance_id, PATIENCE_S)


def summary(engine: Engine, console: Console) -> None:
    table = Table("order", "state", "waits for", "parcel", title=f"orders of engine {engine.settings.engine_id}")
    for order in engine.list_instances(process_id=PROCESS):
        waits = ", ".join(wait.node for wait in order.waits)
        table.add_row(order.instance_id, order.state, waits, str(order.variables.get("parcel", "")))
    console.print(table)
    top = engine.top()
    console.print(f"{top.waiting} wait, {top.resident} resident, {top.actors} InstanceActors live")


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--attach", action="store_true", help="come back to the orders of an earlier run")
    options.add_argument("--orders", type=int, default=4, help="orders to start (default: 4)")
    options.add_argument("--address", default="auto", help="the Ray cluster (default: the one around)")
    options.add_argument("--engine", default="driver", help="the engine's id on its store and cluster")
    chosen = options.parse_args()

    home = None
    if not os.environ.get("GOBPM_REDIS_URL"):
        home = Path(os.environ.get("GOBPM_HOME") or Path.home() / ".gobpm")
    console = Console(width=100)
    with Engine.open(ray=chosen.address, home=home, engine_id=chosen.engine) as engine:
        if chosen.attach:
            waiting = [order.instance_id for order in engine.list_instances(process_id=PROCESS, state="waiting")]
            console.print(f"came back to {len(waiting)} waiting orders")
            pay(engine, waiting)
        else:
            orders = first_visit(engine, chosen.orders)
            pay(engine, orders[: len(orders) // 2])
        summary(engine, console)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GobpmError as failure:
        sys.exit(f"driver: {failure}")
