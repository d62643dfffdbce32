"""What a called instance tells its caller: that it has ended, with which error, or an escalation on the way.

The caller is named by `InstanceState.caller` and told through the wait of its call activity, inside the commit that
ends the called instance: there is no moment at which the one has ended and the other will never hear of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gobpm_ray.core.state import ROOT
from gobpm_ray.core.step import Send

if TYPE_CHECKING:
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track

_SEPARATOR = "\x1e"
TERMINATED = "terminated"
"""The cause that says that the called instance was cancelled."""


def caller(instance_id: str, wait: str) -> str:
    """`InstanceState.caller` of what is called from this wait."""
    return f"{instance_id}{_SEPARATOR}{wait}"


def report_end(run: Run, outcome: Literal["completed", "terminated"], code: str, cause: str, values: object) -> None:
    """The caller's wait is answered with the final variables, or with the error's."""
    instance_id, _, wait = run.state.caller.partition(_SEPARATOR)
    final = dict(values) if isinstance(values, dict) else dict(run.state.scope(ROOT).variables)
    run.step.sends.append(
        Send(
            f"{run.state.id}:end",
            "child",
            to=instance_id,
            wait=wait,
            values=final,
            code=code,
            cause=TERMINATED if outcome == TERMINATED else cause,
        )
    )


def fail_to_caller(run: Run, code: str, values: dict[str, object], cause: str) -> None:
    """Nobody inside catches the error: the instance ends, and the error goes on at the call activity (BPMN 13.5.2)."""
    run.finish("completed", code, cause, values)


def escalate_to_caller(run: Run, track: Track, code: str, values: dict[str, object]) -> None:
    """Nobody inside catches the escalation: it goes on at the call activity, and so does the instance."""
    instance_id, _, wait = run.state.caller.partition(_SEPARATOR)
    # The same event may throw a message or signal as well, under its plain id.
    delivery = f"{run.state.id}:{track.id}:{track.node}:{track.visit}:^{code}"
    run.step.sends.append(Send(delivery, "escalation", to=instance_id, wait=wait, values=values, code=code))
