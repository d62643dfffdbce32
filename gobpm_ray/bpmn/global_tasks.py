"""Global tasks (BPMN 10.3.7) as what a call activity calls: processes of one node, called `<id>_task`.

It knows which of them a document needs: those that it calls, its own or an imported file's, and of a document without
any process all, since it is there to be called. How a task is read is the readers' business.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from lxml import etree

from gobpm_ray.bpmn import xml
from gobpm_ray.bpmn.declarations import Declarations, unprefixed
from gobpm_ray.bpmn.tables import GLOBAL_TASKS
from gobpm_ray.bpmn.zeebe import ZEEBE


def callable_tasks(root: etree._Element, declarations: Declarations) -> Iterator[etree._Element]:
    """For each global task that is needed a `process` element, in which the task stands."""
    wanted = dict.fromkeys(_called(root))
    if root.find(f"{{{xml.MODEL}}}process") is None:
        wanted.update((xml.attribute(own, "id"), None) for kind, own in xml.bpmn_children(root) if kind in GLOBAL_TASKS)
    for reference in wanted:
        task = declarations.global_task(reference)
        if task is not None and xml.attribute(task, "id") == reference:
            yield _process(task)


def _called(root: etree._Element) -> Iterator[str]:
    for call in root.iter(f"{{{xml.MODEL}}}callActivity"):
        text = xml.attribute(call, "calledElement")
        yield from (text, unprefixed(text))
        for space, name, found in xml.extension_elements(call):
            if (space, name) == (ZEEBE, "calledElement"):
                yield xml.attribute(found, "processId")


def _process(task: etree._Element) -> etree._Element:
    task_id = xml.attribute(task, "id")
    process = etree.Element(f"{{{xml.MODEL}}}process", nsmap=task.nsmap)
    process.set("id", task_id)
    process.set("name", xml.attribute(task, "name"))
    process.sourceline = task.sourceline  # type: ignore[misc]  # the stubs do not know that it can be set
    node = deepcopy(task)
    node.tag = f"{{{xml.MODEL}}}{GLOBAL_TASKS[xml.local(task)]}"
    node.set("id", f"{task_id}_task")
    if language := node.get("scriptLanguage"):
        node.set("scriptFormat", language)
    node.tail = None
    process.append(node)
    return process
