"""What becomes of an errand that Ray was asked for, however Ray's own answer comes in between.

Ray cancels and answers from threads of its own, so the order is played here; that Ray does answer so is shown by
`tests/integration/test_scarce_resources.py` on a real cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ray.exceptions import TaskCancelledError

from actors import ray_tasks
from actors.ray_tasks import RayTasks
from gobpm_ray.runtime.callables import EffectContext
from gobpm_ray.runtime.elsewhere import Errand, Told
from gobpm_ray.runtime.scarce import Scarcity

Answer = Callable[[Told | None, BaseException | None], None]


class Prompt:
    """A Ray task that is answered within its cancellation: as early as Ray's thread can be."""

    made: Prompt

    def __init__(self, *_: object) -> None:
        Prompt.made = self

    def when_ended(self, told: Answer) -> None:
        self.answer = told

    def cancel(self, *, force: bool) -> None:
        self.answer(None, TaskCancelledError())


@pytest.fixture
def now() -> list[float]:
    return [0.0]


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> RayTasks:
    monkeypatch.setattr(ray_tasks, "RayTask", Prompt)
    made = RayTasks(None, patience_s=0)
    made._scarcity = Scarcity(lambda: [{"CPU": 2}], 0, monotonic=lambda: now[0], threaded=False)
    return made


def sent(tasks: RayTasks, ended: list[Told]) -> Callable[[], None]:
    context: Any = EffectContext.__new__(EffectContext)
    errand = Errand("topic", b"", {}, context, 0)
    return tasks.send(errand, {"resources": {"far": 1}}, "work", ended.append, lambda _what: None)


def test_work_that_was_given_up_was_never_begun_however_soon_its_cancellation_is_answered(
    tasks: RayTasks, now: list[float]
) -> None:
    """N10: it is no lost attempt that has to be sealed; and `ended` is called once."""
    ended: list[Told] = []
    sent(tasks, ended)
    now[0] = 2.0
    tasks._scarcity.look()
    assert [told.kind for told in ended] == ["unavailable"]


def test_what_was_done_before_patience_ended_stays_done(tasks: RayTasks, now: list[float]) -> None:
    ended: list[Told] = []
    sent(tasks, ended)
    Prompt.made.answer(Told("done", {"x": 1}), None)
    now[0] = 2.0
    tasks._scarcity.look()
    assert [told.kind for told in ended] == ["done"]


def test_work_that_its_host_cancels_is_told_once(tasks: RayTasks, now: list[float]) -> None:
    ended: list[Told] = []
    cancel = sent(tasks, ended)
    cancel()
    now[0] = 2.0
    tasks._scarcity.look()
    assert [told.kind for told in ended] == ["lost"]
