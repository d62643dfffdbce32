"""Named places where an operating-system process may die: each durable boundary of the engine has one on either side.

Tests arm a hook that raises, kills its own process, or counts; `reached` is one comparison while nothing is armed. It
knows names and what is durable at each. It refuses to be armed in production: `arm` wants the tests' own switch, a
module that is no part of the installed packages and that nothing but a crash test imports.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from gobpm_ray.errors import BrokenInvariant

SWITCH: Final = "tests.crash.switch"
"""Imported by whoever means to crash. A wheel holds no `tests`, so no configuration, variable or call can arm there."""

SCRIPTS: Final = (
    "abandon",
    "birth",
    "claim",
    "clock",
    "commit",
    "data_drop",
    "data_put",
    "deliver",
    "deploy",
    "expire",
    "fail",
    "fetch",
    "fire",
    "fire_start",
    "hold",
    "job_fetch",
    "job_report",
    "job_wake",
    "load",
    "publish",
    "reconcile",
    "release_dead",
    "renew",
    "replay",
    "route",
    "start",
    "suspend",
    "sweep",
    "task_complete",
    "task_owner",
    "unclaim",
)
"""Calls of the store that change something (or, `load` and `fetch`, hand something out under a lease)."""

BEFORE: Final = "store.before."
"""`store.before.commit`: the store has not been asked."""
AFTER: Final = "store.after."
"""`store.after.commit`: it is done and durable, and the caller has not seen the answer."""

POINTS: Final[Mapping[str, str]] = MappingProxyType(
    {f"{BEFORE}{script}": f"{script} has not been sent" for script in SCRIPTS}
    | {f"{AFTER}{script}": f"{script} is done, its answer unseen" for script in SCRIPTS}
    | {
        # --- an instance's actor
        "life.registered": "the actor's row says that it lives",
        "host.claimed": "the lease is ours, nothing has been read from the claim",
        "hosting.hydrated": "the instance is rebuilt from its checkpoint",
        "hosting.reloaded": "the whole instance was read after a part of it was not enough",
        "hosting.recovering": "open effects of a dead host are judged, nothing is written",
        "hosting.recovered": "their seals or new attempts are committed",
        "hosting.fired": "the step is computed, nothing is written",
        "hosting.drafted": "the commit is made and not sent",
        "hosting.sent": "the commit is on its way, the next instance is in hand",
        "hosting.committed": "the step is durable",
        "hosting.released": "the lease is released; the next claim may be in hand",
        "hosting.intent_committed": "an effect's intent is durable, the effect has not begun",
        "effect.begun": "the callable is about to run",
        "effect.done": "the callable has ended, nobody knows its result",
        "hosting.reported": "its result is at the host, nothing of it is durable",
        "hosting.fetched": "triggers that came meanwhile are in memory",
        "hosting.abandoning": "a wake failed, its lease is still held",
        "hosting.abandoned": "the lease went back with everything unconsumed",
        "lease.renewing": "the lease is about to be renewed (a thread of its own)",
        "lease.renewed": "the lease is renewed (a thread of its own)",
        "life.leaving": "nothing is hosted, the actor's row still stands",
        # --- holders
        "holder.ordered": "the order lease of the kind is held",
        "message.listed": "pending rows are in memory, none is folded",
        "message.partly_folded": "a broadcast has reached some of its listeners",
        "message.folded": "the row is folded, the pass goes on",
        "timer.listed": "due deadlines are in memory, none has fired",
        "timer.fired": "due deadlines have fired",
        "timer.following": "the next occurrence of a start timer is computed, nothing is written",
        "timer.started": "a start timer has started its instance",
        "task.swept": "expired leases went back to ready",
        "task.expired": "what was past its time is gone",
        # --- the supervisor
        "supervisor.row_written": "an actor's row is durable, the actor is not made",
        "supervisor.created": "the actor is being made",
        "supervisor.released": "a dead actor's leases are released, its row still stands",
        "supervisor.buried": "a dead actor's row is gone",
    }
)

Hook = Callable[[str], None]

_hook: Hook | None = None


def reached(point: str, script: str = "") -> None:
    """Execution is at the point (`point + script` is its name, joined only when somebody listens)."""
    if _hook is not None:
        _hook(point + script)


def arm(hook: Hook | None) -> None:
    """Each point reached from now on is told to `hook`; None disarms. Refused unless the tests' switch is on."""
    global _hook
    if hook is not None and not getattr(sys.modules.get(SWITCH), "ARMED_BY_TESTS", False):
        raise BrokenInvariant("crash points belong to the crash tests: they cannot be armed in a running engine")
    _hook = hook
