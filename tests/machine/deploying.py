"""A drawn process made ready once for all engines that are to run it, and the work that its service tasks do."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gobpm_ray.errors import BpmnError, Escalation
from gobpm_ray.model.document import to_json
from gobpm_ray.model.elements import WorkTask
from gobpm_ray.runtime.callables import EffectContext, Work
from gobpm_ray.runtime.ports import Store
from gobpm_ray.runtime.programs import Programs, write_job_nodes
from gobpm_ray.settings import Settings
from tests.support.block_writer import write
from tests.support.blocks import Plan

BEGIN = 1_767_225_600_000
LIVE = 1_800_000_000_000
SETTINGS = Settings(
    engine_id="machine",
    dehydration_threshold_ms=0,
    linger_ms=0,
    release_jobs=True,
    hand_over=False,
    max_silent_deaths=0,
    wake_backoff_ms=100,
    history_limit=10_000,
    incident_stacks=False,
)

RULES = b"""dmn
<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="file" name="F" namespace="http://example.org">
<decision id="rate" name="rate"><decisionTable hitPolicy="FIRST">
<input><inputExpression><text>x</text></inputExpression></input><output name="rate"/>
<rule><inputEntry><text>&gt; 1</text></inputEntry><outputEntry><text>"high"</text></outputEntry></rule>
<rule><inputEntry><text>-</text></inputEntry><outputEntry><text>"low"</text></outputEntry></rule>
</decisionTable></decision></definitions>"""


class Model:
    """The plan's processes: written, validated and serialized once; compiled by whoever runs them first."""

    def __init__(self, plan: Plan) -> None:
        self.careful = plan.one_token
        """Some work may not be idempotent: an attempt that is cut off is sealed."""
        self._deployments = []
        for builder in write(plan):
            process = builder.build()
            jobs = [node.id for node in process.nodes.values() if isinstance(node, WorkTask) and node.topic == "job"]
            self._deployments.append((process.id, b"json\n" + to_json(process), jobs))
        self._programs: Programs | None = None

    def deploy(self, store: Store) -> None:
        store.deploy("rate", RULES, [])
        for process_id, document, jobs in self._deployments:
            write_job_nodes(store, process_id, jobs)
            store.deploy(process_id, document, [])

    def programs(self, store: Store) -> Programs:
        """One table for all engines: a version never changes, and a program has no state."""
        if self._programs is None:
            self._programs = Programs(store, SETTINGS)
        return self._programs


class Effects:
    """What callables change outside, by idempotency key: no crash undoes it. What they answer depends on their inputs
    alone, so an attempt that is repeated answers the same."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def topics(self) -> dict[str, Work]:
        return {topic: self._work(topic) for topic in ("work", "flaky", "throws", "warns")}

    def _work(self, topic: str) -> Work:
        def work(inputs: dict[str, Any], context: EffectContext) -> dict[str, Any]:
            self.calls[context.idempotency_key] += 1
            if topic == "flaky" and not inputs.get("z"):
                raise RuntimeError("out of order")
            if topic == "throws":
                raise BpmnError("E", "as it does")
            if topic == "warns":
                raise Escalation("F", "as it does", warned=context.node)
            return {"done": context.node}

        return work
