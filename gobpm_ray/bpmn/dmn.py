"""A DMN document (1.1 to 1.5) to a `DecisionFile`, as hardened as the BPMN reader, whose parser it uses.

Decisions, knowledge models and services are read, with their boxed expressions (`gobpm_ray.bpmn.dmn_boxed`);
requirements of other files are refused by decision and line. Diagrams, sources and types are documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.dmn_boxed import Boxed, name_of
from gobpm_ray.bpmn.reader import read_bytes
from gobpm_ray.decisions.compiled import Decisions
from gobpm_ray.decisions.elements import Decision, DecisionFile, Function, KnowledgeModel, Service
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
_KINDS = {
    "decision": "decision",
    "businessKnowledgeModel": "knowledge model",
    "decisionService": "decision service",
}
_Declared = TypeVar("_Declared")


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
    file = DecisionFile(
        name,
        reading.declared(root, "decision", reading.decision),
        reading.declared(root, "businessKnowledgeModel", reading.model),
        reading.declared(root, "decisionService", lambda element: reading.service(element, root)),
    )
    reading.compare(file)
    if not file.decisions:
        reading.problems.append(Problem("no_decision", "", "there is no decision in this file", xml.line(root)))
    if reading.problems:
        raise invalid(name, tuple(reading.problems))
    return file


class _Reading(Boxed):
    """What one document declares, being read."""

    def declared(
        self, root: etree._Element, kind: str, read: Callable[[etree._Element], _Declared]
    ) -> dict[str, _Declared]:
        """Every element of this kind, by id."""
        found: dict[str, _Declared] = {}
        for element in self.children(root, kind):
            declared_id = xml.attribute(element, "id")
            self.begin(_KINDS[kind], declared_id)
            if not declared_id:
                self.error("missing_id", element, f"a {_KINDS[kind]} has no id")
            elif declared_id in found:
                self.error("duplicate_id", element, f"{self.place} is there twice")
            made = read(element)
            found.setdefault(declared_id, made)
        return found

    def decision(self, element: etree._Element) -> Decision:
        requirements = self.children(element, "informationRequirement")
        return Decision(
            id=xml.attribute(element, "id"),
            name=name_of(element),
            body=self.body(element, self.place),
            variable=self._variable(element),
            requires=self._references(requirements, "requiredDecision"),
            knows=self._references(self.children(element, "knowledgeRequirement"), "requiredKnowledge"),
            line=xml.line(element),
        )

    def model(self, element: etree._Element) -> KnowledgeModel:
        logic = self.child(element, "encapsulatedLogic")
        if logic is None:
            self.error("missing_body", element, f"{self.place} has no logic")
            function = Function((), Expression("null"))
        else:
            function = self.function(logic, self.place)
        return KnowledgeModel(
            id=xml.attribute(element, "id"),
            name=name_of(element),
            function=function,
            variable=self._variable(element),
            knows=self._references(self.children(element, "knowledgeRequirement"), "requiredKnowledge"),
            line=xml.line(element),
        )

    def service(self, element: etree._Element, root: etree._Element) -> Service:
        outputs = self._references([element], "outputDecision")
        if not outputs:
            self.error("missing_output", element, f"{self.place} has no output decision")
        given = self._references([element], "inputDecision")
        names = {
            xml.attribute(each, "id"): name_of(each)
            for kind in ("inputData", "decision")
            for each in self.children(root, kind)
        }
        wanted = (*self._references([element], "inputData"), *given)
        return Service(
            id=xml.attribute(element, "id"),
            name=name_of(element),
            outputs=outputs,
            inputs=tuple(names.get(each) or each for each in wanted),
            given=given,
            variable=self._variable(element),
            line=xml.line(element),
        )

    def compare(self, file: DecisionFile) -> None:
        """What is required is there."""
        callable_ids = file.models.keys() | file.services.keys()
        for kind, declared in (("decision", file.decisions), ("knowledge model", file.models)):
            for each in declared.values():
                requires = each.requires if isinstance(each, Decision) else ()
                missing = [one for one in requires if one not in file.decisions]
                missing += [one for one in each.knows if one not in callable_ids]
                self._missing(f"{kind} '{each.id}' requires", missing, each.id, each.line)
        for service in file.services.values():
            missing = [one for one in (*service.outputs, *service.given) if one not in file.decisions]
            self._missing(f"decision service '{service.id}' names the decision", missing, service.id, service.line)
        for taken in file.services.keys() & file.decisions.keys():
            line = file.services[taken].line
            self.problems.append(
                Problem("duplicate_id", taken, f"'{taken}' is the id of a decision and of a service", line)
            )

    def _missing(self, who: str, missing: list[str], element: str, line: int) -> None:
        for one in missing:
            message = f"{who} '{one}', which is not in this file"
            self.problems.append(Problem("unknown_reference", element, message, line))

    def _variable(self, element: etree._Element) -> str:
        variable = self.child(element, "variable")
        return "" if variable is None else name_of(variable)

    def _references(self, elements: Iterable[etree._Element], kind: str) -> tuple[str, ...]:
        """The ids that the elements' children of this kind refer to."""
        found = []
        for element in elements:
            for child in self.children(element, kind):
                reference = xml.attribute(child, "href")
                document, _, fragment = reference.rpartition("#")
                if document or not fragment:
                    what = f"{self.place} requires '{reference}' of another file"
                    self.error("unsupported", child, f"{what}: put both into one file")
                else:
                    found.append(fragment)
        return tuple(found)
