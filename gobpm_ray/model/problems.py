"""How a finding about a model names its element, and how findings become one refusal."""

from __future__ import annotations

from gobpm_ray.errors import InvalidModel
from gobpm_ray.model.elements import FlowNode, Problem, SequenceFlow


def invalid(name: str, problems: tuple[Problem, ...]) -> InvalidModel:
    """The exception whose one line gives the first problem and counts the others."""
    rest = len(problems) - 1
    more = f" (and {rest} more problem{'s' if rest > 1 else ''})" if rest else ""
    return InvalidModel(f"{name}: {problems[0].message}{more}", problems)


def described(element: FlowNode | SequenceFlow) -> str:
    """Kind, id and line, as every message names an element."""
    kind = "sequenceFlow" if isinstance(element, SequenceFlow) else element.type
    return f"{kind} '{element.id}'" + (f" (line {element.line})" if element.line else "")


def problem(code: str, element: FlowNode | SequenceFlow, message: str) -> Problem:
    """A finding whose message begins with the element: `startEvent 'x' (line 4) has an incoming flow`."""
    return Problem(code, element.id, " ".join(f"{described(element)} {message}".split()), element.line)
