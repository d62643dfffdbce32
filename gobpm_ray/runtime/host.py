"""The host: claims ready instances and hosts them, one at a time, until there is nothing left for it.

It is what an `InstanceActor` wraps, and what the in-process driver calls directly. It knows when to claim, when it is
fit to be handed the next instance, and when to stop; what happens to an instance under a lease stands in
`gobpm_ray.runtime.hosting`. It knows no Ray, no Redis and no clock of its own.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from gobpm_ray.errors import LeaseLost
from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.counters import Counters
from gobpm_ray.runtime.crashpoints import reached
from gobpm_ray.runtime.effects import Effects, Warn
from gobpm_ray.runtime.elsewhere import Elsewhere
from gobpm_ray.runtime.hosting import Hosting
from gobpm_ray.runtime.leasing import Events, Listener, Renewer, Stop, Watched
from gobpm_ray.runtime.ports import Claim, Store
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import SECOND, Settings

log = logging.getLogger("gobpm_ray.runtime")


class Host:
    """One instance at a time. `serve_once`, `close` belong to one thread; `stop` may be called from any.

    `actor` names the host in its lease tokens (`actor:boot:counter`), so that its death can be reported by name.
    `in_process`: the instances of an engine without a store of its own; nothing ever releases, as far as anyone can see
    (D17). `inline_effects`: callables run in the calling thread, one after the other. `elsewhere`: who
    runs Ray tasks."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        programs: Programs,
        callables: Callables,
        actor: str,
        *,
        in_process: bool = False,
        inline_effects: bool = False,
        elsewhere: Elsewhere | None = None,
        on_warning: Warn | None = None,
        sleep: Callable[[float], None] = time.sleep,
        new_events: Callable[[], Events] = SimpleQueue,
    ) -> None:
        self.store = store
        self.settings = settings
        self.programs = programs
        self.actor = actor
        self.in_process = in_process
        self.sleep = sleep
        self.new_events = new_events
        """Where the thread that hosts waits; a test that drives many hosts in one thread brings its own."""
        self.counters = Counters()
        self.effects = Effects(
            callables,
            settings,
            inline=inline_effects,
            on_warning=on_warning,
            on_work=self._renew_while_working,
            elsewhere=elsewhere,
        )
        self.last_failure: Exception | None = None
        """Of the newest failed wake."""
        self.stopping = False
        self._grace_until = 0.0
        self._boot = secrets.token_hex(4)
        self._tokens = 0
        self._hosted = 0
        self._current: Hosting | None = None
        self._under_way: deque[Hosting] = deque()
        """Instances whose releasing commits were sent and not answered, in the order in which they were sent."""
        self._in_hand: deque[Claim] = deque()
        """Claimed ahead: they are run while the commits of those before them are on their way."""
        self.backlog = 0
        """How many were ready when the last commit claimed for us."""
        self._renewer = Renewer(store, settings)
        self._listener = Listener(store, settings)

    # --- what its actor asks

    @property
    def hosting(self) -> str:
        """The instance that it hosts now; '' while it is free."""
        current = self._current
        return "" if current is None else current.id

    @property
    def clean(self) -> bool:
        """No callable of a former instance still runs: only then may it be handed another one."""
        return self.effects.busy == 0

    @property
    def spent(self) -> bool:
        """It will claim nothing more and its actor should end: stopped, unclean, at its cap, or never handed over."""
        if self.stopping or not self.clean:
            return True
        if self._hosted == 0:
            return False
        return not self.settings.hand_over or self._hosted >= self.settings.max_handovers

    # --- the loop

    def serve_once(self, timeout_s: float = 0) -> bool:
        """Host the next ready instance and, handed over by its commits, every further one until none is ready or the
        host is spent. False: nothing was ready within `timeout_s`. EnvironmentFailure: the store is out of reach."""
        claim = None if self.spent else self.store.claim(self._token())
        if claim is None and timeout_s > 0 and not self.spent:
            self.store.wait_bell("ready", timeout_s)
            claim = None if self.spent else self.store.claim(self._token())
        if claim is None:
            return False
        try:
            while claim is not None:
                self.counters.claims += 1
                claim = self._following(self._host(claim))
        finally:
            # After a failure of the store only: what is still under way was committed or was not, and what is in hand
            # goes to whoever claims it when its lease has expired.
            self._under_way.clear()
            self._in_hand.clear()
        return True

    def _following(self, claim: Claim | None) -> Claim | None:
        """What to host next: `claim`, which the last one handed over, or what is in hand, under way or ready."""
        if claim is None and self._in_hand:
            self.counters.ahead += 1
            return self._in_hand.popleft()
        while claim is None and self._under_way:
            claim = self._under_way.popleft().land()
            self.counters.ahead += claim is not None and bool(self._under_way)
        if claim is not None:
            self.counters.handed_over += 1
            self._take_in_hand()
        elif not self.spent:
            # The last one ended without a hand-over (failed, lost its lease): others may be ready all the same.
            claim = self.store.claim(self._token())
        return claim

    def _take_in_hand(self) -> None:
        """More instances, if there is enough for others as well."""
        if self.in_process or not self.settings.hand_over:
            return
        most = min(self.settings.claim_ahead, self.backlog // 2)
        # The instance that was handed over last is not hosted yet.
        for _ in range(min(most - len(self._in_hand) - len(self._under_way), self._room - 1)):
            if self.spent or (claim := self.store.claim(self._token())) is None:
                return
            self._in_hand.append(claim)

    def stop(self, grace_ms: int | None = None) -> None:
        """Claim nothing more; what runs may finish within the grace, a resident that merely waits goes at once."""
        grace = self.settings.grace_ms if grace_ms is None else grace_ms
        self._grace_until = time.monotonic() + grace / SECOND
        self.stopping = True
        current = self._current
        if current is not None:
            current.events.put(Stop())

    def close(self) -> None:
        """Its threads end, those inside a callable excepted."""
        self.stopping = True
        self._renewer.close()
        self._listener.close()
        self.effects.close()

    # --- what a hosting asks

    def next_token(self) -> str:
        """The token under which a freeing commit claims the next instance; '' if this host must not be handed one."""
        return "" if self.spent or self._room < 1 else self._token()

    @property
    def _room(self) -> int:
        """Instances that may still come beside those that are in hand or that an answer may bring."""
        return self.settings.max_handovers - self._hosted - len(self._in_hand) - len(self._under_way)

    @property
    def may_send(self) -> bool:
        """There is something to do while a commit is on its way."""
        return bool(self._in_hand or self._under_way)

    def alone(self) -> None:
        """What is hosted now may take its time: nothing else waits for this thread any more."""
        while self._under_way:
            if (claim := self._under_way.popleft().land()) is not None:
                self._in_hand.append(claim)
        while self._in_hand:
            # The last first: each goes to the head of the line.
            claim = self._in_hand.pop()
            self.counters.given_back += 1
            with suppress(LeaseLost):
                self.store.unclaim(claim.instance_id, claim.token)

    def listen(self, watched: Watched) -> None:
        """The bell of a resident is slept on; a host in process has nobody beside it who could ring."""
        self._renewer.watch(watched)
        self._listener.watch(watched)

    def patience(self) -> float | None:
        """Seconds that an effect may still take; None: any number."""
        return max(0.0, self._grace_until - time.monotonic()) if self.stopping else None

    def _host(self, claim: Claim) -> Claim | None:
        self._hosted += 1
        reached("host.claimed")
        self._current = hosting = Hosting(self, claim)
        if not self.in_process:
            self._renewer.watch(hosting.watched)
        try:
            following = hosting.run()
            if hosting.sent:
                self._under_way.append(hosting)
            return following
        finally:
            self._renewer.rest()
            self._listener.rest()
            self._current = None

    def _renew_while_working(self) -> None:
        """Also in process: a callable may take longer than a lease lives."""
        if self._current is not None:
            self._renewer.watch(self._current.watched)

    def _token(self) -> str:
        self._tokens += 1
        return f"{self.actor}:{self._boot}:{self._tokens}"
