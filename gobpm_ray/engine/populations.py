"""What an operator does to many instances at once: hold, let go on, cancel, by what they are.

Each instance is one accepted action of its own; one that ends meanwhile is no error.
"""

from __future__ import annotations

from collections.abc import Callable

from gobpm_ray.engine.operators import Operators
from gobpm_ray.errors import InputError, UnknownInstance


class Populations(Operators):
    """See the module's docstring."""

    def suspend_all(
        self, *, process_id: str = "", state: str = "", business_key: str = "", limit: int = 1_000_000
    ) -> list[str]:
        """Hold every living instance that fits; the ids of those that were not held already."""
        return self._each(process_id, state, business_key, limit, self.suspend)

    def resume_all(
        self, *, process_id: str = "", state: str = "suspended", business_key: str = "", limit: int = 1_000_000
    ) -> list[str]:
        """Let every held instance that fits go on; their ids."""
        return self._each(process_id, state, business_key, limit, self.resume)

    def cancel_all(
        self, *, process_id: str = "", state: str = "", business_key: str = "", limit: int = 1_000_000
    ) -> list[str]:
        """Terminate every living instance that fits; their ids. InputError without any filter: all is not meant by
        nothing."""
        if not (process_id or state or business_key):
            raise InputError("cancel: expected a process, a state or a business key to choose by")
        return self._each(process_id, state, business_key, limit, lambda one: bool(self.cancel(one)))

    def _each(
        self, process_id: str, state: str, business_key: str, limit: int, act: Callable[[str], bool]
    ) -> list[str]:
        chosen = self.list_instances(
            process_id=process_id, ended=False, state=state, business_key=business_key, limit=limit
        )
        done = []
        for view in chosen:
            try:
                if act(view.instance_id):
                    done.append(view.instance_id)
            except (UnknownInstance, InputError):
                continue  # it has ended meanwhile
        return done
