"""From the parser's reductions to compiled pieces: one method for each rule of the grammar, called bottom-up.

The parser calls these while it reads, so no tree is kept and deep nesting needs no recursion here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from lark import Token, Transformer, v_args

from gobpm_ray.expressions.budget import Refused, Run, check_bits
from gobpm_ray.expressions.feel import collections, numeric, temporal, texts  # noqa: F401 - they fill the table
from gobpm_ray.expressions.feel import nodes as n
from gobpm_ray.expressions.feel.builtins import BUILTINS
from gobpm_ray.expressions.feel.grammar import RESERVED
from gobpm_ray.expressions.feel.iso import read_temporal
from gobpm_ray.expressions.feel.iteration import (
    Over,
    UnaryTest,
    bound_call,
    filtered,
    for_loop,
    function_literal,
    interval,
    invocation,
    membership,
    quantified,
)
from gobpm_ray.expressions.feel.nodes import Node
from gobpm_ray.expressions.feel.operators import negate
from gobpm_ray.expressions.feel.values import Names, kind, number

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{6}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}
_TYPES = frozenset(
    [
        "Any",
        "Null",
        "boolean",
        "context",
        "date",
        "date and time",
        "days and time duration",
        "function",
        "list",
        "number",
        "range",
        "string",
        "time",
        "years and months duration",
    ]
)


@dataclass(frozen=True, slots=True)
class Name:
    """A name of one or more words, and where it stands."""

    text: str
    position: int


@v_args(inline=True)
class Builder(Transformer[Token, Node]):
    """The reductions of the grammar."""

    def start(self, expression: Node) -> Node:
        return expression

    def tests(self, *tests: UnaryTest) -> Sequence[UnaryTest]:
        return tests

    # --- leaves ---

    def name(self, *words: Token) -> Name:
        position = words[0].start_pos or 0
        if len(words) > 1:
            if words[0] == "not":
                raise Refused('negation is a function in FEEL: write "not(...)"', position)
            for word in words[1:]:
                if word in RESERVED:
                    raise Refused(f"unexpected {str(word)!r}", word.start_pos)
        text = " ".join(words)
        return Name(text[1:-1] if text.startswith("`") else " ".join(text.split()), position)

    def number(self, token: Token) -> Node:
        if token.isdigit():
            if len(token) > 1_300:
                raise Refused("a number has too many digits", token.start_pos)
            return n.constant(check_bits(int(token)))
        value = number(Decimal(str(token)))
        if value is None:
            raise Refused("a number is too large", token.start_pos)
        return n.constant(value)

    def string(self, token: Token) -> Node:
        return n.constant(_unescaped(token))

    def at_literal(self, token: Token) -> Node:
        try:
            return n.constant(read_temporal(_unescaped(token)))
        except ValueError as error:
            raise Refused(str(error), token.start_pos) from error

    def true(self) -> Node:
        return n.constant(True)

    def false(self) -> Node:
        return n.constant(False)

    def null(self) -> Node:
        return n.constant(None)

    def variable(self, name: Name) -> Node:
        return n.variable(name.text)

    def list(self, *parts: Node | None) -> Node:
        return n.list_literal([part for part in parts if part is not None])

    def entry(self, name: Name, value: Node) -> tuple[str, Node]:
        if value.function and name.text in BUILTINS:
            # Every call would mean FEEL's own.
            raise Refused(f"{name.text!r} is a function of FEEL itself; give this one another name", name.position)
        return name.text, value

    def text_entry(self, token: Token, value: Node) -> tuple[str, Node]:
        return _unescaped(token), value

    def context(self, *entries: tuple[str, Node] | None) -> Node:
        return n.context_literal([entry for entry in entries if entry is not None])

    # --- operators ---

    def or_(self, *parts: Node) -> Node:
        return n.disjunction(list(parts))

    def and_(self, *parts: Node) -> Node:
        return n.conjunction(list(parts))

    def compare(self, left: Node, symbol: Token, right: Node) -> Node:
        return n.comparison(str(symbol), left, right)

    def between(self, value: Node, low: Node, high: Node) -> Node:
        return n.conjunction([n.comparison(">=", value, low), n.comparison("<=", value, high)])

    def chain(self, first: Node, *rest: Node | Token) -> Node:
        return n.chain(first, [(str(rest[i]), _node(rest[i + 1])) for i in range(0, len(rest), 2)])

    def negate(self, _minus: Token, part: Node) -> Node:
        inner = part.evaluate
        if part.constant is not n.VARIABLE:
            return n.constant(negate(part.constant))
        return n.node(lambda names, run: negate(inner(names, run)), [part])

    def path(self, base: Node, name: Name) -> Node:
        return n.path(base, name.text)

    def filter(self, base: Node, condition: Node) -> Node:
        return filtered(base, condition)

    def if_(self, condition: Node, then: Node, otherwise: Node) -> Node:
        return n.choice(condition, then, otherwise)

    def instance_of(self, value: Node, _of: Token, of: Token) -> Node:
        wanted = " ".join(of.split())
        if wanted not in _TYPES:
            raise Refused(f"unknown type {wanted!r}", of.start_pos)
        wanted = wanted.lower() if wanted == "Null" else wanted
        inner = value.evaluate

        def evaluate(names: Names, run: Run) -> object:
            found = kind(inner(names, run))
            return found != "null" if wanted == "Any" else found == wanted

        return n.node(evaluate, [value])

    # --- tests and ranges ---

    def in_(self, value: Node, tests: UnaryTest | Sequence[UnaryTest]) -> Node:
        return membership(value, [tests] if isinstance(tests, UnaryTest) else [*tests])

    def test_value(self, operand: Node) -> UnaryTest:
        return UnaryTest("", operand)

    def test_compare(self, symbol: Token, operand: Node) -> UnaryTest:
        return UnaryTest(str(symbol), operand)

    def test_any(self, *tests: UnaryTest) -> Sequence[UnaryTest]:
        return tests

    def interval_closed(self, low: Node, high: Node) -> Node:
        return interval(low, high, low_included=True, high_included=True)

    def interval_open_end(self, low: Node, high: Node) -> Node:
        return interval(low, high, low_included=True, high_included=False)

    def interval_open_start(self, low: Node, high: Node) -> Node:
        return interval(low, high, low_included=False, high_included=True)

    def interval_open(self, low: Node, high: Node) -> Node:
        return interval(low, high, low_included=False, high_included=False)

    # --- loops and functions ---

    def each(self, name: Name, domain: Node) -> Over:
        return Over(name.text, domain)

    def each_number(self, name: Name, first: Node, last: Node) -> Over:
        return Over(name.text, first, last)

    def for_(self, *parts: Over | Node) -> Node:
        return for_loop([part for part in parts if isinstance(part, Over)], _node(parts[-1]))

    def quantified(self, which: Token, *parts: Over | Node) -> Node:
        overs = [part for part in parts if isinstance(part, Over)]
        return quantified(overs, _node(parts[-1]), every=which == "every")

    def params(self, *names: Name) -> Sequence[str]:
        return tuple(name.text for name in names)

    def function(self, parameters: Sequence[str] | None, body: Node) -> Node:
        return function_literal(tuple(parameters or ()), body)

    def positional(self, *arguments: Node) -> Sequence[Node]:
        return arguments

    def named(self, name: Name, value: Node) -> tuple[str, Node]:
        return name.text, value

    def by_name(self, *arguments: tuple[str, Node]) -> dict[str, Node]:
        return dict(arguments) if len(dict(arguments)) == len(arguments) else {"": arguments[0][1]}

    def call(self, name: Name, arguments: Sequence[Node] | dict[str, Node] | None) -> Node:
        given = list((arguments.values() if isinstance(arguments, dict) else arguments) or ())
        if name.text == "not" and len(given) == 1:
            return n.negation(given[0])
        if name.text == "is defined" and len(given) == 1:
            defined = given[0].defined
            return n.constant(True) if defined is None else n.node(defined, given)
        signatures = BUILTINS.get(name.text)
        if signatures is None:
            labels = tuple(arguments) if isinstance(arguments, dict) else ()
            return bound_call(name.text, name.position, given, labels)
        for signature in signatures:
            if isinstance(arguments, dict):
                order = signature.order(list(arguments))
                if order is None:
                    continue
                ordered = [given[position] if position >= 0 else n.constant(None) for position in order]
                return invocation(signature.call, ordered, signature.pay, signature.folds)
        fitting = [s for s in signatures if s.takes(len(given))] if not isinstance(arguments, dict) else []
        if not fitting:
            raise Refused(f"function {name.text!r} does not take these arguments", name.position)
        if len(fitting) == 1:
            return invocation(fitting[0].call, given, fitting[0].pay, fitting[0].folds)

        def first_answer(run: Run, *values: object) -> object:
            answers = (signature.call(run, *values) for signature in fitting)
            return next((answer for answer in answers if answer is not None), None)

        return invocation(first_answer, given, fitting[0].pay, fitting[0].folds)


def _node(part: object) -> Node:
    if not isinstance(part, Node):
        raise TypeError(type(part).__name__)
    return part


def _unescaped(token: Token) -> str:
    """The text of a string literal; a backslash before any other letter stays, for the sake of patterns."""

    def replace(found: re.Match[str]) -> str:
        escape = found[1]
        if escape[0] in "uU" and len(escape) > 1:
            code = int(escape[1:], 16)
            return chr(code) if code <= 0x10FFFF else found[0]
        return _ESCAPED.get(escape, found[0])

    return _ESCAPE.sub(replace, token[1:-1])
