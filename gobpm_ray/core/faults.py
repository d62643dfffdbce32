"""What can be wrong with one token's content: named by a stable code, shown as an incident, never raised outside.

The code also says where an operator's retry goes on: what was already done is not done again.
"""

from __future__ import annotations

from gobpm_ray.errors import GobpmError

FAILURE = "failure"
"""The work was reported as failed. Retry does the work again; boundary events stayed armed with their deadlines."""
SEALED = "sealed"
"""A crash cut the attempt off (N10). Retry does the work again."""
LOST = "lost"
"""Of a report: the process that did the work is gone, and nobody knows how far it came."""
UNAVAILABLE = "unavailable"
"""The work never began: no node of the cluster has what it asks for. Retry hands it out again."""
OUTPUT = "output"
"""The activity is done and its outputs could not be bound. Retry binds them again; resolve assigns other ones."""
FLOW = "flow"
"""The node is done and no way out of it was found. Retry looks for one again."""
NO_WAY_OUT = "no_way_out"
ENDLESS_LOOP = "endless_loop"
DEADLOCK = "deadlock"
NO_START = "no_start"
INVALID_KEY = "invalid_key"
NEVER_FIRES = "never_fires"
INVALID_TASK = "invalid_task"
INVALID_LOOP = "invalid_loop"
INVALID_CALL = "invalid_call"
MISTYPED = "mistyped"
"""The variables of a start are not what their types say; they are there all the same. Retry begins with what they are
then."""
CONDITION = "condition"
"""A condition that an event waits for is neither true nor false."""
UNCAUGHT_ERROR = "uncaught_error"
"""Thrown, and nobody up to the root catches it. Retry throws it again, resolve goes past the throw."""
NO_CANCEL_BOUNDARY = "no_cancel_boundary"
LISTENING = "listening"
"""The start event of an event sub-process could not be armed, and a token stands there. Retry arms it, resolve does
without it."""

_LONGEST_CAUSE = 500


class Fault(GobpmError):
    """Content that this token cannot go on with."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def one_line(error: object) -> str:
    """The cause as an incident shows it."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST_CAUSE else text[: _LONGEST_CAUSE - 1] + "…"
