"""What a reading found wrong or odd, with element ids and lines; nothing here decides whether that is fatal."""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.model.elements import Problem

UNSUPPORTED = "unsupported"
"""The code of everything that is BPMN or a vendor's, would execute, and is not executed here yet."""


@dataclass(slots=True)
class Findings:
    """Errors and warnings of one process, in the order in which they were met."""

    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def error(self, code: str, element: etree._Element, message: str, *, owner: str = "") -> None:
        """`owner` is the id to report for an element that has none of its own, e.g. a condition's flow."""
        self.errors.append(_problem(code, element, message, owner))

    def warn(self, code: str, element: etree._Element, message: str, *, owner: str = "") -> None:
        self.warnings.append(_problem(code, element, message, owner))

    def refuse(self, element: etree._Element, *, owner: str = "", what: str = "") -> None:
        """`inclusiveGateway 'x' (line 7) is not supported yet`."""
        self.error(UNSUPPORTED, element, f"{what or named(element, owner)} is not supported yet", owner=owner)


def named(element: etree._Element, owner: str = "") -> str:
    """Kind, id and line, as every message names an element."""
    own, kind = xml.attribute(element, "id"), xml.local(element)
    place = f"(line {xml.line(element)})"
    if owner and owner != own:
        return f"{kind} of '{owner}' {place}"
    return f"{kind} '{own}' {place}" if own else f"{kind} {place}"


def _problem(code: str, element: etree._Element, message: str, owner: str) -> Problem:
    # An id may hold a line break (`&#10;`); a message never does.
    return Problem(code, owner or xml.attribute(element, "id"), " ".join(message.split()), xml.line(element))
