"""A DMN document (1.1 to 1.5) to a `DecisionFile`, as hardened as the BPMN reader, whose parser it uses.

Decision tables and literal expressions are read; other boxed expressions, knowledge models in use and requirements of
other files are refused by decision and line. Diagrams, inputs, sources and services are documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.reader import read_bytes
from gobpm_ray.decisions.compiled import Decisions
from gobpm_ray.decisions.elements import (
    Aggregation,
    Decision,
    DecisionFile,
    DecisionTable,
    HitPolicy,
    Input,
    Output,
    Rule,
)
from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions import detect_language
from gobpm_ray.model.elements import Expression, Problem
from gobpm_ray.model.problems import invalid

NAMESPACES = frozenset(
    {
        "http://www.omg.org/spec/DMN/20151101/dmn.xsd",
        "http://www.omg.org/spec/DMN/20151101/dmn11.xsd",
        "http://www.omg.org/spec/DMN/20180521/MODEL/",
        "https://www.omg.org/spec/DMN/20191111/MODEL/",
        "https://www.omg.org/spec/DMN/20211108/MODEL/",
        "https://www.omg.org/spec/DMN/20230324/MODEL/",
    }
)
"""DMN 1.1 (twice), 1.2, 1.3, 1.4, 1.5."""

_FIRST_TAG = re.compile(rb"<(?:(?P<prefix>[\w.-]+):)?definitions\b[^>]*>")
_POLICIES = ("UNIQUE", "FIRST", "PRIORITY", "ANY", "COLLECT", "RULE ORDER", "OUTPUT ORDER")
_AGGREGATIONS = ("", "SUM", "COUNT", "MIN", "MAX")
_BODIES = (
    *("decisionTable", "literalExpression", "context", "list", "relation", "invocation", "functionDefinition"),
    *("conditional", "for", "some", "every", "filter"),
)


def read_dmn_file(path: str | Path) -> DecisionFile:
    """The file's decisions. Raises `InvalidModel` for its content, `OSError` where it cannot be opened."""
    return read_dmn(read_bytes(path), str(path))


def read_decisions(data: bytes, name: str = "<bytes>") -> Decisions:
    """The document's decisions, ready to evaluate. Raises `InvalidModel` as `read_dmn` and `Decisions` do."""
    return Decisions(read_dmn(data, name))


def is_dmn(data: bytes) -> bool:
    """Whether the bytes look like a DMN document: its first tag names its namespace, without reading it whole."""
    tag = _FIRST_TAG.search(data[:65_536].replace(b"\0", b""))
    if tag is None:
        return False
    prefix = tag["prefix"] or b""
    space = re.search(rb"\sxmlns" + (b":" + re.escape(prefix) if prefix else b"") + rb"\s*=\s*[\"']([^\"']*)", tag[0])
    return space is not None and space[1].decode("utf-8", "replace").strip() in NAMESPACES


def read_dmn(data: bytes, name: str = "<bytes>") -> DecisionFile:
    """The document's decisions. Raises `InvalidModel`: one line with `name`, decision, line and reason of the first
    fault, and all of them in `problems`."""
    root, _ = xml.parse(data, name)
    space = xml.namespace(root)
    if xml.local(root) != "definitions" or space not in NAMESPACES:
        raise xml.refused(name, "not_dmn", f"is not DMN 1.1 to 1.5: its root is '{xml.local(root)}' in '{space}'")
    reading = _Reading(space, xml.attribute(root, "expressionLanguage"))
    decisions: dict[str, Decision] = {}
    for element in reading.children(root, "decision"):
        decision = reading.decision(element)
        if decision.id in decisions:
            reading.error("duplicate_id", element, f"decision '{decision.id}' is there twice")
        decisions.setdefault(decision.id, decision)
    for decision in decisions.values():
        for required in decision.requires:
            if required not in decisions:
                message = f"decision '{decision.id}' requires '{required}', which is not in this file"
                reading.problems.append(Problem("unknown_reference", decision.id, message, decision.line))
    if not decisions:
        reading.problems.append(Problem("no_decision", "", "there is no decision in this file", xml.line(root)))
    if reading.problems:
        raise invalid(name, tuple(reading.problems))
    return DecisionFile(name, decisions)


class _Reading:
    """One document being read, in one version's namespace."""

    def __init__(self, space: str, language: str) -> None:
        self._space = f"{{{space}}}"
        self._language = language
        self._decision = ""
        self.problems: list[Problem] = []

    def children(self, element: etree._Element, name: str) -> Iterator[etree._Element]:
        return iter(element.findall(self._space + name))

    def child(self, element: etree._Element | None, name: str) -> etree._Element | None:
        return None if element is None else element.find(self._space + name)

    def text(self, element: etree._Element | None) -> str:
        """What the element's `text` child says."""
        found = self.child(element, "text")
        return "" if found is None else xml.text(found)

    def error(self, code: str, element: etree._Element, message: str) -> None:
        line = xml.line(element)
        self.problems.append(Problem(code, self._decision, " ".join(f"{message} (line {line})".split()), line))

    def decision(self, element: etree._Element) -> Decision:
        decision_id = self._decision = xml.attribute(element, "id")
        if not decision_id:
            self.error("missing_id", element, "a decision has no id")
        requires = []
        for requirement in self.children(element, "informationRequirement"):
            required = self.child(requirement, "requiredDecision")
            if required is not None:
                requires.append(self._reference(required))
        for requirement in self.children(element, "knowledgeRequirement"):
            what = f"decision '{decision_id}' uses a knowledge model, which is not supported yet"
            self.error("unsupported", requirement, what)
        variable = self.child(element, "variable")
        return Decision(
            id=decision_id,
            name=_name(element),
            body=self._body(element),
            variable="" if variable is None else _name(variable),
            requires=tuple(filter(None, requires)),
            line=xml.line(element),
        )

    def _reference(self, element: etree._Element) -> str:
        document, _, fragment = xml.attribute(element, "href").rpartition("#")
        if document or not fragment:
            reference = xml.attribute(element, "href")
            self.error("unsupported", element, f"decision '{self._decision}' requires '{reference}' of another file")
            return ""
        return fragment

    def _body(self, element: etree._Element) -> DecisionTable | Expression:
        for child in element:
            kind = xml.local(child)
            if xml.namespace(child) != self._space[1:-1] or kind not in _BODIES:
                continue
            if kind == "decisionTable":
                return self._table(child)
            if kind == "literalExpression":
                return self._expression(child, "its literal expression")
            self.error("unsupported", child, f"decision '{self._decision}' is a {kind}, which is not supported yet")
            return Expression("null")
        self.error("missing_body", element, f"decision '{self._decision}' has neither a table nor an expression")
        return Expression("null")

    def _expression(self, element: etree._Element, what: str, *, required: bool = True) -> Expression:
        text = self.text(element)
        if not text:
            if required:
                self.error("missing_expression", element, f"decision '{self._decision}': {what} is empty")
            return Expression("")
        try:
            language, bare = detect_language(text, xml.attribute(element, "expressionLanguage") or self._language)
        except ExpressionError as refused:
            self.error("expression", element, f"decision '{self._decision}': {what}: {refused}")
            return Expression("null")
        return Expression(bare, language)

    # --- tables ------------------------------------------------------------------------------------------------------

    def _table(self, element: etree._Element) -> DecisionTable:
        policy = xml.attribute(element, "hitPolicy").upper().replace("_", " ") or "UNIQUE"
        aggregation = xml.attribute(element, "aggregation").upper()
        if policy not in _POLICIES or aggregation not in _AGGREGATIONS:
            self.error("hit_policy", element, f"decision '{self._decision}' has the hit policy {policy} {aggregation}")
            policy, aggregation = "UNIQUE", ""
        outputs = tuple(self._output(output) for output in self.children(element, "output"))
        inputs = tuple(self._input(each, number) for number, each in enumerate(self.children(element, "input"), 1))
        rules = tuple(
            self._rule(rule, number, len(inputs), len(outputs))
            for number, rule in enumerate(self.children(element, "rule"), 1)
        )
        self._shape(element, outputs, policy, aggregation)
        return DecisionTable(inputs, outputs, rules, cast("HitPolicy", policy), cast("Aggregation", aggregation))

    def _shape(self, element: etree._Element, outputs: tuple[Output, ...], policy: str, aggregation: str) -> None:
        decision = f"decision '{self._decision}'"
        if not outputs:
            self.error("missing_output", element, f"{decision} has no output")
        if len(outputs) > 1 and (not all(output.name for output in outputs) or _twice(outputs)):
            self.error("missing_output", element, f"{decision} has several outputs, and not each a name of its own")
        if aggregation and policy != "COLLECT":
            self.error("hit_policy", element, f"{decision} aggregates ({aggregation}) with the hit policy {policy}")
        elif aggregation and len(outputs) > 1:
            self.error("hit_policy", element, f"{decision} aggregates ({aggregation}) several outputs")
        if policy in ("PRIORITY", "OUTPUT ORDER") and not any(output.values for output in outputs):
            self.error("hit_policy", element, f"{decision} has the hit policy {policy} and no allowed output values")

    def _input(self, element: etree._Element, number: int) -> Input:
        expression = self.child(element, "inputExpression")
        label = " ".join(xml.attribute(element, "label").split())
        if expression is None:
            self.error("missing_expression", element, f"decision '{self._decision}': input {number} has no expression")
            return Input(label, Expression("null"), xml.line(element))
        return Input(label, self._expression(expression, f"input {number}"), xml.line(element))

    def _output(self, element: etree._Element) -> Output:
        default = self.child(element, "defaultOutputEntry")
        written = None if default is None else self._expression(default, "a default output", required=False)
        return Output(
            name=_name(element),
            values=self.text(self.child(element, "outputValues")),
            default=written if written is not None and written.text else None,
            line=xml.line(element),
        )

    def _rule(self, element: etree._Element, number: int, inputs: int, outputs: int) -> Rule:
        tests = tuple(self.text(entry) for entry in self.children(element, "inputEntry"))
        entries = tuple(
            self._expression(entry, f"rule {number}, an output", required=False)
            for entry in self.children(element, "outputEntry")
        )
        if len(tests) != inputs or len(entries) != outputs:
            found = f"{len(tests)} and {len(entries)} cells for {inputs} inputs and {outputs} outputs"
            self.error("rule_cells", element, f"decision '{self._decision}', rule {number} has {found}")
        return Rule(xml.attribute(element, "id"), tests, entries, xml.line(element))


def _name(element: etree._Element) -> str:
    return " ".join(xml.attribute(element, "name").split())


def _twice(outputs: tuple[Output, ...]) -> bool:
    return len({output.name for output in outputs}) < len(outputs)
