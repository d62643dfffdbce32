"""Small DMN documents for tests, as text around what a test is about."""

from __future__ import annotations

from collections.abc import Sequence

DMN_13 = "https://www.omg.org/spec/DMN/20191111/MODEL/"


def dmn(body: str, *, space: str = DMN_13, attributes: str = "") -> bytes:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<definitions xmlns="{space}" id="file" name="File" namespace="http://example.org"{attributes}>\n'
        f"{body}\n</definitions>"
    ).encode()


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def text(name: str, content: str, attributes: str = "") -> str:
    return f"<{name}{attributes}><text>{escaped(content)}</text></{name}>"


def rule(tests: Sequence[str], entries: Sequence[str]) -> str:
    return (
        "<rule>"
        + "".join(text("inputEntry", test) for test in tests)
        + "".join(text("outputEntry", entry) for entry in entries)
        + "</rule>"
    )


def table(
    inputs: Sequence[str],
    outputs: Sequence[str],
    rules: Sequence[tuple[Sequence[str], Sequence[str]]],
    *,
    policy: str = "",
    aggregation: str = "",
    values: str = "",
    default: str = "",
) -> str:
    """`inputs` are expressions, `outputs` names; `values` and `default` are the first output's."""
    flags = (f' hitPolicy="{policy}"' if policy else "") + (f' aggregation="{aggregation}"' if aggregation else "")
    inside = "".join(f"<input>{text('inputExpression', expression)}</input>" for expression in inputs)
    for number, name in enumerate(outputs):
        more = text("outputValues", values) if values and not number else ""
        more += text("defaultOutputEntry", default) if default and not number else ""
        inside += f'<output name="{name}">{more}</output>'
    return f"<decisionTable{flags}>{inside}{''.join(rule(*each) for each in rules)}</decisionTable>"


def decision(
    body: str, decision_id: str = "d", *, requires: Sequence[str] = (), name: str = "", variable: str = ""
) -> str:
    needed = "".join(
        f'<informationRequirement><requiredDecision href="#{each}"/></informationRequirement>' for each in requires
    )
    known = f'<variable name="{variable}"/>' if variable else ""
    return f'<decision id="{decision_id}" name="{name or decision_id}">{known}{needed}{body}</decision>'
