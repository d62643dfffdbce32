"""`Secret`: a variable's value that its instance must not show to anybody.

It knows a value and how not to say it. It refuses to know what a variable, an instance or a veil is: whoever takes
values in opens a secret and keeps the mark beside them (`revealed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

HIDDEN = "***"


class Secret:
    """`Secret("hunter2")` as a variable's value, or anywhere inside one: that variable is secret for its instance.

    Work that gets the variable gets the plain value. Everybody who is shown the instance sees `***` in its place."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value: object = value._value if isinstance(value, Secret) else value

    def reveal(self) -> object:
        """The value itself."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> tuple[type[Secret], tuple[object]]:
        return Secret, (self._value,)


def revealed(values: Mapping[str, object]) -> tuple[dict[str, object], tuple[str, ...]]:
    """The plain values, and the names of those that are secret or have a secret in them. Without one, as they are."""
    names = tuple(name for name, value in values.items() if _holds(value))
    plain = dict(values)
    plain.update({name: _open(values[name]) for name in names})
    return plain, names


def hidden(value: object) -> object:
    """The same with `***` for each secret."""
    return _open(value, HIDDEN) if _holds(value) else value


def _holds(value: object) -> bool:
    if isinstance(value, Secret):
        return True
    if isinstance(value, Mapping):
        return any(_holds(item) for item in value.values())
    return isinstance(value, list | tuple) and any(_holds(item) for item in value)


def _open(value: object, instead: str | None = None) -> object:
    if isinstance(value, Secret):
        return _open(value.reveal()) if instead is None else instead
    if isinstance(value, Mapping):
        return {name: _open(item, instead) for name, item in value.items()}
    if isinstance(value, list | tuple):
        items: Iterable[object] = (_open(item, instead) for item in value)
        return list(items)
    return value
