"""What every reader of an element needs to know about the process around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.data import DataNames
from gobpm_ray.bpmn.declarations import Declarations
from gobpm_ray.bpmn.findings import Findings
from gobpm_ray.bpmn.operands import Operands


@dataclass(frozen=True, slots=True)
class NodeContext:
    """One process being read."""

    process: etree._Element
    declarations: Declarations
    operands: Operands
    findings: Findings
    data: DataNames
    associations: dict[str, list[str]] = field(default_factory=dict)
    """id -> the ids at the other end of its associations, whichever way they were drawn"""
    activities: frozenset[str] = frozenset()
    """Ids of every activity, read or not."""

    @classmethod
    def of(
        cls, process: etree._Element, declarations: Declarations, operands: Operands, findings: Findings
    ) -> NodeContext:
        associations: dict[str, list[str]] = {}
        for association in process.iter(f"{{{xml.MODEL}}}association"):
            source, target = xml.attribute(association, "sourceRef"), xml.attribute(association, "targetRef")
            associations.setdefault(source, []).append(target)
            associations.setdefault(target, []).append(source)
        activities = frozenset(
            xml.attribute(element, "id") for element in process.iter() if xml.is_bpmn(element) and _is_activity(element)
        )
        data = DataNames(process, declarations)
        return cls(process, declarations, operands, findings, data, associations, activities)


def _is_activity(element: etree._Element) -> bool:
    name = xml.local(element)
    return name == "task" or name.endswith(("Task", "SubProcess", "Activity")) or name in ("subProcess", "transaction")
