"""What the pieces of the Python compiler share: what a closure is, what a language adds, and how syntax is refused."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gobpm_ray.expressions.budget import Refused, Run
from gobpm_ray.expressions.python.functions import FUNCTIONS
from gobpm_ray.expressions.python.methods import METHODS, Method

Names = Mapping[str, object]
Evaluate = Callable[[Names, Run], object]

SPOKEN: Final = {
    "Lambda": "a lambda",
    "Await": "await",
    "Yield": "yield",
    "NamedExpr": ":=",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "LShift": "<<",
    "RShift": ">>",
    "MatMult": "@",
    "Invert": "~",
    "Import": "import",
    "ImportFrom": "import",
    "FunctionDef": "def",
    "ClassDef": "class",
    "Return": "return",
    "Delete": "del",
    "Raise": "raise",
    "Try": "try",
    "With": "with",
    "Global": "global",
    "Nonlocal": "nonlocal",
    "Assert": "assert",
    "Match": "match",
    "Starred": "*",
    "Break": "break outside a loop",
    "Continue": "continue outside a loop",
}


class Local(dict[str, object]):
    """Names of a comprehension in front of those outside."""

    __slots__ = ("outer",)

    def __init__(self, outer: Names) -> None:
        super().__init__()
        self.outer = outer

    def __missing__(self, name: str) -> object:
        return self.outer[name]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a language adds to the syntax: its functions, its methods, its name in errors."""

    label: str = "Python"
    functions: Mapping[str, Callable[..., object]] = field(default_factory=lambda: FUNCTIONS)
    methods: Mapping[type, Mapping[str, Method]] = field(default_factory=lambda: METHODS)
    prefix: str = ""
    """What the names of functions that nobody can write begin with; no part of errors."""
    refused_names: Mapping[str, str] = field(default_factory=dict)


def refuse(node: ast.AST, what: str = "") -> Refused:
    """The refusal of a piece of syntax, with its place."""
    name = type(node).__name__
    return Refused(what or f"{SPOKEN.get(name, name)} is not allowed here", at(node))


def at(node: ast.AST) -> int:
    """Where a piece of syntax stands: whoever parsed has made its column an index into the whole text."""
    return getattr(node, "col_offset", 0)
