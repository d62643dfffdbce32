"""Expressions and constants as they stand in XML: which language a text is in, and whether it is an expression at all.

In a condition every text is an expression. Elsewhere (timers, assignments, mappings of vendors) a text is a constant
unless it is marked: `=...` is FEEL, `${...}` and `#{...}` are the simple JUEL form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.calendar.timers import parse_cycle, parse_date, parse_duration
from gobpm_ray.errors import ExpressionError, InvalidTimer
from gobpm_ray.expressions import detect_language
from gobpm_ray.model.elements import LITERAL, Expression, literal

_TIMERS: dict[str, Callable[[str], object]] = {"date": parse_date, "duration": parse_duration, "cycle": parse_cycle}


_WORD = re.compile(r"[^\W\d]\w*")
_DATA_FUNCTION = re.compile(
    r"""\b(?:\w+:)?get(?:DataObject|DataInput|DataOutput|ProcessProperty|ActivityProperty)"""
    r"""\(\s*(?:(?:'[^']*'|"[^"]*")\s*,\s*)*(?P<name>'[^']+'|"[^"]+")\s*\)(?P<path>(?:/[^\W\d]\w*)*)"""
)
"""The last argument names the data; those before it the process and the activity that has them."""
_XPATH_WORDS = re.compile(r"\bdiv\b|\btrue\s*\(\s*\)|\bfalse\s*\(\s*\)")
_IN_FEEL = {"div": "/", "true()": "true", "false()": "false"}


def variable(name: str) -> Expression:
    """A FEEL expression for the variable of this name, whatever the name is made of."""
    return Expression(name if _WORD.fullmatch(name) else f"`{name}`")


@dataclass(frozen=True, slots=True)
class Operands:
    """Reads texts under one document's default language."""

    default: str = "feel"
    declared: str = ""
    """The document's own word, where it has one that means something."""

    @classmethod
    def of(cls, definitions: etree._Element) -> Operands:
        declared = _detect("", xml.attribute(definitions, "expressionLanguage"), "")[0]
        return cls(declared or "feel", declared)

    def expression(self, text: str, declared: str = "") -> Expression:
        """The text where only an expression can stand; `declared` is its own `language` attribute."""
        if _DATA_FUNCTION.search(text) and _detect("", declared, "feel")[0] == "feel":
            return Expression(_without_xpath(text), "feel")
        language, bare = _detect(text, declared, self.default)
        return Expression(bare, language)

    def formal(self, element: etree._Element) -> Expression:
        """A `tFormalExpression` such as `conditionExpression`."""
        return self.expression(xml.text(element), xml.attribute(element, "language"))

    def operand(self, text: str) -> Expression:
        """The text where a constant is the usual case."""
        return self.expression(text) if is_marked(text) else literal(text)

    def named_variable(self, text: str) -> Expression:
        """The text where a variable's name is the usual case, and an expression is marked."""
        return self.expression(text) if is_marked(text) else variable(text)

    def optional(self, text: str) -> Expression | None:
        return self.operand(text) if text else None

    def timer(self, kind: str, element: etree._Element) -> Expression:
        """A timer's text: a constant where it reads as one, an expression where it is marked or declared as one."""
        text, declared = xml.text(element), xml.attribute(element, "language")
        if is_marked(text):
            return self.expression(text, declared)
        # Tools declare XPath by habit over plain durations: an expression has a language of ours and is no timer.
        if _reads(kind, text) or _detect(text, declared, self.declared or LITERAL)[0] == LITERAL:
            return literal(text)
        return self.expression(text, declared)


def is_marked(text: str) -> bool:
    return text.startswith("=") or "${" in text or "#{" in text


def _without_xpath(text: str) -> str:
    """BPMN's own XPath (BPMN 10.4.3) as FEEL: its data functions are variables, their paths are of names."""
    out = []
    for part in re.split(r"""('[^']*'|"[^"]*")""", _DATA_FUNCTION.sub(_named_data, text)):
        if part[:1] == "'":
            out.append('"' + part[1:-1].replace("\\", "\\\\").replace('"', '\\"') + '"')
        elif part[:1] == '"':
            out.append(part)
        else:
            out.append(_XPATH_WORDS.sub(lambda found: _IN_FEEL[found[0].replace(" ", "")], part))
    return "".join(out).strip()


def _named_data(found: re.Match[str]) -> str:
    steps = found["path"].replace("/", ".") if found["path"] else ""
    return variable(found["name"].strip("'\"")).text + steps


def _detect(text: str, declared: str, default: str) -> tuple[str, str]:
    """A language that is not executed here stays as declared: compiling it names the element, with its line."""
    try:
        return detect_language(text, declared or None, default)
    except ExpressionError:
        return declared.lower(), text.strip()


def _reads(kind: str, text: str) -> bool:
    try:
        _TIMERS[kind](text)
    except InvalidTimer:
        return False
    return True
