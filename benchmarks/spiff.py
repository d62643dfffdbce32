"""SpiffWorkflow doing what our core does: a saved instance is restored from JSON, its timer has passed, it runs to its
end and is saved again. No store on either side.

Optional: `pip install -e '.[bench]'`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

MODEL = b"""<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="bench" id="bench">
  <process id="nap" isExecutable="true">
    <startEvent id="begin"><outgoing>in</outgoing></startEvent>
    <sequenceFlow id="in" sourceRef="begin" targetRef="wait"/>
    <intermediateCatchEvent id="wait"><incoming>in</incoming><outgoing>out</outgoing>
      <timerEventDefinition id="deadline"><timeDuration>"PT0.01S"</timeDuration></timerEventDefinition>
    </intermediateCatchEvent>
    <sequenceFlow id="out" sourceRef="wait" targetRef="done"/>
    <endEvent id="done"><incoming>out</incoming></endEvent>
  </process>
</definitions>"""


class Spiff:
    """ImportError without the package."""

    def __init__(self, variables: Mapping[str, object]) -> None:
        from lxml import etree
        from SpiffWorkflow.bpmn import BpmnWorkflow
        from SpiffWorkflow.bpmn.parser import BpmnParser
        from SpiffWorkflow.bpmn.serializer import BpmnWorkflowSerializer

        parser: Any = BpmnParser()
        parser.add_bpmn_xml(etree.fromstring(MODEL))
        self._spec = parser.get_spec("nap")
        self._new: Any = BpmnWorkflow
        self._serializer: Any = BpmnWorkflowSerializer()
        self._variables = dict(variables)
        self.document: str = self.start()
        time.sleep(0.05)

    def start(self) -> str:
        """A new instance, run until it waits, as it is saved."""
        workflow = self._new(self._spec)
        workflow.data.update(self._variables)
        workflow.do_engine_steps()
        return str(self._serializer.serialize_json(workflow))

    def wake(self) -> None:
        workflow = self._serializer.deserialize_json(self.document)
        workflow.refresh_timers()
        workflow.do_engine_steps()
        if not workflow.completed:
            raise AssertionError("SpiffWorkflow: the instance did not end")
        self._serializer.serialize_json(workflow)


def version() -> str:
    from importlib.metadata import version as version_of

    return version_of("SpiffWorkflow")
