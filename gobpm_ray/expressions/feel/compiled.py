"""FEEL expressions as whole: text in, something to evaluate out.

A missing variable is null, and so is what has no answer (`1 + "a"`), as the standard says; only what cannot be
parsed, calls an unknown function or exceeds its budget is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from lark import Lark
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError

from gobpm_ray.expressions.budget import FREE, Refused, Run, check_result, check_source, failure, surprise
from gobpm_ray.expressions.feel.brackets import inward
from gobpm_ray.expressions.feel.builder import Builder
from gobpm_ray.expressions.feel.grammar import GRAMMAR
from gobpm_ray.expressions.feel.nodes import Node
from gobpm_ray.expressions.feel.values import FeelFunction, Interval, kind


class Feel:
    """A compiled FEEL expression that may loop, call or build."""

    __slots__ = ("_builds", "_evaluate", "_text")

    def __init__(self, text: str, node: Node) -> None:
        self._text = text
        self._evaluate = node.evaluate
        self._builds = node.builds

    def evaluate(self, variables: Mapping[str, object], now_ms: int) -> object:
        try:
            value = self._evaluate(variables, Run(now_ms))
            if self._builds:
                check_result(value)
                if isinstance(value, Interval | FeelFunction):
                    raise Refused(f"a {kind(value)} is no value that a variable can hold")
        except Refused as error:
            raise failure("FEEL", self._text, error) from None
        except Exception as error:
            raise surprise("FEEL", self._text, error) from error
        return value


class SimpleFeel:
    """A compiled FEEL expression of look-ups, comparisons and arithmetic: it needs no budget."""

    __slots__ = ("_evaluate", "_text")

    def __init__(self, text: str, node: Node) -> None:
        self._text = text
        self._evaluate = node.evaluate

    def evaluate(self, variables: Mapping[str, object], now_ms: int) -> object:
        try:
            return self._evaluate(variables, FREE)
        except Refused as error:
            raise failure("FEEL", self._text, error) from None
        except Exception as error:
            raise surprise("FEEL", self._text, error) from error


@cache
def _parser() -> Lark:
    return Lark(
        GRAMMAR,
        parser="lalr",
        lexer="contextual",
        start=["start", "tests"],
        transformer=Builder(),
        maybe_placeholders=True,
    )


def parse(text: str, start: str, shown: str = "") -> object:
    """What the grammar's rule `start` makes of the text; ExpressionError names `shown` (the text as it was written, of
    the same length), position and reason."""
    shown = shown or text
    check_source("FEEL", shown)
    try:
        parsed: object = _parser().parse(text, start=start)
    except (Refused, UnexpectedInput, VisitError) as error:
        raise failure("FEEL", shown, _reason(text, error)) from None
    except (LarkError, RecursionError, ValueError) as error:
        raise surprise("FEEL", shown, error) from error
    return parsed


def compile_feel(text: str) -> Feel | SimpleFeel:
    """The expression as closures; ExpressionError names text, position and reason."""
    node = parse(inward(text), "start", text)
    assert isinstance(node, Node)  # noqa: S101 - the start rule's reduction
    return SimpleFeel(text, node) if node.simple and not node.builds else Feel(text, node)


def _reason(text: str, error: Exception) -> Refused:
    if isinstance(error, VisitError):
        return _reason(text, error.orig_exc) if isinstance(error.orig_exc, Refused) else Refused(str(error.orig_exc))
    if isinstance(error, Refused):
        return error
    if not text.strip():
        return Refused("it is empty", 0)
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        return Refused("it ends too early", len(text))
    if isinstance(error, UnexpectedCharacters):
        position = error.pos_in_stream or 0
        return Refused(f"unexpected {text[position : position + 1]!r}{_hint(text[position:])}", position)
    if isinstance(error, UnexpectedToken):
        position = error.token.start_pos or 0
        before = 1 if text[position - 1 : position + 1] == "==" else 0
        return Refused(f"unexpected {str(error.token)[:40]!r}{_hint(text[position - before :])}", position)
    return Refused(str(error))


def _hint(rest: str) -> str:
    """What people mean who write another language's operator."""
    for sign, instead in (("==", "="), ("&&", "and"), ("||", "or"), ("!", "not(...)"), ("'", 'double quotes, "..."')):
        if rest.startswith(sign):
            return f"; FEEL writes {instead}"
    return ""
