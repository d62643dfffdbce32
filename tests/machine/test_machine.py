"""A state machine over random processes: releases and crashes are not seen.

Issue 5's machine; promises 1, 2, 5 and 6; R1-R10, R20, W1-W30, C59-C66. Each example is a process drawn from a grammar
of every element, a script of triggers drawn beside it, and trouble. The script is played on one resident run that is
never released, and on two engines that release at every wait while hosts and holders die, answers are lost and leases
expire: one on the store in memory, one on the real scripts. All three must end alike in everything that an instance
is: outcome, variables, tokens, waits, counters, and its history line by line, in order.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from gobpm_ray.store.connection import open_client
from tests.machine.breaks import BREAKS
from tests.machine.examples import EXAMPLES, Example, Stage

EVERYDAY = 100
LONG = 5_000
MOST_TO_FIND = 400
"""Examples within which a fault made on purpose must be found."""

QUICKLY = ("a trigger is consumed twice", "a wait is forgotten at release", "scripts without the delivery's dedup")
"""Found in a few seconds each: these are looked for every time."""

at_ease = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)
everyday = settings(at_ease, max_examples=EVERYDAY, derandomize=True)
long = settings(at_ease, max_examples=LONG, print_blob=True)


def play(stage: Stage, example: Example, counts: Counter[str]) -> None:
    """AssertionError: the process as a sketch, the script, what each action came to, and what is wrong."""
    verdict = stage.play(example)
    counts.update(verdict.counts)
    counts["examples"] += 1
    if verdict.faults:
        told = "\n    ".join(verdict.log)
        raise AssertionError(f"{example!r}  straight\n    {told}\n  faults\n    " + "\n    ".join(verdict.faults))


def enough(counts: Counter[str], examples: int) -> None:
    """They had something in them, or they would show nothing."""
    assert counts["examples"] >= examples
    assert counts["host dies"] > examples
    assert counts["holder dies"] > examples / 10
    assert counts["host loses an answer"] > examples / 10
    assert counts["client loses an answer"] > examples / 10
    assert counts["woken"] > examples / 2
    assert counts["completed"] > examples / 4
    assert counts["waits"] > examples / 5


@pytest.mark.slow
def test_a_released_and_crashed_process_ends_as_if_it_had_never_been_released(stage: Stage) -> None:
    """The same hundred every time."""
    counts: Counter[str] = Counter()

    @everyday
    @given(EXAMPLES)
    def machine(example: Example) -> None:
        play(stage, example, counts)

    machine()
    enough(counts, EVERYDAY)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_five_thousand_more_end_as_well(stage: Stage) -> None:
    """Others every time; a failing one prints what replays it."""
    counts: Counter[str] = Counter()

    @long
    @given(EXAMPLES)
    def machine(example: Example) -> None:
        play(stage, example, counts)

    machine()
    enough(counts, LONG)
    print(dict(counts))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "fault", [fault if fault in QUICKLY else pytest.param(fault, marks=pytest.mark.long) for fault in BREAKS]
)
def test_a_fault_made_on_purpose_is_found(server: str, fault: str) -> None:
    """The machine can fail: an engine that doubles, loses or forgets something turns it red, and without the fault the
    very example is well."""
    with BREAKS[fault](), open_client(server) as client:
        broken = Stage(client)
        first = settings(at_ease, max_examples=MOST_TO_FIND, phases=[Phase.generate])
        red = find(EXAMPLES, lambda example: _is_red(broken, example), settings=first, random=Random(1))
    with open_client(server) as client:
        assert Stage(client).play(red).faults == []


def _is_red(stage: Stage, example: Example) -> bool:
    try:
        return bool(stage.play(example).faults)
    except Exception:
        return True  # the engine itself stumbled over it
