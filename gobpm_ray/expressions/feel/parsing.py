"""FEEL's text to pieces: the grammar on its parser, and what is told of a text that it refuses.

Importing this costs 50 ms and building the parser 100 more, which is most of an actor's creation: it is imported when
the first text asks for it (`gobpm_ray.expressions.feel.plain` reads those that do not).
"""

from __future__ import annotations

from functools import cache

from lark import Lark
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError

from gobpm_ray.expressions.budget import Refused, check_source, failure, surprise
from gobpm_ray.expressions.feel.builder import Builder
from gobpm_ray.expressions.feel.grammar import GRAMMAR


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
