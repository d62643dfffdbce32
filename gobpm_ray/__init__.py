"""A BPMN 2.0 engine on Ray: an instance that waits costs nothing and wakes exactly once.

`import gobpm_ray` is cheap: what is named here is imported when it is first used, and Ray and Redis when an engine is
opened.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gobpm_ray.engine.aio import AsyncEngine
    from gobpm_ray.engine.engine import Engine
    from gobpm_ray.engine.operations import Operations
    from gobpm_ray.errors import BpmnError, Escalation
    from gobpm_ray.model.builder import ProcessBuilder, Stored
    from gobpm_ray.secret import Secret
    from gobpm_ray.settings import Settings
    from gobpm_ray.work.handlers import worker
    from gobpm_ray.work.worker import Worker

_HOMES = {
    "AsyncEngine": "gobpm_ray.engine.aio",
    "BpmnError": "gobpm_ray.errors",
    "Engine": "gobpm_ray.engine.engine",
    "Escalation": "gobpm_ray.errors",
    "Operations": "gobpm_ray.engine.operations",
    "ProcessBuilder": "gobpm_ray.model.builder",
    "Secret": "gobpm_ray.secret",
    "Settings": "gobpm_ray.settings",
    "Stored": "gobpm_ray.model.builder",
    "Worker": "gobpm_ray.work.worker",
    "worker": "gobpm_ray.work.handlers",
}

__all__ = [
    "AsyncEngine",
    "BpmnError",
    "Engine",
    "Escalation",
    "Operations",
    "ProcessBuilder",
    "Secret",
    "Settings",
    "Stored",
    "Worker",
    "worker",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
