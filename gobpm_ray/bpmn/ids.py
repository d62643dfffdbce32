"""Ids of what a written document needs beyond its model: messages, associations, shapes. Unique, and the same again."""

from __future__ import annotations

from collections.abc import Iterable

from gobpm_ray.model.elements import Process


class Ids:
    def __init__(self, processes: Iterable[Process]) -> None:
        self._taken: set[str] = set()
        for process in processes:
            self._taken.add(process.id)
            self._taken.update(process.nodes)
            self._taken.update(process.flows)
            self._taken.update(element.id for element in process.data)

    def free(self, wanted: str) -> str:
        """`wanted`, or the first of `wanted_2`, `wanted_3` ... that nothing has; taken from now on."""
        number, candidate = 1, wanted
        while candidate in self._taken:
            number += 1
            candidate = f"{wanted}_{number}"
        self._taken.add(candidate)
        return candidate
