"""The data stores that a step reads and writes: one read before it, its part of the commit after it.

A process that names no data store costs nothing here. What a step that writes has read is checked again inside its
commit (docs/adr/0008): if somebody has written in between, it is made anew on what is there by then. A step that only
reads is as if it had been made at the moment of its read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gobpm_ray.checkpoint.codec import dump, load
from gobpm_ray.core.secrets import Veil
from gobpm_ray.core.step import Step
from gobpm_ray.runtime.limits import checked_data
from gobpm_ray.runtime.ports import DataRow, DataUse, Store
from gobpm_ray.secret import Secret
from gobpm_ray.settings import Settings

_VALUE = "value"


def encoded_data(value: object, name: str) -> bytes:
    """UnstorableValue names the data store and the path in it."""
    return dump({_VALUE: value}, f"data store '{name}'")


def decoded_data(row: DataRow) -> object:
    return load(row.value, f"data store '{row.name}'").get(_VALUE)


class StoredData:
    """What one hosting knows of the data stores that its program names."""

    def __init__(self, store: Store, settings: Settings, names: Sequence[str]) -> None:
        self._store = store
        self._settings = settings
        self._names = names
        self._rows: dict[str, DataRow] = {}

    def read(self) -> Mapping[str, object]:
        """The values at one moment; one in which there is a secret is marked as such."""
        self._rows = self._store.read_data(self._names)
        values = {name: decoded_data(row) for name, row in self._rows.items()}
        return {name: Secret(value) if self._rows[name].secret else value for name, value in values.items()}

    def uses(self, step: Step, veil: Veil) -> list[DataUse]:
        """What the step has to do with them, for its commit."""
        found = []
        for name in sorted(step.reads | step.writes.keys()):
            seen = -1
            if name in step.reads:
                seen = self._rows[name].version if name in self._rows else 0
            if name not in step.writes:
                found.append(DataUse(name, seen))
                continue
            value = step.writes[name]
            encoded = encoded_data(value, name)
            checked_data(encoded, self._settings, name)
            found.append(DataUse(name, seen, encoded, _hides(veil, name, value)))
        return found


def _hides(veil: Veil, name: str, value: object) -> bool:
    """Something in the value is a secret of the process that writes it."""
    return bool(veil) and veil.values({name: value}) != {name: veil_free(value)}


def veil_free(value: object) -> object:
    """The value as a veil that hides nothing gives it: lists for tuples."""
    if isinstance(value, Mapping):
        return {name: veil_free(item) for name, item in value.items()}
    return [veil_free(item) for item in value] if isinstance(value, list | tuple) else value
