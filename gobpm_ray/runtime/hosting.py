"""One instance under one lease, from its claim to its release: the single writer (design section 3).

Theory of operation. A hosting turns in one loop: triggers (from the claim, the inbox, or its own effects' reports) go
through the core, the step is one commit, the commit says whether the lease is kept. Kept: the effects that the step
asked for are begun, *after* their intent is durable, and the thread sleeps on one queue into which reports, the
instance's bell, renewals and the order to stop all go. Not kept: the hosting is over and may hand its actor the next
claim.

A commit that releases whatever the store answers need not be waited for when the host has another instance in hand
(docs/adr/0009): it is sent, and `land` reads the answer.

Nothing here writes except by commit, so a hosting that loses its lease has nothing to undo: it just ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty
from typing import TYPE_CHECKING, TypeVar, assert_never

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential, wait_random

from gobpm_ray.checkpoint import rows
from gobpm_ray.checkpoint.parts import decode_with_working
from gobpm_ray.core.advance import advance, recover
from gobpm_ray.core.faults import LOST, UNAVAILABLE
from gobpm_ray.core.program import Program
from gobpm_ray.core.residency import willing
from gobpm_ray.core.secrets import NO_VEIL, Veil, conceal, veil_of, veil_of_state
from gobpm_ray.core.state import InstanceState, PartsMissing, TrackState
from gobpm_ray.core.step import Call, HistoryEntry, Step, Trigger
from gobpm_ray.errors import (
    BrokenInvariant,
    CorruptCheckpoint,
    DataStoreChanged,
    EnvironmentFailure,
    GobpmError,
    LeaseLost,
    NewerSchema,
)
from gobpm_ray.runtime import facts
from gobpm_ray.runtime.commits import Working, draft, fill, triggers_of
from gobpm_ray.runtime.crashpoints import reached
from gobpm_ray.runtime.leasing import Bell, Event, Events, Lacking, Lost, Renewed, Report, Stop, Watched
from gobpm_ray.runtime.ports import Answer, Claim, Commit, CommitResult, Residency, TriggerRow
from gobpm_ray.runtime.stored_data import StoredData
from gobpm_ray.settings import SECOND

if TYPE_CHECKING:
    from gobpm_ray.runtime.host import Host

log = logging.getLogger("gobpm_ray.runtime")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Sent:
    commit: Commit
    step: Step | None
    answer: Answer[CommitResult]


class Hosting:
    """See the module's docstring. Lives in one thread; only its queue is shared."""

    def __init__(self, host: Host, claim: Claim) -> None:
        self.host = host
        self.claim = claim
        self.id = claim.instance_id
        self.events: Events = host.new_events()
        self.watched = Watched(claim.instance_id, claim.token, self.events)
        self.version = claim.version
        self.now = claim.now
        self.running: dict[str, Call] = {}
        """Effects whose report is still wanted, by effect key."""
        self._state: InstanceState | None = None
        self._working = Working()
        self._program: Program | None = None
        self._data: StoredData | None = None
        self._step_veil = NO_VEIL
        """What hides in the newest step."""
        self._commits = 0
        self._sent: _Sent | None = None
        """The releasing commit, while its answer is not read."""
        self._sizes: dict[str, int] = {}
        """Bytes of the checkpoint's parts."""
        self._arrived = False
        """The fact of its arrival is written."""
        self._leave = False
        """Asked to go: the next commit releases if it may."""
        self._evictable = False

    # --- the whole life

    def run(self) -> Claim | None:
        """The instance is released, ended, lost, or about to be (`sent`); returns the claim that the last commit gave
        back, if any.

        Raises EnvironmentFailure when the store cannot be reached for a lease's lifetime."""
        return self._guarded(self._live)

    @property
    def sent(self) -> bool:
        """Its last commit is on its way, and nothing is left to do but to `land` it."""
        return self._sent is not None

    def land(self) -> Claim | None:
        """The answer to the commit that was sent: the claim that it gave back, if any. Raises as `run` does."""
        return self._guarded(self._landed)

    def _guarded(self, work: Callable[[], Claim | None]) -> Claim | None:
        try:
            return work()
        except LeaseLost as lost:
            self.host.counters.fenced += 1
            log.info("instance %s: lease lost, nothing more is written: %s", self.id, lost)
        except _TooLarge as grown:
            with suppress(LeaseLost):
                self._hold(str(grown))
        except _GraceOver:
            log.warning("instance %s: effects outlast the grace and are left to the next claimer", self.id)
        except EnvironmentFailure as failure:
            if not isinstance(failure, NewerSchema):
                raise
            self._abandon(failure)
        except Exception as failure:
            self._abandon(failure)
        finally:
            for effect_key in list(self.running):
                self._discard(effect_key)
        return None

    def _live(self) -> Claim | None:
        if self.claim.suspect:
            self.host.alone()
            if self._held_back():
                return None
        self._take(self.claim)
        reached("hosting.hydrated")
        inbox: Sequence[TriggerRow] = self.claim.triggers
        reports: list[Trigger] = []
        if self._cancelled:
            pass  # what it was doing is not done again, only to be cancelled
        elif self._working.total:
            self._recover()
        elif not inbox and self.version:
            # Expired and swept while it merely waited, or woken for nothing: not an error (N7).
            self.host.counters.suspended_without_wake += 1
        waiting = self.claim.inbox
        while True:
            step, result = self._stepped(inbox, reports, more=waiting > len(inbox))
            if result is None:
                return None
            if not result.kept:
                reached("hosting.released")
                return result.next
            self._begin(step)
            inbox, reports, waiting = self._next(result.inbox)

    def first_leg(self) -> Commit | None:
        """The commit of a new instance's first leg, if it ends where the instance waits for what only the store brings,
        or ends; None if it needs a host. Nothing is written, and nothing asked of the store: there is no lease.

        Raises what a wake raises."""
        self._take(self.claim)
        inbox = self.claim.triggers
        step = None if self.program.stores else self._step(inbox, [])
        if step is None or step.calls or self._residency(step, more=False) != "release":
            return None
        if any(entry.event == "incident" for entry in step.history):
            return None  # whether it is one is for a host to say, whose log is looked at
        commit = self._draft(step, inbox, residency="release")
        commit.next_token = ""
        return commit

    def _stepped(
        self, inbox: Sequence[TriggerRow], reports: list[Trigger], *, more: bool
    ) -> tuple[Step | None, CommitResult | None]:
        """What the triggers cause, committed (None: the commit is on its way); made again when a data store that it has
        read was written meanwhile."""
        while True:
            step = self._step(inbox, reports)
            reached("hosting.fired")
            commit = self._draft(step, inbox, more=more)
            if self._send(commit, step):
                return step, None
            try:
                return step, self._carry_out(commit, step)
            except DataStoreChanged:
                # Nothing was written, and whoever was faster has made progress: so this ends.
                self._reload()

    @property
    def _cancelled(self) -> bool:
        return any(row.kind == "cancel" for row in self.claim.triggers)

    def _held_back(self) -> bool:
        """The host before this one died without a word, and nothing was committed since. True: so did too many, and the
        instance is held until a person lets it go on, instead of being hosted once more (N9, C63)."""
        host, deaths = self.host, self.claim.deaths
        if self._cancelled or not 0 < host.settings.max_silent_deaths <= deaths:
            # Real work begins with this: however early this host dies, it counts.
            self._patiently(lambda: host.store.renew(self.id, self.claim.token))
            return False
        self._hold(f"{deaths} hosts died over it without a word; find what kills them, then retry")
        return True

    def _hold(self, cause: str) -> None:
        """Suspended as an open incident of the whole instance, its triggers kept, until a person lets it go on."""
        host = self.host
        entry = rows.history_entry(HistoryEntry("incident", self.now, "", cause))
        told = rows.fact("Incident", self.id, self.claim.process_id, self.now, node="")
        self._patiently(lambda: host.store.hold(self.id, self.claim.token, entry, told))
        host.counters.held += 1
        log.error("instance %s of process %s is held: %s", self.id, self.claim.process_id, cause)

    def _take(self, claim: Claim) -> None:
        """The claim's state is ours. CorruptCheckpoint, NewerSchema, UnknownProcess: a failed wake."""
        self._program = self.host.programs.get(claim.process_id, claim.process_version)
        if not claim.parts and claim.version:
            raise CorruptCheckpoint(
                f"instance {self.id}: its checkpoint is gone (version {claim.version} without parts)"
            )
        self._state, stored = decode_with_working(
            self.id, claim.process_id, claim.process_version, claim.business_key, claim.parts, claim.complete
        )
        self._state.caller = claim.caller
        self._working = Working.of(self._state, stored) if stored else Working()
        self._sizes = {name: len(part) for name, part in claim.parts.items()}

    def _reload(self) -> None:
        self.host.counters.reloaded += 1
        self._take(self._patiently(lambda: self.host.store.load(self.id, self.claim.token)))
        reached("hosting.reloaded")

    @property
    def state(self) -> InstanceState:
        assert self._state is not None  # noqa: S101 - set by _take, before anything else runs
        return self._state

    @property
    def program(self) -> Program:
        assert self._program is not None  # noqa: S101 - as above
        return self._program

    # --- steps

    def _step(self, inbox: Sequence[TriggerRow], reports: list[Trigger]) -> Step | None:
        """What the triggers cause; None when there are none. Reports come first: they tell what has happened."""
        if not inbox and not reports:
            return None
        triggers = reports + triggers_of(inbox)
        return self._whole(lambda: self._advance(triggers))

    def _veil(self, *more: Mapping[str, object], marked: Sequence[str] = ()) -> Veil:
        """What this instance's secrets hide, given what is loaded; `marked` are the names of some more."""
        process = self.program.process
        secrets = self.state.head.secrets
        if not (process.secrets or secrets or marked):
            return NO_VEIL
        return veil_of_state(process, self.state).joined(veil_of(process, *more, marked=(*secrets, *marked)))

    def _advance(self, triggers: list[Trigger]) -> Step:
        # Before as well as after: an ending scope takes the values of its secrets with it.
        marked = [name for trigger in triggers for name in trigger.secrets]
        veil = self._veil(*(trigger.values for trigger in triggers), marked=marked)
        data = None
        if self.program.stores:
            self._data = StoredData(self.host.store, self.host.settings, self.program.stores)
            data = self._patiently(self._data.read)
        step = advance(
            self.program,
            self.state,
            triggers,
            self.now,
            epoch=self.claim.epoch,
            max_steps=self.host.settings.max_advance_steps,
            data=data,
        )
        if veil or self.state.head.secrets:  # one that it has read from a data store
            self._step_veil = veil.joined(self._veil())
            conceal(step, self._step_veil)
        return step

    def _recover(self) -> None:
        """Effects that a dead host left open are handed out again or sealed, before anything else (N10)."""
        step = self._whole(lambda: recover(self.program, self.state, self.now, self.claim.epoch))
        if step.changed:
            reached("hosting.recovering")
            self._carry_out(self._draft(step, (), residency="keep"), step)
            reached("hosting.recovered")
            self._begin(step)

    def _whole(self, work: Callable[[], Step]) -> Step:
        """The step; if it needs parts that are not here, again on the whole instance: nothing happens twice."""
        try:
            if self._working.elsewhere:
                raise PartsMissing("tracks with open effects")
            return work()
        except PartsMissing:
            self._reload()
            return work()

    # --- the commit

    def _draft(
        self,
        step: Step | None,
        inbox: Sequence[TriggerRow],
        *,
        more: bool = False,
        residency: Residency | None = None,
    ) -> Commit:
        host = self.host
        self._commits += 1
        commit = Commit(self.id, self.claim.token, self.version, f"{self.claim.token}:{self._commits}")
        commit.consumed = [row.id for row in inbox]
        if step is not None:
            fill(commit, draft(step, self._working, inbox, host.settings.message_ttl_ms), step)
            self._check_size(commit)
            if self._data is not None and step.writes:
                commit.data = self._data.uses(step, self._step_veil)
        commit.residency = residency or self._residency(step, more)
        commit.facts = self._facts(commit, step, inbox)
        if commit.residency != "keep":
            commit.next_token = host.next_token()
        reached("hosting.drafted")
        return commit

    def _send(self, commit: Commit, step: Step | None) -> bool:
        """True: it is on its way, and the host goes on with what it has in hand. What is released whatever the answer
        needs nobody to wait for it; what stays, or may have to be made again, does."""
        host = self.host
        if commit.residency != "release" or commit.data or not host.may_send:
            return False
        with suppress(EnvironmentFailure):  # then the patient way
            self._sent = _Sent(commit, step, host.store.send_commit(commit))
            reached("hosting.sent")
        return self._sent is not None

    def _landed(self) -> Claim | None:
        sent, self._sent = self._sent, None
        assert sent is not None  # noqa: S101 - whoever lands it has seen that it was sent
        try:
            result = sent.answer.result()
        except EnvironmentFailure:
            return self._carry_out(sent.commit, sent.step).next
        self._settled(sent.commit, sent.step, result)
        reached("hosting.released")
        return result.next

    def _carry_out(self, commit: Commit, step: Step | None) -> CommitResult:
        if commit.residency != "release":
            self.host.alone()
        # The same commit id again: if only the answer was lost, this asks for it and changes nothing.
        result = self._patiently(lambda: self.host.store.commit(commit))
        self._settled(commit, step, result)
        return result

    def _settled(self, commit: Commit, step: Step | None, result: CommitResult) -> None:
        host, counters = self.host, self.host.counters
        reached("hosting.committed")
        host.backlog = result.ready
        self.version, self.now = result.version, result.now
        self._working.stored = self._working.total
        self._arrived = True
        counters.commits += 1
        if not (result.kept or commit.outcome or host.in_process):
            counters.dehydrated += 1
        if step is not None:
            counters.sealed += sum(entry.event == "sealed" for entry in step.history)

    def _check_size(self, commit: Commit) -> None:
        """_TooLarge when the checkpoint would pass its limit. Of a wide instance only the parts that are here count."""
        self._sizes.update({name: len(part) for name, part in commit.parts.items()})
        for name in commit.removed:
            self._sizes.pop(name, None)
        size, most = sum(self._sizes.values()), self.host.settings.max_instance
        if size > most and not commit.outcome:
            raise _TooLarge(
                f"its checkpoint would have {size} bytes, the limit is {most} (max_instance); raise it or cancel the "
                "instance, then retry"
            )

    def _residency(self, step: Step | None, more: bool) -> Residency:
        """What should become of the lease; the store decides an `either`."""
        self._evictable = False
        if step is not None and step.outcome:
            return "release"
        running = len(self.running)
        if step is not None:
            running += len(step.calls) - sum(key in self.running for key in step.cancelled)
        if running > 0 or (more and not self._leave):
            return "keep"
        if self._leave or self.host.in_process:
            return "release"
        settings = self.host.settings
        threshold, released = settings.dehydration_threshold_ms, settings.release_jobs
        if willing(self.program, self.state, self.now, threshold, release_jobs=released):
            return "release"
        if all(track.waits or track.state is TrackState.HOSTING for track in self.state.tracks.values()):
            # It would rather stay, but the store holds all that it waits for: it makes room when room is needed.
            self._evictable = True
            return "either"
        return "keep"

    def _facts(self, commit: Commit, step: Step | None, inbox: Sequence[TriggerRow]) -> list[bytes]:
        found: list[bytes] = []
        fresh = not self.claim.parts
        # In process nothing ever releases (D17): the cycles of claim and release are not transitions of the instance.
        if not self._arrived and (fresh or not self.host.in_process):
            arrived = inbox or self.claim.triggers
            otherwise = "recovery" if self._working.stored else "none"
            found.append(facts.arrival(self.state, arrived, self.now, otherwise, fresh=fresh, outcome=commit.outcome))
            self.host.counters.hydrated += not fresh
        if step is not None:
            found.extend(facts.happened(step, self.now))
        if not self.host.in_process and not commit.outcome:
            if commit.residency == "release":
                found.append(facts.departure(self.state, self.now))
            elif commit.residency == "either":
                commit.release_facts = [facts.departure(self.state, self.now)]
        return found

    def _patiently(self, work: Callable[[], T]) -> T:
        """The answer; while the store gives none, asked again until a lease's lifetime has passed."""
        try:
            return work()
        except EnvironmentFailure as failure:
            log.warning("instance %s: the store does not answer, trying again: %s", self.id, failure)
        for attempt in Retrying(
            stop=stop_after_delay(self.host.settings.lease_ttl_ms / SECOND),
            wait=wait_exponential(multiplier=0.05, max=1) + wait_random(0, 0.05),
            retry=retry_if_exception_type(EnvironmentFailure),
            sleep=self.host.sleep,
            reraise=True,
        ):
            with attempt:
                self.host.counters.retried += 1
                return work()
        raise AssertionError("unreachable: reraise is set")

    # --- effects and waiting

    def _begin(self, step: Step | None) -> None:
        """The step's effects run, now that their intent is durable; those that it made pointless are let go."""
        if step is None:
            return
        for effect_key in step.cancelled:
            if effect_key in self.running:
                self._discard(effect_key)
        for call in step.calls:
            reached("hosting.intent_committed")
            self.running[call.effect_key] = call
            self.host.counters.effects += 1
            self.host.effects.start(self.id, call, self.events.put, self._veil(call.inputs).text)

    def _discard(self, effect_key: str) -> None:
        del self.running[effect_key]
        self.host.counters.discarded += 1
        self.host.effects.cancel(self.id, effect_key)

    def _next(self, inbox: int) -> tuple[Sequence[TriggerRow], list[Trigger], int]:
        """Sleep until there is something to do; (triggers from the inbox, reports of effects, length of the inbox).

        All three empty: commit what there is, because the host wants the instance gone or its hold has changed."""
        reports: list[Trigger] = []
        ring = inbox > 0
        if self.host.stopping:
            self._leave = True
        if not ring and self.events.empty():
            self.host.listen(self.watched)
        while True:
            while not (ring or reports or (self._leave and not self.running)):
                ring = self._heed(self._wait(), reports)
            # Whatever has come by now belongs into the same step: results of several effects are one commit.
            while (event := self._at_hand()) is not None:
                ring = self._heed(event, reports) or ring
            if ring and not (self._leave and not self.running):
                triggers, self.now = self._patiently(lambda: self.host.store.fetch(self.id, self.claim.token))
                reached("hosting.fetched")
                if triggers or reports or not self.running:
                    return triggers, reports, len(triggers)
                ring = False
                continue
            if reports:
                self.now = self._patiently(self.host.store.now)
            return (), reports, 0

    def _heed(self, event: Event, reports: list[Trigger]) -> bool:
        """True: the inbox should be looked at."""
        match event:
            case Report():
                reached("hosting.reported")
                call = self.running.pop(event.effect_key, None)
                if call is not None:
                    reports.extend(_triggers(self.id, call, event))
            case Lacking():
                if event.effect_key in self.running:
                    self.host.counters.lacking += 1
                    name = f"{self.id}:{event.effect_key}:lacking"
                    reports.append(Trigger(name, "lacking", event.effect_key, cause=event.what))
            case Renewed():
                if event.ready and self._evictable and not self.running:
                    self._leave = True
                return event.inbox > 0
            case Lost():
                raise LeaseLost(event.reason)
            case Stop():
                self._leave = True
            case Bell():
                return True
            case _:
                assert_never(event)
        return False

    def _wait(self) -> Event:
        try:
            return self.events.get(timeout=self.host.patience())
        except Empty:
            raise _GraceOver from None

    def _at_hand(self) -> Event | None:
        try:
            return self.events.get_nowait()
        except Empty:
            return None

    # --- a failed wake

    def _abandon(self, failure: Exception) -> None:
        """A failed wake keeps its hold: the lease goes back, nothing is consumed, and it is tried again (D18)."""
        self.host.counters.abandoned += 1
        self.host.last_failure = failure
        backoff = self.host.settings.wake_backoff_ms
        log.error(
            "instance %s of process %s version %d: wake failed, tried again in %d ms: %s",
            self.id,
            self.claim.process_id,
            self.claim.process_version,
            backoff,
            failure or type(failure).__name__,
            exc_info=None if isinstance(failure, GobpmError) and not isinstance(failure, BrokenInvariant) else failure,
        )
        reached("hosting.abandoning")
        try:
            self._patiently(lambda: self.host.store.abandon(self.id, self.claim.token, backoff))
            reached("hosting.abandoned")
        except LeaseLost:
            self.host.counters.fenced += 1


class _TooLarge(Exception):
    """The checkpoint would grow beyond what one instance may have."""


class _GraceOver(Exception):
    """The host must stop and its effects have not ended: it goes without a write, nothing is released falsely (N11)."""


def _triggers(instance_id: str, call: Call, report: Report) -> list[Trigger]:
    """A report as the core's triggers: it never passes the store's inbox. An escalation comes before the end."""
    name = f"{instance_id}:{call.effect_key}:{call.attempt}"
    if report.done:
        done = Trigger(name, "done", call.effect_key, values=report.values, secrets=report.secrets)
        if not report.code:
            return [done]
        thrown = replace(done, id=f"{name}:1", kind="escalation", code=report.code)
        return [thrown, done]
    if report.code:
        error = Trigger(name, "error", call.effect_key, values=report.values, code=report.code, cause=report.cause)
        return [replace(error, secrets=report.secrets)]
    # Nothing of a failure becomes a variable: what is here is for whoever reads the incident.
    seen: dict[str, object] = {"stack": report.stack} if report.stack else {}
    code = LOST if report.lost else UNAVAILABLE if report.unavailable else ""
    return [Trigger(id=name, kind="failed", wait=call.effect_key, values=seen, code=code, cause=report.cause)]
