"""One file per family of flow nodes, the same verbs in each (`gobpm_ray.core.nodes.family`).

A new family is a class here and a row in `FAMILIES`; the loop in `gobpm_ray.core.advance` does not know any of them.
"""

from __future__ import annotations

from gobpm_ray.core.nodes.adhoc import AdHoc
from gobpm_ray.core.nodes.boundary import Boundary
from gobpm_ray.core.nodes.calls import Call
from gobpm_ray.core.nodes.catches import Catch
from gobpm_ray.core.nodes.complex import Complex
from gobpm_ray.core.nodes.custom import register, registered
from gobpm_ray.core.nodes.decision import Decision
from gobpm_ray.core.nodes.ends import End
from gobpm_ray.core.nodes.event_gateway import EventGateway
from gobpm_ray.core.nodes.exclusive import Exclusive
from gobpm_ray.core.nodes.family import Family
from gobpm_ray.core.nodes.inclusive import Inclusive
from gobpm_ray.core.nodes.iteration import Iteration
from gobpm_ray.core.nodes.multi_instance import MultipleInstances
from gobpm_ray.core.nodes.parallel import Parallel
from gobpm_ray.core.nodes.passing import Passing
from gobpm_ray.core.nodes.scripts import Script
from gobpm_ray.core.nodes.standard_loop import Looping
from gobpm_ray.core.nodes.starts import Start
from gobpm_ray.core.nodes.subprocess import EmbeddedSubProcess
from gobpm_ray.core.nodes.throws import Throw
from gobpm_ray.core.nodes.user import User
from gobpm_ray.core.nodes.work import Work
from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import (
    AbstractTask,
    BoundaryEvent,
    CallActivity,
    CatchEvent,
    ComplexGateway,
    CustomTask,
    DecisionTask,
    EndEvent,
    EventBasedGateway,
    ExclusiveGateway,
    FlowNode,
    InclusiveGateway,
    MultiInstance,
    ParallelGateway,
    ReceiveTask,
    ScriptTask,
    StandardLoop,
    StartEvent,
    SubProcess,
    ThrowEvent,
    UserTask,
    WorkTask,
)

_catch = Catch()
_passing = Passing()

FAMILIES: dict[type, Family] = {
    StartEvent: Start(),
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
    CallActivity: Call(),
    InclusiveGateway: Inclusive(),
    ComplexGateway: Complex(),
    DecisionTask: Decision(),
}
"""Element class -> the family that executes it."""

SUB_PROCESSES: dict[str, Family] = {"adhoc": AdHoc()}
"""Kinds of sub-process with a family of their own."""

ITERATIONS: dict[type, Iteration] = {StandardLoop: Looping(), MultiInstance: MultipleInstances()}
"""Kind of loop -> the family that executes an activity's rounds."""


def family_of(element: FlowNode) -> Family:
    """The family of the element without its loop. InvalidModel for an element that nobody has registered."""
    own: Family | None = None
    if isinstance(element, SubProcess):
        own = SUB_PROCESSES.get(element.kind)
    elif isinstance(element, CustomTask):
        own = registered(element.element)
        if own is None:
            raise InvalidModel(f"no family is registered for element '{element.element}' of '{element.id}'")
    return own or FAMILIES[type(element)]


__all__ = ["FAMILIES", "ITERATIONS", "Family", "family_of", "register"]
