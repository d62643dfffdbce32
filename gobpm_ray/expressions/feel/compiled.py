"""FEEL expressions as whole: text in, something to evaluate out.

A missing variable is null, and so is what has no answer (`1 + "a"`), as the standard says; only what cannot be
parsed, calls an unknown function or exceeds its budget is an error. A function is known if it is built in, if the text
itself binds its name, or if the caller says that the variables will.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions.budget import FREE, Refused, Run, check_result, failure, surprise
from gobpm_ray.expressions.feel.brackets import inward
from gobpm_ray.expressions.feel.nodes import Node
from gobpm_ray.expressions.feel.plain import plain
from gobpm_ray.expressions.feel.values import FeelFunction, Interval, Names, kind


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

    def within(self, names: Names, run: Run) -> object:
        """The value as a part of something larger, on its budget; here a function or a range is a value too."""
        try:
            return self._evaluate(names, run)
        except Refused as error:
            raise failure("FEEL", self._text, error) from None
        except ExpressionError:
            raise
        except Exception as error:
            raise surprise("FEEL", self._text, error) from error


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

    def within(self, names: Names, _run: Run) -> object:
        """As `Feel.within`."""
        try:
            return self._evaluate(names, FREE)
        except Refused as error:
            raise failure("FEEL", self._text, error) from None
        except Exception as error:
            raise surprise("FEEL", self._text, error) from error


def refuse_unknown(text: str, node: Node, functions: Collection[str] = ()) -> None:
    """ExpressionError for the first call of a function that neither the text nor its surroundings have."""
    for name, position in node.calls:
        if name not in functions:
            raise failure("FEEL", text, Refused(f"unknown function {name[:60]!r}", position))


def compile_feel(text: str, functions: Collection[str] = ()) -> Feel | SimpleFeel:
    """The expression as closures; ExpressionError names text, position and reason. `functions` are names that the
    variables will bind to functions."""
    node = plain(text) or _parsed(text)
    refuse_unknown(text, node, functions)
    return SimpleFeel(text, node) if node.simple and not node.builds else Feel(text, node)


def _parsed(text: str) -> Node:
    from gobpm_ray.expressions.feel.parsing import parse

    node = parse(inward(text), "start", text)
    assert isinstance(node, Node)  # noqa: S101 - the start rule's reduction
    return node
