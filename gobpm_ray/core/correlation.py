"""Correlation by several properties (BPMN 8.4.2): what an instance learns from messages, and which keys it waits by.

A property is learnt from the first message that brings it, named by the sender or read from the payload, and never
changes (M49). A wait for a message with properties is one wait for each that is known, in one race; a property that is
learnt while the wait is armed adds one to it. Which message contradicts what was learnt is judged where it is routed;
here a later value is just not learnt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gobpm_ray.core.faults import INVALID_KEY, Fault
from gobpm_ray.core.keys import canonical_key, key_text, message_key, properties_of
from gobpm_ray.core.operands import Message
from gobpm_ray.core.state import ArmedWait, PartsMissing, parse_wait_id
from gobpm_ray.errors import ExpressionError, InvalidPayload
from gobpm_ray.model.elements import EndEvent, ThrowEvent, WorkTask

_THROWS = (EndEvent, ThrowEvent, WorkTask)

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Scope, Track
    from gobpm_ray.core.step import Trigger


def learn(run: Run, node: ProgramNode, index: str, trigger: Trigger) -> dict[str, str]:
    """The instance knows what this message of the node's definition says about its conversation; what of that is
    new."""
    brought = properties_of(trigger.key, read=False)
    number = index.partition("+")[0]
    definition = node.definitions[int(number)] if number.isdigit() and int(number) < len(node.definitions) else None
    if isinstance(definition, Message):
        for each in definition.properties:
            if each.path is not None and each.name not in brought:
                try:
                    value = run.evaluate(each.path, trigger.values, f"correlation property '{each.name}'")
                    brought.update({each.name: key_text(value)} if value is not None else {})
                except (ExpressionError, InvalidPayload):
                    continue  # this message does not say it
    known = run.state.head.keys
    fresh = {name: value for name, value in brought.items() if name not in known}
    if fresh:
        known.update(fresh)
        run.changed.add("h")
        run.step.learnt = True
    return fresh


def wait_by(run: Run, fresh: Mapping[str, str]) -> None:
    """Whatever waits already for a message of these properties waits by them too (BPMN 8.4.2)."""
    if not run.state.complete:
        raise PartsMissing("waits for messages")
    for holder in run.state.holders():
        found: dict[tuple[str, str, str, str], list[str]] = {}
        for wait, armed in holder.waits.items():
            if armed.kind in ("message", "unkeyed"):
                owner, node_id, index, visit = parse_wait_id(wait)
                found.setdefault((owner, node_id, index.partition("+")[0], visit), []).append(wait)
        for place, waits in found.items():
            node = run.nodes.get(place[1])
            definition = None if node is None else node.definitions[int(place[2])]
            if node is not None and isinstance(definition, Message):
                keys = [canonical_key(definition.name, fresh[p.name]) for p in definition.properties if p.name in fresh]
                _add(run, holder, node, place, waits, keys)


def _add(
    run: Run,
    holder: Track | Scope,
    node: ProgramNode,
    place: tuple[str, str, str, str],
    waits: list[str],
    keys: list[str],
) -> None:
    """The definition's waits, of which there are some, are joined by one for each key that is not waited by yet."""
    owner, node_id, index, visit = place
    keys = [key for key in dict.fromkeys(keys) if key not in {holder.waits[wait].key for wait in waits}]
    unkeyed = next((wait for wait in waits if holder.waits[wait].kind == "unkeyed"), "")
    if node.gathers:
        keys = keys[:1] if unkeyed else []  # one thing that must occur is one wait
    if not keys:
        return
    repeat = not node.gathers and not getattr(node.element, "interrupting", True)
    group, joins = "" if repeat or node.gathers else f"{owner}:{visit}:{node_id}", unkeyed or waits[0]
    if (held := run.arms.get(joins)) is not None:
        # Armed in this very step: nobody holds it yet, and its group can still be said.
        group, joins = held.group or group, ""
        run.arms[held.wait] = replace(held, group=group)
    if unkeyed:
        # Whoever takes its place in the store takes it out: nothing can be delivered to it in between.
        del holder.waits[unkeyed]
        run.arms.pop(unkeyed, None)
    number = max(int(parse_wait_id(wait)[2].partition("+")[2] or 0) for wait in waits)
    for key in keys:
        number += 1
        run.arm(
            holder,
            node_id,
            f"{owner}:{node_id}:{index}+{number}:{visit}",
            ArmedWait("message", key=key),
            group,
            repeat,
            joins=joins,
        )


def keys_to_wait_by(run: Run, seen: Mapping[str, object], node: ProgramNode, message: Message) -> list[str]:
    """The canonical keys of the properties that are known, in the order of the model; none while another message may
    still bring one. Fault when none can: waiting by name alone would take messages that are meant for others."""
    found = dict.fromkeys(canonical_key(message.name, text) for text in _known(run, seen, message))
    if not found and not _teachable(run, node, {each.name for each in message.properties}):
        names = ", ".join(f"'{each.name}'" for each in message.properties)
        raise Fault(INVALID_KEY, f"message '{message.name}': none of its correlation properties {names} is known yet")
    return list(found)


def key_to_send_by(run: Run, seen: Mapping[str, object], message: Message) -> str:
    """The key of a message that is thrown, with every property that the thrower can name."""
    named: dict[str, str] = {}
    for each in message.properties:
        if each.path is not None:
            use = f"correlation property '{each.name}' of message '{message.name}'"
            value = run.evaluate(each.path, seen, use)
            if value is not None and value != "":
                named[each.name] = _text(value, use)
                continue
        if each.name in run.state.head.keys:
            named[each.name] = run.state.head.keys[each.name]
    if not named:
        raise Fault(INVALID_KEY, f"message '{message.name}': none of its correlation properties has a value")
    return message_key(message.name, named)


def _teachable(run: Run, node: ProgramNode, names: set[str]) -> bool:
    """The process waits somewhere else for a message that may bring one of the properties."""
    return any(
        each.name in names
        for other in run.nodes.values()
        if other.id != node.id and other.id not in run.program.triggered and not isinstance(other.element, _THROWS)
        for definition in other.definitions
        if isinstance(definition, Message)
        for each in definition.properties
    )


def _known(run: Run, seen: Mapping[str, object], message: Message) -> Iterator[str]:
    for each in message.properties:
        if each.name in run.state.head.keys:
            yield run.state.head.keys[each.name]
        elif each.data is not None:
            use = f"correlation property '{each.name}' of message '{message.name}'"
            value = run.evaluate(each.data, seen, use)
            if value is not None and value != "":
                yield _text(value, use)


def _text(value: object, use: str) -> str:
    try:
        return key_text(value)
    except InvalidPayload as error:
        raise Fault(INVALID_KEY, f"{use}: {error}") from error
