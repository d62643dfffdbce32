"""JUEL expressions as a whole: `${...}` or `#{...}` alone gives its value; with text around, a text.

A missing variable is an error, a missing entry of something is null.
"""

from __future__ import annotations

import ast
import re

from gobpm_ray.expressions.budget import Run, check_source, join
from gobpm_ray.expressions.juel.operators import DIALECT, text_of
from gobpm_ray.expressions.juel.reader import Reader
from gobpm_ray.expressions.python.compiled import CompiledPython, compiled
from gobpm_ray.expressions.python.compiler import ExpressionCompiler
from gobpm_ray.expressions.python.syntax import Evaluate, Names


def _parts(text: str) -> list[str | ast.expr]:
    """Plain texts and expressions, in turn; a backslash before `${` makes it plain."""
    parts: list[str | ast.expr] = []
    position = 0
    for found in re.finditer(r"\\?[$#]\{", text):
        if found.start() < position or found[0].startswith("\\"):
            continue
        if found.start() > position:
            parts.append(text[position : found.start()])
        reader = Reader(text, found.end())
        parts.append(reader.whole())
        position = reader.position
    if position < len(text):
        parts.append(text[position:])
    return [part.replace("\\${", "${").replace("\\#{", "#{") if isinstance(part, str) else part for part in parts]


def _compiled(text: str, compiler: ExpressionCompiler) -> Evaluate:
    parts = [part if isinstance(part, str) else compiler.visit(part) for part in _parts(text)]
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0]
    compiler.spend()

    def evaluate(names: Names, run: Run) -> object:
        return join(run, "", [part if isinstance(part, str) else text_of(run, part(names, run)) for part in parts])

    return evaluate


def compile_juel(text: str) -> CompiledPython:
    """The expression as closures; ExpressionError names text, position and reason."""
    text = text.strip()
    check_source("JUEL", text)
    compiler = ExpressionCompiler(DIALECT)
    evaluate = compiled("JUEL", text, lambda: _compiled(text, compiler))
    return CompiledPython("JUEL", text, evaluate, compiler.simple)
