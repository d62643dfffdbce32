"""Bad input (issue 2): one line that names the thing, exit 2 (input) or 5 (environment), never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.documents import APPROVAL, document, flows, written
from tests.unit.cli.conftest import CommandLine


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path, APPROVAL)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("this is not xml", "cannot be read as XML"),
        ("", "cannot be read as XML"),
        ("<html/>", "not BPMN"),
        (document('<bpmn:startEvent id="s"/><bpmn:choreographyTask id="choreo7"/>'), "choreo7"),
        (
            document('<bpmn:startEvent id="s"/><bpmn:sequenceFlow id="flow7" sourceRef="s" targetRef="nowhere"/>'),
            "flow7",
        ),
        (document('<bpmn:startEvent id="s"/>', executable="false"), "isExecutable is false"),
    ],
)
def test_a_file_that_cannot_be_run_is_rejected_by_name(
    gobpm: CommandLine, tmp_path: Path, text: str, names: str
) -> None:
    """Not XML, an unknown element, a flow into nowhere: `rejected`, with the reason."""
    ended = gobpm("simulate", written(tmp_path, text, "bad.bpmn"), "--json")
    assert (ended.code, ended.row["state"], ended.row["instance_id"]) == (2, "rejected", None)
    assert names.lower() in ended.row["error"].lower()
    assert "bad.bpmn" in ended.row["error"]
    assert "\n" not in ended.row["error"]
    assert "Traceback" not in ended.err


def test_check_tells_the_same(gobpm: CommandLine, tmp_path: Path, file: Path) -> None:
    good, bad = gobpm("check", file, "--json"), gobpm("check", written(tmp_path, "nope", "bad.bpmn"), "--json")
    assert (good.code, good.row["ok"], good.row["processes"], good.row["executable"]) == (0, True, ["p"], True)
    assert (bad.code, bad.row["ok"], len(bad.row["errors"])) == (2, False, 1)
    assert set(good.row) >= {"file", "ok", "processes", "executable", "errors", "warnings"}
    assert "refused" in gobpm("check", tmp_path / "bad.bpmn").out


def test_a_missing_file_and_a_folder_are_named_before_anything_runs(
    gobpm: CommandLine, tmp_path: Path, file: Path
) -> None:
    missing = gobpm("simulate", file, tmp_path / "nope.bpmn", "--json")
    assert (missing.code, missing.error) == (2, f"{tmp_path / 'nope.bpmn'}: there is no such file")
    assert gobpm("simulate", tmp_path, "--json").code == 2
    assert gobpm("simulate", file, "--with", tmp_path / "nope.bpmn", "--json").code == 2


def test_an_unknown_process_is_named(gobpm: CommandLine, file: Path) -> None:
    ended = gobpm("simulate", file, "--process", "nope", "--json")
    assert (ended.code, ended.row["error"]["code"]) == (2, "unknown_process")
    assert "nope" in ended.error


@pytest.mark.parametrize("value", ["a=Ada", "a=", "a={", "a", "=1", "a=NaN", "a=[1,]"])
def test_a_variable_that_is_not_json_is_named(gobpm: CommandLine, file: Path, value: str) -> None:
    ended = gobpm("simulate", file, "--var", value, "--json")
    assert ended.code == 2
    assert "--var" in ended.error


@pytest.mark.parametrize("text", ["a: [", "steps: [{fly: {}}]", "- 1"])
def test_a_scenario_that_is_none_is_named(gobpm: CommandLine, tmp_path: Path, file: Path, text: str) -> None:
    ended = gobpm("simulate", file, "--scenario", written(tmp_path, text, "s.yaml"), "--json")
    assert (ended.code, ended.row["error"]["code"]) == (2, "invalid_scenario")
    assert "s.yaml" in ended.error
    assert gobpm("simulate", file, "--scenario", tmp_path / "nope.yaml", "--json").code == 2


def test_a_value_that_cannot_be_stored_rejects_the_start(gobpm: CommandLine, tmp_path: Path, file: Path) -> None:
    scenario = written(tmp_path, "variables: {names: !!set {a, b}}", "s.yaml")
    ended = gobpm("simulate", file, "--scenario", scenario, "--json")
    assert (ended.code, ended.row["state"]) == (2, "rejected")
    assert "names" in ended.row["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--json"),
        ("simulate", "x.bpmn", "--nope", "--json"),
        ("nope", "--json"),
        ("run", "x.bpmn", "--clock", "sundial", "--json"),
        ("list", "--limit", "many", "--json"),
        ("claim", "t", "--json"),
    ],
)
def test_a_command_that_is_misspelt_is_a_line_and_not_a_page(gobpm: CommandLine, arguments: tuple[str, ...]) -> None:
    ended = gobpm(*arguments)
    assert (ended.code, ended.row["error"]["code"]) == (2, "usage")
    assert ended.error


def test_a_payload_that_is_not_json_is_refused_before_the_store_is_asked(
    gobpm: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOBPM_REDIS_URL", "redis://127.0.0.1:1")
    for arguments in (
        ("publish", "M", "--payload", "{nope"),
        ("publish", "M", "--payload", "[1]"),
        ("signal", "S", "--payload", "3"),
        ("start", "p", "--var", "a=b"),
        ("complete", "t", "--outputs", "nope"),
        ("resolve", "i", "n", "--outputs", "nope"),
        ("set", "i", "a=b"),
    ):
        ended = gobpm(*arguments, "--json")
        assert (ended.code, ended.row["error"]["code"]) == (2, "input"), arguments


def test_a_store_url_that_names_no_store_is_input(gobpm: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOBPM_REDIS_URL", "http://somewhere")
    ended = gobpm("list", "--json")
    assert (ended.code, ended.row["error"]["code"]) == (2, "invalid_setting")


def test_help_and_no_command_end_well(gobpm: CommandLine) -> None:
    assert gobpm("--help").code == 0
    assert gobpm("simulate", "--help").code == 0
    assert gobpm().code == 2


def test_an_interrupt_ends_without_a_traceback(gobpm: CommandLine, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gobpm_ray.engine.rehearsal import Rehearsal

    def interrupted(*_args: object, **_kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Rehearsal, "run", interrupted)
    ended = gobpm("simulate", file, "--json")
    assert (ended.code, ended.out, "Traceback" in ended.err) == (130, "", False)


def test_a_fault_of_the_engine_is_one_line_too(gobpm: CommandLine, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gobpm_ray.engine.rehearsal import Rehearsal

    def broken(*_args: object, **_kwargs: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Rehearsal, "run", broken)
    ended = gobpm("simulate", file, "--json")
    assert (ended.code, ended.row["error"]["code"]) == (1, "internal")
    monkeypatch.setenv("GOBPM_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        gobpm("simulate", file, "--json")


def test_names_are_written_as_they_are(gobpm: CommandLine, tmp_path: Path) -> None:
    text = document('<bpmn:startEvent id="s" name="Größe ≥ 5"/><bpmn:endEvent id="e" name="[red]"/>' + flows("s", "e"))
    file = written(tmp_path, text)
    assert gobpm("simulate", file, "--json").row["trace_names"] == ["Größe ≥ 5", "[red]"]
    assert "[red]" in gobpm("simulate", file).out
