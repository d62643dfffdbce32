"""Everything in the caller's own process: holders and a host take turns until nothing moves (`simulate`, no store).

Deterministic: no threads besides those of asynchronous callables, one order of turns. It knows the turns; what a holder
folds and what a host does are theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

from gobpm_ray.runtime.callables import Callables
from gobpm_ray.runtime.effects import Warn
from gobpm_ray.runtime.folding import Pass
from gobpm_ray.runtime.host import Host
from gobpm_ray.runtime.ports import Quiet, Store
from gobpm_ray.runtime.programs import Programs
from gobpm_ray.settings import Settings

ACTOR = "in-process"


class Driver:
    """`holders` in the order in which they take their turns. One thread at a time."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        programs: Programs,
        callables: Callables,
        holders: Sequence[Pass],
        *,
        inline_effects: bool = True,
        on_warning: Warn | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._programs = programs
        self._callables = callables
        self._holders = tuple(holders)
        self._inline = inline_effects
        self._on_warning = on_warning
        self.host = self._new_host()

    def drive(self) -> Quiet:
        """Until the store is quiet. Not quiet only when an instance's wake failed and waits for its back-off:
        `last_failure` says why."""
        while True:
            moved = False
            for holder in self._holders:
                moved = holder.pass_once().moved or moved
            moved = self._serve() or moved
            quiet = self._store.quiet()
            if quiet.quiet or not moved:
                return quiet

    def advance_to(self, target_ms: int) -> Quiet:
        """The manual clock stands at `target_ms`; on the way every deadline fired at its own time, in order."""
        while (following := self.drive().next_deadline) is not None and following <= target_ms:
            self._store.set_clock(following)
        self._store.set_clock(target_ms)
        return self.drive()

    @property
    def last_failure(self) -> Exception | None:
        """Of the newest failed wake."""
        return self.host.last_failure

    def close(self) -> None:
        self.host.close()

    def _serve(self) -> bool:
        if self.host.spent:
            self.host.close()
            self.host = self._new_host()
        return self.host.serve_once()

    def _new_host(self) -> Host:
        return Host(
            self._store,
            self._settings,
            self._programs,
            self._callables,
            ACTOR,
            in_process=True,
            inline_effects=self._inline,
            on_warning=self._on_warning,
        )
