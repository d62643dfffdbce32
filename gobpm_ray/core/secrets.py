"""What must not be seen: the values of a process's secret variables, wherever they turn up.

A process names its secret variables (`Process.secrets`), and whoever hands a value in may mark it
(`gobpm_ray.secret.Secret`): the instance then knows that name too (`Head.secrets`). Their values are stored and
computed with like any other; what is shown, told or logged goes through a `Veil`, which hides a secret variable's value
by its name, and any text that contains one of these values by the value: a secret that was mapped to another name, or
is quoted by an error, is hidden as well. It knows no store and no format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gobpm_ray.core.state import InstanceState
from gobpm_ray.core.step import Step
from gobpm_ray.model.elements import Process
from gobpm_ray.secret import HIDDEN

SHORTEST = 4
"""A text this short is found everywhere by chance: it is hidden by its variable's name alone."""


@dataclass(frozen=True, slots=True)
class Veil:
    names: frozenset[str] = frozenset()
    texts: tuple[str, ...] = field(default=(), repr=False)
    """Values to be hidden, the longest first."""

    def __bool__(self) -> bool:
        return bool(self.names)

    def joined(self, other: Veil) -> Veil:
        """What either hides."""
        texts = tuple(sorted({*self.texts, *other.texts}, key=len, reverse=True))
        return Veil(self.names | other.names, texts)

    def text(self, text: str) -> str:
        for secret in self.texts:
            text = text.replace(secret, HIDDEN)
        return text

    def tells(self, name: str, value: object) -> bool:
        """Whoever is shown this variable is shown something that is to be hidden."""
        return name in self.names or self._in(value)

    def _in(self, value: object) -> bool:
        if isinstance(value, str):
            return any(secret in value for secret in self.texts)
        if isinstance(value, Mapping):
            return any(self._in(item) for item in value.values())
        if isinstance(value, list | tuple):
            return any(self._in(item) for item in value)
        return value is not None and not isinstance(value, bool) and str(value) in self.texts

    def value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.values(value)
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, bool) or value is None:
            return value
        # A number or a date is hidden when it is all of a secret: as a part it means something else.
        return HIDDEN if str(value) in self.texts else value

    def values(self, values: Mapping[str, object]) -> dict[str, object]:
        if not self.names:
            return dict(values)
        return {name: HIDDEN if name in self.names else self.value(value) for name, value in values.items()}


NO_VEIL = Veil()


def veil_of(process: Process, *sources: Mapping[str, object], marked: Iterable[str] = ()) -> Veil:
    """What the process's secrets hide, and the variables that are `marked`, given those in which their values stand."""
    names = frozenset(process.secrets).union(marked)
    if not names:
        return NO_VEIL
    found = {text for values in sources for name in names & values.keys() for text in _texts(values[name])}
    return Veil(names, tuple(sorted(found, key=len, reverse=True)))


def veil_of_state(process: Process, state: InstanceState) -> Veil:
    """Given all that is loaded of an instance."""
    if not (process.secrets or state.head.secrets):
        return NO_VEIL
    local = (track.local for track in state.tracks.values() if track.local)
    scopes = (scope.variables for scope in state.scopes.values())
    return veil_of(process, *scopes, *local, marked=state.head.secrets)


def conceal(step: Step, veil: Veil) -> None:
    """Nothing that the step says of itself, its history and its incidents' causes, contains a secret."""
    if not veil.texts:
        return
    for entry in step.history:
        # Frozen for everybody else; here it has not been seen by anybody yet.
        object.__setattr__(entry, "detail", veil.text(entry.detail))
    for track in step.state.tracks.values():
        if track.incident is not None and f"t{track.id}" in step.changed:
            track.incident.cause = veil.text(track.incident.cause)
            track.incident.stack = veil.text(track.incident.stack)


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool) and len(text := str(value)) >= SHORTEST:
        yield text
        if "\n" in text:
            # As it looks in a cause, which is one line.
            yield " ".join(text.split())
