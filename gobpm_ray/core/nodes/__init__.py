"""One file per family of flow nodes, the same verbs in each (`gobpm_ray.core.nodes.family`).

A new family is a class here and a row in `FAMILIES`; the loop in `gobpm_ray.core.advance` does not know any of them.
"""

from __future__ import annotations

from gobpm_ray.core.nodes.boundary import Boundary
from gobpm_ray.core.nodes.catches import Catch
from gobpm_ray.core.nodes.ends import End
from gobpm_ray.core.nodes.event_gateway import EventGateway
from gobpm_ray.core.nodes.exclusive import Exclusive
from gobpm_ray.core.nodes.family import Family
from gobpm_ray.core.nodes.parallel import Parallel
from gobpm_ray.core.nodes.passing import Passing
from gobpm_ray.core.nodes.scripts import Script
from gobpm_ray.core.nodes.subprocess import EmbeddedSubProcess
from gobpm_ray.core.nodes.throws import Throw
from gobpm_ray.core.nodes.user import User
from gobpm_ray.core.nodes.work import Work
from gobpm_ray.model.elements import (
    AbstractTask,
    BoundaryEvent,
    CatchEvent,
    EndEvent,
    EventBasedGateway,
    ExclusiveGateway,
    ParallelGateway,
    ReceiveTask,
    ScriptTask,
    StartEvent,
    SubProcess,
    ThrowEvent,
    UserTask,
    WorkTask,
)

_catch = Catch()
_passing = Passing()

FAMILIES: dict[type, Family] = {
    StartEvent: _passing,
    AbstractTask: _passing,
    EndEvent: End(),
    CatchEvent: _catch,
    ReceiveTask: _catch,
    ThrowEvent: Throw(),
    BoundaryEvent: Boundary(),
    WorkTask: Work(),
    ScriptTask: Script(),
    UserTask: User(),
    ExclusiveGateway: Exclusive(),
    ParallelGateway: Parallel(),
    EventBasedGateway: EventGateway(),
    SubProcess: EmbeddedSubProcess(),
}
"""Element class -> the family that executes it."""

__all__ = ["FAMILIES", "Family"]
