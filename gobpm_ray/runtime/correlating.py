"""What a message's payload says of its conversation, read before the message is routed (BPMN 8.4.2, M49).

A sender need not name correlation properties: the model says where in the payload they stand. Routing compares what the
payload says with what an instance has learnt, so that one that knows better is not given the message, whoever named
what. It knows the retrieval expressions of what is deployed; it refuses to know who waits.

In the store, table `correlates:<message>`: process -> its properties' expressions; table `correlates`: process -> its
messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from gobpm_ray.checkpoint.rows import read_payload
from gobpm_ray.core.keys import key_text, with_read
from gobpm_ray.errors import GobpmError
from gobpm_ray.expressions.registry import compile_expression
from gobpm_ray.model.elements import EndEvent, MessageDefinition, Process, ReceiveTask, ThrowEvent
from gobpm_ray.runtime.ports import PendingRow, Store
from gobpm_ray.secret import revealed

_PROCESSES = "correlates"
_OF_MESSAGE = "correlates:"

Paths = dict[str, list[list[str]]]
"""Property -> expressions that read it: [text, language]."""


def declare_correlations(store: Store, process: Process) -> None:
    """The process is about to be deployed: its messages are read like this from now on."""
    found: dict[str, Paths] = {}
    for definition in _received(process):
        for each in definition.properties:
            if each.path is not None:
                paths = found.setdefault(definition.name, {}).setdefault(each.name, [])
                if (path := [each.path.text, each.path.language]) not in paths:
                    paths.append(path)
    before = json.loads(store.get_value(_PROCESSES, process.id) or b"[]")
    for name in before:
        if name not in found:
            store.drop_value(_OF_MESSAGE + name, process.id)
    for name, properties in found.items():
        store.put_value(_OF_MESSAGE + name, process.id, json.dumps(properties).encode())
    if before or found:
        store.put_value(_PROCESSES, process.id, json.dumps(sorted(found)).encode())


def key_with_payload(store: Store, row: PendingRow, now_ms: int) -> str:
    """The message's key, and behind it every property that its payload says something of. One that two models read
    differently is left out: nobody can tell who is right."""
    values, _ = revealed(read_payload(row.payload, f"message {row.id!r}")[0])
    said: dict[str, set[str]] = {}
    for document in store.values(_OF_MESSAGE + row.name).values():
        for name, paths in json.loads(document).items():
            for text, language in paths:
                try:
                    value = compile_expression(text, language).evaluate(values, now_ms)
                    if value is not None and value != "":
                        said.setdefault(name, set()).add(key_text(value))
                except (GobpmError, ArithmeticError, LookupError, TypeError, ValueError):
                    continue  # this message does not say it
    return with_read(row.key, {name: texts.pop() for name, texts in said.items() if len(texts) == 1})


def _received(process: Process) -> Iterator[MessageDefinition]:
    for node in process.nodes.values():
        if isinstance(node, ThrowEvent | EndEvent):
            continue
        definitions = (node.message,) if isinstance(node, ReceiveTask) else getattr(node, "definitions", ())
        yield from (each for each in definitions if isinstance(each, MessageDefinition) and each.properties)
