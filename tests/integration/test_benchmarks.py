"""The benchmarks run, with tiny numbers, and what they share is right (issue 7). What they measure here means nothing.

Those on Ray take seconds each and stand among the long tests, all but one.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks import harness, suite
from benchmarks.plot import growth_svg


def test_flatness_compares_the_last_quarter_with_the_second_and_leaves_out_the_warm_up():
    grows = [{"mb": float(number)} for number in range(1, 101)]
    level = [{"mb": 500.0}] * 25 + [{"mb": 80.0}] * 75
    assert harness.flatness(grows)["mb"]["last_to_settled"] > 2
    assert harness.flatness(level)["mb"]["last_to_settled"] == 1.0


def test_deciles_show_a_series_whose_last_steps_cost_more():
    assert harness.deciles([0.001] * 90 + [0.003] * 10)["last_to_first"] == 3.0


def test_latencies_are_in_milliseconds_and_the_worst_is_not_left_out():
    found = harness.latencies([0.001] * 99 + [1.0])
    assert (found["p50_ms"], found["max_ms"], found["count"]) == (1.0, 1000.0, 100)


def test_every_program_of_the_suite_has_numbers_for_all_three_sizes():
    for name in suite.PROGRAMS:
        program = importlib.import_module(f"benchmarks.{name}").PROGRAM
        for number in program.numbers.values():
            assert number.tiny <= number.quick <= number.full


def test_the_plot_has_a_point_for_each_population_in_each_line():
    row = {
        "wakes_per_s": {"median": 5_000, "min": 4_500, "max": 5_200},
        "starts_per_s": {"median": 3_000, "min": 2_900, "max": 3_100},
        "latency": {"p50_ms": 3.0, "p90_ms": 4.0, "p99_ms": 9.0},
    }
    result = {"by_population": {"1000": row, "100000": row}, "machine": {"cores": 2, "load": [0.1, 0.2, 0.3]}}
    drawn = ElementTree.fromstring(growth_svg(result))
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}circle"))) == 2 * 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["footprint", "fanout", "wide", "profile_wake"])
def test_a_benchmark_without_ray_runs_with_tiny_numbers(name):
    result = importlib.import_module(f"benchmarks.{name}").PROGRAM.run("tiny")
    assert json.loads(json.dumps(result))["machine"]["cores"]


@pytest.mark.slow
def test_the_core_benchmark_runs_beside_spiffworkflow():
    pytest.importorskip("SpiffWorkflow")
    result = importlib.import_module("benchmarks.core").PROGRAM.run("tiny")
    assert result["wakes_ratio"] > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_soak_runs_on_ray_and_its_instances_still_wait_in_the_end(ray_cluster):
    result = importlib.import_module("benchmarks.soak").PROGRAM.run("tiny", seconds=0.5, instances=5)
    assert result["nights"] > 0
    assert result["wakes"] == result["nights"] * 5


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["wake", "growth", "starts", "latency", "broadcast", "mixed", "peers"])
def test_a_benchmark_on_ray_runs_with_tiny_numbers(name, ray_cluster):
    if name == "peers":
        pytest.importorskip("SpiffWorkflow")
    result = importlib.import_module(f"benchmarks.{name}").PROGRAM.run("tiny")
    assert json.loads(json.dumps(result))["took_s"] > 0


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["accept", "recovery"])
def test_a_benchmark_that_is_alone_with_its_ray_runs_with_tiny_numbers(name):
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", "--size", "tiny"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout.splitlines()[-1])["took_s"] > 0
