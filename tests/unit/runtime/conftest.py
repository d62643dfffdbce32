"""Total withdrawal, after every test here: an ended instance is its record and its history, and nothing else (D6)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gobpm_ray.runtime.memory import MemoryStore
from tests.support.stores import memory_traces


@pytest.fixture(autouse=True)
def _an_ended_instance_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every store that the test made is looked through when it is over."""
    made: list[MemoryStore] = []
    begin = MemoryStore.__init__

    def noted(self: MemoryStore, *args: object, **kwargs: object) -> None:
        begin(self, *args, **kwargs)  # type: ignore[arg-type]
        made.append(self)

    monkeypatch.setattr(MemoryStore, "__init__", noted)
    yield
    for store in made:
        for _, ended in store.instances(ended=True):
            traces = memory_traces(store, ended)
            assert not traces, f"instance {ended} has ended and is still in {traces}"
