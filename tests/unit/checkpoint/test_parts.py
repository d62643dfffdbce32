"""The checkpoint document: every state survives it, part by part; what is damaged or newer is refused by name."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gobpm_ray.checkpoint.codec import dump
from gobpm_ray.checkpoint.parts import decode, decode_with_working, encode_part
from gobpm_ray.core.state import (
    ArmedWait,
    Attempt,
    Completion,
    Head,
    Incident,
    InstanceState,
    Rounds,
    Scope,
    Track,
    TrackState,
)
from gobpm_ray.errors import BrokenInvariant, CorruptCheckpoint, GobpmError, NewerSchema, UnstorableValue

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TIMES = st.integers(0, 4_000_000_000_000)
LEARNT = st.dictionaries(st.sampled_from(["order", "invoice"]), st.text("ab1-", min_size=1, max_size=5))
COUNTS = st.integers(0, 10**6)
VALUES: st.SearchStrategy[dict[str, object]] = st.dictionaries(
    TEXT, st.none() | st.booleans() | st.integers() | TEXT | st.decimals(allow_nan=False) | st.datetimes(), max_size=3
)
WAITS = st.builds(ArmedWait, TEXT, st.none() | TIMES, TEXT, TIMES, COUNTS, TEXT, st.none() | VALUES)
COMPLETIONS = st.recursive(
    st.builds(Completion, TEXT, TEXT, VALUES),
    lambda inside: st.builds(Completion, TEXT, TEXT, VALUES, st.lists(inside, max_size=2)),
    max_leaves=4,
)
TRACKS = st.builds(
    Track,
    id=st.just(""),
    scope=st.sampled_from(["0", "1", "17"]),
    node=TEXT,
    state=st.sampled_from(TrackState),
    visit=COUNTS,
    flow=TEXT,
    parent=TEXT,
    wakes=COUNTS,
    waits=st.dictionaries(TEXT, WAITS, max_size=3),
    local=st.none() | VALUES,
    child=TEXT,
    round=COUNTS,
    rounds=st.none() | st.builds(Rounds, st.integers(-1, 10**6), COUNTS, COUNTS, COUNTS),
    attempt=st.none() | st.builds(Attempt, COUNTS, TIMES, COUNTS, COUNTS),
    incident=st.none() | st.builds(Incident, TEXT, TIMES, TEXT),
    sweep=st.lists(COMPLETIONS, max_size=2),
)
SCOPES = st.builds(
    Scope,
    id=st.just(""),
    node=TEXT,
    parent=TEXT,
    host=TEXT,
    depth=COUNTS,
    live=COUNTS,
    variables=VALUES,
    joins=st.dictionaries(TEXT, st.lists(st.lists(TEXT, max_size=3), max_size=2), max_size=2),
    waits=st.dictionaries(TEXT, WAITS, max_size=2),
    interrupted=st.booleans(),
    frozen=st.booleans(),
    ledger=st.lists(COMPLETIONS, max_size=2),
)


@st.composite
def states(draw: st.DrawFn) -> InstanceState:
    state = InstanceState(
        "i", "p", 3, "key", head=draw(st.builds(Head, COUNTS, COUNTS, COUNTS, TIMES, COUNTS, COUNTS, LEARNT))
    )
    for number, track in enumerate(draw(st.lists(TRACKS, max_size=4)), start=1):
        track.id = str(number)
        state.tracks[track.id] = track
    for number, scope in enumerate(draw(st.lists(SCOPES, max_size=3))):
        scope.id = str(number)
        state.scopes[scope.id] = scope
    return state


def parts_of(state: InstanceState) -> dict[str, bytes]:
    names = ["h", *(f"t{track}" for track in state.tracks), *(f"s{scope}" for scope in state.scopes)]
    return {name: encode_part(state, name) for name in names}


@given(states(), st.randoms(use_true_random=False))
def test_every_state_survives_its_parts_in_any_order(state: InstanceState, shuffle: Any) -> None:
    """D20, promise 1"""
    parts = list(parts_of(state).items())
    shuffle.shuffle(parts)
    read = decode("i", "p", 3, "key", dict(parts), True)
    assert read == state
    assert list(read.tracks) == list(state.tracks), "oldest first"


def waiting() -> InstanceState:
    state = InstanceState("order-4711", "order", 1, head=Head(tracks=2, scopes=1, visits=3, started=1_767_225_600_000))
    wait = {"2:Event_Wait:0:3": ArmedWait("timer", 1_767_830_400_000)}
    state.tracks["2"] = Track("2", "0", "Event_Wait", TrackState.WAITING, 3, "Flow_12", "", 1, wait)
    state.scopes["0"] = Scope("0", "order", live=1, variables={"ref": "DOC-12345", "customer": "Anna", "n": 3})
    return state


def test_a_waiting_instance_is_less_than_three_hundred_bytes() -> None:
    assert sum(map(len, parts_of(waiting()).values())) < 300


def test_the_head_says_its_schema_and_parts_leave_the_first_one_out() -> None:
    parts = {name: json.loads(part) for name, part in parts_of(waiting()).items()}
    assert parts["h"]["v"] == 1
    assert all("v" not in part for name, part in parts.items() if name != "h")


def test_the_head_counts_open_effects_of_the_whole_instance() -> None:
    state = waiting()
    parts = parts_of(state) | {"h": encode_part(state, "h", 4)}
    assert decode_with_working("i", "p", 1, "", parts, True)[1] == 4


def test_no_parts_are_an_instance_that_has_not_begun() -> None:
    assert decode("i", "p", 2, "k", {}, True) == InstanceState("i", "p", 2, "k")


def test_fields_that_this_release_does_not_know_are_ignored() -> None:
    """A new field with a default is no new schema: an older node reads on."""
    parts = parts_of(waiting())
    parts["t2"] = parts["t2"][:-1] + b',"zz":{"later":1}}'
    assert decode("i", "order", 1, "", parts, True).tracks["2"].node == "Event_Wait"


@pytest.mark.parametrize("part", ["h", "t2", "s0"])
@pytest.mark.parametrize("shape", [{"v": 7, "n": "x"}, {"v": 2, "shape": ["unknown"]}])
def test_a_newer_schema_is_refused_with_both_numbers(part: str, shape: dict[str, Any]) -> None:
    """D20: in any part, whatever its shape has become."""
    parts = parts_of(waiting()) | {part: dump(shape)}
    with pytest.raises(NewerSchema, match=rf"part '{part}' of its checkpoint has schema {shape['v']}, .* up to 1"):
        decode("order-4711", "order", 1, "", parts, True)


@pytest.mark.parametrize("part", ["h", "t2", "s0"])
@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"n":5}', b"\xff\xfe", b'{"n":"x","x":{"a":{"$dt":"?"}},"t":"?"}']
)
def test_damaged_bytes_are_refused_naming_instance_and_part(part: str, data: bytes) -> None:
    """A79"""
    if part == "h" and data == b'{"n":5}':
        data = b'{"n":"five"}'
    parts = parts_of(waiting()) | {part: data}
    with pytest.raises(CorruptCheckpoint) as refused:
        decode("order-4711", "order", 1, "", parts, True)
    assert str(refused.value).startswith(f"instance order-4711: part '{part}' of its checkpoint is damaged: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("wait", [[], [5], ["timer", "soon"], ["timer", 1, "", "", 0, 0, 0], "timer", ["timer", True]])
def test_a_damaged_wait_is_refused(wait: object) -> None:
    parts = parts_of(waiting()) | {"t2": json.dumps({"n": "x", "w": {"2:x:0:1": wait}}).encode()}
    with pytest.raises(CorruptCheckpoint, match="part 't2'"):
        decode("i", "p", 1, "", parts, True)


def test_an_unknown_state_or_part_or_a_missing_head_is_refused() -> None:
    sound = parts_of(waiting())
    for parts in (
        sound | {"t2": b'{"n":"x","a":"?"}'},
        sound | {"q1": b"{}"},
        {name: part for name, part in sound.items() if name != "h"},
    ):
        with pytest.raises(CorruptCheckpoint):
            decode("i", "p", 1, "", parts, True)


@given(st.binary(max_size=40), st.sampled_from(["h", "t1", "s0"]))
def test_no_bytes_at_all_end_in_a_foreign_error(data: bytes, part: str) -> None:
    with suppress(GobpmError):
        decode("i", "p", 1, "", {"h": b'{"v":1}', part: data}, True)


def test_a_variable_without_a_durable_form_is_refused_naming_scope_and_variable() -> None:
    state = waiting()
    state.scopes["0"].variables["basket"] = {"lines": [{"price": 1j}]}
    with pytest.raises(UnstorableValue) as refused:
        encode_part(state, "s0")
    assert str(refused.value) == (
        "instance order-4711: scope 'order' variable 'basket.lines[0].price': a value of type complex cannot be stored"
    )


def test_a_part_that_the_state_does_not_have_cannot_be_written() -> None:
    with pytest.raises(BrokenInvariant, match="'t9'"):
        encode_part(waiting(), "t9")
