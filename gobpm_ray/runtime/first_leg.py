"""Instances that are born parked: a bulk's client computes where each waits first, and the store writes it so at once.

Nothing of a step's meaning is written twice: a start's claim is made up here, as the store would have handed it out,
and a `Hosting` makes the commit of it. What does not fit (work to be done, a near deadline, an incident, whatever
raises) is started plainly, and an actor meets it as ever. This module knows which start is tried so, and refuses to
know what a first leg does (docs/adr/0010).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gobpm_ray.errors import StoreRefused, StoreUnavailable
from gobpm_ray.model.elements import CustomTask
from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.hosting import Hosting
from gobpm_ray.runtime.ports import Accepted, Answer, Claim, Commit, ParkedStart, StartRow, Store, TriggerRow
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import Settings

log = logging.getLogger("gobpm_ray.runtime")

TOGETHER = 50
"""Legs computed, then sent together: few enough for a socket's buffer, so that nobody waits while they are sent."""
UNDER_WAY = 2
"""So many such lots may be unanswered while the next one is computed."""
FRESH_S = 0.3
"""So long a business time serves: of one that is a second old the store takes nothing."""
RAREST = 10
"""A process whose starts do not fit is tried again after at most 2 ** 10 of them."""


@dataclass(slots=True)
class _Fit:
    """How likely a process's next start is to fit, from those before."""

    misses: int = 0
    skipped: int = 0

    def worth_a_try(self) -> bool:
        if self.skipped:
            self.skipped -= 1
            return False
        return True

    def missed(self) -> None:
        self.misses = min(self.misses + 1, RAREST)
        self.skipped = 2**self.misses - 1

    def met(self) -> None:
        self.misses = 0


class FirstLegs:
    """Bulk starts of one client. Its caches may be shared by threads: they only cost, or save, an attempt."""

    def __init__(
        self, store: Store, settings: Settings, programs: Programs, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._programs = programs
        self._monotonic = monotonic
        # Hosts nothing: it is what a hosting asks for settings, programs and the names of commits.
        self._host = Host(store, settings, programs, Callables(lambda _topic: None), "bulk")
        self._newest: dict[str, int] = {}
        self._fits: dict[tuple[str, int], _Fit] = {}
        self._custom: dict[tuple[str, int], bool] = {}

    def start_many(self, rows: Sequence[StartRow]) -> list[Accepted]:
        """As the store's `start_many`, whose refusals these are; who fits is born parked."""
        bulk = _Bulk(self._store, rows)
        now, until, place = 0, 0.0, 0
        while place < len(rows):
            legs: dict[int, ParkedStart | None] = {}
            parked = 0
            while place < len(rows) and parked < TOGETHER:
                if (at := self._monotonic()) >= until:
                    now, until = self._store.now(), at + FRESH_S
                leg = legs[place] = self._parked(rows[place], now)
                parked += leg is not None
                place += 1
            self._doubt(bulk.send(legs))
        self._doubt(bulk.land(0))
        return [bulk.accepted[place] for place in range(len(rows))]

    def _doubt(self, refused: Iterable[ParkedStart]) -> None:
        """What the store did not take as computed: perhaps another version is the newest by now."""
        for process_id, version in {(start.process_id, start.version) for start in refused}:
            self._newest.pop(process_id, None)
            self._fit(process_id, version).missed()

    def _parked(self, row: StartRow, now: int) -> ParkedStart | None:
        process_id, asked, instance_id, delivery_id, business_key, payload = row
        version = asked or self._newest_of(process_id)
        fit = self._fit(process_id, version)
        if not version or not fit.worth_a_try():
            return None
        # As the store hands out the claim of a start: its first, of a checkpoint that does not exist yet.
        trigger = TriggerRow(delivery_id, "start", "", 0, payload=payload)
        given = (instance_id, self._host.next_token(), 1, 0, process_id, version, business_key)
        commit = self._first_leg(Claim(*given, parts={}, complete=True, triggers=(trigger,), inbox=1, now=now))
        if commit is None:
            fit.missed()
            return None
        fit.met()
        return ParkedStart(process_id, version, not asked, instance_id, delivery_id, business_key, payload, now, commit)

    def _first_leg(self, claim: Claim) -> Commit | None:
        try:
            return None if self._has_custom(claim) else Hosting(self._host, claim).first_leg()
        except (StoreUnavailable, StoreRefused):
            raise
        except Exception as failure:
            # An actor meets the same, and says it as it always does.
            log.debug("start of process %s: left to an actor: %s", claim.process_id, failure)
            return None

    def _has_custom(self, claim: Claim) -> bool:
        """Elements of the user's own are code that this program need not have, nor run."""
        name = (claim.process_id, claim.process_version)
        known = self._custom.get(name)
        if known is None:
            nodes = self._programs.get(*name).process.nodes.values()
            known = self._custom[name] = any(isinstance(node, CustomTask) for node in nodes)
        return known

    def _fit(self, process_id: str, version: int) -> _Fit:
        return self._fits.setdefault((process_id, version), _Fit())

    def _newest_of(self, process_id: str) -> int:
        """0: not deployed."""
        known = self._newest.get(process_id)
        if known is None:
            definition = self._store.definition(process_id)
            known = 0 if definition is None else definition.version
            if known:
                self._newest[process_id] = known
        return known


class _Bulk:
    """The starts of one call, in lots: sent while the next ones are computed, and in the end all accepted."""

    def __init__(self, store: Store, rows: Sequence[StartRow]) -> None:
        self._store = store
        self._rows = rows
        self._sent: deque[tuple[dict[int, ParkedStart], Answer[list[Accepted | None]]]] = deque()
        self.accepted: dict[int, Accepted] = {}
        """By place in the rows."""

    def send(self, legs: Mapping[int, ParkedStart | None]) -> list[ParkedStart]:
        """One more lot is on its way; those of earlier lots that were refused as they stood, and started plainly."""
        parked = {place: leg for place, leg in legs.items() if leg is not None}
        if parked:
            self._sent.append((parked, self._store.send_parked(list(parked.values()))))
        if len(parked) == len(legs):
            return self.land(UNDER_WAY)
        refused = self.land(0)
        self._start_plainly([place for place in legs if place not in parked])
        return refused

    def land(self, most: int) -> list[ParkedStart]:
        """At most so many lots are unanswered; as `send`."""
        refused: dict[int, ParkedStart] = {}
        # One that has to be started plainly waits for all: a refusal tells how many are stored.
        while len(self._sent) > (0 if refused else most):
            parked, sent = self._sent.popleft()
            for (place, leg), answer in zip(parked.items(), sent.result(), strict=True):
                if answer is None:
                    refused[place] = leg
                else:
                    self.accepted[place] = answer
        if refused:
            self._start_plainly(list(refused))
        return list(refused.values())

    def _start_plainly(self, places: Sequence[int]) -> None:
        answers = self._store.start_many([self._rows[place] for place in places], len(self.accepted))
        self.accepted.update(zip(places, answers, strict=True))
