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
    from gobpm_ray.model.builder import ProcessBuilder
    from gobpm_ray.settings import Settings

_HOMES = {
    "AsyncEngine": "gobpm_ray.engine.aio",
    "Engine": "gobpm_ray.engine.engine",
    "Operations": "gobpm_ray.engine.operations",
    "ProcessBuilder": "gobpm_ray.model.builder",
    "Settings": "gobpm_ray.settings",
}

__all__ = ["AsyncEngine", "Engine", "Operations", "ProcessBuilder", "Settings"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
