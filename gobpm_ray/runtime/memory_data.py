"""Data stores of the engine in memory: what `store.data_calls` and the commit's script do, under the one lock."""

from __future__ import annotations

from collections.abc import Sequence

from gobpm_ray.errors import DataStoreChanged
from gobpm_ray.runtime.limits import checked_data
from gobpm_ray.runtime.memory_calls import MemoryCalls
from gobpm_ray.runtime.memory_state import locked
from gobpm_ray.runtime.ports import Commit, DataRow


class MemoryData(MemoryCalls):
    @locked
    def read_data(self, names: Sequence[str]) -> dict[str, DataRow]:
        return {name: self._data[name] for name in names if name in self._data}

    @locked
    def all_data(self) -> list[DataRow]:
        return [self._data[name] for name in sorted(self._data, key=str.encode)]

    @locked
    def write_data(self, name: str, value: bytes, expected: int = -1, *, secret: bool = False) -> int:
        checked_data(value, self.settings, name)
        has = self._data_version(name)
        if expected not in (-1, has):
            raise DataStoreChanged(f"data store {name!r}: it has version {has}, not {expected}")
        return self._write_data(name, value, "", secret=secret)

    @locked
    def drop_data(self, name: str) -> bool:
        return self._data.pop(name, None) is not None

    # --- inside a commit
    def _check_data(self, commit: Commit) -> None:
        """What was read must be as it was read."""
        for use in commit.data:
            if use.seen not in (-1, self._data_version(use.name)):
                raise DataStoreChanged(f"instance {commit.instance_id!r}: data store {use.name!r} has changed")

    def _commit_data(self, commit: Commit) -> None:
        for use in commit.data:
            if use.value is not None:
                self._write_data(use.name, use.value, commit.instance_id, secret=use.secret)

    def _data_version(self, name: str) -> int:
        return self._data[name].version if name in self._data else 0

    def _write_data(self, name: str, value: bytes, by: str, *, secret: bool) -> int:
        version = self._next_seq()
        self._data[name] = DataRow(name, version, self._now(), by, secret, value)
        return version
