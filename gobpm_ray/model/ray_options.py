"""Options of the Ray task that a service or send task runs as: which there are, and what each may be.

Written in a model as attributes, or given to the builder as Python values; kept as JSON text, name by name, because
they are nobody's business between the model and Ray. What a cluster has is Ray's to know: a task that asks for what no
node has waits, as long as its time-out lets it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from gobpm_ray.errors import InvalidModel

NAMES = (
    "num_cpus",
    "num_gpus",
    "memory",
    "resources",
    "accelerator_type",
    "runtime_env",
    "scheduling",
    "label_selector",
)
_NUMBERS = ("num_cpus", "num_gpus")
_TABLES = ("resources", "runtime_env", "label_selector")
_UNITS = {"": 1, "K": 1_000, "M": 1_000**2, "G": 1_000**3, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*(K|M|G|Ki|Mi|Gi|)B?")


def ray_options(given: Mapping[str, object], where: str) -> tuple[tuple[str, str], ...]:
    """The options in their kept form. InvalidModel names what Ray does not know or could not use."""
    return tuple((name, json.dumps(_checked(name, value, where), sort_keys=True)) for name, value in given.items())


def from_text(name: str, text: str, where: str) -> tuple[str, str]:
    """One option as an attribute of a model says it: a number, JSON, or plain text."""
    value: object = text
    if name in (*_NUMBERS, *_TABLES) or text.lstrip()[:1] in ("{", '"') or text.isdecimal():
        try:
            value = json.loads(text)
        except ValueError:
            raise InvalidModel(f"{where}: {name}={text[:80]!r}: expected JSON") from None
    return name, json.dumps(_checked(name, value, where), sort_keys=True)


def _checked(name: str, value: object, where: str) -> object:
    def wrong(expected: str) -> InvalidModel:
        return InvalidModel(f"{where}: {name}={value!r}: expected {expected}")

    if name not in NAMES:
        raise InvalidModel(f"{where}: a Ray task has no option '{name}' here, it has {', '.join(NAMES)}")
    if name in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise wrong("a number of at least 0")
    elif name == "memory":
        return _bytes(value, wrong("bytes, as a number or as 4GiB"))
    elif name == "resources":
        if not isinstance(value, Mapping) or not all(
            isinstance(key, str) and isinstance(amount, int | float) and amount >= 0 for key, amount in value.items()
        ):
            raise wrong("a table of amounts")
    elif name in _TABLES:
        if not isinstance(value, Mapping):
            raise wrong("a table")
    elif name == "accelerator_type":
        if not isinstance(value, str) or not value:
            raise wrong("a name")
    elif not (value in ("DEFAULT", "SPREAD") or (isinstance(value, Mapping) and set(value) <= {"node_id", "soft"})):
        raise wrong("DEFAULT, SPREAD, or a table of node_id and soft")
    return value


def _bytes(value: object, wrong: InvalidModel) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = _BYTES.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or float(found[1]) == 0:
        raise wrong
    return int(float(found[1]) * _UNITS[found[2]])
