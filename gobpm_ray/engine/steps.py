"""What may happen to a process in a scenario: one class for each kind of step, with its fields.

They know their shape and nothing of files or engines.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gobpm_ray.calendar.durations import parse_duration
from gobpm_ray.errors import InvalidTimer


def _duration(text: str) -> str:
    try:
        parse_duration(text)
    except InvalidTimer as failure:
        raise ValueError(str(failure)) from None
    return text


def _mapping_or_nothing(value: object) -> object:
    return {} if value is None else value


class _Body(BaseModel):
    """What stands behind a step's key."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class _Empty(_Body):
    pass


class Advance(_Body):
    duration: str

    @field_validator("duration")
    @classmethod
    def _is_a_duration(cls, text: str) -> str:
        return _duration(text)


class Message(_Body):
    name: str = Field(min_length=1)
    key: dict[str, str | int | float | bool] | str | int | float | bool | None = None
    payload: dict[str, Any] = Field(default_factory=dict)
    id: str | None = None
    ttl: str | None = None

    @field_validator("payload", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        return _mapping_or_nothing(value)

    @field_validator("ttl")
    @classmethod
    def _is_a_duration(cls, text: str | None) -> str | None:
        return text if text is None else _duration(text)


class Signal(_Body):
    name: str = Field(min_length=1)
    payload: dict[str, Any] = Field(default_factory=dict)
    id: str | None = None

    @field_validator("payload", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        return _mapping_or_nothing(value)


class _Selecting(_Body):
    """A step that names open tasks, jobs or incidents; `all` takes each of them instead of the oldest."""

    all: bool = False


class Complete(_Selecting):
    task: str
    user: str = ""
    groups: tuple[str, ...] = ()
    outputs: dict[str, Any] = Field(default_factory=dict)

    @field_validator("outputs", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        return _mapping_or_nothing(value)


class Claim(_Selecting):
    task: str
    user: str = ""
    groups: tuple[str, ...] = ()


class Unclaim(_Selecting):
    task: str


class Job(_Selecting):
    job: str
    outputs: dict[str, Any] = Field(default_factory=dict)

    @field_validator("outputs", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        return _mapping_or_nothing(value)


class JobError(_Selecting):
    job: str
    code: str
    message: str = ""


class JobFailure(_Selecting):
    job: str
    cause: str
    retries: int = Field(default=0, ge=0)


class JobEscalation(_Selecting):
    job: str
    code: str


class Retry(_Selecting):
    node: str


class Resolve(_Selecting):
    node: str
    outputs: dict[str, Any] = Field(default_factory=dict)

    @field_validator("outputs", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        return _mapping_or_nothing(value)


class SetVariables(_Body):
    values: dict[str, Any]


class SetData(_Body):
    """An operator writes data stores."""

    values: dict[str, Any]


class Cancel(_Empty):
    pass


class Suspend(_Empty):
    pass


class Resume(_Empty):
    pass


class Stop(_Empty):
    pass


class Restart(_Empty):
    pass


class StartProcess(_Body):
    process: str
    variables: dict[str, Any] = Field(default_factory=dict)

    @field_validator("variables", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        return _mapping_or_nothing(value)


class Expect(_Body):
    state: Literal["completed", "terminated", "waiting", "incident"] | None = None
    waits: tuple[str, ...] | None = None
    """Nodes that wait, each of them; an empty list: nothing waits."""
    variables: dict[str, Any] | None = None
    """These variables have these values; others may stand beside them."""
    data: dict[str, Any] | None = None
    """These data stores hold these values."""
    completed: bool | tuple[str, ...] | None = None
    """Nodes that were completed; or true and false for the instance itself."""

    @field_validator("waits", "completed", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list):
            # The shape of a result's waits is accepted too: what one run printed, another may expect.
            return [item.get("node", item) if isinstance(item, dict) else item for item in value]
        return value


TaskKind = Literal["task", "job"]

Body = (
    Advance
    | Message
    | Signal
    | Complete
    | Claim
    | Unclaim
    | Job
    | JobError
    | JobFailure
    | JobEscalation
    | Retry
    | Resolve
    | SetVariables
    | SetData
    | Cancel
    | Suspend
    | Resume
    | StartProcess
    | Expect
    | Stop
    | Restart
)

KINDS: dict[str, type[Body]] = {
    "advance": Advance,
    "message": Message,
    "signal": Signal,
    "complete": Complete,
    "claim": Claim,
    "unclaim": Unclaim,
    "job": Job,
    "error": JobError,
    "fail": JobFailure,
    "escalate": JobEscalation,
    "retry": Retry,
    "resolve": Resolve,
    "set": SetVariables,
    "data": SetData,
    "cancel": Cancel,
    "suspend": Suspend,
    "resume": Resume,
    "start": StartProcess,
    "expect": Expect,
    "stop": Stop,
    "restart": Restart,
}
