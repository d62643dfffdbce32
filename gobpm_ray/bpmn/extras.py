"""What vendors' extensions say about an element's execution, in this engine's terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gobpm_ray.model.elements import Expression, Mapping

Binding = Literal["latest", "deployment", "version"]


@dataclass(slots=True)
class Extras:
    """Filled by one vendor's reader after another, each leaving alone what is already said: the first one wins."""

    topic: str = ""
    idempotent: bool = False
    retries: Expression | None = None
    timeout: Expression | None = None
    ray_options: tuple[tuple[str, str], ...] = ()
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
    properties: dict[str, dict[str, Expression]] = field(default_factory=dict)
    """A message's correlation properties: name -> `path`, `data` -> expression."""
    element: str = ""
    """Of a task: the user's own element that it is."""
    parameters: list[Mapping] = field(default_factory=list)
    threshold: str = ""
    called: Expression | None = None
    """The process that a call activity calls."""
    decision: Expression | None = None
    binding: Binding | None = None
    version: int = 0
    inherit: bool | None = None
    propagate: bool | None = None
    business_key: Expression | None = None
    collection: Expression | None = None
    """Of a multi-instance activity, as the three below."""
    item_variable: str = ""
    output_collection: str = ""
    output_item: Expression | None = None
    operands: dict[str, Expression] = field(default_factory=dict)
    """This engine's own word about any operand of the element: use -> expression, with its language."""
