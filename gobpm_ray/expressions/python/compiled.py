"""Expressions and scripts of the Python subset as whole: text in, something to evaluate or run out.

Python's parser reads the text, and closures of our own run it: there is no `eval`, no import, no way from a value to
Python's objects. Every run has a budget of steps, and whatever grows has a limit. A missing variable is an error.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions.budget import FREE, Refused, Run, check_result, check_source, failure, surprise
from gobpm_ray.expressions.python.compiler import ExpressionCompiler
from gobpm_ray.expressions.python.methods import CHANGING, METHODS
from gobpm_ray.expressions.python.statements import Execute, StatementCompiler, Workspace
from gobpm_ray.expressions.python.syntax import Dialect, Evaluate

T = TypeVar("T")

_EXPRESSION = Dialect()
_SCRIPT = Dialect(methods={of: {**METHODS[of], **CHANGING.get(of, {})} for of in METHODS})


class CompiledPython:
    """A compiled expression of the Python subset, or of a language that shares its closures."""

    __slots__ = ("_evaluate", "_label", "_simple", "_text")

    def __init__(self, label: str, text: str, evaluate: Evaluate, simple: bool) -> None:
        self._label = label
        self._text = text
        self._evaluate = evaluate
        self._simple = simple

    def evaluate(self, variables: Mapping[str, object], now_ms: int) -> object:
        try:
            if self._simple:
                return self._evaluate(variables, FREE)
            value = self._evaluate(variables, Run(now_ms))
            check_result(value)
        except Refused as error:
            raise failure(self._label, self._text, error) from None
        except Exception as error:
            raise surprise(self._label, self._text, error) from error
        return value


class PythonScript:
    """A compiled script."""

    __slots__ = ("_execute", "_text")

    def __init__(self, text: str, execute: Execute) -> None:
        self._text = text
        self._execute = execute

    def run(self, variables: Mapping[str, object], now_ms: int) -> dict[str, object]:
        run = Run(now_ms)
        workspace = Workspace(variables, run)
        try:
            self._execute(workspace, run)
            # Measured before anything compares or walks it: a script can make a list that holds itself.
            check_result(dict(workspace))
            return workspace.results()
        except Refused as error:
            raise failure("Python", self._text, error) from None
        except Exception as error:
            raise surprise("Python", self._text, error) from error


def compile_python(text: str) -> CompiledPython:
    """The expression as closures; ExpressionError names text, position and reason."""
    text = text.strip()
    tree = parse(text, "eval")
    compiler = ExpressionCompiler(_EXPRESSION)
    evaluate = compiled("Python", text, lambda: compiler.visit(cast("ast.Expression", tree).body))
    return CompiledPython("Python", text, evaluate, compiler.simple)


def compile_python_script(text: str) -> PythonScript:
    """The script as closures; common indentation is removed, as XML adds it."""
    text = textwrap.dedent(text).strip("\n\r ")
    tree = cast("ast.Module", parse(text, "exec"))
    if not tree.body:
        raise failure("Python", text, Refused("it is empty", 0))
    return PythonScript(text, compiled("Python", text, lambda: StatementCompiler(_SCRIPT).block(tree.body)))


def compiled(label: str, text: str, compile_it: Callable[[], T]) -> T:
    """What `compile_it` gives; whatever it raises becomes the one line that names the expression."""
    try:
        return compile_it()
    except Refused as error:
        raise failure(label, text, error) from None
    except Exception as error:
        raise surprise(label, text, error) from error


def parse(text: str, mode: str) -> ast.AST:
    """Python's own syntax tree, with each column made an index into the whole text."""
    check_source("Python", text)
    try:
        tree = ast.parse(text, mode=mode)
    except SyntaxError as error:
        raise _syntax(text, error) from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise surprise("Python", text, error) from error
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = None if text.isascii() else text.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt):
            column = node.col_offset
            if lines is not None:
                column = len(lines[node.lineno - 1].encode()[:column].decode(errors="ignore"))
            node.col_offset = starts[node.lineno - 1] + column
    return tree


def _syntax(text: str, error: SyntaxError) -> ExpressionError:
    lines = text.splitlines(keepends=True)
    before = sum(map(len, lines[: max(0, (error.lineno or 1) - 1)]))
    reason = "it is empty" if not text else (error.msg or "not Python").split("\n")[0]
    return failure("Python", text, Refused(reason, before + max(0, (error.offset or 1) - 1)))
