"""Loop characteristics of an activity: standard loops and multi-instance, in BPMN's own words and the vendors'."""

from __future__ import annotations

from typing import Literal, cast

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.context import NodeContext
from gobpm_ray.bpmn.declarations import unprefixed
from gobpm_ray.bpmn.extensions import own_operands, read_extras
from gobpm_ray.bpmn.extras import Extras
from gobpm_ray.bpmn.findings import named
from gobpm_ray.bpmn.operands import variable
from gobpm_ray.model.elements import Expression, Loop, MultiInstance, StandardLoop

LOOPS = ("standardLoopCharacteristics", "multiInstanceLoopCharacteristics")
_BEHAVIORS = ("none", "one", "all", "complex")


def read_loop(activity: etree._Element, context: NodeContext) -> tuple[Loop | None, bool]:
    """The activity's loop, and whether it could be read; what could not is said in `findings`."""
    owner = xml.attribute(activity, "id")
    given = [(kind, element) for kind, element in xml.bpmn_children(activity) if kind in LOOPS]
    if not given:
        return None, True
    if len(given) > 1:
        context.findings.error("several_loops", given[1][1], f"{named(activity)} has more than one loop", owner=owner)
        return None, False
    kind, element = given[0]
    extras = read_extras(element, context.operands, context.findings, owner)
    if kind == "standardLoopCharacteristics":
        return _standard(element, extras, context), True
    return _MultiInstance(activity, element, extras, context, owner).read()


def _standard(element: etree._Element, extras: Extras, context: NodeContext) -> StandardLoop:
    maximum = xml.attribute(element, "loopMaximum")
    return StandardLoop(
        condition=extras.operands.get("loopCondition") or _formal(element, "loopCondition", context),
        test_before=xml.flag(element, "testBefore"),
        maximum=extras.operands.get("loopMaximum") or (Expression(maximum) if maximum else None),
    )


def _formal(element: etree._Element, name: str, context: NodeContext) -> Expression | None:
    found = xml.child(element, name)
    return None if found is None or not xml.text(found) else context.operands.formal(found)


class _MultiInstance:
    """One multi-instance element, read in parts."""

    def __init__(
        self, activity: etree._Element, element: etree._Element, extras: Extras, context: NodeContext, owner: str
    ) -> None:
        self._activity = activity
        self._element = element
        self._extras = extras
        self._context = context
        self._owner = owner

    def read(self) -> tuple[Loop | None, bool]:
        extras, context, element = self._extras, self._context, self._element
        behavior = (xml.attribute(element, "behavior") or "all").lower()
        if behavior not in _BEHAVIORS:
            what = f"the behavior '{behavior}' of {named(self._activity)}"
            context.findings.refuse(element, owner=self._owner, what=what)
            return None, False
        events, conditions, sound = self._events(behavior)
        loop = MultiInstance(
            sequential=xml.flag(element, "isSequential"),
            cardinality=extras.operands.get("cardinality") or _formal(element, "loopCardinality", context),
            collection=extras.collection or self._collection(),
            item_variable=extras.item_variable or self._item("inputDataItem"),
            output_collection=extras.output_collection or self._output(),
            output_item=extras.output_item or self._output_item(),
            completion=extras.operands.get("completion") or _formal(element, "completionCondition", context),
            behavior=cast("Literal['none', 'one', 'all', 'complex']", behavior),
            events=events,
            conditions=conditions,
        )
        return loop, sound

    def _collection(self) -> Expression | None:
        reference = next(iter(xml.texts(self._element, "loopDataInputRef")), "")
        if not reference:
            return None
        data = self._context.data
        fed = data.fed_by(self._activity, reference)
        if not fed and (store := data.store(reference) or data.store_into(self._activity, reference)):
            # Its rounds are made before the activity's inputs are: read it into a variable first.
            what = f"the data store '{store}' as the collection of {named(self._activity)}"
            self._context.findings.refuse(self._element, owner=self._owner, what=what)
        name = fed or data.variable(reference)
        # Camunda and Flowable let the text itself be a variable, or an expression.
        return variable(name) if name else self._context.operands.named_variable(reference)

    def _output(self) -> str:
        reference = next(iter(xml.texts(self._element, "loopDataOutputRef")), "")
        data = self._context.data
        if store := data.store(reference):
            what = f"the data store '{store}' as the collected output of {named(self._activity)}"
            self._context.findings.refuse(self._element, owner=self._owner, what=what)
        return (data.feeds(self._activity, reference) or data.variable(reference) or reference) if reference else ""

    def _item(self, name: str) -> str:
        item = xml.child(self._element, name)
        return "" if item is None else " ".join((xml.attribute(item, "name") or xml.attribute(item, "id")).split())

    def _output_item(self) -> Expression | None:
        item = self._item("outputDataItem")
        return variable(item) if item and "`" not in item else None

    def _events(self, behavior: str) -> tuple[tuple[str, ...], tuple[Expression, ...], bool]:
        """The names of the signals that the behaviour throws, and the conditions of a complex one."""
        context, element = self._context, self._element
        if behavior in ("none", "one"):
            reference = xml.attribute(element, f"{behavior}BehaviorEventRef")
            name = self._thrown(context.declarations.event_definition(reference), element) if reference else ""
            return ((name,) if name else ()), (), bool(name) or not reference
        names: list[str] = []
        conditions: list[Expression] = []
        if behavior == "complex":
            for definition in element.findall(f"{{{xml.MODEL}}}complexBehaviorDefinition"):
                condition = own_operands(definition).get("condition") or _formal(definition, "condition", context)
                event = xml.child(definition, "event")
                thrown = None if event is None else self._only_definition(event)
                name = self._thrown(thrown, definition)
                if condition is None or not name:
                    return (), (), False
                names.append(name)
                conditions.append(condition)
        return tuple(names), tuple(conditions), True

    def _only_definition(self, event: etree._Element) -> etree._Element | None:
        for kind, found in xml.bpmn_children(event):
            if kind == "eventDefinitionRef":
                return self._context.declarations.event_definition(unprefixed(xml.text(found)))
            if kind.endswith("EventDefinition"):
                return found
        return None

    def _thrown(self, definition: etree._Element | None, place: etree._Element) -> str:
        findings = self._context.findings
        if definition is not None and xml.local(definition) == "signalEventDefinition":
            return self._context.declarations.signal(definition, findings, self._owner).name
        what = f"a behaviour of {named(place, self._owner)} that throws no signal"
        findings.refuse(place, owner=self._owner, what=what)
        return ""
