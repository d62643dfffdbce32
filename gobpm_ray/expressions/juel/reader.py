"""JUEL's text as Python's syntax nodes, by recursive descent; operators become calls of functions without a name."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Final, NoReturn, TypeVar

from gobpm_ray.expressions.budget import Refused
from gobpm_ray.expressions.juel.operators import PREFIX

Piece = TypeVar("Piece", bound=ast.expr)

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[<>!+\-*/%?:.\[\](),}]))""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final = {
    "and": "&&",
    "or": "||",
    "not": "!",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "div": "/",
    "mod": "%",
}
_LEVELS: Final = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
_NESTING: Final = 50


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    position: int


class Reader:
    """A recursive-descent reader of one `${...}`, from just behind its brace; it makes Python's syntax nodes."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.depth = 0
        self.token = self._next()

    def _next(self) -> Token:
        found = _TOKEN.match(self.text, self.position)
        if found is None:
            rest = len(self.text) - len(self.text[self.position :].lstrip())
            reason = "it ends too early" if rest >= len(self.text) else f"unexpected {self.text[rest : rest + 1]!r}"
            raise Refused(reason, rest)
        kind = found.lastgroup or ""
        text = found[kind]
        start, self.position = found.start(kind), found.end()
        if kind == "word" and text in _WORDS:
            kind, text = "sign", _WORDS[text]
        return Token(kind, text, start)

    def advance(self) -> Token:
        token = self.token
        if token.text != "}" or token.kind != "sign":
            self.token = self._next()
        return token

    def at(self, *signs: str) -> bool:
        return self.token.kind == "sign" and self.token.text in signs

    def unexpected(self) -> NoReturn:
        text = self.token.text
        raise Refused("it ends too early" if text == "}" else f"unexpected {text[:40]!r}", self.token.position)

    def expect(self, sign: str) -> None:
        if not self.at(sign):
            self.unexpected()
        self.advance()

    def whole(self) -> ast.expr:
        """The expression up to its closing brace, behind which `position` then stands."""
        made = self.ternary()
        if not self.at("}"):
            self.unexpected()
        return made

    def ternary(self) -> ast.expr:
        self.depth += 1
        if self.depth > _NESTING:
            raise Refused(f"operations are nested more than {_NESTING} deep", self.token.position)
        condition = self.binary(0)
        if self.at("?"):
            place = self.advance().position
            then = self.ternary()
            self.expect(":")
            condition = _placed(ast.IfExp(_call("truth", place, condition), then, self.ternary()), place)
        self.depth -= 1
        return condition

    def binary(self, level: int) -> ast.expr:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.at(*_LEVELS[level]):
            token = self.advance()
            right = self.binary(level + 1)
            if token.text in ("&&", "||"):
                sides: list[ast.expr] = [_call("truth", token.position, side) for side in (left, right)]
                left = _placed(ast.BoolOp(ast.And() if token.text == "&&" else ast.Or(), sides), token.position)
            else:
                left = _call(token.text, token.position, left, right)
        return left

    def unary(self) -> ast.expr:
        if self.at("!", "-") or (self.token.kind == "word" and self.token.text == "empty"):
            token = self.advance()
            self.depth += 1
            if self.depth > _NESTING:
                raise Refused(f"operations are nested more than {_NESTING} deep", token.position)
            operand = self.unary()
            self.depth -= 1
            if token.text == "!":
                return _placed(ast.UnaryOp(ast.Not(), _call("truth", token.position, operand)), token.position)
            return _call("negate" if token.text == "-" else "empty", token.position, operand)
        return self.postfix(self.primary())

    def postfix(self, value: ast.expr) -> ast.expr:
        while self.at(".", "[", "("):
            token = self.advance()
            if token.text == "(":
                if not isinstance(value, ast.Name):
                    raise Refused("only functions known by name can be called", token.position)
                value = _placed(ast.Call(value, self.arguments(), []), value.col_offset)
            elif token.text == "[":
                key = self.ternary()
                self.expect("]")
                value = _call("get", token.position, value, key)
            else:
                name = self.advance()
                if name.kind != "word":
                    raise Refused(f"unexpected {name.text[:40]!r}", name.position)
                if self.at("("):
                    self.advance()
                    method = _placed(ast.Attribute(value, name.text, ast.Load()), name.position)
                    value = _placed(ast.Call(method, self.arguments(), []), name.position)
                else:
                    value = _call("get", name.position, value, _placed(ast.Constant(name.text), name.position))
        return value

    def arguments(self) -> list[ast.expr]:
        given: list[ast.expr] = []
        while not self.at(")"):
            given.append(self.ternary())
            if not self.at(")"):
                self.expect(",")
        self.advance()
        return given

    def primary(self) -> ast.expr:
        token = self.token
        if self.at("("):
            self.advance()
            inner = self.ternary()
            self.expect(")")
            return inner
        if token.kind == "sign":
            self.unexpected()
        self.advance()
        if token.kind == "word" and token.text not in ("true", "false", "null"):
            return _placed(ast.Name(token.text, ast.Load()), token.position)
        return _placed(ast.Constant(_constant(token)), token.position)


def _constant(token: Token) -> str | int | float | None:
    if token.kind == "text":
        return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
    if token.kind == "number":
        if len(token.text) > 1_000:
            raise Refused("a number has too many digits", token.position)
        return int(token.text) if token.text.isdigit() else float(token.text)
    return {"true": True, "false": False, "null": None}[token.text]


def _placed(node: Piece, position: int) -> Piece:
    node.lineno, node.col_offset = 1, position
    return node


def _call(symbol: str, position: int, *arguments: ast.expr) -> ast.expr:
    function = _placed(ast.Name(f"{PREFIX}{symbol}", ast.Load()), position)
    return _placed(ast.Call(function, list(arguments), []), position)
