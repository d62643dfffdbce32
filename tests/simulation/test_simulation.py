"""The whole engine under a scheduler that a seed drives: every history ends with nothing lost and nothing twice.

Promise 1 and 2, R20-R30, F31-F35, C59-C69. At the end of each history: every accepted delivery had its effect exactly
once or is visibly parked, dead or overtaken; messages of a key kept their order; no state change happened twice; every
index equals what the checkpoints say; nothing is left of the ended. `shortest` says what a failing seed does.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.crash.broken import without
from tests.simulation.bench import Bench, bench
from tests.simulation.world import history

SEEDS = 500
CHUNK = 100
LONG = 20_000


def play_all(simulation: Bench, seeds: range) -> Counter[str]:
    """Sums over all; fails at the first seed that fails, with its shortest history."""
    sums: Counter[str] = Counter()
    for seed in seeds:
        verdict = simulation.seed(seed)
        if verdict.faults:
            pytest.fail(simulation.explain(seed))
        sums.update(verdict.stats)
        sums["accepted"] += verdict.deliveries
    return sums


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_history_ends_with_nothing_lost_and_nothing_twice(simulation: Bench, first: int) -> None:
    """Five hundred of them; each hundred has its share of trouble, or it would show nothing."""
    sums = play_all(simulation, range(first, first + CHUNK))

    assert sums["accepted"] > 10 * CHUNK
    assert sums["kills"] > CHUNK
    assert sums["zombies"] > CHUNK
    assert sums["lost"] > CHUNK
    assert sums["fenced"] > CHUNK / 5, "zombies came back to a lease that was not theirs any more"


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + LONG, 2_000))
def test_twenty_thousand_more_end_as_well(simulation: Bench, first: int) -> None:
    play_all(simulation, range(first, first + 2_000))


def test_one_seed_replays_one_history_exactly(simulation: Bench) -> None:
    """Call by call: who called what, and what became of it."""
    notes: list[list[str]] = [[], [], []]
    first = simulation.play(history(7), notes[0])
    simulation.seed(8)
    again = simulation.play(history(7), notes[1])
    other = simulation.play(history(8), notes[2])

    assert notes[0] == notes[1]
    assert first == again
    assert other.digest != first.digest


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["dedup", "fence", "drain"])
def test_a_guard_that_is_taken_out_is_missed(simulation: Bench, guard: str) -> None:
    """The oracle can fail: without the delivery's dedup, the commit's fence or the draining of parked messages seeds
    turn red, and a red seed shrinks to a history that is much shorter and still fails."""
    url = f"unix://{simulation.client.connection_pool.connection_kwargs['path']}"
    with without(guard), bench(url) as broken:
        red = next((seed for seed in range(SEEDS) if broken.seed(seed).faults), None)
        assert red is not None, f"nobody misses {guard}"
        events, faults = broken.shortest(red)
    assert faults
    assert len(events) < len(history(red)) / 2
    assert simulation.play(events).faults == [], "with the guard the same history is well"
