"""FEEL's outward brackets: `]1..5[` is `(1..5)`, told from a filter's brackets by where they stand.

A `]` opens a range where an operand is due; a `[` closes one where, after `..`, the range can only end. Everything
keeps its place, so positions in messages hold.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""(?P<skip>"(?:[^"\\]|\\.)*"|`[^`\n]*`|//[^\n]*|/\*.*?\*/)|(?P<dots>\.\.)|(?P<bracket>[][(){}])|(?P<word>\w+)"""
    r"""|(?P<sign>\S)""",
    re.DOTALL,
)
_BEFORE_OPERAND = frozenset(
    (*("in", "and", "or", "return", "satisfies", "then", "else", "if", "between"), *"([{,:=<>+-*/", "")
)
"""What an operand can follow; '' is the beginning."""
_AFTER_RANGE = re.compile(r"\s*(?:$|[,)\]}]|(?:and|or|then|else|return|satisfies)\b)")


def inward(text: str) -> str:
    """The text with every range's outward brackets turned into parentheses."""
    if ".." not in text:
        return text
    turned = list(text)
    opened: list[tuple[str, bool]] = []
    """(bracket, whether `..` was met directly in it) of every bracket that is still open"""
    before = ""
    for token in _TOKEN.finditer(text):
        found, place = token[0], token.start()
        if token["skip"]:
            before = "x"
            continue
        if token["dots"] and opened:
            opened[-1] = (opened[-1][0], True)
            before = ","
            continue
        if token["bracket"]:
            ranged = bool(opened) and opened[-1][1]
            if found == "]" and before in _BEFORE_OPERAND and not (before == "[" and opened):
                turned[place] = "("
                opened.append(("(", False))
                before = "("
                continue
            if found == "[" and ranged and _AFTER_RANGE.match(text, place + 1):
                turned[place] = ")"
                opened.pop()
                before = "x"
                continue
            if found in "([{":
                opened.append((found, False))
            elif opened:
                opened.pop()
            before = found if found in "([{" else "x"
            continue
        before = found
    return "".join(turned)
