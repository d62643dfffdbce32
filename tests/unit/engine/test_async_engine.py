"""The engine for asyncio programs: the same calls, awaited."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from gobpm_ray import AsyncEngine, Engine, ProcessBuilder
from gobpm_ray.errors import EngineClosed, UnknownProcess


def approval() -> ProcessBuilder:
    builder = ProcessBuilder("approval")
    builder.start().user_task("approve").end("end")
    return builder


def test_an_instance_is_started_completed_and_awaited() -> None:
    async def main() -> None:
        async with await AsyncEngine.open(None, clock="virtual") as engine:
            await engine.deploy(approval())
            started = await engine.start("approval", {"a": 1})
            (task,) = await engine.tasks()
            await engine.complete(task.id, {"b": 2})
            view = await engine.wait(started.instance_id)
            assert view.variables == {"a": 1, "b": 2}
            with pytest.raises(UnknownProcess):
                await engine.start("nope")

    asyncio.run(main())


def test_a_wait_leaves_the_loop_free() -> None:
    async def main() -> None:
        async with await AsyncEngine.open(None) as engine:
            await engine.deploy(approval())
            started = await engine.start("approval")
            waiting = asyncio.create_task(engine.wait(started.instance_id, 30))
            await engine.wait(started.instance_id, 30, until="waiting")
            assert not waiting.done()
            await engine.complete("approve")
            assert (await waiting).state == "completed"

    asyncio.run(main())


def test_a_closed_engine_answers_nothing() -> None:
    """R28."""

    async def main() -> None:
        engine = await AsyncEngine.open(None, clock="virtual")
        await engine.close()
        await engine.close()
        assert engine.closed
        with pytest.raises(EngineClosed):
            await engine.tasks()

    asyncio.run(main())


def test_every_public_method_is_there() -> None:
    own = {name for name in dir(Engine) if not name.startswith("_") and inspect.isfunction(getattr(Engine, name))}
    missing = own - {name for name in dir(AsyncEngine) if not name.startswith("_")}
    assert missing == set()
