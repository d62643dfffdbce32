"""Random processes as blocks that nest: a grammar of every element, sound by construction, and its sketch.

A block has one way in and one way out, so whatever is put together from blocks is a process in which every token can
get to an end. Here it stands what may be drawn; what a block is as a process, `block_writer` knows. Strategies give
values without side effects, so that a failing process shrinks, and a block's `repr` is its sketch:
`then(user, sub[!message;timer;error](and(job, timer)))`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

PASSING = (
    "task",
    "manual",
    "script",
    "toggle",
    "send",
    "throw",
    "shout",
    "escalate",
    "undo",
    "link",
    "fails",
    "decide",
)
"""Leaves that no token waits at (`fails` until `z` is set, `decide` by a decision table)."""
WORK = ("work", "careful", "flaky", "throws", "warns")
"""Service tasks of the host: well, well and not idempotent, failing until `z` is set, with an error, an escalation."""
WAITING = ("user", "job", "receive", "message", "signal", "timer", "condition", "gather", "either", "undoable")
CALLS = ("call",)

HANDLERS = ("message", "cycle", "signal", "escalation", "conditional", "error")
"""How an event sub-process begins, or an attached event waits; a `!` in front of it interrupts."""
BOUNDARIES = ("timer", *HANDLERS)
ENDS = ("", "error", "escalation", "terminate", "compensate", "cancel", "message", "signal")
ARMS = ("message", "signal", "timer", "condition", "receive")
HOSTS = ("user", "job", "receive", "work", "flaky", "throws", "call")
"""What may have events attached to it."""

AT_ONCE = frozenset({"and", "or", "complex", "many", "adhoc"})
"""Blocks with several tokens inside."""


@dataclass(frozen=True, repr=False)
class Block:
    kind: str
    inside: tuple[Block, ...] = ()
    how: tuple[str, ...] = ()

    def __repr__(self) -> str:
        how = f"[{';'.join(self.how)}]" if any(self.how) else ""
        inside = f"({', '.join(map(repr, self.inside))})" if self.inside else ""
        return f"{self.kind}{how}{inside}"

    def walk(self) -> Iterator[Block]:
        yield self
        for block in self.inside:
            yield from block.walk()

    @property
    def one_token(self) -> bool:
        """Nothing in it ever moves beside something else."""
        return not any(
            block.kind in AT_ONCE or any(handler[:1] == "+" for handler in block.how) for block in self.walk()
        )


@dataclass(frozen=True, repr=False)
class Plan:
    """A process `p`, the process `q` that it calls, and how `p` handles what comes from outside its flows."""

    block: Block
    called: Block
    handlers: tuple[str, ...] = ()
    called_end: str = ""

    def __repr__(self) -> str:
        handled = f" handles {' '.join(self.handlers)}" if self.handlers else ""
        called = f"\n  q = {self.called!r} end {self.called_end}" if self.calls else ""
        return f"p = {self.block!r}{handled}{called}"

    @property
    def calls(self) -> bool:
        return any(block.kind == "call" or "call" in block.how for block in self.block.walk())

    @property
    def one_token(self) -> bool:
        """Of all instances together nothing ever moves beside something else: a called process moves beside `p`."""
        return self.block.one_token and not self.calls and not any(handler[0] == "+" for handler in self.handlers)


def _events(kinds: tuple[str, ...], alone: bool) -> st.SearchStrategy[tuple[str, ...]]:
    """Two at most, each a `!kind`, which interrupts, or a `+kind`, which does not; an error always does."""
    marked = [f"{mark}{kind}" for kind in kinds for mark in ("!" if alone else "!+") if f"{mark}{kind}" != "+error"]
    return st.lists(st.sampled_from(marked), max_size=2).map(tuple)


def _extended(inner: st.SearchStrategy[Block], alone: bool) -> st.SearchStrategy[Block]:
    two = st.tuples(inner, inner)
    one = inner.map(lambda block: (block,))
    yes = st.sampled_from(("", "yes"))
    order = st.just("sequential") if alone else st.sampled_from(("", "sequential"))
    until = st.sampled_from(("", "until"))
    arms = st.lists(st.sampled_from(ARMS), min_size=2, max_size=3, unique=True).map(tuple)
    hosts = [host for host in HOSTS if not (alone and host == "call")]
    single = [
        st.builds(lambda inside: Block("then", inside), two),
        st.builds(lambda inside: Block("then", inside), two),
        st.builds(lambda inside: Block("xor", inside), two),
        arms.flatmap(
            lambda chosen: st.tuples(*([inner] * len(chosen))).map(lambda inside: Block("race", inside, chosen))
        ),
        st.builds(lambda inside: Block("again", inside), one),
        st.builds(lambda inside, first: Block("loop", inside, (first,)), one, yes),
        st.builds(
            lambda inside, end, undo, handlers, boundaries: Block(
                "sub", inside, (end, undo, *handlers, "|", *boundaries)
            ),
            one,
            st.sampled_from(ENDS),
            yes,
            _events(HANDLERS, alone),
            _events(BOUNDARIES, alone),
        ),
        st.builds(
            lambda host, boundaries: Block("guarded", (), (host, *boundaries)),
            st.sampled_from(hosts),
            _events(BOUNDARIES, alone),
        ),
    ]
    several = [
        st.builds(lambda inside: Block("and", inside), two),
        st.builds(lambda inside: Block("or", inside), two),
        st.builds(lambda inside, needed: Block("complex", inside, (needed,)), two, st.sampled_from(("1", "2"))),
        st.builds(lambda inside, *how: Block("many", inside, how), one, order, until),
        st.builds(lambda inside, *how: Block("adhoc", inside, how), two, order, until),
        st.builds(
            lambda *how: Block("each", (), how), st.sampled_from(("user", "job", "call", "receive")), order, until
        ),
    ]
    return st.one_of(single if alone else single + several)


def blocks(*, without: tuple[str, ...] = (), most: int = 8, alone: bool = False) -> st.SearchStrategy[Block]:
    """Blocks of `most` leaves or so; `without`: leaves that whoever runs them has nothing for. `alone`: never is there
    a second token, and work that is not idempotent comes often."""
    kinds = [*PASSING, *WORK, *WAITING, *WAITING, *CALLS]
    if alone:
        without, kinds = (*without, *CALLS), kinds + ["careful"] * 8
    leaves = st.sampled_from([kind for kind in kinds if kind not in without]).map(Block)
    return st.recursive(leaves, lambda inner: _extended(inner, alone), max_leaves=most)


def plans(*, without: tuple[str, ...] = (), most: int = 8, alone: bool = False) -> st.SearchStrategy[Plan]:
    """`q` calls nobody: a chain of calls is as deep as it is meant to be."""
    called = blocks(without=("call", *without), most=3).filter(_calls_nobody)
    return st.builds(
        Plan,
        blocks(without=without, most=most, alone=alone),
        called,
        _events(HANDLERS, alone),
        st.sampled_from(("", "", "error", "escalation", "terminate")),
    )


def _calls_nobody(block: Block) -> bool:
    return not any("call" in inner.how for inner in block.walk())
