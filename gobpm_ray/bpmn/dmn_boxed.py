"""Boxed expressions of DMN, as elements: decision tables, literal expressions, and those that are made of others.

It knows one document's namespace and what is being read, by which it names everything that is wrong; nothing of how
decisions refer to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.decisions import elements as e
from gobpm_ray.errors import ExpressionError
from gobpm_ray.expressions import detect_language
from gobpm_ray.model.elements import Expression, Problem

MAX_NESTING = 50
"""Boxed expressions inside each other; each is a few calls deep when it is evaluated."""
NOTHING = Expression("null")
"""Stands where something was refused."""

_POLICIES = ("UNIQUE", "FIRST", "PRIORITY", "ANY", "COLLECT", "RULE ORDER", "OUTPUT ORDER")
_AGGREGATIONS = ("", "SUM", "COUNT", "MIN", "MAX")


class Boxed:
    """One document being read, in one version's namespace."""

    def __init__(self, space: str, language: str) -> None:
        self._space = f"{{{space}}}"
        self._language = language
        self._element = ""
        self._depth = 0
        self.place = ""
        """What is being read, by kind and id."""
        self.problems: list[Problem] = []
        self._readers: dict[str, Callable[[etree._Element, str], e.Body]] = {
            "decisionTable": self._table,
            "literalExpression": lambda element, place: self.expression(element, f"{place}: its literal expression"),
            "context": self._context,
            "list": self._list,
            "relation": self._relation,
            "invocation": self._invocation,
            "functionDefinition": self.function,
            "conditional": self._conditional,
            "for": self._iteration,
            "some": self._iteration,
            "every": self._iteration,
            "filter": self._filter,
        }

    def begin(self, kind: str, element_id: str) -> None:
        self._element, self.place = element_id, f"{kind} '{element_id}'"

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
        self.problems.append(Problem(code, self._element, " ".join(f"{message} (line {line})".split()), line))

    # --- any of them -------------------------------------------------------------------------------------------------

    def body(self, element: etree._Element | None, place: str) -> e.Body:
        """The one boxed expression in the element."""
        found = None if element is None else next(self._boxed(element), None)
        if found is None:
            if element is not None:
                self.error("missing_body", element, f"{place} has neither a table nor an expression")
            return NOTHING
        return self._read(found, place)

    def _boxed(self, element: etree._Element) -> Iterator[etree._Element]:
        for child in element:
            if isinstance(child.tag, str) and child.tag.removeprefix(self._space) in self._readers:
                yield child

    def _read(self, element: etree._Element, place: str) -> e.Body:
        if self._depth >= MAX_NESTING:
            self.error("too_deep", element, f"{place}: expressions are boxed more than {MAX_NESTING} deep")
            return NOTHING
        self._depth += 1
        try:
            return self._readers[xml.local(element)](element, place)
        finally:
            self._depth -= 1

    def _part(self, element: etree._Element, name: str, place: str) -> e.Body:
        """The boxed expression in the child of this name."""
        child = self.child(element, name)
        if child is None:
            self.error("missing_body", element, f"{place} has no '{name}'")
        return self.body(child, f"{place}, {name}")

    def expression(self, element: etree._Element, what: str, *, required: bool = True) -> Expression:
        """The text of a literal expression or a cell. `what` names it."""
        text = self.text(element)
        if not text:
            if required:
                self.error("missing_expression", element, f"{what} is empty")
            return Expression("")
        try:
            language, bare = detect_language(text, xml.attribute(element, "expressionLanguage") or self._language)
        except ExpressionError as refused:
            self.error("expression", element, f"{what}: {refused}")
            return NOTHING
        return Expression(bare, language)

    # --- made of others ----------------------------------------------------------------------------------------------

    def _context(self, element: etree._Element, place: str) -> e.Body:
        entries: list[e.Entry] = []
        result: e.Body | None = None
        for entry in self.children(element, "contextEntry"):
            variable = self.child(entry, "variable")
            name = "" if variable is None else name_of(variable)
            if not name:
                if result is not None:
                    self.error("several_results", entry, f"{place}: a context has several entries without a name")
                result = self.body(entry, f"{place}, result")
                continue
            if result is not None:
                self.error("entry_order", entry, f"{place}: entry '{name}' stands behind the result")
            entries.append(e.Entry(name, self.body(entry, f"{place}, entry '{name}'")))
        return e.Context(tuple(entries), result)

    def _list(self, element: etree._Element, place: str) -> e.Body:
        return e.Sequence(tuple(self._read(item, place) for item in self._boxed(element)))

    def _relation(self, element: etree._Element, place: str) -> e.Body:
        columns = tuple(name_of(column) for column in self.children(element, "column"))
        if not all(columns) or len(set(columns)) < len(columns):
            self.error("missing_output", element, f"{place}: a relation's columns have not each a name of its own")
        rows = []
        for number, row in enumerate(self.children(element, "row"), 1):
            cells = tuple(self._read(cell, f"{place}, row {number}") for cell in self._boxed(row))
            if len(cells) != len(columns):
                found = f"{len(cells)} cells for {len(columns)} columns"
                self.error("rule_cells", row, f"{place}, row {number} has {found}")
                continue
            rows.append(cells)
        return e.Relation(columns, tuple(rows))

    def _invocation(self, element: etree._Element, place: str) -> e.Body:
        called = self.text(self.child(element, "literalExpression"))
        if not called:
            self.error("missing_expression", element, f"{place}: an invocation says no function")
            return NOTHING
        arguments = []
        for binding in self.children(element, "binding"):
            parameter = self.child(binding, "parameter")
            name = "" if parameter is None else name_of(parameter)
            if not name:
                self.error("missing_parameter", binding, f"{place}: a binding of '{called}' names no parameter")
                continue
            arguments.append(e.Entry(name, self.body(binding, f"{place}, argument '{name}'")))
        return e.Invocation(called, tuple(arguments))

    def function(self, element: etree._Element, place: str) -> e.Function:
        """A function definition, or a knowledge model's logic."""
        kind = xml.attribute(element, "kind").upper()
        if kind not in ("", "FEEL", "F"):
            what = f"{place} is a function in {kind}, which is not executed here"
            self.error("unsupported", element, f"{what}: write it in FEEL, or register a callable for a service task")
            return e.Function((), NOTHING)
        parameters = tuple(name_of(each) for each in self.children(element, "formalParameter"))
        if not all(parameters) or len(set(parameters)) < len(parameters):
            self.error("missing_parameter", element, f"{place}: parameters have not each a name of its own")
        return e.Function(parameters, self.body(element, place))

    def _conditional(self, element: etree._Element, place: str) -> e.Body:
        return e.Conditional(
            self._part(element, "if", place), self._part(element, "then", place), self._part(element, "else", place)
        )

    def _iteration(self, element: etree._Element, place: str) -> e.Body:
        kind = cast("e.IterationKind", xml.local(element))
        variable = " ".join(xml.attribute(element, "iteratorVariable").split())
        if not variable:
            self.error("missing_parameter", element, f"{place}: '{kind}' names no variable")
        inside = "return" if kind == "for" else "satisfies"
        return e.Iteration(kind, variable, self._part(element, "in", place), self._part(element, inside, place))

    def _filter(self, element: etree._Element, place: str) -> e.Body:
        return e.Filter(self._part(element, "in", place), self._part(element, "match", place))

    # --- tables ------------------------------------------------------------------------------------------------------

    def _table(self, element: etree._Element, place: str) -> e.Body:
        policy = xml.attribute(element, "hitPolicy").upper().replace("_", " ") or "UNIQUE"
        aggregation = xml.attribute(element, "aggregation").upper()
        if policy not in _POLICIES or aggregation not in _AGGREGATIONS:
            self.error("hit_policy", element, f"{place} has the hit policy {policy} {aggregation}")
            policy, aggregation = "UNIQUE", ""
        outputs = tuple(self._output(output, place) for output in self.children(element, "output"))
        inputs = tuple(
            self._input(each, number, place) for number, each in enumerate(self.children(element, "input"), 1)
        )
        rules = tuple(
            self._rule(rule, number, (len(inputs), len(outputs)), place)
            for number, rule in enumerate(self.children(element, "rule"), 1)
        )
        self._shape(element, outputs, (policy, aggregation), place)
        return e.DecisionTable(inputs, outputs, rules, cast("e.HitPolicy", policy), cast("e.Aggregation", aggregation))

    def _shape(self, element: etree._Element, outputs: tuple[e.Output, ...], hits: tuple[str, str], place: str) -> None:
        policy, aggregation = hits
        if not outputs:
            self.error("missing_output", element, f"{place} has no output")
        if len(outputs) > 1 and (not all(output.name for output in outputs) or _twice(outputs)):
            self.error("missing_output", element, f"{place} has several outputs, and not each a name of its own")
        if aggregation and policy != "COLLECT":
            self.error("hit_policy", element, f"{place} aggregates ({aggregation}) with the hit policy {policy}")
        elif aggregation and len(outputs) > 1:
            self.error("hit_policy", element, f"{place} aggregates ({aggregation}) several outputs")
        if policy in ("PRIORITY", "OUTPUT ORDER") and not any(output.values for output in outputs):
            self.error("hit_policy", element, f"{place} has the hit policy {policy} and no allowed output values")

    def _input(self, element: etree._Element, number: int, place: str) -> e.Input:
        expression = self.child(element, "inputExpression")
        label = " ".join(xml.attribute(element, "label").split())
        if expression is None:
            self.error("missing_expression", element, f"{place}: input {number} has no expression")
            return e.Input(label, NOTHING, xml.line(element))
        return e.Input(label, self.expression(expression, f"{place}: input {number}"), xml.line(element))

    def _output(self, element: etree._Element, place: str) -> e.Output:
        default = self.child(element, "defaultOutputEntry")
        written = None if default is None else self.expression(default, f"{place}: a default output", required=False)
        return e.Output(
            name=name_of(element),
            values=self.text(self.child(element, "outputValues")),
            default=written if written is not None and written.text else None,
            line=xml.line(element),
        )

    def _rule(self, element: etree._Element, number: int, shape: tuple[int, int], place: str) -> e.Rule:
        inputs, outputs = shape
        tests = tuple(self.text(entry) for entry in self.children(element, "inputEntry"))
        entries = tuple(
            self.expression(entry, f"{place}: rule {number}, an output", required=False)
            for entry in self.children(element, "outputEntry")
        )
        if len(tests) != inputs or len(entries) != outputs:
            found = f"{len(tests)} and {len(entries)} cells for {inputs} inputs and {outputs} outputs"
            self.error("rule_cells", element, f"{place}, rule {number} has {found}")
        return e.Rule(xml.attribute(element, "id"), tests, entries, xml.line(element))


def name_of(element: etree._Element) -> str:
    return " ".join(xml.attribute(element, "name").split())


def _twice(outputs: tuple[e.Output, ...]) -> bool:
    return len({output.name for output in outputs}) < len(outputs)
