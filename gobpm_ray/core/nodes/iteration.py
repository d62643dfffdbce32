"""What every iteration is made of: rounds, each a token and a small scope of its own, under one token that counts.

Theory of operation. The token that reaches an iterating activity stays on it as *host*: its boundary events lie over
the whole iteration, and it keeps counters and nothing else (`Track.rounds`). Each round is a track that stands at
the same node with `Track.round` set, so that `Program.at` gives it the node's *body*: the activity without its loop,
its boundaries and its flows. It lies in a scope of its own with `loopCounter`, the item and, while the output is
collected, the output; the scope's parent is the host's scope, so everything else is read and written where it always
was.

In parts: a wake of one round touches the head, its own track and scope, the host, and the scopes around: the same
number of parts with two rounds or two thousand. A collected output stays in its round's scope, one small part each,
and the list is made once, when the last round has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gobpm_ray.core.nodes.family import Family, Park
from gobpm_ray.core.state import PartsMissing, Scope, TrackState
from gobpm_ray.errors import BrokenInvariant

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Rounds, Track

COUNTER = "loopCounter"
"""A round's own number, from 1, as its expressions see it."""


class Iteration(Family):
    """What standard loops and multiple instances share; each says in `enter` and `inner_done` when a round begins."""

    def interrupt(self, run: Run, track: Track, node: ProgramNode) -> None:
        self.sweep(run, track)
        track.rounds = None

    def dehydratable(self, park: Park) -> bool:
        """The rounds answer for themselves; here only the boundary timers over all of them count."""
        return park.far()

    # --- rounds

    def host(self, run: Run, track: Track) -> tuple[Scope, Track, Rounds]:
        """Of a round's token: its scope, the token that hosts the iteration, and that one's counters."""
        scope = run.state.scope(track.scope)
        host = run.state.track(scope.host)
        if host is None or host.rounds is None:
            raise BrokenInvariant(f"instance {run.state.id}: round {track.round} of '{track.node}' has lost its host")
        return scope, host, host.rounds

    def open_round(self, run: Run, host: Track, values: dict[str, object]) -> Scope:
        """The scope of a round that has not begun; its parent is where the host stands."""
        return run.open_scope(host, host.node, values)

    def begin(self, run: Run, host: Track, rounds: Rounds, scope: Scope) -> None:
        """The next round is under way."""
        rounds.started += 1
        run.changed.add(f"t{host.id}")
        body = run.new_track(scope, host.node, host.id)
        body.round = rounds.started
        run.enqueue(body)

    def close_round(self, run: Run, track: Track, scope: Scope, kept: dict[str, object] | None) -> None:
        """The round is over: its token is gone, of its scope only `kept` is left."""
        run.close_inside(track)
        run.drop(track)
        scope.live = 0
        if kept is None:
            run.remove_scope(scope.id)
        else:
            scope.variables = kept
            run.changed.add(f"s{scope.id}")

    def sweep(self, run: Run, host: Track) -> None:
        """No round of the host is left, whether it waits, works or has ended."""
        scopes = self.scopes(run, host)
        run.clear_all(scopes)
        for scope in scopes:
            run.remove_scope(scope.id)

    def scopes(self, run: Run, host: Track) -> list[Scope]:
        """Every scope of the host's rounds, in order; needs the whole instance."""
        if not run.state.complete:
            raise PartsMissing(f"scopes hosted by t{host.id}")
        return [scope for scope in run.state.scopes.values() if scope.host == host.id]

    def leave(self, run: Run, host: Track) -> None:
        """The iteration is done and its token goes on. The rounds stand in the trace; it adds nothing of its own."""
        host.rounds = None
        host.state = TrackState.READY
        run.changed.add(f"t{host.id}")
        run.go_on(host, run.node(host))

    def counted(self, rounds: Rounds, completed: int) -> Mapping[str, object]:
        """The counters that conditions see (BPMN 10.3.8, table 10.31), under both names that are in use."""
        active = rounds.started - completed
        counters: dict[str, object] = {}
        for prefix in ("numberOf", "nrOf"):
            counters[f"{prefix}Instances"] = rounds.total
            counters[f"{prefix}ActiveInstances"] = active
            counters[f"{prefix}CompletedInstances"] = completed
            counters[f"{prefix}TerminatedInstances"] = 0
        return counters
