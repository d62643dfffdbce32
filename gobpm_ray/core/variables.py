"""Which variables an expression sees and where an assignment lands; scopes nest, the innermost wins.

Reading: the token's mapped inputs first, then its scope, then each enclosing one; a token that hosts a sub-process
reads from inside it, so that its outputs can be mapped. Writing: the nearest scope that already has the name and is not
frozen, else the root scope.
"""

from __future__ import annotations

from collections.abc import Mapping

from gobpm_ray.core.state import InstanceState, Scope, Track


def visible(state: InstanceState, track: Track, extra: Mapping[str, object] | None = None) -> Mapping[str, object]:
    """What the token sees, to be read and not changed: in the common case it is the root scope's own table."""
    scope = state.scope(track.child or track.scope)
    if scope.parent or track.local or extra:
        return merged(state, track, extra)
    return scope.variables


def merged(state: InstanceState, track: Track, extra: Mapping[str, object] | None = None) -> dict[str, object]:
    """What the token sees, as a table of its own."""
    layers = [scope.variables for scope in state.chain(track.child or track.scope)]
    seen: dict[str, object] = {}
    for layer in reversed(layers):
        seen.update(layer)
    if track.local:
        seen.update(track.local)
    if extra:
        seen.update(extra)
    return seen


def visible_in(state: InstanceState, scope_id: str) -> Mapping[str, object]:
    """What is seen in a scope where no token stands."""
    scope = state.scope(scope_id)
    if not scope.parent:
        return scope.variables
    seen: dict[str, object] = {}
    for layer in reversed([scope.variables for scope in state.chain(scope_id)]):
        seen.update(layer)
    return seen


def owner(state: InstanceState, scope_id: str, name: str) -> Scope:
    """The scope that an assignment of `name` made in `scope_id` changes."""
    scope = state.scope(scope_id)
    for scope in state.chain(scope_id):
        if name in scope.variables and not scope.frozen:
            return scope
    return scope
