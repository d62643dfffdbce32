"""A call that runs in another process of the cluster, as its host sees it: what is sent, and what can come back.

The port between effects and Ray (`actors.ray_tasks`). It knows what crosses over and refuses to know how; `perform` is
what runs on the other side, and needs nothing of an engine but the callable's row.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from gobpm_ray.checkpoint.codec import dump
from gobpm_ray.errors import BpmnError, Escalation, GobpmError
from gobpm_ray.runtime.callables import EffectContext, load_row, takes_context
from gobpm_ray.runtime.limits import checked_result

RESULT = "result"
"""The variable of a result that is no table of values."""
LONGEST_STACK = 8_000


@dataclass(frozen=True, slots=True)
class Errand:
    """Everything that the other side needs."""

    topic: str
    row: bytes
    """Of the callable: its module is imported, or its code loaded, where it runs and nowhere else."""
    inputs: Mapping[str, Any] = field(repr=False)
    """Secrets included: an errand that is quoted does not tell them."""
    context: EffectContext
    most: int
    """Bytes that the result may have; 0: any number, for only what output mappings take of it becomes variables."""


@dataclass(frozen=True, slots=True)
class Told:
    """What became of it. `lost`: nobody knows whether it was done, for the process or node that did it is gone.
    `unavailable`: it was never begun, for want of what it needs."""

    kind: Literal["done", "failed", "error", "escalation", "lost", "unavailable"]
    values: dict[str, Any]
    code: str = ""
    cause: str = ""
    stack: str = ""


Ended = Callable[[Told], None]
Cancel = Callable[[], None]


class Elsewhere(Protocol):
    def send(
        self, errand: Errand, options: Mapping[str, Any], name: str, ended: Ended, lacking: Callable[[str], None]
    ) -> Cancel:
        """The errand is on its way, and `ended` is called once, from whatever thread; the answer cancels it. `lacking`
        is told what it cannot begin for want of, '' when that has come. A GobpmError when it cannot even be sent."""


def perform(errand: Errand, key: bytes | None) -> Told:
    """The errand is done, in this process. Nothing is raised: what an exception says may not be fit to be sent back."""
    try:
        work = load_row(errand.row, key, errand.topic)
        arguments = (dict(errand.inputs), errand.context) if takes_context(work) else (dict(errand.inputs),)
        result = work(*arguments)
        if inspect.iscoroutine(result):
            result = asyncio.run(_awaited(result))
    except Exception as error:
        return told_of(error)
    values = values_of(result)
    if errand.most:
        try:
            checked_result(dump(values, f"result of '{errand.context.node}'"), errand.most, errand.context.node)
        except GobpmError as refused:
            return Told("failed", {}, cause=str(refused))
    return Told("done", values)


def values_of(result: object) -> dict[str, Any]:
    return {} if result is None else dict(result) if isinstance(result, dict) else {RESULT: result}


def told_of(error: BaseException) -> Told:
    """What an exception means: BPMN errors and escalations are outcomes that the model knows, all else is a failure."""
    cause = " ".join(str(error).split())
    if isinstance(error, BpmnError | Escalation):
        kind: Literal["error", "escalation"] = "error" if isinstance(error, BpmnError) else "escalation"
        try:
            dump(error.values, f"values of {kind} '{error.code}'")
        except GobpmError as unstorable:
            return Told("failed", {}, cause=str(unstorable))
        return Told(kind, dict(error.values), error.code, cause)
    stack = "".join(traceback.format_exception(error))[-LONGEST_STACK:]
    return Told("failed", {}, cause=" ".join(f"{type(error).__name__}: {error}".split()), stack=stack)


async def _awaited(work: Coroutine[Any, Any, object]) -> object:
    return await work
