"""The document pipeline that people would copy, as an engine in process plays it."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.documents import play, scans
from gobpm_ray import Engine


@pytest.mark.slow
@pytest.mark.parametrize("release", [True, False], ids=["released", "stopped"])
def test_a_night_files_every_document_or_takes_every_one_out_again(tmp_path: Path, release: bool) -> None:
    scans(tmp_path, 7)
    with Engine.open(store=None) as engine:
        view = engine.inspect(play(engine, tmp_path, release=release))
    archive = sorted(path.name for path in (tmp_path / "archive").iterdir())
    assert view.state == "completed"
    assert [view.trace.count(node) for node in ("read", "check", "file")] == [7, 3, 7]
    if release:
        assert archive == [f"scan-{number:03d}.txt" for number in range(7)]
        assert view.trace[-1] == "done"
        words = [(tmp_path / "archive" / name).read_text() for name in archive]
        assert words == [f"{2 * (100 + number) + 3} words\n" for number in range(7)]
    else:
        assert archive == []
        assert view.trace.count("take_out") == 7
        assert view.trace[-1] == "taken out"
    assert "text" not in view.variables
