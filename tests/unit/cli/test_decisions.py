"""DMN files on the command line: judged, deployed beside what is run, and never run themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from gobpm_ray import ProcessBuilder
from gobpm_ray.bpmn.writer import write_bpmn
from tests.unit.cli.conftest import CommandLine
from tests.unit.decisions.documents import decision, dmn, table


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    path = tmp_path / "rates.dmn"
    path.write_bytes(dmn(decision(table(["amount"], ["rate"], [(["-"], ["amount * 2"])]), "rating")))
    return path


@pytest.fixture
def order(tmp_path: Path) -> Path:
    builder = ProcessBuilder("order")
    builder.start("s").business_rule_task("r", decision="rating", result="x").end("e")
    path = tmp_path / "order.bpmn"
    path.write_bytes(write_bpmn(builder.build()))
    return path


def test_a_simulation_takes_decisions_beside_it_or_among_its_files(
    gobpm: CommandLine, order: Path, rates: Path
) -> None:
    for files in ([order, "--with", rates], [order, rates], [rates, order]):
        ended = gobpm("simulate", *files, "--var", "amount=4", "--json")
        assert (ended.code, ended.row["state"], ended.row["variables"]) == (0, "completed", {"amount": 4, "x": 8})


def test_a_simulation_of_decisions_alone_says_that_there_is_nothing_to_run(gobpm: CommandLine, rates: Path) -> None:
    ended = gobpm("simulate", rates, "--json")
    assert (ended.code, ended.row["state"]) == (2, "rejected")
    assert "there are decisions in it and no process" in ended.row["error"]


def test_a_decision_file_that_is_refused_is_an_outcome_of_its_own(
    gobpm: CommandLine, order: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.dmn"
    broken.write_bytes(dmn(decision("", "rating")))
    ended = gobpm("simulate", order, broken, "--var", "amount=4", "--json")
    assert ended.code == 2
    assert {row["state"] for row in ended.rows} == {"rejected", "incident"}


def test_check_judges_decisions_and_calls_over_all_files_at_once(
    gobpm: CommandLine, rates: Path, tmp_path: Path
) -> None:
    files = []
    for name, called in ("caller", "callee"), ("callee", ""):
        builder = ProcessBuilder(name)
        begun = builder.start()
        (begun.call("c", process=called) if called else begun).end()
        files.append(tmp_path / f"{name}.bpmn")
        files[-1].write_bytes(write_bpmn(builder.build()))
    alone = gobpm("check", files[0], "--json")
    assert [warning["element"] for warning in alone.row["warnings"]] == ["c"]
    together = gobpm("check", *files, rates, "--json")
    assert (together.code, [row["ok"] for row in together.rows]) == (0, [True, True, True])
    assert [row["warnings"] for row in together.rows] == [[], [], []]
