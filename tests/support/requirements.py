"""Which test shows which requirement or scenario: the page `docs/requirements-coverage.md`, written and read.

`python -m tests.support.requirements` writes the page anew from the tests' docstrings and names. It knows ids and
where they are cited; whether a test is a good one is its reader's to say.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "requirements-coverage.md"
GROUPS: dict[str, tuple[str, tuple[range, ...]]] = {
    "X": ("What the original gets wrong", (range(1, 17),)),
    "D": ("Dehydration", (range(1, 26),)),
    "N": ("Suspension and leases", (range(1, 13),)),
    "H": ("Holders, and scenarios of human tasks", (range(1, 13), range(56, 59))),
    "C": ("The shape of the project, and scenarios of leases", (range(1, 7), range(59, 71))),
    "W": ("Scenarios: release and wake", (range(1, 20),)),
    "R": ("Scenarios: races", (range(20, 31),)),
    "F": ("Scenarios: failed wakes", (range(31, 36),)),
    "T": ("Scenarios: timers", (range(36, 48),)),
    "M": ("Scenarios: messages and signals", (range(48, 56),)),
    "A": ("Scenarios: attempts and recovery", (range(71, 80),)),
    "S": ("Scenarios: structure", (range(80, 86),)),
    "I": ("Scenarios: import", (range(86, 89),)),
    "E": ("Scenarios: environment", (range(89, 94),)),
}
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
SHOWN = 3
"""Tests named for each id; more may cite it."""


def ids() -> list[str]:
    return [f"{group}{n}" for group, (_, ranges) in GROUPS.items() for numbers in ranges for n in numbers]


def citations() -> dict[str, dict[str, set[str]]]:
    """File -> test -> the ids that its docstring or its name cites."""
    found: dict[str, dict[str, set[str]]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tests: dict[str, set[str]] = {}
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                spelled = f"{ast.get_docstring(node) or ''} {node.name.upper().replace('_', ' ')}"
                tests[node.name] = set(re.findall(r"(?<![\w.-])[A-Z]\d{1,2}(?!\w)", spelled))
        found[str(path.relative_to(ROOT))] = tests
    return found


def claims() -> dict[str, list[tuple[str, str]]]:
    """Id -> the tests that the page names for it; an empty list: the page says that there is none."""
    rows = re.findall(r"^\| ([A-Z]\d+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    return {each: NAMED.findall(shown) for each, shown in rows}


def page() -> str:
    by_id: dict[str, list[str]] = {}
    for file, tests in citations().items():
        for test, cited in tests.items():
            for each in cited:
                by_id.setdefault(each, []).append(f"`{file}::{test}`")
    lines = [
        "# Requirements and scenarios, and the tests that show them",
        "",
        f"At most {SHOWN} tests are named for each id; more may cite it. A test holds this page to the tests.",
        "Written by `python -m tests.support.requirements`.",
    ]
    for group, (title, ranges) in GROUPS.items():
        lines += ["", f"## {group}: {title}", "", "| id | shown by |", "|---|---|"]
        for number in (n for numbers in ranges for n in numbers):
            tests_of = by_id.get(f"{group}{number}", [])
            # A test of the real engine last: it says most and runs longest.
            shown = " ".join(_spread(tests_of)) or "no test cites it"
            lines.append(f"| {group}{number} | {shown} |")
    return "\n".join(lines) + "\n"


def _spread(tests: list[str]) -> list[str]:
    """Of as many folders as possible."""
    folders: dict[str, list[str]] = {}
    for test in tests:
        folders.setdefault("/".join(test.split("/")[:2]), []).append(test)
    chosen = [test for rank in range(SHOWN) for each in folders.values() for test in each[rank : rank + 1]]
    return chosen[:SHOWN]


if __name__ == "__main__":
    PAGE.write_text(page())
