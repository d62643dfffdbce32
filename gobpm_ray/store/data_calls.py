"""Data stores of the engine on Redis: one hash, a field for each, read at one moment by one command.

They are written by the commit of a step (`lua/commit.lua`) or by an operator, and here is only what is not a commit. It
refuses to know what a value means.
"""

from __future__ import annotations

from collections.abc import Sequence

from gobpm_ray.errors import DataStoreChanged
from gobpm_ray.runtime.limits import checked_data
from gobpm_ray.runtime.ports import DataRow
from gobpm_ray.store import rows
from gobpm_ray.store.calls import store_call
from gobpm_ray.store.housekeeping import Housekeeping

TABLE = "data"


class DataCalls(Housekeeping):
    @store_call
    def read_data(self, names: Sequence[str]) -> dict[str, DataRow]:
        found = self._client.hmget(self.keys.table(TABLE), list(names))
        return {name: rows.data(name, row) for name, row in zip(names, found, strict=True) if row is not None}

    @store_call
    def all_data(self) -> list[DataRow]:
        table = self._client.hgetall(self.keys.table(TABLE))
        return [rows.data(name.decode(), table[name]) for name in sorted(table)]

    @store_call
    def write_data(self, name: str, value: bytes, expected: int = -1, *, secret: bool = False) -> int:
        checked_data(value, self.settings, name)
        reply = self._run("data_put", name, expected, int(secret), value)
        if isinstance(reply, list):
            raise DataStoreChanged(f"data store {name!r}: it has version {int(reply[1])}, not {expected}")
        return int(reply)

    @store_call
    def drop_data(self, name: str) -> bool:
        return bool(self._run("data_drop", name) == 1)
