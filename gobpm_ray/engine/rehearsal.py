"""A scenario performed on an engine: deploy, start, step by step while the engine is quiet, then let time run (design
section 11).

The same runner stands behind `simulate`, `run` and the tests, for it speaks to the engine's public door only. It knows
what a step means; it refuses to know where the engine works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from gobpm_ray.engine import steps
from gobpm_ray.engine.amounts import after
from gobpm_ray.engine.deployment import unregistered
from gobpm_ray.engine.engine import Engine
from gobpm_ray.engine.outcome import Outcome, not_started, outcome_of, rejected, state_of
from gobpm_ray.engine.scenario import Scenario, Step
from gobpm_ray.engine.sources import Source, decisions, name_of, packages
from gobpm_ray.engine.views import Deployed, InstanceView, TaskInfo, plain
from gobpm_ray.errors import InputError, InvalidModel, UnknownInstance, UnknownProcess, UnknownTask
from gobpm_ray.model.elements import Process

QUIET_TIMEOUT_S = 120.0
REAL_TICK_S = 0.2
REAL_PATIENCE_MS = 60_000
"""How far a deadline may lie after the last step on a real clock; beyond it the result says that it waits."""

Say = Callable[[str], None]


class Stopped(Exception):
    """The run ends here; the message is the result's `error`."""


@dataclass(slots=True)
class Part:
    """One file's main process, and the instance that plays it once it has begun."""

    file: str
    process: Process | None = None
    deployed: Deployed | None = None
    instance_id: str = ""
    refused: str = ""
    extra: list[str] = field(default_factory=list)


class Rehearsal:
    """One run of one scenario over one or several files, in one engine that nobody else uses."""

    def __init__(
        self,
        engine: Engine,
        scenario: Scenario,
        *,
        strict: bool = False,
        say: Say = lambda _text: None,
        warn: Say = lambda _text: None,
        quiet_timeout: float = QUIET_TIMEOUT_S,
    ) -> None:
        """`strict`: a user completes only what was claimed. `say` hears what happens and `warn` what may surprise, for
        people."""
        self.engine = engine
        self.scenario = scenario
        self.strict = strict
        self.say = say
        self.warn = warn
        self.quiet_timeout = quiet_timeout
        self.parts: list[Part] = []
        self.left = scenario.max_steps
        self.models: dict[tuple[str, int], Process] = {}

    def run(self, files: Sequence[Source], process: str = "", beside: Sequence[Source] = ()) -> list[Outcome]:
        """Everything: one outcome for each file, in order. `beside`: deployed, not run.

        UnknownProcess when `process` (or the scenario's) is in none of the files; other input is told in the
        outcomes."""
        self.prepare(files, process, beside)
        error = None
        if any(part.deployed for part in self.parts):
            try:
                self.perform()
            except Stopped as stop:
                error = str(stop)
        return self.outcomes(error)

    # --- before the steps
    def prepare(self, files: Sequence[Source], process: str = "", beside: Sequence[Source] = ()) -> None:
        """Every file is deployed, decisions first, and every main process that can begin by itself is started, in
        order."""
        named = process or self.scenario.process
        jobs = self.scenario.job_nodes
        beside, files = self._deploy_decisions(beside), self._deploy_decisions(files, ours=True)
        for file in beside:
            self._remember(self.engine.deploy(file, job_nodes=jobs))
        for file in files:
            self.parts.append(self._deploy(file, named, jobs))
        if named and not any(part.process is not None and part.process.id == named for part in self.parts):
            refusals = [part.refused for part in self.parts if part.refused]
            if not refusals:
                where = ", ".join(map(name_of, files)) or "what is run"
                raise UnknownProcess(f"process {named}: no executable process of this id in {where}")
        for store, value in self.scenario.data.items():
            self.engine.set_data_store(store, value)
        for part in self.parts:
            if part.deployed is not None and part.deployed.plain_start:
                self._start(part, part.deployed)

    def _deploy_decisions(self, files: Sequence[Source], *, ours: bool = False) -> list[Source]:
        """The files that are no DMN; the others are deployed. A DMN file is not run, so it has an outcome (if the files
        are `ours`) only when it is refused, or when there is nothing else."""
        rest = []
        for file in files:
            try:
                if decisions(file) is None:
                    rest.append(file)
                else:
                    self.engine.deploy(file)
            except InvalidModel as refusal:
                if not ours:
                    raise
                self.parts.append(Part(name_of(file), refused=str(refusal)))
        if ours and not rest and not self.parts:
            why = "nothing to run: there are decisions in it and no process"
            self.parts += [Part(name_of(file), refused=f"{name_of(file)}: {why}") for file in files]
        return rest

    def _deploy(self, source: Source, named: str, jobs: frozenset[str]) -> Part:
        file = name_of(source)
        try:
            found, definitions = packages(source)
            deployed = self.engine.deploy(source, job_nodes=jobs)
        except InvalidModel as refusal:
            return Part(file, refused=str(refusal))
        self._remember(deployed)
        for problem in definitions.warnings:
            self.warn(f"{file}: {problem.message}")
        for package in found:
            self._warn_of_work(file, package.process, jobs)
        chosen = next((index for index, package in enumerate(found) if package.process.id == named), 0)
        return Part(file, found[chosen].process, deployed[chosen])

    def _warn_of_work(self, file: str, process: Process, jobs: frozenset[str]) -> None:
        """Work that nobody does is not done: here it completes at once, deployed it would not (design section 9)."""
        idle = [task.id for task in unregistered(process, self.engine.registered()) if task.id not in jobs]
        if idle:
            self.warn(f"{file}: no callable is registered for {', '.join(idle)}: completed at once, without outputs")

    def _remember(self, deployed: Iterable[Deployed]) -> None:
        for one in deployed:
            self.models[one.process_id, one.version] = self.engine.process(one.process_id, one.version)

    def _start(self, part: Part, deployed: Deployed) -> None:
        try:
            started = self.engine.start(deployed.process_id, self.scenario.variables, version=deployed.version)
        except InputError as refusal:
            part.refused, part.deployed = str(refusal), None
            return
        part.instance_id = started.instance_id
        self.engine.wait_quiet(self.quiet_timeout)
        self.say(f"started {deployed.process_id} as {started.instance_id}")

    # --- the steps
    def perform(self) -> None:
        """The steps, then time until nothing is armed. Stopped says at which step it ended early, and why."""
        for step in self.scenario.steps:
            self.engine.wait_quiet(self.quiet_timeout)
            try:
                self._perform(step)
            except (InputError, Unmet) as refusal:
                if step.optional:
                    self.say(f"step {step.number}: {step.kind}: {refusal} (optional)")
                    continue
                raise Stopped(f"step {step.number}: {step.kind}: {refusal}") from None
            self.say(f"step {step.number}: {step.kind}")
        if not self.scenario.stops:
            while (deadline := self.engine.next_deadline(self.quiet_timeout)) is not None and self._worth(deadline):
                self._let_time_run(deadline)
        self.engine.wait_quiet(self.quiet_timeout)

    def _worth(self, deadline: int) -> bool:
        """A virtual clock jumps to any deadline; a real one is not waited for longer than anybody would look at it."""
        return self.engine.clock == "virtual" or deadline - self.engine.now() <= REAL_PATIENCE_MS

    def _let_time_run(self, target: int) -> None:
        """Until `target`, from deadline to deadline: each takes one of `max_steps`."""
        while (deadline := self.engine.next_deadline(self.quiet_timeout)) is not None and deadline <= target:
            if self.left == 0:
                raise Stopped(f"stopped after {self.scenario.max_steps} deadlines (max_steps): something never ends")
            self.left -= 1
            self._reach(deadline)
        self._reach(target)
        self.engine.wait_quiet(self.quiet_timeout)

    def _reach(self, moment: int) -> None:
        if self.engine.clock == "virtual":
            self.engine.advance(to=moment, timeout=self.quiet_timeout)
            return
        while (left := moment - self.engine.now()) > 0:
            time.sleep(min(left / 1_000, REAL_TICK_S))

    def _perform(self, step: Step) -> None:
        engine, body = self.engine, step.body
        match body:
            case steps.Advance():
                self._let_time_run(after(engine.now(), body.duration))
            case steps.Message():
                engine.publish(body.name, body.key, body.payload, id=body.id, ttl=body.ttl)
            case steps.Signal():
                engine.signal(body.name, body.payload, id=body.id)
            case steps.Complete():
                for task in self._open("task", body.task, body.all):
                    engine.complete(
                        task.id, body.outputs, body.user, body.groups, strict=self.strict and bool(body.user)
                    )
            case steps.Claim():
                for task in self._open("task", body.task, body.all):
                    engine.claim(task.id, body.user, body.groups)
            case steps.Unclaim():
                for task in self._open("task", body.task, body.all):
                    engine.unclaim(task.id)
            case steps.Job():
                for job in self._open("job", body.job, body.all):
                    engine.complete_job(job.id, body.outputs)
            case steps.JobError():
                for job in self._open("job", body.job, body.all):
                    engine.bpmn_error(job.id, body.code, body.message)
            case steps.JobFailure():
                for job in self._open("job", body.job, body.all):
                    # With retries left the worker's job stays open: it is fetched again.
                    engine.fail_job(job.id, body.cause, retries=body.retries)
            case steps.JobEscalation():
                for job in self._open("job", body.job, body.all):
                    engine.escalate(job.id, body.code)
            case steps.Retry():
                for instance_id in self._failed(body.node, body.all):
                    engine.retry(instance_id, body.node)
            case steps.Resolve():
                for instance_id in self._failed(body.node, body.all):
                    engine.resolve(instance_id, body.node, body.outputs)
            case steps.SetVariables():
                engine.set(self._main().instance_id, body.values)
            case steps.SetData():
                for store, value in body.values.items():
                    engine.set_data_store(store, value)
            case steps.Cancel():
                engine.cancel(self._main().instance_id)
            case steps.Suspend():
                engine.suspend(self._main().instance_id)
            case steps.Resume():
                engine.resume(self._main().instance_id)
            case steps.StartProcess():
                engine.start(body.process, body.variables)
            case steps.Expect():
                self._expect(body)
            case steps.Stop():
                pass
            case steps.Restart():
                engine.restart()
            case _:
                assert_never(body)
        engine.wait_quiet(self.quiet_timeout)

    def _open(self, kind: steps.TaskKind, name: str, every: bool) -> list[TaskInfo]:
        """The open task or job of an exact id; or of a node id the oldest, or every one."""
        if "/" in name or not every:
            return [self.engine.task(name, kind)]
        listed = self.engine.tasks(node=name) if kind == "task" else self.engine.jobs(node=name)
        if not listed:
            raise UnknownTask(f"{kind} {name}: none is open by this id")
        return listed

    def _failed(self, node: str, every: bool) -> list[str]:
        """Instances with an open incident at the node, once for each incident, oldest first."""
        found = sorted((i for i in self.engine.incidents() if i.node == node), key=lambda i: i.at_ms)
        if not found:
            raise InputError(f"no incident is open at {node}")
        return [incident.instance_id for incident in (found if every else found[:1])]

    def _main(self) -> InstanceView:
        """The instance that steps without a name are about: the first file's."""
        for part in self.parts:
            self._find_main(part)
            if part.instance_id:
                return self.engine.inspect(part.instance_id)
        raise UnknownInstance("nothing has started yet")

    def _expect(self, expected: steps.Expect) -> None:
        for store, value in (expected.data or {}).items():
            held = plain(self.engine.data_store(store).value)
            if held != plain(value):
                raise Unmet(f"expected data store {store} to hold {value!r}, it holds {held!r}")
        try:
            view = self._main()
        except UnknownInstance:
            self._expect_unstarted(expected)
            return
        state, waiting, done = state_of(view), {wait.node for wait in view.waits}, set(view.trace)
        if expected.state is not None and state != expected.state:
            raise Unmet(f"expected state {expected.state}, it is {state}")
        if expected.waits is not None:
            _expect_waits(expected.waits, waiting)
        have = plain(view.variables)
        for name, value in (expected.variables or {}).items():
            if not isinstance(have, dict) or name not in have:
                raise Unmet(f"expected variable {name} = {value!r}, there is none")
            if have[name] != plain(value):
                raise Unmet(f"expected variable {name} = {value!r}, it is {have[name]!r}")
        if isinstance(expected.completed, bool):
            if (state == "completed") != expected.completed:
                raise Unmet(f"expected completed: {str(expected.completed).lower()}, the state is {state}")
        elif missing := sorted(set(expected.completed or ()) - done):
            raise Unmet(f"expected {', '.join(missing)} to be completed")

    def _expect_unstarted(self, expected: steps.Expect) -> None:
        part = self.parts[0]
        starts = {wait.node for wait in part.deployed.starts} if part.deployed else set()
        if expected.state not in (None, "waiting"):
            raise Unmet(f"expected state {expected.state}, nothing has started yet")
        if expected.waits is not None:
            _expect_waits(expected.waits, starts)
        if expected.variables or expected.completed:
            raise Unmet("expected variables or completed nodes, nothing has started yet")

    # --- after the steps
    def outcomes(self, error: str | None = None) -> list[Outcome]:
        """One for each file, in order; everything else that was started is somebody's child."""
        views = {view.instance_id: view for view in self.engine.list_instances(limit=1_000_000)}
        for part in self.parts:
            self._find_main(part, list(views.values()))
        mains = {part.instance_id for part in self.parts if part.instance_id}
        children: dict[str, list[InstanceView]] = {}
        orphans: list[InstanceView] = []
        for view in views.values():
            if view.instance_id in mains:
                continue
            parent = _parent(view, views)
            if parent:
                children.setdefault(parent, []).append(view)
            else:
                orphans.append(view)
        for part in self.parts:
            ours = part.deployed.process_id if part.deployed else ""
            part.extra = [view.instance_id for view in orphans if view.process_id == ours]
        taken = {instance_id for part in self.parts for instance_id in part.extra}
        first = next((part for part in self.parts if part.deployed), None)
        if first is not None:
            first.extra += [view.instance_id for view in orphans if view.instance_id not in taken]

        def described(file: str, view: InstanceView, more: Sequence[str] = (), why: str | None = None) -> Outcome:
            inside = [*children.get(view.instance_id, ()), *(views[instance_id] for instance_id in more)]
            model = self.models.get((view.process_id, view.version))
            return outcome_of(file, view, model, [described(file, child) for child in inside], why)

        results = []
        for part in self.parts:
            if part.deployed is None:
                results.append(rejected(part.file, part.refused))
            elif part.instance_id:
                results.append(described(part.file, views[part.instance_id], part.extra, error))
            else:
                others = [described(part.file, views[instance_id]) for instance_id in part.extra]
                results.append(not_started(part.file, part.deployed.process_id, part.deployed.starts, error, others))
        return results

    def _find_main(self, part: Part, views: Sequence[InstanceView] | None = None) -> None:
        """A process that waits for its trigger is played by the first instance that this trigger starts."""
        if part.instance_id or part.deployed is None:
            return
        if views is None:
            views = self.engine.list_instances(process_id=part.deployed.process_id)
        for view in views:
            if (view.process_id, view.version) == (part.deployed.process_id, part.deployed.version):
                part.instance_id = view.instance_id
                return


class Unmet(Exception):
    """An `expect` that is not so."""


def _expect_waits(expected: Sequence[str], waiting: set[str]) -> None:
    shown = ", ".join(sorted(waiting)) or "nothing"
    if not expected and waiting:
        raise Unmet(f"expected that nothing waits, {shown} does")
    if missing := sorted(set(expected) - waiting):
        raise Unmet(f"expected {', '.join(missing)} to wait; {shown} waits")


def _parent(view: InstanceView, known: Collection[str]) -> str:
    """Who called it, or whose throw began it: the longest beginning of its delivery's id that is an instance's, because
    the ids of called instances are themselves made of such parts. '' for nobody among the known."""
    if view.caller:
        return view.caller if view.caller in known else ""
    name = view.started_by
    while ":" in name:
        name = name.rpartition(":")[0]
        if name in known:
            return name
    return ""
