"""What a decision is: frozen values, as a DMN file says it; nothing compiled, no XML, no evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gobpm_ray.model.elements import Expression

HitPolicy = Literal["UNIQUE", "FIRST", "PRIORITY", "ANY", "COLLECT", "RULE ORDER", "OUTPUT ORDER"]
Aggregation = Literal["", "SUM", "COUNT", "MIN", "MAX"]


@dataclass(frozen=True, slots=True)
class Input:
    label: str
    expression: Expression
    line: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """`values` are the allowed ones as written, in order of priority; `default` counts when no rule matches."""

    name: str = ""
    values: str = ""
    default: Expression | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """`tests` are unary tests as written, one per input; an output entry without text is null."""

    id: str
    tests: tuple[str, ...]
    entries: tuple[Expression, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class DecisionTable:
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    rules: tuple[Rule, ...]
    hit_policy: HitPolicy = "UNIQUE"
    aggregation: Aggregation = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """`variable` is the name under which the decisions that require it see its value."""

    id: str
    name: str
    body: DecisionTable | Expression
    variable: str = ""
    requires: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class DecisionFile:
    """The decisions of one DMN document, by id, in document order."""

    name: str
    decisions: dict[str, Decision] = field(default_factory=dict)
