"""9. `AsyncEngine` is the same engine for asyncio programs."""

from __future__ import annotations

import asyncio

from gobpm_ray import AsyncEngine, ProcessBuilder


def test_the_same_in_asyncio() -> None:
    order = ProcessBuilder("order")
    order.start().user_task("ship").end()

    async def main() -> str:
        async with await AsyncEngine.open(store=None, clock="virtual") as engine:
            await engine.deploy(order)
            started = await engine.start("order")
            await engine.complete("ship")
            return (await engine.wait(started.instance_id)).state

    assert asyncio.run(main()) == "completed"
