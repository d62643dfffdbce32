"""The Ray shell of the supervisor, `ResidencySupervisor` in the dashboard: the plain class over the port that Ray
fulfils."""

from __future__ import annotations

import threading

from actors import supervisor
from actors.handles import RayActors, this_node
from actors.instance import InstanceActor
from actors.loop import LoopActor
from actors.metrics import PopulationMetrics
from actors.spec import EngineSpec
from gobpm_ray.runtime.ports import Store


class ResidencySupervisor(LoopActor):
    def __init__(self, spec: EngineSpec) -> None:
        self._plain: supervisor.ResidencySupervisor | None = None
        self._built = threading.Lock()
        super().__init__(spec)

    def build(self, store: Store) -> supervisor.ResidencySupervisor:
        # Bells are rung over a connection of the store's pool: Ray's own thread does it.
        actors = RayActors(self._spec, InstanceActor, lambda: store.ring(supervisor.ResidencySupervisor.bell))
        metrics = PopulationMetrics(self._spec.settings.engine_id)
        plain = supervisor.ResidencySupervisor(store, self._spec.settings, actors, node=this_node(), tell=metrics.tell)
        self._plain = plain
        return plain

    def drain(self, grace_ms: int) -> int:
        """No loop makes actors any more, and all of them have ended; how many had to be killed."""
        self.stop()
        return self._plain.drain(grace_ms) if self._plain is not None else 0
