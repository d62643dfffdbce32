"""C.9.1 and C.9.2 of the corpus together on the real engine (issue 5): a manual check that calls document requests.

One engine, both files deployed as they are; their send tasks are jobs that the scenario reports. The scenarios and what
they must come to are the conformance suite's own (`tests/conformance/scenarios/corpus_c92.yaml`); here they meet in one
engine, one after the other, and after each nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gobpm_ray.engine.engine import Engine
from gobpm_ray.engine.outcome import Outcome
from gobpm_ray.engine.rehearsal import Rehearsal
from gobpm_ray.engine.scenario import Scenario
from gobpm_ray.engine.views import InstanceView
from tests.conformance.cases import CORPUS, Case, cases, differences
from tests.integration.conftest import RunningEngine
from tests.integration.scene import DAY, Scene

SETTINGS = {"release_jobs": True}
"""Nine instances with a mail each to send are records while somebody sends it, instead of nine actors."""
MAIN, BESIDE = CORPUS / "miwg" / "C.9.2.bpmn", CORPUS / "miwg" / "C.9.1.bpmn"
CHECKS = [case for case in cases() if case.model == "corpus_c92"]
CLAIMED = (
    "decided at once",
    "timeout on day 7",
    "accelerated on day 5",
    "documents requested twice, three each, one answered",
    "fraud found",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (MAIN.is_file() and BESIDE.is_file()), reason="the corpus does not lie beside the project"),
]


@pytest.fixture
def front(scene: Scene, virtual_engine: RunningEngine, store_url: str, home: Path) -> Iterator[Engine]:
    """The module's engine by its whole front door; whoever works for it lives on when the door closes."""
    front = Engine.open(store_url, ray=None, clock="virtual", settings=virtual_engine.settings, home=home)
    front.deploy(BESIDE, MAIN)
    yield front
    front.close()


def play(front: Engine, scenario: Scenario) -> Outcome:
    """What the main process and all that it called came to; whoever ran before on this engine is not of it."""
    before = {view.instance_id for view in front.list_instances(limit=100_000)}
    [outcome] = Rehearsal(front, scenario).run([MAIN], beside=[BESIDE])
    return replace(outcome, children=[one for one in outcome.children if one.instance_id not in before])


def test_every_scenario_that_is_claimed_is_a_case_of_the_conformance_suite() -> None:
    """Issue 5: these five, by name."""
    assert set(CLAIMED) <= {case.name for case in CHECKS}


@pytest.mark.parametrize("case", CHECKS, ids=lambda case: case.name)
def test_a_manual_check_on_the_real_engine_comes_to_what_it_must(scene: Scene, front: Engine, case: Case) -> None:
    """Issue 5: decided at once; timeout on day 7; accelerated on day 5; documents requested twice; fraud found."""
    began = front.now()

    outcome = play(front, case.scenario)

    assert not differences(case.expected, outcome)
    assert outcome.instance_id is not None
    assert front.top().resident == 0, "whatever is still open of it waits as a record"
    assert front.verify().differences == []
    for days, node in ((5, "StartTimerEvent_AcceleratedDecision"), (7, "TimerEvent_Timeout")):
        fired = days_of(front.inspect(outcome.instance_id), node, began)
        assert fired in ([], [float(days)]), "not a moment earlier or later"
    if outcome.state == "incident":
        front.cancel(outcome.instance_id)
        front.wait_quiet()
    assert front.tasks() == front.jobs() == []


def days_of(view: InstanceView, node: str, began: int) -> list[float]:
    return [(entry.at_ms - began) / DAY for entry in view.history if entry.event == "node" and entry.node == node]


def test_of_each_three_documents_one_is_answered_and_two_are_reminded_until_the_week_is_over(
    scene: Scene, front: Engine
) -> None:
    """Issue 5: requested twice, a day apart, each time with a reference of its own; of each request one document is
    answered after two days, and for the other two the customer is reminded daily and called after a week. All nine
    instances are records whenever nothing happens to them."""
    check = front.start(
        "ManualCheck",
        {
            "applicationNumber": "A1",
            "applicant": {"name": "Ann", "age": 40},
            "risks": ["r1"],
            "documentReferenceId": "d0",
            "fraudSuspectedId": "A1",
        },
    ).instance_id
    front.wait_quiet()
    requested: dict[str, int] = {}
    for reference in ("first", "second"):
        requested[reference] = front.now()
        documents = [{"n": n} for n in range(3)]
        front.publish("Message_DocumentRequested", "d0", {"documents": documents, "documentReferenceId": reference})
        front.wait_quiet()
        for job in front.jobs(node="SendTask_RequestDocument"):
            front.complete_job(job.id)
        front.advance("P1D")
        remind(front)
    children = {view.instance_id: view for view in front.list_instances(process_id="requestDocument_en", ended=False)}
    assert len(children) == 6
    scene.released(check, *children)

    for reference in ("first", "second"):
        front.advance(to=max(front.now(), requested[reference] + 2 * DAY))
        remind(front)
        front.publish("MESSAGE_documentReceived", reference, {"received": reference})
        front.wait_quiet()
    for _ in range(6):
        front.advance("P1D")
        remind(front)
        for task in front.tasks(node="UserTask_AccelerateDecision"):
            front.complete(task.id)
        for task in front.tasks(node="UserTask_DecideOnApplication"):
            front.complete(task.id)
    calls = front.tasks(node="UserTask_CallCustomer")
    assert len(calls) == 4
    for task in calls:
        front.complete(task.id)
    front.wait_quiet()

    assert scene.completed(check).trace.count("CallActivity_RequestDocument") == 6
    ways: dict[str, list[tuple[int, list[float], str]]] = {"first": [], "second": []}
    for child in children:
        view = scene.completed(child)
        reference = str(view.variables["documentReferenceId"])
        began = requested[reference]
        reminded = days_of(view, "BoundaryEvent_1", began)
        assert reminded == [float(day) for day in range(1, len(reminded) + 1)]
        ways[reference].append((len(reminded), days_of(view, "BoundaryEvent_2", began), view.trace[-1]))
    for reference in ways:
        assert sorted(ways[reference]) == [
            (2, [], "EndEvent_GotDocument"),
            (6, [7.0], "EndEvent_TalkedToCustomer"),
            (6, [7.0], "EndEvent_TalkedToCustomer"),
        ]


def remind(front: Engine) -> None:
    """Every mail that is due has been sent."""
    for node in ("SendTask_SendReminderEmail", "SendTask_NotifyCustomerDelay"):
        for job in front.jobs(node=node):
            front.complete_job(job.id)
    front.wait_quiet()
