"""How accepted rows, remembered deliveries and data stores are read for `verify`: in pages; what looks wrong once more,
alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from gobpm_ray.errors import GobpmError
from gobpm_ray.runtime.stored_data import decoded_data
from gobpm_ray.store import rows
from gobpm_ray.store.data_calls import TABLE
from gobpm_ray.store.expected import Difference, Write
from gobpm_ray.store.expected_rows import RowHolding, memory_differences, parked_members, row_differences
from gobpm_ray.store.keys import Keys
from gobpm_ray.store.rows import RS

PAGE = 200

Guarded = tuple[Difference, tuple[Write, ...]]
"""A difference, and what must still be so when it is repaired."""


Place = tuple[int, tuple[bytes, ...]]
"""An accepted row by its number, and members of `parked` and `parkx` that may be its own."""


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
            for holding, place in zip(self._row_holdings(page, exact=False), page, strict=True):
                if not row_differences(holding, self._keys):
                    continue
                (exact,) = self._row_holdings([place], exact=True)
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

    def data(self) -> Iterator[Guarded]:
        """Every data store can be read, and was written before now in the one order. Nobody but a person can say what a
        damaged one held."""
        for name, row in self._client.hscan_iter(self._keys.table(TABLE), count=1_000):
            shown, found = name.decode(errors="replace"), ""
            try:
                stored = rows.data(shown, row)
                decoded_data(stored)
                # Asked after the row was read: a version that is newer was never given.
                last = int(self._client.get(self._keys["seq"]) or 0)
                if stored.version > last:
                    found = f"version {stored.version}, after the last, {last}"
            except (ValueError, GobpmError) as damage:
                found = f"damaged: {' '.join(str(damage).split())[:200]}"
            if found:
                yield Difference("data", shown, "a value with a version", found), ()

    def _row_places(self) -> Iterator[Place]:
        """(seq, members of `parked`) of everything that names an accepted row, by whatever name."""
        for name, row in self._client.hscan_iter(self._keys["in"], count=1_000):
            self.count += 1
            yield int(name), parked_members(int(name), row)
        for member, _ in self._client.zscan_iter(self._keys["pend"], count=1_000):
            yield int(member), ()
        for name, _ in self._client.hscan_iter(self._keys["progress"], count=1_000):
            yield int(name), ()
        for index in ("parked", "parkx"):
            for member, _ in self._client.zscan_iter(self._keys[index], count=1_000):
                seq = member.rpartition(RS)[2]
                yield int(seq) if seq.isdigit() else 0, (member,)

    def _row_holdings(self, places: Sequence[Place], *, exact: bool) -> list[RowHolding]:
        pipe = self._client.pipeline(transaction=exact)
        for seq, members in places:
            pipe.hget(self._keys["in"], seq)
            pipe.zscore(self._keys["pend"], seq)
            pipe.hexists(self._keys["progress"], seq)
            for index in ("parked", "parkx"):
                for member in members:
                    pipe.zscore(self._keys[index], member)
        replies = iter(pipe.execute())
        found = []
        for seq, members in places:
            row, pend, progress = next(replies), next(replies), next(replies)
            parked = tuple(next(replies) is not None for _ in members)
            parkx = tuple(next(replies) for _ in members)
            own = () if row is None else parked_members(seq, row)
            stray = row is not None and not set(members) <= set(own)
            if stray:
                # It names the row by a key that is not the row's: to this member the row does not belong.
                row, pend, progress = None, None, False
            elif members != own and own:
                found += self._row_holdings([(seq, own)], exact=exact)
                continue
            found.append(RowHolding(seq, row, pend is not None, bool(progress), members, parked, parkx, stray))
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
