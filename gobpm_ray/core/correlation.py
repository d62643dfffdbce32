"""Correlation by several properties (BPMN 8.4.2): what an instance learns from messages, and which keys it waits by.

A property is learnt from the first message that brings it, named by the sender or read from the payload, and never
changes (M49). A wait for a message with properties is one wait for each that is known, in one race. Which message
contradicts what was learnt is judged where it is routed; here a later value is just not learnt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gobpm_ray.core.faults import INVALID_KEY, Fault
from gobpm_ray.core.keys import canonical_key, key_text, message_key, properties_of
from gobpm_ray.core.operands import Message
from gobpm_ray.errors import ExpressionError, InvalidPayload

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.step import Trigger


def learn(run: Run, node: ProgramNode, index: str, trigger: Trigger) -> None:
    """The instance knows what this message of the node's definition says about its conversation."""
    brought = dict(properties_of(trigger.key))
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


def keys_to_wait_by(run: Run, seen: Mapping[str, object], message: Message) -> list[str]:
    """The canonical keys of the properties that are known, in the order of the model. Fault when none is: waiting by
    name alone would take messages that are meant for others."""
    found = dict.fromkeys(canonical_key(message.name, text) for text in _known(run, seen, message))
    if not found:
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
