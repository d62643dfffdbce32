"""May an instance be released now? Decided per wait, by the node family it is parked in (D2, promise 5).

This file knows no kind of wait: a family without the capability keeps its instance resident, and an open incident is a
wait for an operator whatever it happened in (D24).
"""

from __future__ import annotations

from gobpm_ray.core.nodes.family import Park, near
from gobpm_ray.core.program import Program
from gobpm_ray.core.state import InstanceState, TrackState


def willing(
    program: Program, state: InstanceState, now_ms: int, threshold_ms: int, *, release_jobs: bool = False
) -> bool:
    """No event sub-process has a near deadline, and every loaded token is parked where its family lets the instance go.
    A token that was not loaded was asked when it parked, and a deadline that has come near since is held by the store
    like any other."""
    nearest = now_ms + threshold_ms
    for scope in state.scopes.values():
        if any(near(program.thresholds, name, wait, now_ms, nearest) for name, wait in scope.waits.items()):
            return False
    for track in state.tracks.values():
        node = program.at(track)
        if node is None:
            return False
        park = Park(track, node, now_ms, threshold_ms, release_jobs, program.thresholds)
        if track.state is TrackState.FAILED:
            if not park.far():
                return False
        elif node.dehydratable is None or not node.dehydratable.dehydratable(park):
            return False
    return True
