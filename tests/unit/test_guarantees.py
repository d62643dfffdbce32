"""The page of guarantees names a test for each sentence, and each of those tests exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guarantees.md"
NAMED = re.compile(r"\[(tests/[\w/]+\.py)::(\w+)\]")


def names_in(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_page_names_exists() -> None:
    named = NAMED.findall(PAGE.read_text())
    assert len(named) >= 30
    missing = [f"{file}::{test}" for file, test in named if test not in names_in(ROOT / file)]
    assert missing == []


def test_every_numbered_sentence_names_a_test() -> None:
    sentences = re.split(r"\n(?=\d+\. )", PAGE.read_text())[1:]
    without = [sentence.split("\n")[0] for sentence in sentences if not NAMED.search(sentence)]
    assert len(sentences) >= 29
    assert without == []
