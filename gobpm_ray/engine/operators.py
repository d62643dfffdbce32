"""What an operator does to instances: repairs incidents, one or many, changes, holds and ends.

Each call is one accepted trigger, or several that say so; nothing here waits for what it causes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from gobpm_ray.engine.base import encoded, new_id
from gobpm_ray.engine.instance_views import incident_waits
from gobpm_ray.engine.jobs import Jobs
from gobpm_ray.engine.views import Repaired, Started
from gobpm_ray.errors import InputError, UnknownInstance

Action = Literal["retry", "resolve", "drop"]


class Operators(Jobs):
    """See the module's docstring."""

    def retry(self, instance_id: str, node: str = "") -> Started:
        """Try the failed element again (the oldest open incident, of that node if named); InputError when none is
        open."""
        return self._repair("retry", instance_id, node, None)

    def resolve(self, instance_id: str, node: str = "", outputs: Mapping[str, Any] | None = None) -> Started:
        """Go past the failed element with these outputs in place of its result; InputError when no incident is open."""
        return self._repair("resolve", instance_id, node, outputs)

    def _repair(self, kind: Action, instance_id: str, node: str, outputs: Mapping[str, Any] | None) -> Started:
        record = self.store.instance(instance_id)
        if record is None:
            raise UnknownInstance(f"instance {instance_id}: unknown, or ended and past its retention")
        if record.held_at and not node:
            return self._repair_one(kind, instance_id, "", outputs)
        waits = incident_waits(record, node)
        if not waits:
            where = f" at {node}" if node else ""
            raise InputError(f"instance {instance_id}: no open incident{where} to {kind}")
        return self._repair_one(kind, instance_id, waits[0], outputs)

    def _repair_one(self, kind: Action, instance_id: str, wait: str, outputs: Mapping[str, Any] | None) -> Started:
        """`wait` '': the incident of the whole instance."""
        if kind == "drop":
            return self.cancel(instance_id)
        if wait:
            return self._deliver(instance_id, kind, wait, outputs)
        if kind == "resolve":
            raise InputError(f"instance {instance_id}: it is held as a whole, which nobody can resolve; retry it")
        self._hold(instance_id, False)
        return Started(new_id(), False, instance_id)

    def repair(
        self,
        action: Action,
        *,
        process_id: str = "",
        node: str = "",
        code: str = "",
        instance_id: str = "",
        outputs: Mapping[str, Any] | None = None,
        limit: int = 1_000,
    ) -> Repaired:
        """Retry, resolve (with these `outputs`) or drop every open incident that fits, oldest first, each for itself.

        Dropped: its instance is cancelled. One that somebody else has repaired meanwhile is no error; what is refused
        stays open and is named."""
        if not (process_id or node or code or instance_id):
            raise InputError(f"{action}: expected at least one of process, node, code and instance to choose by")
        found = self.incidents(instance_id, process_id=process_id, node=node, code=code, limit=limit)
        done: list[str] = []
        refused: list[tuple[str, str]] = []
        for incident in found:
            if action == "drop" and incident.instance_id in done:
                continue
            try:
                self._repair_one(action, incident.instance_id, incident.wait, outputs)
                done.append(incident.instance_id)
            except InputError as refusal:
                refused.append((incident.instance_id, str(refusal)))
        return Repaired(len(found), tuple(done), tuple(refused))

    def set(self, instance_id: str, values: Mapping[str, Any]) -> Started:
        """Write variables of the instance's root scope; UnknownInstance, Mistyped, InputError when it has ended."""
        record = self.store.instance(instance_id)
        if record is not None:
            self._check_set(record.process_id, record.process_version, values)
        return self._deliver(instance_id, "set", "", values)

    def cancel(self, instance_id: str) -> Started:
        """Terminate the instance, whatever it waits for; UnknownInstance, InputError when it has ended."""
        return self._deliver(instance_id, "cancel", "", None)

    def _deliver(self, instance_id: str, kind: str, wait: str, values: Mapping[str, Any] | None) -> Started:
        content = encoded(values, f"{kind} of instance {instance_id}")
        delivery = new_id()
        accepted = self._surely(lambda: self.store.deliver(instance_id, kind, wait, delivery, content), ours=True)
        self._settle()
        return Started(accepted.id, accepted.duplicate, accepted.instance_id)

    def suspend(self, instance_id: str) -> bool:
        """Hold the instance: it keeps its triggers and runs none. False: it was held already. UnknownInstance."""
        return self._hold(instance_id, True)

    def resume(self, instance_id: str) -> bool:
        """Let a held instance go on with all that came meanwhile. False: it was not held. UnknownInstance."""
        return self._hold(instance_id, False)

    def _hold(self, instance_id: str, suspended: bool) -> bool:
        changed = self.store.suspend(instance_id, suspended)
        self._settle()
        return changed
