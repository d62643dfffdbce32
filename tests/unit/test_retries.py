"""Retry policies: what may be written, what it means, and what is refused by name."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gobpm_ray.calendar.retries import MOST, parse_retries
from gobpm_ray.errors import InvalidTimer
from gobpm_ray.model.ray_options import from_text, ray_options

NOW = 1_767_225_600_000
MINUTE = 60_000
HOUR = 60 * MINUTE


def pauses(value: object, most: int = 20) -> list[int]:
    """Milliseconds after each failure, until there is no attempt any more."""
    policy = parse_retries(value)
    due = (policy.next_attempt(failures, NOW, "i:1:work:2") for failures in range(1, most + 1))
    return [at - NOW for at in due if at is not None]


@pytest.mark.parametrize("value", [None, "", "none", "0", 0, " none "])
def test_no_policy_is_no_retry(value: object) -> None:
    assert pauses(value) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, [0, 0, 0]),
        ("3", [0, 0, 0]),
        (Decimal(2), [0, 0]),
        ("PT5M,PT10M", [5 * MINUTE, 10 * MINUTE]),
        (" PT5M , PT10M ", [5 * MINUTE, 10 * MINUTE]),
        ("R3/PT10S", [10_000] * 3),
        ("R2/PT1M,PT1H", [MINUTE, MINUTE, HOUR]),
        ("P1M", [31 * 24 * HOUR]),
        ("fixed(3, PT10S)", [10_000] * 3),
        ("fixed(2)", [0, 0]),
        ("exponential(4, PT1S)", [1_000, 2_000, 4_000, 8_000]),
        ("exponential(4, first=PT1M, factor=3, cap=PT10M)", [MINUTE, 3 * MINUTE, 9 * MINUTE, 10 * MINUTE]),
        (timedelta(minutes=5), [5 * MINUTE]),
        ([timedelta(seconds=1), "PT2S"], [1_000, 2_000]),
    ],
)
def test_a_policy_says_how_often_and_how_long_after(value: object, expected: list[int]) -> None:
    assert pauses(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "often",
        "-1",
        "PT5M,",
        "-PT5M",
        "1.5",
        True,
        object(),
        str(MOST + 1),
        "fixed(PT1S)",
        "fixed(2, PT1S, jitter=1)",
        "exponential(2, PT1S, factor=0)",
        "exponential(2, PT1S, jitter=2)",
        "exponential(2, PT1S, factor=much)",
        f"R{MOST + 1}/PT1S",
    ],
)
def test_what_is_no_policy_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidTimer, match="retries "):
        parse_retries(value)


@given(st.integers(1, 1_000), st.text(max_size=20))
def test_jitter_stays_in_its_share_and_is_the_same_for_the_same_failure(failures: int, seed: str) -> None:
    policy = parse_retries("exponential(1000, PT1S, factor=2, cap=PT1H, jitter=0.2)")
    plain = parse_retries("exponential(1000, PT1S, factor=2, cap=PT1H)")
    due, exact = policy.next_attempt(failures, NOW, seed), plain.next_attempt(failures, NOW, seed)
    assert due is not None
    assert exact is not None
    assert abs(due - exact) <= 0.2 * (exact - NOW) + 1
    assert due == policy.next_attempt(failures, NOW, seed)


def test_jitter_sets_instances_apart() -> None:
    policy = parse_retries("exponential(5, PT1H, jitter=0.5)")
    assert len({policy.next_attempt(1, NOW, f"i{number}") for number in range(50)}) > 40


def test_options_of_a_ray_task_have_one_form_however_they_are_given() -> None:
    given_ = {"num_cpus": 2, "memory": "1.5GiB", "resources": {"b": 1, "a": 2}, "scheduling": "SPREAD"}
    kept = ray_options(given_, "task 't'")
    assert kept == (
        ("num_cpus", "2"),
        ("memory", str(3 << 29)),
        ("resources", '{"a": 2, "b": 1}'),
        ("scheduling", '"SPREAD"'),
    )
    assert tuple(from_text(name, text, "task 't'") for name, text in kept) == kept
