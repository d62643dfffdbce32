"""Elements of the user's own: families registered by name, beside those of BPMN.

A family answers the verbs of `gobpm_ray.core.nodes.family`; one that has `dehydratable` opts in to release, and nothing
else needs to know it (D2). It must be registered wherever its instances are hosted: by an import of the module that
calls `register`, or by the engine (`Operations.register_element`), which names the class for every node.
"""

from __future__ import annotations

import importlib

from gobpm_ray.core.nodes.family import Family
from gobpm_ray.errors import InvalidModel

_families: dict[str, Family] = {}


def register(element: str, family: Family) -> None:
    """From now on the family executes elements of this name in this os process; a later one takes its place, for what
    is compiled from then on."""
    if not element or not isinstance(family, Family):
        raise InvalidModel(f"element {element!r}: expected a name and an instance of a Family, got {family!r:.80}")
    _families[element] = family


def registered(element: str) -> Family | None:
    return _families.get(element)


def imported(reference: str) -> Family:
    """The family of `module:Class`, made. InvalidModel names what is missing."""
    module, colon, name = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), name) if colon else None
    except (ImportError, AttributeError, ValueError) as missing:
        raise InvalidModel(f"element family {reference!r}: cannot be imported: {missing}") from missing
    if not (isinstance(found, type) and issubclass(found, Family)):
        raise InvalidModel(f"element family {reference!r}: expected module:Class of a Family")
    return found()
