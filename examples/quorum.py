"""An element of one's own: a task that is done when enough people have voted. See docs/custom-elements.md.

    engine.register_element("example:quorum", "examples.quorum:Quorum")
    builder.start().custom("example:quorum", "vote", parameters={"topic": "=motion", "needed": "=3"}).end()

Each vote is a message `Vote` with the topic as its key. Until the quorum is there the instance is a record and nothing
else: the family says so itself, by having `dehydratable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.keys import message_key
from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.state import ArmedWait, TrackState, wait_id
from gobpm_ray.core.variables import visible
from gobpm_ray.errors import InvalidPayload

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track
    from gobpm_ray.core.step import Trigger


class Quorum(Family):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        """A token has arrived: it parks on one wait, which stays armed from vote to vote (`repeat`)."""
        seen = visible(run.state, track)
        needed = run.evaluate(node.operands["needed"], seen, f"quorum of '{node.id}'")
        topic = run.evaluate(node.operands["topic"], seen, f"topic of '{node.id}'")
        if not isinstance(needed, int) or needed < 1:
            raise InvalidPayload(f"'{node.id}' needs {needed!r} votes: expected a whole number of at least 1")
        track.state = TrackState.WAITING
        track.local = {"needed": needed, "votes": []}
        wait = wait_id(track.id, node.id, 0, track.visit)
        run.arm(track, node.id, wait, ArmedWait("message", key=message_key("Vote", topic)), repeat=True)

    def fire(self, run: Run, track: Track, node: ProgramNode, wait: str, trigger: Trigger) -> None:
        """A vote has come: it is counted in the token's own part, or the last one completes the element."""
        local = track.local or {}
        votes = [*_list(local.get("votes")), trigger.values.get("vote")]
        track.local = {**local, "votes": votes}
        run.changed.add(f"t{track.id}")
        if len(votes) >= int(str(local["needed"])):
            track.wakes += 1
            run.complete(track, node, {"votes": votes})

    def dehydratable(self, park: Park) -> bool:
        """The store holds its one wait: it may be released whenever no deadline over it is near."""
        return park.far()


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []
