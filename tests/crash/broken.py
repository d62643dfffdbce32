"""Scripts with one guard taken out, so that the oracles can be seen to fail.

The patched text is given to the store's own loader for as long as the block runs; nothing of it is on disk, and every
patch insists on the line that it takes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from gobpm_ray.store import scripts

BREAKS = {
    "dedup": ((b"return tonumber(f[1]) > live - WINDOW and f[2] or nil", b"return nil"),),
    "fence": (
        (b"if not expiry or tonumber(expiry) <= live then", b"if false then"),
        (b"if m[2] ~= version then", b"if false then"),
        (b"if string.sub(head[i], 1, #wanted) ~= wanted then return { 'inbox' } end", b""),
        (b"if #head < n_consumed then return { 'inbox' } end", b""),
    ),
    "drain": ((b"for _, armed in ipairs(messages) do", b"for _, armed in ipairs({}) do"),),
}
"""Guard -> what is replaced, in whichever scripts hold it: the delivery's dedup; the commit's fence (lease, version and
the inbox it names); the draining of messages that came before their catch."""


@contextmanager
def without(guard: str) -> Iterator[None]:
    """Stores that are opened inside run scripts without this guard."""
    whole = scripts.source.__wrapped__
    found: set[bytes] = set()

    def source(name: str) -> bytes:
        text = whole(name)
        for line, instead in BREAKS[guard]:
            if line in text:
                found.add(line)
                text = text.replace(line, instead)
        return text

    for name in ("commit", "publish", "claim"):
        source(name)
    missing = {line for line, _ in BREAKS[guard]} - found
    assert not missing, f"guard {guard}: the scripts have no {missing}"
    with mock.patch.object(scripts, "source", source):
        yield
