"""What a decision is: frozen values, as a DMN file says it; nothing compiled, no XML, no evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gobpm_ray.model.elements import Expression

HitPolicy = Literal["UNIQUE", "FIRST", "PRIORITY", "ANY", "COLLECT", "RULE ORDER", "OUTPUT ORDER"]
Aggregation = Literal["", "SUM", "COUNT", "MIN", "MAX"]
IterationKind = Literal["for", "some", "every"]


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


# --- other boxed expressions (DMN 10.2.1, 10.2.2) ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """A named part: of a context, or an argument of an invocation."""

    name: str
    body: Body


@dataclass(frozen=True, slots=True)
class Context:
    """Each entry sees those before it; the value is `result`, without one the entries by name."""

    entries: tuple[Entry, ...]
    result: Body | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A boxed list."""

    items: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """A list of contexts, written as a table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Body, ...], ...]


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call of the function that `function` names, its arguments by name."""

    function: str
    arguments: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Function:
    parameters: tuple[str, ...]
    body: Body


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Body
    then: Body
    otherwise: Body


@dataclass(frozen=True, slots=True)
class Iteration:
    """`for`, `some` and `every`: `body` for each item of `domain`, bound to `variable`."""

    kind: IterationKind
    variable: str
    domain: Body
    body: Body


@dataclass(frozen=True, slots=True)
class Filter:
    domain: Body
    condition: Body


Body = (
    DecisionTable
    | Expression
    | Context
    | Sequence
    | Relation
    | Invocation
    | Function
    | Conditional
    | Iteration
    | Filter
)

# --- what a file declares ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """`variable` is the name under which the decisions that require it see its value, `knows` the ids of the knowledge
    models and services that it may call."""

    id: str
    name: str
    body: Body
    variable: str = ""
    requires: tuple[str, ...] = ()
    knows: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class KnowledgeModel:
    """A business knowledge model: a function with a name, and what it may call itself."""

    id: str
    name: str
    function: Function
    variable: str = ""
    knows: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    """A decision service: asked like a decision, or called like a function. `inputs` are the names of the input data
    and then of the input decisions, which it is given; `given` the ids of the latter, which it does not evaluate."""

    id: str
    name: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    variable: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class DecisionFile:
    """What one DMN document declares, by id, in document order."""

    name: str
    decisions: dict[str, Decision] = field(default_factory=dict)
    models: dict[str, KnowledgeModel] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
