"""The one function that builds canonical keys, so that what was armed and what arrives are compared as equal strings
(N2, N3)."""

from __future__ import annotations

from decimal import Decimal

from gobpm_ray.errors import InvalidPayload

SEPARATOR = "\x1f"
"""Between the fields of a key or a row; refused inside names and keys, so no value can forge a boundary."""
ALLOWED_KEY_LENGTH = 1_024


def message_key(name: str, key: object = None) -> str:
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
    if not text or len(text) > ALLOWED_KEY_LENGTH or any(c in text for c in "\x1f\x1e\x00\n"):
        raise InvalidPayload(
            f"{what} {text[:80]!r}: expected 1 to {ALLOWED_KEY_LENGTH} characters without control characters"
        )
    return text
