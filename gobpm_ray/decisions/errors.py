"""What can go wrong while a decision is evaluated, in one line that names decision, rule and cell."""

from __future__ import annotations

from gobpm_ray.errors import GobpmError


class DecisionFailed(GobpmError):
    """The decision has no value for these variables; an incident of the instance that asked for it."""

    code = "decision"
