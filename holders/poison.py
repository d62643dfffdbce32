"""Poison: a row that kills whoever folds it. It knows how a folder's death is noticed and how the guilty row is found.

A mark of the kind stands in the store while a folder lives, so whoever begins and finds one knows that the last folder
died with a row in hand. Only then are rows taken one by one, each under a mark of its own, which costs three more calls
a row: the row whose mark is found a third time is set aside. A folder that ends as it should leaves no mark, and the
ordinary pass writes none.
"""

from __future__ import annotations

from gobpm_ray.runtime.ports import Store

TABLE = "folding"
MOST_DEATHS = 3
CAREFUL_ROWS = 1_000
"""Rows are folded in order, so the one in hand was among the first that are still pending."""


class Marks:
    def __init__(self, store: Store, kind: str) -> None:
        self._store = store
        self._kind = kind

    def begin(self) -> bool:
        """A folder lives from here on. True: the one before it did not end as it should."""
        died = self._store.get_value(TABLE, self._kind) is not None
        self._store.put_value(TABLE, self._kind, b"1")
        return died

    def end(self) -> None:
        self._store.drop_value(TABLE, self._kind)

    def take(self, seq: int) -> int:
        """The row is in hand, and a death from here on is its; how many folders had died with it before."""
        deaths = int(self._store.get_value(TABLE, self._row(seq)) or b"0")
        if deaths < MOST_DEATHS:
            self._store.put_value(TABLE, self._row(seq), str(deaths + 1).encode())
        return deaths

    def put_down(self, seq: int) -> None:
        """Nobody died of it."""
        self._store.drop_value(TABLE, self._row(seq))

    def _row(self, seq: int) -> str:
        return f"{self._kind}:{seq}"
