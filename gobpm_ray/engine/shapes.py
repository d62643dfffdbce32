"""Data at the engine's doors held to the types that the process declares: whoever brings wrong data is refused.

The core asks again where data enters an instance, so that what passes no door (a message, a called process) is not
lost but an incident. A process without types is told by its stored document, before anything of it is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gobpm_ray.core import shapes as data
from gobpm_ray.core.nodes.work import results_of
from gobpm_ray.core.program import Program
from gobpm_ray.core.shapes import Shape
from gobpm_ray.engine.reading import Reading
from gobpm_ray.errors import GobpmError
from gobpm_ray.model.elements import WorkTask
from gobpm_ray.runtime.ports import Definition, Store
from gobpm_ray.secret import revealed
from gobpm_ray.settings import Settings

TYPED = (b"itemDefinition", b"isCollection", b'"item":{')
"""One of these stands in every stored document that has a type: in XML, in the model's own JSON."""


class Shapes(Reading):
    """See the module's docstring."""

    def __init__(self, store: Store, settings: Settings | None = None, *, signing_key: bytes | None = None) -> None:
        super().__init__(store, settings, signing_key=signing_key)
        self._untyped: set[tuple[str, int]] = set()
        """(process, version) without a type; version 0: the newest had none when it was looked at last. If somebody
        else deploys one that has, the core notices what is started here."""

    def _forget(self) -> None:
        super()._forget()
        self._untyped.clear()

    def _check_start(self, process_id: str, version: int, *each: Mapping[str, Any] | None) -> None:
        """Mistyped for variables that the process does not take."""
        program = self._typed_program(process_id, version)
        if program is not None and program.shape is not None:
            for values in each:
                _require(program.shape, values, f"start of {process_id}")

    def _check_result(self, process_id: str, version: int, node: str, values: Mapping[str, Any] | None) -> None:
        """Mistyped for what is no result of the element."""
        program = self._typed_program(process_id, version)
        found = None if program is None else program.nodes.get(node)
        found = found if found is None or found.body is None else found.body
        if found is not None and found.results is not None and isinstance(values, Mapping | None):
            given, _ = revealed(values or {})
            given = results_of(found.element, given) if isinstance(found.element, WorkTask) else given
            _require(found.results, given, f"result of '{node}'")

    def _check_set(self, process_id: str, version: int, values: Mapping[str, Any]) -> None:
        """Mistyped for values that variables of the root scope do not take."""
        program = self._typed_program(process_id, version)
        if program is not None:
            _require(data.Shapes(program.process).variables(), values, f"variables of '{process_id}'")

    def _typed_program(self, process_id: str, version: int) -> Program | None:
        """The program, if it may have a type; version 0: the newest one's. None is remembered: a version never changes.

        What cannot be read or compiled here is judged where it runs, as everything that passes this door."""
        if (process_id, version) in self._untyped:
            return None
        definition = self.store.definition(process_id, version)
        if definition is None:
            return None
        if not self._typed(definition):
            self._untyped.add((process_id, version))
            return None
        try:
            return self._programs.get(process_id, definition.version)
        except GobpmError:
            return None

    def _typed(self, definition: Definition) -> bool:
        known = (definition.process_id, definition.version)
        if known in self._untyped:
            return False
        document = definition.document
        # UTF-16 shows its ASCII once the zero bytes are out.
        plain = document.replace(b"\0", b"") if b"\0" in document[:64] else document
        typed = any(word in plain for word in TYPED)
        if not typed:
            self._untyped.add(known)
        return typed


def _require(shape: Shape | None, values: Mapping[str, Any] | None, what: str) -> None:
    if shape is not None and isinstance(values, Mapping | None):
        shape.require(revealed(values or {})[0], what)
