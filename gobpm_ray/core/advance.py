"""`advance`: triggers in, one step out. The only way in which an instance changes.

Theory of operation. Triggers are taken in inbox order. Each is *applied*: it ends or continues what it is addressed to.
Then ready tokens run, first in first out, until none is ready: every token is parked on waits, on an effect, on a scope
inside it, or on an incident. What a node does is its family's business (`gobpm_ray.core.nodes`); what a move costs in
books is the `Run`'s. This file knows only whom a trigger is for, and what becomes of one that comes too late.

Wrong content never raises: it is an incident of the token that met it, and its siblings go on. What does raise is
`PartsMissing`, when the state is partial and the step turns out to need more (load everything, call again with a fresh
state), and `BrokenInvariant`, when state and program contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gobpm_ray.core.correlation import learn, wait_by
from gobpm_ray.core.faults import FAILURE, FLOW, MISTYPED, NO_START, OUTPUT, SEALED, UNAVAILABLE, Fault
from gobpm_ray.core.listening import listen
from gobpm_ray.core.nodes.event_gateway import instantiate
from gobpm_ray.core.nodes.starts import collect
from gobpm_ray.core.program import Program
from gobpm_ray.core.run import Run
from gobpm_ray.core.secrets import veil_of_state
from gobpm_ray.core.shapes import opened
from gobpm_ray.core.starts import begun_at
from gobpm_ray.core.state import ROOT, InstanceState, PartsMissing, Scope, Track, TrackState, parse_wait_id
from gobpm_ray.core.step import Step, Trigger

Apply = Callable[[Run, Trigger], bool]
"""Applies a trigger; False: what it is for is no longer there."""


def advance(
    program: Program,
    state: InstanceState,
    triggers: Sequence[Trigger],
    now_ms: int,
    *,
    epoch: int = 0,
    max_steps: int = 10_000,
    data: Mapping[str, object] | None = None,
) -> Step:
    """The step that the triggers cause. Takes `state` over and changes it in place.

    `epoch` is the lease's, stamped on effects. A token's path that passes `max_steps` nodes between two waits is
    stopped in an incident. `data`: what the program's data stores hold, as one consistent read."""
    run = Run(program, state, now_ms, epoch, max_steps)
    if data:
        run.data = data
    if program.process.secrets or state.head.secrets:
        run.veil = veil_of_state(program.process, state)
    for trigger in triggers:
        if trigger.secrets or run.veil:
            run.bring(trigger.values, trigger.secrets)
        if run.step.outcome or not _APPLY[trigger.kind](run, trigger):
            _overtaken(run, trigger)
        else:
            run.drain()
    return run.close()


def recover(program: Program, state: InstanceState, now_ms: int, epoch: int) -> Step:
    """The step of a claimer that finds effects handed out under an earlier epoch and never reported (N10): idempotent
    ones are handed out again under the same key, the others are sealed in an incident. Needs the whole instance."""
    if not state.complete:
        raise PartsMissing("all tracks")
    run = Run(program, state, now_ms, epoch, limit=1)
    for track in list(state.tracks.values()):
        if track.state is TrackState.WORKING:
            node = run.node(track)
            node.family.recover(run, track, node)
    return run.close()


def touched(state: InstanceState, holder: Track | Scope) -> tuple[str, ...]:
    """The parts that a trigger for one of the holder's waits needs: the head, the track, its scopes up to the root, and
    the tokens that host those scopes (the last token out of a scope continues its host)."""
    if isinstance(holder, Track):
        parts, innermost = ["h", f"t{holder.id}"], holder.scope
    else:
        parts, innermost = ["h"], holder.id
    for scope in state.chain(innermost):
        parts.append(f"s{scope.id}")
        if scope.host:
            parts.append(f"t{scope.host}")
            host = state.tracks.get(scope.host)
            rounds = None if host is None else host.rounds
            if rounds is not None and rounds.first and rounds.started < rounds.total:
                parts.append(f"s{rounds.first + rounds.started}")  # of the round that comes next
    return tuple(parts)


# --- triggers for the instance -----------------------------------------------------------------------------------


def _start(run: Run, trigger: Trigger) -> bool:
    """The root scope exists, with a token at each start that is meant: the event named, else the none starts."""
    state, program = run.state, run.program
    if ROOT in state.scopes:
        return False
    state.head.started = run.now
    root = run.open_scope(None, program.id, opened(program.declared.get(program.id), {}))
    begun, met = begun_at(program, trigger.node) if trigger.node else ("", -1)
    run.record("started", begun, trigger.id)
    if begun:
        for index in range(len(run.nodes[begun].definitions)) if met < 0 else (met,):
            learn(run, run.nodes[begun], str(index), trigger)
        gateway = program.instantiating.get(begun)
        if gateway is not None:
            instantiate(run, root, run.nodes[gateway], run.nodes[begun], trigger.values)
        elif met >= 0:
            collect(run, root, run.nodes[begun], met, trigger.values)
        else:
            track = run.new_track(root, begun)
            run.number_visit(track)
            run.complete(track, run.node(track), trigger.values)
        if not run.step.outcome:
            listen(run, root)
        return True
    root.variables.update(trigger.values)
    wrong = program.shape.problem(trigger.values) if program.shape is not None else ""
    for node in program.starts[program.id]:
        track = run.new_track(root, node)
        if wrong:
            # Its caller was told "accepted", by a caller's older knowledge or by a call activity: it is not lost.
            run.number_visit(track)
            run.incident(track, Fault(MISTYPED, f"start of '{program.id}': {wrong}"))
        else:
            run.enqueue(track)
    listen(run, root)
    if root.live == 0 and program.triggered:
        track = run.new_track(root, program.triggered[0])
        run.number_visit(track)
        run.incident(track, Fault(NO_START, f"process '{program.id}' has no start event that needs no trigger"))
    elif root.live == 0:
        run.emptied(root)
    return True


def _cancel(run: Run, trigger: Trigger) -> bool:
    if ROOT not in run.state.scopes:
        return False
    run.finish("terminated")
    return True


def _set(run: Run, trigger: Trigger) -> bool:
    if ROOT not in run.state.scopes:
        return False
    run.assign(ROOT, trigger.values)
    run.record("set", detail=", ".join(trigger.values))
    return True


# --- triggers for a wait -----------------------------------------------------------------------------------------


def _fire(run: Run, trigger: Trigger) -> bool:
    """The family of the node that the wait names goes on; at a boundary or a gateway's arm the token does not stand."""
    owner, node_id, index, _ = parse_wait_id(trigger.wait)
    holder = run.state.holder(owner)
    armed = None if holder is None else holder.waits.get(trigger.wait)
    if holder is None or armed is None or armed.kind != trigger.kind:
        return False
    run.record("woken", node_id, trigger.kind)
    if isinstance(holder, Track) and holder.node == node_id:
        node = run.node(holder)
    else:
        node = run.nodes[node_id]
    fresh = learn(run, node, index, trigger) if trigger.kind == "message" else None
    run.meet(holder, node, trigger.wait, trigger)
    if fresh:
        wait_by(run, fresh)
    return True


def _report(run: Run, trigger: Trigger) -> bool:
    """The report of an effect, addressed by its key. All but `done` may also name the wait of a job or a called
    instance, which then fails, throws an error, or throws an escalation and goes on."""
    track_id, _, rest = trigger.wait.partition(":")
    node_id, _, visit = rest.rpartition(":")
    track = run.state.track(track_id)
    if track is None:
        return False
    if track.state is TrackState.WORKING and track.node == node_id and str(track.visit) == visit:
        node = run.node(track)
        node.family.fire(run, track, node, "", trigger)
        return True
    armed = track.waits.get(trigger.wait)
    if armed is None or armed.kind not in ("job", "child") or trigger.kind == "done":
        return False
    if trigger.kind != "failed":
        run.record("woken", track.node, trigger.kind)
    node = run.node(track)
    node.family.fire(run, track, node, trigger.wait, trigger)
    return True


def _lacking(run: Run, trigger: Trigger) -> bool:
    """Said of an effect that was handed out and cannot begin; it waits on, and nothing changes but the history."""
    track_id, _, rest = trigger.wait.partition(":")
    node_id, _, visit = rest.rpartition(":")
    track = run.state.track(track_id)
    if track is not None and track.state is TrackState.WORKING and track.node == node_id and str(track.visit) == visit:
        run.record("lacking", node_id, trigger.cause)
    return True


# --- triggers for an incident ------------------------------------------------------------------------------------


def _retry(run: Run, trigger: Trigger) -> bool:
    """The token goes on where the incident stopped it; what was already done is not done again."""
    found = _incident(run, trigger)
    if found is None:
        return False
    track, code, kept = found
    node = run.node(track)
    run.record("retried", node.id)
    if code in (FAILURE, SEALED, UNAVAILABLE):
        track.local = None
        run.visit(track, again=True)
        return True
    run.number_visit(track)
    if code == OUTPUT:
        run.complete(track, node, kept)
    elif code == FLOW:
        run.go_on(track, node)
    else:
        node.family.retry(run, track, node)
    return True


def _resolve(run: Run, trigger: Trigger) -> bool:
    """The token goes past the node that it failed at, with the trigger's values as results."""
    found = _incident(run, trigger)
    if found is None:
        return False
    track, code, _ = found
    node = run.node(track)
    run.number_visit(track)
    run.record("resolved", node.id)
    if code == OUTPUT:
        # The mapping is what failed: the operator's values stand in its place.
        run.assign(track.scope, trigger.values)
        run.go_past(track, node)
    elif code == FLOW:
        run.assign(track.scope, trigger.values)
        run.go_on(track, node)
    else:
        node.family.resolve(run, track, node, trigger.values)
    return True


def _incident(run: Run, trigger: Trigger) -> tuple[Track, str, dict[str, object]] | None:
    """The token whose incident the trigger names, the incident's code, and the results that could not be bound; the
    incident is closed."""
    track = run.state.track(parse_wait_id(trigger.wait)[0])
    if track is None or track.incident is None or trigger.wait not in track.waits:
        return None
    code = track.incident.code
    if track.waits[trigger.wait].kind != "incident":
        return None
    kept = track.waits[trigger.wait].gathered or {}
    run.withdraw(track, (trigger.wait,))
    return track, code, kept


# --- what came too late ------------------------------------------------------------------------------------------

_INBOX = frozenset({"start", "timer", "message", "signal", "task", "job", "child", "retry", "resolve", "cancel", "set"})
"""Kinds that came through the store's inbox, where somebody must be told; a host's own report is only noted."""


def _overtaken(run: Run, trigger: Trigger) -> None:
    run.record("overtaken", parse_wait_id(trigger.wait)[1] if trigger.wait else "", trigger.kind)
    if trigger.kind in _INBOX:
        run.step.overtaken.append(trigger)


_APPLY: Mapping[str, Apply] = {
    "start": _start,
    "cancel": _cancel,
    "set": _set,
    "timer": _fire,
    "message": _fire,
    "signal": _fire,
    "task": _fire,
    "job": _fire,
    "done": _report,
    "failed": _report,
    "lacking": _lacking,
    "child": _fire,
    "error": _report,
    "escalation": _report,
    "retry": _retry,
    "resolve": _resolve,
}
