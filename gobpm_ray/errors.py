"""The engine's own exceptions. Each message is one line: what, where, why, what to do.

Two families decide exit codes and retries: `InputError` (the caller's content is wrong; repeating it changes nothing)
and
`EnvironmentFailure` (the circumstances are wrong; the same call may succeed later). `BrokenInvariant` alone means
"cannot happen".
"""

from __future__ import annotations


class GobpmError(Exception):
    """Every error that the engine raises on purpose. `code` is stable and goes into `--json` answers."""

    code = "error"


class InputError(GobpmError):
    """The caller's content is wrong: exit code 2."""

    code = "input"


class EnvironmentFailure(GobpmError):
    """The store, Ray or the machine is not as it must be: exit code 5; a delivery stays pending (H6)."""

    code = "environment"


class InvalidSetting(InputError):
    code = "invalid_setting"


class InvalidModel(InputError):
    """A BPMN document or a built model cannot be executed; `problems` names each element and reason."""

    code = "invalid_model"

    def __init__(self, message: str, problems: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class InvalidTimer(InputError):
    code = "invalid_timer"


class ExpressionError(GobpmError):
    """An expression cannot be parsed or evaluated, or exceeded its budget; an incident of its instance."""

    code = "expression"


class UnknownProcess(InputError):
    code = "unknown_process"


class UnknownInstance(InputError):
    code = "unknown_instance"


class UnknownTask(InputError):
    code = "unknown_task"


class TaskRefused(InputError):
    """A claim or completion of a human task was refused; nothing changed (H58)."""

    code = "task_refused"


class UnknownDelivery(InputError):
    code = "unknown_delivery"


class UnstorableValue(InputError):
    """A variable's value has no durable form; the message names scope and variable."""

    code = "unstorable_value"


class InvalidPayload(InputError):
    code = "invalid_payload"


class InvalidScenario(InputError):
    code = "invalid_scenario"


class LimitReached(InputError):
    """Backpressure: accepted nothing, and says which limit."""

    code = "limit_reached"


class UnregisteredCallable(InputError):
    code = "unregistered_callable"


class StoreUnavailable(EnvironmentFailure):
    code = "store_unavailable"


class StoreRefused(EnvironmentFailure):
    """The store answered, and refused: wrong password, full, read only, misconfigured."""

    code = "store_refused"


class RayUnavailable(EnvironmentFailure):
    code = "ray_unavailable"


class NewerSchema(EnvironmentFailure):
    """A checkpoint was written by a newer release (D20)."""

    code = "newer_schema"


class NotInTime(GobpmError, TimeoutError):
    """What was waited for did not happen within the caller's patience; nothing else is wrong."""

    code = "not_in_time"


class CorruptCheckpoint(GobpmError):
    """Stored bytes are not what was written; that instance fails loudly, the others go on (A79)."""

    code = "corrupt_checkpoint"


class EngineClosed(GobpmError):
    code = "engine_closed"


class LeaseLost(GobpmError):
    """The caller's lease is no longer the live one: its commit left no trace (N8)."""

    code = "lease_lost"


class BrokenInvariant(GobpmError):
    """A state that cannot happen did; a fault of the engine itself."""

    code = "broken_invariant"
