"""The everyday texts of FEEL, read without the grammar: a path, a literal, or a comparison of the two.

Most expressions of most files are no more than `orderId`, `customer.name` or `amount > 100`, and a program that has
only such needs no parser. What is not surely one of these is left to the grammar, so nothing is refused here; that both
read the same out of a text is held by a test.
"""

from __future__ import annotations

import re

from gobpm_ray.expressions.budget import MAX_SOURCE
from gobpm_ray.expressions.feel import nodes as n
from gobpm_ray.expressions.feel.grammar import RESERVED
from gobpm_ray.expressions.feel.nodes import Node

_WORD = r"[^\W\d]\w*"
_OPERAND = rf'{_WORD}(?:\s*\.\s*{_WORD})*|[0-9]{{1,15}}|"[^"\\]*"'
_PLAIN = re.compile(rf"\s*({_OPERAND})\s*(?:(=|!=|<=|>=|<|>)\s*({_OPERAND})\s*)?")
_CONSTANTS = {"true": True, "false": False, "null": None}


def plain(text: str) -> Node | None:
    """The compiled piece, or None for a text that the grammar shall read."""
    match = _PLAIN.fullmatch(text) if len(text) <= MAX_SOURCE else None
    if match is None:
        return None
    first, symbol, second = match.groups()
    left = _operand(first)
    if symbol is None or left is None:
        return left
    right = _operand(second)
    return None if right is None else n.comparison(symbol, left, right)


def _operand(text: str) -> Node | None:
    if text[0] == '"':
        return n.constant(text[1:-1])
    if text[0] in "0123456789":
        return n.constant(int(text))
    if text in _CONSTANTS:
        return n.constant(_CONSTANTS[text])
    words = [word.strip() for word in text.split(".")]
    if not RESERVED.isdisjoint(words) or len(words) > 20:
        return None
    piece = n.variable(words[0])
    for word in words[1:]:
        piece = n.path(piece, word)
    return piece
