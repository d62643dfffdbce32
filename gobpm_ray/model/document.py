"""The durable form of a process: versioned JSON that every later release can read; bytes, wherever they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json as parse_json

from gobpm_ray.errors import InvalidModel, NewerSchema
from gobpm_ray.model.elements import Process

SCHEMA = 1
"""Raised with every change that an older reader would misunderstand; new fields with defaults do not raise it."""


@dataclass(frozen=True, slots=True)
class _Document:
    format: Literal["gobpm_ray.process"]
    schema: int
    process: Process


@cache
def _adapter() -> TypeAdapter[_Document]:
    return TypeAdapter(_Document)


def to_json(process: Process) -> bytes:
    """The process as JSON, tables in document order; equal processes give equal bytes."""
    return _adapter().dump_json(_Document("gobpm_ray.process", SCHEMA, process))


def from_json(document: bytes) -> Process:
    """The process that `to_json` wrote. `InvalidModel` for anything else, `NewerSchema` for a later release's."""
    try:
        raw = parse_json(document)
    except ValueError as broken:
        raise InvalidModel(f"stored process: not JSON: {broken}") from None
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise NewerSchema(f"stored process has schema {schema}; this release reads up to {SCHEMA}: update it")
    try:
        return _adapter().validate_python(raw).process
    except ValidationError as broken:
        first = broken.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidModel(f"stored process: {place or 'document'}: {first['msg']}") from None
