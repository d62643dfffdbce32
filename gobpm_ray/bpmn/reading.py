"""One flow node being read: its element, its surroundings, and the fields that every node has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.context import NodeContext
from gobpm_ray.bpmn.declarations import Side
from gobpm_ray.bpmn.events import read_definitions
from gobpm_ray.bpmn.extras import Extras
from gobpm_ray.bpmn.findings import named
from gobpm_ray.model.elements import EventDefinition, Expression, Loop, Mapping


class Base(TypedDict):
    id: str
    name: str
    scope: str
    line: int
    inputs: tuple[Mapping, ...]
    outputs: tuple[Mapping, ...]
    dehydration_threshold: str


class ActivityBase(Base):
    loop: Loop | None
    for_compensation: bool


@dataclass(frozen=True, slots=True)
class Reading:
    element: etree._Element
    scope: str
    extras: Extras
    context: NodeContext
    loop: Loop | None = None

    @property
    def id(self) -> str:
        return xml.attribute(self.element, "id")

    @property
    def base(self) -> Base:
        return Base(
            id=self.id,
            name=" ".join(xml.attribute(self.element, "name").split()),
            scope=self.scope,
            line=xml.line(self.element),
            inputs=tuple(self.extras.inputs),
            outputs=tuple(self.extras.outputs),
            dehydration_threshold=self.extras.threshold,
        )

    @property
    def activity(self) -> ActivityBase:
        return ActivityBase(**self.base, loop=self.loop, for_compensation=xml.flag(self.element, "isForCompensation"))

    @property
    def at_process_level(self) -> bool:
        return self.scope == xml.attribute(self.context.process, "id")

    def definitions(self, side: Side) -> tuple[EventDefinition, ...] | None:
        return read_definitions(self.element, side, self.context)

    def formal(self, name: str, use: str) -> Expression | None:
        """The expression in the child called `name`, unless this engine's own word stands in its place."""
        if own := self.extras.operands.get(use):
            return own
        found = xml.child(self.element, name)
        return None if found is None or not xml.text(found) else self.context.operands.formal(found)

    def refuse(self, what: str) -> None:
        """`what of userTask 'x' (line 7) is not supported yet`."""
        self.context.findings.refuse(self.element, what=f"{what} of {named(self.element)}")

    def warn(self, message: str) -> None:
        self.context.findings.warn("ignored", self.element, message)
