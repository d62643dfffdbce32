"""End events: the token ends here, after throwing what it has to.

A terminate end takes its whole scope with it, an error end goes to whoever catches the error, and a cancel end calls
its transaction off: everything in it ends, what it had completed is compensated, and it is left by its cancel
boundary (BPMN 13.3.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gobpm_ray.core.calling import fail_to_caller
from gobpm_ray.core.compensation import start_sweep
from gobpm_ray.core.faults import NO_CANCEL_BOUNDARY, Fault
from gobpm_ray.core.nodes.throws import Throw
from gobpm_ray.core.operands import Cancel, Error
from gobpm_ray.core.propagation import catch, find, uncaught
from gobpm_ray.errors import BrokenInvariant
from gobpm_ray.model.elements import SubProcess

if TYPE_CHECKING:
    from gobpm_ray.core.program import ProgramNode
    from gobpm_ray.core.run import Run
    from gobpm_ray.core.state import Track


class End(Throw):
    def over(self, run: Run, track: Track, node: ProgramNode) -> None:
        for definition in node.definitions:
            if isinstance(definition, Error):
                self._fail(run, track, node, definition.code)
                return
            if isinstance(definition, Cancel):
                self._cancel(run, track, node)
                return
        self._over(run, track, node)

    def swept(self, run: Run, track: Track, node: ProgramNode) -> None:
        if any(isinstance(definition, Cancel) for definition in node.definitions):
            self._leave(run, run.state.scope(track.scope).host)
        else:
            self.over(run, track, node)

    def resolve(self, run: Run, track: Track, node: ProgramNode, values: dict[str, object]) -> None:
        run.assign(track.scope, values)
        self._over(run, track, node)

    def _over(self, run: Run, track: Track, node: ProgramNode) -> None:
        run.record("node", node.id)
        run.withdraw(track)
        if node.terminates:
            run.terminate(track)
        else:
            run.end(track)

    def _fail(self, run: Run, track: Track, node: ProgramNode, code: str) -> None:
        values = dict(track.local or {})
        catcher = find(run, track, Error, code)
        if catcher is None and not run.state.caller:
            raise uncaught(node, code)
        run.record("node", node.id)
        if catcher is None:
            fail_to_caller(run, code, values, "")
        else:
            catch(run, catcher, values)

    def _cancel(self, run: Run, track: Track, node: ProgramNode) -> None:
        scope = next((scope for scope in run.state.chain(track.scope) if _transaction(run, scope.node)), None)
        host = None if scope is None else run.state.track(scope.host)
        if scope is None or host is None or not _way_out(run, host):
            raise Fault(NO_CANCEL_BOUNDARY, f"'{node.id}' cancels no transaction that has a cancel boundary event")
        run.record("node", node.id)
        # Called off, it is neither interrupted nor overtaken by what lies over it: compensation runs to its end.
        run.withdraw(host)
        run.clear(scope)
        scope.interrupted = True
        ledger, scope.ledger = scope.ledger, []
        run.changed.add(f"s{scope.id}")
        sweeper = run.new_track(scope, node.id)
        run.number_visit(sweeper)
        if not start_sweep(run, sweeper, ledger):
            self._leave(run, host.id)

    def _leave(self, run: Run, host_id: str) -> None:
        host = run.state.track(host_id)
        if host is None:
            raise BrokenInvariant(f"instance {run.state.id}: a cancelled transaction has lost its host {host_id}")
        run.leave_by(host, run.nodes[_way_out(run, host)], {})


def _transaction(run: Run, node_id: str) -> bool:
    node = run.nodes.get(node_id)
    return node is not None and isinstance(node.element, SubProcess) and node.element.kind == "transaction"


def _way_out(run: Run, host: Track) -> str:
    """The cancel boundary over the transaction, '' without one."""
    for boundary in run.node(host).boundaries:
        if any(isinstance(definition, Cancel) for definition in run.nodes[boundary].definitions):
            return boundary
    return ""
