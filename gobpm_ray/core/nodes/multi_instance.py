"""Multiple instances: a round for each item or for each of a number, all at once or one after the other (BPMN 13.3.7).

Both modes answer alike for what there is to iterate over: nothing (null, an empty list, 0) passes without a round; a
variable that does not exist, and a value that is no list, are incidents of the activity.

All rounds' scopes are made on arrival, one after the other, and each holds its item from then on. So the items are
read once, whatever becomes of the variable they came from, and the scope of round n is known by its number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from gobpm_ray.core.faults import INVALID_LOOP, Fault
from gobpm_ray.core.keys import signal_key
from gobpm_ray.core.nodes.iteration import COUNTER, Iteration
from gobpm_ray.core.operands import Operand, whole_number
from gobpm_ray.core.state import Rounds, TrackState
from gobpm_ray.core.step import Send
from gobpm_ray.core.variables import merged, visible
from gobpm_ray.model.elements import Activity, MultiInstance

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track

RESULT = ""
"""The only variable that is left in the scope of a round that has ended: its output. No variable is called so."""

_PATH = re.compile(r"\s*([^\W\d]\w*)(\.\w+)*\s*\Z")


def _loop(node: ProgramNode) -> MultiInstance:
    return cast(MultiInstance, cast(Activity, node.element).loop)


class MultipleInstances(Iteration):
    def enter(self, run: Run, track: Track, node: ProgramNode) -> None:
        loop = _loop(node)
        items = self._items(run, track, node)
        if not items:
            if loop.output_collection:
                run.assign(track.scope, {loop.output_collection: []})
            self.leave(run, track)
            return
        track.state = TrackState.HOSTING
        track.rounds = rounds = Rounds(total=len(items), first=run.state.head.scopes)
        own = _own_output(loop)
        named = loop.item_variable if node.operands.get("collection") is not None else ""
        scopes = []
        for number, item in enumerate(items, 1):
            values: dict[str, object] = {own: None} if own else {}
            values[COUNTER] = number
            if named:
                values[named] = item
            scopes.append(self.open_round(run, track, values))
        for scope in scopes[:1] if loop.sequential else scopes:
            self.begin(run, track, rounds, scope)

    def inner_done(self, run: Run, track: Track, node: ProgramNode) -> bool:
        loop = _loop(node)
        scope, host, rounds = self.host(run, track)
        over = run.node(host)
        completed = rounds.completed + 1
        kept = self._output(run, track, over)
        seen = self._seen(run, track, over, rounds, completed)
        completion = over.operands.get("completion")
        enough = completion is not None and run.truth(completion, seen, f"completion condition of '{node.id}'")
        thrown = self._thrown(run, track, over, seen, completed)
        # From here on nothing refuses: an incident before it leaves the round as it was, and a retry asks again.
        rounds.completed = completed
        run.changed.add(f"t{host.id}")
        run.step.sends.extend(thrown)
        self.close_round(run, track, scope, kept)
        if enough or completed == rounds.total:
            self._finish(run, host, loop, rounds)
        elif loop.sequential:
            self.begin(run, host, rounds, run.state.scope(str(rounds.first + rounds.started)))
        return True

    # --- what there is to iterate over

    def _items(self, run: Run, track: Track, node: ProgramNode) -> Sequence[object]:
        collection = node.operands.get("collection")
        use = "loop cardinality" if collection is None else "collection"
        operand = node.operands.get("cardinality") if collection is None else collection
        if operand is None:
            raise Fault(INVALID_LOOP, f"'{node.id}' iterates, but neither a number nor a collection says over what")
        seen = visible(run.state, track)
        value = run.evaluate(operand, seen, f"{use} of '{node.id}'")
        if value is None:
            self._exists(node, use, operand, seen)
            return ()
        if collection is not None:
            if not isinstance(value, list | tuple):
                wrong = f"collection of '{node.id}', {operand.text!r}: expected a list, got {_shown(value)}"
                raise Fault(INVALID_LOOP, wrong)
            items: Sequence[object] = value
        else:
            number = whole_number(value)
            if number is None or number < 0:
                expected = f"loop cardinality of '{node.id}', {operand.text!r}: expected a whole number"
                raise Fault(INVALID_LOOP, f"{expected}, got {_shown(value)}")
            items = range(number)
        if len(items) > run.widest:
            raise Fault(INVALID_LOOP, f"'{node.id}' would iterate {len(items)} times, the limit is {run.widest}")
        return items

    def _exists(self, node: ProgramNode, use: str, operand: Operand, seen: Mapping[str, object]) -> None:
        """A variable that is null is nothing to iterate over; one that does not exist is a mistake."""
        path = _PATH.match(operand.text)
        if path is not None and path[1] != "null" and path[1] not in seen:
            raise Fault(INVALID_LOOP, f"{use} of '{node.id}', {operand.text!r}: variable '{path[1]}' is missing")

    # --- what comes out

    def _output(self, run: Run, track: Track, node: ProgramNode) -> dict[str, object] | None:
        """What stays of the round's scope; None: nothing."""
        if not _loop(node).output_collection:
            return None
        output = node.operands.get("output_item")
        if output is None:
            return {RESULT: None}
        return {RESULT: run.evaluate(output, visible(run.state, track), f"output of '{node.id}'")}

    def _finish(self, run: Run, host: Track, loop: MultiInstance, rounds: Rounds) -> None:
        """The list is in the order of the items; rounds that were not completed stand in it as null."""
        results: list[object] = [None] * rounds.total
        if loop.output_collection:
            for scope in self.scopes(run, host):
                results[int(scope.id) - rounds.first] = scope.variables.get(RESULT)
        if loop.output_collection or rounds.completed < rounds.total:
            self.sweep(run, host)
        if loop.output_collection:
            run.assign(host.scope, {loop.output_collection: results})
        self.leave(run, host)

    # --- what rounds throw as they end

    def _seen(self, run: Run, track: Track, node: ProgramNode, rounds: Rounds, completed: int) -> Mapping[str, object]:
        if "completion" in node.operands or _loop(node).conditions:
            return merged(run.state, track, self.counted(rounds, completed))
        return {}

    def _thrown(
        self, run: Run, track: Track, node: ProgramNode, seen: Mapping[str, object], completed: int
    ) -> list[Send]:
        """`none`: at each end, `one`: at the first alone, `complex`: as conditions say, `all`: never."""
        loop = _loop(node)
        match loop.behavior:
            case "none":
                names = loop.events[:1]
            case "one":
                names = loop.events[:1] if completed == 1 else ()
            case "complex":
                names = tuple(
                    name
                    for index, name in enumerate(loop.events)
                    if (condition := node.operands.get(f"conditions.{index}")) is not None
                    and run.truth(condition, seen, f"behaviour condition of '{node.id}'")
                )
            case "all":
                names = ()
        delivery = f"{run.state.id}:{track.id}:{node.id}:{track.visit}"
        return [
            Send(f"{delivery}:{index}" if index else delivery, "signal", name, signal_key(name))
            for index, name in enumerate(names)
        ]


def _own_output(loop: MultiInstance) -> str:
    """The variable that the output is taken from, where it is one: it is each round's own, so that rounds side by side
    do not write over each other, and a round that gives none does not repeat its neighbour's."""
    path = _PATH.match(loop.output_item.text) if loop.output_collection and loop.output_item is not None else None
    name = path[1] if path is not None else ""
    return "" if name in ("null", "true", "false") else name


def _shown(value: object) -> str:
    return f"a {type(value).__name__}" if isinstance(value, dict | str | list) else repr(value)[:80]
