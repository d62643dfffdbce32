"""The README's Python runs as it stands there, each snippet by itself."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
IN_PROCESS = [snippet for snippet in SNIPPETS if "store=None" in snippet]


def test_the_readme_shows_snippets() -> None:
    assert len(IN_PROCESS) == 2
    assert len(SNIPPETS) == 3


@pytest.mark.parametrize(
    ("snippet", "printed"),
    list(
        zip(
            IN_PROCESS,
            ["completed ('ordered', 'approve', 'decide', 'paid', 'shipped') 125\n", "R-12\n"],
            strict=True,
        )
    ),
)
def test_a_snippet_prints_what_it_promises(snippet: str, printed: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(snippet, "README.md", "exec"), {"__name__": "readme"})
    assert out.getvalue() == printed


def test_links_of_the_readme_lead_somewhere() -> None:
    root = Path(__file__).parents[2]
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (root / target).exists(), target
