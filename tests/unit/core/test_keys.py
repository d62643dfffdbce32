"""N2, N3: what is armed and what arrives are compared as equal strings, and both are built by one function."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gobpm_ray.core.advance import advance
from gobpm_ray.core.keys import key_text, message_key, signal_key
from gobpm_ray.core.program import compile_process
from gobpm_ray.core.state import InstanceState
from gobpm_ray.core.step import Trigger
from gobpm_ray.errors import InvalidPayload
from gobpm_ray.model.builder import ProcessBuilder
from tests.unit.core.driving import NOW

_CHARACTERS = st.characters(codec="utf-8", exclude_characters="\x1f\x1e\x1d\x00\n")
NAMES = st.text(_CHARACTERS, min_size=1, max_size=40).filter(str.strip)
KEYS = st.one_of(
    st.text(_CHARACTERS, min_size=1, max_size=60),
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
)


def _process(kind: str, name: str):
    process = ProcessBuilder("p")
    event: dict[str, Any] = {
        "message": {"message": name, "key": "=ref"},
        "name": {"message": name},
        "signal": {"signal": name},
    }[kind]
    process.start("s").parallel("g").catch("c", **event).end("e1")
    process.at("g").throw("t", **event).end("e2")
    return compile_process(process.build())


@given(kind=st.sampled_from(["message", "name", "signal"]), name=NAMES, ref=KEYS)
def test_the_armed_key_is_the_key_of_the_event_that_satisfies_it(kind, name, ref):
    step = advance(_process(kind, name), InstanceState("i", "p", 1), [Trigger("d", "start", values={"ref": ref})], NOW)
    [arm], [send] = step.arms, step.sends
    published: dict[str, tuple[Any, ...]] = {
        "message": (message_key, name, ref),
        "name": (message_key, name),
        "signal": (signal_key, name),
    }
    build, *identity = published[kind]
    assert arm.key == send.key == build(*identity)
    assert arm.kind == send.kind


@given(name=NAMES, other=NAMES, key=st.none() | KEYS, other_key=st.none() | KEYS)
def test_keys_are_equal_exactly_when_kind_name_and_business_value_are(name, other, key, other_key):
    def identity(name: str, key: object) -> tuple[object, ...]:
        return (name, None if key is None else key_text(key))

    same = identity(name, key) == identity(other, other_key)
    assert (message_key(name, key) == message_key(other, other_key)) is same
    assert message_key(name, key) != signal_key(other), "kinds never cross"


@pytest.mark.parametrize("five", [5, 5.0, "5", Decimal("5"), Decimal("5.000")])
def test_equal_business_values_correlate_whatever_their_type(five):
    assert message_key("M", five) == message_key("M", 5)


@pytest.mark.parametrize(
    "wrong", [None.__class__, [1], {}, {"a": [1]}, {"a=b": 1}, {1: 1}, "", "a\x1db", "a\x1fb", "x" * 2000]
)
def test_a_key_that_is_no_scalar_or_could_forge_a_boundary_is_refused(wrong):
    with pytest.raises(InvalidPayload):
        message_key("M", wrong)
