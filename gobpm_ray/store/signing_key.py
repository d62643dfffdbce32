"""The key that signs code stored by value, kept in the embedded store's home: made once, never changed (D 9).

This module knows one file and its permissions; it refuses to know what is signed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from gobpm_ray.errors import EnvironmentFailure
from gobpm_ray.store.embedded import default_home

KEY_BYTES = 32


def signing_key(home: Path | str | None = None) -> bytes:
    """The home's key, made on first use; every later call by any program gives the same one."""
    folder = Path(home).expanduser().absolute() if home is not None else default_home()
    path = folder / "key"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make(path)
        if path.stat().st_mode & 0o077:
            raise EnvironmentFailure(f"signing key {path}: other users can read it; run: chmod 600 {path}")
        key = path.read_bytes()
    except OSError as failure:
        raise EnvironmentFailure(f"signing key {path}: {failure.strerror or failure}") from failure
    if len(key) < KEY_BYTES:
        raise EnvironmentFailure(f"signing key {path}: {len(key)} bytes, expected {KEY_BYTES}; restore it")
    return key


def _make(path: Path) -> None:
    draft = path.with_name(f"key.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        # A link never replaces: of two programs that race, both end up reading the first one's key.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
