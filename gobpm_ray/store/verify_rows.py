"""How accepted rows and remembered deliveries are read for `verify`: in pages; what looks wrong once more, alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from gobpm_ray.store.expected import Difference, Write
from gobpm_ray.store.expected_rows import RowHolding, memory_differences, parked_member, row_differences
from gobpm_ray.store.keys import Keys
from gobpm_ray.store.rows import RS

PAGE = 200

Guarded = tuple[Difference, tuple[Write, ...]]
"""A difference, and what must still be so when it is repaired."""


class RowReader:
    def __init__(self, client: Any, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self.count = 0
        """Rows that were read."""

    def differences(self) -> Iterator[Guarded]:
        """Of accepted rows, pending and parked."""
        done: set[tuple[str, str]] = set()
        for page in pages(self._row_places(), PAGE):
            for holding, (seq, member) in zip(self._row_holdings(page, exact=False), page, strict=True):
                if not row_differences(holding, self._keys):
                    continue
                (exact,) = self._row_holdings([(seq, member)], exact=True)
                for difference in row_differences(exact, self._keys):
                    if (difference.kind, difference.key) not in done:
                        done.add((difference.kind, difference.key))
                        yield difference, exact.guards(self._keys)

    def memory(self) -> Iterator[Guarded]:
        """Of remembered deliveries."""
        done: set[str] = set()
        for page in pages(self._deliveries(), PAGE):
            for delivery, (stored, score) in zip(page, self._memories(page, exact=False), strict=True):
                if memory_differences(delivery, stored, score, self._keys):
                    ((stored, score),) = self._memories([delivery], exact=True)
                    guards: tuple[Write, ...] = (
                        ("HGET", self._keys["dedup"], delivery, b"-" if stored is None else stored),
                        ("ZSCORE", self._keys["dedupx"], delivery, b"-" if score is None else f"{score:.0f}"),
                    )
                    for difference in memory_differences(delivery, stored, score, self._keys):
                        if difference.key not in done:
                            done.add(difference.key)
                            yield difference, guards

    def _row_places(self) -> Iterator[tuple[int, bytes]]:
        """(seq, member of `parked` or b'') of everything that names an accepted row, by whatever name."""
        for name, row in self._client.hscan_iter(self._keys["in"], count=1_000):
            self.count += 1
            yield int(name), parked_member(int(name), row) if row.count(RS) > 2 else b""
        for member, _ in self._client.zscan_iter(self._keys["pend"], count=1_000):
            yield int(member), b""
        for name, _ in self._client.hscan_iter(self._keys["progress"], count=1_000):
            yield int(name), b""
        for index in ("parked", "parkx"):
            for member, _ in self._client.zscan_iter(self._keys[index], count=1_000):
                seq = member.rpartition(RS)[2]
                yield int(seq) if seq.isdigit() else 0, member

    def _row_holdings(self, places: Sequence[tuple[int, bytes]], *, exact: bool) -> list[RowHolding]:
        pipe = self._client.pipeline(transaction=exact)
        for seq, member in places:
            pipe.hget(self._keys["in"], seq)
            pipe.zscore(self._keys["pend"], seq)
            pipe.hexists(self._keys["progress"], seq)
            pipe.zscore(self._keys["parked"], member)
            pipe.zscore(self._keys["parkx"], member)
        replies = pipe.execute()
        found = []
        for number, (seq, member) in enumerate(places):
            row, pend, progress, parked, parkx = replies[5 * number : 5 * number + 5]
            if row is not None and member and row.count(RS) > 2 and parked_member(seq, row) != member:
                # It names the row by a key that is not the row's: to this member the row does not belong.
                row, pend, progress = None, None, False
            elif row is not None and not member:
                member = parked_member(seq, row) if row.count(RS) > 2 else b""
                if member:
                    found += self._row_holdings([(seq, member)], exact=exact)
                    continue
            found.append(RowHolding(seq, row, pend is not None, bool(progress), member, parked is not None, parkx))
        return found

    def _deliveries(self) -> Iterator[bytes]:
        for delivery, _ in self._client.hscan_iter(self._keys["dedup"], count=1_000):
            yield delivery
        for delivery, _ in self._client.zscan_iter(self._keys["dedupx"], count=1_000):
            yield delivery

    def _memories(self, page: Sequence[bytes], *, exact: bool) -> list[tuple[bytes | None, float | None]]:
        pipe = self._client.pipeline(transaction=exact)
        pipe.hmget(self._keys["dedup"], page)
        pipe.zmscore(self._keys["dedupx"], page)
        stored, scores = pipe.execute()
        return list(zip(stored, scores, strict=True))


T = TypeVar("T")


def pages(items: Iterable[T], size: int) -> Iterator[list[T]]:
    page: list[T] = []
    for item in items:
        page.append(item)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page
