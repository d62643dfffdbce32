"""What vendors' extensions say about an element's execution, in this engine's terms."""

from __future__ import annotations

from dataclasses import dataclass, field

from gobpm_ray.model.elements import Expression, Mapping


@dataclass(slots=True)
class Extras:
    """Filled by one vendor's reader after another, each leaving alone what is already said: the first one wins."""

    topic: str = ""
    idempotent: bool = False
    script: Expression | None = None
    result_variable: str = ""
    inputs: list[Mapping] = field(default_factory=list)
    outputs: list[Mapping] = field(default_factory=list)
    assignee: Expression | None = None
    candidate_users: Expression | None = None
    candidate_groups: Expression | None = None
    due: Expression | None = None
    follow_up: Expression | None = None
    priority: Expression | None = None
    form: str = ""
    required_outputs: tuple[str, ...] = ()
    key: Expression | None = None
    """A message's correlation key."""
