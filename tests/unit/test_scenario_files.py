"""Scenario files: what they may say, and one clear line for everything else (design 11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from gobpm_ray.engine.scenario import START_OF_TIME_MS, load_scenario, parse_scenario
from gobpm_ray.engine.steps import Stop
from gobpm_ray.engine.views import moment_text
from gobpm_ray.errors import InvalidScenario

EVERY_STEP = """
process: order
variables: {amount: 5}
now: 2026-03-01T08:00:00+01:00
max_steps: 50
steps:
  - {advance: PT2H}
  - {message: {name: Paid, key: 7, payload: {by: card}, id: m1, ttl: P1D}}
  - {signal: {name: Go, payload: {a: 1}}}
  - {complete: {task: approve, user: ada, outputs: {ok: true}}}
  - {claim: {task: approve, user: ada, groups: [staff]}}
  - {unclaim: {task: approve}, optional: true}
  - {job: {job: ship, outputs: {n: 1}}, all: true}
  - {error: {job: ship, code: E1, message: lost}}
  - {fail: {job: ship, cause: no paper, retries: 2}}
  - {escalate: {job: pack, code: X}}
  - {retry: {node: ship}}
  - {resolve: {node: ship, outputs: {n: 2}}}
  - {set: {amount: 6}}
  - {cancel: {}}
  - {suspend: {}}
  - {resume: {}}
  - {start: {process: other, variables: {b: 1}}}
  - {expect: {state: waiting, waits: [approve], variables: {amount: 6}, completed: [start]}}
  - {restart: {}}
  - {stop: {}}
"""


def test_every_step_of_the_contract_is_read() -> None:
    scenario = parse_scenario(EVERY_STEP)
    assert [step.kind for step in scenario.steps] == [
        *("advance", "message", "signal", "complete", "claim", "unclaim", "job", "error", "fail", "escalate", "retry"),
        *("resolve", "set", "cancel", "suspend", "resume", "start", "expect", "restart", "stop"),
    ]
    assert [step.number for step in scenario.steps] == list(range(1, 21))
    assert scenario.steps[5].optional
    assert not scenario.steps[4].optional
    assert scenario.steps[6].body.all  # type: ignore[union-attr]
    assert (scenario.process, scenario.variables, scenario.max_steps) == ("order", {"amount": 5}, 50)
    assert moment_text(scenario.now_ms) == "2026-03-01T07:00:00Z"
    assert isinstance(scenario.steps[-1].body, Stop)
    assert scenario.stops


def test_elements_named_by_job_steps_wait_as_jobs() -> None:
    assert parse_scenario(EVERY_STEP).job_nodes == {"ship", "pack"}
    assert parse_scenario("steps: [{job: {job: 'i-1/3:a:b:0:7'}}]").job_nodes == {"a:b"}


def test_an_empty_scenario_just_runs() -> None:
    scenario = parse_scenario("")
    assert (scenario.steps, scenario.now_ms, scenario.stops) == ((), START_OF_TIME_MS, False)
    assert moment_text(scenario.now_ms) == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("now", ["2026-01-01T00:00:00Z", "'2026-01-01T00:00:00Z'", "2026-01-01", "2026-01-01 00:00:00"])
def test_now_is_read_as_text_and_as_yaml_moments(now: str) -> None:
    assert parse_scenario(f"now: {now}").now_ms == START_OF_TIME_MS


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1, 2]", "s.yaml: expected a table"),
        ("a: [", "s.yaml: not YAML"),
        ("a: !!python/object/apply:os.system ['true']", "s.yaml: not YAML"),
        ("stepz: []", "s.yaml: stepz: is not a field of it"),
        ("now: tomorrow", "s.yaml: now:"),
        ("now: 12", "s.yaml: now: expected a date and time"),
        ("max_steps: 0", "s.yaml: max_steps:"),
        ("variables: [1]", "s.yaml: variables:"),
        ("steps: {advance: PT1H}", "s.yaml: steps:"),
        ("steps: [advance]", "s.yaml: step 1: expected one step"),
        ("steps: [{}]", "s.yaml: step 1: expected exactly one of"),
        ("steps: [{advance: PT1H}, {advance: PT1H, stop: {}}]", "s.yaml: step 2: expected exactly one of"),
        ("steps: [{wait: PT1H}]", "s.yaml: step 1: unknown step 'wait'"),
        ("steps: [{advance: soon}]", "s.yaml: step 1: advance: duration 'soon'"),
        ("steps: [{advance: 3}]", "s.yaml: step 1: advance:"),
        ("steps: [{message: {key: 1}}]", "s.yaml: step 1: message: name: is missing"),
        ("steps: [{message: {name: M, key: [1]}}]", "s.yaml: step 1: message: key"),
        ("steps: [{message: {name: M, payload: 3}}]", "s.yaml: step 1: message: payload"),
        ("steps: [{complete: approve}]", "s.yaml: step 1: complete: expected a table, found approve"),
        ("steps: [{complete: {task: a, taks: b}}]", "s.yaml: step 1: complete: taks: is not a field of it"),
        ("steps: [{complete: {task: a}, optional: maybe}]", "s.yaml: step 1: optional:"),
        ("steps: [{fail: {job: a, cause: b, retries: -1}}]", "s.yaml: step 1: fail: retries:"),
        ("steps: [{expect: {state: done}}]", "s.yaml: step 1: expect: state:"),
        ("steps: [{stop: {}}, {advance: PT1H}]", "s.yaml: step 1: stop: only the last step may be stop"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(text: str, why: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        parse_scenario(text, "s.yaml")
    assert str(refused.value).startswith(why)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidScenario, match=r"nope\.yaml: cannot be read"):
        load_scenario(tmp_path / "nope.yaml")
