"""The one function that builds canonical keys, so that what was armed and what arrives are compared as equal strings
(N2, N3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from gobpm_ray.errors import InvalidPayload

SEPARATOR = "\x1f"
"""Between the fields of a key or a row; refused inside names and keys, so no value can forge a boundary."""
ALLOWED_KEY_LENGTH = 1_024


PROPERTY = "\x1d"
"""Before each property=value that a sender names behind a message's canonical key."""


def message_key(name: str, key: object = None) -> str:
    """`canonical_key`; of a table of correlation properties the first one's value, and behind it all of them by name:
    the message is looked for under each value, and not given to who knows another value of one (M49)."""
    if not isinstance(key, Mapping):
        return canonical_key(name, key)
    if not key:
        raise InvalidPayload(f"message {name[:80]!r}: correlated by no property at all")
    named = {_property(property_name): key_text(value) for property_name, value in key.items()}
    first = next(iter(named.values()))
    return canonical_key(name, first) + "".join(f"{PROPERTY}{each}={value}" for each, value in named.items())


READ = "!"
"""Before the name of a property that its sender did not name and the payload says: it contradicts and does not
route."""


def properties_of(key: str, *, read: bool = True) -> dict[str, str]:
    """What stands behind the canonical key: named by the sender or, if `read`, by the payload."""
    if PROPERTY not in key:
        return {}
    pairs = (each.partition("=") for each in key.split(PROPERTY)[1:] if read or not each.startswith(READ))
    return {name.removeprefix(READ): value for name, _, value in pairs}


def with_read(key: str, said: Mapping[str, str]) -> str:
    """The key of a message with what its payload says of properties that its sender did not name."""
    named = properties_of(key)
    return key + "".join(f"{PROPERTY}{READ}{name}={value}" for name, value in said.items() if name not in named)


def together_text(names: Iterable[str]) -> bytes:
    """The messages that begin a conversation together with the one whose start's row this is, as the store keeps it."""
    return PROPERTY.join(names).encode()


def began_by(name: str, key: str, together: str = "") -> tuple[str, ...]:
    """The canonical keys of the conversation that a message begins, under its own name and under those of `together`
    (`together_text`); by its name alone it begins none."""
    keys, by_name = routes(key), canonical_key(name)
    if keys[0] == by_name:
        return ()
    names = together.split(PROPERTY) if together else []
    others = [canonical_key(other) + each.removeprefix(by_name) for other in names for each in keys]
    return tuple(dict.fromkeys((*keys, *others)))


def routes(key: str) -> list[str]:
    """The canonical keys that a message of this key is looked for under, the one that it is parked by first."""
    base, *named = key.split(PROPERTY)
    named = [each for each in named if not each.startswith(READ)]
    if not named:
        return [base]
    head = base[: base.index(SEPARATOR, base.index(SEPARATOR) + 1) + 1]
    return list(dict.fromkeys([base, *(f"{head}={each.partition('=')[2]}" for each in named)]))


def learnt_text(properties: Mapping[str, str]) -> str:
    """Learnt properties as the store keeps them beside an instance."""
    return "".join(f"{PROPERTY}{name}={value}" for name, value in properties.items()) + PROPERTY if properties else ""


def _property(name: object) -> str:
    if not isinstance(name, str) or "=" in name or name.startswith(READ):
        raise InvalidPayload(
            f"correlation property {str(name)[:80]!r}: expected a name without '=' that does not begin with {READ!r}"
        )
    return _checked(name, "correlation property")


def canonical_key(name: str, key: object = None) -> str:
    """The canonical key of a message: kind, name and correlation key. Equal business values give equal text:
    5, 5.0 and "5" correlate. None stands for "correlated by name alone" and equals only itself.

    Raises InvalidPayload for a key that is no scalar, is empty, or is too long."""
    return f"m{SEPARATOR}{_checked(name, 'message name')}{SEPARATOR}{'' if key is None else '=' + key_text(key)}"


def signal_key(name: str) -> str:
    return f"s{SEPARATOR}{_checked(name, 'signal name')}{SEPARATOR}"


def job_key(topic: str, priority: int = 50) -> str:
    """What a job waits under: its topic, and an urgency that sorts the most urgent first."""
    return f"{_checked(topic, 'topic')}{SEPARATOR}{9_999 - min(max(priority, 0), 9_999):04d}"


def key_text(key: object) -> str:
    """A correlation key as text."""
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float) and key.is_integer():
        return str(int(key))
    if isinstance(key, Decimal):
        return f"{key.normalize():f}"
    if isinstance(key, int | float):
        return str(key)
    if not isinstance(key, str):
        raise InvalidPayload(f"correlation key {str(key)[:80]!r}: expected a text, a number or a boolean")
    return _checked(key, "correlation key")


def _checked(text: str, what: str) -> str:
    if not text or len(text) > ALLOWED_KEY_LENGTH or any(c in text for c in "\x1f\x1e\x1d\x00\n"):
        raise InvalidPayload(
            f"{what} {text[:80]!r}: expected 1 to {ALLOWED_KEY_LENGTH} characters without control characters"
        )
    return text
