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


class LockLost(InputError):
    """A worker reported a job whose lock had ended, or is another's: nothing changed, and whoever fetched it since goes
    on (C68)."""

    code = "lock_lost"


class UnknownDelivery(InputError):
    code = "unknown_delivery"


class UnstorableValue(InputError):
    """A variable's value has no durable form; the message names scope and variable."""

    code = "unstorable_value"


class InvalidPayload(InputError):
    code = "invalid_payload"


class Mistyped(InputError):
    """A value is not what its item definition says: the caller's delivery is refused, or the token that met it stands
    in an incident."""

    code = "mistyped"


class UnknownDataStore(InputError):
    code = "unknown_data_store"


class InvalidScenario(InputError):
    code = "invalid_scenario"


class BpmnError(Exception):
    """Raised by a callable to throw a BPMN error: caught by a boundary event or an event sub-process that names its
    code, or none, and an incident of the task where nobody does. `values` become variables where it is caught.

    No `GobpmError`: nothing has gone wrong with the engine. Any other exception is a failure that can be retried."""

    def __init__(self, code: str, message: str = "", /, **values: object) -> None:
        if not isinstance(code, str) or not code:
            raise ValueError(f"a BPMN error needs a code, got {code!r}")
        super().__init__(message or code)
        self.code = code
        self.values = values

    def __reduce__(self) -> tuple[object, ...]:
        return _bpmn_error, (self.code, str(self), self.values)


def _bpmn_error(code: str, message: str, values: dict[str, object]) -> BpmnError:
    return BpmnError(code, message, **values)


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


class DataStoreChanged(InputError):
    """A write was refused without a trace: a data store is not as the writer has read it. A step is then made again; an
    operator looks again."""

    code = "data_store_changed"


class BrokenInvariant(GobpmError):
    """A state that cannot happen did; a fault of the engine itself."""

    code = "broken_invariant"


class Escalation(Exception):
    """Raised by a callable to throw a BPMN escalation; its task is done then, with `values` as outputs. A worker's
    function that goes on after an escalation throws it by its context."""

    def __init__(self, code: str, message: str = "", /, **values: object) -> None:
        if not isinstance(code, str) or not code:
            raise ValueError(f"a BPMN escalation needs a code, got {code!r}")
        super().__init__(message or code)
        self.code = code
        self.values = values

    def __reduce__(self) -> tuple[object, ...]:
        return _escalation, (self.code, str(self), self.values)


def _escalation(code: str, message: str, values: dict[str, object]) -> Escalation:
    return Escalation(code, message, **values)
